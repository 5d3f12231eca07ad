"""Read the catalog for the projections."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from app.core.types import Document, Filters, FloatArray, Library
from app.index.catalog.database import Database
from app.index.catalog.facts import DocumentFacts, LexicalDocument, RowFacts
from app.index.catalog.rows import (
    DOCUMENT_COLUMNS,
    author_key,
    document_from,
    id_list,
    pack_strings,
    strings_from,
    unpack_vectors,
    usable,
    vector_key,
)
from app.index.catalog.schema import BUILD_SHIFT
from app.index.catalog.texts import TextCodec


@dataclass(frozen=True, slots=True)
class Build:
    """A build of a library: whose vectors it holds, and of what dimension."""

    number: int
    library: Library
    fingerprint8: str
    dimension: int
    embedding_model: str


@dataclass(frozen=True, slots=True)
class VectorRows:
    """Stored vectors of live chunks with what filters ask of them, in chunk order."""

    chunk_ids: list[int]
    rows: FloatArray
    """float32 `[n, dim]`, norm 1."""
    facts: list[RowFacts]
    documents: list[DocumentFacts]
    doc_ids: list[str]


class CatalogLoader:
    """Reads in batches; thread-safe."""

    def __init__(self, database: Database) -> None:
        """Read from `database`."""
        self._database = database
        self.on_unusable: Callable[[Sequence[int]], None] | None = None
        """Told the keys of stored vectors that are read as missing, because they are of a wrong size or not finite."""

    def live_build(self, library: Library) -> Build | None:
        """Return the build that serves, or None before the first vector."""
        with self._database.read_raw() as cursor:
            row = cursor.execute(
                "SELECT b.build, b.fingerprint8, b.fingerprint ->> 'dimension', b.fingerprint ->> 'embedding_model'"
                " FROM libraries l JOIN builds b ON b.build = l.live_build WHERE l.library = ?",
                (library.value,),
            ).fetchone()
        return Build(row[0], library, *row[1:]) if row else None

    def build(self, number: int) -> Build | None:
        """Return a build by its number; None when it was removed."""
        with self._database.read_raw() as cursor:
            row = cursor.execute(
                "SELECT build, library, fingerprint8, fingerprint ->> 'dimension', fingerprint ->> 'embedding_model'"
                " FROM builds WHERE build = ?",
                (number,),
            ).fetchone()
        return Build(row[0], Library(row[1]), *row[2:]) if row else None

    def lexical_documents(self, docs: Sequence[int]) -> list[LexicalDocument]:
        """Return the live ones of these documents as the lexical index wants them."""
        codec = TextCodec()
        found: list[LexicalDocument] = []
        with self._database.read_raw() as cursor:
            rows = cursor.execute(
                "SELECT d.doc, d.revision, d.doc_id, d.title, d.authors, d.year, d.type, r.text FROM documents d"
                " JOIN revisions r ON r.doc = d.doc AND r.revision = d.revision"
                " WHERE d.state = 'live' AND d.doc IN (SELECT value FROM json_each(?)) ORDER BY d.doc",
                (id_list(docs),),
            ).fetchall()
            for doc, revision, doc_id, title, authors, year, kind, frame in rows:
                text = codec.unpack(frame)
                spans = cursor.execute(
                    'SELECT chunk_id, section, start, "end" FROM chunks WHERE doc = ? AND revision = ? ORDER BY ordinal',
                    (doc, revision),
                ).fetchall()
                chunks = [(chunk_id, section, text[start:end]) for chunk_id, section, start, end in spans]
                found.append(LexicalDocument(doc, doc_id, title, strings_from(authors), year, kind, chunks))
        return found

    def live_docs(self, library: Library, after: int, limit: int) -> list[int]:
        """Return keys of live documents in order, after a key."""
        with self._database.read_raw() as cursor:
            rows = cursor.execute(
                "SELECT doc FROM documents WHERE library = ? AND doc > ? AND state = 'live' ORDER BY doc LIMIT ?",
                (library.value, after, limit),
            ).fetchall()
        return [row[0] for row in rows]

    def vectors(self, build: Build, chunk_ids: Sequence[int]) -> VectorRows:
        """Return the vectors of those chunks that are live and have one."""
        condition = f"v.key IN (SELECT {build.number << BUILD_SHIFT} | value FROM json_each(?))"  # noqa: S608
        return self._usable(build, self._rows(condition, (id_list(chunk_ids),)))

    def vectors_after(self, build: Build, after: int, limit: int) -> VectorRows:
        """Return the next vectors of a build in chunk order; empty at the end."""
        high = (build.number + 1) << BUILD_SHIFT
        while True:
            rows = self._rows("v.key > ? AND v.key < ?", (build.number << BUILD_SHIFT | after, high), limit)
            found = self._usable(build, rows)
            if found.chunk_ids or not rows:
                return found
            after = rows[-1][0]

    def _rows(self, condition: str, values: tuple[object, ...], limit: int = -1) -> list[tuple[Any, ...]]:
        with self._database.read_raw() as cursor:
            return cursor.execute(
                "SELECT c.chunk_id, v.vector, c.doc, c.section, d.doc_id, d.type, d.year, d.author_keys FROM vectors v"  # noqa: S608
                f" CROSS JOIN chunks c ON c.chunk_id = v.key & {(1 << BUILD_SHIFT) - 1}"
                " CROSS JOIN documents d ON d.doc = c.doc AND d.revision = c.revision AND d.state = 'live'"
                f" WHERE {condition} ORDER BY v.key LIMIT ?",
                (*values, limit),
            ).fetchall()

    def _usable(self, build: Build, rows: list[tuple[Any, ...]]) -> VectorRows:
        """Return rows with a usable vector; report the others to `on_unusable`."""
        fit = usable([row[1] for row in rows], build.dimension)
        bad = [vector_key(build.number, row[0]) for row, good in zip(rows, fit, strict=True) if not good]
        if bad:
            rows = [row for row, good in zip(rows, fit, strict=True) if good]
            if self.on_unusable is not None:
                self.on_unusable(bad)
        documents = {row[2]: row for row in rows}
        return VectorRows(
            [row[0] for row in rows],
            unpack_vectors([row[1] for row in rows], build.dimension),
            [RowFacts(row[2], row[3]) for row in rows],
            [facts_from(doc, *row[4:]) for doc, row in documents.items()],
            [row[4] for row in rows],
        )

    def sample(self, build: Build, n: int) -> list[int]:
        """Return up to n chunks with a vector, spread evenly, the last included."""
        low, high = build.number << BUILD_SHIFT, (build.number + 1) << BUILD_SHIFT
        chosen: set[int] = set()
        with self._database.read_raw() as cursor:
            first, last = cursor.execute("SELECT min(key), max(key) FROM vectors WHERE key > ? AND key < ?", (low, high)).fetchone()
            for i in range(n if first is not None else 0):
                at = first + (last - first) * i // max(1, n - 1)
                row = cursor.execute("SELECT min(key) FROM vectors WHERE key >= ? AND key < ?", (at, high)).fetchone()
                if row[0] is not None:  # else it was deleted since
                    chosen.add(row[0] - low)
        return sorted(chosen)

    def filtered_vectors(self, build: Build, filters: Filters, limit: int) -> VectorRows:
        """Return up to `limit` vectors of a build whose chunk meets the filters."""
        condition, values = filter_condition(filters)
        low, high = build.number << BUILD_SHIFT, (build.number + 1) << BUILD_SHIFT
        return self._usable(build, self._rows(f"v.key > ? AND v.key < ? AND {condition}", (low, high, *values), limit))

    def matching(self, filters: Filters, chunk_ids: Sequence[int]) -> set[int]:
        """Return which of these chunks meet the filters."""
        condition, values = filter_condition(filters)
        with self._database.read_raw() as cursor:
            rows = cursor.execute(
                "SELECT c.chunk_id FROM json_each(?) k CROSS JOIN chunks c ON c.chunk_id = k.value"  # noqa: S608
                f" CROSS JOIN documents d ON d.doc = c.doc AND d.revision = c.revision AND d.state = 'live' WHERE {condition}",
                (id_list(chunk_ids), *values),
            ).fetchall()
        return {row[0] for row in rows}

    def embedded(self, build: Build) -> int:
        """Return how many live chunks have a vector in a build.

        From the counter for the live build, else from the rows.
        """
        with self._database.read_raw() as cursor:
            row = cursor.execute(
                "SELECT embedded FROM libraries WHERE library = ? AND live_build = ?", (build.library.value, build.number)
            ).fetchone()
            if row is None:
                row = cursor.execute(
                    f"SELECT count(*) FROM vectors v CROSS JOIN chunks c ON c.chunk_id = v.key & {(1 << BUILD_SHIFT) - 1}"  # noqa: S608
                    " CROSS JOIN documents d ON d.doc = c.doc AND d.revision = c.revision AND d.state = 'live'"
                    " WHERE v.key > ? AND v.key < ?",
                    (build.number << BUILD_SHIFT, (build.number + 1) << BUILD_SHIFT),
                ).fetchone()
        return int(row[0])

    def documents(self, library: Library) -> int:
        """Return how many documents are live."""
        with self._database.read_raw() as cursor:
            row = cursor.execute("SELECT documents FROM libraries WHERE library = ?", (library.value,)).fetchone()
        return int(row[0]) if row else 0

    def live_documents(self, docs: Sequence[int]) -> list[tuple[Document, str | None]]:
        """Return the live ones of these documents in order, with source revisions."""
        with self._database.read_raw() as cursor:
            rows = cursor.execute(
                f"SELECT d.source_revision, {DOCUMENT_COLUMNS} FROM documents d WHERE d.state = 'live'"  # noqa: S608
                " AND d.doc IN (SELECT value FROM json_each(?)) ORDER BY d.doc",
                (id_list(docs),),
            ).fetchall()
        return [(document_from(row[1:]), row[0]) for row in rows]

    def live_chunk_ids(self, library: Library) -> set[int]:
        """Return the ids of all live chunks."""
        with self._database.read_raw() as cursor:
            rows = cursor.execute(
                "SELECT c.chunk_id FROM documents d JOIN chunks c ON c.doc = d.doc AND c.revision = d.revision"
                " WHERE d.library = ? AND d.state = 'live'",
                (library.value,),
            )
            return {row[0] for row in rows}

    def chunk_texts(self, chunk_ids: Sequence[int]) -> list[tuple[int, str]]:
        """Return live chunks with their texts; IndexDamaged when one cannot be read."""
        with self._database.read_raw() as cursor:
            rows = cursor.execute(
                "SELECT DISTINCT c.doc FROM json_each(?) k CROSS JOIN chunks c ON c.chunk_id = k.value", (id_list(chunk_ids),)
            ).fetchall()
        wanted = set(chunk_ids)
        documents = self.lexical_documents([row[0] for row in rows])
        return [(chunk_id, text) for document in documents for chunk_id, _, text in document.chunks if chunk_id in wanted]

    def vector_ids(self, build: int) -> set[int]:
        """Return the chunk ids of a build's vectors whose documents are live."""
        with self._database.read_raw() as cursor:
            rows = cursor.execute(
                f"SELECT c.chunk_id FROM vectors v CROSS JOIN chunks c ON c.chunk_id = v.key & {(1 << BUILD_SHIFT) - 1}"  # noqa: S608
                " CROSS JOIN documents d ON d.doc = c.doc AND d.revision = c.revision AND d.state = 'live'"
                " WHERE v.key > ? AND v.key < ?",
                (build << BUILD_SHIFT, (build + 1) << BUILD_SHIFT),
            )
            return {row[0] for row in rows}

    def row_facts(self, library: Library, chunk_ids: Sequence[int]) -> tuple[list[DocumentFacts], list[RowFacts]]:
        """Return filter values of embedded documents and of these chunks.

        Deleted chunks have doc -1.
        """
        with self._database.read_raw() as cursor:
            documents = cursor.execute(
                "SELECT doc, doc_id, type, year, author_keys FROM documents WHERE library = ? AND embedded > 0", (library.value,)
            ).fetchall()
            rows = cursor.execute(
                "SELECT c.chunk_id, c.doc, c.section FROM documents d JOIN chunks c ON c.doc = d.doc AND c.revision = d.revision"
                " WHERE d.library = ? AND d.embedded > 0",
                (library.value,),
            ).fetchall()
        by_id = {chunk_id: RowFacts(doc, section) for chunk_id, doc, section in rows}
        gone = RowFacts(-1, "")
        return [facts_from(*row) for row in documents], [by_id.get(chunk_id, gone) for chunk_id in chunk_ids]

    def document_facts(self, doc: int) -> list[DocumentFacts]:
        """Return what filters ask of a document; empty when it is gone."""
        with self._database.read_raw() as cursor:
            rows = cursor.execute("SELECT doc, doc_id, type, year, author_keys FROM documents WHERE doc = ?", (doc,)).fetchall()
        return [facts_from(*row) for row in rows]


def facts_from(doc: int, doc_id: str, kind: str, year: int | None, author_keys: str) -> DocumentFacts:
    """Return a document's facts from its columns."""
    return DocumentFacts(doc, doc_id, kind, year, tuple(author_keys.split("\n")) if author_keys else ())


def filter_condition(filters: Filters) -> tuple[str, tuple[object, ...]]:
    """Return filters as an SQL condition on chunk (c) and document (d), with values."""
    parts: list[str] = ["1"]
    values: list[object] = []
    for column, wanted in (("c.section", filters.sections), ("d.doc_id", filters.doc_ids), ("d.type", filters.types)):
        if wanted:
            parts.append(f"{column} IN (SELECT value FROM json_each(?))")  # noqa: S608
            values.append(pack_strings(wanted))
    if filters.year_from is not None:
        parts.append("d.year >= ?")
        values.append(filters.year_from)
    if filters.year_to is not None:
        parts.append("d.year <= ?")
        values.append(filters.year_to)
    if name := author_key(filters.author or ""):
        parts.append("instr(d.author_keys, ?)")
        values.append(name)
    return " AND ".join(parts), tuple(values)
