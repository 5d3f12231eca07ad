"""Example questions that the library can really answer.

They are made of sentences of a known form and of headings (`question_forms`), without a model: a
page that opens waits for none. A question is only shown when the quoting answerer answers it from
one of the documents they were made of.
"""

from __future__ import annotations

import itertools
import threading
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from app.answer.question_forms import made_of
from app.answer.search import Search, SearcherFor, libraries
from app.answer.strategies.base import numbered
from app.core.cancel import CancelToken
from app.core.errors import NotFound
from app.core.ports import Catalog, Generator
from app.core.trace import Trace
from app.core.types import Document, Library, Passage, Prompt, Question, Scope
from app.generation.citations import mark_numbers

MAX_SUGGESTIONS = 20
_DOCUMENTS = 40
"""Documents looked at for one list."""
_CHUNKS = 12
"""First chunks of a document that questions are made from: definitions stand at the beginning."""
_TRIES = 6
"""Candidates tried per suggestion wanted, so that a page never waits long."""
_CACHED = 64
_TOP_K = 5


@dataclass(frozen=True, slots=True)
class Suggestion:
    """A question, and the document that answers it."""

    question: str
    library: Library
    doc_id: str
    title: str


class Suggester:
    """Makes example questions; caches them until their documents change.

    Thread-safe.
    """

    def __init__(
        self, *, catalog: Catalog, searcher_for: SearcherFor, extractive: Generator
    ) -> None:
        """Take the catalog, the searchers and the quoting answerer."""
        self._catalog = catalog
        self._searcher_for = searcher_for
        self._extractive = extractive
        self._lock = threading.Lock()
        self._cache: OrderedDict[object, tuple[Suggestion, ...]] = OrderedDict()

    def suggest(self, scope: Scope, n: int, doc_id: str | None = None) -> tuple[Suggestion, ...]:
        """Return up to `n` questions (at most 20), one per document if possible.

        More per document if one is given or there are too few.

        Args:
            scope: Which library, or `all`.
            n: How many.
            doc_id: Only this document.

        Raises:
            NotFound: There is no such document.
        """
        wanted = min(n, MAX_SUGGESTIONS)
        documents = self._documents(scope, doc_id)
        key = (
            scope,
            wanted,
            doc_id,
            tuple((document.doc_id, document.revision) for document in documents),
        )
        with self._lock:
            if key in self._cache:
                self._cache.move_to_end(key)
                return self._cache[key]
        found = tuple(itertools.islice(self._answerable(scope, documents, wanted), wanted))
        with self._lock:
            self._cache[key] = found
            while len(self._cache) > _CACHED:
                self._cache.popitem(last=False)
        return found

    def _documents(self, scope: Scope, doc_id: str | None) -> list[Document]:
        if doc_id is None:
            pages = [
                self._catalog.documents(library, limit=_DOCUMENTS)[0]
                for library in libraries(scope)
            ]
            return [
                document
                for row in itertools.zip_longest(*pages)
                for document in row
                if document is not None
            ]
        for library in libraries(scope):
            try:
                return [self._catalog.document(library, doc_id)]
            except NotFound:
                if library is libraries(scope)[-1]:
                    raise
        return []

    def _questions(self, documents: Sequence[Document]) -> Iterator[str]:
        """Yield questions to try: one per document, then more."""
        passages = [
            [
                Passage(chunk, document)
                for chunk in self._catalog.chunks(document.library, document.doc_id)[:_CHUNKS]
            ]
            for document in documents
        ]
        for row in itertools.zip_longest(*map(made_of, passages)):
            yield from (question for question in row if question is not None)

    def _answerable(
        self, scope: Scope, documents: Sequence[Document], wanted: int
    ) -> Iterator[Suggestion]:
        """Yield questions answered from the documents, unserved documents first."""
        allowed = {document.doc_id: document for document in documents}
        second: list[Suggestion] = []
        used: set[str] = set()
        tried = itertools.islice(dict.fromkeys(self._questions(documents)), _TRIES * wanted)
        for question in tried:
            document = allowed.get(self._answering_document(scope, question))
            if document is None:
                continue
            suggestion = Suggestion(question, document.library, document.doc_id, document.title)
            if document.doc_id in used:
                second.append(suggestion)
            else:
                used.add(document.doc_id)
                yield suggestion
        yield from second

    def _answering_document(self, scope: Scope, question: str) -> str:
        """Return the document that an answer cites first; empty without an answer."""
        retrieval = Search(Question(question, scope), _TOP_K, self._searcher_for, Trace())(question)
        evidence = numbered([hit for hit in retrieval.hits if not hit.fallback])
        text = "".join(
            token.text
            for token in self._extractive.stream(Prompt((), question, evidence), CancelToken())
        )
        cited = mark_numbers(text)
        return evidence[cited[0] - 1].hit.passage.chunk.doc_id if cited else ""
