"""Make missing late-interaction codes; resumable.

The catalog says what is missing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from app.core.cancel import CancelToken
from app.core.ports import Catalog, Embedder, PassageCodes, PassageEncoder
from app.core.types import Library

CodeProgress = Callable[[int, int], None]
"""Told how many chunks have been coded, and of how many at most."""

_BATCH = 64
"""Chunks per transaction."""


@dataclass(frozen=True, slots=True)
class CodeBackfill:
    """Makes the missing codes of a library that is not too large for them."""

    store: PassageCodes
    encoder: PassageEncoder
    catalog: Catalog
    most_chunks: int
    """A library of more chunks gets none; 0: none does."""

    def wanted(self, library: Library) -> bool:
        """Return whether a library of this size has codes."""
        return 0 < self.catalog.counts(library).chunks <= self.most_chunks

    def shared_encoder(self, library: Library, embedder: Embedder) -> PassageEncoder | None:
        """Return the encoder that makes vectors and codes in one run, or None.

        None if another model embeds or no codes are wanted.
        """
        return (
            self.encoder
            if self.wanted(library) and self.encoder.identity == embedder.identity
            else None
        )

    def missing(self, library: Library) -> bool:
        """Return whether a chunk lacks a code that it should have."""
        return self.wanted(library) and bool(self.store.pending_codes(library, 1))

    def run(
        self,
        library: Library,
        *,
        doc_ids: Sequence[str] | None = None,
        progress: CodeProgress | None = None,
        cancel: CancelToken | None = None,
    ) -> int:
        """Make every missing code and return their number.

        Args:
            library: Whose chunks.
            doc_ids: Only those of these documents; None takes all.
            progress: Called after each batch.
            cancel: Checked before each batch.

        Raises:
            Cancelled: Asked to stop; the codes so far are kept.
            DiskFull: No space.
        """
        if not self.wanted(library):
            return 0
        done, after = 0, 0
        while chunks := self.store.pending_codes(library, _BATCH, after, doc_ids):
            if cancel is not None:
                cancel.raise_if_cancelled()
            made = self.encoder.encode([chunk.text for chunk in chunks])
            self.store.write_codes(
                {chunk.chunk_id: code for chunk, code in zip(chunks, made, strict=True)}
            )
            after = chunks[-1].chunk_id
            done += len(chunks)
            if progress is not None:
                progress(done, self.catalog.counts(library).chunks)
        return done
