"""Answers as JSON: the one place that knows the field names of a reply.

The API sends these models, and the answer store keeps them. Parts that have
no other name in JSON (sentences, citations, notices, traces) are the value objects themselves.
"""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Callable, Iterable, Mapping
from contextvars import ContextVar
from dataclasses import dataclass, field, fields, replace
from datetime import UTC, datetime, timedelta
from operator import attrgetter
from typing import Annotated, Any, Literal, Self, TypedDict, get_args
from urllib.parse import quote_plus

from pydantic import BeforeValidator

from app.answer.options import AnswerOptions
from app.core.links import (
    BLOCKS,
    OBSIDIAN,
    ZOTERO,
    WebLink,
    obsidian_block,
    obsidian_link,
    zotero_link,
)
from app.core.serialization import PUBLIC, from_json, json_values
from app.core.types import (
    Answer,
    AnswerStatus,
    Band,
    Evidence,
    Hit,
    Library,
    Mode,
    Nearest,
    Notice,
    NoticeCode,
    Question,
    Quote,
    Scope,
    Sentence,
    Signals,
    Strategy,
    TraceLevel,
    TraceReport,
    Usage,
)
from app.storage.catalog.answers import AnswerStore

# Passages as JSON: a hit of a search, a numbered source of an answer.

PREVIEW_CHARACTERS = 1000
"""A chunk of the default size is shown whole: a client can judge it without a second request."""

root_path: ContextVar[str] = ContextVar("root_path", default="")
"""The path under which a proxy serves the page of a request (ROOT_PATH)."""

_OF_DOCUMENT = "doc_id duplicate_of title filename sample authors year source_url flags".split()
_OF_CHUNK = ("revision", "library", "section", "page", "start", "end")
_VALUES = attrgetter(*(one.name for one in fields(Signals)))


