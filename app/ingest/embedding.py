"""Embed chunks that have no vector; resumable. The catalog says what is missing."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import chain, takewhile

import numpy as np

from app.core.cancel import CancelToken, in_order
from app.core.errors import DocuMindError, InputError, PassageTooLong, ProviderBadResponse
from app.core.ports import Embedder, PassageEncoder
from app.core.text import TOKENIZER_VERSION
from app.core.types import Chunk, EmbedderIdentity, Fingerprint, FloatArray, Library, PassageCode
from app.core.vectors import l2_normalise
from app.ingest.chunking import CHUNKER_VERSION, halves
from app.ingest.options import IngestOptions
from app.storage.catalog.documents import Catalog
from app.storage.catalog.passage_codes import PassageCodeStore
from app.storage.writer import CatalogIndexWriter

# Make missing late-interaction codes; resumable.

CodeProgress = Callable[[int, int], None]
"""Told how many chunks have been coded, and of how many at most."""

_BATCH = 64
"""Chunks per transaction."""


@dataclass(frozen=True, slots=True)
class CodeBackfill:
    """Makes the missing codes of a library that is not too large for them."""

    store: PassageCodeStore
    encoder: PassageEncoder
    catalog: Catalog
    most_chunks: int
    """A library of more chunks gets none; 0: none does."""

    def wanted(self, library: Library) -> bool:
        return 0 < self.catalog.counts(library).chunks <= self.most_chunks

    def shared_encoder(self, library: Library, embedder: Embedder) -> PassageEncoder | None:
        """Return what makes vectors and codes in one run, None where one run cannot."""
        is_same = self.encoder.identity == embedder.identity
        return self.encoder if self.wanted(library) and is_same else None

    def missing(self, library: Library) -> bool:
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
            keys = (chunk.chunk_id for chunk in chunks)
            self.store.write_codes(dict(zip(keys, made, strict=True)))
            after = chunks[-1].chunk_id
            done += len(chunks)
            if progress is not None:
                progress(done, self.catalog.counts(library).chunks)
        return done


# Embed the batches of one run; set aside the texts that the embedder refuses.

_HOPELESS = 8
"""This many refusals before the first success mean that the host is broken, not the texts."""


@dataclass(frozen=True, slots=True)
class ChunkFailure:
    """A chunk that the embedder refuses even alone; it stays findable by its words."""

    chunk_id: int
    doc_id: str
    code: str
    reason: str


Embedded = tuple[Chunk, FloatArray]


class EmbeddingRun:
    """State of a run: failing texts, and whether over-long ones occur; thread-safe."""

    def __init__(self, embedder: Embedder, encoder: PassageEncoder | None) -> None:
        self._embedder = embedder
        self._encoder = encoder
        self._made: dict[int, PassageCode] = {}
        self._max_tokens = embedder.identity.max_tokens
        self._counts_first = False
        self._lock = threading.Lock()
        self.embedded = 0
        self.failed: dict[int, ChunkFailure] = {}

    def embed(self, chunks: Sequence[Chunk]) -> list[Embedded]:
        if self._counts_first:
            return self._embed_counted(chunks)
        try:
            rows = self._vectors(chunks)
        except PassageTooLong:
            # Chunks of uploads were bounded when they were cut. These were not (bulk text), so
            # count from now on.
            self._counts_first = True
            return self._embed_counted(chunks)
        except (InputError, ProviderBadResponse) as exc:
            return self._bisect(chunks, exc)
        return self._keep(chunks, rows)

    def _embed_counted(self, chunks: Sequence[Chunk]) -> list[Embedded]:
        counts = self._embedder.count_tokens([chunk.text for chunk in chunks])
        counted = list(zip(chunks, counts, strict=True))
        fitting = [chunk for chunk, tokens in counted if tokens <= self._max_tokens]
        long = [chunk for chunk, tokens in counted if tokens > self._max_tokens]
        return self._embed_fitting(fitting) + list(chain(*map(self._embed_long, long)))

    def _embed_fitting(self, chunks: Sequence[Chunk]) -> list[Embedded]:
        if not chunks:
            return []
        try:
            rows = self._vectors(chunks)
        except (InputError, ProviderBadResponse) as exc:
            return self._bisect(chunks, exc)
        return self._keep(chunks, rows)

    def _vectors(self, chunks: Sequence[Chunk]) -> FloatArray:
        """Embed chunks; with codes where the same run gives them."""
        texts = [chunk.text for chunk in chunks]
        if self._encoder is None:
            return self._embedder.embed_passages(texts)
        rows, codes = self._encoder.embed_and_encode(texts)
        with self._lock:
            self._made.update(zip((chunk.chunk_id for chunk in chunks), codes, strict=True))
        return rows

    def take_codes(self, chunk_ids: Sequence[int]) -> dict[int, PassageCode]:
        """Return the codes that were made of these chunks, and forget them."""
        with self._lock:
            return {key: self._made.pop(key) for key in chunk_ids if key in self._made}

    def _embed_long(self, chunk: Chunk) -> list[Embedded]:
        try:
            rows = self._embedder.embed_passages(self._windows(chunk.text))
        except (InputError, ProviderBadResponse) as exc:
            return self._give_up(chunk, exc)
        return self._keep([chunk], l2_normalise(rows.mean(axis=0, keepdims=True)))

    def _windows(self, text: str) -> list[str]:
        """Cut a text at sentences until every part fits."""
        todo, fitting = [text], list[str]()
        while todo:
            counts = self._embedder.count_tokens(todo)
            again: list[str] = []
            for part, tokens in zip(todo, counts, strict=True):
                if tokens <= self._max_tokens or len(part) < 2:
                    fitting.append(part)
                else:
                    again += [part[start:end] for start, end in halves(part, 0, len(part))]
            todo = again
        return fitting

    def _bisect(self, chunks: Sequence[Chunk], error: DocuMindError) -> list[Embedded]:
        if len(chunks) == 1:
            return self._give_up(chunks[0], error)
        middle = len(chunks) // 2
        return self._embed_fitting(chunks[:middle]) + self._embed_fitting(chunks[middle:])

    def _give_up(self, chunk: Chunk, error: DocuMindError) -> list[Embedded]:
        is_hopeless = not self.embedded and len(self.failed) + 1 >= _HOPELESS
        if is_hopeless and isinstance(error, ProviderBadResponse):
            raise error
        self.failed[chunk.chunk_id] = ChunkFailure(
            chunk.chunk_id, chunk.doc_id, error.code, error.message
        )
        return []

    def _keep(self, chunks: Sequence[Chunk], rows: FloatArray) -> list[Embedded]:
        with self._lock:
            self.embedded += len(chunks)
        return list(zip(chunks, rows, strict=True))


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
    embedded: int
    failed: tuple[ChunkFailure, ...] = ()


@dataclass(frozen=True, slots=True)
class VectorBackfill:
    """Embeds pending chunks while a second thread stores the last batch; keeps no state."""

    writer: CatalogIndexWriter
    embedder: Embedder
    options: IngestOptions
    """`embed_batch` chunks make a transaction."""
    codes: CodeBackfill | None = None
    """Makes codes for late interaction too, in the same run of the model where it is the same."""
    build: int | None = None
    """Which build the vectors are for; None: the one that serves."""

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
            order: Which first: `id`, `longest` or `linked`.
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
        encoder = self.codes.shared_encoder(library, self.embedder) if self.codes else None
        state = EmbeddingRun(self.embedder, encoder)
        token = cancel or CancelToken()

        def store(embedded: Sequence[Embedded]) -> None:
            ids = [chunk.chunk_id for chunk, _ in embedded]
            if self.codes is not None:
                self.codes.store.write_codes(state.take_codes(ids))
            rows = np.stack([row for _, row in embedded])
            self.writer.write_vectors(library, ids, rows, self.build)
            self.writer.apply(library)

        def embedded(page: list[Chunk], pool: ThreadPoolExecutor) -> Iterator[list[Embedded]]:
            page.sort(key=lambda chunk: len(chunk.text))
            batches = (page[start : start + size] for start in range(0, len(page), size))
            wanted = takewhile(lambda _: not token.cancelled, batches)
            for batch in in_order(pool, state.embed, wanted, workers):
                if made := batch.result():
                    yield made
                if progress is not None:
                    progress(state.embedded + len(state.failed))

        size, pages = self.options.embed_batch, max(_PAGE_BATCHES, _PAGE_ROUNDS * workers)
        with (
            ThreadPoolExecutor(1, thread_name_prefix="vectors") as writing,
            ThreadPoolExecutor(workers, "embed") as embedding,
        ):
            for page in self._pages(library, state, limit, order, doc_ids, size * pages):
                made = embedded(page, embedding)
                for stored in in_order(writing, store, made, _QUEUED_BATCHES + 1):
                    stored.result()
                token.raise_if_cancelled()  # what was under way is stored
        if self.codes is not None and limit is None:
            self.codes.run(library, doc_ids=doc_ids, progress=code_progress, cancel=cancel)
        return BackfillReport(state.embedded, tuple(state.failed.values()))

    def _pages(
        self,
        library: Library,
        state: EmbeddingRun,
        limit: int | None,
        order: str,
        doc_ids: Sequence[str] | None,
        size: int,
    ) -> Iterator[list[Chunk]]:
        """Yield pending chunks this run has not tried, each page after the last is stored."""
        before: set[int] = set()
        while True:
            failed = len(state.failed)
            wanted = size if limit is None else min(size, limit - state.embedded - failed)
            if wanted <= 0:
                return
            pending = self.writer.pending_vectors(
                library, wanted + failed, order, doc_ids, self.build
            )
            tried = {*state.failed, *before}
            page = [chunk for chunk in pending if chunk.chunk_id not in tried][:wanted]
            if not page:
                return
            before = {chunk.chunk_id for chunk in page}
            yield page


def fingerprint_of(identity: EmbedderIdentity, options: IngestOptions) -> Fingerprint:
    """Return what vectors of this embedder over our chunks are made with."""
    chunker = f"{CHUNKER_VERSION}:{options.chunk_size}:{options.chunk_overlap}"
    return Fingerprint(
        embedding_model=identity.model,
        model_digest=identity.digest,
        dimension=identity.dimension,
        query_prefix=identity.query_prefix,
        passage_prefix=identity.passage_prefix,
        chunker=chunker if options.chunker == "headings" else f"{chunker}:{options.chunker}",
        analyzer=TOKENIZER_VERSION,
    )
