"""Read the truth: live documents, chunks, texts, counts, pages of lists."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

from sqlalchemy import (
    BindParameter,
    ColumnElement,
    Connection,
    Row,
    Select,
    bindparam,
    func,
    or_,
    select,
)

from app.core.errors import Conflict, InOtherLibrary, InvalidInput, NoOriginal, NotFound
from app.core.labels import fold
from app.core.types import (
    SAMPLE_PREFIX,
    Chunk,
    Correction,
    Document,
    Fingerprint,
    Heading,
    Library,
    LibraryCounts,
    PageSpan,
    Passage,
    TextSpan,
)
from app.storage.catalog.changes import ChangeLog
from app.storage.catalog.database import Cursor, Database, SinceCommit, id_list
from app.storage.catalog.rows import CHUNK_COLUMNS, DOCUMENTS, document_from
from app.storage.catalog.schema import (
    LAST_REVISION,
    builds,
    changes,
    chunks,
    documents,
    labels,
    libraries,
    revisions,
    type_counts,
)
from app.storage.catalog.statements import TAG_KEY
from app.storage.catalog.texts import TextCache, unpack_corrections, unpack_outline, unpack_pages
from app.storage.catalog.vectors import fingerprint_from
from app.storage.files.originals import Originals

# Select live documents and their revisions.

_BY_ID = select(documents.c.doc, *DOCUMENTS.selected_columns).where(
    documents.c.library == bindparam("of"),
    documents.c.doc_id == bindparam("wanted"),
    documents.c.state == "live",
)


def live(library: Library, *columns: ColumnElement[Any]) -> Select[Any]:
    """Return a query of live documents, of their columns or of given ones."""
    query = DOCUMENTS.with_only_columns(*columns) if columns else DOCUMENTS
    return query.where(documents.c.library == library.value, documents.c.state == "live")


def live_row(sql: Connection, library: Library, doc_id: str) -> tuple[int, Document]:
    """Return a live document with its key."""
    missing = f"no document {doc_id!r} in library {library.value!r}"
    unknown = f"{missing}; list its documents first"
    for place in (library, *(other for other in Library if other is not library)):
        row = sql.execute(_BY_ID, {"of": place.value, "wanted": doc_id}).first()
        if row is not None and place is library:
            return row[0], document_from(row[1:])
        if row is not None:
            raise InOtherLibrary(unknown, f"{missing}; library {place.value!r} has it")
    raise NotFound(unknown)


def of_revision(
    sql: Connection, document: Document, key: tuple[int, int], *columns: ColumnElement[Any]
) -> Row[*tuple[Any, ...]]:
    """Return columns of a revision, or raise NotFound."""
    row = sql.execute(
        select(*columns).where(revisions.c.doc == key[0], revisions.c.revision == key[1])
    ).first()
    if row is None:
        raise NotFound(
            f"document {document.doc_id!r} has no revision {key[1]!r}; the live one is"
            f" {document.revision}"
        )
    return row


# Count what a library holds, from counters that every write keeps.

_COUNTERS = (libraries.c.documents, libraries.c.chunks, libraries.c.embedded, libraries.c.bytes)


def count(database: Database, library: Library) -> LibraryCounts:
    """Return counts of live documents and chunks, kept by every write."""
    of = libraries.c.library == library.value
    kinds = (type_counts.c.library == library.value) & (type_counts.c.documents > 0)
    types = select(type_counts.c.type, type_counts.c.documents).where(kinds)
    types = types.order_by(type_counts.c.type)
    samples = live(library, func.count()).where(
        documents.c.doc_id >= SAMPLE_PREFIX, documents.c.doc_id <= f"{SAMPLE_PREFIX}\U0010ffff"
    )
    with database.read() as sql:
        row = sql.execute(select(*_COUNTERS).where(of)).first()
        by_type = dict(sql.execute(types).all())
        n_samples = sql.execute(samples).scalar_one()
    held, chunk_count, embedded, size = row or (0, 0, 0, 0)
    return LibraryCounts(held, chunk_count, embedded, size, by_type, n_samples)


TEXT_CACHE_BYTES = 64 * 1024 * 1024
"""Decompressed texts: about 5,000 encyclopedia articles or 600 papers."""

MAX_PAGE = 1000
"""Most documents of one list page."""

LINGER_S = 2.0
"""A search that began before a swap joins with the catalog well within this time; clocks of servers
differ by less."""

_NAMED: BindParameter[int] = bindparam("docs", expanding=True)
_LIVE_SINCE = (
    select(documents.c.doc, revisions.c.created_at)
    .join(revisions, LAST_REVISION)
    .where(documents.c.doc.in_(_NAMED))
)
_WRITTEN = select(changes.c.library, changes.c.doc, changes.c.seq).where(
    changes.c.kind == "write", changes.c.doc.in_(_NAMED)
)

_COLUMNS = [name.strip().removeprefix("c.") for name in CHUNK_COLUMNS.split(",")]
_SIDE = len(_COLUMNS)

_CHUNKS = (
    select(*(chunks.c[name] for name in _COLUMNS))
    .where(chunks.c.doc == bindparam("of_doc"), chunks.c.revision == bindparam("of_revision"))
    .order_by(chunks.c.ordinal)
)

_OUTLINES = (
    select(documents.c.doc_id, revisions.c.revision, revisions.c.doc, revisions.c.outline)
    .join(revisions, revisions.c.doc == documents.c.doc)
    .where(
        documents.c.library == bindparam("of"),
        documents.c.doc_id.in_(bindparam("ids", expanding=True)),
        documents.c.state == "live",
        revisions.c.outline.is_not(None),
    )
)


def read_key(library: Library) -> str:
    """Return under which key of `meta` the edition stands that has read a library's kept bytes."""
    return f"read_as/{library.value}"


