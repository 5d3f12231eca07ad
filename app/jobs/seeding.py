"""Decide when to index the samples without a request."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from app.core.ports import Catalog
from app.core.types import Library

MARKER = "samples.version"
"""A file of the data directory: which version of the samples was seeded; its presence means that
they were once."""


@dataclass(frozen=True, slots=True)
class SeedPolicy:
    """The configuration of the samples."""

    data_dir: Path
    on_empty: bool
    """SAMPLES: index them once, when both libraries are empty."""
    keep_current: bool
    """SEED_SAMPLE_DOCS: purge and index them again when their version changes."""
    version: str


def seed(policy: SeedPolicy, catalog: Catalog, submit: Callable[[bool], object]) -> bool:
    """Ask for the samples when the policy wants them now, and return whether it did.

    Args:
        policy: The configuration.
        catalog: Says whether both libraries are empty.
        submit: Queues the samples job; its argument says whether old samples are purged first.
    """
    marker = policy.data_dir / MARKER
    seeded = marker.read_text(encoding="utf-8").strip() if marker.exists() else None
    first = (
        policy.on_empty
        and seeded is None
        and not any(catalog.counts(library).documents for library in Library)
    )
    changed = policy.keep_current and seeded != policy.version
    if not (first or changed):
        return False
    submit(changed and seeded is not None)
    marker.write_text(policy.version + "\n", encoding="utf-8")
    return True
