"""Read the truth: live documents, chunks, texts, counts, pages of lists.

SQL that a person waits for is written out.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, cast

from app.core.errors import Conflict, InvalidInput, NoOriginal, NotFound
from app.core.types import SAMPLE_PREFIX, Chunk, Document, Fingerprint, Library, LibraryCounts, PageSpan, Passage, TextSpan
from app.index.catalog.database import Database
from app.index.catalog.rows import CHUNK_COLUMNS, DOCUMENT_COLUMNS, document_from, id_list
from app.index.catalog.settling import Settling
from app.index.catalog.since_commit import SinceCommit
from app.index.catalog.texts import TextCache, unpack_pages
from app.index.files.originals import Originals

TEXT_CACHE_BYTES = 64 * 1024 * 1024
"""Decompressed texts: about 5,000 encyclopedia articles or 600 papers."""

MAX_PAGE = 1000
"""Most documents of one list page."""

_SIDE = len(CHUNK_COLUMNS.split(","))


class SqliteCatalog:
    """The read side of the catalog, on snapshots; thread-safe."""

    def __init__(self, database: Database, texts: TextCache, settling: Settling, originals: Originals) -> None:
        """Read from `database` through the text cache `texts`.

        `settling` names revisions that are being replaced.
        """
        self._originals = originals
        self._database = database
        self._texts = texts
        self._settling = settling
        self._counted = SinceCommit(database, self._count)

    def passages(self, library: Library, chunk_ids: Sequence[int]) -> dict[int, Passage]:
        """Return live passages by chunk id in the order asked, without missing ones.

        Missing are deleted and superseded ones.
        """
        if not chunk_ids:
            return {}
        with self._database.read_raw() as cursor:
            rows = cursor.execute(
                f"SELECT {CHUNK_COLUMNS}, c.doc, d.revision, {DOCUMENT_COLUMNS} FROM json_each(?) k"  # noqa: S608
                # CROSS JOIN keeps SQLite from starting at the library's documents.
                " CROSS JOIN chunks c ON c.chunk_id = k.value CROSS JOIN documents d ON d.doc = c.doc"
                " WHERE d.library = ? AND d.state = 'live'",
                (id_list(chunk_ids), library.value),
            ).fetchall()
            settling = self._settling.shown()  # after the read: a swap that it saw has begun settling before
            rows = [row for row in rows if row[1] == row[_SIDE + 1] or (row[_SIDE], row[1]) in settling]
            texts = self._load_texts(cursor, {(row[_SIDE], row[1]) for row in rows})
        documents: dict[int, Document] = {}
        found: dict[int, Passage] = {}
        for row in rows:
            doc = row[_SIDE]
            document = documents.get(doc)
            if document is None:
                document = documents[doc] = document_from(row[_SIDE + 2 :])
            chunk = _chunk_from(row, document, texts[doc, row[1]])
            found[chunk.chunk_id] = Passage(chunk, document)
        return {chunk_id: found[chunk_id] for chunk_id in chunk_ids if chunk_id in found}

    def _load_texts(self, cursor: sqlite3.Cursor, keys: Iterable[tuple[int, int]]) -> dict[tuple[int, int], str]:
        wanted = list(keys)
        texts = self._texts.get(wanted)
        missing = [key for key in wanted if key not in texts]
        if missing:
            rows = cursor.execute(
                "SELECT r.doc, r.revision, r.text FROM json_each(?) k"
                " CROSS JOIN revisions r ON r.doc = k.value ->> 0 AND r.revision = k.value ->> 1",
                (json.dumps(missing),),
            ).fetchall()
            for doc, revision, frame in rows:
                texts[doc, revision] = self._texts.unpack((doc, revision), frame)
        return texts

    def document(self, library: Library, doc_id: str) -> Document:
        """Return a live document.

        Raises:
            NotFound: Unknown here; the message says when the other library has it.
        """
        with self._database.read_raw() as cursor:
            return document_from(self._row(cursor, library, doc_id)[1:])

    def _row(self, cursor: sqlite3.Cursor, library: Library, doc_id: str) -> tuple[object, ...]:
        sql = f"SELECT d.doc, {DOCUMENT_COLUMNS} FROM documents d WHERE d.library = ? AND d.doc_id = ? AND d.state = 'live'"  # noqa: S608
        row = cursor.execute(sql, (library.value, doc_id)).fetchone()
        if row is not None:
            return cast("tuple[object, ...]", row)
        for other in Library:
            if other is not library and cursor.execute(sql, (other.value, doc_id)).fetchone() is not None:
                raise NotFound(f"no document {doc_id!r} in library {library.value!r}; library {other.value!r} has it")
        raise NotFound(f"no document {doc_id!r} in library {library.value!r}; list its documents first")

    def find(self, library: Library, name: str) -> Document:
        """Return the live document whose doc_id, source key, file name or title is `name`.

        Raises:
            NotFound: None has it.
            Conflict: Several have it; the message lists their ids.
        """
        with self._database.read_raw() as cursor:
            rows = cursor.execute(
                f"SELECT {DOCUMENT_COLUMNS} FROM documents d WHERE d.library = ?1 AND d.state = 'live'"  # noqa: S608
                " AND (d.doc_id = ?2 OR d.source_key = ?2 OR d.filename = ?2 OR d.title = ?2)"
                " ORDER BY d.doc_id = ?2 DESC, d.source_key = ?2 DESC LIMIT 5",
                (library.value, name),
            ).fetchall()
        found = [document_from(row) for row in rows]
        if not found:
            raise NotFound(f"no document named {name!r} in library {library.value!r}; list its documents first")
        if len(found) > 1 and name not in {found[0].doc_id, found[0].source_key}:  # both are unique, names are not
            raise Conflict(f"{name!r} names several documents: {', '.join(document.doc_id for document in found)}; use an id")
        return found[0]

    def by_source_key(self, library: Library, source_key: str) -> Document | None:
        """Return the live document under a source key."""
        with self._database.read_raw() as cursor:
            row = cursor.execute(
                f"SELECT {DOCUMENT_COLUMNS} FROM documents d WHERE d.library = ? AND d.source_key = ? AND d.state = 'live'",  # noqa: S608
                (library.value, source_key),
            ).fetchone()
        return document_from(row) if row else None

    def source_revision(self, document: Document) -> str | None:
        """Return which edition of its source a live document holds."""
        with self._database.read_raw() as cursor:
            row = cursor.execute(
                "SELECT source_revision FROM documents WHERE library = ? AND doc_id = ? AND state = 'live'",
                (document.library.value, document.doc_id),
            ).fetchone()
        return row[0] if row else None

    def documents(
        self, library: Library, query: str = "", cursor: str | None = None, limit: int = 50
    ) -> tuple[list[Document], str | None]:
        """Return a page of live documents, newest first, and the next cursor.

        Title or file name contains `query`.

        Raises:
            InvalidInput: The cursor is not one of ours, or the limit is not in 1..1000.
        """
        if not 1 <= limit <= MAX_PAGE:
            raise InvalidInput(f"limit {limit!r} must be in 1..{MAX_PAGE}")
        if cursor is not None and not (cursor.isascii() and cursor.isdecimal() and len(cursor) < 19):
            raise InvalidInput(f"cursor {cursor!r} is not one this server gave out; start again without one")
        with self._database.read_raw() as sql:
            rows = sql.execute(
                f"SELECT d.doc, {DOCUMENT_COLUMNS} FROM documents d WHERE d.library = ? AND d.state = 'live' AND d.doc < ?"  # noqa: S608
                " AND instr(d.search_key, ?) ORDER BY d.doc DESC LIMIT ?",
                (library.value, _cursor_value(cursor), query.casefold(), limit + 1),
            ).fetchall()
        page = [document_from(row[1:]) for row in rows[:limit]]
        return page, str(rows[limit - 1][0]) if len(rows) > limit else None

    def chunks(self, library: Library, doc_id: str, revision: int | None = None) -> list[Chunk]:
        """Return a revision's chunks in order; None is the live one.

        Raises:
            NotFound: No such document or revision.
        """
        with self._database.read_raw() as cursor:
            doc, *values = self._row(cursor, library, doc_id)
            document = document_from(values)
            key = (cast("int", doc), revision or document.revision)
            texts = self._load_texts(cursor, [key])
            if key not in texts:
                raise _no_revision(document, key[1])
            rows = cursor.execute(
                f"SELECT {CHUNK_COLUMNS} FROM chunks c WHERE c.doc = ? AND c.revision = ? ORDER BY c.ordinal",  # noqa: S608
                key,
            ).fetchall()
        return [_chunk_from(row, document, texts[key]) for row in rows]

    def chunks_by_id(self, library: Library, chunk_ids: Sequence[int]) -> list[Chunk]:
        """Return live chunks in the order asked, without deleted and superseded ones."""
        return [passage.chunk for passage in self.passages(library, chunk_ids).values()]

    def text(self, library: Library, doc_id: str, start: int = 0, end: int | None = None, revision: int | None = None) -> TextSpan:
        """Return exactly those characters; superseded revisions answer too.

        Raises:
            NotFound: No such document or revision.
            InvalidInput: Not `0 <= start <= end <= length`.
        """
        with self._database.read_raw() as cursor:
            doc, *values = self._row(cursor, library, doc_id)
            document = document_from(values)
            key = (cast("int", doc), revision or document.revision)
            texts = self._load_texts(cursor, [key])
        if key not in texts:
            raise _no_revision(document, key[1])
        text = texts[key]
        stop = len(text) if end is None else end
        if not 0 <= start <= stop <= len(text):
            raise InvalidInput(f"span {start}..{stop} must lie within 0..{len(text)} of document {doc_id!r}")
        return TextSpan(text[start:stop], start, stop, len(text), key[1])

    def pages(self, library: Library, doc_id: str, revision: int | None = None) -> tuple[PageSpan, ...]:
        """Return the spans of a revision's pages in its text; empty without pages.

        Raises:
            NotFound: No such document or revision.
        """
        with self._database.read_raw() as cursor:
            doc, *values = self._row(cursor, library, doc_id)
            document = document_from(values)
            key = (cast("int", doc), revision or document.revision)
            row = cursor.execute("SELECT pages FROM revisions WHERE doc = ? AND revision = ?", key).fetchone()
        if row is None:
            raise _no_revision(document, key[1])
        return unpack_pages(row[0])

    def original(self, library: Library, doc_id: str, revision: int | None = None) -> Path:
        """Return where the bytes are that a revision came from.

        Raises:
            NotFound: No such document or revision.
            NoOriginal: None were kept (bulk text), or the file is missing.
        """
        with self._database.read_raw() as cursor:
            doc, *values = self._row(cursor, library, doc_id)
            document = document_from(values)
            key = (cast("int", doc), revision or document.revision)
            row = cursor.execute("SELECT sha256, has_original FROM revisions WHERE doc = ? AND revision = ?", key).fetchone()
        if row is None:
            raise _no_revision(document, key[1])
        path = self._originals.path(row[0])
        if not row[1] or not path.exists():
            raise NoOriginal(f"document {doc_id!r} has no original bytes; its text is served by /documents/{doc_id}/text")
        return path

    def original_names(self) -> set[str]:
        """Return the SHA-256 of every original that a revision refers to."""
        with self._database.read_raw() as cursor:
            return {row[0] for row in cursor.execute("SELECT DISTINCT sha256 FROM revisions WHERE has_original = 1")}

    def counts(self, library: Library) -> LibraryCounts:
        """Return counts of live documents and chunks, kept by every write."""
        return self._counted(library)

    def _count(self, library: Library) -> LibraryCounts:
        with self._database.read_raw() as cursor:
            row = cursor.execute(
                "SELECT documents, chunks, embedded, bytes FROM libraries WHERE library = ?", (library.value,)
            ).fetchone()
            types = cursor.execute(
                "SELECT type, documents FROM type_counts WHERE library = ? AND documents > 0 ORDER BY type", (library.value,)
            ).fetchall()
            (samples,) = cursor.execute(
                "SELECT count(*) FROM documents WHERE library = ? AND doc_id BETWEEN ? AND ? AND state = 'live'",
                (library.value, SAMPLE_PREFIX, f"{SAMPLE_PREFIX}\U0010ffff"),
            ).fetchone()
        documents, chunks, embedded, size = row or (0, 0, 0, 0)
        return LibraryCounts(documents, chunks, embedded, size, dict(types), samples)

    def fingerprint(self, library: Library) -> Fingerprint | None:
        """Return what the library's live vectors were made with; None before the first."""
        with self._database.read_raw() as cursor:
            row = cursor.execute(
                "SELECT b.fingerprint FROM libraries l JOIN builds b ON b.build = l.live_build WHERE l.library = ?",
                (library.value,),
            ).fetchone()
        return Fingerprint(**json.loads(row[0])) if row else None


def _cursor_value(cursor: str | None) -> int:
    return 1 << 62 if cursor is None else int(cursor)


def _chunk_from(row: Sequence[Any], document: Document, text: str) -> Chunk:
    chunk_id, revision, ordinal, start, end, section, page = row[:7]
    return Chunk(chunk_id, document.doc_id, document.library, revision, ordinal, start, end, section, page, text[start:end])


def _no_revision(document: Document, revision: int) -> NotFound:
    return NotFound(f"document {document.doc_id!r} has no revision {revision!r}; the live one is {document.revision}")
