"""faiss as a store of vectors: 70 bytes each in memory, candidates for the catalog to score."""

from __future__ import annotations

import ctypes
import hashlib
import math
import os
import struct
import threading
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, Literal
from urllib.parse import quote, unquote

import faiss
import numpy as np
import numpy.typing as npt

from app.core.errors import IndexDamaged, StorageError
from app.core.types import FloatArray
from app.storage.catalog.rows import IdArray
from app.storage.files.durable import (
    Steps,
    delete_file,
    delete_tree,
    disk_errors,
    move_aside,
    sync_directory,
)
from app.storage.vectors.port import Stamps

# Vectors as codes in lists (IVF, RaBitQ), or as they are while they are few.

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
        self._index.remove_ids(faiss.IDSelectorBatch(ids))

    def ids(self) -> IdArray:
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


# Write an index with a checksum, by rename, and refuse one that does not fit it.

_MAGIC = b"documind vectors 1\n"
_GENERATION = struct.Struct("<Q")
_DIGEST_BYTES = 16
_PIECE = 1 << 20


def write_lists(path: Path, lists: VectorLists, generation: int, steps: Steps) -> None:
    """Write `lists` and a number to `path`: readers see the old file or the new one.

    Raises:
        DiskFull: No space; the old file stays.
    """
    temporary = path.with_name(path.name + ".tmp")
    try:
        with disk_errors(path):
            with temporary.open("wb") as file:
                _write(file, lists, generation)
                with steps.at("faiss.fsync"):
                    os.fsync(file.fileno())
            with steps.at("faiss.rename"):
                temporary.replace(path)
            sync_directory(path.parent, steps, "faiss.fsync_directory")
    except Exception:
        delete_file(temporary, steps, "faiss.discard")
        raise


def _write(file: BinaryIO, lists: VectorLists, generation: int) -> None:
    digest = hashlib.blake2b(digest_size=_DIGEST_BYTES)
    failed: list[OSError] = []

    def put(content: bytes) -> int:
        digest.update(content)
        try:
            return file.write(content)
        except OSError as exc:
            failed.append(exc)
            raise

    put(_MAGIC + _GENERATION.pack(generation))
    try:
        lists.write(put)
    except RuntimeError:  # faiss does not say what its writer raised
        if failed:
            raise failed[0] from None
        raise
    file.write(digest.digest())
    file.flush()


def read_lists(path: Path) -> tuple[VectorLists, int]:
    """Return the lists of a file and its number.

    Raises:
        IndexDamaged: A byte of it is not what was written.
    """
    with path.open("rb") as file:
        size = os.fstat(file.fileno()).st_size - _DIGEST_BYTES
        if size < len(_MAGIC) + _GENERATION.size or not _fits(file, size):
            raise IndexDamaged(
                f"{path.name!r} of the vector store is damaged: its checksum is wrong"
            )
        file.seek(len(_MAGIC))
        (generation,) = _GENERATION.unpack(file.read(_GENERATION.size))
        return VectorLists.read(file.read), int(generation)


def _fits(file: BinaryIO, size: int) -> bool:
    """Return whether the first `size` bytes are ours and have the digest behind them."""
    digest = hashlib.blake2b(digest_size=_DIGEST_BYTES)
    first, left = b"", size
    while left and (piece := file.read(min(_PIECE, left))):
        first = first or piece
        digest.update(piece)
        left -= len(piece)
    return first.startswith(_MAGIC) and file.read() == digest.digest()


# Hold ids as marks in pages: a byte each where they are dense.

_SHIFT = 16
"""Ids of a page differ in their last bits only."""

Mask = npt.NDArray[np.bool_]


class IdSet:
    """Distinct positive ids. Not thread-safe: the collection that owns it locks."""

    def __init__(self) -> None:
        self._pages: dict[int, Mask] = {}
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def add(self, ids: IdArray) -> None:
        """Add ids; one that is here is fine."""
        for page, at in _by_page(ids):
            marks = self._pages.setdefault(page, np.zeros(1 << _SHIFT, np.bool_))
            self._count += int(np.count_nonzero(~marks[at]))
            marks[at] = True

    def delete(self, ids: IdArray) -> None:
        for page, at in _by_page(ids):
            if (marks := self._pages.get(page)) is not None:
                self._count -= int(np.count_nonzero(marks[at]))
                marks[at] = False

    def held(self, ids: IdArray) -> IdArray:
        """Return those of some ids that are here."""
        found = [
            (page << _SHIFT) + at[marks[at]]
            for page, at in _by_page(ids)
            if (marks := self._pages.get(page)) is not None
        ]
        return np.concatenate(found) if found else np.empty(0, np.int64)

    def all(self) -> set[int]:
        return {
            int(at) + (page << _SHIFT)
            for page, marks in self._pages.items()
            for at in np.flatnonzero(marks)
        }


