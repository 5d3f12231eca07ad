"""Answer from evidence: search, quote, then let a model phrase the findings.

The quote comes from the question's own search, before any model is called. A rewrite or a strategy
may find other passages afterwards; numbers that were sent keep their meaning.
"""

from __future__ import annotations

import logging
from collections.abc import Generator as Steps
from collections.abc import Sequence
from dataclasses import dataclass, replace

from app.answer.carrying import carried
from app.answer.datasets_mode import inventory
from app.answer.disagreement import disagreements
from app.answer.finding import degraded_notice, find, strategy_of
from app.answer.intent import wants_summary
from app.answer.manner import Manner, manner
from app.answer.memory import ConversationMemory
from app.answer.options import AnswerOptions
from app.answer.outcome import Outcome, quoted_instead, settle, supported_share
from app.answer.rewrite import rewrite
from app.answer.search import Search, SearcherFor
from app.answer.speeds import ModelSpeeds
from app.answer.strategies import StrategyContext
from app.answer.strategies.base import renumbered
from app.answer.turn import Turn
from app.answer.writing import CONFIDENT, AnswerWriter, Assignment, quote_of, write
from app.core.errors import InvalidInput, ProviderError
from app.core.ports import Generator
from app.core.types import (
    Answer,
    AnswerEvent,
    Evidence,
    Notice,
    Quote,
    QuoteEvent,
    SourcesEvent,
    TokenEvent,
)
from app.generation.extractive import Selection
from app.generation.grounding import Grounder
from app.generation.injection import ADDRESSED_TO_A_MODEL
from app.generation.prompts import REFUSAL
from app.generation.subject import missing_things

_LOG = logging.getLogger(__name__)
NO_WRITER = "none"
"""Generator of an answer that nothing had to write."""
SCANNER = "scanner"
"""Generator of the datasets mode."""
_WISHES_UNUSED = Notice(
    "instructions_unused",
    "The system message was not used: no language model wrote this answer, and quotes are word for word.",
)
_SUMMARY_NEEDS_MODEL = Notice(
    "mode_needs_model",
    "A summary has to be written, and no language model is connected. Connect one, or ask about something in the documents:"
    " then the answer quotes them.",
)

_Steps = Steps[AnswerEvent, None, Answer]


