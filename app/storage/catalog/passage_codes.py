"""Keep codes for late interaction in the catalog."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sqlalchemy import delete, select

from app.core.errors import InvalidInput
from app.core.languages import DEFAULT
from app.core.types import CODES_VERSION, Chunk, Library, PassageCode
from app.storage.catalog.database import Database, id_list
from app.storage.catalog.documents import Catalog
from app.storage.catalog.schema import (
    IS_LIVE,
    chunks,
    documents,
    passage_codes,
    pieces,
    put,
    put_meta,
)

_VERSION_KEY = "codes_version"
_LIVE = select(chunks.c.chunk_id).join(documents, IS_LIVE)


class PassageCodeStore:
    """Codes for late interaction, by chunk; thread-safe."""

    def __init__(self, database: Database, catalog: Catalog) -> None:
        self._database = database
        self._catalog = catalog

    def codes(self, chunk_ids: Sequence[int]) -> dict[int, PassageCode]:
        """Return the codes of chunks; those without one are absent."""
        rows = self._database.raw(self._database.dialect.CODES, (id_list(chunk_ids),))
        return {chunk_id: PassageCode(sentences, tokens) for chunk_id, sentences, tokens in rows}

    def write_codes(self, codes: Mapping[int, PassageCode]) -> None:
        """Store codes of live chunks durably; skip deleted and superseded chunks.

        Raises:
            InvalidInput: A code has not whole rows.
            DiskFull: No space.
        """
        if wrong := [chunk_id for chunk_id, code in codes.items() if not code.fits()]:
            raise InvalidInput(
                f"the code of chunk {wrong[0]} has {len(codes[wrong[0]].sentences)} bytes of"
                " sentences and"
                f" {len(codes[wrong[0]].tokens)} of tokens; expected rows of 384 and 16"
            )
        if not codes:
            return
        with self._database.write("codes") as sql:
            live = {
                chunk_id
                for some in pieces(list(codes))
                for chunk_id in sql.execute(_LIVE.where(chunks.c.chunk_id.in_(some))).scalars()
            }
            rows = [
                {"chunk_id": key, "sentences": code.sentences, "tokens": code.tokens}
                for key, code in codes.items()
                if key in live
            ]
            put(sql, passage_codes, rows)

    def pending_codes(
        self, library: Library, limit: int, after: int = 0, doc_ids: Sequence[str] | None = None
    ) -> list[Chunk]:
        """Return up to `limit` live chunks without a code, with ids over `after`.

        English ones: the model that makes codes knows no other language.

        Args:
            library: Whose chunks.
            limit: At most this many.
            after: A chunk id.
            doc_ids: Only of these documents; None takes all.
        """
        pending = (
            _LIVE.outerjoin(passage_codes, passage_codes.c.chunk_id == chunks.c.chunk_id)
            .where(
                documents.c.library == library.value,
                passage_codes.c.chunk_id.is_(None),
                documents.c.language.in_(("", DEFAULT)),
                chunks.c.chunk_id > after,
            )
            .order_by(chunks.c.chunk_id)
            .limit(limit)
        )
        named = [pending]
        if doc_ids is not None:
            named = [pending.where(documents.c.doc_id.in_(some)) for some in pieces(doc_ids)]
        found = sorted(row.chunk_id for query in named for row in self._database.rows(query))
        return self._catalog.chunks_by_id(library, found[:limit])

    def delete_codes(self, library: Library) -> None:
        """Remove the codes of a library, to make them again."""
        every = (
            select(chunks.c.chunk_id).join(documents).where(documents.c.library == library.value)
        )
        with self._database.write("codes") as sql:
            sql.execute(delete(passage_codes).where(passage_codes.c.chunk_id.in_(every)))

    def delete_others(self) -> None:
        """Remove codes of another version, which match no question of this one."""
        if self._database.meta(_VERSION_KEY) != CODES_VERSION:
            with self._database.write("codes") as sql:
                sql.execute(delete(passage_codes))
                put_meta(sql, _VERSION_KEY, CODES_VERSION)
