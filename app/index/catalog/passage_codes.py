"""Codes for late interaction, kept per chunk in the catalog."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from app.core.errors import InvalidInput
from app.core.types import CODES_VERSION, Chunk, Library, PassageCode
from app.index.catalog.database import Database
from app.index.catalog.documents import SqliteCatalog
from app.index.catalog.rows import id_list

_VERSION_KEY = "codes_version"
_LIVE = "chunks c ON c.doc = d.doc AND c.revision = d.revision"


class PassageCodeStore:
    """The PassageCodes port on the catalog; thread-safe."""

    def __init__(self, database: Database, catalog: SqliteCatalog) -> None:
        """Keep codes in `database`, whose chunks `catalog` reads."""
        self._database = database
        self._catalog = catalog

    def codes(self, chunk_ids: Sequence[int]) -> dict[int, PassageCode]:
        """Return the codes of chunks; those without one are absent."""
        with self._database.read_raw() as cursor:
            rows = cursor.execute(
                "SELECT p.chunk_id, p.sentences, p.tokens FROM json_each(?) k CROSS JOIN passage_codes p ON p.chunk_id = k.value",
                (id_list(chunk_ids),),
            ).fetchall()
        return {chunk_id: PassageCode(sentences, tokens) for chunk_id, sentences, tokens in rows}

    def write_codes(self, codes: Mapping[int, PassageCode]) -> None:
        """Store codes of live chunks durably; skip deleted and superseded chunks.

        Raises:
            InvalidInput: A code has not whole rows.
            DiskFull: No space.
        """
        if wrong := [chunk_id for chunk_id, code in codes.items() if not code.fits()]:
            raise InvalidInput(
                f"the code of chunk {wrong[0]} has {len(codes[wrong[0]].sentences)} bytes of sentences and"
                f" {len(codes[wrong[0]].tokens)} of tokens; expected rows of 384 and 16"
            )
        if not codes:
            return
        with self._database.write("codes") as sql:
            sql.exec_driver_sql(
                f"INSERT OR REPLACE INTO passage_codes (chunk_id, sentences, tokens) SELECT ?, ?, ? FROM documents d JOIN {_LIVE}"  # noqa: S608
                " WHERE c.chunk_id = ? AND d.doc = (SELECT doc FROM chunks WHERE chunk_id = ?) AND d.state = 'live'",
                [(key, code.sentences, code.tokens, key, key) for key, code in codes.items()],
            )

    def pending_codes(self, library: Library, limit: int, after: int = 0, doc_ids: Sequence[str] | None = None) -> list[Chunk]:
        """Return up to `limit` live chunks without a code, with ids over `after`.

        Args:
            library: Whose chunks.
            limit: At most this many.
            after: A chunk id.
            doc_ids: Only of these documents; None takes all.
        """
        named = "" if doc_ids is None else " AND d.doc_id IN (SELECT value FROM json_each(?))"
        values = [library.value, after, *([] if doc_ids is None else [json.dumps(list(doc_ids))]), limit]
        with self._database.read_raw() as cursor:
            rows = cursor.execute(
                f"SELECT c.chunk_id FROM documents d JOIN {_LIVE} LEFT JOIN passage_codes p ON p.chunk_id = c.chunk_id"  # noqa: S608
                f" WHERE d.library = ? AND d.state = 'live' AND p.chunk_id IS NULL AND c.chunk_id > ?{named}"
                " ORDER BY c.chunk_id LIMIT ?",
                values,
            ).fetchall()
        return self._catalog.chunks_by_id(library, [row[0] for row in rows])

    def clear_codes(self, library: Library) -> None:
        """Remove the codes of a library, to make them again."""
        with self._database.write("codes") as sql:
            sql.exec_driver_sql(
                "DELETE FROM passage_codes WHERE chunk_id IN"
                " (SELECT c.chunk_id FROM documents d JOIN chunks c ON c.doc = d.doc WHERE d.library = ?)",
                (library.value,),
            )

    def drop_others(self) -> None:
        """Remove codes of another version, which match no question of this one."""
        with self._database.read_raw() as cursor:
            held = cursor.execute("SELECT value FROM meta WHERE key = ?", (_VERSION_KEY,)).fetchone()
        if held is None or held[0] != CODES_VERSION:
            with self._database.write("codes") as sql:
                sql.exec_driver_sql("DELETE FROM passage_codes")
                sql.exec_driver_sql("INSERT OR REPLACE INTO meta (key, value) VALUES (?, ?)", (_VERSION_KEY, CODES_VERSION))
