"""Keep tags and own metadata: with the document, and as rows that filters ask."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from uuid import uuid4

from sqlalchemy import Connection, bindparam, delete, select, update

from app.core.errors import InvalidInput
from app.core.labels import Kind, Labels, Value, comparable, fits, fold, kind_of, position
from app.core.types import Library
from app.storage.catalog.database import Database
from app.storage.catalog.rows import pack_strings, strings_from, values_from
from app.storage.catalog.schema import documents, labels, pieces, put_meta
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


def pack_values(values: Mapping[str, Value]) -> str:
    """Return own metadata as JSON."""
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
        for doc, tags, metadata in self._sql.execute(live).all():
            before = strings_from(tags), values_from(metadata)
            held, _ = self.merge(before, given)
            if held != before:
                self.update(library, {doc: held})

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


class LabelStore:
    """The tags of all documents: list, rename, delete; what is asked under a name."""

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