def _by_page(ids: IdArray) -> Iterator[tuple[int, IdArray]]:
    """Yield each page's number with the distinct places of ids in it."""
    distinct = np.unique(ids)
    pages = distinct >> _SHIFT
    for page in np.unique(pages).tolist():
        yield int(page), distinct[pages == page] & ((1 << _SHIFT) - 1)


# Append what changed since the last file: durable, and read back in order.

Kind = Literal["add", "delete"]
_KINDS: tuple[Kind, ...] = ("add", "delete")
_HEADER = struct.Struct("<BxxxIII")
_CHECK = struct.Struct("<I")


@dataclass(frozen=True, slots=True)
class JournalRecord:
    """One change."""

    kind: Kind
    ids: IdArray
    codes: CodeArray
    """uint8 `[n, width]`; `[n, 0]` of a deletion."""


class Journal:
    """A file of records, open for appending. Not thread-safe: its owner writes in turn."""

    def __init__(self, path: Path, steps: Steps) -> None:
        self.path = path
        self._steps = steps
        self._file: BinaryIO | None = None
        self._end = 0
        self.rows = 0
        """How many ids the records have."""

    def replay(self) -> Iterator[JournalRecord]:
        """Yield every whole record, then cut off one that is not.

        Raises:
            IndexDamaged: A record does not fit its checksum.
        """
        if not self.path.exists():
            return
        with self.path.open("rb") as file:
            while (record := _read(file, self.path)) is not None:
                self._end = file.tell()
                self.rows += len(record.ids)
                yield record
        if self.path.stat().st_size > self._end:
            with self._steps.at("faiss.truncate"):
                os.truncate(self.path, self._end)

    def append(self, record: JournalRecord) -> None:
        """Write a record; it is on disk when this returns.

        Raises:
            DiskFull: No space; the records before are whole.
        """
        content = record.ids.tobytes() + record.codes.tobytes()
        header = _HEADER.pack(
            _KINDS.index(record.kind),
            len(record.ids),
            record.codes.shape[1],
            zlib.crc32(content),
        )
        content = header + _CHECK.pack(zlib.crc32(header)) + content
        try:
            with disk_errors(self.path), self._steps.at("faiss.append"):
                file = self._opened()
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
        except Exception:
            self.close()
            with suppress(OSError), self._steps.at("faiss.truncate"):
                os.truncate(self.path, self._end)
            raise
        self._end += len(content)
        self.rows += len(record.ids)

    def _opened(self) -> BinaryIO:
        if self._file is None:
            new = not self.path.exists()
            self._file = self.path.open("ab")
            if new:
                sync_directory(self.path.parent, self._steps, "faiss.fsync_directory")
        return self._file

    def close(self) -> None:
        """Let the file go."""
        if self._file is not None:
            file, self._file = self._file, None
            with suppress(OSError):
                file.close()


def _read(file: BinaryIO, path: Path) -> JournalRecord | None:
    """Return the next record; None at the end and where it ends too early."""
    head = file.read(_HEADER.size + _CHECK.size)
    if len(head) < _HEADER.size + _CHECK.size:
        return None
    header, (check,) = head[: _HEADER.size], _CHECK.unpack(head[_HEADER.size :])
    if zlib.crc32(header) != check:
        raise IndexDamaged(f"{path.name!r} of the vector store is damaged: its checksum is wrong")
    kind, n, width, content_check = _HEADER.unpack(header)
    content = file.read(n * (8 + width))
    if len(content) < n * (8 + width):
        return None
    if zlib.crc32(content) != content_check:
        raise IndexDamaged(f"{path.name!r} of the vector store is damaged: its checksum is wrong")
    ids = np.frombuffer(content, np.int64, n)
    codes = np.frombuffer(content, np.uint8, offset=8 * n).reshape(n, width)
    return JournalRecord(_KINDS[kind], ids, codes)


# One collection: lists in memory, their last file, and what changed since.

FILE_NAME = "lists"
JOURNAL_NAME = "journal."

PIECE = 1000
"""Rows added at a time; a search waits for one piece at most, which takes a few milliseconds."""

LEAST_KEPT = 20_000
"""Changes that the journal holds at least before the file is written again."""

KEPT_SHARE = 8
"""And one for so many vectors, which the room of the lists takes: all files that a growing
library writes are eight times the last."""


