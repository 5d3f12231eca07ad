"""Find small contradictions between a claim and a text on the same subject.

In names, figures, denials and opposites. An edit of a true sentence changes one of them and leaves
all other words, so that no measure of what is shared shows it.
"""

from __future__ import annotations

from collections.abc import Set as AbstractSet

import numpy as np
import numpy.typing as npt

from app.core.text import tokenise
from app.generation.opposites import antonyms, prefixed
from app.generation.reading import Claim, ReadPassage, negations
from app.generation.spelling import is_spelt_out

FAITHFUL_FEATURES = (
    "names",  # names of the claim that the passage has not, nor misspelt
    "figures",  # figures of the claim, spelt ones too, that the passage has not, 2 at most
    "denials",  # how much more often the claim denies than the window
    "denied",  # how often the claim denies, 2 at most
    "opposites",  # words of the claim that the place has not, while it has their opposite
    "prefixes",  # the same for opposites made by a prefix: unable, able
)
"""Columns of a faithful row; each can only lower the support."""
OPPOSITES = FAITHFUL_FEATURES.index("opposites")


def faithful_row(
    claim: Claim, passage: ReadPassage, window: str, unknown: AbstractSet[str]
) -> npt.NDArray[np.float64]:
    """Return FAITHFUL_FEATURES of a claim, float64 `[len(FAITHFUL_FEATURES)]`.

    Args:
        claim: What was said.
        passage: Where it should stand.
        window: The characters of the passage that hold most of it.
        unknown: Content words of the claim that stand nowhere in the passage, however spelt.
    """
    near, known = frozenset(tokenise(window)), antonyms()
    denied = claim.specifics.negations
    opposites = prefixes = 0
    for token in claim.wanted:
        if token in near:
            continue
        place = passage.known if token in unknown else near
        opposites += not place.isdisjoint(known.get(token, ()))
        prefixes += token in unknown and not passage.known.isdisjoint(prefixed(token))
    return np.asarray(
        [
            float(sum(not is_spelt_out(name, passage) for name in claim.specifics.names & unknown)),
            float(min(2, len(claim.figures - passage.figures))),
            float(max(0, denied - negations(window))),
            float(min(2, denied)),
            float(opposites),
            float(prefixes),
        ]
    )


def says_the_opposite(row: npt.NDArray[np.float64]) -> bool:
    """Return whether a faithful row shows an opposite."""
    return bool(row[OPPOSITES:].any())
