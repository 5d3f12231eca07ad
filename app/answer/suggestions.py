"""Example questions that the library can really answer.

They are made of sentences of a known form and of headings (`question_forms`), without a model: a
page that opens waits for none. A question is only shown when the quoting answerer answers it from
one of the documents they were made of.
"""

from __future__ import annotations

import itertools
import re
import threading
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from app.answer.search import Search, SearcherFor, libraries
from app.answer.strategies import numbered
from app.core.cancel import CancelToken
from app.core.errors import NotFound
from app.core.languages import DEFAULT, LANGUAGES
from app.core.ports import Catalog, Generator
from app.core.sentences import sentence_spans
from app.core.trace import Trace
from app.core.types import Document, Library, Passage, Prompt, Question, Scope
from app.generation.citations import mark_numbers

# Make questions of sentences of a known form and of headings, without a model.

_SUBJECT = (
    r"(?P<subject>(?:The |A |An )?[A-Z][\w'\u2019-]*(?: (?:of|the|and|de|von|van|in|for)\b|"
    r" [\w'\u2019-]+){0,5}?)"
)
_IS = re.compile(
    rf"^{_SUBJECT}(?: \([^)]*\))?,? (?P<verb>is|are|was|were) (?:a|an|the|one of|any|those|defined"
    r" as|known as)\b(?P<rest>[^.]*)"
)
_WHEN = re.compile(
    rf"^{_SUBJECT} (?P<verb>was|were) (?:first )?(?P<done>founded|built|discovered|invented|opened"
    r"|published|introduced|completed"
    r"|established|created|launched|developed|signed|born|named|described|proposed"
    r"|released)\b[^.]*?\bin (?:\w+ )?\d{4}\b"
)
_KINDS_OF = re.compile(
    rf"^{_SUBJECT} (?P<verb>are) [a-z]+s (?:with|that|which|of|made|in|for)\b(?P<rest>[^.]*)"
)
_MADE_BY = re.compile(
    r"^(?:[A-Z][\w'\u2019-]+ ){2,4}(?P<done>built|invented|wrote|discovered|published|painted"
    r"|designed"
    r"|composed|patented|founded|introduced) (?P<what>(?:the|a|an) [^,.;:]{3,60}?)"
    r"(?: (?:in|for|at|by|to|which|that|on|and)\b|[,.;])"
)
_OPENED = re.compile(rf"^{_SUBJECT} opened (?:on|in) [^.]{{0,16}}\d{{4}}")
_DOES = re.compile(r"^An? (?P<subject>[a-z]+(?: [a-z]+)?) (?!is\b|was\b|has\b)[a-z]{3,}s\b")
_CONSISTS = re.compile(
    rf"^{_SUBJECT} (?P<verb>consists?|comprises?|is made up|are made up|is divided|are divided)"
    r" (?:of|into)? ?(?!that\b)\w+"
)
_USED = re.compile(
    rf"^{_SUBJECT} (?P<verb>is|are|was|were) (?:mainly |also |often )?used (?:to|for|as)\b"
)
_BEATS = re.compile(rf"^{_SUBJECT} (?:significantly |consistently )?outperforms\b")
_PRESENTED = re.compile(
    r"\b[Ww]e (?:introduce|present|propose|develop|release|construct|call)\b[^.]{0,80}?"
    r"\b(?P<subject>[A-Z]\w*[A-Z]\w*)"
)
_NUMBERED = re.compile(r"^\d+(?:\.\d+)+ (?P<subject>[A-Z]\w+(?: [a-z]\w+){0,2})$", re.MULTILINE)
_SUBJECT_OF = re.compile(
    r"(?P<ask>(?:What|Who|When) (?:is|are|was|were|causes|does|do) )(?P<name>[A-Z][a-z]+)\b"
    r"(?!.* say about )"
)
_OPENING = 3
"""Sentences in which a document says what it is about, its title among them."""
_GENERAL = re.compile(r"the (?:system|model|method|framework|approach|data ?set|task|paper|study)")
"""Things that every second document has."""
_IN_OTHER_LANGUAGES = (
    (
        re.compile(r"^(?P<subject>(?:D(?:er|ie|as) )?[^\W\d_a-z]\w+) ist (?:eine?|der|die|das)\b"),
        "Was ist {}?",
    ),
    (
        re.compile(r"^(?P<subject>(?:(?:El|La) \w+|[^\W\d_a-z]\w+)) es una?\b"),
        "\u00bfQu\u00e9 es {}?",
    ),
    (
        re.compile(r"^(?P<subject>(?:(?:Le|La) \w+|[^\W\d_a-z]\w+)) est une?\b"),
        "Qu\u2019est-ce que {}\u00a0?",
    ),
)
"""Definitions in German, Spanish and French, and how they are asked for."""
_CAUSE = re.compile(rf"^{_SUBJECT} (?P<verb>is|are) caused by\b")
_PERSON = re.compile(
    r"\b(?:\w+(?:ologist|ographer|icist|matician|ician|ist|writer|poet|author|painter|singer|actor"
    r"|actress|engineer|inventor|explorer"
    r"|composer|lawyer|politician|leader|king|queen|emperor|president|teacher|nurse|doctor"
    r"|architect|professor)s?)\b"
)
_POINTING = frozenset(
    "it our my your this that these those there"
    " they he she we i its their his her such here what which who as if when in first second third"
    " next last finally another other others one two three many most some all each both none"
    " overall thus hence then also note"
    " after before with by from for on at of to through during because while since although unlike"
    " figure table section equation algorithm appendix example step part chapter item result"
    " results".split()
)
_PRONOUNS = frozenset("it they he she we you i this these those first".split())
_PLAIN_SECTIONS = frozenset(
    "body abstract introduction conclusion conclusions references results discussion methods"
    " methodology experiments"
    " acknowledgements appendix background summary overview notes see also external links"
    " bibliography related work".split()
) | {"see also", "external links", "related work"}


