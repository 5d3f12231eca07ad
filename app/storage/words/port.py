"""Define the port of a library's index of words, as the projector writes it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Protocol, TypeGuard

from app.core.types import Filters, Library, Scored
from app.storage.catalog.loader import CatalogLoader
from app.storage.catalog.rows import LexicalDocument

NO_SECTION = "body"
"""The section name of text without headings; it says nothing, so it is not searched as words."""


class WordIndex(Protocol):
    """One library's BM25; reads are concurrent, writers serialise their calls.

    The catalog can fill it again at any time. An engine looks after its files itself, so that
    `compact`, `set_background`, `damaged` and `lost` do nothing there. Methods raise `DiskFull`
    when there is no space, `SearchAway` when an engine does not answer, and `IndexDamaged` for
    everything else.
    """

    failed: bool
    """Whether its files could not be read or written, a full disk aside."""

    @property
    def count(self) -> int:
        """Return how many chunks are committed."""
        ...

    @property
    def languages(self) -> tuple[str, ...]:
        """Return the languages of the documents, that of most chunks first; never empty."""
        ...

    def search(self, text: str, k: int, filters: Filters | None) -> list[Scored]:
        """Return up to k chunks by BM25, descending, ties by chunk id; any text is a query."""
        ...

    def score(self, text: str, chunk_ids: Sequence[int]) -> dict[int, float]:
        """Return the BM25 of given chunks; those sharing no term, or unknown, are 0.0."""
        ...

    def document_frequencies(self, tokens: Sequence[str]) -> tuple[int, dict[str, int]]:
        """Return the number of chunks and how many bodies hold each stemmed token."""
        ...

    def near(self, token: str, edits: int, k: int) -> list[int]:
        """Return up to k chunks with a token within `edits`, 0 to 2, of a stemmed one, by id.

        In body or title; swapping two neighbouring letters is one edit.
        """
        ...

    def beginning(self, start: str, k: int) -> list[int]:
        """Return up to k chunks with a stemmed token that begins so, by id; in body or title."""
        ...

    def ids(self) -> list[int]:
        """Return all committed chunk ids; duplicates repeat."""
        ...

    def finds(self, chunk_id: int, text: str) -> bool:
        """Return whether a chunk's own words find it; True without words."""
        ...

    def add(self, document: LexicalDocument) -> None:
        """Queue a document's chunks; they are durable and found after `commit`."""
        ...

    def delete(self, doc: int, chunk_ids: Sequence[int]) -> None:
        """Queue the removal of a document's chunks, committed or queued before.

        Where several processes write only `chunk_ids` go, which are no longer live: one that was
        held up between removes nothing newer.
        """
        ...

    def commit(self) -> None:
        """Make everything queued durable and searchable."""
        ...

    def rollback(self) -> None:
        """Drop everything queued."""
        ...

    def delete_all(self) -> None:
        """Remove every chunk, durably."""
        ...

    def compact(self) -> None:
        """Give back the space of what was removed, as far as the index does."""
        return

    def set_background(self, background: bool) -> None:
        """Set low priority of the work to come; call with empty queue."""
        return

    def damaged(self) -> list[str]:
        """Return faults of its files; empty when sound."""
        return []

    def lost(self) -> bool:
        """Return whether its files went missing under the server."""
        return False

    def close(self) -> None:
        """Let it go; queued chunks are dropped."""
        ...


class SharedWords(WordIndex, Protocol):
    """An index that other processes search too: what serves is exchanged, never emptied."""

    lacking: bool
    """Whether it was lost, or lacks so much that it is being filled again."""

    @property
    def count_agreed(self) -> int:
        """Return how many chunks there are as most copies say: one may be behind the others."""
        ...

    def ids_after(self, after: int, most: int) -> list[int]:
        """Return the lowest chunk ids, up to so many, above one; ascending."""
        ...

    def delete_chunks(self, chunk_ids: Sequence[int]) -> None:
        """Remove chunks at once, durably; unknown ones are fine."""
        ...

    @property
    def epoch(self) -> str | None:
        """Return what `set_epoch` noted, empty: nothing; None where nothing was put in yet."""
        ...

    def set_epoch(self, epoch: str) -> None:
        """Note of which state of the catalog the index is (app.storage.catalog.epochs)."""
        ...

    def renew(self) -> None:
        """Count languages and terms again, since the library changed; no search waits for it."""
        ...

    def shadow(self) -> WordIndex:
        """Return an empty index to fill in the place of this one."""
        ...

    def delete_unserved(self, filled: WordIndex | None = None) -> None:
        """Remove what was filled in the place of this index and does not serve.

        Everything, or only `filled`.
        """
        ...

    def promote(self) -> None:
        """Let searches go to what was filled next to it, and remove what served before.

        Raises:
            IndexDamaged: Another process removed what was filled.
        """
        ...


def is_shared(index: WordIndex) -> TypeGuard[SharedWords]:
    return hasattr(type(index), SharedWords.shadow.__name__)


# Search the index of words of each library.

NAMED = 500
"""Most documents that a search for words names one by one: of more, ranking 1.25 times the passages
of which the filter leaves enough is faster (evaluation/reports/labels.md)."""


class LibraryWords:
    """BM25 over title, section and body of a library; what methods return, see `WordIndex`."""

    def __init__(self, indexes: Mapping[Library, WordIndex], loader: CatalogLoader) -> None:
        """Search `indexes`; `loader` knows which documents have tags and own metadata."""
        self._indexes = indexes
        self._loader = loader

    def search(
        self, library: Library, text: str, k: int, filters: Filters | None = None
    ) -> list[Scored]:
        index = self._indexes[library]
        if not filters or not any(filters.labels):
            return index.search(text, k, filters)
        named = self._loader.narrowed(library, filters)
        if named is None or k < 1:
            return []
        if len(named.doc_ids) <= NAMED:
            return index.search(text, k, named)
        # Naming many costs more than looking further: what the labels leave out is dropped.
        rest = replace(filters, tags=(), metadata=())
        n = 5 * k * self._loader.documents(library) // (4 * len(named.doc_ids)) + 1
        while True:
            found = index.search(text, n, rest)
            kept = self._loader.matching(filters, [hit.chunk_id for hit in found])
            if len(kept) >= k or len(found) < n:
                return [hit for hit in found if hit.chunk_id in kept][:k]
            n = 2 * k * n // (len(kept) or 1)

    def score(self, library: Library, text: str, chunk_ids: Sequence[int]) -> dict[int, float]:
        return self._indexes[library].score(text, chunk_ids)

    def languages(self, library: Library) -> tuple[str, ...]:
        return self._indexes[library].languages

    def document_frequencies(
        self, library: Library, tokens: Sequence[str]
    ) -> tuple[int, dict[str, int]]:
        return self._indexes[library].document_frequencies(tokens)

    def near(self, library: Library, token: str, edits: int, k: int) -> list[int]:
        return self._indexes[library].near(token, edits, k)

    def beginning(self, library: Library, start: str, k: int) -> list[int]:
        return self._indexes[library].beginning(start, k)
