"""Search both legs, and complete each leg's scores for the other's hits."""

from __future__ import annotations

import logging
import time
from dataclasses import dataclass, replace

import numpy as np

from app.core.concurrency import run_concurrently
from app.core.errors import Conflict, IndexDamaged, InputError, ProviderError, StorageError
from app.core.ports import Catalog, Embedder, LexicalIndex, VectorIndex, VectorSink
from app.core.types import EmbedderIdentity, FloatArray, Library, NoticeCode, QuestionCode, Scored
from app.core.vectors import cosine_distances
from app.retrieval.keywords import QuestionWords, question_words
from app.retrieval.request import SearchRequest
from app.retrieval.search import Candidates, gather

_LOG = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Pool:
    """The candidates of one question with their signals, and why a leg is missing."""

    candidates: Candidates
    vector: FloatArray | None
    """The query vector `[dim]`; None when nothing could embed."""
    words: QuestionWords
    code: QuestionCode | None = None
    """What late interaction compares passages with; None where it is off."""
    without_vector: int = 0
    """Candidates that have no vector, after embedding on the fly."""
    trouble: NoticeCode | None = None
    """Why the dense leg could not be asked."""
    unknown_language: str = ""
    """The question's language where the embedder does not know it."""


@dataclass(frozen=True, slots=True)
class Legs:
    """Dense and lexical search over the ports."""

    catalog: Catalog
    vectors: VectorIndex
    lexical: LexicalIndex
    embedder: Embedder | None
    writer: VectorSink | None
    embed_budget_ms: float
    asks_host: bool = False
    """The embedder asks a host, which a library without vectors leaves alone."""

    def identity(self, library: Library) -> EmbedderIdentity | None:
        """Return who embeds questions to a library; None where nothing does now."""
        if self.embedder is None or self._is_bare(library):
            return None
        try:
            return self.embedder.identity
        except ProviderError as exc:
            _LOG.warning("searching by words alone: the embedder failed: %s", exc)
            return None

    def query_vector(self, request: SearchRequest) -> FloatArray | None:
        """Return the request's vector, or embed its text; None if that fails."""
        if request.vector is not None:
            return request.vector
        if self.embedder is None or self._is_bare(request.library):
            return None
        try:
            return self.embedder.embed_query(request.text)
        except (ProviderError, InputError) as exc:
            _LOG.warning("searching by words alone: the embedder failed: %s", exc)
            return None

    def search(
        self,
        request: SearchRequest,
        vector: FloatArray | None,
        k: int,
        code: QuestionCode | None = None,
    ) -> Pool:
        """Ask both legs at once for k candidates each.

        With a damaged dense index only the lexical leg answers.
        """
        with run_concurrently(lambda: self._by_words(request, k)) as by_words:
            dense, vector, trouble = self._by_vector(request, vector, k)
            lexical, words = by_words()
        return Pool(gather(dense, lexical), vector, words, code, trouble=trouble)

    def _by_words(self, request: SearchRequest, k: int) -> tuple[list[Scored], QuestionWords]:
        """Return the lexical hits, and how telling each word of the question is."""
        found = self.lexical.search(request.library, request.text, k, request.filters or None)
        return found, question_words(self.lexical, request.library, request.text)

    def _by_vector(
        self, request: SearchRequest, vector: FloatArray | None, k: int
    ) -> tuple[list[Scored], FloatArray | None, NoticeCode | None]:
        """Return dense hits, the vector if it is comparable, and a notice code."""
        if vector is None:
            bare = self.embedder is not None and self._is_bare(request.library)
            return [], None, None if bare else "embedder_unavailable"
        try:
            return (
                self.vectors.search(request.library, vector, k, request.filters or None),
                vector,
                None,
            )
        except IndexDamaged as exc:
            # Single vectors still come from the catalog: what the words find is ranked by both
            # signals.
            _LOG.warning("searching by words alone: %s", exc)
            return [], vector, "index_rebuilding"
        except Conflict as exc:
            _LOG.warning("searching by words alone: the dense index failed: %s", exc)
            return [], None, "index_rebuilding"

    def complete(self, request: SearchRequest, pool: Pool) -> Pool:
        """Add distances of lexical hits and BM25 of dense hits.

        Embeds passages without a vector, within the budget.
        """
        candidates, missing = pool.candidates, 0
        unscored = candidates.without_bm25()
        if len(unscored):
            candidates = candidates.with_bm25(
                self.lexical.score(request.library, request.text, unscored.tolist())
            )
        if pool.vector is not None and len(unplaced := candidates.without_distance()):
            rows = self.vectors.fetch(request.library, unplaced.tolist())
            candidates = candidates.with_distances(_distances(pool.vector, rows))
            rest = candidates.without_distance()
            if len(rest) and self.embedder is not None:
                rows = self._embed(self.embedder, request.library, rest.tolist())
                candidates = candidates.with_distances(_distances(pool.vector, rows))
            missing = len(rest) - len(rows) if len(rest) else 0
        elif pool.vector is None and pool.trouble is None:
            missing = len(candidates)
        return replace(pool, candidates=candidates, without_vector=missing)

    def _is_bare(self, library: Library) -> bool:
        """Return whether a library has no vector that a host's would be compared with."""
        return self.asks_host and not self.catalog.counts(library).embedded

    def _embed(
        self, embedder: Embedder, library: Library, chunk_ids: list[int]
    ) -> dict[int, FloatArray]:
        """Embed chunks in order within the budget; cache the vectors.

        A passage that is longer than the embedder reads stays without a vector here: the backfill
        embeds it in parts.
        """
        if self.embed_budget_ms <= 0:
            return {}
        deadline = time.perf_counter() + self.embed_budget_ms / 1000
        passages = self.catalog.passages(library, chunk_ids[:_MOST_EMBEDDED])
        rows: dict[int, FloatArray] = {}
        longest_s = 0.0
        for chunk_id in chunk_ids[:_MOST_EMBEDDED]:
            start = time.perf_counter()
            if start + longest_s > deadline:
                break
            if chunk_id in passages:
                try:
                    rows[chunk_id] = embedder.embed_passages([passages[chunk_id].chunk.text])[0]
                except InputError as exc:
                    _LOG.warning("candidate %s stays without a vector: %s", chunk_id, exc)
                except ProviderError as exc:
                    _LOG.warning("could not embed a candidate: %s", exc)
                    break
                longest_s = max(longest_s, time.perf_counter() - start)
        self._keep(library, rows)
        return rows

    def _keep(self, library: Library, rows: dict[int, FloatArray]) -> None:
        if self.writer is None or not rows:
            return
        try:
            self.writer.write_vectors(library, list(rows), np.stack(list(rows.values())))
        except (
            StorageError,
            Conflict,
        ) as exc:  # the question can be answered all the same; the backfill will try again
            _LOG.warning("could not keep vectors embedded for a question: %s", exc)


_MOST_EMBEDDED = 16
"""More passages than the budget ever allows on a CPU (about 50 a second,
docs/facts/libraries.md); bounds what is read for it."""


def _distances(query: FloatArray, rows: dict[int, FloatArray]) -> dict[int, float]:
    if not rows:
        return {}
    return dict(
        zip(rows, cosine_distances(query, np.stack(list(rows.values()))).tolist(), strict=True)
    )