def made_of(passages: Sequence[Passage]) -> list[str]:
    """Return questions from a document's sentences and headings, best first.

    No model takes part.
    """
    text = "\n".join(passage.chunk.text for passage in passages)
    sentences = [
        " ".join(passage.chunk.text[start:end].split())
        for passage in passages
        for start, end in sentence_spans(passage.chunk.text)
    ]
    language = passages[0].document.language if passages else DEFAULT
    defined = [
        question for sentence in sentences if (question := _definition_in(sentence, language))
    ]
    dated = [question for sentence in sentences if (question := _date(sentence))]
    sections = dict.fromkeys(
        passage.chunk.section
        for passage in passages
        if passage.chunk.section not in _PLAIN_SECTIONS
    )
    titled = (
        [f"What does {passages[0].document.title} say about {section}?" for section in sections]
        if passages
        else []
    )
    told = [question for sentence in sentences if (question := _told(sentence))]
    told += [
        question for sentence in sentences[:_OPENING] if (question := _does(sentence, passages))
    ]
    made = [
        *defined[:1],
        *dated[:2],
        *told[:3],
        *defined[1:3],
        *_presented(passages)[:3],
        *titled[:2],
    ]
    return list(dict.fromkeys(_in_its_case(question, text) for question in made))


def _told(sentence: str) -> str:
    """Return a question for what a thing consists of, serves or outperforms, or who made it."""
    if match := _CONSISTS.match(sentence):
        does = "does" if match["verb"].endswith("s") or match["verb"].startswith("is ") else "do"
        return _asked(match, f"What {does} {{}} consist of?")
    if match := _USED.match(sentence):
        return _asked(match, f"What {match['verb']} {{}} used for?")
    if match := _BEATS.match(sentence):
        return _asked(match, "What does {} outperform?")
    if match := _OPENED.match(sentence):
        return _asked(match, "When did {} open?")
    if match := _MADE_BY.match(sentence):
        return f"Who {match['done']} {match['what']}?"
    return ""


def _does(sentence: str, passages: Sequence[Passage]) -> str:
    """Return a question for what the thing does that a document is about."""
    match = _DOES.match(sentence)
    if not match or match["subject"] != passages[0].document.title.lower():
        return ""
    article = "an" if sentence.startswith("An ") else "a"
    return f"What does {article} {match['subject']} do?"


def _asked(match: re.Match[str], form: str) -> str:
    subject = _subject(match)
    return form.format(subject) if subject else ""


def _presented(passages: Sequence[Passage]) -> list[str]:
    """Return questions for what a paper introduces by name or under a numbered heading."""
    texts = [passage.chunk.text for passage in passages]
    flat = [" ".join(text.split()) for text in texts]
    named = [match["subject"] for text in flat for match in _PRESENTED.finditer(text)]
    headed = [
        f"the {match['subject']}"
        for text in texts
        for match in _NUMBERED.finditer(text)
        if any(f"he {match['subject']} " in one for one in flat)
    ]
    return [f"What is {subject}?" for subject in dict.fromkeys([*named, *headed])]


def _in_its_case(question: str, text: str) -> str:
    """Return a question whose subject is in lower case where its document writes it so."""
    match = _SUBJECT_OF.match(question)
    if match and re.search(rf"[a-z,] {match['name'].lower()}\b", text):
        return f"{match['ask']}{match['name'].lower()}{question[match.end() :]}"
    return question


def _definition_in(sentence: str, language: str) -> str:
    """Return what a sentence defines as a question in its language; empty if nothing."""
    one = LANGUAGES.get(language or DEFAULT)
    if one is None or not one.is_a:
        return _definition(sentence)
    match = re.match(rf"{_ANY_SUBJECT}{one.is_a}", sentence)
    if match is None:
        return ""
    first, *rest = match["subject"].split()
    if first.lower() in one.function_words.split():
        if not rest:
            return ""
        first = first.lower()
    return one.what_is.format(" ".join([first, *rest]))


_ANY_SUBJECT = r"(?P<subject>[^\W\d_][\w'\u2019-]*(?: [\w'\u2019-]+){0,4}?)"


def _definition(sentence: str) -> str:
    if match := _CAUSE.match(sentence):
        subject = _subject(match)
        return f"What causes {subject}?" if subject else ""
    for pattern, form in _IN_OTHER_LANGUAGES:
        if match := pattern.match(sentence):
            subject = match["subject"]
            return form.format(subject[0].lower() + subject[1:] if " " in subject else subject)
    match = _IS.match(sentence) or _KINDS_OF.match(sentence)
    subject = _subject(match) if match else ""
    if not match or not subject:
        return ""
    person = subject[0].isupper() and _PERSON.search(match["rest"])
    return f"{'Who' if person else 'What'} {match['verb']} {subject}?"


def _date(sentence: str) -> str:
    match = _WHEN.match(sentence)
    subject = _subject(match) if match else ""
    return f"When {match['verb']} {subject} {match['done']}?" if match and subject else ""


def _subject(match: re.Match[str]) -> str:
    """Return the subject as in a question; empty if it refers elsewhere."""
    subject = match["subject"]
    first, *rest = subject.split()
    if first.lower() in _POINTING or _PRONOUNS.intersection(word.lower() for word in rest):
        return ""
    if first in ("The", "A", "An"):
        named = " ".join([first.lower(), *rest])
        return "" if not rest or _GENERAL.fullmatch(named) else named
    return subject


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
