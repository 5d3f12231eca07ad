"""Whether a collection holds the vectors it should, and finds them.

Two questions, because the graph is approximate: what is held is compared by id and has to be equal; what is found may lack a few,
for a graph without any damage can leave elements that no search reaches. A vector that is not found is asked for again among
many, and only where more than a few of those asked for stay unfound the graph is said to be damaged.

References:
    hnswlib, README: recall depends on ef; an element without incoming links is never reached.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from app.core.types import FloatArray

if TYPE_CHECKING:
    from chromadb.api.models.Collection import Collection

TOLERANCE = 5e-3
"""Largest difference of a component: float16 keeps 11 bits of a number below 1."""

SAME = 1e-4
"""Largest cosine distance of a vector to an equal one, in float32: equal texts have equal vectors, and either is the nearest."""

NEIGHBOURS, MANY = 10, 1_000
"""How many neighbours are asked for, and how many when a vector is not among them: the search is as wide as what it returns."""

FEW, FEW_SHARE = 2, 0.05
"""So many unfound vectors, or this share of those asked for, are no damage. A store without damage, of 4,000 random, clustered or
nearly equal vectors of 384 numbers, a third of them deleted and a third replaced, left none of 1,500 unfound (m)."""

_BATCH = 64


def held_of(collection: Collection, wanted: Mapping[int, FloatArray]) -> dict[int, FloatArray]:
    """Return those of some vectors whose ids the collection has."""
    ids = [str(chunk_id) for chunk_id in wanted]
    batches = (ids[at : at + 8 * _BATCH] for at in range(0, len(ids), 8 * _BATCH))
    held = {name for batch in batches for name in collection.get(ids=batch, include=[])["ids"]}
    return {chunk_id: row for chunk_id, row in wanted.items() if str(chunk_id) in held}


def differing(collection: Collection, wanted: Mapping[int, FloatArray]) -> list[int]:
    """Return the chunks whose vector the collection lacks, or holds otherwise."""
    ids = list(wanted)
    wrong: list[int] = []
    for at in range(0, len(ids), 8 * _BATCH):
        batch = ids[at : at + 8 * _BATCH]
        found = collection.get(ids=[str(chunk_id) for chunk_id in batch], include=["embeddings"])
        embeddings = found["embeddings"]
        rows = {} if embeddings is None else dict(zip(found["ids"], embeddings, strict=True))
        for chunk_id in batch:
            row = rows.get(str(chunk_id))
            if row is None or float(np.abs(np.asarray(row, np.float32) - wanted[chunk_id]).max()) > TOLERANCE:
                wrong.append(chunk_id)
    return wrong


def unfound(collection: Collection, wanted: Mapping[int, FloatArray]) -> list[int]:
    """Return the chunks that a search for their own vector does not find, nor an equal one, however wide it is."""
    count = collection.count()
    if not count:
        return list(wanted)
    missed = _missed(collection, list(wanted), wanted, min(NEIGHBOURS, count))
    return _missed(collection, missed, wanted, min(MANY, count), batch=1) if missed and count > NEIGHBOURS else missed


def too_many(missed: int, asked: int) -> bool:
    """Whether so many unfound vectors mean that the graph is damaged."""
    return missed > max(FEW, FEW_SHARE * asked) or missed == asked > 0


def _missed(
    collection: Collection, ids: Sequence[int], wanted: Mapping[int, FloatArray], neighbours: int, batch: int = _BATCH
) -> list[int]:
    missed: list[int] = []
    for at in range(0, len(ids), batch):
        asked = ids[at : at + batch]
        found = collection.query(
            query_embeddings=[wanted[chunk_id] for chunk_id in asked], n_results=neighbours, include=["distances"]
        )
        for chunk_id, names, distances in zip(asked, found["ids"], found["distances"] or [], strict=True):
            if str(chunk_id) not in names and min(distances, default=2.0) > SAME:
                missed.append(chunk_id)
    return missed
