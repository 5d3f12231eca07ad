"""Whether a library has anything in it, asked for every question and so remembered."""

from __future__ import annotations

import threading

from app.answer.search import libraries
from app.core.ports import Catalog
from app.core.types import Library, Notice, Scope


class LibraryState:
    """Remembers which libraries were seen with documents; thread-safe.

    Only what is not empty is remembered, and looked at again when a search finds nothing, so that neither the first document nor
    the last deletion goes unnoticed, and counting costs nothing while questions find something.
    """

    def __init__(self, catalog: Catalog) -> None:
        """Keep the catalog."""
        self._catalog = catalog
        self._lock = threading.Lock()
        self._filled: set[Library] = set()

    def is_empty(self, scope: Scope) -> bool:
        """Return True when no library of the scope has a chunk."""
        return not any(self._has_chunks(library) for library in libraries(scope))

    def has_become_empty(self, scope: Scope) -> bool:
        """Return `is_empty` of a scope in which a search found nothing."""
        with self._lock:
            self._filled.difference_update(libraries(scope))
        return self.is_empty(scope)

    def empty_notice(self, scope: Scope) -> Notice:
        """Return the notice `library_empty` with the cure."""
        names = " and ".join(repr(library.value) for library in libraries(scope))
        what = f"the libraries {names} are empty" if scope == "all" else f"the library {names} is empty"
        return Notice("library_empty", f"{what}; add a document, or load the samples: documind samples")

    def _has_chunks(self, library: Library) -> bool:
        with self._lock:
            if library in self._filled:
                return True
        filled = self._catalog.counts(library).chunks > 0
        if filled:
            with self._lock:
                self._filled.add(library)
        return filled
