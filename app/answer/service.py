"""One way to answer: `RAGService.stream`. JSON, SSE, CLI, OpenAI endpoint, MCP and evaluation fold its events."""

from __future__ import annotations

import logging
from collections.abc import Generator as Steps
from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace

from app.answer.datasets_mode import inventory
from app.answer.disagreement import disagreements
from app.answer.finding import degraded_notice, find, strategy_of
from app.answer.intent import Intent, detect, without_politeness
from app.answer.journal import AnswerJournal
from app.answer.library_state import empty_notice, is_empty
from app.answer.memory import ConversationMemory, recollection
from app.answer.models import ModelCalls, ModelChoice, ModelSelector
from app.answer.options import AnswerOptions
from app.answer.rewrite import rewrite
from app.answer.search import Search, ShelfOf, embedder_names
from app.answer.strategies import Desk
from app.answer.strategies.base import numbered
from app.answer.turn import Turn
from app.answer.writing import Draftsman, Written, write
from app.core.cancel import CancelToken
from app.core.errors import InvalidInput, ProviderError, StorageError
from app.core.ids import new_id
from app.core.ports import Catalog
from app.core.spans import SILENT, Spans, ended_with_block
from app.core.trace import Trace
from app.core.types import (
    Answer,
    AnswerEvent,
    AnswerStatus,
    Evidence,
    FinalEvent,
    MetaEvent,
    Notice,
    Question,
    Sentence,
    SourcesEvent,
    TokenEvent,
)
from app.generation.grounding import Grounder
from app.generation.injection import ADDRESSED_TO_A_MODEL
from app.generation.prompts import REFUSAL
from app.retrieval.options import RetrievalOptions

_LOG = logging.getLogger(__name__)
_NOBODY = "none"
"""Generator of an answer that nothing had to write."""
_SCANNER = "scanner"
"""Generator of the datasets mode."""


