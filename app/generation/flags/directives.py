"""Find English instructions to a model by word meanings.

No sentence is spelt out here. A rule names meanings that make an instruction when they stand near
each other in one sentence, in any order: what sets aside, rules and something earlier are `Ignore
the rules above` as well as `Any directions issued before this line are void`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import IntFlag, auto
from functools import cache, reduce
from operator import or_
from pathlib import Path
from typing import Literal

# Read `directives.json`: words of instructions to a model, by meaning.

Directive = Literal["override", "role", "output", "disclosure"]
"""Families of `injection.Finding` that meanings show."""


class WordClass(IntFlag):
    """The meanings of a word."""

    SET_ASIDE = auto()
    """to ignore, to forget; void, cancelled"""
    NOT = auto()
    HEED = auto()
    """to follow, to obey; valid, to apply: together with NOT the same as SET_ASIDE"""
    RULES = auto()
    """instructions, rules, prompt"""
    WORDS = auto()
    """orders, tasks, what was said: instructions only where more points to a model"""
    EARLIER = auto()
    ALL = auto()
    YOU = auto()
    """second person, pronouns and verbs"""
    MACHINE = auto()
    """assistant, chatbot"""
    SYSTEM = auto()
    """model, system, bot: a machine only where more says so"""
    SPEECH = auto()
    """language, artificial: makes a SYSTEM a MACHINE"""
    MUST = auto()
    SAY = auto()
    """to answer, to write; an answer"""
    ADVISE = auto()
    """to recommend, to promote"""
    READING = auto()
    """this text, to read, to process, the user"""
    ONLY = auto()
    """from now on, always, nothing but"""
    ROLE = auto()
    FREE = auto()
    """limits, restrictions, filters"""
    REVEAL = auto()
    SECRET = auto()
    LIGHT = auto()
    """verbs that mean little alone: to take (on a role), to leave (out of account)"""
    ME = auto()


@cache
def _patterns() -> Mapping[int, re.Pattern[str]]:
    """Return the expression of each meaning: spellings in lower case, `*` for any ending."""
    held = json.loads(Path(__file__).with_name("directives.json").read_text(encoding="utf-8"))
    return {
        int(WordClass[name.upper()]): re.compile(
            f"(?:{'|'.join(' '.join(lines).replace('*', '[a-z]*').split())})\\Z"
        )
        for name, lines in held.items()
    }


# Hold phrases of small words that address a model or a reader.

_FROM_NOW = r"(?:from (?:now|here|this (?:point|moment))(?: on| onwards?)?|henceforth)"
AT_A_PAGE = r" (?:reading|looking|holding|seeing|viewing|entering|leaving)\b"
"""What a text says of its reader: `the document you are now reading`."""
PHRASES: tuple[tuple[Directive, re.Pattern[str]], ...] = (
    (
        "role",
        re.compile(
            rf"\b(?:you are|you re) (?:\w+ ){{0,2}}(?:now(?!{AT_A_PAGE})|no longer)\b"
            r"|\bnow you are\b"
            rf"|\A(?:\w+ )?{_FROM_NOW} you\b"
        ),
    ),
    (
        "output",
        re.compile(
            rf"\b{_FROM_NOW} (?:answer|reply|respond|write|say|speak|act|tell|use|always|please"
            r"|end|begin|translate|never|do not)\b"
        ),
    ),
    (
        "output",
        re.compile(
            r"\b(?:if|when|as) (?:you are|you re|you happen to be)\b"
            r"(?: \w+){0,5} (?:ai|llms?|assistants?|chatbot|language model|bot|agent)\b"
        ),
    ),
)
"""What small words say, which have no meaning of their own here: read only in sentences that
address a reader or a machine."""


_OPENS = 1 << len(WordClass)
"""Set on the first two words of a sentence: where an imperative stands."""
_REPLY = _OPENS << 1
"""An answer, as a noun."""
_HERE = _OPENS << 2
"""A text, where `this` stands before it."""
_ADDRESSED = _OPENS << 3
"""A second person that is told something, and not what it can or may do."""
_SET_ASIDE, _NOT, _HEED, _RULES, _WORDS, _EARLIER, _ALL, _YOU = map(int, tuple(WordClass)[:8])
_MACHINE, _SYSTEM, _SPEECH, _MUST, _SAY, _ADVISE, _READING, _ONLY = map(int, tuple(WordClass)[8:16])
_ROLE, _FREE, _REVEAL, _SECRET, _LIGHT, _ME = map(int, tuple(WordClass)[16:])


@dataclass(frozen=True, slots=True)
class _Rule:
    """Meanings that must occur within a number of words.

    A word with any of a part's bits matches the part.
    """

    finding: Directive
    window: int
    parts: tuple[int, ...]
    opening: int = 0
    """Bits of the word that must open a clause as well, 0 for none."""
    first: bool = False
    """That word must be the first of the sentence."""

    def possible(self, union: int) -> bool:
        """Return whether a sentence with these bits may meet every part."""
        for part in self.parts:
            if not union & part:
                return False
        return not self.opening or bool(union & self.opening)


_RULES_OF_SENTENCES = (
    _Rule("override", 12, (_RULES, _SET_ASIDE, _EARLIER | _ADDRESSED | _MACHINE)),
    _Rule(
        "override", 12, (_RULES | _WORDS, _EARLIER | _ALL | _YOU | _SYSTEM | _MACHINE), _SET_ASIDE
    ),
    _Rule("override", 12, (_RULES | _WORDS, _SET_ASIDE, _EARLIER | _ALL | _YOU), _LIGHT),
    _Rule("override", 12, (_WORDS, _SET_ASIDE, _EARLIER, _MUST)),
    _Rule("override", 12, (_WORDS, _NOT, _HEED, _EARLIER, _MUST)),
    _Rule("override", 14, (_RULES, _NOT, _HEED, _EARLIER)),
    _Rule(
        "override", 14, (_RULES | _WORDS, _HEED, _EARLIER | _ALL | _YOU | _SYSTEM | _MACHINE), _NOT
    ),
    _Rule("role", 14, (_YOU, _ROLE, _MACHINE | _FREE)),
    _Rule("role", 8, (_YOU | _ME,), _ROLE),
    _Rule("role", 14, (_FREE | _MACHINE, _ROLE, _NOT), _ROLE),
    _Rule("role", 5, (_ROLE,), _LIGHT, first=True),
    _Rule("role", 12, (_YOU, _ONLY, _ROLE | _MACHINE)),
    _Rule("role", 12, (_SECRET, _ONLY, _ROLE, _ME)),
    _Rule(
        "output",
        24,
        (_MACHINE, _MUST, _SAY | _ADVISE | _REVEAL, _READING | _ONLY | _YOU | _ALL | _ADVISE),
    ),
    _Rule("output", 20, (_SYSTEM, _READING, _MUST, _ADVISE)),
    _Rule("output", 20, (_SYSTEM, _HERE, _MUST, _SAY | _ADVISE | _REVEAL)),
    _Rule("output", 5, (_REPLY, _ALL, _MUST)),
    _Rule("disclosure", 10, (_SECRET, _YOU | _ALL | _MACHINE), _REVEAL),
    _Rule("disclosure", 14, (_SECRET, _MUST, _REVEAL, _YOU | _MACHINE)),
)
_TURNING = _RULES | _WORDS | _YOU | _ME | _MACHINE | _SYSTEM | _FREE | _REPLY | _SECRET | _LIGHT
"""Every rule has a part of these: a sentence without them, as most are, needs no look at any."""
_REPLIES = re.compile(r"(?:answer|reply|replies|response)[a-z]{0,2}\Z")
_TURNS = frozenset("now here henceforth moment point".split())
"""One of these or a second person stands in each phrase."""
_TEXTS = frozenset(
    "text document page passage paragraph article content file website section".split()
)
_THIS = frozenset("this present".split())
_OFFERS = frozenset("can may might could will".split())


class _Meanings(dict[str, int]):
    """The bits of every word seen, for all threads; forgets all when full."""

    def __missing__(self, word: str) -> int:
        if len(self) >= _MOST_WORDS:
            self.clear()
        bits = 0
        for means, pattern in _patterns().items():
            if pattern.match(word):
                bits |= means
        if _REPLIES.match(word):
            bits |= _REPLY
        self[word] = bits
        return bits


_MOST_WORDS = 200_000
_MEANINGS = _Meanings()


def directives(found: Sequence[str]) -> Iterator[Directive]:
    """Yield the families of instructions that a sentence shows, with repetitions.

    Args:
        found: Its words, lower case.
    """
    bits = list(map(_MEANINGS.__getitem__, found))
    union = reduce(or_, bits, 0)
    if not union & _TURNING:
        return
    if union & _YOU or not _TURNS.isdisjoint(found):
        spoken = " ".join(found)
        yield from (finding for finding, pattern in PHRASES if pattern.search(spoken))
    for at, one in enumerate(bits):
        if one & _YOU and not (found[at] == "you" and _OFFERS.intersection(found[at + 1 : at + 2])):
            bits[at] |= _ADDRESSED
    if any(one & _NOT for one in bits):
        _forbid(bits)
    if union & _SYSTEM and union & _READING:
        for at in range(1, len(found)):
            if found[at] in _TEXTS and found[at - 1] in _THIS:
                bits[at] |= _HERE
    placed = _placed(bits)
    union = reduce(or_, placed, 0)
    yield from _near(placed, [rule for rule in _RULES_OF_SENTENCES if rule.possible(union)])


def _forbid(bits: list[int]) -> None:
    """Take REVEAL from a verb that a negation forbids: `never give your password out`."""
    for at, one in enumerate(bits):
        if one & _REVEAL and any(before & _NOT for before in bits[max(0, at - 2) : at]):
            bits[at] &= ~_REVEAL


def _placed(bits: list[int]) -> list[int]:
    placed = list(bits)
    for at, one in enumerate(bits):
        if at < _IMPERATIVE:
            placed[at] |= _OPENS
        if one & _SYSTEM and any(
            other & _SPEECH for other in (*bits[max(0, at - 1) : at], *bits[at + 1 : at + 3])
        ):
            placed[at] |= _MACHINE  # language model
    return placed


_IMPERATIVE = 2
"""Words of a sentence in which its imperative stands."""


def _near(placed: list[int], rules: Iterable[_Rule]) -> Iterator[Directive]:
    """Yield the finding of each rule whose parts all occur within its window.

    One word must not match all of them.
    """
    for rule in rules:
        parts = (*rule.parts, rule.opening) if rule.opening else rule.parts
        last = [-len(placed) - rule.window] * len(parts)
        for at, bits in enumerate(placed):
            for index, part in enumerate(parts):
                if bits & part and (
                    index < len(rule.parts) or (at == 0 if rule.first else bits & _OPENS)
                ):
                    last[index] = at
            if at - min(last) <= rule.window and len(set(last)) > 1:
                yield rule.finding
                break
