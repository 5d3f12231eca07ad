"""Report whether libraries have documents to ask about."""

from __future__ import annotations

from app.answer.search import libraries
from app.core.ports import Catalog
from app.core.types import Notice, Scope


def is_empty(catalog: Catalog, scope: Scope) -> bool:
    """Return True when no library of the scope has a chunk."""
    return not any(catalog.counts(library).chunks for library in libraries(scope))


def empty_notice(scope: Scope) -> Notice:
    """Return the notice `library_empty` with the cure."""
    names = " and ".join(repr(library.value) for library in libraries(scope))
    what = f"the libraries {names} are empty" if scope == "all" else f"the library {names} is empty"
    return Notice("library_empty", f"{what}; add a document, or load the samples: documind samples")
