"""Decide whether a passage has a word in any spelling."""

from __future__ import annotations

from difflib import SequenceMatcher

from app.generation.reading import Claim, ReadPassage

_ALIKE = 0.78
"""Edit similarity from which two words are one, misspelt or inflected: Dusquesne, Duquesne."""
_SHARED_STEM = 4
"""Letters that Britain and British, Poland and Polish share less one; enough when both are
names."""


def unknown_words(claim: Claim, passage: ReadPassage) -> frozenset[str]:
    """Return a claim's content words that the passage lacks in every spelling."""
    return frozenset(
        token for token in set(claim.content) - passage.known if not _misspelt(token, passage)
    )


def _misspelt(token: str, passage: ReadPassage) -> bool:
    """Return whether the passage has a similar token with the same first letter."""
    return any(
        abs(len(token) - len(other)) <= 2
        # The ratio is at most this: no more characters can match than stand in the other. Most
        # pairs are done here.
        and 2 * min(sum(map(other.__contains__, token)), sum(map(token.__contains__, other)))
        >= _ALIKE * (len(token) + len(other))
        and SequenceMatcher(None, token, other).ratio() >= _ALIKE
        for other in passage.known_by_initial.get(token[0], ())
    )


def is_named(name: str, passage: ReadPassage) -> bool:
    """Return whether the passage has the name in another form.

    Misspelt, as an adjective of its country, or spelt out (EU).
    """
    if _misspelt(name, passage):
        return True
    if len(name) > _SHARED_STEM and any(
        other.startswith(name[:_SHARED_STEM]) for other in passage.known_by_initial.get(name[0], ())
    ):
        return True
    return is_spelt_out(name, passage)


def is_spelt_out(name: str, passage: ReadPassage) -> bool:
    """Return whether the passage has the words that a name is the initials of."""
    return 2 <= len(name) <= 5 and name in passage.initials
