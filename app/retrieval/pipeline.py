"""Rank passages for a question: the steps of docs/how-it-works.md in order."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from app.core.languages import language_name, language_of
from app.core.ports import Embedder, Reader
from app.core.trace import Trace
from app.core.types import (
    EmbedderIdentity,
    FloatArray,
    Fusion,
    Hit,
    Library,
    Notice,
    NoticeCode,
    QuestionCode,
)
from app.retrieval import diversity
from app.retrieval.candidates import Floats, Ints, pool_size, slots
from app.retrieval.diversity import diversify, maximal_marginal_relevance
from app.retrieval.fusion import best_first, fuse, guarded_dense_weight
from app.retrieval.request import Retrieval, RetrievalOptions, SearchRequest
from app.retrieval.reranking import LateInteraction, Reranking
from app.retrieval.retrievers import Pool, Retrievers, matched_text
from app.retrieval.scoring import Reading, band, closeness_of, confidence, loosened, passes, read
from app.retrieval.wording import as_written, named_files, quotes
from app.storage.catalog.documents import Catalog
from app.storage.vectors.library import DenseVectorIndex
from app.storage.words.port import LibraryWords
from app.storage.writer import CatalogIndexWriter

# Make notices of a search that found nothing, or searched by words alone.


def nothing_found(catalog: Catalog, request: SearchRequest) -> tuple[Notice, ...]:
    """Return why no passage can be found: an empty library, or the filters."""
    if not catalog.counts(request.library).chunks:
        name = request.library.value
        return (
            Notice(
                "library_empty",
                f"the library {name!r} is empty; add documents to it, or load the samples",
            ),
        )
    if request.filters:
        return (
            Notice(
                "filter_matched_nothing", "no passage matches the filters; widen or remove them"
            ),
        )
    return ()


_TROUBLE: Mapping[NoticeCode, str] = {
    "embedder_unavailable": "the question could not be embedded; passages were ranked by their"
    " words alone",
    "index_rebuilding": "the vector index is being made ready; passages were found by their words"
    " alone",
}


def trouble(pool: Pool) -> tuple[Notice, ...]:
    """Return notices about the dense leg."""
    if pool.unknown_language:
        language = language_name(pool.unknown_language)
        return (
            Notice(
                "language_differs",
                f"the question is in {language}, which the embedding model of this library does"
                " not know: passages are"
                " found by their words; for a model of many languages, run: documind models use"
                " multilingual",
            ),
        )
    if pool.trouble:
        return (Notice(pool.trouble, _TROUBLE[pool.trouble]),)
    if pool.without_vector:
        return (
            Notice(
                "vectors_missing",
                f"{pool.without_vector} of {len(pool.candidates)} candidates have no vector yet:"
                " ranked by their words alone",
            ),
        )
    return ()


class Retriever:
    """Ranks one library's passages for a question; stateless, shared by threads."""

    def __init__(
        self,
        catalog: Catalog,
        vectors: DenseVectorIndex,
        lexical: LibraryWords,
        embedder: Embedder | None,
        options: RetrievalOptions,
        *,
        writer: CatalogIndexWriter | None = None,
        reader: Reader | None = None,
        late: LateInteraction | None = None,
        remarks: Callable[[], Sequence[Notice]] = tuple,
        asks_host: bool = False,
    ) -> None:
        """Keep the parts.

        `vectors` are of the build that `embedder` makes vectors for; without one words alone are
        searched, as in a library without vectors where the embedder `asks_host`. `writer` keeps
        what was embedded on the fly, `late` is None where no codes are kept, and `remarks` are said
        at every search.
        """
        self._catalog = catalog
        self.lexical = lexical
        self._options = options
        self._late = late
        self._reranking = Reranking(reader, late, options)
        self._remarks = remarks
        budget_ms = options.embed_on_query_budget_ms
        self._legs = Retrievers(
            catalog, vectors, lexical, embedder, writer, budget_ms, asks_host=asks_host
        )

    def retrieve(self, request: SearchRequest, trace: Trace) -> Retrieval:
        """Return the best passages and notices; no result is a notice, not an error."""
        wanted = request.top_k or slots(request.mode)
        k = wanted if request.keep_weak else min(wanted, slots(request.mode))
        fusion = request.fusion or self._options.fusion
        self._reranking.arm(request)
        asked = request.text
        request = replace(request, fusion=fusion)
        request, vector, code, unknown = self._embedded(request, trace)
        with self._catalog.snapshot():
            for narrowed in self._narrowed(request, asked):
                pool = self._pool(narrowed, vector, code, unknown, k, trace)
                found = self._found(narrowed, fusion, pool, k, trace)
                if found.hits:
                    break
            # Only the model tells a misspelt word from one that the library lacks.
            text = request.text if code else asked
            return replace(found, text=text, searched=request.text)

    def _narrowed(self, request: SearchRequest, asked: str) -> list[SearchRequest]:
        """Return the request within the files that the question names, if any, then as it is."""
        if request.library is not Library.PAPERS or request.filters.doc_ids:
            return [request]
        if not (named := named_files(asked, request.library, self._catalog)):
            return [request]
        return [replace(request, filters=replace(request.filters, doc_ids=named)), request]

    def _found(
        self, request: SearchRequest, fusion: Fusion, pool: Pool, k: int, trace: Trace
    ) -> Retrieval:
        """Rank the candidates."""
        if not len(pool.candidates):
            return Retrieval(
                (), (*trouble(pool), *nothing_found(self._catalog, request), *self._remarks())
            )
        with trace.stage("fusion", len(pool.candidates)) as stage:
            scores = fuse(
                pool.candidates,
                fusion,
                rrf_k=self._options.rrf_k,
                dense_weight=guarded_dense_weight(
                    pool.candidates,
                    pool.words,
                    dense_weight=self._options.dense_weight,
                    guard=self._options.word_guard,
                ),
            )
            order = best_first(scores)
            stage.n_out = len(order)
            head = self._head(request, fusion, k, len(order))
            stage.items = trace.items(
                diversity.fused(pool.candidates, order, scores.tolist(), head)
            )
        retrieval = self._rank(request, fusion, pool, scores, order[:head], k, trace)
        if len(retrieval.hits) < k and head < len(order):
            retrieval = self._rank(request, fusion, pool, scores, order, k, trace)
        return replace(retrieval, notices=(*trouble(pool), *retrieval.notices, *self._remarks()))

    def _embedded(
        self, request: SearchRequest, trace: Trace
    ) -> tuple[SearchRequest, FloatArray | None, QuestionCode | None, str]:
        """Return the request with misspelt words matched, its vector and code if it has any.

        And its language where the embedder does not know it.
        """
        with trace.stage("embed"):
            identity = self._legs.identity(request.library)
            unknown = self._unknown_language(request, identity)
            request, code = self._matched(request)
            if unknown and request.fusion != "dense":
                vector = None  # it would say less than the words
            elif code is not None and self._may_share(request, identity):
                vector = code.vector
            else:
                vector = self._legs.query_vector(request)
        return request, vector, code, unknown

    def _pool(
        self,
        request: SearchRequest,
        vector: FloatArray | None,
        code: QuestionCode | None,
        unknown: str,
        k: int,
        trace: Trace,
    ) -> Pool:
        with trace.stage("search") as stage:
            pool = self._legs.search(
                request, vector, pool_size(request.library, request.mode, k), code
            )
            if unknown:
                pool = replace(pool, unknown_language=unknown)
            stage.n_out = len(pool.candidates)
        with trace.stage("complete", len(pool.candidates)) as stage:
            pool = self._legs.complete(request, pool)
            stage.n_out = len(pool.candidates)
        return pool

    def _unknown_language(self, request: SearchRequest, identity: EmbedderIdentity | None) -> str:
        """Return the question's language if the embedder does not know it, else nothing.

        Of a question whose language cannot be told, that of most documents.
        """
        language = language_of(request.text) or self.lexical.languages(request.library)[0]
        return "" if identity is None or identity.knows(language) else language

    def _matched(self, request: SearchRequest) -> tuple[SearchRequest, QuestionCode | None]:
        """Return the question with misspelt words matched, and its late-interaction code."""
        late = self._late if self._reranking.arm(request) == "late" else None
        known = late is not None and late.encoder.identity.knows(language_of(request.text))
        encoder = late.encoder if late is not None and known else None
        code = encoder.encode_question(request.text) if encoder else None
        spelt_right = code.common_stems if code else frozenset[str]()
        library, catalog = request.library, self._catalog
        text = matched_text(request.text, library, self.lexical, catalog, spelt_right)
        text = as_written(text, library, self.lexical, catalog)
        if text == request.text:
            return request, code
        return replace(request, text=text), encoder.encode_question(text) if encoder else None

    def _may_share(self, request: SearchRequest, identity: EmbedderIdentity | None) -> bool:
        """Return whether one model run can give the question's vector and its code."""
        if self._late is None or identity is None or request.vector is not None:
            return False
        return self._late.encoder.identity == identity

    def _head(self, request: SearchRequest, fusion: Fusion, k: int, n: int) -> int:
        """Return how many of n candidates to read first: enough for k places.

        More if a later step reorders them.
        """
        options = self._options
        if fusion == "dense" or quotes(request.text):
            return n
        if self._reranking.arm(request) != "none" or self._reranking.keyword_weight(
            request.library, fusion
        ):
            return max(options.rerank_head, 2 * k)
        return k + k // 2 + 3

    def _rank(
        self,
        request: SearchRequest,
        fusion: Fusion,
        pool: Pool,
        scores: Floats,
        rows: Ints,
        k: int,
        trace: Trace,
    ) -> Retrieval:
        """Read the candidates at `rows` and take them through every step after fusion."""
        with trace.stage("read", len(rows)) as stage:
            readings = self._read(request.library, pool, scores, rows)
            stage.n_out = len(readings)
        with trace.stage("rerank", len(readings)) as stage:
            self._reranking.apply(request, fusion, readings, pool)
            stage.n_out = len(readings)
            stage.items = trace.items(diversity.reranked(readings))
        kept, passed = self._cut(request, fusion, readings, trace)
        wanted = self._options.enable_fallback if request.fallback is None else request.fallback
        fallback = not kept and bool(wanted)
        if fallback:
            kept, k = readings, min(k, self._options.fallback_top_n)
        with trace.stage("diversity", len(kept)) as stage:
            options, mmr = self._options, self._reranking.arm(request) == "mmr"
            copies, cap = options.near_duplicate_jaccard, options.source_cap
            chosen = (
                maximal_marginal_relevance(kept, k, trade=options.mmr_lambda)
                if mmr
                else diversify(kept, k, duplicate=copies, cap=cap)
            )
            stage.n_out = len(chosen)
            stage.items = trace.items(diversity.chosen(kept, chosen, None if mmr else copies))
        hits = tuple(self._hit(r, passed=id(r) in passed, fallback=fallback) for r in chosen)
        fallback = fallback and bool(hits)
        notices = (
            (
                Notice(
                    "fallback_used",
                    "no passage is close enough to the question; these are the nearest",
                ),
            )
            if fallback
            else ()
        )
        return Retrieval(hits, notices, confidence(chosen, fusion, self._options), fallback)

    def _hit(self, reading: Reading, *, passed: bool, fallback: bool) -> Hit:
        shown = band(reading, self._options, passed=passed)
        near = closeness_of(reading, self._options)
        return Hit(reading.passage, reading.score, reading.signals, shown, fallback, near)

    def _cut(
        self, request: SearchRequest, fusion: Fusion, readings: list[Reading], trace: Trace
    ) -> tuple[list[Reading], frozenset[int]]:
        """Return the readings to keep, and the `id` of each that passes the cutoff."""
        library, options = request.library, loosened(self._options, request.mode, request.filters)
        with trace.stage("cutoff", len(readings)) as stage:
            passed = frozenset(id(r) for r in readings if passes(r, fusion, library, options))
            kept = readings if request.keep_weak else [r for r in readings if id(r) in passed]
            stage.n_out = len(kept)
            reasons = diversity.cut(
                readings, passed, fusion, library, options, keep_weak=request.keep_weak
            )
            stage.items = trace.items(reasons)
        return kept, passed

    def _read(self, library: Library, pool: Pool, scores: Floats, rows: Ints) -> list[Reading]:
        """Join candidates with the catalog; what is no longer live drops out."""
        candidates = pool.candidates
        chunk_ids: list[int] = candidates.ids[rows].tolist()
        passages = self._catalog.passages(library, chunk_ids)
        return [
            read(
                passages[chunk_id],
                pool.words,
                score=float(scores[row]),
                distance=float(candidates.distance[row]),
                bm25=float(candidates.bm25[row]),
            )
            for row, chunk_id in zip(rows.tolist(), chunk_ids, strict=True)
            if chunk_id in passages
        ]
