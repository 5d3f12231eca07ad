"""A reader that compares words: how a sentence is judged by meaning is the model's own test."""

from __future__ import annotations

from collections.abc import Sequence

from app.core.types import Stance
from app.generation.language.claims import content_tokens, figures, negations

_PERHAPS = 0.5


class WordReader:
    """Says what a passage says that has all words of a claim; a figure or denial more denies it.

    Of what has two fifths of its words it is not sure.
    """

    @property
    def name(self) -> str:
        return "words"

    def answers(self, question: str, units: Sequence[str]) -> list[float]:
        asked = set(content_tokens(question))
        return [float(len(asked & set(content_tokens(unit)))) for unit in units]

    def stances(self, pairs: Sequence[tuple[str, str]]) -> list[Stance]:
        return [self._stance(claim, passage) for claim, passage in pairs]

    def _stance(self, claim: str, passage: str) -> Stance:
        said = set(content_tokens(claim))
        missing = said - set(content_tokens(passage))
        share = 1 - len(missing) / max(1, len(said))
        differs = figures(claim) - figures(passage) or negations(claim) > negations(passage)
        if share >= 0.5 and (differs or len(missing) == 1 < len(said) - 2):
            return Stance(0.02, 0.96, 0.02)
        if not missing:
            return Stance(0.94, 0.03, 0.03)
        if share >= 0.4:
            return Stance(_PERHAPS, 0.03, 0.97 - _PERHAPS)
        return Stance(0.02, 0.03, 0.95)
