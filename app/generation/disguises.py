"""Undo disguises of a sentence: lookalikes, digits, set letters, Base64.

`plain` comes first and once; what it returns is what all patterns read. `unveiled` yields further
readings, for the few sentences that have one. All of it takes time in proportion to the text.

References:
    Unicode Technical Standard 39, confusables.txt (a choice of the letters that fonts draw like
    Latin ones); RFC 4648 (Base64).
"""

from __future__ import annotations

import base64
import binascii
import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import cache

from app.generation.directive_words import directive_words

_MARKS = re.compile("[\u0300-\u036f]+")
_APART = re.compile(
    r"(?<![^\W_])[^\W_](?:[^\w\n]|[_\n]){1,4}(?:[^\W_](?:[^\w\n]|[_\n]){1,4}){4,}[^\W_](?![^\W_])"
)
_LEAST_APART = 6
_LONG_WORD = 12
"""Letters, set apart without a longer gap between the words, make one of so many at least."""
_LEET = re.compile(r"[A-Za-z][0134578@$!|+]{1,2}[A-Za-z]")
_LEET_WORD = re.compile(r"[\w@$!|+]*[\w@$|+]")
_LEAST_LEET = 3
"""Digits between letters; fewer stand in names of genes and products."""
_LEET_LETTERS = str.maketrans(
    {
        "0": "o",
        "3": "e",
        "4": "a",
        "5": "s",
        "7": "t",
        "8": "b",
        "9": "g",
        "@": "a",
        "$": "s",
        "+": "t",
    }
)
_ONES = re.compile("[1!|]")
_BASE64 = re.compile(r"(?<![A-Za-z0-9+/_-])[A-Za-z0-9+/_-]{20,}+(?:\s[A-Za-z0-9+/_-]{20,}+)*+")
_URL_SAFE = str.maketrans("-_", "+/")


def plain(sentence: str) -> str:
    """Return a sentence with forms and accents folded and lookalikes replaced.

    Lookalikes become the Latin letters they resemble. ASCII text comes back unchanged; lengths are
    not kept. Cyrillic and Greek words become nonsense, which no pattern knows.
    """
    if sentence.isascii():
        return sentence
    folded = _MARKS.sub("", unicodedata.normalize("NFKD", sentence))
    return folded.translate(directive_words().lookalikes) if _lookalike().search(folded) else folded


@cache
def _lookalike() -> re.Pattern[str]:
    return re.compile(f"[{''.join(map(chr, directive_words().lookalikes))}]")


def unveiled(sentence: str, found: Sequence[str], known: Callable[[str], bool]) -> Iterator[str]:
    """Yield what a plain sentence may say in disguise; nothing for most.

    Args:
        sentence: As `plain` returns it.
        found: Its words, lower case.
        known: Whether a word in lower case is one that instructions are made of; settles which
            letter a `1` is.
    """
    lengths = list(map(len, found))
    if lengths.count(1) >= _LEAST_APART:
        together = _APART.sub(lambda run: _joined(run.group()), sentence)
        if together != sentence:
            yield together
            yield from _divided(together)
            sentence = together
    if _may_be_leet(sentence, found) and len(_LEET.findall(sentence)) >= _LEAST_LEET:
        yield _LEET_WORD.sub(lambda word: _spelt(word.group(), known), sentence)
    if max(lengths, default=0) >= _LONG_WORD:
        for run in _BASE64.finditer(sentence):
            decoded = _decoded(run.group())
            if decoded:
                yield plain(decoded)


def _may_be_leet(sentence: str, found: Sequence[str]) -> bool:
    """Return whether two words mix digits and letters, or a letter-like sign occurs."""
    if (
        list(map(str.isalpha, found)).count(False) > 1
        and sum(not (word.isalpha() or word.isdigit()) for word in found) > 1
    ):
        return True
    return "@" in sentence or "$" in sentence


def _divided(sentence: str) -> Iterator[str]:
    """Yield long words divided into words of instructions.

    Letters between them are left out.
    """
    for word in sentence.split():
        if len(word) >= _LONG_WORD:
            yield " ".join(_parts_of(word.lower()))


def _parts_of(run: str) -> list[str]:
    """Return the known words that together cover most letters of a run, in order."""
    known = _known_parts()
    covered, part = [0] * (len(run) + 1), [""] * (len(run) + 1)
    for end in range(1, len(run) + 1):
        covered[end] = covered[end - 1]
        for length in range(2, min(end, _LONGEST_PART) + 1):
            piece = run[end - length : end]
            if piece in known and covered[end - length] + length > covered[end]:
                covered[end], part[end] = covered[end - length] + length, piece
    found: list[str] = []
    end = len(run)
    while end:
        if part[end]:
            found.append(part[end])
        end -= len(part[end]) or 1
    return found[::-1]


@cache
def _known_parts() -> frozenset[str]:
    """Return words of instructions, and small words between them."""
    stems = {
        spelling.rstrip("*")
        for spellings in directive_words().words.values()
        for spelling in spellings
    }
    small = (
        "you are is to no not on my me ai as be dan any all now the and it in of do that this"
        " with for an"
    )
    return frozenset(stem for stem in stems if len(stem) > _SHORT_PART).union(small.split())


_SHORT_PART = 3
"""Letters; shorter ones of four languages stand in every word."""
_LONGEST_PART = 16


def _joined(run: str) -> str:
    """Return letters set apart as words; the commonest gap is inside words.

    A longer or different gap separates words.
    """
    pieces = re.findall(r"([^\W_])([\W_]*)", run)
    usual = Counter(gap for _, gap in pieces[:-1]).most_common(1)[0][0]
    return "".join(letter + ("" if gap == usual or not gap else " ") for letter, gap in pieces)


def _spelt(word: str, known: Callable[[str], bool]) -> str:
    """Return a word with letters for its digits."""
    letters = word.lower().translate(_LEET_LETTERS)
    first, second = _ONES.sub("i", letters), _ONES.sub("l", letters)
    return second if not known(first) and known(second) else first


def _decoded(run: str) -> str:
    """Return the text that a run of Base64 holds, empty when it is something else."""
    packed = "".join(run.split()).translate(_URL_SAFE)
    packed = packed[: len(packed) - (len(packed) % 4 == 1)]
    try:
        text = base64.b64decode(packed + "=" * (-len(packed) % 4), validate=True).decode()
    except (binascii.Error, UnicodeDecodeError):
        return ""
    return text if text.replace("\n", " ").isprintable() else ""