@dataclass(frozen=True, slots=True, kw_only=True)
class PassageRecord:
    """A passage of a stored revision; offsets are Unicode code points."""

    __pydantic_config__ = PUBLIC
    doc_id: str
    duplicate_of: str | None
    revision: int
    library: Library
    title: str
    filename: str = ""
    """Absent from old answers."""
    sample: bool = False
    """The document came with the program."""
    authors: tuple[str, ...]
    year: int | None
    section: str
    page: int | None
    chunk_index: int
    start: int
    """First character."""
    end: int
    """One past the last character."""
    band: Band | None
    score: float
    """Order of this reply's passages; higher is better, not comparable between questions."""
    signals: Signals
    source_url: WebLink
    zotero_url: str | None = None
    """Where Zotero opens the passage's page, of a document that came from there."""
    obsidian_url: str | None = None
    """Where Obsidian opens the note, at the passage's block or heading, of a note of a vault."""
    view_url: str
    """Where the page shows the passage highlighted, relative to the root of the server."""
    flags: tuple[str, ...] = ()
    """Findings at ingest a reader should see, of the whole document; absent from old answers."""

    @classmethod
    def of_hit(cls, hit: Hit, heading: str = "", **more: Any) -> Self:  # of the subclass's fields
        """Return the record of a hit; `more` holds the fields that a subclass adds.

        Args:
            hit: The passage.
            heading: Title of the one that it stands under; empty: not known.
            more: By the names of the fields.
        """
        chunk, document = hit.passage.chunk, hit.passage.document
        return cls(
            **{name: getattr(document, name) for name in _OF_DOCUMENT},
            **{name: getattr(chunk, name) for name in _OF_CHUNK},
            chunk_index=chunk.ordinal,
            band=hit.band,
            score=round(hit.score, 6),
            signals=Signals(*map(_rounded, _VALUES(hit.signals))),
            zotero_url=zotero_link(document.metadata.get(ZOTERO), chunk.page),
            obsidian_url=obsidian_link(
                document.metadata.get(OBSIDIAN),
                heading,
                obsidian_block(document.metadata.get(BLOCKS), chunk.text),
            ),
            view_url=view_url(hit),
            **more,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Source(PassageRecord):
    """A numbered passage of an answer."""

    n: int
    distance: float | None
    """Cosine distance, 0 to 2."""
    similarity: float | None
    """1 - distance."""
    preview: str
    licence: str | None

    @classmethod
    def of(cls, evidence: Evidence) -> Self:
        """Return the record of numbered evidence."""
        distance = evidence.hit.signals.dense
        begins = evidence.hit.passage.chunk.start
        above = [heading.title for heading in evidence.headings if heading.start <= begins]
        return cls.of_hit(
            evidence.hit,
            above[-1] if above else "",
            n=evidence.n,
            distance=_rounded(distance),
            similarity=None if distance is None else _rounded(1.0 - distance),
            preview=_preview(evidence.hit.passage.chunk.text),
            licence=evidence.hit.passage.document.licence,
        )


def view_url(hit: Hit) -> str:
    """Return our page's address of the highlighted passage, relative to the host."""
    chunk = hit.passage.chunk
    return view_of(chunk.library, chunk.doc_id, chunk.revision, chunk.start, chunk.end)


def view_of(library: Library, doc_id: str, revision: int, start: int, end: int) -> str:
    """Return our page's address of highlighted characters, relative to the host."""
    where = f"library={library.value}&doc={quote_plus(doc_id)}&revision={revision}"
    return f"{root_path.get()}/?{where}&start={start}&end={end}"


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(float(value), 6)


def _preview(text: str) -> str:
    """Return a passage's beginning, cut at a word, with an ellipsis if cut."""
    if len(text) <= PREVIEW_CHARACTERS:
        return text
    cut = text[:PREVIEW_CHARACTERS]
    head = (
        cut.rsplit(maxsplit=1)[0] if cut[-1:].strip() and text[PREVIEW_CHARACTERS].strip() else cut
    )
    return f"{head.rstrip()}\u2026"


@dataclass(frozen=True, slots=True, kw_only=True)
class NearestRecord:
    """A place that comes nearest to a question that was refused."""

    __pydantic_config__ = PUBLIC
    library: Library
    doc_id: str
    revision: int
    title: str
    start: int
    """First character, in the document."""
    end: int
    """One past the last character."""
    quote: str
    """The document's own characters."""
    view_url: str
    """Where the page shows them highlighted, relative to the root of the server."""

    @classmethod
    def of(cls, near: Nearest) -> Self:
        """Return the record of a place."""
        chunk = near.passage.chunk
        return cls(
            library=chunk.library,
            doc_id=chunk.doc_id,
            revision=chunk.revision,
            title=near.passage.document.title,
            start=near.start,
            end=near.end,
            quote=near.quote,
            view_url=view_of(chunk.library, chunk.doc_id, chunk.revision, near.start, near.end),
        )


_OF_ANSWER = (
    "answer_id conversation_id status generator embedder rewritten_query notices sentences quote"
    " model_text usage"
).split()


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerRecord:
    """An answer whose every citation can be checked."""

    __pydantic_config__ = PUBLIC
    answer_id: str
    conversation_id: str | None
    answer: str
    """Markdown with [n]; empty when retrieve_only."""
    status: AnswerStatus
    generator: str
    embedder: str
    library: Scope
    query_mode: Mode
    retrieval_strategy: Strategy
    """The strategy that searched."""
    rewritten_query: str | None
    confidence: float = field(metadata={"ge": 0, "le": 1})
    """Calibrated probability that the answer is supported."""
    notices: tuple[Notice, ...]
    sources: tuple[Source, ...]
    sentences: tuple[Sentence, ...]
    quote: Quote | None = None
    """The quoting answer, where a model was to answer and there is one."""
    model_text: str | None = None
    """What is kept of the model's own words; null where no model spoke."""
    nearest: tuple[NearestRecord, ...] = ()
    """With a refusal alone: at most three places that come nearest, best first. They are no answer,
    and are not kept with it: they are gone with their documents."""
    trace: TraceReport | None
    usage: Usage

    @classmethod
    def of(cls, answer: Answer, trace: TraceLevel | None = None, **more: Any) -> Self:
        """Return the record of a final answer.

        Args:
            answer: The final answer of a stream.
            trace: How much of the trace to show; None takes the level the question asked for.
            more: The fields that a subclass adds.
        """
        return cls(
            **{name: getattr(answer, name) for name in _OF_ANSWER},
            answer=answer.text,
            library=answer.question.library,
            query_mode=answer.question.mode,
            retrieval_strategy=answer.strategy,
            confidence=round(answer.confidence, 4),
            sources=tuple(Source.of(evidence) for evidence in answer.evidence),
            trace=answer.trace.at(trace or answer.question.trace),
            nearest=tuple(NearestRecord.of(near) for near in answer.nearest),
            **more,
        )


# Answers as the store keeps them: with the request, the settings and the whole trace.


def _of_today(sentences: Iterable[Mapping[str, object]]) -> tuple[dict[str, object], ...]:
    """Return kept sentences in today's words.

    Older releases called `not_found` `unsupported`, and `unsure` `weak`.
    """
    new = {"unsupported": "not_found", "weak": "unsure"}
    return tuple(
        {**one, "verdict": new.get(str(one["verdict"]), one["verdict"])} for one in sentences
    )


def _known_notices(notices: Iterable[Mapping[str, object]]) -> tuple[Mapping[str, object], ...]:
    """Return kept notices but those of older releases whose codes are gone."""
    return tuple(one for one in notices if one["code"] in get_args(NoticeCode))


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredRecord(AnswerRecord):
    """An answer as given, with its full trace and request.

    Quotes of deleted documents are blank.
    """

    notices: Annotated[tuple[Notice, ...], BeforeValidator(_known_notices)]
    sentences: Annotated[tuple[Sentence, ...], BeforeValidator(_of_today)]
    asked: Question
    settings: dict[str, str]
    """What can change an answer besides the documents."""
    at: str
    """When it was answered, UTC ISO 8601."""
    kept: Literal["full", "hash"]
    """hash: texts are replaced by their SHA-256."""
    feedback: dict[str, object] | None = field(
        default=None, metadata={"exclude_if": lambda feedback: feedback is None}
    )

    @classmethod
    def kept_whole(cls, answer: Answer, settings: Mapping[str, str], at: str) -> Self:
        """Return everything that a later reader needs.

        Args:
            answer: The final answer.
            settings: Names and values of settings that can change an answer.
            at: When it was answered, UTC ISO 8601.
        """
        answer = replace(answer, nearest=())
        return cls.of(
            answer, "full", asked=answer.question, settings=dict(settings), at=at, kept="full"
        )


# Keep answers whole, hashed, or not at all (STORE_ANSWERS), for a time.

_PRUNE_EVERY = timedelta(hours=1)

Clock = Callable[[], datetime]
"""The time now, with a zone."""


def utc_now() -> datetime:
    """Return the time now in UTC."""
    return datetime.now(UTC)


class AnswerJournal:
    """Keeps finished answers as the privacy options say. Thread-safe."""

    def __init__(
        self,
        store: AnswerStore,
        options: AnswerOptions,
        settings: Callable[[], Mapping[str, str]],
        clock: Clock = utc_now,
    ) -> None:
        self._store = store
        self._options = options
        self._settings = settings
        self._clock = clock
        self._lock = threading.Lock()
        self._pruned: datetime | None = None

    @property
    def keeps_traces(self) -> bool:
        """Return whether answers and their full traces are stored."""
        return self._options.store_answers != "off"

    def keep(self, answer: Answer) -> None:
        """Store a finished answer, and now and then forget those past retention.

        Searches (`retrieve_only`) and pleasantries are not answers and are not kept.
        """
        if self._options.store_answers == "off" or answer.status in ("retrieved", "chitchat"):
            return
        record = StoredRecord.kept_whole(answer, self._settings(), _iso(self._clock()))
        shown = hashed(record) if self._options.store_answers == "hash" else record
        self._store.save(answer, json_values(shown), self._past_retention())

    def _past_retention(self) -> str | None:
        """Return before which time answers are to be forgotten now, if any are."""
        if self._options.answer_retention_days <= 0:
            return None
        now = self._clock()
        with self._lock:
            if self._pruned is not None and now - self._pruned < _PRUNE_EVERY:
                return None
            self._pruned = now
        return _iso(now - timedelta(days=self._options.answer_retention_days))


def hashed(record: StoredRecord) -> StoredRecord:
    """Return the record with every human text replaced by its SHA-256.

    Offsets, scores and times stay.
    """
    asked, quote = record.asked, record.quote
    history = tuple(replace(turn, content=_sha256(turn.content)) for turn in asked.history)
    return replace(
        record,
        answer=_sha256(record.answer),
        rewritten_query=_hash_or_none(record.rewritten_query),
        sources=tuple(replace(source, preview="") for source in record.sources),
        sentences=_hashed_sentences(record.sentences),
        quote=quote
        and replace(quote, text=_sha256(quote.text), sentences=_hashed_sentences(quote.sentences)),
        model_text=_hash_or_none(record.model_text),
        asked=replace(asked, text=_sha256(asked.text), history=history),
        kept="hash",
    )


def _hashed_sentences(sentences: Iterable[Sentence]) -> tuple[Sentence, ...]:
    return tuple(
        replace(
            sentence,
            text=_sha256(sentence.text),
            citations=tuple(replace(one, quote=_sha256(one.quote)) for one in sentence.citations),
        )
        for sentence in sentences
    )


def _hash_or_none(text: str | None) -> str | None:
    return None if text is None else _sha256(text)


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def _iso(at: datetime) -> str:
    return at.astimezone(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")


# Turn ratings of stored answers into an answer set for evaluation.


class CaseRecord(TypedDict):
    """One line of an answer set (docs/evaluation.md)."""

    question: str
    library: str
    intent: str
    expected_substrings: list[str]
    keywords: list[str]
    expected_docs: list[str]
    oos: bool


def to_case(record: Mapping[str, object]) -> CaseRecord | None:
    """Return the case that a rated answer makes; None if it names nothing right.

    A right passage names the document to find. Thumbs up confirm the documents that the answer
    cites, or that refusing was right. Thumbs down alone say that something was wrong, not what.

    Args:
        record: A stored answer with its `feedback`, as `AnswerStore.list(with_feedback=True)`
            returns them.
    """
    answer = from_json(StoredRecord, record)
    feedback = answer.feedback or {}
    if answer.kept != "full" or answer.status not in ("answered", "abstained"):
        return None
    passage, approved = feedback.get("passage"), feedback.get("thumbs") == "up"
    if passage is None and not approved:
        return None
    cited = {citation.n for sentence in answer.sentences for citation in sentence.citations}
    documents = [source.doc_id for source in answer.sources if source.n in cited]
    return CaseRecord(
        question=answer.asked.text,
        library=answer.library,
        intent="question",
        expected_substrings=[],
        keywords=[],
        expected_docs=[str(passage["doc_id"])]
        if isinstance(passage, Mapping)
        else list(dict.fromkeys(documents)),
        oos=passage is None and answer.status == "abstained",
    )


def answer_set(records: Iterable[Mapping[str, object]]) -> str:
    """Return rated answers as JSON lines, one a question, newest rating first.

    Only the newest counts. Empty without any.
    """
    cases: dict[tuple[str, str], CaseRecord] = {}
    for record in records:  # newest first
        case = to_case(record)
        if case is not None:
            cases.setdefault((case["question"], case["library"]), case)
    return "".join(f"{json.dumps(case, ensure_ascii=False)}\n" for case in cases.values())
