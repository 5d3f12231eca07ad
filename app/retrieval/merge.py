"""Two libraries in one answer: `library: all`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from app.core.types import Hit, Library, Notice
from app.retrieval.request import Retrieval


def merge(retrievals: Mapping[Library, Retrieval], top_k: int) -> Retrieval:
    """Return up to `top_k` passages of several libraries; each hit names its own.

    Every library keeps its own order and is sure of an equal share of the places (rounded down), so
    that millions of encyclopedia chunks never drown twenty papers; the other places go to the
    closest. Fallback hits only fill in where no library has anything better. Scores are re-based to
    fall with the merged order.

    Args:
        retrievals: One result per library that was searched.
        top_k: Places.
    """
    real = {
        library: found for library, found in retrievals.items() if found.hits and not found.fallback
    }
    used = real or {library: found for library, found in retrievals.items() if found.hits}
    lists = {library: found.hits for library, found in used.items()}
    sizes = {library: min(len(hits), top_k // len(lists)) for library, hits in lists.items()}
    while sum(sizes.values()) < top_k:
        unused = {
            library: hits[sizes[library]]
            for library, hits in lists.items()
            if sizes[library] < len(hits)
        }
        if not unused:
            break
        sizes[max(unused, key=lambda library: _closeness(unused[library]))] += 1
    merged = _interleave([hits[: sizes[library]] for library, hits in lists.items()])
    return Retrieval(
        tuple(replace(hit, score=1.0 / rank) for rank, hit in enumerate(merged, start=1)),
        _notices(retrievals, used),
        max((found.confidence for found in used.values()), default=0.0),
        bool(used) and not real,
    )


def _closeness(hit: Hit) -> float:
    """Return a score comparable between libraries; fused scores are not."""
    return -1.0 if hit.closeness is None else hit.closeness


def _interleave(lists: list[tuple[Hit, ...]]) -> list[Hit]:
    """Merge lists without reordering any, the closer head first."""
    queues = [list(reversed(hits)) for hits in lists if hits]
    merged: list[Hit] = []
    while queues:
        best = max(queues, key=lambda queue: _closeness(queue[-1]))
        merged.append(best.pop())
        queues = [queue for queue in queues if queue]
    return merged


def _notices(
    retrievals: Mapping[Library, Retrieval], used: Mapping[Library, Retrieval]
) -> tuple[Notice, ...]:
    """Return every notice, named by library.

    A fallback is left out if its hits were not used.
    """
    said: dict[tuple[str, str], Notice] = {}
    for library, found in retrievals.items():
        for notice in found.notices:
            if notice.code == "fallback_used" and library not in used:
                continue
            message = (
                notice.message if len(retrievals) == 1 else f"{library.value}: {notice.message}"
            )
            said[notice.code, message] = Notice(notice.code, message)
    if len(retrievals) > 1 and used:  # one empty library is no news while the other answers
        return tuple(notice for notice in said.values() if notice.code != "library_empty")
    return tuple(said.values())
