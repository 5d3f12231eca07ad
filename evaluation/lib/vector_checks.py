"""Whether a store of vectors holds what the catalog has, and proposes it."""

from __future__ import annotations

import numpy as np

from app.core.types import Library
from app.core.vectors import cosine_distances
from app.storage.store import IndexStore
from app.storage.vectors.port import Stamps
from app.storage.vectors.replica import SAME

UNSTAMPED = Stamps("", lambda ids: [{} for _ in ids])
"""Of vectors that belong to no document."""
PROPOSED = 100
"""Candidates that a vector is looked for among."""
MISSED_SHARE = 0.01
"""A graph may leave so many vectors unreached after deletions; recall@10 of .99 is promised."""


def held(store: IndexStore, library: Library) -> set[int]:
    """Return the chunks that the store of vectors lists for a library's live build."""
    replica, build = store.dense[library].replica, store.loader.live_build(library)
    return replica.store.ids(replica.collection(build)) if build is not None else set()


def unproposed(store: IndexStore, library: Library) -> list[int]:
    """Return the chunks that a search for their own vector, or an equal one, does not propose."""
    replica, build = store.dense[library].replica, store.loader.live_build(library)
    if build is None:
        return []
    wanted = store.loader.vectors(build, sorted(store.loader.vector_ids(build.number)))
    missed = []
    for chunk_id, row in zip(wanted.chunk_ids, wanted.rows, strict=True):
        proposed = replica.store.search(replica.collection(build), row, PROPOSED)
        if chunk_id not in proposed:
            rows = store.loader.vectors(build, proposed).rows
            if not len(rows) or float(np.min(cosine_distances(row, rows))) > SAME:
                missed.append(chunk_id)
    return missed


def differences(store: IndexStore, library: Library) -> list[str]:
    """Return how the store of vectors differs from the catalog, one line a chunk.

    Chunks that a search does not propose count when they are more than `MISSED_SHARE` of all.
    """
    build = store.loader.live_build(library)
    wanted, listed = store.loader.vector_ids(build.number) if build else set(), held(store, library)
    lines = [f"the store lacks chunk {chunk_id}" for chunk_id in sorted(wanted - listed)]
    lines += [
        f"the store has chunk {chunk_id}, the catalog has not"
        for chunk_id in sorted(listed - wanted)
    ]
    missed = unproposed(store, library)
    if len(missed) > MISSED_SHARE * len(wanted):
        lines += [f"the store does not find chunk {chunk_id}" for chunk_id in missed]
    return lines