class RAGService:
    """Answers questions over the libraries. Stateless between questions, so it may be shared between threads."""

    def __init__(
        self,
        *,
        shelf_of: ShelfOf,
        catalog: Catalog,
        models: ModelSelector,
        draftsman: Draftsman,
        grounder: Grounder,
        memory: ConversationMemory,
        journal: AnswerJournal,
        options: AnswerOptions,
        retrieval: RetrievalOptions,
        spans: Spans = SILENT,
    ) -> None:
        """Keep what answering takes.

        Args:
            shelf_of: How a library is searched now.
            catalog: Says whether a library has anything in it.
            models: Who writes now.
            draftsman: Prompts, budget and the quoting answerer.
            grounder: Checks what was written against the evidence.
            memory: Conversations.
            journal: Keeps finished answers.
            options: Strategies, memory and privacy.
            retrieval: Defaults of a search.
            spans: Where the span of a question begins.
        """
        self._shelf_of = shelf_of
        self._catalog = catalog
        self._models = models
        self._draftsman = draftsman
        self._grounder = grounder
        self._memory = memory
        self._journal = journal
        self._options = options
        self._retrieval = retrieval
        self._spans = spans

    def answer(self, question: Question, cancel: CancelToken | None = None) -> Answer:
        """Return the final answer: `stream` folded.

        Raises:
            ProviderError: The model host failed after its first word, or lacks the model that was asked for.
            NotFound: The question names a conversation that does not exist.
            Cancelled: The token was cancelled.
        """
        for event in self.stream(question, cancel or CancelToken()):
            if isinstance(event, FinalEvent):
                return event.answer
        raise RuntimeError("a stream ended without its final event")

    def stream(self, question: Question, cancel: CancelToken) -> Steps[AnswerEvent, None, None]:
        """Yield meta, sources, tokens and the final answer.

        Closing the iterator before the end cancels the token, which stops the model; such a turn is neither remembered nor stored.

        Raises:
            ProviderError: The model host failed after its first word, or lacks the model that was asked for.
            NotFound: The question names a conversation that does not exist.
            Cancelled: The token was cancelled.
        """
        try:
            with closing(self._events(question, cancel)) as events:
                yield from events
        except GeneratorExit:
            cancel.cancel()
            raise

    def _events(self, question: Question, cancel: CancelToken) -> Steps[AnswerEvent, None, None]:
        full = question.trace == "full" or (self._journal.keeps_traces and not question.retrieve_only)
        trace = Trace(full, self._spans.begin("question", {"documind.library": question.library, "documind.mode": question.mode}))
        with ended_with_block(trace.span) as span, closing(self._answered(question, cancel, trace)) as events:
            for event in events:
                if isinstance(event, FinalEvent):
                    span.put({"documind.status": event.answer.status, "documind.strategy": event.answer.strategy})
                yield event

    def _answered(self, question: Question, cancel: CancelToken, trace: Trace) -> Steps[AnswerEvent, None, None]:
        with trace.stage("intent"):
            intent = Intent("question", without_politeness(question.text)) if question.retrieve_only else detect(question.text)
        turn = self._turn(question, intent, cancel, trace)
        if intent.reply:
            yield from self._say(turn, intent.reply, "chitchat")
        elif intent.kind == "recall":
            with trace.stage("memory"):
                memory = self._memory.recall(question, lambda *_: "")
            yield from self._say(turn, recollection(memory), "conversation")
        elif is_empty(self._catalog, question.library):
            turn.note(empty_notice(question.library))
            yield from self._say(turn, *(("", "retrieved") if question.retrieve_only else (REFUSAL, "abstained")))
        else:
            yield from self._research(turn, intent.text)

    def _turn(self, question: Question, intent: Intent, cancel: CancelToken, trace: Trace) -> Turn:
        """Return a turn with the models that it may need; those of a turn that needs none are not looked for."""
        remembers = question.history or question.conversation_id is not None
        searches_only = question.retrieve_only and question.strategy == "baseline" and not remembers
        needs_none = intent.kind != "question" or question.mode == "datasets" or searches_only
        choice = ModelChoice(None) if needs_none else self._models.select(question.model)
        calls = ModelCalls(trace, cancel, self._draftsman.prompts, choice.helper)
        return Turn(new_id(), question, embedder_names(self._shelf_of, question.library), cancel, trace, calls, choice)

    def _say(self, turn: Turn, text: str, status: AnswerStatus) -> Steps[AnswerEvent, None, None]:
        """Yield an answer that needs no evidence."""
        yield self._meta(turn, _NOBODY)
        yield SourcesEvent(())
        if text:
            yield TokenEvent(text)
        yield self._final(turn, turn.answer(text, status, _NOBODY))

    def _research(self, turn: Turn, asked: str) -> Steps[AnswerEvent, None, None]:
        """Yield an answer from evidence."""
        question, choice = turn.question, turn.choice
        writer = choice.model.name if choice.model else self._draftsman.extractive.name
        if question.retrieve_only:
            writer = _NOBODY
        elif question.mode == "datasets":
            writer = _SCANNER
        yield self._meta(turn, writer)
        if choice.reason:
            turn.note(Notice("generator_unavailable", choice.reason))
        query = self._remember_and_rewrite(turn, asked)
        self._find(turn, query)
        yield SourcesEvent(turn.evidence)
        if question.retrieve_only:
            self._note_hosted(turn)
            yield self._final(turn, turn.answer("", "retrieved", _NOBODY))
            return
        with turn.trace.stage("generate", len(turn.evidence)) as stage:
            written = yield from self._write(turn, query)
            stage.n_out = 1
        turn.note(*written.notices)
        self._note_hosted(turn)
        turn.cancel.raise_if_cancelled()
        yield self._final(turn, self._grounded(turn, written))

    def _note_hosted(self, turn: Turn) -> None:
        """Say that words left the machine, when a hosted model was asked."""
        host = turn.choice.model or turn.choice.helper
        if turn.choice.hosted and host is not None and turn.trace.llm_calls:
            said = f"the question, and passages of your documents where they were read, were sent to {host.name}"
            turn.note(Notice("hosted_provider", f"{said}, which is not on this machine"))

    def _remember_and_rewrite(self, turn: Turn, asked: str) -> str:
        """Return what to search for; the datasets mode does without a model and so without a rewrite."""
        with turn.trace.stage("memory"):
            turn.memory = self._memory.recall(turn.question, lambda old, new: self._summary(turn, old, new))
        if not turn.memory or turn.question.mode == "datasets":
            return asked
        with turn.trace.stage("rewrite"):
            turn.rewritten = rewrite(asked, turn.memory, turn.calls)
        return turn.rewritten or asked

    def _summary(self, turn: Turn, old: str, new: str) -> str:
        """Return the summary with new turns folded in; empty when no model can do it now: the turns wait for the next question."""
        try:
            return turn.calls.ask("summary", summary=old, history=new)
        except (ProviderError, InvalidInput) as error:
            _LOG.warning("a conversation could not be summarised: %s", error)
            return ""

    def _find(self, turn: Turn, query: str) -> None:
        """Search, number the evidence, and note what must be said about it."""
        question, choice = turn.question, turn.choice
        search = Search(question, self._retrieval.top_k, self._shelf_of, turn.trace)
        desk = Desk(search, turn.calls, self._options, choice.model)
        found = find(query, desk)
        turn.cancel.raise_if_cancelled()
        turn.found, turn.evidence = found, numbered(found.retrieval.hits)
        turn.note(*found.retrieval.notices, *degraded_notice(found, strategy_of(desk)))
        if flagged := _flagged(turn.evidence):
            turn.note(Notice("injection_flagged", f"text that looks like instructions to a model was found in {flagged}"))
        if question.library == "all":
            with turn.trace.stage("disagreement", len(turn.evidence)) as stage:
                turn.trace.disagreements = disagreements(turn.evidence)
                stage.n_out = len(turn.trace.disagreements)

    def _write(self, turn: Turn, query: str) -> Steps[TokenEvent, None, Written]:
        question = turn.question
        if not turn.evidence:
            return Written(REFUSAL, _NOBODY)
        if question.mode == "datasets":
            text = inventory(turn.evidence) or REFUSAL
            yield TokenEvent(text)
            return Written(text, _SCANNER)
        written = yield from write(
            self._draftsman, question, query, turn.evidence, turn.memory.messages(), turn.choice.model, turn.calls
        )
        return written

    def _grounded(self, turn: Turn, written: Written) -> Answer:
        """Return the answer with citations checked; the refusal is an abstention."""
        with turn.trace.stage("ground") as stage:
            grounded = self._grounder.ground(written.text, turn.evidence)
            stage.n_in = len(grounded.sentences) and sum(len(s.citations) for s in grounded.sentences) + len(grounded.dropped)
            stage.n_out = sum(len(sentence.citations) for sentence in grounded.sentences)
        if is_refusal(grounded.text):
            return turn.answer(REFUSAL, "abstained", written.generator)
        answer = turn.answer(grounded.text, "answered", written.generator)
        confidence = answer.confidence * supported_share(grounded.sentences)
        return replace(answer, sentences=grounded.sentences, confidence=confidence)

    def _meta(self, turn: Turn, generator: str) -> MetaEvent:
        return MetaEvent(turn.answer_id, generator, turn.embedder, turn.question.conversation_id)

    def _final(self, turn: Turn, answer: Answer) -> FinalEvent:
        """Remember and store a finished turn; a store that fails costs the record, not the answer."""
        turn.cancel.raise_if_cancelled()
        try:
            if answer.conversation_id is not None and answer.status != "retrieved":
                self._memory.record(answer.conversation_id, answer.question.text, answer.text, answer.answer_id)
            self._journal.keep(answer)
        except StorageError as error:
            _LOG.error("answer %s could not be stored: %s", answer.answer_id, error)
        return FinalEvent(answer)


def supported_share(sentences: Sequence[Sentence]) -> float:
    """Return the share of supported sentences among those with a clear verdict, in [0, 1]; 1 when none has one.

    Retrieval is calibrated on whether passages answer a question; what a model adds that they do not hold lowers that. Quotes are
    always supported, so the calibration stands as it is for them.
    """
    supported = sum(sentence.verdict == "supported" for sentence in sentences)
    clear = supported + sum(sentence.verdict == "unsupported" for sentence in sentences)
    return supported / clear if clear else 1.0


def is_refusal(text: str) -> bool:
    """Return whether an answer is the refusal: however it is quoted, alone or first with no citation after it."""
    plain = text.replace("\u2019", "'").strip(" \n\"'*_>")
    return plain.startswith(REFUSAL.rstrip(".")) and ("[" not in plain)


def _flagged(evidence: Sequence[Evidence]) -> str:
    """Return the titles of documents in which instructions to a model were found, quoted, each once."""
    documents = (item.hit.passage.document for item in evidence)
    return ", ".join(
        dict.fromkeys(repr(document.title) for document in documents if not ADDRESSED_TO_A_MODEL.isdisjoint(document.flags))
    )
