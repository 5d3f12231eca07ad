"""One hostile file."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

CANARY = "root:x:0:0"
"""What a file would show that had made a parser read /etc/passwd."""
WORDS = (
    "The harbour master wrote down the tide and the wind each morning before the ships came in. "
)
"""Harmless prose, so that a file is more than its attack."""


@dataclass(frozen=True)
class HostileFile:
    """What is sent, and what may become of it."""

    name: str
    make: Callable[[], bytes]
    verdicts: frozenset[str]
    slow: bool = False
    """Takes seconds to make or to refuse."""


def hostile(
    name: str, make: Callable[[], bytes], *verdicts: str, slow: bool = False
) -> HostileFile:
    """Return a file; `verdicts` are the codes that may come, or `indexed`."""
    return HostileFile(name, make, frozenset(verdicts), slow)


def encoded(make: Callable[[], str]) -> Callable[[], bytes]:
    """Return a maker of the UTF-8 of a text."""
    return lambda: make().encode()
