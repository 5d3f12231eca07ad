"""Answer a question: a list of answerers is asked in order, and the first that can answers.

Pleasantries and questions about the conversation come first, then summaries, searches without an
answer, inventories of data sets, a model, and quotes, among them tables and checklists. The quote
comes from the question's own search, before any model is called. A rewrite or a strategy may find
other passages afterwards; numbers that were sent keep their meaning.
"""

from __future__ import annotations

import logging
from collections.abc import Generator as Steps
from collections.abc import Sequence
from dataclasses import dataclass, replace

from app.answer.document_facts import fact_of, fact_wish, list_of, opening_of, which_documents
from app.answer.judging import judged_answer
from app.answer.memory import ConversationMemory, recollection
from app.answer.models import (
    LEADING_PARAMETERS,
    NEAREST_PARAMETERS,
    ModelSpeeds,
    PromptPlan,
    manner,
)
from app.answer.modes import NEEDS_MODEL, SHAPED_MODES, EngineModes, inventory
from app.answer.options import AnswerOptions
from app.answer.pointing import stands_alone
from app.answer.questions import carried, parts_of, rewrite, translate
from app.answer.search import Search, SearcherFor, libraries
from app.answer.steps import (
    NO_WRITER,
    AnswerSteps,
    Asked,
    Found,
    Quoted,
    Written,
    answer_of,
    closed,
    hosted_notice,
)
from app.answer.strategies import StrategyContext, find, numbered
from app.answer.summaries import WHICH_DOCUMENT, Summaries, wish_of
from app.answer.targets import Targets, names_something, with_headings
from app.answer.writing import (
    CONFIDENT,
    AnswerWriter,
    GenerationRequest,
    Outcome,
    choose_outcome,
    quote_of,
    quoted_instead,
    whole_sentences,
    write,
)
from app.core.errors import InvalidInput, ProviderError
from app.core.languages import language_name, language_of
from app.core.ports import Generator
from app.core.types import (
    REFUSAL,
    AnswerEvent,
    AnswerStatus,
    Document,
    Evidence,
    Filters,
    Fusion,
    Nearest,
    Notice,
    QuoteEvent,
    Scope,
    SourcesEvent,
    TokenEvent,
    bare_name,
)
from app.generation.check.grounding import Grounder
from app.generation.quote.choosing import SUMMARY, QuoteBudget
from app.generation.quote.quote_features import missing_things
from app.generation.quote.quoting import Selection
from app.storage.catalog.documents import Catalog

_LOG = logging.getLogger(__name__)
NEAREST_PASSAGES = 10
"""Passages from which the places nearest to a refused question are chosen."""
_SAYS_NOTHING = frozenset({NEEDS_MODEL, WHICH_DOCUMENT})
"""Notices of refusals that say nothing of what the documents hold."""
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


def is_empty(catalog: Catalog, scope: Scope) -> bool:
    """Return True when no library of the scope has a chunk."""
    return not any(catalog.counts(library).chunks for library in libraries(scope))


def empty_notice(scope: Scope) -> Notice:
    """Return the notice `library_empty` with the cure."""
    names = " and ".join(repr(library.value) for library in libraries(scope))
    what = f"the libraries {names} are empty" if scope == "all" else f"the library {names} is empty"
    return Notice("library_empty", f"{what}; add a document, or load the samples: documind samples")


