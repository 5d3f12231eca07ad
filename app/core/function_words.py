"""List function words by language: words that shape a question, not its topic."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType

from app.core.text import tokenise


def _stems(words: str) -> frozenset[str]:
    return frozenset(tokenise(words))


FUNCTION_WORDS: Mapping[str, frozenset[str]] = MappingProxyType(
    {
        "en": _stems(
            "a about an and any are as at be been but by can could did do does for from had has have how if in into is it its many"
            " much of on or should so some such than that the their them then there these they this those to was were what when"
            " where which who whom whose why will with would you your i me my we our us he she his her not no"
        )
    }
)
"""Stemmed function words by language (ISO 639-1); rare in some libraries, so their idf does not tell."""

_CONNECTIVES: Mapping[str, frozenset[str]] = MappingProxyType(
    {
        "en": _stems(
            "after all also although am because before being between both doing during each further having here hers him however"
            " itself just may might more most must nor off once only other out over own same shall through too under until up upon"
            " very whether while"
        )
    }
)
"""Words that join claims or shade them: they tell in a question ("most", "after"), not in a statement."""

CLAIMLESS_WORDS: Mapping[str, frozenset[str]] = MappingProxyType(
    {
        language: words | _CONNECTIVES.get(language, frozenset())
        for language, words in FUNCTION_WORDS.items()
    }
)
"""Stemmed words that carry no claim of their own, by language."""


def content_or_all(tokens: Sequence[str], language: str = "en") -> list[str]:
    """Return a question's tokens without function words; all if none are left.

    Args:
        tokens: Stemmed, as `tokenise` returns them.
        language: Of the question; one without a list has no function words.
    """
    function_words = FUNCTION_WORDS.get(language, frozenset())
    return [token for token in tokens if token not in function_words] or list(tokens)