@dataclass(frozen=True, slots=True)
class Research:
    """Answers from evidence; stateless between questions."""

    searcher_for: SearcherFor
    answer_writer: AnswerWriter
    grounder: Grounder
    memory: ConversationMemory
    speeds: ModelSpeeds
    options: AnswerOptions
    top_k: int

    def writer(self, turn: Turn) -> str:
        """Return who is going to write, as the first event says it."""
        if turn.question.retrieve_only:
            return NO_WRITER
        if turn.question.mode == "datasets":
            return SCANNER
        return turn.choice.model.name if turn.choice.model else self.answer_writer.extractive.name

    def events(self, turn: Turn, asked: str) -> _Steps:
        """Yield sources, quote and tokens, and return the answer."""
        if turn.choice.reason:
            turn.note(Notice("generator_unavailable", turn.choice.reason))
        model, question = turn.choice.model, turn.question
        if model is not None and not question.retrieve_only and question.mode != "datasets":
            return (yield from self._with_model(turn, asked, model))
        if question.wishes:
            turn.note(_WISHES_UNUSED)
        search = self._search(turn)
        query = self._remember_and_rewrite(turn, asked, search)
        self._find(turn, query, search)
        yield SourcesEvent(turn.evidence)
        self._note_hosted(turn)
        if question.retrieve_only:
            return turn.answer("", "retrieved", NO_WRITER)
        with turn.trace.stage("generate", len(turn.evidence)) as stage:
            outcome, generator = self._without_model(turn, query)
            stage.n_out = len(outcome.sentences)
        yield TokenEvent(outcome.text)
        turn.cancel.raise_if_cancelled()
        return self._answer(turn, outcome, generator)

    def _without_model(self, turn: Turn, query: str) -> tuple[Outcome, str]:
        """Return what is said and who wrote it: an inventory, quotes, or the refusal."""
        if turn.question.mode != "datasets" and wants_summary(turn.question.text):
            turn.note(_SUMMARY_NEEDS_MODEL)
            return Outcome(REFUSAL, ()), NO_WRITER
        if not turn.evidence:
            return Outcome(REFUSAL, ()), NO_WRITER
        if turn.question.mode == "datasets":
            grounded = self.grounder.ground(
                inventory(turn.evidence) or REFUSAL, turn.evidence, by="engine"
            )
            return Outcome(grounded.text, grounded.sentences), SCANNER
        _, quoted = self._selected(turn, query, leads=True)
        name = self.answer_writer.extractive.name
        return (Outcome(quoted.text, quoted.sentences) if quoted else Outcome(REFUSAL, ())), name

    def _selected(self, turn: Turn, query: str, *, leads: bool) -> tuple[Selection, Quote | None]:
        """Return the best answer; note its certainty and subjects without a passage."""
        usable = [item for item in turn.evidence if not item.hit.fallback]
        selection, quoted = quote_of(self.answer_writer, self.grounder, query, usable, leads=leads)
        turn.confidence, turn.missing = selection.sufficiency, missing_things(query, usable)
        return selection, quoted

    def _with_model(self, turn: Turn, asked: str, model: Generator) -> _Steps:
        """Yield the quote before any model call, then the model's words.

        The words are over the final evidence.
        """
        search, how = self._search(turn), self._manner(turn, model)
        own = search(asked)
        turn.evidence = renumbered((), own.hits)
        yield SourcesEvent(turn.evidence)
        selection, quoted = yield from self._quote(turn, asked, how)
        query = self._remember_and_rewrite(turn, asked, search)
        sent = turn.evidence
        self._find(turn, query, search)
        if turn.evidence != sent:
            yield SourcesEvent(turn.evidence)
            selection, quoted = yield from self._quote(turn, query, how)
        if not worth_asking(turn.evidence, quoted, how):
            return self._answer(
                turn,
                Outcome(REFUSAL, ()),
                self.answer_writer.extractive.name if turn.evidence else NO_WRITER,
            )
        if quoted is not None and quoted.leads:
            yield TokenEvent(f"{quoted.text}\n\n")
        outcome = yield from self._phrased(turn, query, model, how, selection, quoted)
        if outcome.notice:
            turn.note(outcome.notice)
        self._note_hosted(turn)
        turn.cancel.raise_if_cancelled()
        turn.quote = quoted
        return self._answer(
            turn, outcome, self.answer_writer.extractive.name if outcome.quoted else model.name
        )

    def _quote(
        self, turn: Turn, query: str, how: Manner
    ) -> Steps[AnswerEvent, None, tuple[Selection, Quote | None]]:
        with turn.trace.stage("quote", len(turn.evidence)) as stage:
            selection, quoted = self._selected(turn, query, leads=how.leads)
            stage.n_out = len(selection.chosen)
        if quoted is not None:
            yield QuoteEvent(quoted)
        return selection, quoted

    def _phrased(
        self,
        turn: Turn,
        query: str,
        model: Generator,
        how: Manner,
        selection: Selection,
        quoted: Quote | None,
    ) -> Steps[AnswerEvent, None, Outcome]:
        """Yield what the model writes and return what becomes of it."""
        compact = how.prompts == "compact"
        parameters = turn.choice.profile.parameters
        task = Assignment(
            turn.question,
            query if compact else turn.question.text,
            turn.evidence,
            selection,
            turn.memory.messages(),
            how,
            few=compact and (parameters is None or parameters < self.answer_writer.few_below),
            reasoning=self.answer_writer.reasoning(turn.question),
            missing=turn.missing,
        )
        try:
            with turn.trace.stage("generate", len(turn.evidence)) as stage:
                written = yield from write(self.answer_writer, task, model, turn.calls)
                stage.n_out = 1
        except (ProviderError, InvalidInput) as error:
            if quoted is None:
                raise
            return quoted_instead(quoted, f"{model.name} failed ({error.message})", None)
        turn.note(*written.notices)
        with turn.trace.stage("ground") as stage:
            grounded = self.grounder.ground(written.text, turn.evidence)
            stage.n_out = sum(len(sentence.citations) for sentence in grounded.sentences)
        return settle(
            quoted, grounded, written.stopped, confident=selection.sufficiency >= CONFIDENT
        )

    def _answer(self, turn: Turn, outcome: Outcome, generator: str) -> Answer:
        """Return the answer; the refusal is an abstention."""
        if outcome.text == REFUSAL:
            turn.note(*missing_notice(turn.missing))
            return replace(
                turn.answer(REFUSAL, "abstained", generator),
                model_text=outcome.model_text,
                quote=None,
            )
        answer = turn.answer(outcome.text, "answered", generator)
        return replace(
            answer,
            sentences=outcome.sentences,
            confidence=answer.confidence * supported_share(outcome.sentences),
            model_text=outcome.model_text,
        )

    def _manner(self, turn: Turn, model: Generator) -> Manner:
        profile, question = turn.choice.profile, turn.question
        speed = self.speeds.of(profile.host, model.name)
        return manner(
            profile, speed, self.options.manner, mode=question.mode, asked=question.evidence
        )

    def _search(self, turn: Turn) -> Search:
        return Search(turn.question, self.top_k, self.searcher_for, turn.trace)

    def _remember_and_rewrite(self, turn: Turn, asked: str, search: Search) -> str:
        """Return the search query; the datasets mode uses no model and no rewrite."""
        with turn.trace.stage("memory"):
            turn.memory = self.memory.recall(
                turn.question, lambda old, new: self._summary(turn, old, new)
            )
        if not turn.memory or turn.question.mode == "datasets":
            return asked
        with turn.trace.stage("rewrite"):
            turn.rewritten = rewrite(asked, turn.memory, turn.calls)
            if turn.rewritten is None and (
                carries := carried(
                    asked, turn.memory.questions, turn.question.library, self.searcher_for
                )
            ):
                turn.rewritten, search.together[carries] = carries, asked
        return turn.rewritten or asked

    @staticmethod
    def _summary(turn: Turn, old: str, new: str) -> str:
        """Return the summary with new turns; empty if no model is available.

        The turns then wait for the next question.
        """
        try:
            return turn.calls.ask("summary", summary=old, history=new)
        except (ProviderError, InvalidInput) as error:
            _LOG.warning("a conversation could not be summarised: %s", error)
            return ""

    def _find(self, turn: Turn, query: str, search: Search) -> None:
        """Search, number the evidence, and note what must be said about it."""
        question = turn.question
        context = StrategyContext(search, turn.calls, self.options, turn.choice.model)
        found = find(query, context)
        turn.cancel.raise_if_cancelled()
        turn.found, turn.evidence = found, renumbered(turn.evidence, found.retrieval.hits)
        turn.note(*found.retrieval.notices, *degraded_notice(found, strategy_of(context)))
        if flagged := _flagged(turn.evidence):
            turn.note(
                Notice(
                    "injection_flagged",
                    f"text that looks like instructions to a model was found in {flagged}",
                )
            )
        if question.library == "all":
            with turn.trace.stage("disagreement", len(turn.evidence)) as stage:
                turn.trace.disagreements = disagreements(turn.evidence)
                stage.n_out = len(turn.trace.disagreements)

    @staticmethod
    def _note_hosted(turn: Turn) -> None:
        """Say that words left the machine, when a hosted model was asked."""
        host = turn.choice.model or turn.choice.helper
        if turn.choice.hosted and host is not None and turn.trace.llm_calls:
            said = f"the question, and passages of your documents where they were read, were sent to {host.name}"
            turn.note(Notice("hosted_provider", f"{said}, which is not on this machine"))


def worth_asking(evidence: Sequence[Evidence], quoted: Quote | None, how: Manner) -> bool:
    """Return whether to ask a model.

    Not without passages, and not where the engine decides and finds no answer.
    """
    if not evidence:
        return False
    fallback = any(item.hit.fallback for item in evidence)
    return quoted is not None or fallback or how.evidence == "full"


def missing_notice(missing: Sequence[str]) -> tuple[Notice, ...]:
    """Return the notice `subject_missing` if no passage names the question's subject."""
    if not missing:
        return ()
    names = ", ".join(repr(name) for name in missing)
    return (Notice("subject_missing", f"no passage that was found names {names}"),)


def _flagged(evidence: Sequence[Evidence]) -> str:
    """Return the quoted titles of documents that hold instructions, each once."""
    documents = (item.hit.passage.document for item in evidence)
    return ", ".join(
        dict.fromkeys(
            repr(document.title)
            for document in documents
            if not ADDRESSED_TO_A_MODEL.isdisjoint(document.flags)
        )
    )
