"""Compute features of sentences for a question.

Rows are compared within one question only, so signals whose scale depends on a model or a library
are used relative to the other candidates; that lets one set of weights serve any embedder.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from app.core.ports import Embedder
from app.core.text import tokenise, word_count
from app.core.types import Evidence
from app.generation.alignment import WeightedTokens, term_weights
from app.generation.candidates import Candidate
from app.generation.kinds import KINDS, brings_of, question_kinds
from app.generation.reading import character_grams, content_tokens

Floats = npt.NDArray[np.float64]

FEATURES = (
    "coverage",  # idf-weighted share of the question's words in the sentence
    "coverage_around",  # the same with its neighbouring sentences
    # the same of the next sentence alone: the answer seldom stands before what it answers
    "coverage_next",
    "coverage_passage",  # the same of title and passage
    "coverage_rank",  # coverage less the best of all candidates
    # share of the question's character 4-grams, idf-weighted: other endings, typing errors
    "grams",
    "pairs",  # share of the question's neighbouring content words that are neighbours here
    "similarity",  # cosine to the question in standard deviations from the mean of the candidates
    "similarity_around",  # the better neighbour's
    "similarity_with_previous",  # of the mean of the sentence's vector and the one before it
    "passage",  # score of the passage relative to the best
    "time",  # asked for a time, and it names one that the question does not
    "number",  # asked for a number, likewise
    "name",  # asked for a person or place, and it has a name that the question does not
    "reason",  # asked why, and it has a word of cause
    "whole",  # begins and ends like a sentence
    "carried",  # opens with a pronoun, times the coverage of the sentence before it
    "length",  # logarithm of its words
)
"""Columns of `feature_rows`, in order."""

MAX_EMBEDDED = 24
"""Sentences embedded per question; with MiniLM int8 on two idle cores about 50 ms."""


@dataclass(frozen=True, slots=True, eq=False)
class Vectors:
    """Sentence vectors of one question."""

    rows: npt.NDArray[np.float32]
    """`[n, dim]`, norm 1; zeros where a candidate was not embedded."""
    query: npt.NDArray[np.float32]
    """`[dim]`, norm 1."""
    cosines: Floats
    """float64 `[n]` in [-1, 1]; NaN where a candidate was not embedded."""


def sentence_vectors(
    question: str,
    found: Sequence[Candidate],
    weights: Mapping[str, float],
    embedder: Embedder | None,
) -> Vectors | None:
    """Return vectors of the lexically best candidates.

    A sentence is embedded behind its document's title, so that "it" has something to mean; one that
    the embedder would have to cut is not embedded. None without an embedder or candidates.
    """
    if embedder is None or not found:
        return None
    asked = WeightedTokens(content_tokens(question), weights)
    by_key = {candidate.key: candidate for candidate in found}
    promise = [
        asked.share(around(candidate, by_key)) + 1.0 / (1 + candidate.item.n) for candidate in found
    ]
    chosen = [int(row) for row in np.argsort(-np.asarray(promise), kind="stable")[:MAX_EMBEDDED]]
    texts = [f"{found[row].item.hit.passage.document.title}: {found[row].text}" for row in chosen]
    fits = [count <= embedder.identity.max_tokens for count in embedder.count_tokens(texts)]
    rows = [row for row, fit in zip(chosen, fits, strict=True) if fit]
    if not rows:
        return None
    query = embedder.embed_query(question)
    vectors = np.zeros((len(found), len(query)), dtype=np.float32)
    vectors[rows] = embedder.embed_passages(
        [text for text, fit in zip(texts, fits, strict=True) if fit]
    )
    cosines = np.full(len(found), np.nan)
    cosines[rows] = vectors[rows] @ query
    return Vectors(vectors, query, cosines)


def feature_rows(
    question: str,
    found: Sequence[Candidate],
    weights: Mapping[str, float],
    vectors: Vectors | None,
) -> Floats:
    """Return one row of FEATURES per candidate, float64 `[n, len(FEATURES)]`.

    Args:
        question: What was asked.
        found: Candidates of one question.
        weights: Weight per stemmed token, from `term_weights` over the candidates.
        vectors: From `sentence_vectors`.
    """
    asked = content_tokens(question)
    pairs = set(pairwise(asked))
    kinds = question_kinds(question)
    by_key = {candidate.key: row for row, candidate in enumerate(found)}
    wanted = WeightedTokens(asked, weights)
    own = [wanted.share(candidate.tokens) for candidate in found]
    best_own = max(own, default=0.0)
    best_score = max((candidate.item.hit.score for candidate in found), default=1.0) or 1.0
    passages = {
        n: wanted.share(tokens_with_title(item))
        for n, item in {candidate.item.n: candidate.item for candidate in found}.items()
    }
    grams = _gram_shares(question, found)
    similar = _similarities(found, by_key, vectors)
    lookup = {candidate.key: candidate for candidate in found}
    texts = [candidate.text for candidate in found]
    brought = {kind: brings_of(question, texts, kind) for kind in kinds}
    nothing = [False] * len(found)
    rows = []
    for row, candidate in enumerate(found):
        before = by_key.get((candidate.item.n, candidate.ordinal - 1))
        after = by_key.get((candidate.item.n, candidate.ordinal + 1))
        ordered = content_tokens(candidate.text)
        rows.append(
            [
                own[row],
                wanted.share(around(candidate, lookup)),
                own[after] if after is not None else 0.0,
                passages[candidate.item.n],
                own[row] - best_own,
                grams[row],
                len(pairs & set(pairwise(ordered))) / len(pairs) if pairs else 0.0,
                *similar[row],
                candidate.item.hit.score / best_score,
                *(float(brought.get(kind, nothing)[row]) for kind in KINDS),
                float(candidate.whole),
                own[before] if before is not None and candidate.points_back else 0.0,
                math.log(1 + word_count(candidate.text)),
            ]
        )
    return np.asarray(rows, dtype=np.float64).reshape(len(found), len(FEATURES))


def tokens_with_title(item: Evidence) -> set[str]:
    """Return the distinct stemmed tokens of a passage and its document's title."""
    return set(tokenise(f"{item.hit.passage.document.title}\n{item.hit.passage.chunk.text}"))