@dataclass(frozen=True, slots=True)
class Research:
    """Answers questions; stateless between them.

    An answerer takes a question and returns the steps of its answer, or the question for the next.
    """

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
    fallback: bool | None = None
    """A model gets the nearest passages where none passes the cutoff; None: an able one does."""

    def writer(self, asked: Asked) -> str:
        """Return who is going to write, as the first event says it."""
        question = asked.question
        if asked.intent.kind != "question" or question.retrieve_only or asked.empty:
            return NO_WRITER
        if question.mode == "datasets":
            return SCANNER
        return asked.choice.model.name if asked.choice.model else self.answer_writer.extractive.name

    def events(self, asked: Asked) -> AnswerSteps:
        """Yield sources, quote and tokens, and return the answer of the first that answers.

        A refusal has the places that come nearest, unless it was not the documents that failed.
        """
        answer = yield from self._answered(asked)
        if answer.status != "abstained" or asked.empty or _SAYS_NOTHING & set(answer.notices):
            return answer
        with asked.trace.stage("nearest") as stage:
            nearest = self._places_near_refusal(asked, answer.rewritten_query or asked.text)
            stage.n_out = len(nearest)
        return replace(answer, nearest=nearest)

    def _places_near_refusal(self, asked: Asked, text: str) -> tuple[Nearest, ...]:
        """Return the places that come nearest to a question, cutoff or not."""
        hits = self._search(asked).without_cutoff(text, NEAREST_PASSAGES).hits
        evidence = with_headings(self.catalog, numbered(hits))
        found = self.answer_writer.extractive.nearest(text, evidence) if evidence else ()
        return tuple(
            Nearest(
                one.item.hit.passage,
                one.item.hit.passage.chunk.start + one.start,
                one.item.hit.passage.chunk.start + one.end,
            )
            for one in found
        )

    def _answered(self, asked: Asked) -> AnswerSteps:
        for answerer in (
            self._pleasantry,
            self._recollection,
            self._nothing_to_ask,
            self._summary,
            self._search_alone,
            self._fact_of_document,
            self._list_of_documents,
            self._datasets_mode,
            self._with_model,
        ):
            answered = answerer(asked)
            if not isinstance(answered, Asked):
                return (yield from answered)
            asked = answered
        return (yield from self._quotes(asked))

    # Answerers that need no evidence.

    def _pleasantry(self, asked: Asked) -> Asked | AnswerSteps:
        return _fixed_answer(asked, asked.intent.reply, "chitchat") if asked.intent.reply else asked

    def _recollection(self, asked: Asked) -> Asked | AnswerSteps:
        if asked.intent.kind != "recall":
            return asked
        with asked.trace.stage("memory"):
            memory = self.memory.recall(asked.question, lambda *_: "")
        return _fixed_answer(asked, recollection(memory), "conversation")

    def _nothing_to_ask(self, asked: Asked) -> Asked | AnswerSteps:
        if not asked.empty:
            return asked
        asked = asked.noted(empty_notice(asked.question.library))
        if asked.question.retrieve_only:
            return _fixed_answer(asked, "", "retrieved")
        return _fixed_answer(asked, REFUSAL, "abstained")

    # Answerers from evidence.

    def _summary(self, asked: Asked) -> Asked | AnswerSteps:
        if asked.choice.reason:
            asked = asked.noted(Notice("generator_unavailable", asked.choice.reason))
        wish = wish_of(asked.question)
        if wish is None:
            return asked
        targets = Targets(self.catalog)
        meant = self._about_the_last(asked, wish.about)
        documents = targets.of(meant.question, wish.about, self._search(asked))
        if documents or wish.explicit:
            asked = replace(asked, question=replace(asked.question, mode="summary"))
        if documents:
            how = self._manner, self.options.check_by
            summaries = Summaries(targets, self.answer_writer, self.grounder, *how)
            found = Found(asked, self._search(asked))
            return summaries.events(found, documents, read_all=wish.read_all)
        if not wish.names_something:
            return _fixed_answer(asked.noted(WHICH_DOCUMENT), REFUSAL, "abstained")
        return replace(asked, text=wish.about) if wish.explicit else asked

    def _search_alone(self, asked: Asked) -> Asked | AnswerSteps:
        return self._found_alone(asked) if asked.question.retrieve_only else asked

    def _found_alone(self, asked: Asked) -> AnswerSteps:
        found = yield from self._found_without_model(asked)
        return answer_of(found.asked, "", "retrieved", NO_WRITER, found)

    def _fact_of_document(self, asked: Asked) -> Asked | AnswerSteps:
        wish = fact_wish(asked.text) if asked.question.mode == "general" else None
        if wish is None:
            return asked
        targets, name = Targets(self.catalog), self.answer_writer.extractive.name
        meant = self._about_the_last(asked, wish.named)
        found = Found(meant, self._search(meant))
        with asked.trace.stage("catalog"):
            for document in targets.own(meant.question, wish.named):
                if steps := fact_of(found, targets, document, wish.fact, name):
                    return steps
        # what else the document says does not tell who wrote it
        unsaid = meant is not asked and asked.choice.model is None
        return _fixed_answer(meant, REFUSAL, "abstained") if unsaid else meant

    def _about_the_last(self, asked: Asked, named: str) -> Asked:
        """Return a question about "it" for the one document that the last answer cites."""
        question = asked.question
        chosen = question.filters.doc_ids
        if chosen or question.conversation_id is None or names_something(named):
            return asked
        cited = self.memory.cited(question.conversation_id)
        if len(cited) != 1:
            return asked
        filters = replace(question.filters, doc_ids=tuple(cited))
        return replace(asked, question=replace(question, filters=filters))

    def _list_of_documents(self, asked: Asked) -> Asked | AnswerSteps:
        """List the documents that there are, or those that a search for a subject finds."""
        about = which_documents(asked.text) if asked.question.mode == "general" else None
        filters = asked.question.filters
        if about is None or not (about or filters.doc_ids or filters == Filters()):
            return asked
        found, targets = Found(asked, self._search(asked)), Targets(self.catalog)
        openings: dict[Document, Sequence[Evidence]] = {}
        with asked.trace.stage("catalog") as stage:
            if about:
                for hit in found.search(about).hits:
                    if not hit.fallback:
                        openings.setdefault(hit.passage.document, [Evidence(1, hit)])
                count = len(openings)
            else:
                documents, count = targets.listed(asked.question)
                openings = {one: opening_of(targets, one) for one in documents}
            stage.n_out = len(openings)
        if not openings:
            return asked
        said = f"{count:,} document{'s' if count > 1 else ''}"
        said += f" that a search for \u201c{about}\u201d finds" if about else ""
        said += f"; the newest {len(openings)}:" if count > len(openings) else ":"
        return list_of(found, openings, said, self.answer_writer.extractive.name)

    def _datasets_mode(self, asked: Asked) -> Asked | AnswerSteps:
        return self._data_sets(asked) if asked.question.mode == "datasets" else asked

    def _data_sets(self, asked: Asked) -> AnswerSteps:
        found = yield from self._found_without_model(asked)
        with asked.trace.stage("generate", len(found.evidence)) as stage:
            outcome, writer = Outcome(REFUSAL, ()), NO_WRITER
            if found.evidence:
                grounded = self.grounder.ground(
                    inventory(found.evidence) or REFUSAL, found.evidence, by="engine"
                )
                outcome, writer = Outcome(grounded.text, grounded.sentences), SCANNER
            stage.n_out = len(outcome.sentences)
        yield TokenEvent(outcome.text)
        asked.cancel.raise_if_cancelled()
        return closed(Written(found, outcome, writer))

    def _quotes(self, asked: Asked) -> AnswerSteps:
        found = yield from self._found_without_model(asked)
        with asked.trace.stage("generate", len(found.evidence)) as stage:
            written = self._quoted_alone(found)
            stage.n_out = len(written.outcome.sentences)
        if written.found.evidence != found.evidence:
            yield SourcesEvent(written.found.evidence)
        yield TokenEvent(written.outcome.text)
        asked.cancel.raise_if_cancelled()
        return closed(written)

    def _found_without_model(self, asked: Asked) -> Steps[AnswerEvent, None, Found]:
        """Yield what is found where no model writes."""
        if asked.question.wishes:
            asked = asked.noted(_WISHES_UNUSED)
        found = self._find(self._with_query(Found(asked, self._search(asked))))
        yield SourcesEvent(found.evidence)
        return found.noted(*hosted_notice(found.asked))

    def _quoted_alone(self, found: Found) -> Written:
        """Return the quote as the answer, or the refusal."""
        shapes = found.asked.question.mode in SHAPED_MODES
        quoted = self._selected(found, leads=True)
        if not (quoted.found.evidence or shapes):
            return Written(found, Outcome(REFUSAL, ()), NO_WRITER)
        found, quote = quoted.found, quoted.quote
        if quote is None and self._is_dense(found.asked):
            found = found.noted(_CUTOFF_OVERRULED)
        if shapes and not quoted.shaped:
            found = found.noted(NEEDS_MODEL)
        outcome = Outcome(quote.text, quote.sentences) if quote else Outcome(REFUSAL, ())
        name = self.answer_writer.extractive.name
        return Written(found, outcome, name, quoted.confidence, quoted.missing)

    def _selected(self, found: Found, *, leads: bool) -> Quoted:
        """Return the best sentences, as a table or a list where the mode asks for one."""
        usable = [item for item in found.evidence if not item.hit.fallback]
        room = SUMMARY if found.asked.question.mode == "summary" else None
        selection, unanswered = self._selection(found, usable, room)
        quote = quote_of(self.grounder, found.query, selection, usable, leads=leads)
        if unanswered:
            said = f"nothing that was found answers {', '.join(map(repr, unanswered))}"
            found = found.noted(Notice("subject_missing", said))
        quoted = Quoted(
            found, selection, quote, selection.sufficiency, missing_things(found.query, usable)
        )
        modes = EngineModes(Targets(self.catalog), self.answer_writer.extractive)
        return modes.shaped(quoted, leads=leads) or quoted

    def _selection(
        self, found: Found, evidence: Sequence[Evidence], room: QuoteBudget | None
    ) -> tuple[Selection, tuple[str, ...]]:
        """Return what to quote, of several questions for each, and those that nothing answers."""
        select = self.answer_writer.extractive.select
        parts: dict[str, Selection] = {}
        for part in found.search.parts if found.query == found.asked.text else ():
            own = {hit.passage.chunk.key for hit in found.search(part).hits if not hit.fallback}
            of_part = [item for item in evidence if item.hit.passage.chunk.key in own]
            parts[part] = select(found.search.corrected(part), of_part, room)
        answered = [one for one in parts.values() if one.chosen]
        if not answered:
            return select(found.search.corrected(found.query), evidence, room), ()
        chosen = {(one.item.n, one.start): one for part in answered for one in part.chosen}
        selection = Selection(
            tuple(chosen.values()), min(one.sufficiency for one in answered), answered[0].ranked
        )
        return selection, tuple(part for part, one in parts.items() if not one.chosen)

    def _with_model(self, asked: Asked) -> Asked | AnswerSteps:
        model = asked.choice.model
        return asked if model is None else self._answer_with_model(asked, model)

    def _answer_with_model(self, asked: Asked, model: Generator) -> AnswerSteps:
        """Yield the quote before any model call, then the model's words.

        The words are over the final evidence.
        """
        search, how = self._search(asked), self._manner(asked, model)
        first = with_headings(self.catalog, numbered(search(asked.text).hits))
        found = Found(asked, search, asked.text, first)
        yield SourcesEvent(found.evidence)
        quoted = yield from self._quote(found, how)
        found = self._find(self._with_query(quoted.found))
        if found.evidence == quoted.found.evidence:
            quoted = replace(quoted, found=found)
        else:
            yield SourcesEvent(found.evidence)
            quoted = yield from self._quote(found, how)
        found, quote = quoted.found, quoted.quote
        guesses = how.leads and quote is None and asked.question.mode in SHAPED_MODES
        if guesses:  # without a quote to lead, a small model fills a table with what it makes up
            found = found.noted(NEEDS_MODEL)
        extractive = self.answer_writer.extractive.name
        if guesses or not found.evidence:
            name = extractive if found.evidence else NO_WRITER
            outcome = Outcome(REFUSAL, ())
            return closed(Written(found, outcome, name, quoted.confidence, quoted.missing))
        if quote is not None and quote.leads:
            yield TokenEvent(f"{quote.text}\n\n")
        if quote is not None and quote.leads and quoted.shaped:
            # A table or a checklist is complete; below it a small model adds only what it misread.
            outcome = Outcome(quote.text, quote.sentences, quoted=True)
        else:
            outcome, notices = yield from self._model_words(quoted, model, how)
            found = found.noted(*notices)
        if outcome.notice:
            found = found.noted(outcome.notice)
        found = found.noted(*hosted_notice(asked))
        asked.cancel.raise_if_cancelled()
        name = extractive if outcome.quoted else model.name
        return closed(Written(found, outcome, name, quoted.confidence, quoted.missing, quote))

    def _quote(self, found: Found, how: PromptPlan) -> Steps[AnswerEvent, None, Quoted]:
        with found.asked.trace.stage("quote", len(found.evidence)) as stage:
            quoted = self._selected(found, leads=how.leads)
            stage.n_out = len(quoted.selection.chosen)
        if quoted.found.evidence != found.evidence:
            yield SourcesEvent(quoted.found.evidence)
        if quoted.quote is not None:
            yield QuoteEvent(quoted.quote)
        return quoted

    def _model_words(
        self, quoted: Quoted, model: Generator, how: PromptPlan
    ) -> Steps[AnswerEvent, None, tuple[Outcome, tuple[Notice, ...]]]:
        """Yield what the model writes and return what becomes of it, with notices."""
        found, asked = quoted.found, quoted.found.asked
        task = GenerationRequest(
            asked.question,
            found.query if how.prompts == "compact" else asked.question.text,
            found.evidence,
            quoted.selection,
            found.memory.messages(),
            how,
            missing=quoted.missing,
            begun=whole_sentences(asked.question.begun),
            above=tuple(one.text for one in quoted.quote.sentences)
            if quoted.quote is not None and quoted.quote.leads
            else (),
        )
        try:
            with asked.trace.stage("generate", len(found.evidence)) as stage:
                written = yield from write(self.answer_writer, task, model, asked.calls)
                stage.n_out = 1
        except (ProviderError, InvalidInput) as error:
            if quoted.quote is None:
                raise
            reason = f"the model {bare_name(model.name)} failed ({error.message})"
            return quoted_instead(quoted.quote, reason, None), ()
        with asked.trace.stage("ground") as stage:
            grounded = self.grounder.ground(
                written.text, found.evidence, question=asked.question.text
            )
            by = self.options.check_by
            judge = asked.choice.judge or model
            grounded = judged_answer(by, grounded, found.evidence, judge, asked.calls)
            stage.n_out = sum(len(sentence.citations) for sentence in grounded.sentences)
        # what a small model does not find is no evidence that it is not there
        confident = how.prompts == "compact" or quoted.selection.sufficiency >= CONFIDENT
        outcome = choose_outcome(
            quoted.quote,
            grounded,
            written.stopped,
            confident=confident,
            strict=asked.question.strict,
        )
        return outcome, written.notices

    def _is_dense(self, asked: Asked) -> bool:
        return (asked.question.fusion or self.fusion) == "dense"

    def _manner(self, asked: Asked, model: Generator) -> PromptPlan:
        profile, question = asked.choice.profile, asked.question
        speed = self.speeds.of(profile.host, model.name)
        return manner(
            profile,
            speed,
            self.options.manner,
            mode=question.mode,
            asked=question.evidence,
            own_prompt=self.answer_writer.has_own_prompt(question.mode),
        )

    # Search, and what the conversation adds to it.

    def _search(self, asked: Asked) -> Search:
        parts = self._parts(asked)
        together = (asked.intent.text, *parts) if asked.around else parts
        model, profile, question = asked.choice.model, asked.choice.profile, asked.question
        if question.fallback is None and self.fallback is None and model is not None:
            able = profile.hosted or (profile.parameters or 0.0) >= NEAREST_PARAMETERS
            question = replace(question, fallback=able)
        return Search(
            question,
            max(self.top_k, self._manner(asked, model).passages) if model else self.top_k,
            self.searcher_for,
            asked.trace,
            {asked.text: together} if together else {},
            parts,
        )

    def _parts(self, asked: Asked) -> tuple[str, ...]:
        """Return the questions of a message, the later ones with the subject of the first."""
        first, *others = parts_of(asked.text) or ("",)
        scope, searcher_for = asked.question.library, self.searcher_for
        carrying = [carried(one, [first], scope, searcher_for) or one for one in others]
        return (first, *carrying) if others else ()

    def _with_query(self, found: Found) -> Found:
        """Return the query that the conversation makes of the question.

        The datasets mode uses no model and no rewrite.
        """
        asked = found.asked
        found = replace(found, query=asked.text)
        if asked.around and not stands_alone(asked.text):
            found = self._carrying(found, asked.around)
        with asked.trace.stage("memory"):
            memory = self.memory.recall(
                asked.question, lambda old, new: _summarised(asked, old, new)
            )
        found = self._translated(replace(found, memory=memory))
        if found.rewritten or not memory or asked.question.mode == "datasets":
            return found
        with asked.trace.stage("rewrite"):
            if rewritten := rewrite(asked.text, memory, asked.calls):
                return replace(found, rewritten=rewritten, query=rewritten)
            return self._carrying(found, memory.questions)

    def _translated(self, found: Found) -> Found:
        """Return the query in the language of the documents, where a model can translate it.

        Small models do it badly: evaluation/reports/models.md.
        """
        asked, profile = found.asked, found.asked.choice.profile
        can = profile.hosted or (profile.parameters or 0.0) >= LEADING_PARAMETERS
        if asked.calls.helper is None or not can:
            return found
        if all(one.code != "language_differs" for one in found.search(asked.text).notices):
            return found
        library = libraries(asked.question.library)[0]
        language = self.searcher_for(library).retriever.lexical.languages(library)[0]
        if language == language_of(asked.text):
            return found
        with asked.trace.stage("translate"):
            query = translate(asked.text, language_name(language), asked.calls)
        return replace(found, rewritten=query, query=query) if query else found

    def _carrying(self, found: Found, earlier: Sequence[str]) -> Found:
        """Return the query with rare words of what was said before it, where it needs them."""
        asked = found.asked
        carries = carried(asked.text, earlier, asked.question.library, self.searcher_for)
        if carries is None:
            return found
        found.search.fused_with[carries] = (asked.text,)
        return replace(found, rewritten=carries, query=carries)

    def _find(self, found: Found) -> Found:
        """Search, number the evidence, and note what must be said about it."""
        asked = found.asked
        context = StrategyContext(found.search, asked.calls, self.options, asked.choice.model)
        retrieval, strategy, degraded = find(found.query, context)
        asked.cancel.raise_if_cancelled()
        evidence = with_headings(self.catalog, numbered(retrieval.hits, found.evidence))
        return replace(
            found,
            asked=asked.noted(*retrieval.notices, *degraded),
            evidence=evidence,
            strategy=strategy,
            confidence=retrieval.confidence,
        )


def _fixed_answer(asked: Asked, text: str, status: AnswerStatus) -> AnswerSteps:
    """Yield an answer that needs no evidence."""
    yield SourcesEvent(())
    if text:
        yield TokenEvent(text)
    return answer_of(asked, text, status, NO_WRITER)


def _summarised(asked: Asked, old: str, new: str) -> str:
    """Return the summary with new turns; empty if no model is available.

    The turns then wait for the next question.
    """
    try:
        return asked.calls.ask("conversation", summary=old, history=new)
    except (ProviderError, InvalidInput) as error:
        _LOG.warning("a conversation could not be summarised: %s", error)
        return ""
