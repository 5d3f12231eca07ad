"""Define the port of a vector store; its suite is test_vector_store_contract.py."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from app.core.types import FloatArray

Stamp = Mapping[str, str | int]
"""What people and other tools read next to a vector: its document's id and file name, its section,
page and number in the document."""


@dataclass(frozen=True, slots=True)
class Stamps:
    """Says whose the vectors are; a store that keeps no stamps asks for none."""

    embedder: str
    of: Callable[[Sequence[int]], Sequence[Stamp]]
    """Returns the stamp of each of some chunks, in their order."""


class VectorStore(Protocol):
    """Proposes a vector's neighbours; the catalog's vectors score them.

    A collection holds the vectors of one build of one library, keyed by chunk id; it comes into
    being with its first vector. The catalog can fill it again at any time, so a store may lose
    data. What it must promise:

    - What `upsert` and `delete` were told is found by searches when they return, and durable when
      `flush` returns True. Told again it changes nothing.
    - `search` may miss neighbours (recall) and may return chunks that were deleted. It never blocks
      longer than a few seconds.
    - Every method is thread-safe, and a search does not wait until a long series of writes is over.
    - A store that cannot do what it is asked raises one of two errors, in every method: `DiskFull`
      when there is no space, and then nothing that was there is lost; `IndexDamaged` for everything
      else, and then its owner checks it, and refills it after `set_aside` where the check fails.
      The next call after an error may work again.
    """

    def prepare(self, collection: str, expected: int, sample: Callable[[int], FloatArray]) -> None:
        """Get ready for a collection that is filled next, where a store has to.

        Args:
            collection: Which one; it is empty.
            expected: How many vectors it will hold.
            sample: Returns up to n of them, float32 `[n, dim]`, spread over all.
        """
        return

    def upsert(
        self, collection: str, chunk_ids: Sequence[int], rows: FloatArray, stamps: Stamps
    ) -> None:
        """Add or replace vectors.

        Args:
            collection: Which one; made when it is new.
            chunk_ids: Distinct ids, positive, below 2^40.
            rows: float32 `[n, dim]`, norm 1; all of a collection have one dimension.
            stamps: Whose they are, for people who look into the store.
        """
        ...

    def delete(self, collection: str, chunk_ids: Sequence[int]) -> None:
        """Remove vectors; ids and collections that are unknown are fine."""
        ...

    def flush(self, collection: str, *, at_once: bool) -> bool:
        """Write what a collection has in memory only, at once or when it is much.

        Returns:
            Whether everything is durable; if not, the process may lose what was told since it was.
        """
        return True

    def search(self, collection: str, query: FloatArray, n: int) -> list[int]:
        """Return up to n neighbours' ids by cosine distance, nearest first as far as known.

        Args:
            collection: Which one; an unknown one holds nothing.
            query: float32 `[dim]`, norm 1.
            n: At most this many, from 1.
        """
        ...

    def ids(self, collection: str) -> set[int]:
        """Return the ids of all vectors; empty for an unknown collection."""
        ...

    def count(self, collection: str) -> int:
        """Return how many vectors there are; 0 for an unknown collection."""
        ...

    def collections(self) -> list[str]:
        """Return the names of all collections."""
        ...

    def drop(self, collection: str) -> None:
        """Remove a collection; an unknown one is fine."""
        ...

    def set_aside(self) -> str:
        """Move the files to another name and continue empty; return that name.

        An empty name when there were no files.
        """
        ...

    def close(self) -> None:
        """Let the store go, with what was not flushed; a call after it opens the store again."""
        ...


@runtime_checkable
class SharedStore(VectorStore, Protocol):
    """A store that other processes search too: what serves is exchanged, never emptied."""

    def ids_after(self, collection: str, after: int, most: int) -> list[int]:
        """Return the lowest ids, up to so many, above one; ascending."""
        ...

    def count_agreed(self, collection: str) -> int:
        """Return how many vectors there are as most copies say: one may be behind the others."""
        ...

    def epoch(self, collection: str) -> str | None:
        """Return what `set_epoch` noted, empty: nothing; None for an unknown collection."""
        ...

    def set_epoch(self, collection: str, epoch: str) -> None:
        """Note of which state of the catalog a collection is (app.storage.catalog.epochs)."""
        ...

    def shadow_collection(self, collection: str) -> str:
        """Return a new name, for a collection to fill in the place of one that serves."""
        ...

    def delete_unserved(self, collection: str, filled: str = "") -> None:
        """Remove what was filled in the place of a collection and does not serve.

        Everything, or only `filled`.
        """
        ...

    def promote(self, collection: str, filled: str) -> None:
        """Let searches go to the collection that was filled, and remove the one before.

        Raises:
            IndexDamaged: Another process removed what was filled.
        """
        ...
