"""How much of a question's wording stands in a passage, weighted by how telling each word is."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence, Set

from app.core.ports import LexicalIndex
from app.core.text import tokenise
from app.core.types import Library

_FUNCTION_WORDS = frozenset(
    tokenise(
        "a about an and any are as at be been but by can could did do does for from had has have how if in into is it its many much"
        " of on or should so some such than that the their them then there these they this those to was were what when where which"
        " who whom whose why will with would you your i me my we our us he she his her not no"
    )
)
"""English words that say how something is asked, not what; rare in some libraries, so their idf does not tell."""


def inverse_document_frequency(chunks: int, frequency: int) -> float:
    """Return BM25's idf, `ln(1 + (N - n + 0.5) / (n + 0.5))`: positive, larger for rarer tokens.

    Args:
        chunks: Indexed chunks, N.
        frequency: Chunks that hold the token, n.

    References:
        Robertson, Zaragoza: The Probabilistic Relevance Framework, 2009, section 3.3, with Lucene's `1 +`.
    """
    return math.log(1 + (max(chunks - frequency, 0) + 0.5) / (frequency + 0.5))


def question_weights(lexical: LexicalIndex, library: Library, text: str) -> dict[str, float]:
    """Return the idf of each distinct stemmed content token of a question within a library.

    A question of function words alone keeps them all.
    """
    distinct = list(dict.fromkeys(tokenise(text)))
    tokens: Sequence[str] = [token for token in distinct if token not in _FUNCTION_WORDS] or distinct
    if not tokens:
        return {}
    chunks, frequencies = lexical.document_frequencies(library, tokens)
    return {token: inverse_document_frequency(chunks, frequencies.get(token, 0)) for token in tokens}


def coverage(weights: Mapping[str, float], tokens: Set[str]) -> float:
    """Return the idf-weighted share of the question's tokens that a passage holds, in [0, 1].

    Args:
        weights: `question_weights`; without any the coverage is 0.
        tokens: Stemmed tokens of the passage.
    """
    total = sum(weights.values())
    return sum(weight for token, weight in weights.items() if token in tokens) / total if total else 0.0
