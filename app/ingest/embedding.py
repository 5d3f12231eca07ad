"""Embed chunks that have no vector; resumable.

The catalog says what is missing.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np

from app.core.cancel import CancelToken
from app.core.ports import Embedder, VectorSink
from app.core.types import Chunk, FloatArray, Library, PassageCode
from app.ingest.codes import CodeBackfill, CodeProgress
from app.ingest.embedding_run import ChunkFailure, Embedded, EmbeddingRun
from app.ingest.options import IngestOptions

_PAGE_BATCHES = 16
"""Batches read from the catalog at a time and sorted by length: near-equal lengths in a batch
waste no padding."""
_PAGE_ROUNDS = 4
"""Batches of a page per worker, at least: the last ones of a page leave workers idle."""
_QUEUED_BATCHES = 4
"""Batches that may wait for the writing thread; more would only be lost work on a crash."""

Progress = Callable[[int], None]
"""Told how many chunks have been embedded or given up so far."""


@dataclass(frozen=True, slots=True)
class BackfillReport:
    """Counts of a run: chunks embedded, and chunks that cannot be."""

    embedded: int
    failed: tuple[ChunkFailure, ...] = ()


class VectorBackfill:
    """Embeds pending chunks while a second thread stores the previous batch.

    Each call keeps its own state.
    """

    def __init__(
        self,
        writer: VectorSink,
        embedder: Embedder,
        options: IngestOptions,
        codes: CodeBackfill | None = None,
    ) -> None:
        """Wire the backfill.

        Args:
            writer: Decides which build the vectors are for.
            embedder: Makes them.
            options: `embed_batch` chunks make a transaction.
            codes: Makes codes for late interaction too, in the same run of the model where it is
                the same; None makes none.
        """
        self._codes = codes
        self._writer = writer
        self._embedder = embedder
        self._options = options

    def run(
        self,
        library: Library,
        *,
        progress: Progress | None = None,
        cancel: CancelToken | None = None,
        limit: int | None = None,
        order: str = "id",
        doc_ids: Sequence[str] | None = None,
        workers: int = 1,
        code_progress: CodeProgress | None = None,
    ) -> BackfillReport:
        """Embed chunks until none lacks a vector; on return they are durable.

        The projections have applied them. A text that the embedder refuses is found by halving its
        batch, reported and skipped. One that is longer than the embedder reads is embedded in
        windows, whose mean stands for it, so nothing is cut.

        Args:
            library: Whose chunks.
            progress: Called after each batch.
            cancel: Checked before each batch.
            limit: At most this many chunks; None takes all.
            order: Which first: `id`, `longest` or `linked` (see `IndexWriter.pending_vectors`).
            doc_ids: Only chunks of these documents; None takes the whole library.
            code_progress: Called after each batch of codes that are made after the vectors.
            workers: Batches that are with the embedder at once: what a host that embeds in parallel
                can use.

        Raises:
            Cancelled: Asked to stop; the vectors so far are kept.
            ProviderError: The host of the model fails for every text; try again later, nothing is
                lost.
            FingerprintMismatch: The library was built with another model.
            DiskFull: No space for vectors.
        """
        state = EmbeddingRun(
            self._embedder,
            self._codes.shared_encoder(library, self._embedder) if self._codes else None,
        )
        with (
            ThreadPoolExecutor(1, thread_name_prefix="vectors") as pool,
            ThreadPoolExecutor(workers, "embed") as embedding,
        ):
            writes = _Writes(pool, self._writer, library, self._codes)
            for page in self._pages(
                library, state, limit, order, doc_ids, max(_PAGE_BATCHES, _PAGE_ROUNDS * workers)
            ):
                batches = _batches(
                    sorted(page, key=lambda chunk: len(chunk.text)), self._options.embed_batch
                )
                for embedded in _ahead(embedding, workers, state.embed, batches, cancel):
                    if embedded:
                        ids = [chunk.chunk_id for chunk, _ in embedded]
                        writes.submit(
                            ids, np.stack([row for _, row in embedded]), state.take_codes(ids)
                        )
                    if progress is not None:
                        progress(state.embedded + len(state.failed))
                writes.drain()
        if self._codes is not None and limit is None:
            self._codes.run(library, doc_ids=doc_ids, progress=code_progress, cancel=cancel)
        return BackfillReport(state.embedded, tuple(state.failed.values()))

    def _pages(
        self,
        library: Library,
        state: EmbeddingRun,
        limit: int | None,
        order: str,
        doc_ids: Sequence[str] | None,
        batches: int,
    ) -> Iterator[list[Chunk]]:
        """Yield pending chunks this run has not tried.

        Each page is stored before the next is read.
        """
        size = self._options.embed_batch * batches
        before: set[int] = set()
        while True:
            wanted = (
                size if limit is None else min(size, limit - state.embedded - len(state.failed))
            )
            if wanted <= 0:
                return
            pending = self._writer.pending_vectors(
                library, wanted + len(state.failed), order, doc_ids
            )
            page = [
                chunk
                for chunk in pending
                if chunk.chunk_id not in state.failed and chunk.chunk_id not in before
            ][:wanted]
            if not page:
                return
            before = {chunk.chunk_id for chunk in page}
            yield page


def _ahead(
    pool: ThreadPoolExecutor,
    workers: int,
    embed: Callable[[Sequence[Chunk]], list[Embedded]],
    batches: Iterable[Sequence[Chunk]],
    cancel: CancelToken | None,
) -> Iterator[list[Embedded]]:
    """Yield what becomes of each batch, in order, with `workers` of them under way.

    Raises:
        Cancelled: Asked to stop; what was under way has been yielded first.
    """
    under_way: deque[Future[list[Embedded]]] = deque()
    for batch in batches:
        if cancel is not None and cancel.cancelled:
            while under_way:
                yield under_way.popleft().result()
            cancel.raise_if_cancelled()
        under_way.append(pool.submit(embed, batch))
        if len(under_way) == workers:
            yield under_way.popleft().result()
    while under_way:
        yield under_way.popleft().result()


class _Writes:
    """Writes batches to the catalog and projections in order, a few at a time."""

    def __init__(
        self,
        pool: ThreadPoolExecutor,
        writer: VectorSink,
        library: Library,
        codes: CodeBackfill | None,
    ) -> None:
        self._pool = pool
        self._writer = writer
        self._library = library
        self._codes = codes
        self._futures: deque[Future[None]] = deque()

    def submit(self, chunk_ids: list[int], rows: FloatArray, codes: dict[int, PassageCode]) -> None:
        self._futures.append(self._pool.submit(self._write, chunk_ids, rows, codes))
        while len(self._futures) > _QUEUED_BATCHES:
            self._futures.popleft().result()

    def drain(self) -> None:
        while self._futures:
            self._futures.popleft().result()

    def _write(self, chunk_ids: list[int], rows: FloatArray, codes: dict[int, PassageCode]) -> None:
        if self._codes is not None:
            self._codes.store.write_codes(codes)
        self._writer.write_vectors(self._library, chunk_ids, rows)
        self._writer.apply(self._library)


def _batches(chunks: Sequence[Chunk], size: int) -> Iterator[Sequence[Chunk]]:
    for start in range(0, len(chunks), size):
        yield chunks[start : start + size]
