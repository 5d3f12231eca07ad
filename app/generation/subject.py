"""Find the names and numbers of a question that no passage holds.

People, places, models, titles, numbers.

A question about a thing that the passages never name is not answered by them, however near they are
in meaning. Lists of references and tables of contents name much and say nothing, so they do not
count.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from app.core.function_words import CLAIMLESS_WORDS
from app.core.languages import DEFAULT, LANGUAGES
from app.core.languages.detection import language_of
from app.core.text import tokenise
from app.core.types import Evidence, Passage
from app.generation.reading import ReadPassage, spelt_figures
from app.generation.spelling import is_named

LISTS = frozenset({"references", "contents"})
"""Sections that name what can be read elsewhere."""
_WORD = re.compile(r"[^\W_]+(?:[.'\u2019-][^\W_]+)*")
_POSSESSIVE = re.compile(r"['\u2019]s\Z")
_FUNCTION_WORDS = CLAIMLESS_WORDS["en"]
_ORDINALS = dict(
    zip(
        ("1st", "2nd", "3rd", "4th", "5th", "6th", "7th", "8th", "9th", "10th"),
        tokenise("first second third fourth fifth sixth seventh eighth ninth tenth"),
        strict=True,
    )
)
_FEWEST = 3
"""Words from which a question that capitalises each of them is set as a title, and tells no
names."""


def named_things(question: str) -> tuple[str, ...]:
    """Return a question's names and numbers, each once; neighbours are one name.

    A capital counts inside a word and behind the first word. A question in lower case, one set as a
    title, or one in a language that capitalises every noun names its numbers alone.
    """
    words = [(match.start(), match.end()) for match in _WORD.finditer(question)]
    shown = [_is_name(question[start:end], first=at == 0) for at, (start, end) in enumerate(words)]
    language = LANGUAGES.get(language_of(question))
    nouns = language is not None and language.nouns_are_capitalised
    if nouns or (len(words) >= _FEWEST and all(question[start].isupper() for start, _ in words)):
        shown = [any(char.isdigit() for char in question[start:end]) for start, end in words]
    names: list[str] = []
    for at, (start, end) in enumerate(words):
        if not shown[at]:
            continue
        if at and shown[at - 1] and question[words[at - 1][1] : start] == " ":
            names[-1] += question[start - 1 : end]
        else:
            names.append(question[start:end])
    return tuple(dict.fromkeys(_POSSESSIVE.sub("", name) for name in names))


def missing_things(question: str, evidence: Sequence[Evidence]) -> tuple[str, ...]:
    """Return a question's names with a word that no passage has in any spelling.

    Args:
        question: What was asked.
        evidence: What was found for it.
    """
    passages = [item.hit.passage for item in evidence]
    language = language_of(question) or DEFAULT
    if language != DEFAULT:
        return _missing_in(language, named_things(question), passages)
    return unnamed_in(
        question,
        [ReadPassage(passage) for passage in passages if passage.chunk.section not in LISTS],
    )


def unnamed_in(question: str, read: Sequence[ReadPassage]) -> tuple[str, ...]:
    """Return a question's names with a word that no text has in any spelling, joined or apart."""
    return tuple(name for name in named_things(question) if not _is_held(name, read))


def _is_held(name: str, read: Sequence[ReadPassage]) -> bool:
    tokens = _telling(name)
    joined = "".join(tokenise("".join(_WORD.findall(name))))
    return all(_holds(read, token) for token in tokens) or any(joined in one.known for one in read)


def _missing_in(
    language: str, named: Sequence[str], passages: Sequence[Passage]
) -> tuple[str, ...]:
    """Return the names that passages of a language lack; none where another spells them."""
    if any((passage.document.language or DEFAULT) != language for passage in passages):
        return ()
    held = {
        token
        for passage in passages
        for token in tokenise(f"{passage.document.title}\n{passage.chunk.text}", language)
    }
    return tuple(name for name in named if not held.issuperset(tokenise(name, language)))


def _telling(name: str) -> list[str]:
    tokens = (token for token in tokenise(name) if token not in _FUNCTION_WORDS)
    return [token for token in tokens if len(token) > 1 or token.isdigit()]


def _holds(read: Sequence[ReadPassage], token: str) -> bool:
    """Return whether a passage holds a word of a name, or a number in any form."""
    if token[0].isdigit():
        numbers = spelt_figures(token)
        spelt = _ORDINALS.get(token, token)
        return any({token, spelt} & one.known or numbers & one.figures for one in read)
    return any(token in one.known or is_named(token, one) for one in read)


def _is_name(word: str, *, first: bool) -> bool:
    if any(char.isdigit() for char in word) or any(char.isupper() for char in word[1:]):
        return True
    return not first and word[0].isupper() and not _is_function_word(word)


def _is_function_word(word: str) -> bool:
    return all(token in _FUNCTION_WORDS for token in tokenise(word))