class CodedCollection:
    """The vectors of one build; searches go on while it is written.

    The file has a number, and so has the journal that goes with it. A new file is there with its
    rename; the journal before it is then nobody's and is removed.
    """

    def __init__(self, path: Path, steps: Steps, *, learn_from: int, least_kept: int) -> None:
        """Read what is in directory `path`, or begin empty.

        Args:
            path: Where the file and the journal are.
            steps: Told of every write.
            learn_from: Vectors from which on there are lists.
            least_kept: Changes before the file is written again.

        Raises:
            IndexDamaged: A byte on disk is not what was written.
        """
        self._path = path
        self._steps = steps
        self._learn_from = learn_from
        self._least_kept = least_kept
        self._writing = threading.Lock()
        self._lock = threading.Lock()
        """Held while vectors are added or removed, and by searches."""
        self._lists: VectorLists | None = None
        self._ids = IdSet()
        self._generation = 0
        self._load()

    def _load(self) -> None:
        if (file := self._path / FILE_NAME).exists():
            self._lists, self._generation = read_lists(file)
            self._lists.use(self._lists.roomier())
            self._ids.add(self._lists.ids())
        self._journal = Journal(self._path / f"{JOURNAL_NAME}{self._generation}", self._steps)
        for record in self._journal.replay():
            self._apply(record)
        for other in self._path.glob(f"{JOURNAL_NAME}*"):
            if other != self._journal.path:
                delete_file(other, self._steps, "faiss.remove_journal")
        give_back_memory()

    @property
    def count(self) -> int:
        return len(self._ids)

    def ids(self) -> set[int]:
        with self._lock:
            return self._ids.all()

    def search(self, query: FloatArray, n: int) -> list[int]:
        """Return up to n ids, nearest first as far as the codes tell."""
        with self._lock:
            return self._lists.search(query, n) if self._lists is not None else []

    def prepare(self, sample: FloatArray, expected: int) -> None:
        """Learn lists for `expected` vectors from a sample; only while it is empty."""
        with self._writing:
            if not len(self._ids):
                self._replace(VectorLists.learn(sample, lists_for(expected)))

    def upsert(self, ids: IdArray, rows: FloatArray) -> None:
        """Add or replace vectors, durably.

        Raises:
            DiskFull: No space.
        """
        with self._writing:
            if self._lists is None:
                self._lists = VectorLists.flat(rows.shape[1])
            if rows.shape[1] != self._lists.dimension:
                raise ValueError(f"rows of {rows.shape[1]} numbers, not {self._lists.dimension}")
            for at in range(0, len(ids), PIECE):
                codes = self._lists.encode(rows[at : at + PIECE])
                self._write(JournalRecord("add", ids[at : at + PIECE], codes))
            self._keep_up()

    def delete(self, ids: IdArray) -> None:
        """Remove vectors, durably; unknown ids are fine."""
        with self._writing:
            if len(held := self._ids.held(ids)):
                self._write(JournalRecord("delete", held, np.empty((len(held), 0), np.uint8)))
                self._keep_up()

    def _write(self, record: JournalRecord) -> None:
        self._journal.append(record)
        with self._lock:
            self._apply(record)

    def _apply(self, record: JournalRecord) -> None:
        if self._lists is None:
            self._lists = VectorLists.flat(record.codes.shape[1] // 4)
        if len(held := self._ids.held(record.ids)):
            self._lists.delete(held)
        if record.kind == "add":
            self._lists.add(record.ids, record.codes)
            self._ids.add(record.ids)
        else:
            self._ids.delete(record.ids)

    def _keep_up(self) -> None:
        """Learn when there is enough to learn from; write the file when much has changed."""
        if self._lists is None:
            return
        if not self._lists.learnt and self.count >= self._learn_from:
            rows, ids = self._lists.rows(), self._lists.ids()
            lists = VectorLists.learn(rows, lists_for(len(rows)))
            for at in range(0, len(ids), PIECE):
                lists.add(ids[at : at + PIECE], lists.encode(rows[at : at + PIECE]))
            self._replace(lists)
        elif self._journal.rows > max(self._least_kept, self.count // KEPT_SHARE):
            self._replace(self._lists)

    def _replace(self, lists: VectorLists) -> None:
        """Write a file of `lists`, start its journal and search it."""
        generation = self._generation + 1
        write_lists(self._path / FILE_NAME, lists, generation, self._steps)
        before, self._generation = self._journal, generation
        self._journal = Journal(self._path / f"{JOURNAL_NAME}{generation}", self._steps)
        roomier = lists.roomier()
        with self._lock:
            lists.use(roomier)
            self._lists = lists
        before.close()
        delete_file(before.path, self._steps, "faiss.remove_journal")
        give_back_memory()

    def close(self) -> None:
        """Let the files go."""
        with self._writing:
            self._journal.close()


LEARN_FROM = 40_000
"""Vectors from which on codes are kept and not rows; fewer are searched exactly, in 60 MB."""

_DROPPED = ".dropped"


class FaissStore:
    """The VectorStore port on a directory per collection; thread-safe."""

    def __init__(
        self,
        path: Path,
        steps: Steps,
        *,
        learn_from: int = LEARN_FROM,
        least_kept: int = LEAST_KEPT,
    ) -> None:
        """Use the store in directory `path`.

        Args:
            path: Made when it is not there.
            steps: Told of every write.
            learn_from: Vectors of a collection from which on codes are kept and not rows.
            least_kept: Changes of a collection before its file is written again.
        """
        self.path = path
        self._steps = steps
        self._learn_from = learn_from
        self._least_kept = least_kept
        self._lock = threading.RLock()
        self._open: dict[str, CodedCollection] = {}

    def prepare(self, collection: str, expected: int, sample: Callable[[int], FloatArray]) -> None:
        """Learn from a sample how to divide `expected` vectors; see `VectorStore.prepare`."""
        if expected >= self._learn_from:
            with self._errors(collection):
                self._made(collection).prepare(sample(sample_size(expected)), expected)

    def upsert(
        self,
        collection: str,
        chunk_ids: Sequence[int],
        rows: FloatArray,
        stamps: Stamps,  # noqa: ARG002  # codes have no stamps
    ) -> None:
        """Add or replace vectors, durably (see `VectorStore.upsert`)."""
        with self._errors(collection):
            self._made(collection).upsert(np.array(chunk_ids, np.int64), rows)

    def delete(self, collection: str, chunk_ids: Sequence[int]) -> None:
        """Remove vectors, durably."""
        with self._errors(collection):
            if chunk_ids and (held := self._of(collection)) is not None:
                held.delete(np.array(chunk_ids, np.int64))

    def search(self, collection: str, query: FloatArray, n: int) -> list[int]:
        with self._errors():
            held = self._of(collection)
            return [] if held is None else held.search(query, n)

    def ids(self, collection: str) -> set[int]:
        with self._errors():
            held = self._of(collection)
            return set() if held is None else held.ids()

    def count(self, collection: str) -> int:
        with self._errors():
            held = self._of(collection)
            return 0 if held is None else held.count

    def collections(self) -> list[str]:
        if not self.path.is_dir():
            return []
        return [
            unquote(entry.name)
            for entry in self.path.iterdir()
            if entry.is_dir() and not entry.name.endswith(_DROPPED)
        ]

    def drop(self, collection: str) -> None:
        """Remove a collection; what a crash leaves of it is not listed."""
        directory = self._directory(collection)
        gone = directory.with_name(directory.name + _DROPPED)
        with self._errors(collection), self._lock:
            if (held := self._open.pop(collection, None)) is not None:
                held.close()
            delete_tree(gone, self._steps, "faiss.drop")
            if directory.exists():
                with self._steps.at("faiss.drop"):
                    directory.rename(gone)
                sync_directory(self.path, self._steps, "faiss.fsync_directory")
                delete_tree(gone, self._steps, "faiss.drop")

    def set_aside(self) -> str:
        with self._lock:
            self.close()
            if not self.path.exists() or not any(self.path.iterdir()):
                return ""
            return move_aside(self.path, self._steps, "faiss.move_aside").name

    def close(self) -> None:
        """Let every collection go."""
        with self._lock:
            for held in self._open.values():
                held.close()
            self._open = {}

    def _directory(self, collection: str) -> Path:
        return self.path / quote(collection, safe="")

    def _of(self, collection: str) -> CodedCollection | None:
        if (held := self._open.get(collection)) is not None:
            return held
        with self._lock:
            if collection in self._open:
                return self._open[collection]
            return self._read(collection) if self._directory(collection).exists() else None

    def _read(self, collection: str) -> CodedCollection:
        self._open[collection] = CodedCollection(
            self._directory(collection),
            self._steps,
            learn_from=self._learn_from,
            least_kept=self._least_kept,
        )
        return self._open[collection]

    def _made(self, collection: str) -> CodedCollection:
        with self._lock:
            if (held := self._of(collection)) is not None:
                return held
            directory = self._directory(collection)
            with disk_errors(directory):
                directory.mkdir(parents=True)
            sync_directory(self.path, self._steps, "faiss.fsync_directory")
            return self._read(collection)

    @contextmanager
    def _errors(self, written: str | None = None) -> Iterator[None]:
        """Translate errors; a collection whose write failed is read from disk again."""
        try:
            yield
        except StorageError:
            self._close_collection(written)
            raise
        except (OSError, RuntimeError, ValueError) as exc:
            self._close_collection(written)
            raise IndexDamaged(
                f"the vector store {self.path.name!r} failed ({type(exc).__name__}: {exc});"
                " lexical search serves until it is back"
            ) from exc

    def _close_collection(self, collection: str | None) -> None:
        with self._lock:
            if collection and (held := self._open.pop(collection, None)) is not None:
                held.close()
