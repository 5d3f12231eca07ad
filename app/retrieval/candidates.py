"""Candidates: how many each leg is asked for, and what is known of each."""

from __future__ import annotations

import math
from collections.abc import Container, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from app.core.languages import DEFAULT, language_of
from app.core.lazy import lazy
from app.core.text import content_or_all, tokenise
from app.core.types import Library, Mode, Scored
from app.storage.words.port import LibraryWords

MIN_POOL = 50
"""Fewest candidates a leg is asked for (docs/how-it-works.md)."""

_POOLS: dict[tuple[Library, bool], tuple[int, int]] = {
    (Library.PAPERS, True): (4, 64),
    (Library.PAPERS, False): (3, 56),
    (Library.PUBLIC, True): (5, 96),
    (Library.PUBLIC, False): (4, 80),
}
"""(candidates per passage wanted, ceiling) by library and whether the mode is a broad one."""

_BROAD: frozenset[Mode] = frozenset({"general", "compare", "summary"})

_SLOTS: dict[Mode, int] = {
    "general": 24,
    "compare": 24,
    "methodology": 16,
    "datasets": 20,
    "reproduce": 16,
    "summary": 24,
}
"""Most passages an answer of this mode reads."""

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


def slots(mode: Mode) -> int:
    """Return the most passages an answer of this mode reads, at most 24."""
    return _SLOTS[mode]


def pool_size(library: Library, mode: Mode, top_k: int) -> int:
    """Return how many candidates to ask of each leg.

    About 4x `top_k` up to 64 in papers and 5x up to 96 in public for the broad modes, a little less
    for the others; never under 50 nor under 2x `top_k`, even above the ceiling.
    """
    factor, ceiling = _POOLS[library, mode in _BROAD]
    return max(min(factor * top_k, ceiling), MIN_POOL, 2 * top_k)


@dataclass(frozen=True, slots=True, eq=False)
class Candidates:
    """The union of both legs as columns of length n, dense hits first, no repeats."""

    ids: Ints
    """Chunk ids, int64 `[n]`."""
    distance: Floats
    """Cosine distance in [0, 2], float64 `[n]`; NaN while unknown."""
    bm25: Floats
    """BM25, float64 `[n]`, higher is better; NaN while unknown."""
    dense_rank: Ints
    """Place in the dense list from 1; 0 for chunks it did not return."""
    lexical_rank: Ints
    """Place in the lexical list from 1; 0 for chunks it did not return."""

    def __len__(self) -> int:
        return len(self.ids)

    def without_distance(self) -> Ints:
        """Return the ids whose distance is unknown, best lexical rank first."""
        rows = np.flatnonzero(np.isnan(self.distance))
        return self.ids[rows[np.argsort(self.lexical_rank[rows], kind="stable")]]

    def without_bm25(self) -> Ints:
        """Return the ids whose BM25 is unknown."""
        return self.ids[np.isnan(self.bm25)]

    def with_distances(self, known: Mapping[int, float]) -> Candidates:
        """Return candidates with unknown distances filled in where `known` has them."""
        return replace(self, distance=_filled(self.ids, self.distance, known))

    def with_bm25(self, known: Mapping[int, float]) -> Candidates:
        """Return candidates with unknown BM25 scores filled in where `known` has them."""
        return replace(self, bm25=_filled(self.ids, self.bm25, known))


def gather(dense: Sequence[Scored], lexical: Sequence[Scored]) -> Candidates:
    """Unite the lists of both legs, each sorted best first."""
    place: dict[int, int] = {}
    for hit in dense:
        place.setdefault(hit.chunk_id, len(place))
    for hit in lexical:
        place.setdefault(hit.chunk_id, len(place))
    (distance, dense_rank), (bm25, lexical_rank) = _columns(dense, place), _columns(lexical, place)
    return Candidates(
        np.fromiter(place, dtype=np.int64, count=len(place)),
        distance,
        bm25,
        dense_rank,
        lexical_rank,
    )


def _columns(hits: Sequence[Scored], place: Mapping[int, int]) -> tuple[Floats, Ints]:
    """Return the scores and the ranks of one leg in the places of all candidates."""
    scores, ranks = np.full(len(place), np.nan), np.zeros(len(place), dtype=np.int64)
    rows = [place[hit.chunk_id] for hit in hits]
    scores[rows], ranks[rows] = [hit.score for hit in hits], np.arange(1, len(hits) + 1)
    return scores, ranks


