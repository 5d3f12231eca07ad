"""Find the documents that a request names: by its filter, or by a title in its words."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from app.answer.search import libraries
from app.core.errors import NotFound
from app.core.ports import Catalog
from app.core.text import tokenise
from app.core.types import Document, Evidence, Hit, Passage, Question
from app.generation.reading import content_tokens
from app.retrieval.request import Retrieval

MOST_DOCUMENTS = 12
"""Documents that one answer goes through at most."""
_LOOKED_AT = 20
"""Documents whose title holds the name, from which the nearest is taken."""
_TITLE_SHARE = 0.5
"""Of a title's words that a name has, where several titles have the whole name."""


@dataclass(frozen=True, slots=True)
class Targets:
    """Finds documents; reads the catalog alone."""

    catalog: Catalog

    def of(
        self, question: Question, named: str, search: Callable[[str], Retrieval]
    ) -> tuple[Document, ...]:
        """Return the documents meant, best first; empty if the words name none.

        Args:
            question: Its `doc_ids` come before its words.
            named: What the words name; empty: "this document", which is the only one there is.
            search: Searches for the name where no title has all of it.
        """
        if question.filters.doc_ids:
            return self.given(question)
        if not content_tokens(named):
            return self.only_one(question)
        return self.titled(question, named) or _nearest(
            list(_of_hits(search(named).hits, named)), named
        )

    def titled(self, question: Question, named: str) -> tuple[Document, ...]:
        """Return the document whose title or file name has all words of a name; else none."""
        found = [
            one
            for library in libraries(question.library)
            for one in self.catalog.documents(library, named, limit=_LOOKED_AT)[0]
            if set(tokenise(named)) <= _name_tokens(one)
        ]
        return _nearest(found, named)

    def evidence(self, documents: Iterable[Document], after: int = 0) -> tuple[Evidence, ...]:
        """Return all passages of documents in reading order, numbered from `after` + 1."""
        passages = [
            Passage(chunk, document)
            for document in documents
            for chunk in self.catalog.chunks(document.library, document.doc_id, document.revision)
        ]
        return tuple(Evidence(n, Hit(one, 1.0)) for n, one in enumerate(passages, after + 1))

    def given(self, question: Question) -> tuple[Document, ...]:
        """Return the documents of a question's filter that exist in its libraries."""
        found: list[Document] = []
        for doc_id in question.filters.doc_ids:
            for library in libraries(question.library):
                try:
                    found.append(self.catalog.document(library, doc_id))
                except NotFound:
                    continue
        return tuple(found)

    def only_one(self, question: Question) -> tuple[Document, ...]:
        """Return the one document of a person's own that there is; else none."""
        scope = libraries(question.library)
        found = [one for library in scope for one in self.catalog.documents(library, limit=1000)[0]]
        own = [one for one in found if not one.is_sample] or found
        return tuple(own) if len(own) == 1 else ()


def _nearest(found: Sequence[Document], named: str) -> tuple[Document, ...]:
    """Return the document with the nearest title; none if several are far from the name."""
    if len(found) > 1:
        found = [one for one in found if _share(one.title, named) >= _TITLE_SHARE]
    return (max(found, key=lambda one: _share(one.title, named)),) if found else ()


def _of_hits(hits: Sequence[Hit], named: str) -> Iterable[Document]:
    """Yield documents that a search found and whose title has every telling word."""
    documents = {hit.passage.document.doc_id: hit.passage.document for hit in hits}
    wanted = set(content_tokens(named))
    return (one for one in documents.values() if wanted <= _name_tokens(one))


def _name_tokens(document: Document) -> set[str]:
    return {*tokenise(document.title), *tokenise(document.filename)}


def _share(title: str, named: str) -> float:
    """Return the share of a title's words that a name has, in [0, 1]."""
    words = set(tokenise(title))
    return len(words & set(tokenise(named))) / max(1, len(words))
