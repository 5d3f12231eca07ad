"""Count the questions for which a strategy was not possible and the baseline searched."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

_CODE = "strategy_degraded"


@dataclass(frozen=True, slots=True)
class Degraded:
    """Questions of each arm whose strategy gave way to the baseline."""

    asked: Counter[str] = field(default_factory=Counter)
    """Questions by arm."""
    given_way: Counter[str] = field(default_factory=Counter)
    reasons: dict[str, str] = field(default_factory=dict)
    """The first of each arm, in the words of the notice."""

    def note(self, arm: str, notices: Iterable[tuple[str, str]]) -> None:
        """Count a question of an arm by the codes and messages of its answer's notices."""
        self.asked[arm] += 1
        for code, message in notices:
            if code == _CODE:
                self.given_way[arm] += 1
                self.reasons.setdefault(arm, message)

    def remarks(self) -> list[str]:
        """Return a sentence for each arm that gave way."""
        return [
            f"{arm}: in {n} of {self.asked[arm]} questions {self.reasons[arm]}."
            for arm, n in sorted(self.given_way.items())
        ]
