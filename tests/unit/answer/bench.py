"""A service over a store of a few passages, with everything it touched at hand."""

from __future__ import annotations

from dataclasses import dataclass, field

from app.answer.memory import ConversationMemory
from app.answer.models import ModelSpeeds
from app.answer.options import AnswerOptions
from app.answer.records import AnswerJournal
from app.answer.research import Research
from app.answer.search import LibrarySearcher
from app.answer.service import RAGService
from app.answer.writing import AnswerWriter
from app.core.cancel import CancelToken
from app.core.ports import Embedder
from app.core.trace import Trace
from app.core.types import (
    Answer,
    AnswerEvent,
    FinalEvent,
    Library,
    Notice,
    NoticeCode,
    Passage,
    Question,
)
from app.generation.check.grounding import Grounder
from app.generation.language.tokens import TokenCalibrator
from app.generation.prompt.prompts import GenerationOptions, PromptLibrary
from app.generation.quote.quoting import ExtractiveGenerator
from app.retrieval.pipeline import Retriever
from app.retrieval.request import Retrieval, RetrievalOptions, SearchRequest
from app.storage.catalog.answers import AnswerStore, ConversationStore
from app.storage.catalog.database import Database
from app.storage.catalog.models import ModelStore
from app.storage.store import IndexStore
from tests.fakes.embedders import HashEmbedder
from tests.fakes.generators import FixedModels
from tests.fakes.readers import WordReader
from tests.stores import catalog_with_documents_of, passage, shelved

PROMPTS = PromptLibrary.load()

COPPER = passage(
    "Copper conducts electricity better than any metal except silver. Its melting point is 1085"
    " degrees Celsius.",
    key="copper",
)
TIDES = passage(
    "Tides are the rise and fall of sea levels caused by the gravity of the Moon. Spring tides"
    " occur twice a month.",
    key="tides",
)
DUARTE = passage(
    "Ines Duarte founded the observatory in 1931. Duarte was born in Porto and studied optics for"
    " nine years.",
    key="duarte",
)


class NotedRetriever(Retriever):
    """Keeps every request."""

    requests: list[SearchRequest]

    @property
    def queries(self) -> list[str]:
        """The texts that were searched, in order."""
        return [request.text for request in self.requests]

    def retrieve(self, request: SearchRequest, trace: Trace) -> Retrieval:
        self.requests.append(request)
        return super().retrieve(request, trace)


@dataclass
class Bench:
    """What a test sets up, and what the service did with it."""

    passages: list[Passage] = field(default_factory=lambda: [COPPER, TIDES, DUARTE])
    models: FixedModels = field(default_factory=FixedModels)
    options: AnswerOptions = field(default_factory=AnswerOptions)
    embedder: Embedder | None = field(default_factory=lambda: HashEmbedder(256))
    generation: GenerationOptions = field(default_factory=lambda: GenerationOptions(max_tokens=256))
    touched: list[Library] = field(default_factory=list)
    """Libraries whose shelf was asked for, in order."""
    notices: tuple[Notice, ...] = ()
    """Said at every search."""
    store: IndexStore | None = None
    """That of the passages, unless a test brings one that it writes to."""
    fallback: bool | None = True
    """Whether the nearest passages are returned where none is near enough."""
    database: Database = field(init=False)
    """It holds answers and conversations, and the documents that they draw on."""
    answers: AnswerStore = field(init=False)
    conversations: ConversationStore = field(init=False)
    known: ModelStore = field(init=False)
    retriever: NotedRetriever = field(init=False)
    memory: ConversationMemory = field(init=False)
    service: RAGService = field(init=False)

    def __post_init__(self) -> None:
        store = self.store or shelved(*self.passages, embedder=self.embedder)
        self.database = catalog_with_documents_of(store)
        self.answers = AnswerStore(self.database)
        self.conversations = ConversationStore(self.database)
        self.known = ModelStore(self.database)
        self.retriever = NotedRetriever(
            store.catalog,
            store.vectors,
            store.lexical,
            self.embedder,
            RetrievalOptions(enable_fallback=self.fallback),
            remarks=lambda: self.notices,
        )
        self.retriever.requests = []
        self.memory = ConversationMemory(self.conversations, self.options)
        self.service = RAGService(
            catalog=store.catalog,
            models=self.models,
            research=Research(
                store.catalog,
                self.searcher_for,
                AnswerWriter(
                    ExtractiveGenerator(),
                    PromptLibrary.load(self.generation.prompts_dir),
                    TokenCalibrator(),
                    self.generation,
                ),
                Grounder(WordReader()),
                self.memory,
                ModelSpeeds(self.known),
                self.options,
                RetrievalOptions().top_k,
                fallback=self.fallback,
            ),
            journal=AnswerJournal(self.answers, self.options, lambda: {"FUSION": "relative_score"}),
        )

    def searcher_for(self, library: Library) -> LibrarySearcher:
        self.touched.append(library)
        return LibrarySearcher(self.retriever, self.embedder)

    def ask(self, question: Question) -> Answer:
        return self.service.answer(question)

    def events(self, question: Question, cancel: CancelToken | None = None) -> list[AnswerEvent]:
        return list(self.service.stream(question, cancel or CancelToken()))


def codes(answer: Answer) -> list[NoticeCode]:
    """Return the notice codes of an answer, in order."""
    return [notice.code for notice in answer.notices]


def papers(text: str, **options: object) -> Question:
    """Return a question to the papers."""
    return Question(text, Library.PAPERS.value, **options)  # type: ignore[arg-type]  # passed through as keywords


def cancel_at(bench: Bench, question: Question, event_type: type[AnswerEvent]) -> None:
    """Consume a stream whose token is cancelled at the first event of a type; it must not end as if nothing had happened."""
    cancel = CancelToken()
    for event in bench.service.stream(question, cancel):
        assert not isinstance(event, FinalEvent)
        if isinstance(event, event_type):
            cancel.cancel()


def final(events: list[AnswerEvent]) -> Answer:
    """Return the answer of a stream's last event."""
    last = events[-1]
    assert isinstance(last, FinalEvent)
    return last.answer
