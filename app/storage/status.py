"""Report how far the projections are behind the catalog."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

from app.core.types import Library
from app.storage.catalog.changes import ChangeLog


@dataclass(frozen=True, slots=True)
class BuildState:
    """`done` of `total` items while a library's projections are rebuilt."""

    state: Literal["ready", "rebuilding"]
    done: int = 0
    total: int = 0

    def __str__(self) -> str:
        return self.state if self.state == "ready" else f"{self.state} {self.done} of {self.total}"


class ProjectionStatus:
    """The state of every projection, as health pages and metrics show it."""

    def __init__(self, changes: ChangeLog, state: Callable[[Library], BuildState]) -> None:
        self._changes = changes
        self._state = state

    def build_state(self, library: Library) -> str:
        """Return `ready`, or `rebuilding 300 of 1500` while a projection is rebuilt."""
        return str(self._state(library))

    def lags(self) -> Mapping[str, int]:
        return self._changes.lags()

    def watermarks(self) -> Mapping[str, int]:
        """Return how far each projection got, and the last change as `changes`.

        Keys are `library/projection`.
        """
        return {**self._changes.marks(), "changes": self._changes.last()}
