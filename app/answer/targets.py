"""The documents that a request names: by its filter, or by a title in its words."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import chain

from app.answer.search import libraries
from app.core.errors import NotFound
from app.core.text import tokenise
from app.core.types import Document, Evidence, Heading, Hit, Library, Passage, Question
from app.generation.language.claims import content_tokens
from app.retrieval.request import Retrieval
from app.storage.catalog.documents import Catalog

MOST_DOCUMENTS = 12
"""Documents that one answer goes through at most."""
_LOOKED_AT = 20
"""Documents whose title holds the name, from which the nearest is taken."""
_GENERIC = frozenset(
    tokenise(
        "document paper text file report article pdf page mail email e-mail message letter reply"
    )
)
"""Stemmed words that name a document only as "this one"."""
_TITLE_SHARE = 0.5
"""Of a title's words that a name has, where several titles have the whole name."""


def names_something(named: str) -> bool:
    """Return whether words name a document, not only "it" or "this paper"."""
    return bool(set(content_tokens(named)) - _GENERIC)


def with_headings(catalog: Catalog, evidence: Sequence[Evidence]) -> tuple[Evidence, ...]:
    """Return evidence with the headings above and within each passage."""
    outlines: dict[tuple[Library, str, int], tuple[Heading, ...]] = {}
    for library in {item.hit.passage.chunk.library for item in evidence}:
        chunks = [item.hit.passage.chunk for item in evidence]
        named = {(one.doc_id, one.revision) for one in chunks if one.library == library}
        for (doc_id, revision), headings in catalog.outlines(library, named).items():
            outlines[library, doc_id, revision] = headings
    placed = []
    for item in evidence:
        chunk = item.hit.passage.chunk
        path: list[Heading] = []
        for heading in outlines.get((chunk.library, chunk.doc_id, chunk.revision), ()):
            if heading.start >= chunk.end:
                break
            if heading.start < chunk.start:
                path = [one for one in path if one.level < heading.level]
            path.append(heading)
        placed.append(replace(item, headings=tuple(path)))
    return tuple(placed)


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

    def own(self, question: Question, named: str) -> tuple[Document, ...]:
        """Return a person's own document that words name by its title; else none.

        Of a filter's documents alone where there is one.
        """
        if not names_something(named):
            return self.given(question) or self.only_one(question)
        found = self.titled(question, named)
        chosen = question.filters.doc_ids
        return tuple(
            one
            for one in found
            if one.library is Library.PAPERS and (not chosen or one.doc_id in chosen)
        )

    def listed(self, question: Question) -> tuple[tuple[Document, ...], int]:
        """Return documents of a question's filter, or its libraries, and how many there are.

        Those of each library come newest first.
        """
        if question.filters.doc_ids:
            given = self.given(question)
            return given[:MOST_DOCUMENTS], len(given)
        scope = libraries(question.library)
        found = (self.catalog.documents(library, limit=MOST_DOCUMENTS)[0] for library in scope)
        count = sum(self.catalog.counts(library).documents for library in scope)
        return tuple(chain.from_iterable(found))[:MOST_DOCUMENTS], count

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
        own = [one for one in found if not one.sample] or found
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
