"""Define what a check of the store finds."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Literal

FaultCode = Literal[
    "catalog_pages",
    "catalog_text",
    "catalog_spans",
    "catalog_counters",
    "catalog_document_counts",
    "catalog_duplicates",
    "catalog_vectors",
    "catalog_orphan_vectors",
    "catalog_watermarks",
    "catalog_older",
    "lexical_files",
    "lexical_missing",
    "lexical_phantom",
    "lexical_content",
    "vector_cache",
    "vectors_store",
    "vectors_missing",
    "vectors_phantom",
    "original_missing",
    "original_damaged",
    "original_orphan",
    "original_unknown",
    "leftovers",
]

BEYOND_REPAIR: frozenset[FaultCode] = frozenset({"catalog_pages", "catalog_text", "catalog_spans"})
"""Faults of the truth itself: a backup or the source document is needed."""


@dataclass(frozen=True, slots=True)
class Fault:
    """One kind of fault in one library (or in all, when `library` is empty)."""

    code: FaultCode
    library: str
    count: int
    detail: str
    """An example, and the cure where the repair cannot help."""
    repaired: bool = False
    at_start: bool = False
    """Whether the next start repairs it, as a process that was killed leaves it."""


@dataclass(frozen=True, slots=True)
class FsckReport:
    """The outcome of a check, JSON-able by `record`."""

    started_at: str
    seconds: float
    repair: bool
    faults: tuple[Fault, ...]
    checked: dict[str, int]
    """How many of each kind of thing were looked at."""

    @property
    def sound(self) -> bool:
        """Return whether no fault is left but those that the next start repairs."""
        return not self._left

    @property
    def exit_code(self) -> int:
        """Return 0 sound, 7 repairable faults, 8 faults that need a backup.

        No other failure of the command line has these codes.
        """
        if not self._left:
            return 0
        return 8 if any(fault.code in BEYOND_REPAIR for fault in self._left) else 7

    @property
    def _left(self) -> list[Fault]:
        return [fault for fault in self.faults if not fault.repaired and not fault.at_start]

    def record(self) -> dict[str, object]:
        """Return the report as JSON values."""
        return {
            **asdict(self),
            "faults": [asdict(fault) for fault in self.faults],
            "sound": self.sound,
            "exit_code": self.exit_code,
        }
