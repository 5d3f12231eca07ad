"""faiss as a store of vectors: 70 bytes each in memory, candidates for the catalog to score."""

from __future__ import annotations

import ctypes
import math
import os
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote

import faiss
import numpy as np

from app.core.errors import IndexDamaged, StorageError
from app.core.ids import content_sha256
from app.core.types import FloatArray
from app.storage.catalog.rows import IdArray
from app.storage.files.durable import Steps, delete_file, disk_errors, move_aside, sync_directory
from app.storage.vectors.port import Stamps, VectorStore

# Vectors as codes in lists (IVF, RaBitQ), or as they are while they are few.

LEARN_FROM = 40_000
"""Vectors from which on codes are kept and not rows; fewer are searched exactly, in 60 MB."""

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

LEAST_KEPT = 20_000
"""Changes that a collection keeps in memory at least before its file is written again."""

KEPT_SHARE = 8
"""And one for so many vectors, which the room of the lists takes: all files that a growing
library writes are eight times the last."""

_TEMPORARY = ".tmp"


def lists_for(expected: int) -> int:
    """Return how many lists suit so many vectors: a power of two near 4 sqrt(n)."""
    return min(MOST_LISTS, 1 << max(6, round(math.log2(4 * math.sqrt(max(1, expected))))))


def sample_size(expected: int) -> int:
    """Return how many vectors the lists for so many are learnt from."""
    return min(MOST_SAMPLED, SAMPLE_PER_LIST * lists_for(expected), expected)


def learnt_from(sample: FloatArray, lists: int) -> Any:  # faiss has no types
    """Return an empty index whose lists suit a sample, float32 `[n, dim]`, norm 1."""
    dimension = sample.shape[1]
    centres = faiss.IndexFlatL2(dimension)
    index = faiss.IndexIVFRaBitQ(centres, dimension, min(lists, len(sample)), faiss.METRIC_L2)
    centres.this.disown()
    index.own_fields = True
    index.cp.niter = _ROUNDS
    index.cp.min_points_per_centroid = 1
    index.train(sample)
    return index


