"""Run the searches of a question, bound to its libraries, filters and mode.

A strategy only names what to search for.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from app.core.errors import ProviderError
from app.core.ports import Embedder
from app.core.sentences import sentence_spans
from app.core.trace import Trace
from app.core.types import FloatArray, Hit, Library, Notice, Question, Scope
from app.core.vectors import l2_normalise
from app.retrieval.candidates import slots
from app.retrieval.pipeline import Retriever
from app.retrieval.request import Retrieval, SearchRequest
from app.retrieval.retrievers import merge

_LOG = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class LibrarySearcher:
    """The parts that search one library."""

    retriever: Retriever
    embedder: Embedder | None
    """Of the library's fingerprint; None searches by words alone."""


SearcherFor = Callable[[Library], LibrarySearcher]
"""Returns how a library is searched now; a rebuild or another embedding model may change it
while the server runs."""


def libraries(scope: Scope) -> tuple[Library, ...]:
    """Return the libraries that a scope spans; a person's own papers first."""
    return (Library.PAPERS, Library.PUBLIC) if scope == "all" else (Library(scope),)


def embedder_names(searcher_for: SearcherFor, scope: Scope) -> str:
    """Return `provider:model` of the embedders, joined by ` + `; `none` without."""
    names: list[str] = []
    for library in libraries(scope):
        try:
            if (embedder := searcher_for(library).embedder) is not None:
                names.append(f"{embedder.identity.provider}:{embedder.identity.model}")
        except ProviderError as error:
            _LOG.warning("the embedder of %s does not answer: %s", library.value, error.message)
    return " + ".join(dict.fromkeys(names)) or "none"


@dataclass(frozen=True, slots=True)
class Search:
    """The searches of one question."""

    question: Question
    top_k: int
    """Passages wanted when the question does not say."""
    searcher_for: SearcherFor
    trace: Trace
    fused_with: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """Texts that are searched together with others, fused: a follow-up that carries words, and as
    it stands; a message, and what it asks."""
    parts: tuple[str, ...] = ()
    """Questions of a message that asks several."""
    _found: dict[tuple[str, str], Retrieval] = field(default_factory=dict)
    """What was searched already: a strategy that searches for the question itself gets it at
    once."""

    @property
    def places(self) -> int:
        """Return how many passages the answer reads at most.

        A search that is the answer itself shows as many as were requested. An inventory is not
        asked one thing: unless told otherwise, the datasets mode reads all that its slots hold.
        """
        mode = self.question.mode
        wanted = self.question.top_k or (slots(mode) if mode == "datasets" else self.top_k)
        return wanted if self.question.retrieve_only else min(wanted, slots(mode))

    def __call__(self, text: str, passage: str = "") -> Retrieval:
        """Search every library of the question and merge what they return.

        Args:
            text: What to look for, by words and, without `passage`, by meaning.
            passage: A hypothetical passage whose vector takes part in the dense search.
        """
        if (text, passage) not in self._found:
            found = self._search(text, passage)
            if text in self.fused_with:
                found = fused([found, *map(self, self.fused_with[text])], self.places)
            self._found[text, passage] = found
        return self._found[text, passage]

    def without_cutoff(self, text: str, top_k: int | None = None) -> Retrieval:
        """Search for a text and keep what the cutoff would drop."""
        question = replace(self.question, retrieve_only=True, top_k=top_k or self.question.top_k)
        return replace(self, question=question, fused_with={}, _found={})(text)

    def corrected(self, text: str) -> str:
        """Return a text as it was searched: misspelt words matched to those of the library."""
        found = self._found.get((text, ""))
        return found.text if found and found.text else text

    def searched(self, text: str) -> str:
        """Return a text with each word as it was searched, also one that may be spelt right."""
        found = self._found.get((text, ""))
        return found.searched if found and found.searched else text

    def _search(self, text: str, passage: str) -> Retrieval:
        asked = self.question
        found = {}
        for library in libraries(asked.library):
            searcher = self.searcher_for(library)
            request = SearchRequest(
                text,
                library,
                asked.mode,
                self.places,
                asked.filters,
                asked.fusion,
                asked.rerank,
                hypothetical_vector(searcher.embedder, text, passage)
                if passage and searcher.embedder
                else None,
                keep_weak=asked.retrieve_only,
                fallback=asked.fallback,
            )
            found[library] = searcher.retriever.retrieve(request, self.trace)
        merged = merge(found, self.places)
        # What one library respelt is said, also where the other one has the word.
        respelt = (one.searched for one in found.values() if one.hits and one.searched != text)
        return replace(merged, searched=next(respelt, text))