class Catalog:
    """The truth, read on snapshots: live documents, unless a revision is named; thread-safe."""

    def __init__(self, database: Database, log: ChangeLog, originals: Originals) -> None:
        self._originals = originals
        self._database = database
        self.texts = TextCache(TEXT_CACHE_BYTES)
        self._log = log
        self._counted = SinceCommit(database, partial(count, database))

    def snapshot(self) -> AbstractContextManager[None]:
        """Let this thread's reads in the block share one transaction, and counts one moment.

        Each read sees what was written before it. Nothing slow belongs into the block.
        """
        return self._database.snapshot()

    def passages(self, library: Library, chunk_ids: Sequence[int]) -> dict[int, Passage]:
        """Return passages by chunk id in the order asked, without deleted and superseded ones."""
        if not chunk_ids:
            return {}
        with self._database.read_raw() as cursor:
            rows = cursor.execute(
                self._database.dialect.PASSAGES, (id_list(chunk_ids), library.value)
            ).fetchall()
            replaced = [(row[_SIDE], row[1]) for row in rows if row[1] != row[_SIDE + 1]]
            shown = self._shown({doc for doc, _ in replaced}) if replaced else ()
            rows = [row for row in rows if row[1] == row[_SIDE + 1] or row[_SIDE] in shown]
            texts = self._load_texts(cursor, {(row[_SIDE], row[1]) for row in rows})
            rows = [row for row in rows if (row[_SIDE], row[1]) in texts]  # purged since
        by_key = {row[_SIDE]: row for row in rows}
        held = {doc: document_from(row[_SIDE + 2 :]) for doc, row in by_key.items()}
        found: dict[int, Passage] = {}
        for row in rows:
            document = held[row[_SIDE]]
            chunk = _chunk_from(row, document, texts[row[_SIDE], row[1]])
            found[chunk.chunk_id] = Passage(chunk, document)
        return {chunk_id: found[chunk_id] for chunk_id in chunk_ids if chunk_id in found}

    def _shown(self, docs: Collection[int]) -> set[int]:
        """Return of which documents a superseded revision may be shown now.

        The catalog swaps a document's live revision a few milliseconds before the commit of the
        words makes the new chunks findable. A search in between finds the old chunks, and one that
        began earlier still holds their ids. Both get the old revision: it is shown until the words
        of its successor are committed, and for two seconds after the swap.
        """
        since = datetime.now(UTC) - timedelta(seconds=LINGER_S)
        with self._database.read() as sql:
            written = sql.execute(_WRITTEN, {"docs": sorted(docs)}).all()
            live = sql.execute(_LIVE_SINCE, {"docs": sorted(docs)}).all()
        return {
            row.doc for row in written if row.seq > self._log.mark(Library(row.library), "lexical")
        } | {row.doc for row in live if datetime.fromisoformat(row.created_at) > since}

    def _load_texts(
        self, cursor: Cursor, keys: Iterable[tuple[int, int]]
    ) -> dict[tuple[int, int], str]:
        wanted = list(keys)
        texts = self.texts.get(wanted)
        missing = [key for key in wanted if key not in texts]
        if missing:
            rows = cursor.execute(self._database.dialect.TEXTS, (json.dumps(missing),)).fetchall()
            for doc, revision, frame in rows:
                texts[doc, revision] = self.texts.unpack((doc, revision), frame)
        return texts

    def document(self, library: Library, doc_id: str) -> Document:
        """Return a live document.

        Raises:
            NotFound: Unknown in this library.
        """
        with self._database.read() as sql:
            return live_row(sql, library, doc_id)[1]

    def find(self, library: Library, name: str) -> Document:
        """Return the live document whose doc_id, source key, file name or title is `name`.

        Raises:
            NotFound: None has it.
            Conflict: Several have it; the message lists their ids.
        """
        key, doc_id = documents.c.source_key, documents.c.doc_id
        called = doc_id, key, documents.c.filename, documents.c.title
        named = live(library).where(or_(*(column == name for column in called)))
        first = named.order_by((doc_id == name).desc(), (key == name).desc()).limit(5)
        found = [document_from(row) for row in self._database.rows(first)]
        if not found:
            raise NotFound(
                f"no document named {name!r} in library {library.value!r}; list its documents first"
            )
        unique = {found[0].doc_id, found[0].source_key}  # names are not
        if len(found) > 1 and name not in unique:
            ids = ", ".join(document.doc_id for document in found)
            raise Conflict(f"{name!r} names several documents: {ids}; use an id")
        return found[0]

    def by_source_key(self, library: Library, source_key: str) -> Document | None:
        rows = self._database.rows(live(library).where(documents.c.source_key == source_key))
        return document_from(rows[0]) if rows else None

    def source_revision(self, document: Document) -> str | None:
        held = live(document.library, documents.c.source_revision).where(
            documents.c.doc_id == document.doc_id
        )
        rows = self._database.rows(held)
        return rows[0][0] if rows else None

    def read_as(self, library: Library) -> str | None:
        """Return the edition of the parsers that has read all kept bytes of a library."""
        return self._database.meta(read_key(library))

    def read_before(
        self, library: Library, edition: str, limit: int, after: str = ""
    ) -> list[Document]:
        """Return documents with kept bytes that another edition of the parsers has read.

        In the order of their ids, those behind `after`.
        """
        held = live(library).where(
            documents.c.has_original != 0,
            documents.c.source_revision.is_distinct_from(edition),
            documents.c.doc_id > after,
        )
        rows = self._database.rows(held.order_by(documents.c.doc_id).limit(limit))
        return [document_from(row) for row in rows]

    def documents(
        self,
        library: Library,
        query: str = "",
        cursor: str | None = None,
        limit: int = 50,
        tags: Sequence[str] = (),
    ) -> tuple[list[Document], str | None]:
        """Return documents with `query` in title or file name, newest first, and the next cursor.

        Where tags are given, of those that have one of them.

        Raises:
            InvalidInput: The cursor is not one of ours, or the limit is not in 1..1000.
        """
        if not 1 <= limit <= MAX_PAGE:
            raise InvalidInput(f"limit {limit!r} must be in 1..{MAX_PAGE}")
        if cursor is not None and not (
            cursor.isascii() and cursor.isdecimal() and len(cursor) < 19
        ):
            raise InvalidInput(
                f"cursor {cursor!r} is not one this server gave out; start again without one"
            )
        page = live(library, documents.c.doc, *DOCUMENTS.selected_columns)
        if cursor is not None:
            page = page.where(documents.c.doc < int(cursor))
        if query:
            page = page.where(documents.c.search_key.contains(query.casefold(), autoescape=True))
        if tags:
            wanted = labels.c.value.in_(sorted(map(fold, tags)))
            has = select(labels.c.doc).where(labels.c.key == TAG_KEY, wanted)
            page = page.where(documents.c.doc.in_(has))
        rows = self._database.rows(page.order_by(documents.c.doc.desc()).limit(limit + 1))
        found = [document_from(row[1:]) for row in rows[:limit]]
        return found, str(rows[limit - 1][0]) if len(rows) > limit else None

    def labelled(self, library: Library, key: str) -> list[Document]:
        """Return the live documents that have own metadata under a key."""
        has = select(labels.c.doc).where(labels.c.key == key, labels.c.library == library.value)
        page = live(library, *DOCUMENTS.selected_columns).where(documents.c.doc.in_(has))
        return [document_from(row) for row in self._database.rows(page)]

    def every_document(self, library: Library) -> Iterator[Document]:
        """Yield the live documents of a library, newest first, a page at a time."""
        cursor: str | None = None
        while True:
            page, cursor = self.documents(library, cursor=cursor, limit=MAX_PAGE)
            yield from page
            if cursor is None:
                return

    def chunks(self, library: Library, doc_id: str, revision: int | None = None) -> list[Chunk]:
        """Return a revision's chunks in order; None is the live one."""
        with self._database.read() as sql:
            doc, document = live_row(sql, library, doc_id)
            key = (doc, revision or document.revision)
            text = self._text_of(sql, document, key)
            rows = sql.execute(_CHUNKS, {"of_doc": doc, "of_revision": key[1]}).all()
        return [_chunk_from(row, document, text) for row in rows]

    def _text_of(self, sql: Connection, document: Document, key: tuple[int, int]) -> str:
        held = self.texts.get([key]).get(key)
        if held is None:
            frame = of_revision(sql, document, key, revisions.c.text)[0]
            held = self.texts.unpack(key, frame)
        return held

    def chunks_by_id(self, library: Library, chunk_ids: Sequence[int]) -> list[Chunk]:
        """Return live chunks in the order asked, without deleted and superseded ones."""
        return [passage.chunk for passage in self.passages(library, chunk_ids).values()]

    def text(
        self,
        library: Library,
        doc_id: str,
        start: int = 0,
        end: int | None = None,
        revision: int | None = None,
    ) -> TextSpan:
        """Return exactly those characters; superseded revisions answer too.

        Raises:
            NotFound: No such document or revision.
            InvalidInput: Not `0 <= start <= end <= length`.
        """
        with self._database.read() as sql:
            doc, document = live_row(sql, library, doc_id)
            key = (doc, revision or document.revision)
            text = self._text_of(sql, document, key)
        stop = len(text) if end is None else end
        if not 0 <= start <= stop <= len(text):
            raise InvalidInput(
                f"span {start}..{stop} must lie within 0..{len(text)} of document {doc_id!r}"
            )
        return TextSpan(text[start:stop], start, stop, len(text), key[1])

    def pages(
        self, library: Library, doc_id: str, revision: int | None = None
    ) -> tuple[PageSpan, ...]:
        """Return the spans of a revision's pages in its text; empty without pages.

        Raises:
            NotFound: No such document or revision.
        """
        with self._database.read() as sql:
            doc, document = live_row(sql, library, doc_id)
            key = (doc, revision or document.revision)
            return unpack_pages(of_revision(sql, document, key, revisions.c.pages)[0])

    def outline(
        self, library: Library, doc_id: str, revision: int | None = None
    ) -> tuple[Heading, ...]:
        """Return the headings of a revision in order; empty where it was stored without any.

        Raises:
            NotFound: No such document or revision.
        """
        with self._database.read() as sql:
            doc, document = live_row(sql, library, doc_id)
            key = (doc, revision or document.revision)
            packed = of_revision(sql, document, key, revisions.c.outline)[0]
            return unpack_outline(packed, self._text_of(sql, document, key) if packed else "")

    def corrections(
        self, library: Library, doc_id: str, revision: int | None = None
    ) -> tuple[Correction, ...]:
        """Return the corrections of a revision in the order of its text.

        Raises:
            NotFound: No such document or revision.
        """
        with self._database.read() as sql:
            doc, document = live_row(sql, library, doc_id)
            key = (doc, revision or document.revision)
            return unpack_corrections(of_revision(sql, document, key, revisions.c.corrections)[0])

    def outlines(
        self, library: Library, named: Collection[tuple[str, int]]
    ) -> dict[tuple[str, int], tuple[Heading, ...]]:
        """Return the headings of revisions by `(doc_id, revision)`; without any it is absent."""
        asked = {"of": library.value, "ids": [doc_id for doc_id, _ in named]}
        with self._database.snapshot():
            rows = self._database.rows(_OUTLINES, asked)
            wanted = {
                (row.doc, row.revision): row for row in rows if (row.doc_id, row.revision) in named
            }
            with self._database.read_raw() as cursor:
                texts = self._load_texts(cursor, wanted)
        return {
            (wanted[key].doc_id, key[1]): unpack_outline(wanted[key].outline, text)
            for key, text in texts.items()
        }

    def original(self, library: Library, doc_id: str, revision: int | None = None) -> Path:
        """Return where the bytes are that a revision came from.

        Raises:
            NotFound: No such document or revision.
            NoOriginal: None were kept (bulk text), or the file is missing.
        """
        with self._database.read() as sql:
            doc, document = live_row(sql, library, doc_id)
            key = (doc, revision or document.revision)
            columns = revisions.c.sha256, revisions.c.has_original
            sha256, kept = of_revision(sql, document, key, *columns)
        path = self._originals.path(sha256)
        if not kept or not path.exists():
            raise NoOriginal(
                f"document {doc_id!r} has no original bytes; its text is served by"
                f" /documents/{doc_id}/text"
            )
        return path

    def counts(self, library: Library) -> LibraryCounts:
        return self._counted(library)

    def fingerprint(self, library: Library) -> Fingerprint | None:
        live = libraries.c.live_build == builds.c.build
        serving = select(builds.c.fingerprint).join(libraries, live)
        rows = self._database.rows(serving.where(libraries.c.library == library.value))
        return fingerprint_from(rows[0][0]) if rows else None


def _chunk_from(row: Sequence[Any], document: Document, text: str) -> Chunk:
    chunk_id, revision, ordinal, start, end, section, page = row[:_SIDE]
    of = chunk_id, document.doc_id, document.library, revision, ordinal
    return Chunk(*of, start, end, section, page, text[start:end])
