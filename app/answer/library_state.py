"""Report which library a question is for, and whether libraries have documents to ask about."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from app.answer.search import libraries
from app.core.errors import NotFound
from app.core.ports import Catalog
from app.core.types import DefaultLibrary, Library, Notice, Scope


@dataclass(frozen=True, slots=True)
class AskedByDefault:
    """Where a question looks that names no library, and why."""

    library: Scope
    reason: str


def asked_by_default(
    catalog: Catalog, configured: DefaultLibrary, doc_ids: Sequence[str] = ()
) -> AskedByDefault:
    """Return where a question looks that names no library.

    Args:
        catalog: Counts documents.
        configured: DEFAULT_LIBRARY.
        doc_ids: Documents that the question names; the libraries that hold them come first.
    """
    if named := [one for one in Library if _holds_any(catalog, one, doc_ids)]:
        return AskedByDefault(_scope(named), "it holds the documents that were named")
    if configured != "auto":
        return AskedByDefault(configured, "DEFAULT_LIBRARY names it")
    counts = {library: catalog.counts(library) for library in Library}
    if own := [library for library, held in counts.items() if not held.is_disposable]:
        alone = len(own) == 1
        return AskedByDefault(
            _scope(own),
            "it holds your own documents" if alone else "both libraries hold your own documents",
        )
    if counts[Library.PAPERS].samples:
        return AskedByDefault("papers", "only sample documents are there")
    return AskedByDefault("public", "papers has no documents")


def is_empty(catalog: Catalog, scope: Scope) -> bool:
    """Return True when no library of the scope has a chunk."""
    return not any(catalog.counts(library).chunks for library in libraries(scope))


def empty_notice(scope: Scope) -> Notice:
    """Return the notice `library_empty` with the cure."""
    names = " and ".join(repr(library.value) for library in libraries(scope))
    what = f"the libraries {names} are empty" if scope == "all" else f"the library {names} is empty"
    return Notice("library_empty", f"{what}; add a document, or load the samples: documind samples")


def _scope(chosen: Sequence[Library]) -> Scope:
    return chosen[0].value if len(chosen) == 1 else "all"


def _holds_any(catalog: Catalog, library: Library, doc_ids: Sequence[str]) -> bool:
    for doc_id in doc_ids:
        try:
            catalog.document(library, doc_id)
        except NotFound:
            continue
        return True
    return False
