"""Answer questions: `RAGService.stream` is the one way, which all doors fold.

JSON, SSE, CLI, the OpenAI endpoint, MCP and evaluation fold its events.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator, Sequence
from collections.abc import Generator as Steps
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace

from app.answer.intent import Intent, detect, without_politeness
from app.answer.models import ModelCalls, ModelChoice, ModelSelector
from app.answer.questions import extract_question
from app.answer.records import AnswerJournal
from app.answer.research import Research, is_empty
from app.answer.search import embedder_names
from app.answer.steps import Asked
from app.core.cancel import CancelToken
from app.core.errors import NotFound, StorageError
from app.core.ids import new_id
from app.core.languages import LANGUAGES, language_of
from app.core.trace import SILENT, Spans, Trace, ended_with_block
from app.core.types import (
    REFUSAL,
    Answer,
    AnswerEvent,
    DefaultLibrary,
    FinalEvent,
    Library,
    MetaEvent,
    Question,
    Scope,
    TokenEvent,
    Usage,
)
from app.storage.catalog.documents import Catalog

# Report which library a question is for, and whether libraries have documents to ask about.


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


# Say in the question's language that the documents do not answer it.


def translated(event: AnswerEvent, question: str) -> AnswerEvent:
    """Return an event whose refusal is in the language of the question.

    Other events, and questions in a language that is not listed, stay as they are. `status` is
    `abstained` in any language.
    """
    known = LANGUAGES.get(language_of(question))
    if known is None:
        return event
    if isinstance(event, TokenEvent) and event.text == REFUSAL:
        return TokenEvent(known.refusal)
    if isinstance(event, FinalEvent) and event.answer.text == REFUSAL:
        return replace(event, answer=replace(event.answer, text=known.refusal))
    return event


_LOG = logging.getLogger(__name__)


class UnderWay:
    """Counts questions that are being answered, so that other work can wait for them."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._count = 0

    @contextmanager
    def one(self) -> Iterator[None]:
        with self._changed:
            self._count += 1
        try:
            yield
        finally:
            with self._changed:
                self._count -= 1
                self._changed.notify_all()

    def ended(self, timeout_s: float) -> bool:
        """Wait until none is; return whether that was so within `timeout_s` seconds."""
        with self._changed:
            return self._changed.wait_for(lambda: self._count == 0, timeout_s)


