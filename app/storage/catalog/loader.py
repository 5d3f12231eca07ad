"""Read the catalog for the projections."""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from sqlalchemy import bindparam, func, select

from app.core.types import Document, Filters, Library, searched_names
from app.storage.catalog.changes import ChangeLog
from app.storage.catalog.database import Database, SinceCommit, id_list
from app.storage.catalog.labels import LABELS_VERSION
from app.storage.catalog.rows import (
    DOCUMENTS,
    Build,
    DocumentFacts,
    LexicalDocument,
    VectorRows,
    author_key,
    document_from,
    pack_strings,
    strings_from,
    unpack_vectors,
    usable,
    vector_key,
)
from app.storage.catalog.schema import (
    BUILD_SHIFT,
    IS_LIVE,
    LAST_REVISION,
    chunks,
    documents,
    libraries,
    revisions,
    rows_of,
    vectors,
)
from app.storage.catalog.statements import TAG_KEY, SqlDialect
from app.storage.catalog.texts import unpack_text
from app.storage.catalog.vectors import Builds

FILTERS_KEPT = 64
"""Filters by labels whose documents are remembered."""


def filter_condition(dialect: SqlDialect, filters: Filters) -> tuple[str, tuple[object, ...]]:
    """Return filters as an SQL condition on chunk (c) and document (d), with values."""
    author = author_key(filters.author or "")
    fields = ("sections", "doc_ids", "exclude_doc_ids", "types")
    named: dict[str, tuple[str, ...]] = {name: getattr(filters, name) for name in fields}
    asked: dict[str, object] = {name: pack_strings(held) for name, held in named.items() if held}
    years = {"year_from": filters.year_from, "year_to": filters.year_to}
    asked |= {name: year for name, year in years.items() if year is not None}
    if author:
        asked["author"] = author
    labels = list(_label_conditions(dialect, filters))
    conditions = [dialect.FILTERS[name] for name in asked]
    conditions += [dialect.HAS_LABEL.format(condition) for condition, _ in labels]
    of_labels = (value for _, values in labels for value in values)
    return " AND ".join(["TRUE", *conditions]), (*asked.values(), *of_labels)


def _label_conditions(
    dialect: SqlDialect, filters: Filters
) -> Iterator[tuple[str, tuple[object, ...]]]:
    """Yield what is asked of tags and own metadata as conditions on a label, with values."""
    tags, metadata = filters.labels
    if tags:
        yield dialect.LABELS["one"], (TAG_KEY, pack_strings(tags))
    for asked in metadata:
        if asked.values:
            yield dialect.LABELS["one"], (asked.key, pack_strings(asked.values))
        else:
            low = -sys.float_info.max if asked.low is None else asked.low
            high = sys.float_info.max if asked.high is None else asked.high
            yield dialect.LABELS["range"], (asked.key, asked.kind, low, high)


_FACTS = select(
    documents.c.doc, documents.c.doc_id, documents.c.type, documents.c.year, documents.c.author_keys
)
_NAMED = documents.c.doc.in_(bindparam("docs", expanding=True))
_LIVE_DOCUMENTS = (
    select(documents.c.source_revision, *DOCUMENTS.selected_columns)
    .where(documents.c.state == "live", _NAMED)
    .order_by(documents.c.doc)
)
_OF_TEXT = "doc revision doc_id title authors year type language other_titles filename".split()
_TEXTS = (
    select(*(documents.c[name] for name in _OF_TEXT), revisions.c.text)
    .join(revisions, LAST_REVISION)
    .where(documents.c.state == "live", _NAMED)
    .order_by(documents.c.doc)
)
_SPANS = (
    select(chunks.c.doc, chunks.c.revision, chunks.c.chunk_id, chunks.c.section)
    .add_columns(chunks.c.start, chunks.c.end)
    .join(documents, IS_LIVE)
    .where(_NAMED)
    .order_by(chunks.c.doc, chunks.c.ordinal)
)

