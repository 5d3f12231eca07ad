"""Measure how far words are apart by edits, and list those one edit away."""

from __future__ import annotations

import string


def edit_distance(left: str, right: str) -> int:
    """Return the fewest inserts, deletes, changes and swaps between two words.

    Each letter is edited at most once.

    References:
        Damerau: A technique for computer detection and correction of spelling errors, CACM 1964
            (optimal string alignment).
    """
    before: list[int] = []
    last = list(range(len(right) + 1))
    for i, one in enumerate(left, 1):
        row = [i]
        for j, other in enumerate(right, 1):
            best = min(last[j] + 1, row[j - 1] + 1, last[j - 1] + (one != other))
            if i > 1 and j > 1 and one == right[j - 2] and left[i - 2] == other:
                best = min(best, before[j - 2] + 1)
            row.append(best)
        before, last = last, row
    return last[-1]


def one_edit_away(token: str) -> set[str]:
    """Return what one insert, delete, change or swap of letters or digits makes of a token."""
    letters = string.ascii_lowercase + string.digits
    cuts = [(token[:at], token[at:]) for at in range(len(token) + 1)]
    deletes = {left + right[1:] for left, right in cuts if right}
    swaps = {left + right[1] + right[0] + right[2:] for left, right in cuts if len(right) > 1}
    changes = {left + letter + right[1:] for left, right in cuts if right for letter in letters}
    inserts = {left + letter + right for left, right in cuts for letter in letters}
    return (deletes | swaps | changes | inserts) - {""}