def hypothetical_vector(embedder: Embedder, query: str, passage: str) -> FloatArray | None:
    """Return the mean of query and hypothetical passage vectors, or None.

    float32 `[dim]`, norm 1; None if the host fails. The passage is embedded as a passage, cut after
    the last sentence that the model reads whole.

    References:
        Gao 2022, Precise Zero-Shot Dense Retrieval without Relevance Labels, arXiv 2212.10496,
        equation 8 with N = 1.
    """
    try:
        rows = embedder.embed_passages([_fitting(embedder, passage)])
        return l2_normalise(np.mean([rows[0], embedder.embed_query(query)], axis=0))
    except ProviderError:  # the retriever asks the same embedder and says embedder_unavailable
        return None


def joined(own: Retrieval, further: Sequence[Retrieval], places: int) -> Retrieval:
    """Fuse further searches with the question's own, which keeps half of the places.

    The own search weighs as much as all others together, and its first hits stay first:
    poor sub-queries of a small model cannot push the answer down (evaluation/reports/models.md).

    Args:
        own: The search for the question itself.
        further: Searches for what a model wrote.
        places: Passages to keep.
    """
    found = fused([own, *further], places, [max(1, len(further)), *[1] * len(further)])
    if own.fallback:
        return found
    kept = {hit.passage.chunk.key: hit for hit in own.hits[: (places + 1) // 2]}
    order = [*kept.values(), *(hit for hit in found.hits if hit.passage.chunk.key not in kept)]
    scores = sorted((hit.score for hit in found.hits), reverse=True)
    hits = tuple(replace(hit, score=score) for hit, score in zip(order, scores, strict=False))
    return replace(found, hits=hits)


def fused(
    retrievals: Sequence[Retrieval],
    places: int,
    weights: Sequence[float] | None = None,
    rrf_k: int = 60,
) -> Retrieval:
    """Fuse several results by weighted reciprocal rank, best first.

    Fallback hits count only where no search found anything better. A passage keeps the signals of
    the search that ranked it highest; ties keep first-seen order.

    Args:
        retrievals: One per search, in the order they were made.
        places: Passages to keep.
        weights: One non-negative factor per search; 1 each by default.
        rrf_k: Rank offset, in ranks; 60 is the value of the paper.

    References:
        Cormack, Clarke, Buettcher: Reciprocal Rank Fusion, SIGIR 2009.
    """
    weighted = list(zip(retrievals, weights or [1.0] * len(retrievals), strict=True))
    real = [(found, weight) for found, weight in weighted if found.hits and not found.fallback]
    used = real or [(found, weight) for found, weight in weighted if found.hits]
    if used and not real:  # FALLBACK_TOP_N holds for all searches together
        places = min(places, max(len(found.hits) for found, _ in used))
    scores: dict[tuple[Library, int], float] = {}
    best: dict[tuple[Library, int], tuple[int, Hit]] = {}
    for found, weight in used:
        for rank, hit in enumerate(found.hits, start=1):
            key = hit.passage.chunk.key
            scores[key] = scores.get(key, 0.0) + weight / (rrf_k + rank)
            if key not in best or rank < best[key][0]:
                best[key] = (rank, hit)
    order = sorted(scores, key=lambda key: -scores[key])[:places]
    return Retrieval(
        tuple(replace(best[key][1], score=scores[key]) for key in order),
        _notices(retrievals, fallback=not real),
        max((found.confidence for found, _ in used), default=0.0),
        bool(used) and not real,
        next((found.text for found in retrievals), ""),
        next((found.searched for found in retrievals), ""),
    )


def _notices(retrievals: Sequence[Retrieval], *, fallback: bool) -> tuple[Notice, ...]:
    """Return each notice once, without fallbacks if another search succeeded."""
    said = dict.fromkeys(notice for found in retrievals for notice in found.notices)
    return tuple(
        notice
        for notice in said
        if fallback or notice.code not in ("fallback_used", "filter_matched_nothing")
    )


def _fitting(embedder: Embedder, passage: str) -> str:
    """Return the passage cut at the last sentence that the embedder reads whole.

    Its first words if one sentence is too long.
    """
    limit = embedder.identity.max_tokens
    ends = [end for _, end in sentence_spans(passage)] or [len(passage)]
    heads = [passage[:end] for end in ends]
    fitting = [
        head
        for head, tokens in zip(heads, embedder.count_tokens(heads), strict=True)
        if tokens <= limit
    ]
    if fitting:
        return fitting[-1]
    words = heads[0].split()
    while len(words) > 1 and embedder.count_tokens([" ".join(words)])[0] > limit:
        words = words[: len(words) // 2]
    return " ".join(words)
