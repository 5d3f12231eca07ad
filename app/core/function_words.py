"""Leave function words out: words that shape a question, not its topic."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from types import MappingProxyType

from app.core.languages import DEFAULT, LANGUAGES
from app.core.text import tokenise


@cache
def function_words(language: str, stemmed_in: str = "") -> frozenset[str]:
    """Return the function words of a language as tokens; empty without a list.

    They are rare in some libraries, so their idf does not tell.

    Args:
        language: Whose words.
        stemmed_in: By the rules of which language they are stemmed; empty: of their own.
    """
    listed = LANGUAGES[language].function_words if language in LANGUAGES else ""
    return _tokens(listed, stemmed_in or language)


def _tokens(listed: str, language: str) -> frozenset[str]:
    return frozenset(token for word in listed.split() for token in tokenise(word, language))


CLAIMLESS_WORDS: Mapping[str, frozenset[str]] = MappingProxyType(
    {
        code: function_words(code) | _tokens(language.connectives, code)
        for code, language in LANGUAGES.items()
    }
)
"""Stemmed words that carry no claim of their own, by language."""


def content_or_all(tokens: Sequence[str], language: str = DEFAULT, asked_in: str = "") -> list[str]:
    """Return a question's tokens without function words; all if none are left.

    Args:
        tokens: Stemmed, as `tokenise` returns them for `language`.
        language: Of the documents that are searched.
        asked_in: Of the question; empty: unknown, or the same.
    """
    empty = function_words(language)
    if asked_in and asked_in != language:
        empty |= function_words(asked_in, language)
    return [token for token in tokens if token not in empty] or list(tokens)
