"""Hold what the program knows of each language; a language is an entry of languages.yml."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache, lru_cache
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
    sums: str = ""
    """Words that ask for a sum, separated by spaces."""
    past: str = ""
    """Expression of words of a question that is about what was."""
    beside: str = ""
    """Expression of words by which a question asks for things next to the one that it names."""
    dated: str = ""
    """Expression of the labels before the date from which on a document is valid, in lower case."""
    short_labels: str = ""
    """Short forms in labels and what they mean, `no=number`, separated by spaces."""
    says_about: str = "What does {title} say about {heading}?"
    """Asks what a document says under a heading."""
    says_is: Mapping[str, str] = field(default_factory=dict, hash=False)
    """What asks for a thing that a text says what it is, by the expression behind its name."""
    says_how: Mapping[str, str] = field(default_factory=dict, hash=False)
    """What asks for something that a heading tells how to do, by the expression of the heading."""
    summarise: str = "Summarise {title}"
    """Asks for a summary in words that `app.answer.intent` knows."""
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
    first_person: str = ""
    """Pronouns by which a writer means himself, separated by spaces."""
    reference_lists: str = ""
    """Expression of the headings that a text's list of references stands under, in lower case."""
    pointing: Mapping[str, Any] = field(default_factory=dict, hash=False)
    """Forms by which a question leans on one before it, as `app.answer.pointing` reads them; empty:
    only a question without a word of its own does."""


def _language(code: str, entry: Mapping[str, Any]) -> Language:
    fields: Any = {k: tuple(v) if isinstance(v, list) else v for k, v in entry.items()}
    return Language(code, **fields)


_FILE = Path(__file__).with_name("languages.yml")
LANGUAGES: Mapping[str, Language] = MappingProxyType(
    {
        code: _language(code, entry)
        for code, entry in yaml.load(_FILE.read_text("utf-8"), Loader=yaml.CSafeLoader).items()
    }
)
"""By code."""


def words_like(expressions: Iterable[str]) -> re.Pattern[str]:
    """Return what finds a whole word or phrase of these expressions; empty ones have none."""
    return re.compile(rf"\b(?:{'|'.join(filter(None, expressions))})\b", re.IGNORECASE)


DEFAULT = "en"
"""The language of a document whose language is unknown."""


def language_name(code: str) -> str:
    """Return a language's English name; the code itself if it is not listed."""
    return LANGUAGES[code].name if code in LANGUAGES else code


_SAMPLE = 4_000
"""Characters looked at: the beginning of a document and its middle, half each."""
_FEWEST = 0.05
"""Share of a long text's words that are function words, under which it is no prose."""
_LONG = 60
"""Words from which that share is asked for: a table or a list has few."""
_OF_OTHER_SCRIPTS = 3
"""What a letter of another script counts: its texts name things in Latin letters, Latin ones seldom
the reverse."""
_MOST_OF_A_WORD = 5
"""How often a word counts: a name such as Los Angeles may come often."""
_KANA_SHARE = 0.1
"""Share of kana from which a text in Han and kana is Japanese."""


@lru_cache(maxsize=256)
def language_of(text: str) -> str:
    """Return the code of a text's language; empty if it cannot be told.

    The script with the most letters decides; among languages of one script, the number of function
    words. A tie is not decided, except for English.
    """
    middle, half = len(text) // 2, _SAMPLE // 2
    sample = text if len(text) <= _SAMPLE else f"{text[:half]} {text[middle : middle + half]}"
    letters = {
        script: len(found.findall(sample)) * (1 if script == LATIN else _OF_OTHER_SCRIPTS)
        for script, found in _scripts().items()
    }
    japanese = letters.get(LANGUAGES["ja"].letters, 0)
    chinese = letters.get(LANGUAGES["zh"].letters, 0)
    if japanese > _KANA_SHARE * (japanese + chinese):
        letters[LANGUAGES["ja"].letters] = japanese + chinese
    script = max(letters, key=letters.__getitem__)
    if not letters[script]:
        return ""
    candidates = [code for code, one in LANGUAGES.items() if one.letters == script]
    return candidates[0] if len(candidates) == 1 else _by_function_words(sample, candidates)


def _by_function_words(sample: str, candidates: list[str]) -> str:
    words = [word.lower() for word in _WORD.findall(sample)]
    counts = Counter(words)
    held = {
        code: sum(
            min(counts[word], _MOST_OF_A_WORD) for word in _function_words(code) & counts.keys()
        )
        for code in candidates
    }
    best = max(held, key=held.__getitem__)
    if not held[best] or (len(words) >= _LONG and held[best] < _FEWEST * len(words)):
        return ""
    tied = [code for code, n in held.items() if n == held[best]]
    return best if len(tied) == 1 else DEFAULT if DEFAULT in tied else ""


_WORD = re.compile(r"[^\W\d_]{2,}")
"""Single letters are variables and ends of English words (`what's`) as often as words."""


@cache
def _scripts() -> dict[str, re.Pattern[str]]:
    return {one.letters: re.compile(f"[{one.letters}]") for one in LANGUAGES.values()}


@cache
def _function_words(code: str) -> frozenset[str]:
    one = LANGUAGES[code]
    return frozenset(f"{one.function_words} {one.connectives}".split())