def candidate_weights(found: Sequence[Candidate]) -> dict[str, float]:
    """Return a weight per stemmed token: rarer among the candidates is heavier."""
    return term_weights(candidate.text for candidate in found)


def around(candidate: Candidate, lookup: Mapping[tuple[int, int], Candidate]) -> set[str]:
    """Return the stemmed tokens of a candidate and its neighbours."""
    n, ordinal = candidate.key
    near = (lookup.get((n, place)) for place in (ordinal - 1, ordinal, ordinal + 1))
    return {token for one in near if one is not None for token in one.tokens}


def _similarities(
    found: Sequence[Candidate],
    by_key: Mapping[tuple[int, int], int],
    vectors: Vectors | None,
) -> list[tuple[float, float, float]]:
    """Return each candidate's own, neighbour's and with-previous similarity.

    In standard deviations; of two neighbours the better one.
    """
    if vectors is None:
        return [(0.0, 0.0, 0.0)] * len(found)
    matrix, cosines = vectors.rows, vectors.cosines
    known = cosines[~np.isnan(cosines)]
    mean, deviation, lowest = float(known.mean()), max(float(known.std()), 1e-3), float(known.min())
    values = np.nan_to_num(cosines, nan=lowest)  # not embedded: lexically the weakest

    def scaled(value: float) -> float:
        return min(3.0, max(-3.0, (value - mean) / deviation))

    result = []
    for row, candidate in enumerate(found):
        before = by_key.get((candidate.item.n, candidate.ordinal - 1))
        after = by_key.get((candidate.item.n, candidate.ordinal + 1))
        beside = [values[near] for near in (before, after) if near is not None] or [values[row]]
        joint = matrix[row] + (matrix[before] if before is not None else 0.0)
        norm = float(np.linalg.norm(joint))
        mixed = float(joint @ vectors.query) / norm if norm else lowest
        result.append((scaled(values[row]), scaled(float(max(beside))), scaled(mixed)))
    return result


def _gram_shares(question: str, found: Sequence[Candidate]) -> list[float]:
    asked = character_grams(question)
    held = [character_grams(candidate.text) & asked for candidate in found]
    weight = {
        gram: math.log(1 + len(held) / (1 + sum(gram in one for one in held))) for gram in asked
    }
    whole = sum(weight.values())
    return [sum(weight[gram] for gram in one) / whole if whole else 0.0 for one in held]
