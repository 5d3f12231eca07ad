"""Example questions that the library can really answer.

They stand in the documents, or ask what a thing is, how something is done, or for what stands under
a heading, where the form of the text shows that it says so; no model writes them, so that
a page that opens waits for none. Each is shown only when the quoting answerer answers it from its
document. A document of which nothing else can be asked can be summarised.
"""

from __future__ import annotations

import itertools
import re
import threading
import time
from collections import Counter, OrderedDict
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass

from app.answer.search import Search, SearcherFor, libraries
from app.answer.strategies import numbered
from app.core.cancel import CancelToken
from app.core.errors import NotFound
from app.core.languages import DEFAULT, LANGUAGES, Language
from app.core.ports import Generator
from app.core.trace import Trace
from app.core.types import Document, Heading, Library, Prompt, Question, Scope
from app.generation.check.citations import mark_numbers
from app.ingest.chunking import section_name
from app.storage.catalog.documents import Catalog

_ASKED = re.compile(
    r"^[^\w\n\u00bf\u00a1]{0,9}(?:(?:Q|F|P|Question|Frage|Pregunta)"
    r"\s*\d*\s*[:.)]\s*|\d+(?:\.\d+)*[.)]?\s+)?"
    r"(?P<question>[\u00bf\u00a1]?\w[^.!?\u061f\uff1f|\n]{6,140}[?\u061f\uff1f])[^\w\n]{0,9}$",
    re.MULTILINE,
)
"""A line that is one question, without its label, mark or number."""
_NUMBER = re.compile(r"^[\d.\s]+(?:\)\s*)?")
_PLAIN_SECTIONS = frozenset(
    ("notes", "overview", "see also", "external links", "further reading", "literature")
)
"""Headings besides those of papers that many documents share: a question with one names nothing."""
_MOST_WORDS = 8
"""A heading of more words is a sentence."""
_MOST_WORDS_OF_PART = 2
"""A heading of more is not the name of a part that papers have."""
_LONG_TITLE = 60
"""Characters of a title that a question still holds."""
_OPENING = 400
"""Characters under a heading in which the first sentence begins."""
_EACH = 5
"""Questions of a document of each kind that are tried."""


def questions_in(text: str) -> list[str]:
    """Return the questions that stand in a text, each on a line of its own, in order."""
    found = (" ".join(match["question"].split()) for match in _ASKED.finditer(text))
    return list(dict.fromkeys(one for one in found if one.count(" ") > 1))


def questions_about(
    document: Document, headings: Sequence[Heading], text: str, shared: Container[str] = ()
) -> list[str]:
    """Return what can be asked of a document by its title and headings, in its language.

    What a thing is, where the text under its name says so; how to do what a heading tells; then
    what the document says of its other headings.

    Args:
        document: Names itself and its language.
        headings: With their places.
        text: The document's, for what stands under a heading and how a sentence writes it.
        shared: Headings, in lower case, that several documents have: they name nothing.
    """
    language = LANGUAGES.get(document.language, LANGUAGES[DEFAULT])
    named = {_NUMBER.sub("", one.title).strip(" :"): one.end for one in reversed(headings)}
    named = {title: named[title] for title in reversed(named)}
    things = {document.title: 0} | named
    defined = {title: _defined(title, text, end, language) for title, end in things.items()}
    tells_how = {title: _tells_how(title, language) for title in named}
    about = [
        language.says_about.format(title=_name(document), heading=_in_a_sentence(title, text))
        for title in named
        if not (defined[title] or tells_how[title])
        and not _is_plain(title)
        and title.lower() not in shared
        and title.lower() != document.title.lower()
    ]
    asked = [*filter(None, defined.values()), *filter(None, tells_how.values()), *about]
    return list(dict.fromkeys(asked))


def _defined(thing: str, text: str, end: int, language: Language) -> str:
    """Return what asks for a thing if the text behind its name begins by saying what it is."""
    opening = text[end : end + _OPENING].lstrip()
    if end == 0 and opening.startswith(f"{thing}\n"):  # the title itself
        opening = opening[len(thing) :].lstrip()
    for says, form in language.says_is.items():
        name = rf"(?P<article>\w{{1,3}} )?{re.escape(thing)} {says}\b"
        if thing and (found := re.match(name, opening, re.IGNORECASE)):
            article = (found["article"] or "").lower()
            return form.format(thing=article + _in_a_sentence(thing, text))
    return ""


def _tells_how(heading: str, language: Language) -> str:
    """Return what asks for what a heading tells how to do; empty if it tells of something else."""
    for says, form in language.says_how.items():
        if found := re.fullmatch(says, heading, re.IGNORECASE):
            return form.format(found[1])
    return ""


def _is_plain(heading: str) -> bool:
    """Return whether a heading names nothing, is a question already, or is a sentence."""
    words = len(heading.split())
    is_part = words <= _MOST_WORDS_OF_PART and section_name(heading) is not None
    is_plain = is_part or heading.lower() in _PLAIN_SECTIONS
    return is_plain or heading.endswith("?") or not 0 < words <= _MOST_WORDS


def _lower(heading: Heading) -> str:
    return _NUMBER.sub("", heading.title).strip(" :").lower()


def _in_a_sentence(heading: str, text: str) -> str:
    """Return a heading as a sentence has it: in small letters where the text writes it so."""
    small = heading.lower()
    return small if re.search(rf"[a-z,] {re.escape(small)}\b", text) else heading


def _name(document: Document) -> str:
    """Return what people call a document: its title, that without its subtitle, or its file."""
    title = document.title
    if len(title) > _LONG_TITLE:
        title = title.split(": ")[0]
    return title if len(title) <= _LONG_TITLE else document.filename


