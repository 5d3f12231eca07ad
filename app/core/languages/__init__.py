"""Hold what the program knows of each language; a language is an entry of languages.yml."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

import yaml

LATIN = "A-Za-z\u00aa-\u024f\u1e00-\u1eff"
"""Letters of the Latin script, for an expression's class."""


@dataclass(frozen=True, slots=True)
class Language:
    """One language; each step that depends on the language reads it from here."""

    code: str
    """ISO 639-1."""
    name: str
    """In English."""
    function_words: str
    """Words that shape a question, not its topic, separated by spaces; by them texts of one script
    are told apart."""
    refusal: str
    """Says that the documents do not answer the question."""
    greeting: str
    """Answers a greeting."""
    welcome: str
    """Answers thanks."""
    greetings: tuple[str, ...]
    """Expressions of greetings, in lower case without accents."""
    thanks: tuple[str, ...]
    """Expressions of thanks, the same."""
    what_is: str = ""
    """Asks for a definition, with `{}` for what is defined; empty: no question is suggested."""
    is_a: str = ""
    """Expression of the words between a thing and its definition, as ` ist (?:ein|der)`."""
    stemmer: str = ""
    """Snowball algorithm; empty: words are not stemmed."""
    letters: str = LATIN
    """Letters of its script, for an expression's class."""
    abbreviations: str = ""
    """After these words a full stop does not end a sentence: in lower case, without the stop."""
    nouns_are_capitalised: bool = False
    """Whether a capital inside a sentence does not mean a name."""
    connectives: str = ""
    """Words that join claims or shade them: they tell in a question, not in a statement."""


def _language(code: str, entry: Mapping[str, Any]) -> Language:
    fields: Any = {k: tuple(v) if isinstance(v, list) else v for k, v in entry.items()}
    return Language(code, **fields)


_FILE = Path(__file__).parents[1] / "languages.yml"
LANGUAGES: Mapping[str, Language] = MappingProxyType(
    {
        code: _language(code, entry)
        for code, entry in yaml.load(_FILE.read_text("utf-8"), Loader=yaml.CSafeLoader).items()
    }
)
"""By code."""

DEFAULT = "en"
"""The language of a document whose language is unknown."""


def language_name(code: str) -> str:
    """Return a language's English name; the code itself if it is not listed."""
    return LANGUAGES[code].name if code in LANGUAGES else code