class RAGService:
    """Answers questions over the libraries; threads can share it."""

    def __init__(
        self,
        *,
        catalog: Catalog,
        models: ModelSelector,
        research: Research,
        journal: AnswerJournal,
        spans: Spans = SILENT,
    ) -> None:
        """Keep what answering takes.

        Args:
            catalog: Says whether a library has anything in it.
            models: Who writes now.
            research: Answers from evidence.
            journal: Keeps finished answers.
            spans: Where the span of a question begins.
        """
        self._catalog = catalog
        self._models = models
        self._research = research
        self._memory = research.memory
        self._journal = journal
        self._spans = spans
        self.under_way = UnderWay()
        self._said: set[str] = set()
        """Reasons that one answer has said and that hold until the user acts."""

    def answer(self, question: Question, cancel: CancelToken | None = None) -> Answer:
        """Return the final answer: `stream` folded.

        Raises:
            ProviderError: The model host failed after its first word, or lacks the model that was
                asked for.
            NotFound: The question names a conversation that does not exist.
            Cancelled: The token was cancelled.
        """
        for event in self.stream(question, cancel or CancelToken()):
            if isinstance(event, FinalEvent):
                return event.answer
        raise RuntimeError("a stream ended without its final event")

    def stream(self, question: Question, cancel: CancelToken) -> Steps[AnswerEvent, None, None]:
        """Yield meta, sources, tokens and the final answer.

        Closing the iterator before the end cancels the token, which stops the model; of such a turn
        the conversation keeps the question, and nothing is remembered.

        Raises:
            ProviderError: The model host failed after its first word, or lacks the model that was
                asked for.
            NotFound: The question names a conversation that does not exist.
            Cancelled: The token was cancelled.
        """
        try:
            translates = self._research.options.refusal_language == "question"
            with self.under_way.one(), closing(self._events(question, cancel)) as events:
                for event in events:
                    yield translated(event, question.text) if translates else event
        except GeneratorExit:
            cancel.cancel()
            raise

    def _events(self, question: Question, cancel: CancelToken) -> Steps[AnswerEvent, None, None]:
        full = question.trace == "full" or (
            self._journal.keeps_traces and not question.retrieve_only
        )
        trace = Trace(
            full,
            self._spans.begin(
                "question", {"documind.library": question.library, "documind.mode": question.mode}
            ),
        )
        with (
            ended_with_block(trace.span) as span,
            closing(self._answered(question, cancel, trace)) as events,
        ):
            for event in events:
                if isinstance(event, FinalEvent):
                    span.put(
                        {
                            "documind.status": event.answer.status,
                            "documind.strategy": event.answer.strategy,
                        }
                    )
                yield event

    def _answered(
        self, question: Question, cancel: CancelToken, trace: Trace
    ) -> Steps[AnswerEvent, None, None]:
        question = replace(question, strict=question.strict or self._research.options.strict)
        with trace.stage("intent"):
            intent = (
                Intent("question", without_politeness(question.text))
                if question.retrieve_only
                else detect(question.text)
            )
        asked = self._asked(question, intent, cancel, trace)
        self._begin(question, asked.answer_id)
        generator = self._research.writer(asked)
        yield MetaEvent(asked.answer_id, generator, asked.embedder, question.conversation_id)
        answer = yield from self._research.events(asked)
        cancel.raise_if_cancelled()
        self._keep(answer)
        yield FinalEvent(answer)

    def _begin(self, question: Question, answer_id: str) -> None:
        """Keep a conversation's question while it is answered; failing to is no error."""
        if question.conversation_id is None or question.retrieve_only:
            return
        try:
            self._memory.begin(
                question.conversation_id, question.text, answer_id, question.replaces
            )
        except StorageError as error:
            _LOG.error("question %s could not be stored: %s", answer_id, error)

    def _asked(
        self, question: Question, intent: Intent, cancel: CancelToken, trace: Trace
    ) -> Asked:
        """Return the question with only the models that it needs."""
        remembers = question.history or question.conversation_id is not None
        searches_only = question.retrieve_only and question.strategy == "baseline" and not remembers
        needs_none = intent.kind != "question" or question.mode == "datasets" or searches_only
        choice = ModelChoice(None) if needs_none else self._chosen(question.model)
        calls = ModelCalls(
            trace,
            cancel,
            self._research.answer_writer.prompts,
            choice.helper,
            self._observer(choice),
            choice.watch,
            self._research.options.manner.first_token_target_s,
        )
        text, around = extract_question(intent.text)
        with self._catalog.snapshot():
            embedder = embedder_names(self._research.searcher_for, question.library)
            empty = intent.kind == "question" and is_empty(self._catalog, question.library)
        return Asked(
            new_id(), question, intent, text, around, embedder, cancel, trace, calls, choice, empty
        )

    def _chosen(self, model: str | None) -> ModelChoice:
        """Return who writes; a reason that stays until the user acts is said once."""
        choice = self._models.select(model)
        if choice.model is not None:
            self._said.clear()
        elif choice.once and choice.reason in self._said:
            return replace(choice, reason="")
        elif choice.once:
            self._said.add(choice.reason)
        return choice

    def _observer(self, choice: ModelChoice) -> Callable[[str, Usage], None]:
        """Return an observer that learns model speeds; failing to store is no error."""

        def observe(name: str, usage: Usage) -> None:
            try:
                self._research.speeds.observe(choice.profile.host, name, usage)
            except StorageError as error:
                _LOG.error("the speed of %s could not be kept: %s", name, error)

        return observe

    def _keep(self, answer: Answer) -> None:
        """Remember and store a finished answer; failing to store does not lose it."""
        try:
            if answer.conversation_id is not None and answer.status != "retrieved":
                self._memory.record(
                    answer.conversation_id,
                    answer.question.text,
                    answer.text,
                    answer.answer_id,
                    answer.documents,
                )
            self._journal.keep(answer)
        except StorageError as error:
            _LOG.error("answer %s could not be stored: %s", answer.answer_id, error)
