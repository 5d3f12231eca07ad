"""Vectors as codes in lists (IVF, RaBitQ), or as they are while they are few.

References:
    Gao, Long: RaBitQ: Quantizing High-Dimensional Vectors with a Theoretical Error Bound for
    Approximate Nearest Neighbor Search, SIGMOD 2024.
    Jegou, Douze, Schmid: Product Quantization for Nearest Neighbor Search, 2011 (inverted lists).
"""

from __future__ import annotations

import ctypes
import math
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import faiss
import numpy as np
import numpy.typing as npt

from app.core.types import FloatArray
from app.index.catalog.rows import IdArray

CodeArray = npt.NDArray[np.uint8]

SAMPLE_PER_LIST = 16
"""Vectors that a list's centre is learnt from on average."""

MOST_SAMPLED = 131_072
"""Most vectors that are learnt from: 200 MB while it lasts."""

MOST_LISTS = 16_384

ROOM = 0.2
"""Room that a list has for what comes before the next file, as a share of what it holds."""

_ROUNDS = 8
"""Rounds of k-means; more changed no recall."""

_QUERY_BITS = 4
"""Bits of a number of the query; the vectors have one each. More changed no recall."""

_PROBED_SHARE = 1 / 16
"""Share of the lists that a question reads at least: recall@10 .990 of a million, .955 with a
quarter of it."""

_LEAST_PROBED = 128
"""Lists that a question reads at least: recall@10 .985 of 100,000, .963 with half of them."""

_READ_PER_WANTED = 8
"""Codes that are read at least for each candidate that is asked for."""


def give_back_memory() -> None:
    """Return freed memory to the system, where the C library keeps it (glibc)."""
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).malloc_trim(0)


def lists_for(expected: int) -> int:
    """Return how many lists suit so many vectors: a power of two near 4 sqrt(n)."""
    return min(MOST_LISTS, 1 << max(6, round(math.log2(4 * math.sqrt(max(1, expected))))))


def sample_size(expected: int) -> int:
    """Return how many vectors the lists for so many are learnt from."""
    return min(MOST_SAMPLED, SAMPLE_PER_LIST * lists_for(expected), expected)


class VectorLists:
    """What faiss holds of a collection.

    Searches may run at once; nothing else may run while vectors are added or removed.
    """

    def __init__(self, index: Any) -> None:  # noqa: ANN401  # faiss has no types
        """Use an index that `flat` or `learn` made, or `read`."""
        self._index = index

    @staticmethod
    def flat(dimension: int) -> VectorLists:
        """Return an empty one that keeps rows as they are."""
        return VectorLists(faiss.IndexIDMap2(faiss.IndexFlatIP(dimension)))

    @staticmethod
    def learn(sample: FloatArray, lists: int) -> VectorLists:
        """Return an empty one whose lists suit a sample, float32 `[n, dim]`, norm 1."""
        dimension = sample.shape[1]
        centres = faiss.IndexFlatL2(dimension)
        index = faiss.IndexIVFRaBitQ(centres, dimension, min(lists, len(sample)), faiss.METRIC_L2)
        centres.this.disown()
        index.own_fields = True
        index.cp.niter = _ROUNDS
        index.cp.min_points_per_centroid = 1
        index.train(sample)
        return VectorLists(index)

    @staticmethod
    def read(source: Callable[[int], bytes]) -> VectorLists:
        """Return what `write` wrote; `source` returns up to n bytes of it.

        Raises:
            RuntimeError: It is no index of faiss.
        """
        return VectorLists(faiss.read_index(faiss.PyCallbackIOReader(source)))

    def write(self, target: Callable[[bytes], int]) -> None:
        """Write everything; `target` takes bytes and returns how many."""
        faiss.write_index(self._index, faiss.PyCallbackIOWriter(target))

    @property
    def dimension(self) -> int:
        """Return the numbers of a vector."""
        return int(self._index.d)

    @property
    def learnt(self) -> bool:
        """Return whether there are lists; if not, rows are kept as they are."""
        return isinstance(self._index, faiss.IndexIVFRaBitQ)

    @property
    def code_size(self) -> int:
        """Return the bytes that `encode` makes of a row."""
        return int(self._index.sa_code_size()) if self.learnt else 4 * self.dimension

    def encode(self, rows: FloatArray) -> CodeArray:
        """Return codes of rows, uint8 `[n, code_size]`; may run while searches do."""
        rows = np.ascontiguousarray(rows, np.float32)
        if self.learnt:
            codes: CodeArray = self._index.sa_encode(rows)
            return codes
        return rows.view(np.uint8).reshape(len(rows), -1)

    def add(self, ids: IdArray, codes: CodeArray) -> None:
        """Add vectors by their codes; none of the ids is here."""
        if self.learnt:
            self._index.add_sa_codes(np.ascontiguousarray(codes), ids)
        else:
            self._index.add_with_ids(np.ascontiguousarray(codes).view(np.float32), ids)

    def roomier(self) -> Any:  # noqa: ANN401
        """Return a copy of the lists with room to grow, for `use`; searches may go on.

        A list that is full doubles when it grows, and after a file is read all of them are full.
        """
        if not self.learnt:
            return None
        old, size = self._index.invlists, int(self._index.code_size)
        new = faiss.ArrayInvertedLists(self._index.nlist, size)
        for at in range(self._index.nlist):
            if n := old.list_size(at):
                new.resize(at, n + math.ceil(n * ROOM))
                new.resize(at, n)
                new.update_entries(at, 0, n, old.get_ids(at), old.get_codes(at))
        return new

    def use(self, roomier: Any) -> None:  # noqa: ANN401
        """Take the lists that `roomier` returned in place of those that are here."""
        if roomier is not None:
            self._index.replace_invlists(roomier, True)  # faiss names it so: own
            roomier.this.disown()

    def delete(self, ids: IdArray) -> None:
        """Remove vectors; unknown ids are fine."""
        self._index.remove_ids(faiss.IDSelectorBatch(ids))

    def ids(self) -> IdArray:
        """Return the ids of all vectors."""
        if not self.learnt:
            return np.array(faiss.vector_to_array(self._index.id_map), np.int64)
        lists = self._index.invlists
        found = [
            faiss.rev_swig_ptr(lists.get_ids(at), lists.list_size(at)).copy()
            for at in range(self._index.nlist)
            if lists.list_size(at)
        ]
        return np.concatenate(found) if found else np.empty(0, np.int64)

    def rows(self) -> FloatArray:
        """Return all rows, float32 `[n, dim]`, in the order of `ids`, before it learnt."""
        kept: FloatArray = self._index.index.reconstruct_n(0, self._index.ntotal)
        return kept

    def search(self, query: FloatArray, n: int) -> list[int]:
        """Return up to n ids, nearest first as far as the codes tell."""
        total = int(self._index.ntotal)
        if not total:
            return []
        asked = np.ascontiguousarray(query, np.float32)[np.newaxis]
        found = self._index.search(asked, min(n, total), params=self._parameters(n, total))[1][0]
        return [int(chunk_id) for chunk_id in found if chunk_id >= 0]

    def _parameters(self, n: int, total: int) -> Any:  # noqa: ANN401
        if not self.learnt:
            return None
        lists = int(self._index.nlist)
        wanted = max(
            _LEAST_PROBED,
            math.ceil(lists * _PROBED_SHARE),
            math.ceil(_READ_PER_WANTED * n * lists / total),
        )
        parameters = faiss.IVFRaBitQSearchParameters()
        parameters.nprobe = min(lists, wanted)
        parameters.qb = _QUERY_BITS
        return parameters
