"""Run the searches of a question, bound to its libraries, filters and mode.

A strategy only names what to search for.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain

import numpy as np

from app.core.errors import NotFound, ProviderError
from app.core.ports import Embedder
from app.core.sentences import sentence_spans
from app.core.text import tokenise
from app.core.trace import Trace
from app.core.types import (
    Document,
    Evidence,
    FloatArray,
    Heading,
    Hit,
    Library,
    Notice,
    Passage,
    Question,
    Scope,
)
from app.core.vectors import l2_normalise
from app.generation.language.reading import content_tokens
from app.retrieval.legs import merge
from app.retrieval.pipeline import Retriever
from app.retrieval.request import Retrieval, SearchRequest
from app.retrieval.search import slots
from app.storage.catalog.documents import Catalog

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
    together: dict[str, tuple[str, ...]] = field(default_factory=dict)
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
            if text in self.together:
                found = fused([found, *map(self, self.together[text])], self.places)
            self._found[text, passage] = found
        return self._found[text, passage]

    def weak(self, text: str, top_k: int | None = None) -> Retrieval:
        """Search for a text and keep what the cutoff would drop."""
        question = replace(self.question, retrieve_only=True, top_k=top_k or self.question.top_k)
        return replace(self, question=question, together={}, _found={})(text)

    def spelt(self, text: str) -> str:
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


# Find the documents that a request names: by its filter, or by a title in its words.

MOST_DOCUMENTS = 12
"""Documents that one answer goes through at most."""
_LOOKED_AT = 20
"""Documents whose title holds the name, from which the nearest is taken."""
_GENERIC = frozenset(
    tokenise(
        "document paper text file report article pdf page mail email e-mail message letter reply"
    )
)
"""Stemmed words that name a document only as "this one"."""
_TITLE_SHARE = 0.5
"""Of a title's words that a name has, where several titles have the whole name."""


def names_something(named: str) -> bool:
    """Return whether words name a document, not only "it" or "this paper"."""
    return bool(set(content_tokens(named)) - _GENERIC)


def with_headings(catalog: Catalog, evidence: Sequence[Evidence]) -> tuple[Evidence, ...]:
    """Return evidence with the headings above and within each passage."""
    outlines: dict[tuple[Library, str, int], tuple[Heading, ...]] = {}
    for library in {item.hit.passage.chunk.library for item in evidence}:
        chunks = [item.hit.passage.chunk for item in evidence]
        named = {(one.doc_id, one.revision) for one in chunks if one.library == library}
        for (doc_id, revision), headings in catalog.outlines(library, named).items():
            outlines[library, doc_id, revision] = headings
    placed = []
    for item in evidence:
        chunk = item.hit.passage.chunk
        path: list[Heading] = []
        for heading in outlines.get((chunk.library, chunk.doc_id, chunk.revision), ()):
            if heading.start >= chunk.end:
                break
            if heading.start < chunk.start:
                path = [one for one in path if one.level < heading.level]
            path.append(heading)
        placed.append(replace(item, headings=tuple(path)))
    return tuple(placed)


@dataclass(frozen=True, slots=True)
class Targets:
    """Finds documents; reads the catalog alone."""

    catalog: Catalog

    def of(
        self, question: Question, named: str, search: Callable[[str], Retrieval]
    ) -> tuple[Document, ...]:
        """Return the documents meant, best first; empty if the words name none.

        Args:
            question: Its `doc_ids` come before its words.
            named: What the words name; empty: "this document", which is the only one there is.
            search: Searches for the name where no title has all of it.
        """
        if question.filters.doc_ids:
            return self.given(question)
        if not content_tokens(named):
            return self.only_one(question)
        return self.titled(question, named) or _nearest(
            list(_of_hits(search(named).hits, named)), named
        )

    def own(self, question: Question, named: str) -> tuple[Document, ...]:
        """Return a person's own document that words name by its title; else none.

        Of a filter's documents alone where there is one.
        """
        if not names_something(named):
            return self.given(question) or self.only_one(question)
        found = self.titled(question, named)
        chosen = question.filters.doc_ids
        return tuple(
            one
            for one in found
            if one.library is Library.PAPERS and (not chosen or one.doc_id in chosen)
        )

    def listed(self, question: Question) -> tuple[tuple[Document, ...], int]:
        """Return documents of a question's filter, or its libraries, and how many there are.

        Those of each library come newest first.
        """
        if question.filters.doc_ids:
            given = self.given(question)
            return given[:MOST_DOCUMENTS], len(given)
        scope = libraries(question.library)
        found = (self.catalog.documents(library, limit=MOST_DOCUMENTS)[0] for library in scope)
        count = sum(self.catalog.counts(library).documents for library in scope)
        return tuple(chain.from_iterable(found))[:MOST_DOCUMENTS], count

    def titled(self, question: Question, named: str) -> tuple[Document, ...]:
        """Return the document whose title or file name has all words of a name; else none."""
        found = [
            one
            for library in libraries(question.library)
            for one in self.catalog.documents(library, named, limit=_LOOKED_AT)[0]
            if set(tokenise(named)) <= _name_tokens(one)
        ]
        return _nearest(found, named)

    def evidence(self, documents: Iterable[Document], after: int = 0) -> tuple[Evidence, ...]:
        """Return all passages of documents in reading order, numbered from `after` + 1."""
        passages = [
            Passage(chunk, document)
            for document in documents
            for chunk in self.catalog.chunks(document.library, document.doc_id, document.revision)
        ]
        return tuple(Evidence(n, Hit(one, 1.0)) for n, one in enumerate(passages, after + 1))

    def given(self, question: Question) -> tuple[Document, ...]:
        """Return the documents of a question's filter that exist in its libraries."""
        found: list[Document] = []
        for doc_id in question.filters.doc_ids:
            for library in libraries(question.library):
                try:
                    found.append(self.catalog.document(library, doc_id))
                except NotFound:
                    continue
        return tuple(found)

    def only_one(self, question: Question) -> tuple[Document, ...]:
        """Return the one document of a person's own that there is; else none."""
        scope = libraries(question.library)
        found = [one for library in scope for one in self.catalog.documents(library, limit=1000)[0]]
        own = [one for one in found if not one.sample] or found
        return tuple(own) if len(own) == 1 else ()


def _nearest(found: Sequence[Document], named: str) -> tuple[Document, ...]:
    """Return the document with the nearest title; none if several are far from the name."""
    if len(found) > 1:
        found = [one for one in found if _share(one.title, named) >= _TITLE_SHARE]
    return (max(found, key=lambda one: _share(one.title, named)),) if found else ()


def _of_hits(hits: Sequence[Hit], named: str) -> Iterable[Document]:
    """Yield documents that a search found and whose title has every telling word."""
    documents = {hit.passage.document.doc_id: hit.passage.document for hit in hits}
    wanted = set(content_tokens(named))
    return (one for one in documents.values() if wanted <= _name_tokens(one))


def _name_tokens(document: Document) -> set[str]:
    return {*tokenise(document.title), *tokenise(document.filename)}


def _share(title: str, named: str) -> float:
    """Return the share of a title's words that a name has, in [0, 1]."""
    words = set(tokenise(title))
    return len(words & set(tokenise(named))) / max(1, len(words))