def _summary(document: Document, titles: Mapping[str, int]) -> str:
    """Ask for a summary by title, or by file where several documents have the title."""
    form = LANGUAGES.get(document.language, LANGUAGES[DEFAULT]).summarise
    alone = titles[document.title] == 1 or not document.filename
    return form.format(title=_name(document) if alone else document.filename)


MAX_SUGGESTIONS = 20
_DOCUMENTS = 40
"""Documents looked at for one list."""
_CHARS = 20_000
"""What of a document's text is read."""
_TRIES = 6
"""Candidates tried per suggestion wanted, so that a page never waits long."""
_CACHED = 64
_PATIENCE_S = 10.0
"""How long a list waits in all for people's questions; then it is made without searching."""
_TOP_K = 5


@dataclass(frozen=True, slots=True)
class Suggestion:
    """A question, and the document that answers it."""

    question: str
    library: Library
    doc_id: str
    title: str


class Patience:
    """Waits while people's questions are answered, for a time in all."""

    def __init__(self, quiet: Callable[[float], bool], left_s: float) -> None:
        self._quiet = quiet
        self._left_s = left_s
        self.ended = False

    def waited(self) -> bool:
        """Return whether no question is being answered, after a wait."""
        began = time.monotonic()
        self.ended = self.ended or not self._quiet(self._left_s)
        self._left_s -= time.monotonic() - began
        return not self.ended


class Suggester:
    """Makes example questions, one list for all that ask for it; keeps it until documents change.

    Thread-safe.
    """

    def __init__(
        self,
        *,
        catalog: Catalog,
        searcher_for: SearcherFor,
        extractive: Generator,
        quiet: Callable[[float], bool] = lambda _: True,
    ) -> None:
        """Keep what making questions takes.

        Args:
            catalog: Whose documents.
            searcher_for: Finds what answers a question.
            extractive: Answers it.
            quiet: Waits so many seconds at most until no person's question is being answered;
                returns whether none is.
        """
        self._catalog = catalog
        self._searcher_for = searcher_for
        self._extractive = extractive
        self._quiet = quiet
        self._lock = threading.Lock()
        self._cache: OrderedDict[object, Future[tuple[Suggestion, ...]]] = OrderedDict()

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
            made = self._cache.get(key)
            begins = made is None
            if made is None:
                made = self._cache[key] = Future()
            self._cache.move_to_end(key)
            while len(self._cache) > _CACHED:
                self._cache.popitem(last=False)
        if begins:
            self._make(made, key, scope, documents, wanted)
        return made.result()

    def _make(
        self,
        made: Future[tuple[Suggestion, ...]],
        key: object,
        scope: Scope,
        documents: Sequence[Document],
        wanted: int,
    ) -> None:
        """Make a list for all that wait for it; it is kept if it was made with patience."""
        patience = Patience(self._quiet, _PATIENCE_S)
        try:
            found = self._answerable(scope, documents, wanted, patience)
            made.set_result(tuple(itertools.islice(found, wanted)))
        except BaseException as error:
            made.set_exception(error)
            raise
        finally:
            if patience.ended or made.exception() is not None:
                with self._lock:
                    self._cache.pop(key, None)

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

    def _questions(self, documents: Sequence[Document]) -> Iterator[tuple[Document, str]]:
        """Yield what may be asked of documents: of each the first, then of each the next."""
        outlines = self._outlines(documents)
        titles = Counter(
            title for outline in outlines for title in {_lower(one) for one in outline}
        )
        shared = {title for title, count in titles.items() if count > 1}
        pairs = zip(documents, outlines, strict=True)
        asked = [self._questions_of(document, outline, shared) for document, outline in pairs]
        while asked:
            for questions in list(asked):
                if (found := next(questions, None)) is None:
                    asked.remove(questions)
                else:
                    yield found

    def _outlines(self, documents: Sequence[Document]) -> list[Sequence[Heading]]:
        found: dict[tuple[Library, str, int], Sequence[Heading]] = {}
        for library in {document.library for document in documents}:
            own = [one for one in documents if one.library is library]
            named = [(one.doc_id, one.revision) for one in own]
            outlines = self._catalog.outlines(library, named)
            found |= {(library, *one): outlines.get(one, ()) for one in named}
        return [found[one.library, one.doc_id, one.revision] for one in documents]

    def _questions_of(
        self, document: Document, outline: Sequence[Heading], shared: Container[str]
    ) -> Iterator[tuple[Document, str]]:
        text = self._catalog.text(
            document.library, document.doc_id, revision=document.revision
        ).text[:_CHARS]
        about = questions_about(document, outline, text, shared)
        for question in (*questions_in(text)[:_EACH], *about[:_EACH]):
            yield document, question

    def _answerable(
        self, scope: Scope, documents: Sequence[Document], wanted: int, patience: Patience
    ) -> Iterator[Suggestion]:
        """Yield questions that their documents answer, those of unserved documents first.

        Nothing is searched while a person waits for an answer.
        """
        second: list[Suggestion] = []
        used: set[str] = set()
        for document, question in itertools.islice(self._questions(documents), _TRIES * wanted):
            if not patience.waited():
                break
            if self._answering_document(scope, question) != document.doc_id:
                continue
            suggestion = _of(document, question)
            if document.doc_id in used:
                second.append(suggestion)
            else:
                used.add(document.doc_id)
                yield suggestion
        titles = Counter(document.title for document in documents)
        summaries = [(document, _summary(document, titles)) for document in documents]
        yield from (_of(one, asked) for one, asked in summaries if one.doc_id not in used)
        yield from second
        yield from (_of(one, asked) for one, asked in summaries if one.doc_id in used)

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


def _of(document: Document, question: str) -> Suggestion:
    return Suggestion(question, document.library, document.doc_id, document.title)