class Collection:
    """The vectors of one build, in memory; searches go on while it is written."""

    def __init__(self, index: Any = None) -> None:
        """Hold what a file had; nothing without an index of faiss."""
        self._index = index
        self._writing = threading.Lock()
        self._lock = threading.Lock()
        """Held while vectors are added or removed, and by searches."""
        self.changes = 0
        """Vectors that came or went since the last file."""
        self._highest = int(self._ids().max(initial=0))
        self._make_room()

    @property
    def _learnt(self) -> bool:
        """Whether there are lists; if not, rows are kept as they are."""
        return isinstance(self._index, faiss.IndexIVFRaBitQ)

    @property
    def count(self) -> int:
        return 0 if self._index is None else int(self._index.ntotal)

    def ids(self) -> set[int]:
        with self._lock:
            return set(self._ids().tolist())

    def _ids(self) -> IdArray:
        if not self.count:
            return np.empty(0, np.int64)
        if not self._learnt:
            return np.array(faiss.vector_to_array(self._index.id_map), np.int64)
        lists = self._index.invlists
        return np.concatenate(
            [
                faiss.rev_swig_ptr(lists.get_ids(at), lists.list_size(at)).copy()
                for at in range(self._index.nlist)
                if lists.list_size(at)
            ]
        )

    def prepare(self, sample: FloatArray, expected: int) -> None:
        """Learn lists for `expected` vectors from a sample; only while it is empty."""
        with self._writing:
            if not self.count:
                self._index = learnt_from(sample, lists_for(expected))

    def upsert(self, ids: IdArray, rows: FloatArray, learn_from: int) -> None:
        """Add or replace vectors; learn lists when there are `learn_from`."""
        rows = np.ascontiguousarray(rows, np.float32)
        with self._writing:
            if self._index is None:
                self._index = faiss.IndexIDMap2(faiss.IndexFlatIP(rows.shape[1]))
            if rows.shape[1] != self._index.d:
                raise ValueError(f"rows of {rows.shape[1]} numbers, not {self._index.d}")
            codes = self._index.sa_encode(rows) if self._learnt else rows
            add = self._index.add_sa_codes if self._learnt else self._index.add_with_ids
            with self._lock:
                if ids.min() <= self._highest:  # ids rise, but for vectors that are made again
                    self._index.remove_ids(faiss.IDSelectorBatch(ids))
                add(codes, ids)
            self._highest = max(self._highest, int(ids.max()))
            self.changes += len(ids)
            if not self._learnt and self.count >= learn_from:
                kept = self._index.index.reconstruct_n(0, self.count)
                lists = learnt_from(kept, lists_for(len(kept)))
                lists.add_with_ids(kept, self._ids())
                with self._lock:
                    self._index = lists
                self._make_room()

    def delete(self, ids: IdArray) -> None:
        """Remove vectors; unknown ids are fine."""
        with self._writing, self._lock:
            if self._index is not None:
                self.changes += int(self._index.remove_ids(faiss.IDSelectorBatch(ids)))

    def delete_all(self) -> None:
        with self._writing, self._lock:
            self._index = None

    def search(self, query: FloatArray, n: int) -> list[int]:
        """Return up to n ids, nearest first as far as the codes tell."""
        with self._lock:
            if not self.count:
                return []
            asked = np.ascontiguousarray(query, np.float32)[np.newaxis]
            parameters, most = self._parameters(n), min(n, self.count)
            found = self._index.search(asked, most, params=parameters)[1][0]
        return [int(chunk_id) for chunk_id in found if chunk_id >= 0]

    def _parameters(self, n: int) -> Any:
        if not self._learnt:
            return None
        lists = int(self._index.nlist)
        wanted = max(
            _LEAST_PROBED,
            math.ceil(lists * _PROBED_SHARE),
            math.ceil(_READ_PER_WANTED * n * lists / self.count),
        )
        parameters = faiss.IVFRaBitQSearchParameters()
        parameters.nprobe = min(lists, wanted)
        parameters.qb = _QUERY_BITS
        return parameters

    def flush(self, write: Callable[[Any], None]) -> None:
        """Let `write` put the index into a file; searches go on."""
        with self._writing:
            if self._index is not None:
                write(self._index)
                self._make_room()
            self.changes = 0

    def _make_room(self) -> None:
        """Give lists room to grow and free memory to the system, where glibc keeps it.

        A list that is full doubles when it grows, and after a file is read all of them are full.
        """
        if self._learnt:
            old = self._index.invlists
            new = faiss.ArrayInvertedLists(self._index.nlist, int(self._index.code_size))
            for at in range(self._index.nlist):
                if n := old.list_size(at):
                    new.resize(at, n + math.ceil(n * ROOM))
                    new.resize(at, n)
                    new.update_entries(at, 0, n, old.get_ids(at), old.get_codes(at))
            with self._lock:
                self._index.replace_invlists(new, True)  # faiss names it so: own
                new.this.disown()
        with suppress(OSError, AttributeError):
            ctypes.CDLL(None).malloc_trim(0)


