"""Answer from evidence: search, quote, then let a model phrase the findings.

The quote comes from the question's own search, before any model is called. A rewrite or a strategy
may find other passages afterwards; numbers that were sent keep their meaning.
"""

from __future__ import annotations

import logging
from collections.abc import Generator as Steps
from dataclasses import dataclass, replace

from app.answer.conversation import ConversationMemory, carried, rewrite
from app.answer.disagreement import disagreement_notice, disagreements
from app.answer.models import AnswerOptions, Manner, ModelSpeeds, manner, worth_asking
from app.answer.modes import NEEDS_MODEL, SHAPED_MODES, EngineModes, inventory
from app.answer.search import Search, SearcherFor, Targets
from app.answer.strategies import StrategyContext, degraded_notice, find, renumbered, strategy_of
from app.answer.summaries import Summaries, unclear, wish_of
from app.answer.turn import NO_WRITER, Turn, closed, hosted_notice
from app.answer.writing import (
    CONFIDENT,
    AnswerWriter,
    Assignment,
    Outcome,
    quote_of,
    quoted_instead,
    settle,
    write,
)
from app.core.errors import InvalidInput, ProviderError
from app.core.ports import Catalog, Generator
from app.core.types import (
    Answer,
    AnswerEvent,
    Fusion,
    Notice,
    Quote,
    QuoteEvent,
    SourcesEvent,
    TokenEvent,
    bare_name,
)
from app.generation.grounding import Grounder
from app.generation.prompts import REFUSAL
from app.generation.quote_features import missing_things
from app.generation.quoting import SUMMARY, Selection

_LOG = logging.getLogger(__name__)
SCANNER = "scanner"
"""Generator of the datasets mode."""
_WISHES_UNUSED = Notice(
    "instructions_unused",
    "The system message was not used: no language model wrote this answer, and quotes are word for"
    " word.",
)
_CUTOFF_OVERRULED = Notice(
    "cutoff_overruled",
    "Passages passed the cutoff, but none of their sentences is likely enough to answer the"
    " question, and no language model is there to read them; GET /api/v1/search shows them.",
)


_Steps = Steps[AnswerEvent, None, Answer]


