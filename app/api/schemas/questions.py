"""Questions, answers, conversations and checks."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Literal, Self, get_args

from pydantic import AfterValidator, Field, StrictFloat, StrictInt, StrictStr, StringConstraints

from app.answer.judging import MOST_JUDGED
from app.answer.records import AnswerRecord, PassageRecord, StoredRecord
from app.answer.suggestions import Suggestion
from app.api.schemas.base import DocId, Flag, Reply, Request
from app.core.labels import MOST_LABEL_CHARACTERS, MOST_TAGS, key_of
from app.core.normalisation import normalise
from app.core.serialization import from_json
from app.core.types import (
    CheckBy,
    Condition,
    DocumentType,
    EvidenceKind,
    Filters,
    Fusion,
    LibraryName,
    Message,
    Mode,
    Notice,
    Question,
    Reasoning,
    Rerank,
    Scope,
    Strategy,
    TraceLevel,
)
from app.core.vocabulary import AnswerStatus

Section = Annotated[str, StringConstraints(min_length=1, max_length=200)]
Year = Annotated[int, Field(ge=0, le=9999)]
Tag = Annotated[str, StringConstraints(min_length=1, max_length=MOST_LABEL_CHARACTERS)]
OwnValue = StrictStr | StrictInt | StrictFloat
"""A text, a number, or a date as YYYY-MM-DD."""
HISTORY_USED = 6
"""Only the last messages of a history are used."""


class Range(Request):
    """Numbers or dates (YYYY-MM-DD) from one to another, both included; null is open."""

    from_: OwnValue | None = Field(None, alias="from")
    to: OwnValue | None = None


class FilterValues(Request):
    """Conditions on passages; all given ones must hold, values are alternatives."""

    section: list[Section] = Field(default_factory=list, max_length=50)
    doc_ids: list[DocId] = Field(default_factory=list, max_length=1000)
    exclude_doc_ids: list[DocId] = Field(
        default_factory=list, max_length=1000, description="documents that are left out"
    )
    year_from: Year | None = None
    year_to: Year | None = None
    author: Annotated[str, StringConstraints(min_length=1, max_length=200)] | None = Field(
        None, description="case-insensitive part of any author's name"
    )
    type: list[Annotated[str, StringConstraints(min_length=1, max_length=20)]] = Field(
        default_factory=list, max_length=20, description=", ".join(get_args(DocumentType))
    )

    tags: list[Tag] = Field(
        default_factory=list, max_length=MOST_TAGS, description="case does not count"
    )

    collection: Tag | None = Field(
        None,
        description="a saved filter; a field that is given here counts instead of its own,"
        " metadata adds up",
    )

    def own_conditions(self) -> tuple[Condition, ...]:
        """Return what is asked of own metadata."""
        return ()

    def conditions(self, sections: Sequence[str] = (), doc_ids: Sequence[str] = ()) -> Filters:
        """Return the filters, with more sections and documents as further alternatives."""
        return Filters(
            sections=tuple(dict.fromkeys((*self.section, *sections))),
            doc_ids=tuple(dict.fromkeys((*self.doc_ids, *doc_ids))),
            exclude_doc_ids=tuple(dict.fromkeys(self.exclude_doc_ids)),
            year_from=self.year_from,
            year_to=self.year_to,
            author=self.author,
            types=tuple(self.type),
            tags=tuple(dict.fromkeys(self.tags)),
            metadata=self.own_conditions(),
        )


class FilterFields(FilterValues):
    """Conditions on passages, as JSON."""

    metadata: dict[str, OwnValue | Range] = Field(
        default_factory=dict,
        max_length=MOST_TAGS,
        description="by key the value, or a range of numbers or dates, {from, to} or FROM..TO;"
        " case does not count",
    )

    def own_conditions(self) -> tuple[Condition, ...]:
        return tuple(
            Condition.between(key, wanted.from_, wanted.to)
            if isinstance(wanted, Range)
            else Condition.written(f"{key_of(key)}={wanted}")
            for key, wanted in self.metadata.items()
        )


class HistoryMessage(Request):
    """An earlier turn of the conversation."""

    role: Literal["user", "assistant"]
    content: Annotated[str, StringConstraints(max_length=20_000)]


_AS_ASKED = (
    "retrieve_only top_k fusion rerank reasoning model trace fallback evidence strict".split()
)
"""Options that a question has by the same names."""


class QueryOptions(Request):
    """Options of a question, for query and chat."""

    library: Scope | None = Field(None, description="null: DEFAULT_LIBRARY")
    query_mode: Mode = "general"
    retrieval_strategy: Strategy | None = Field(
        None, description="null: use_flare, then FLARE_ACTIVE_RETRIEVAL, then baseline"
    )
    use_flare: Flag | None = None
    retrieve_only: Flag = Field(False, description="rank passages only; the cutoff drops nothing")
    top_k: Annotated[int, Field(ge=1, le=50)] | None = None
    section_filter: Section | None = Field(
        None, description="shorthand for filters.section with one value"
    )
    filters: FilterFields = Field(default_factory=FilterFields)
    doc_ids: list[DocId] = Field(
        default_factory=list, max_length=1000, description="shorthand for filters.doc_ids"
    )
    fusion: Fusion | None = None
    rerank: Rerank | None = Field(None, description="null: RERANK")
    reasoning: Reasoning | None = Field(
        None,
        description="reasoning instruction for the model; null: that of the mode's prompt, then"
        " REASONING",
    )
    model: Annotated[str, StringConstraints(min_length=1, max_length=200)] | None = Field(
        None, description="answer with this model instead"
    )
    fallback: Flag | None = Field(
        None,
        description="give a model the nearest passages if none passes the cutoff; null:"
        " ENABLE_FALLBACK_RETRIEVAL, else as its size says",
    )
    evidence: EvidenceKind | None = Field(
        None, description="amount of evidence for the model; null: EVIDENCE"
    )
    strict: Flag = Field(
        False,
        description="withhold sentences of a model that the check does not call supported; always"
        " so with STRICT",
    )
    trace: TraceLevel = "summary"
    stream: Flag = Field(False, description="answer as server-sent events")

    def strategy(self, flare_by_default: bool) -> Strategy:
        """Return the strategy to use, by the order of precedence of the contract."""
        if self.retrieval_strategy is not None:
            return self.retrieval_strategy
        wanted = flare_by_default if self.use_flare is None else self.use_flare
        return "flare" if wanted else "baseline"

    def conditions(self) -> Filters:
        """Return the filters with their short forms folded in."""
        sections = (self.section_filter,) if self.section_filter else ()
        return self.filters.conditions(sections, self.doc_ids)

    def question_of(
        self,
        text: str,
        *,
        library: Scope,
        flare: bool,
        history: tuple[Message, ...] = (),
        conversation_id: str | None = None,
    ) -> Question:
        return Question(
            text=text,
            library=library,
            mode=self.query_mode,
            strategy=self.strategy(flare),
            filters=self.conditions(),
            history=history,
            conversation_id=conversation_id,
            **{name: getattr(self, name) for name in _AS_ASKED},
        )


def readable(value: str) -> str:
    """Return a question in normal form.

    Raises:
        ValueError: Nothing readable is left of it.
    """
    text = normalise(value)[0].strip()
    if not text:
        raise ValueError("there is nothing to read in it; ask a question in words")
    return text


QuestionText = Annotated[str, Field(min_length=1, max_length=4000), AfterValidator(readable)]


class SearchQuery(FilterValues):
    """A search, as query parameters."""

    metadata: list[Annotated[str, StringConstraints(max_length=600)]] = Field(
        default_factory=list, max_length=MOST_TAGS, description="KEY=VALUE, or KEY=FROM..TO"
    )

    def own_conditions(self) -> tuple[Condition, ...]:
        return tuple(map(Condition.written, self.metadata))

    q: Annotated[QuestionText, Field(description="words or a question")]
    library: Scope | None = Field(None, description="default: DEFAULT_LIBRARY")
    limit: Annotated[int, Field(ge=1, le=50)] = 10
    fusion: Fusion | None = None
    rerank: Rerank | None = Field(None, description="default: RERANK")


class QueryRequest(QueryOptions):
    """A question to one library or to all."""

    question: QuestionText
    history: list[HistoryMessage] = Field(
        default_factory=list, max_length=200, description="the last 6 are used"
    )

    def to_question(self, library: Scope, flare_by_default: bool) -> Question:
        """Return the question, with the server's defaults filled in."""
        history = tuple(
            Message(turn.role, normalise(turn.content)[0]) for turn in self.history[-HISTORY_USED:]
        )
        return self.question_of(
            self.question, library=library, flare=flare_by_default, history=history
        )


