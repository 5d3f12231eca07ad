"""Whether a projection is whole."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class BuildState:
    """`done` of `total` items while a library's projections are rebuilt."""

    state: Literal["ready", "rebuilding"]
    done: int = 0
    total: int = 0

    def __str__(self) -> str:
        """Return it as people read it."""
        return self.state if self.state == "ready" else f"{self.state} {self.done} of {self.total}"
