"""One collection: lists in memory, their last file, and what changed since."""

from __future__ import annotations

import threading
from pathlib import Path

import numpy as np

from app.core.types import FloatArray
from app.index.catalog.rows import IdArray
from app.index.dense.faiss.checked_file import read_lists, write_lists
from app.index.dense.faiss.id_set import IdSet
from app.index.dense.faiss.journal import Journal, JournalRecord
from app.index.dense.faiss.lists import VectorLists, give_back_memory, lists_for
from app.index.files.durable import delete_file
from app.index.files.steps import Steps

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
        """Return how many vectors there are."""
        return len(self._ids)

    def ids(self) -> set[int]:
        """Return the ids of all vectors."""
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
