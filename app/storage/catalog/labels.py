"""Keep tags and own metadata: with the document, and as rows that filters ask."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any
from uuid import uuid4

from sqlalchemy import Connection, Row, bindparam, delete, func, select, update

from app.core.errors import InvalidInput, NotFound
from app.core.labels import Kind, Labels, Value, comparable, fits, fold, kind_of, position, tag_list
from app.core.serialization import from_json, json_values
from app.core.types import Filters, Library
from app.storage.catalog.database import Database
from app.storage.catalog.rows import pack_strings, strings_from, values_from
from app.storage.catalog.schema import documents, labels, meta, pieces, put_meta
from app.storage.catalog.statements import INSERT_LABEL, TAG_KEY, SqlDialect
from app.storage.files.durable import utc_now

LABELS_VERSION = "labels_version"
"""Key of `meta`: another value once a label was changed."""

Held = tuple[tuple[str, ...], Mapping[str, Value]]
"""Tags and own metadata of a document."""
UNLABELLED: Held = ((), MappingProxyType({}))

_KIND = select(labels.c.kind).where(labels.c.key == bindparam("of")).limit(1)
_REMOVE = delete(labels).where(labels.c.doc.in_(bindparam("docs", expanding=True)))
_OF = documents.c.doc == bindparam("of")
_HELD = select(documents.c.doc, documents.c.tags, documents.c.metadata)
_SET = (
    update(documents)
    .where(_OF)
    .values(tags=bindparam("tagged"), metadata=bindparam("described"), updated_at=bindparam("now"))
)


def held_by(row: Row[*tuple[Any, ...]]) -> Held:
    """Return the labels of a row of a document."""
    return strings_from(row.tags), values_from(row.metadata)


def pack_values(values: Mapping[str, Value]) -> str:
    return json.dumps(dict(values), ensure_ascii=False) if values else "{}"


class LabelWriter:
    """Writes labels of documents in one open transaction; used once."""

    def __init__(self, sql: Connection, dialect: SqlDialect) -> None:
        self._sql = sql
        self._dialect = dialect
        self._kinds: dict[str, Kind | None] = {}

    def kind(self, key: str) -> Kind | None:
        """Return the kind of the values under a key; None where no document has it."""
        if key not in self._kinds:
            self._kinds[key] = self._sql.execute(_KIND, {"of": key}).scalar()
        return self._kinds[key]

    def merge(self, before: Held, given: Labels) -> tuple[Held, tuple[str, ...]]:
        """Return what a document has once it is given labels, and the keys that are left out.

        A value that is not of its key's kind is left out.

        Raises:
            InvalidInput: It would have too many keys.
        """
        kept: dict[str, Value | None] = {}
        for key, value in given.metadata.items():
            kind = self.kind(key)
            if value is None or kind is None or fits(value, kind):
                kept[key] = value
                if value is not None:
                    self._kinds[key] = kind or kind_of(value)
        left_out = tuple(key for key in given.metadata if key not in kept)
        return Labels(given.tags, kept).over(*before), left_out

    def refuse_unfit(self, given: Labels) -> None:
        """Refuse labels with a value that is not of its key's kind.

        Raises:
            InvalidInput: There is one.
        """
        for key in self.merge(((), {}), given)[1]:
            raise InvalidInput(
                f"metadata {key!r}: {given.metadata[key]!r} must be a {self.kind(key)}, as every"
                " value under this key; send such a value, or another key"
            )

    def give(self, library: Library, doc_id: str, given: Labels) -> None:
        """Give a live document labels; one that is gone is left alone.

        Raises:
            InvalidInput: It would have too many keys.
        """
        named = documents.c.doc_id == doc_id
        live = _HELD.where(documents.c.library == library.value, named, documents.c.state == "live")
        for row in self._sql.execute(live).all():
            held, _ = self.merge(held_by(row), given)
            if held != held_by(row):
                self.update(library, {row.doc: held})

    def update(self, library: Library, held: Mapping[int, Held]) -> None:
        """Give documents these labels in the place of those that they have."""
        now = utc_now()
        for doc, (tags, metadata) in held.items():
            new = {"tagged": pack_strings(tags), "described": pack_values(metadata)}
            self._sql.execute(_SET, {"of": doc, "now": now, **new})
        self.put_rows(library, held)

    def put_rows(self, library: Library, held: Mapping[int, Held]) -> None:
        """Write the rows that filters ask, of documents that have these labels now."""
        if not held:
            return
        for docs in pieces(list(held)):
            self._sql.execute(_REMOVE, {"docs": docs})
        rows: list[tuple[object, ...]] = []
        for doc, (tags, metadata) in held.items():
            rows += [(doc, TAG_KEY, fold(tag), library.value, "tag", None) for tag in tags]
            for key, value in metadata.items():
                kind = self.kind(key) or kind_of(value)
                number = None if kind == "text" else position(value)
                rows.append((doc, key, comparable(value), library.value, kind, number))
        self._dialect.insert_rows(self._sql, INSERT_LABEL, rows)
        put_meta(self._sql, LABELS_VERSION, uuid4().hex)


_TAGGED = (
    select(labels.c.value, func.count(), func.min(labels.c.doc))
    .join(documents, documents.c.doc == labels.c.doc)
    .where(labels.c.key == TAG_KEY, documents.c.state == "live")
    .group_by(labels.c.value)
    .order_by(labels.c.value)
)
_SAVED = "collection/"
"""Before the name of a saved filter, as a key of `meta`."""


class LabelStore:
    """The tags of all documents: list, rename, delete; saved filters, which are collections."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def check(self, given: Sequence[Labels]) -> None:
        """Refuse labels that documents cannot be given now, one after the other.

        Raises:
            InvalidInput: A value is not of its key's kind.
        """
        if any(one.metadata for one in given):
            with self._database.read() as sql:
                writer = LabelWriter(sql, self._database.dialect)
                for one in given:
                    writer.refuse_unfit(one)

    def tags(self, library: Library | None = None) -> list[tuple[str, int]]:
        """Return tags, as their first document spells them, and how many documents have each."""
        query = _TAGGED if library is None else _TAGGED.where(labels.c.library == library.value)
        spelt: dict[str, str] = {}
        with self._database.read() as sql:
            found = sql.execute(query).all()
            for docs in pieces(sorted({doc for _, _, doc in found})):
                for packed in sql.execute(_HELD.where(documents.c.doc.in_(docs))).all():
                    for tag in strings_from(packed.tags):
                        spelt.setdefault(fold(tag), tag)
        return [(spelt.get(value, value), count) for value, count, _ in found]

    def replace_tag(self, tag: str, new: str | None, library: Library | None = None) -> int:
        """Rename a tag in all documents that have it, None: remove it; return how many have it.

        Raises:
            NotFound: No document has it.
            InvalidInput: The new name is no tag.
        """
        names = () if new is None else tag_list([new])
        has = select(labels.c.doc).where(labels.c.key == TAG_KEY, labels.c.value == fold(tag))
        changed = 0
        with self._database.write("labels") as sql:
            writer = LabelWriter(sql, self._database.dialect)
            for of in Library if library is None else (library,):
                rows = _HELD.where(documents.c.doc.in_(has), documents.c.library == of.value)
                held: dict[int, Held] = {}
                for doc, tags, metadata in sql.execute(rows).all():
                    kept = [
                        one
                        for old in strings_from(tags)
                        for one in (names if fold(old) == fold(tag) else (old,))
                    ]
                    held[doc] = tag_list(kept), values_from(metadata)
                writer.update(of, held)
                changed += len(held)
            if not changed:
                raise NotFound(f"no document has the tag {tag!r}; GET /api/v1/tags lists them")
        return changed

    def collections(self) -> dict[str, Filters]:
        """Return saved filters by name."""
        saved = select(meta).where(meta.c.key.startswith(_SAVED, autoescape=True))
        rows = self._database.rows(saved.order_by(meta.c.key))
        return {
            row.key.removeprefix(_SAVED): from_json(Filters, json.loads(row.value)) for row in rows
        }

    def collection(self, name: str) -> Filters:
        """Return a saved filter.

        Raises:
            NotFound: None has this name.
        """
        saved = self._database.meta(_SAVED + name)
        if saved is None:
            raise NotFound(f"there is no collection {name!r}; GET /api/v1/collections lists them")
        return from_json(Filters, json.loads(saved))

    def save_collection(self, name: str, filters: Filters) -> None:
        """Keep a filter under a name, in the place of any before."""
        with self._database.write("meta") as sql:
            put_meta(sql, _SAVED + name, json.dumps(json_values(filters), ensure_ascii=False))

    def delete_collection(self, name: str) -> None:
        """Forget a saved filter; its documents stay.

        Raises:
            NotFound: None has this name.
        """
        self.collection(name)
        with self._database.write("meta") as sql:
            sql.execute(delete(meta).where(meta.c.key == _SAVED + name))
