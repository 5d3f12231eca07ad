"""Measure how much of a question's wording a passage holds, weighted by idf."""

from __future__ import annotations

import math
from collections.abc import Container, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from itertools import pairwise

from app.core.function_words import content_or_all
from app.core.languages import DEFAULT
from app.core.languages.detection import language_of
from app.core.lazy import lazy
from app.core.ports import LexicalIndex
from app.core.text import tokenise
from app.core.types import Library


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


def question_words(lexical: LexicalIndex, library: Library, text: str) -> QuestionWords:
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
    language: str, asked_in: str, lexical: LexicalIndex, library: Library, text: str
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
