"""Turn a question into searches: baseline, hyde, multi_query, flare.

Model calls of one question, besides the answer itself:

    baseline      0
    hyde          1: the hypothetical passage
    multi_query   1: the sub-queries
    flare         1 draft; with log-probabilities 1 more for each sentence that is generated again,
                  3 at most

With a small model (0.5 billion parameters) none finds more than the baseline, and each costs
seconds: evaluation/reports/models.md. They are for larger models.

A rewritten follow-up and a summary of a long conversation are one call each, before any of these.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType

from app.answer.models import ModelCalls
from app.answer.options import AnswerOptions
from app.answer.questions import listed
from app.answer.search import Search, joined, libraries
from app.answer.writing import is_refusal, reads_as_refusal
from app.core.errors import InvalidInput, ProviderError
from app.core.ports import Generator
from app.core.sentences import sentence_spans
from app.core.types import Evidence, Hit, Message, Notice, Scope, Strategy, Token
from app.generation.language.claims import content_tokens
from app.generation.language.tokens import TokenEstimate
from app.generation.prompt.context import new_fence, plan_context
from app.retrieval.request import Retrieval

# Define what a strategy is given, and what it is.


@dataclass(frozen=True, slots=True)
class StrategyContext:
    """A strategy's tools: searches, models, options."""

    search: Search
    calls: ModelCalls
    options: AnswerOptions
    model: Generator | None = None
    """The model that answers; flare drafts with it."""


NO_MODEL = "no model is there to write one; start Ollama with a model, or set LLM_PROVIDER"
"""Why a strategy that lets a model write something is not possible without one."""

QueryStrategy = Callable[[str, StrategyContext], Retrieval]
"""Searches for a query (the question or its rewrite).

Raises ProviderError when a model host fails, and InvalidInput where a model's reply is of no use or
there is none; the baseline then searches instead.
"""


def numbered(hits: Sequence[Hit], sent: Sequence[Evidence] = ()) -> tuple[Evidence, ...]:
    """Return hits as evidence, in their order.

    Passages that were sent before keep their numbers; the others get the next ones, from 1.
    """
    known = {item.hit.passage.chunk.key: item.n for item in sent}
    free = itertools.count(max(known.values(), default=0) + 1)
    return tuple(Evidence(known.get(hit.passage.chunk.key) or next(free), hit) for hit in hits)


# One pass: the question as it stands is the search.


def baseline(query: str, context: StrategyContext) -> Retrieval:
    """Search once."""
    return context.search(query)


# Search with the vector of a hypothetical passage (HyDE).

_STYLE: Mapping[Scope, str] = {
    "papers": "a research paper",
    "public": "an encyclopedia article",
    "all": "a reference work",
}


def hyde(query: str, context: StrategyContext) -> Retrieval:
    """Search with a passage the helper wrote."""
    scope = context.search.question.library
    if all(context.search.searcher_for(library).embedder is None for library in libraries(scope)):
        raise InvalidInput("there is no embedding model to embed a hypothetical passage with")
    if context.calls.helper is None:
        raise InvalidInput(f"it searches with a passage, and {NO_MODEL}")
    passage = context.calls.ask("hyde", question=query, style=_STYLE[scope])
    if is_refusal(passage) or reads_as_refusal(passage) or not _is_about(passage, query):
        raise InvalidInput("the model wrote no passage")
    own = context.search(query)
    return joined(own, [context.search(query, passage)], context.search.places)


def _is_about(passage: str, query: str) -> bool:
    """Return whether a passage has a content word of the question; true if that has none."""
    asked = set(content_tokens(query))
    return any(char.isalnum() for char in passage) and (
        not asked or not asked.isdisjoint(content_tokens(passage))
    )


# Search several wordings of a question and fuse them by reciprocal rank.

MAX_QUERIES = 3
"""Sub-queries searched at most."""
_SHARED = 0.5
"""Share of a sub-query's content words that the question must hold: what adds more is about
something else."""


def multi_query(query: str, context: StrategyContext) -> Retrieval:
    """Search every part the helper makes of the question."""
    own = context.search(query)
    if context.calls.helper is None:
        raise InvalidInput(f"it searches with other wordings, and {NO_MODEL}")
    written = listed(context.calls.ask("multi_query", question=query, count=str(MAX_QUERIES)))
    queries = [one for one in written if is_about(one, query)][:MAX_QUERIES]
    if not queries:
        raise InvalidInput("the model wrote no sub-queries about the question")
    return joined(own, [context.search(one) for one in queries], context.search.places)


