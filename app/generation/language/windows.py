"""Cut a passage to the window that a text should be read with.

The reader is trained on such windows (evaluation/training/pairs.py) and reads such windows.
"""

from __future__ import annotations

import re

from app.core.sentences import sentence_spans

WINDOW_WORDS = 90
"""Longest window of a passage, in words."""
_WORD = re.compile(r"\w+")


def window_for(text: str, passage: str) -> str:
    """Return the part of a passage that shares most words with a text, in reading order.

    A short passage is whole. Of a table its head stays.
    """
    if words_of(passage) <= WINDOW_WORDS:
        return passage
    lines = [line for line in passage.split("\n") if line.strip()]
    is_table = len(lines) > 2
    units = lines if is_table else [passage[a:b] for a, b in sentence_spans(passage)]
    kept = {0} if is_table else set[int]()
    left = WINDOW_WORDS - sum(words_of(units[at]) for at in kept)
    for at in sorted(range(len(units)), key=lambda at: -overlap(text, units[at])):
        size = words_of(units[at])
        if at not in kept and size <= left:
            kept.add(at)
            left -= size
    return ("\n" if is_table else " ").join(units[at] for at in sorted(kept)) or passage[:600]


def words_of(text: str) -> int:
    """Return how many words a text has."""
    return len(_WORD.findall(text))


def overlap(text: str, other: str) -> float:
    """Return the share of a text's distinct words that another has, in [0, 1]."""
    words = set(_WORD.findall(text.lower()))
    return len(words & set(_WORD.findall(other.lower()))) / max(1, len(words))