def _filled(ids: Ints, values: Floats, known: Mapping[int, float]) -> Floats:
    filled = values.copy()
    rows = np.flatnonzero(np.isnan(values))
    filled[rows] = [known.get(chunk_id, math.nan) for chunk_id in ids[rows].tolist()]
    return filled


# Measure how much of a question's wording a passage holds, weighted by idf.


def inverse_document_frequency(chunks: int, frequency: int) -> float:
    """Return BM25's idf, `ln(1 + (N - n + 0.5) / (n + 0.5))`; rare is larger.

    Args:
        chunks: Indexed chunks, N.
        frequency: Chunks that hold the token, n.

    References:
        Robertson, Zaragoza: The Probabilistic Relevance Framework, 2009, section 3.3, with Lucene's
            `1 +`.
    """
    return math.log(1 + (max(chunks - frequency, 0) + 0.5) / (frequency + 0.5))


@dataclass(frozen=True)
class QuestionWords:
    """The words of a question with how telling each is within a library."""

    weights: Mapping[str, float]
    """Idf by distinct content token; function words only where there is nothing else."""
    pairs: Mapping[tuple[str, str], float]
    """Tokens that stand side by side in the question, each pair weighing as much as its commoner
    word."""
    others: Mapping[str, QuestionWords] = field(default_factory=dict)
    """The same words stemmed by the rules of each other language of the library, by its code."""

    def stemmed_in(self, language: str) -> QuestionWords:
        """Return the words as documents of a language hold them; empty: English."""
        return self.others.get(language or DEFAULT, self)

    @lazy
    def _all_weights(self) -> float:
        return sum(self.weights.values())

    @lazy
    def _all_pairs(self) -> float:
        return sum(self.pairs.values())

    def coverage(self, text: Container[str], title: Container[str] = ()) -> float:
        """Return the idf-weighted share of the question's tokens in a passage.

        In [0, 1]; 0 for a question without tokens.

        Args:
            text: Stemmed tokens of the passage.
            title: Those of its document's title; a token that stands in both counts once.
        """
        if not self._all_weights:
            return 0.0
        return (
            sum(
                [
                    weight
                    for token, weight in self.weights.items()
                    if token in text or token in title
                ]
            )
            / self._all_weights
        )

    def adjacency(self, tokens: Sequence[str], distinct: Set[str]) -> float:
        """Return the weighted share of question pairs that are adjacent in a passage.

        In [0, 1]; 0 without pairs.

        Args:
            tokens: Stemmed tokens of the passage, in order.
            distinct: The same as a set; most pairs are ruled out by it alone.

        References:
            Metzler, Croft: A Markov random field model for term dependencies,
            SIGIR 2005 (ordered window of 2); the idf weights are ours
        """
        possible = [pair for pair in self.pairs if pair[0] in distinct and pair[1] in distinct]
        if not possible:
            return 0.0
        # Tokens hold no space: what stands side by side does so in the joined text, which is
        # searched in C.
        joined = f" {' '.join(tokens)} "
        return (
            sum(self.pairs[pair] for pair in possible if f" {pair[0]} {pair[1]} " in joined)
            / self._all_pairs
        )


def question_words(lexical: LibraryWords, library: Library, text: str) -> QuestionWords:
    """Return the words of a question with their idf in a library.

    Stemmed as the library's documents are: by the rules of the question's language if it holds any
    of that, else of its main one.
    """
    held, asked_in = lexical.languages(library), language_of(text)
    main = asked_in if asked_in in held else held[0]
    others = {
        code: _words_in(code, asked_in, lexical, library, text) for code in held if code != main
    }
    return replace(_words_in(main, asked_in, lexical, library, text), others=others)


def _words_in(
    language: str, asked_in: str, lexical: LibraryWords, library: Library, text: str
) -> QuestionWords:
    tokens = tokenise(text, language)
    distinct = list(dict.fromkeys(tokens))
    if not distinct:
        return QuestionWords({}, {})
    chunks, frequencies = lexical.document_frequencies(library, distinct)
    idf = {
        token: inverse_document_frequency(chunks, frequencies.get(token, 0)) for token in distinct
    }
    pairs = {pair: min(idf[pair[0]], idf[pair[1]]) for pair in pairwise(tokens)}
    content = content_or_all(distinct, language, asked_in)
    return QuestionWords({token: idf[token] for token in content}, pairs)