class FaissStore(VectorStore):
    """Vectors in memory, with a file a collection; thread-safe.

    A file's name is the collection's and the digest of its content: what faiss reads was compared
    with it. A crash may leave two files of a collection, and either is good: what the older lacks,
    the log of changes has.
    """

    def __init__(
        self,
        path: Path,
        steps: Steps,
        *,
        learn_from: int = LEARN_FROM,
        least_kept: int = LEAST_KEPT,
    ) -> None:
        """Use the store in directory `path`, made when it is not there.

        See LEARN_FROM and LEAST_KEPT for the other two.
        """
        self.path = path
        self._steps = steps
        self._learn_from = learn_from
        self._least_kept = least_kept
        self._lock = threading.RLock()
        self._open: dict[str, Collection] = {}

    def prepare(self, collection: str, expected: int, sample: Callable[[int], FloatArray]) -> None:
        if expected >= self._learn_from:
            with self._errors():
                self._of(collection).prepare(sample(sample_size(expected)), expected)

    def upsert(
        self,
        collection: str,
        chunk_ids: Sequence[int],
        rows: FloatArray,
        stamps: Stamps,  # noqa: ARG002  # codes have no stamps
    ) -> None:
        if chunk_ids:
            with self._errors():
                ids = np.array(chunk_ids, np.int64)
                self._of(collection).upsert(ids, rows, self._learn_from)

    def delete(self, collection: str, chunk_ids: Sequence[int]) -> None:
        if chunk_ids:
            with self._errors():
                self._of(collection).delete(np.array(chunk_ids, np.int64))

    def flush(self, collection: str, *, at_once: bool) -> bool:
        held = self._open.get(collection)
        if held is None or not held.changes:
            return True
        if not at_once and held.changes <= max(self._least_kept, held.count // KEPT_SHARE):
            return False
        with self._errors():
            held.flush(lambda index: self._write(collection, index))
        return True

    def _write(self, collection: str, index: Any) -> None:
        temporary = self.path / f"{quote(collection, safe='')}{_TEMPORARY}"
        try:
            with disk_errors(self.path):
                self.path.mkdir(parents=True, exist_ok=True)
                with temporary.open("wb") as file:
                    faiss.write_index(index, faiss.PyCallbackIOWriter(file.write))
                    file.flush()
                    with self._steps.at("faiss.fsync"):
                        os.fsync(file.fileno())
                target = temporary.with_suffix(f".{content_sha256(temporary)}")
                with self._steps.at("faiss.rename"):
                    temporary.replace(target)
                sync_directory(self.path, self._steps, "faiss.fsync_directory")
        except Exception:
            delete_file(temporary, self._steps, "faiss.delete")
            raise
        for older in self._files(collection) - {target}:
            delete_file(older, self._steps, "faiss.delete")

    def search(self, collection: str, query: FloatArray, n: int) -> list[int]:
        with self._errors():
            return self._of(collection).search(query, n)

    def ids(self, collection: str) -> set[int]:
        with self._errors():
            return self._of(collection).ids()

    def count(self, collection: str) -> int:
        with self._errors():
            return self._of(collection).count

    def collections(self) -> list[str]:
        names = {name for name, held in list(self._open.items()) if held.count}
        return sorted(names | {unquote(file.stem) for file in self._files()})

    def drop(self, collection: str) -> None:
        with self._errors(), self._lock:
            if (held := self._open.pop(collection, None)) is not None:
                held.delete_all()  # a file that is being written is whole, and removed
            for file in self._files(collection):
                delete_file(file, self._steps, "faiss.delete")

    def set_aside(self) -> str:
        with self._lock:
            self.close()
            if not self.path.exists() or not any(self.path.iterdir()):
                return ""
            return move_aside(self.path, self._steps, "faiss.move_aside").name

    def close(self) -> None:
        with self._lock:
            self._open = {}

    def _files(self, collection: str | None = None) -> set[Path]:
        """Return the files of a collection, or of all; what a crash left half written too."""
        return {
            file
            for file in (self.path.iterdir() if self.path.is_dir() else ())
            if file.is_file() and collection in (None, unquote(file.stem))
        }

    def _of(self, collection: str) -> Collection:
        if (held := self._open.get(collection)) is not None:
            return held
        with self._lock:
            if collection not in self._open:
                whole = {file for file in self._files(collection) if file.suffix != _TEMPORARY}
                newest = max(whole, key=lambda file: file.stat().st_mtime_ns, default=None)
                self._open[collection] = Collection(newest and _read(newest))
            return self._open[collection]

    @contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except StorageError:
            raise
        except (OSError, RuntimeError, ValueError) as exc:
            raise IndexDamaged(
                f"the vector store {self.path.name!r} failed ({type(exc).__name__}: {exc});"
                " lexical search serves until it is back"
            ) from exc


def _read(path: Path) -> Any:
    """Return the index of a file.

    Raises:
        IndexDamaged: A byte of it is not what was written.
    """
    if content_sha256(path) != path.suffix[1:]:
        raise IndexDamaged(f"{path.name!r} of the vector store is damaged: its checksum is wrong")
    return faiss.read_index(str(path))