_REPLACED = (
    select(chunks.c.chunk_id, chunks.c.doc)
    .outerjoin(documents, IS_LIVE)
    .where(chunks.c.doc.in_(bindparam("docs", expanding=True)), documents.c.doc.is_(None))
)
_CHUNK_IDS = (
    select(chunks.c.chunk_id).join(documents, IS_LIVE).where(_NAMED).order_by(chunks.c.chunk_id)
)
_STAMPS = (
    select(chunks.c.chunk_id, documents.c.doc_id, documents.c.filename)
    .add_columns(chunks.c.section, chunks.c.ordinal, chunks.c.page, documents.c.title)
    .join(documents, IS_LIVE)
    .where(chunks.c.chunk_id.in_(bindparam("ids", expanding=True)))
)


class CatalogLoader:
    """Reads in batches; thread-safe. What reads from here has the log of changes at hand."""

    def __init__(self, database: Database, log: ChangeLog) -> None:
        self.log = log
        self.database = self._database = database
        self._dialect = database.dialect
        self.on_unusable: Callable[[Sequence[int]], None] | None = None
        """Told the keys of stored vectors that are read as missing, because they are of a wrong
        size or not finite."""
        self.builds = Builds(database)
        self.embedded = SinceCommit(database, self._count_embedded)
        """Returns how many live chunks have a vector in a build; counted if it is not live."""
        self._narrowed: dict[tuple[Library, Filters], tuple[str | None, Filters | None]] = {}
        """With the version of the labels."""

    def live_build(self, library: Library) -> Build | None:
        """Return the build that serves a library, None before the first vector."""
        return self.builds.of(library, "live")

    def lexical_documents(self, docs: Sequence[int]) -> list[LexicalDocument]:
        """Return the live ones of these documents as the lexical index wants them."""
        named, found = sorted(docs), list[LexicalDocument]()
        spans: defaultdict[tuple[int, int], list[tuple[int, str, int, int]]] = defaultdict(list)
        with self._database.read() as sql:
            for doc, revision, *span in rows_of(sql, _SPANS, "docs", named):
                spans[doc, revision].append((*span,))
            for row in rows_of(sql, _TEXTS, "docs", named):
                titles = f"{row.title}\n{row.other_titles}" if row.other_titles else row.title
                text = unpack_text(row.text)
                parts = [
                    (chunk_id, section, text[start:end])
                    for chunk_id, section, start, end in spans[row.doc, row.revision]
                ]
                titles = searched_names(titles, row.filename)
                facts = row.doc, row.doc_id, titles, strings_from(row.authors), row.year, row.type
                found.append(LexicalDocument(*facts, parts, row.language))
        return found

    def replaced_chunk_ids(self, docs: Sequence[int]) -> dict[int, list[int]]:
        """Return the chunks of these documents that are kept and not live, by document."""
        found: defaultdict[int, list[int]] = defaultdict(list)
        with self._database.read() as sql:
            for chunk_id, doc in rows_of(sql, _REPLACED, "docs", docs):
                found[doc].append(chunk_id)
        return found

    def live_docs(self, library: Library, size: int) -> Iterator[list[int]]:
        """Yield keys of live documents in order, up to `size` at a time."""
        live = select(documents.c.doc).where(
            documents.c.state == "live", documents.c.library == library.value
        )
        some, after = live.order_by(documents.c.doc).limit(size), 0
        while rows := self._database.rows(some.where(documents.c.doc > after)):
            yield [row.doc for row in rows]
            after = rows[-1].doc

    def vectors(self, build: Build, chunk_ids: Sequence[int]) -> VectorRows:
        """Return the vectors of those chunks that are live and have one."""
        query = self._dialect.VECTORS_OF + self._dialect.VECTORS_END
        asked = (build.number << BUILD_SHIFT, id_list(chunk_ids), sys.maxsize)
        return self._usable(build, self._database.raw(query, asked))

    def analyse(self) -> None:
        """Prepare for `vectors_after` of all vectors, after many were written."""
        self._database.analyse()

    def vectors_after(self, build: Build, after: int, limit: int) -> VectorRows:
        """Return the next vectors of a build in chunk order; empty at the end."""
        query = self._dialect.VECTORS_BETWEEN + self._dialect.VECTORS_END
        low, high = _keys_of(build.number)
        while True:
            rows = self._database.raw(query, (low | after, high, limit))
            found = self._usable(build, rows)
            if found.chunk_ids or not rows:
                return found
            after = rows[-1][0]

    def all_vectors(self, build: Build, size: int) -> Iterator[VectorRows]:
        """Yield the vectors of a build in chunk order, up to `size` at a time."""
        after = 0
        while (found := self.vectors_after(build, after, size)).chunk_ids:
            yield found
            after = found.chunk_ids[-1]

    def _usable(self, build: Build, rows: list[tuple[Any, ...]]) -> VectorRows:
        """Return rows with a usable vector; report the others to `on_unusable`."""
        fit = usable([row[1] for row in rows], build.dimension)
        bad = [
            vector_key(build.number, row[0])
            for row, good in zip(rows, fit, strict=True)
            if not good
        ]
        if bad:
            rows = [row for row, good in zip(rows, fit, strict=True) if good]
            if self.on_unusable is not None:
                self.on_unusable(bad)
        by_key = {row[2]: row for row in rows}
        return VectorRows(
            [row[0] for row in rows],
            unpack_vectors([row[1] for row in rows], build.dimension),
            [(row[2], row[3]) for row in rows],
            [DocumentFacts(doc, *row[4:]) for doc, row in by_key.items()],
        )

    def sample(self, build: Build, n: int) -> list[int]:
        """Return up to n chunks with a vector, spread evenly, the last included."""
        low, high = _keys_of(build.number)
        chosen: set[int] = set()
        key = vectors.c.key
        with self._database.read() as sql:
            first, last = sql.execute(
                select(func.min(key), func.max(key)).where(key > low, key < high)
            ).one()
            for i in range(n if first is not None else 0):
                at = first + (last - first) * i // max(1, n - 1)
                found = sql.execute(select(func.min(key)).where(key >= at, key < high)).scalar()
                if found is not None:  # else it was deleted since
                    chosen.add(found - low)
        return sorted(chosen)

    def filtered_vectors(self, build: Build, filters: Filters, limit: int) -> VectorRows:
        """Return up to `limit` vectors of a build whose chunk meets the filters."""
        condition, values = filter_condition(self._dialect, filters)
        bound = (build.number << BUILD_SHIFT, build.library.value, *values, limit)
        query = self._dialect.FILTERED_VECTORS + condition + self._dialect.LIMIT
        return self._usable(build, self._database.raw(query, bound))

    def narrowed(self, library: Library, filters: Filters) -> Filters | None:
        """Return filters that name the documents which have the labels, in the place of these.

        Deleted ones are among them, so that a restored one is found. None where no document has
        the labels. They are read again once a label was changed.
        """
        tags, metadata = filters.labels
        if not tags and not metadata:
            return filters
        version = self._database.meta(LABELS_VERSION)
        key = library, filters
        held = self._narrowed.get(key)
        if held is not None and held[0] == version:
            return held[1]
        query = self._dialect.LABELLED
        values: list[object] = [library.value]
        for condition, of in _label_conditions(self._dialect, filters):
            query += self._dialect.AMONG_LABELLED.format(condition)
            values += [library.value, *of]
        named = [row[0] for row in self._database.raw(query, values)]
        if filters.doc_ids:
            named = list(set(named).intersection(filters.doc_ids))
        found = replace(filters, doc_ids=tuple(named), tags=(), metadata=()) if named else None
        if len(self._narrowed) >= FILTERS_KEPT:
            self._narrowed.clear()
        self._narrowed[key] = version, found
        return found

    def matching(self, filters: Filters, chunk_ids: Sequence[int]) -> set[int]:
        """Return which of these chunks meet the filters."""
        condition, values = filter_condition(self._dialect, filters)
        asked = (id_list(chunk_ids), *values)
        return {row[0] for row in self._database.raw(self._dialect.MATCHING + condition, asked)}

    def _count_embedded(self, build: Build) -> int:
        counted = select(libraries.c.embedded).where(
            libraries.c.library == build.library.value, libraries.c.live_build == build.number
        )
        for row in self._database.rows(counted):
            return int(row.embedded)
        return int(self._database.raw(self._dialect.COUNT_VECTORS, _keys_of(build.number))[0][0])

    def documents(self, library: Library) -> int:
        """Return how many documents are live."""
        rows = self._database.rows(
            select(libraries.c.documents).where(libraries.c.library == library.value)
        )
        return int(rows[0].documents) if rows else 0

    def live_documents(self, docs: Sequence[int]) -> list[tuple[Document, str | None]]:
        """Return the live ones of these documents in order, with source revisions."""
        with self._database.read() as sql:
            rows = rows_of(sql, _LIVE_DOCUMENTS, "docs", sorted(docs))
            return [(document_from(row[1:]), row[0]) for row in rows]

    def live_chunk_ids(self, library: Library) -> set[int]:
        live = select(chunks.c.chunk_id).join(documents, IS_LIVE)
        rows = self._database.rows(live.where(documents.c.library == library.value))
        return {row.chunk_id for row in rows}

    def docs_of_chunks(self, library: Library, after: int, upto: int) -> dict[int, int]:
        """Return the document of each live chunk in a range of ids: above one, up to another."""
        chunk_id = chunks.c.chunk_id
        live = (
            select(chunk_id, chunks.c.doc)
            .join(documents, IS_LIVE)
            .where(documents.c.library == library.value, chunk_id > after, chunk_id <= upto)
        )
        return {row.chunk_id: row.doc for row in self._database.rows(live)}

    def chunk_texts(self, chunk_ids: Sequence[int]) -> list[tuple[int, str]]:
        """Return live chunks with their texts; IndexDamaged when one cannot be read."""
        of = select(chunks.c.doc).where(chunks.c.chunk_id.in_(bindparam("ids", expanding=True)))
        with self._database.read() as sql:
            docs = {row.doc for row in rows_of(sql, of, "ids", chunk_ids)}
        wanted = set(chunk_ids)
        return [
            (chunk_id, text)
            for document in self.lexical_documents(list(docs))
            for chunk_id, _, text in document.chunks
            if chunk_id in wanted
        ]

    def chunk_ids(self, docs: Sequence[int]) -> list[int]:
        """Return the chunks of the live ones of these documents."""
        with self._database.read() as sql:
            return [row.chunk_id for row in rows_of(sql, _CHUNK_IDS, "docs", docs)]

    def stamps(self, chunk_ids: Sequence[int], *, with_text: bool) -> list[dict[str, str | int]]:
        """Return what a store of vectors keeps with each chunk; empty for one that is gone.

        The title and the text are among it `with_text`: a title costs Chroma 141 bytes a row
        (evaluation/reports/chroma_rows.md).
        """
        names = ("doc_id", "filename", "section", "chunk_index", "page", "title")
        with self._database.read() as sql:
            found = {
                chunk_id: dict(zip(names, values, strict=True))
                for chunk_id, *values in rows_of(sql, _STAMPS, "ids", chunk_ids)
            }
        texts = dict(self.chunk_texts(chunk_ids)) if with_text else {}
        kept: list[dict[str, str | int]] = []
        for chunk_id in chunk_ids:
            stamp = found.get(chunk_id, {})
            if with_text:
                stamp["text"] = texts.get(chunk_id, "")
            else:
                stamp.pop("title", None)
            kept.append({name: value for name, value in stamp.items() if value is not None})
        return kept

    def vector_ids(self, build: int, after: int = 0, upto: int | None = None) -> set[int]:
        """Return the chunk ids of a build's vectors whose documents are live, or of a range."""
        low, high = _keys_of(build)
        keys = (low + after, high if upto is None else min(high, low + upto + 1))
        return {row[0] for row in self._database.raw(self._dialect.VECTOR_IDS, keys)}

    def document_facts(self, doc: int) -> list[DocumentFacts]:
        """Return what filters ask of a document; empty when it is gone."""
        rows = self._database.rows(_FACTS.where(documents.c.doc == doc))
        return [DocumentFacts(*row) for row in rows]


def _keys_of(build: int) -> tuple[int, int]:
    return build << BUILD_SHIFT, (build + 1) << BUILD_SHIFT
