"""Read `directives.json`: words of instructions to a model, by meaning.

A word alone says nothing: `directives` says which of these meanings together, and how near each
other, make an instruction.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import IntFlag, auto
from functools import cache
from pathlib import Path
from typing import Literal, get_args

Directive = Literal["override", "role", "output", "disclosure", "request"]
"""The families of `injection.Finding` that meanings show."""


class Means(IntFlag):
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
    ORDER = auto()
    """imperatives that tell what to say"""
    TASK = auto()
    """the same, where the form may also tell what a person does"""
    LIGHT = auto()
    """verbs that mean little alone: to take (on a role), to leave (out of account)"""
    ME = auto()
    AND = auto()
    """after which a clause may open"""


@dataclass(frozen=True, slots=True)
class DirectiveWords:
    """The content of `directives.json`."""

    words: dict[Means, frozenset[str]]
    """Spellings in English, German, Spanish and French, lower case, without accents; `*` stands
    for any ending."""
    lookalikes: dict[int, str]
    """Code points that fonts draw like Latin letters, and these letters."""
    chinese: tuple[tuple[Directive, re.Pattern[str]], ...]


@cache
def directive_words() -> DirectiveWords:
    """Read the packaged words."""
    data = json.loads(Path(__file__).with_name("directives.json").read_text(encoding="utf-8"))
    return DirectiveWords(
        {
            Means[name.upper()]: frozenset(" ".join(lines).split())
            for name, lines in data["words"].items()
        },
        {
            ord(looks): letter
            for letter, lookalikes in data["lookalikes"].items()
            for looks in lookalikes
        },
        tuple(_chinese(data["chinese"]["terms"], data["chinese"]["patterns"])),
    )


def _chinese(
    terms: dict[str, str], patterns: dict[str, list[str]]
) -> Iterator[tuple[Directive, re.Pattern[str]]]:
    """Yield each family's expressions; terms replace names, gaps replace `~n`."""
    for finding in get_args(Directive):
        for pattern in patterns.get(finding, ()):
            with_terms = re.sub("<([a-z]+)>", lambda name: f"(?:{terms[name[1]]})", pattern)
            yield (
                finding,
                re.compile(re.sub(r"~(\d+) ", r"[^\\u3002\\uff01\\uff1f\\n]{0,\1}", with_terms)),
            )