def is_about(query: str, question: str) -> bool:
    """Return whether a sub-query shares enough content words with the question."""
    mine, asked = set(content_tokens(query)), set(content_tokens(question))
    return bool(mine) and len(mine & asked) >= _SHARED * min(len(mine), len(asked))


# A draft with what the model thought of each of its words.

_MARK = re.compile(r"\[\d{1,4}\]")
_WORD = re.compile(r"\S+")


@dataclass(frozen=True, slots=True)
class Word:
    """A run of non-blank characters `[start, end)` of the draft.

    `probability` is that of its least probable token.
    """

    start: int
    end: int
    text: str
    probability: float


@dataclass(frozen=True, slots=True)
class UnsureSentence:
    """A sentence of a draft that holds an improbable word or a gap."""

    text: str
    start: int
    """Where it begins in the draft."""
    words: tuple[Word, ...]

    def without_words_under(self, probability: float) -> str:
        """Return the sentence without improbable words: Jiang 2023's implicit query."""
        return " ".join(word.text for word in self.words if word.probability >= probability)


@dataclass(frozen=True, slots=True)
class Draft:
    """A draft's text and its words."""

    text: str
    words: tuple[Word, ...]
    has_probabilities: bool

    def first_unsure(self, threshold: float, skip: int = 0) -> UnsureSentence | None:
        """Return the first sentence with an unsure word or a `??` gap, else None.

        Args:
            threshold: Probability in [0, 1].
            skip: Sentences at the start that count as sure.
        """
        for start, end in sentence_spans(self.text)[skip:]:
            words = tuple(word for word in self.words if word.start < end and word.end > start)
            if words and (
                "??" in self.text[start:end] or min(word.probability for word in words) < threshold
            ):
                return UnsureSentence(self.text[start:end], start, words)
        return None


def read_draft(tokens: Iterable[Token], accepted: str = "") -> Draft:
    """Return a draft from its tokens.

    Words without a letter or digit and citation marks are as probable as can be: they claim
    nothing. A model that repeats the accepted beginning instead of going on after it has it taken
    off.

    Args:
        tokens: A finished call.
        accepted: What the model was to go on after.
    """
    pieces: list[tuple[int, int, float | None]] = []
    text = ""
    for token in tokens:
        pieces.append((len(text), len(text) + len(token.text), token.logprob))
        text += token.text
    begin = len(text) - len(text.lstrip())
    if accepted and text[begin:].startswith(accepted):
        begin += len(accepted)
        begin += len(text[begin:]) - len(text[begin:].lstrip())
    marks = [match.span() for match in _MARK.finditer(text)]
    words = []
    for match in _WORD.finditer(text, begin):
        start, end = match.span()
        known = [
            math.exp(logprob)
            for a, b, logprob in pieces
            if logprob is not None
            and a < end
            and b > start
            and _claims(text[max(a, start) : min(b, end)], a, b, marks)
        ]
        words.append(Word(start - begin, end - begin, match.group(), min(known, default=1.0)))
    return Draft(text[begin:], tuple(words), any(logprob is not None for *_, logprob in pieces))


def _claims(piece: str, start: int, end: int, marks: list[tuple[int, int]]) -> bool:
    return any(char.isalnum() for char in piece) and not any(
        a <= start and end <= b for a, b in marks
    )


# Draft the answer, then search for what the draft is unsure of (FLARE).

_CHARACTERS = TokenEstimate(chars_per_token=1.0)
"""The draft's context is bounded in characters."""
_HEDGES = re.compile(
    r"\b(?:not (?:entirely |quite |completely )?(?:sure|certain|clear|known|specified|stated"
    r"|mentioned|given|provided)"
    r"|(?:is|are|was|were|remains?) (?:unclear|uncertain|unknown|unspecified)"
    r"|(?:do|does|did)(?: not|n't) (?:know|say|state|mention|specify)"
    r"|(?:can ?not|can't|could not|couldn't) (?:be )?(?:determined?|say|tell|find|confirm)|no"
    r" (?:information|mention|details?)"
    r"|(?:don't|do not) have enough information|insufficient|perhaps|possibly|probably|presumably"
    r"|might|may be|seems? to"
    r"|it is likely)\b",
    re.IGNORECASE,
)
_UNSURE = 0.4
"""Probability of a word under which its sentence is searched for and generated again."""
_ROUNDS = 3
"""Sentences generated again at most, so that a small unsure model cannot search forever."""
_GAPS = re.compile(r"\?{2,}")
_MAX_QUERY_CHARS = 400