class ChatRequest(QueryOptions):
    """A turn of a conversation that the server remembers."""

    message: QuestionText
    conversation_id: Annotated[str, StringConstraints(min_length=1, max_length=64)] | None = Field(
        None, description="null starts a conversation"
    )
    replaces: Annotated[str, StringConstraints(min_length=1, max_length=64)] | None = Field(
        None,
        description="id of an answer of the conversation whose question this is, changed: a branch"
        " next to it begins, and the old one stays",
    )
    begun: Annotated[str, StringConstraints(max_length=20_000)] = Field(
        "",
        description="the text of an answer to the same question that was cut: a model goes on after"
        " its last whole sentence, and all of it is checked",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryResponse(AnswerRecord):
    """An answer whose every citation can be checked."""

    request_id: str


Title = Annotated[str, StringConstraints(max_length=200, strip_whitespace=True)]


class NewConversation(Request):
    """A conversation without a word in it yet."""

    title: Title = ""
    library: Scope | None = None


class Rename(Request):
    """A new title."""

    title: Title


class ConversationSummary(Reply):
    """A conversation in a list."""

    id: str
    title: str
    library: str | None
    created_at: str
    updated_at: str


class ConversationList(Reply):
    """Conversations, newest first."""

    conversations: list[ConversationSummary]


class ConversationTurn(Reply):
    """One message."""

    role: str
    content: str
    answer_id: str | None
    at: str
    versions: list[str] = Field(
        description="answer ids of the versions of its question, oldest first, its own included"
    )


class Conversation(ConversationSummary):
    """A conversation with the turns of the branch that is shown."""

    summary: str = Field(description="summary of the beginning")
    turns: list[ConversationTurn]


class Branch(Request):
    """An answer to go to."""

    answer_id: Annotated[str, StringConstraints(min_length=1, max_length=64)]


class Forgotten(Reply):
    """The number of forgotten items."""

    forgotten: int


class RightPassage(Request):
    """The passage that should have been the source."""

    library: LibraryName
    doc_id: DocId
    start: Annotated[int, Field(ge=0)]
    end: Annotated[int, Field(ge=0)]


class FeedbackRequest(Request):
    """A reader's rating of an answer."""

    thumbs: Literal["up", "down"] | None = None
    comment: Annotated[str, StringConstraints(min_length=1, max_length=2000)] | None = None
    passage: RightPassage | None = None


class FeedbackReply(Reply):
    """The rating stored with the answer."""

    answer_id: str
    feedback: dict[str, object]


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredAnswer(StoredRecord):
    """An answer as given, with its full trace and request.

    Quotes of deleted documents are blank.
    """

    request_id: str


class SuggestionList(Reply):
    """Example questions for what is indexed."""

    suggestions: list[Suggestion]


MOST_CHARACTERS = 500_000
"""Of a text to check, and of one to check it against."""
_Text = Annotated[str, StringConstraints(min_length=1, max_length=MOST_CHARACTERS)]


class TextToCheck(Request):
    """A text, what it is held against, and who judges."""

    text: _Text
    library: Scope | None = Field(
        None,
        description="null: DEFAULT_LIBRARY; with `against`: where to look for a better source of"
        " sentences that it does not hold, null: nowhere",
    )
    against: _Text | None = Field(
        None, description="check the sentences against this text instead of a library"
    )
    judge: Annotated[str, StringConstraints(min_length=1, max_length=200)] | None = Field(
        None,
        description=f"ask this model for its verdict on each of at most {MOST_JUDGED} sentences",
    )
    check_by: CheckBy | None = Field(
        None,
        description="who decides: `reader` (a verdict of `judge` stands beside its own), `model`"
        " (`judge`, or a decision model of Ollama, or the model that answers),"
        " `both` (supported where both say so); null:"
        " CHECK_BY",
    )


class CheckRequest(TextToCheck):
    """A text to check, sentence by sentence."""

    stream: bool = Field(
        False,
        description="send events instead: `progress` {done, of, by} while sentences are read,"
        " `report` with the reader's verdicts where a model's follow, and `final`",
    )


class FileText(Reply):
    """The text of a file."""

    filename: str
    text: str


class AnswerSummary(Reply):
    """A stored answer in the list."""

    answer_id: str
    conversation_id: str | None
    question: str
    status: AnswerStatus
    at: Annotated[str, Field(description="When it was answered, UTC ISO 8601.")]


class AnswerList(Reply):
    """Stored answers, newest first."""

    answers: list[AnswerSummary]

    @classmethod
    def of(cls, records: Iterable[Mapping[str, object]]) -> Self:
        """Return the list; of an answer kept as a hash the question is empty."""
        stored = [from_json(StoredRecord, record) for record in records]
        return cls(
            answers=[
                AnswerSummary(
                    answer_id=one.answer_id,
                    conversation_id=one.conversation_id,
                    question=one.asked.text if one.kept == "full" else "",
                    status=one.status,
                    at=one.at,
                )
                for one in stored
            ]
        )


class Highlight(Reply):
    """A matched word in the hit's text, as offsets into `text`."""

    start: int
    end: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchHit(PassageRecord):
    """A ranked passage."""

    type: str
    text: str
    highlights: tuple[Highlight, ...]
    """The words of the query."""


class SearchResponse(Reply):
    """Hits, best first; no answer."""

    query: str
    library: str
    hits: list[SearchHit]
    notices: list[Notice]