@dataclass(frozen=True, slots=True)
class Research:
    """Answers from evidence; stateless between questions."""

    catalog: Catalog
    searcher_for: SearcherFor
    answer_writer: AnswerWriter
    grounder: Grounder
    memory: ConversationMemory
    speeds: ModelSpeeds
    options: AnswerOptions
    top_k: int
    fusion: Fusion = "relative_score"
    """Where the question names none; under `dense` the user's own cutoff decides."""

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
        if (wish := wish_of(turn.question)) is not None:
            documents = Targets(self.catalog).of(turn.question, wish.about, self._search(turn))
            if documents or wish.explicit:
                turn.question = replace(turn.question, mode="summary")
            if documents:
                return (yield from self._summaries.events(turn, documents))
            if not wish.names_something:
                return (yield from unclear(turn))
            asked = wish.about if wish.explicit else asked
        model, question = turn.choice.model, turn.question
        if model is not None and not question.retrieve_only and question.mode != "datasets":
            return (yield from self._with_model(turn, asked, model))
        if question.wishes:
            turn.note(_WISHES_UNUSED)
        search = self._search(turn)
        query = self._remember_and_rewrite(turn, asked, search)
        self._find(turn, query, search)
        yield SourcesEvent(turn.evidence)
        turn.note(*hosted_notice(turn))
        if question.retrieve_only:
            return turn.answer("", "retrieved", NO_WRITER)
        sent = turn.evidence
        with turn.trace.stage("generate", len(turn.evidence)) as stage:
            outcome, generator = self._without_model(turn, query)
            stage.n_out = len(outcome.sentences)
        if turn.evidence != sent:
            yield SourcesEvent(turn.evidence)
        yield TokenEvent(outcome.text)
        turn.cancel.raise_if_cancelled()
        return closed(turn, outcome, generator)

    @property
    def _summaries(self) -> Summaries:
        return Summaries(Targets(self.catalog), self.answer_writer, self.grounder, self._manner)

    def _without_model(self, turn: Turn, query: str) -> tuple[Outcome, str]:
        """Return what is said and who wrote it: an inventory, quotes, or the refusal."""
        shapes = turn.question.mode in SHAPED_MODES
        if not turn.evidence and not shapes:
            return Outcome(REFUSAL, ()), NO_WRITER
        if turn.question.mode == "datasets":
            grounded = self.grounder.ground(
                inventory(turn.evidence) or REFUSAL, turn.evidence, by="engine"
            )
            return Outcome(grounded.text, grounded.sentences), SCANNER
        _, quoted = self._selected(turn, query, leads=True)
        if quoted is None and self._cutoff_decides(turn):
            turn.note(_CUTOFF_OVERRULED)
        if shapes and not turn.shaped:
            turn.note(NEEDS_MODEL)
        name = self.answer_writer.extractive.name
        return (Outcome(quoted.text, quoted.sentences) if quoted else Outcome(REFUSAL, ())), name

    def _selected(self, turn: Turn, query: str, *, leads: bool) -> tuple[Selection, Quote | None]:
        """Return the best answer; note its certainty and subjects without a passage."""
        usable = [item for item in turn.evidence if not item.hit.fallback]
        room = SUMMARY if turn.question.mode == "summary" else None
        selection, quoted = quote_of(
            self.answer_writer, self.grounder, query, usable, leads=leads, room=room
        )
        turn.confidence, turn.missing = selection.sufficiency, missing_things(query, usable)
        modes = EngineModes(Targets(self.catalog), self.answer_writer.extractive)
        shaped = modes.quoted(turn, query, self._search(turn), selection)
        turn.shaped = shaped is not None
        if shaped is None:
            return selection, quoted
        turn.use(shaped.evidence)
        return selection, Quote(shaped.text, shaped.sentences, leads)

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
        guesses = how.leads and quoted is None and turn.question.mode in SHAPED_MODES
        if guesses:  # without a quote to lead, a small model fills a table with what it makes up
            turn.note(NEEDS_MODEL)
        asks = worth_asking(turn.evidence, quoted, how, cutoff_decides=self._cutoff_decides(turn))
        if guesses or not asks:
            name = self.answer_writer.extractive.name if turn.evidence else NO_WRITER
            return closed(turn, Outcome(REFUSAL, ()), name)
        if quoted is not None and quoted.leads:
            yield TokenEvent(f"{quoted.text}\n\n")
        if quoted is not None and quoted.leads and turn.shaped:
            # A table or a checklist is complete; below it a small model adds only what it misread.
            outcome = Outcome(quoted.text, quoted.sentences, quoted=True)
        else:
            outcome = yield from self._phrased(turn, query, model, how, selection, quoted)
        if outcome.notice:
            turn.note(outcome.notice)
        turn.note(*hosted_notice(turn))
        turn.cancel.raise_if_cancelled()
        turn.quote = quoted
        return closed(
            turn, outcome, self.answer_writer.extractive.name if outcome.quoted else model.name
        )

    def _quote(
        self, turn: Turn, query: str, how: Manner
    ) -> Steps[AnswerEvent, None, tuple[Selection, Quote | None]]:
        sent = turn.evidence
        with turn.trace.stage("quote", len(turn.evidence)) as stage:
            selection, quoted = self._selected(turn, query, leads=how.leads)
            stage.n_out = len(selection.chosen)
        if turn.evidence != sent:
            yield SourcesEvent(turn.evidence)
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
            return quoted_instead(
                quoted, f"the model {bare_name(model.name)} failed ({error.message})", None
            )
        turn.note(*written.notices)
        with turn.trace.stage("ground") as stage:
            grounded = self.grounder.ground(
                written.text, turn.evidence, question=turn.question.text
            )
            stage.n_out = sum(len(sentence.citations) for sentence in grounded.sentences)
        return settle(
            quoted, grounded, written.stopped, confident=selection.sufficiency >= CONFIDENT
        )

    def _cutoff_decides(self, turn: Turn) -> bool:
        return (turn.question.fusion or self.fusion) == "dense"

    def _manner(self, turn: Turn, model: Generator) -> Manner:
        profile, question = turn.choice.profile, turn.question
        speed = self.speeds.of(profile.host, model.name)
        return manner(
            profile,
            speed,
            self.options.manner,
            mode=question.mode,
            asked=question.evidence,
            own_prompt=self.answer_writer.has_own_prompt(question.mode),
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
            return turn.calls.ask("conversation", summary=old, history=new)
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
        if question.library == "all":
            with turn.trace.stage("disagreement", len(turn.evidence)) as stage:
                turn.trace.disagreements = disagreements(turn.evidence)
                stage.n_out = len(turn.trace.disagreements)
            turn.drop_notice("libraries_disagree")  # of an earlier search of this question
            turn.note(*disagreement_notice(turn.trace.disagreements))