def flare(query: str, context: StrategyContext) -> Retrieval:
    """Search, draft, and search again for unsure sentences, at most `_ROUNDS` times."""
    found = context.search(query)
    if context.model is None:
        raise InvalidInput("there is no model to write a draft")
    draft = _draft(context, context.model, query, found, "")
    if not draft.has_probabilities:
        again = gate(query, draft.text)
        retrievals = [found, context.search(again)] if again else [found]
    else:
        retrievals = _regenerate(context, context.model, query, found, draft)
    further = retrievals[1:]
    return joined(found, further, context.search.places) if further else found


def _regenerate(
    context: StrategyContext, model: Generator, query: str, found: Retrieval, draft: Draft
) -> list[Retrieval]:
    """Return the first result and one for each sentence that was generated again."""
    retrievals = [found]
    accepted = ""
    trusted = (
        0  # sentences at the start of the draft that count as accepted; probabilities are ignored
    )
    while len(retrievals) <= _ROUNDS:
        unsure = draft.first_unsure(_UNSURE, skip=trusted)
        if unsure is None:
            break
        accepted = f"{accepted} {draft.text[: unsure.start]}".strip()
        latest = context.search(_query(query, unsure))
        retrievals.append(latest)
        draft = _draft(context, model, query, latest if latest.hits else found, accepted)
        trusted = 1  # Jiang 2023: the regenerated sentence is taken as it is
    return retrievals


def _query(query: str, unsure: UnsureSentence) -> str:
    """Return the sentence without its unsure words; behind the question if little is left."""
    masked = _GAPS.sub(" ", unsure.without_words_under(_UNSURE))
    masked = " ".join(masked.split())[:_MAX_QUERY_CHARS]
    return masked if len(masked.split()) >= 3 else f"{query} {masked}".strip()


def gate(query: str, draft: str) -> str:
    """Return the second query; empty if the draft neither hedges nor leaves gaps.

    It is the question followed by the unsure sentences, their hedges and gaps left out.
    """
    unsure = [
        sentence
        for sentence in re.split(r"(?<=[.!])\s+|\n+", draft)
        if _HEDGES.search(sentence) or _GAPS.search(sentence)
    ]
    if not unsure:
        return ""
    rest = " ".join(_GAPS.sub(" ", _HEDGES.sub(" ", " ".join(unsure))).split())
    return f"{query} {rest}".strip()[:_MAX_QUERY_CHARS]


def _draft(
    context: StrategyContext, model: Generator, query: str, found: Retrieval, accepted: str
) -> Draft:
    """Let the model continue `accepted`, over the best passages that fit.

    The limit is FLARE_DRAFT_MAX_CONTEXT_CHARS.
    """
    evidence = numbered(found.hits)
    fence = new_fence(query, *(item.hit.passage.chunk.text for item in evidence))
    plan = plan_context(
        evidence,
        fixed_tokens=0,
        budget_tokens=context.options.flare_draft_max_context_chars,
        estimate=_CHARACTERS,
        fence=fence,
    )
    built = context.calls.prompts.task(
        "flare_draft", context=plan.text, fence=fence, question=query
    )
    messages = (*built.messages, Message("assistant", accepted)) if accepted else built.messages
    model_name = context.search.question.model
    prompt = replace(built, messages=messages, question=query, logprobs=True, model=model_name)
    return read_draft(context.calls.stream(model, prompt), accepted)


# Run the requested strategy, or the baseline if a needed model is missing.


def find(query: str, context: StrategyContext) -> tuple[Retrieval, Strategy, tuple[Notice, ...]]:
    """Search for a query as its question asks; the datasets mode is always baseline.

    Args:
        query: The question or its rewrite.
        context: Searches bound to the question, and who may be asked.

    Returns:
        What was found, the strategy that searched, and the notice `strategy_degraded` where
        another one was asked for.
    """
    question = context.search.question
    wanted = "baseline" if question.mode == "datasets" else question.strategy
    try:
        return STRATEGIES[wanted](query, context), wanted, ()
    except (ProviderError, InvalidInput) as error:  # or a prompt was longer than the model reads
        said = f"{wanted} was not possible, the baseline searched instead: {error.message}"
        return baseline(query, context), "baseline", (Notice("strategy_degraded", said),)


STRATEGIES: Mapping[Strategy, QueryStrategy] = MappingProxyType(
    {"baseline": baseline, "hyde": hyde, "multi_query": multi_query, "flare": flare}
)
"""Every strategy by the name the API uses."""
