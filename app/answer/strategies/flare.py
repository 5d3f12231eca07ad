"""Draft the answer, then search for what the draft is unsure of (FLARE).

With token log-probabilities, a sentence that holds a token under the threshold becomes a query:
masked (its improbable words left out) or asked (the helper turns them into a question). The
sentence is then generated again with what that query found, and the draft goes on from there.
Without log-probabilities, hedges and `???` in the draft gate one second search. The answer itself
is written by the prompt of the mode over everything that was found, so that it can stream and cite.

References:
    Jiang 2023, Active Retrieval Augmented Generation, arXiv 2305.06983, sections 3.2.1 (confidence)
    and 3.2.2 (queries).
"""

from __future__ import annotations

import re

from app.answer.search import joined
from app.answer.strategies.base import Found, StrategyContext, numbered
from app.answer.strategies.uncertainty import Draft, UnsureSentence, read_draft
from app.core.ports import Generator
from app.core.types import Message, Prompt
from app.generation.context_plan import plan_context
from app.generation.fencing import new_fence
from app.generation.tokens import TokenEstimate
from app.retrieval.request import Retrieval

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
_GAPS = re.compile(r"\?{2,}")
_MAX_QUERY_CHARS = 400


def find(query: str, context: StrategyContext) -> Found:
    """Search, draft, and search again for unsure sentences.

    At most `flare_max_rounds` times.
    """
    found = context.search(query)
    if context.model is None:
        return Found(found, "baseline", "there is no model to write a draft")
    draft = _draft(context, context.model, query, found, "")
    if not draft.has_probabilities:
        again = gate(query, draft.text)
        retrievals = [found, context.search(again)] if again else [found]
    else:
        retrievals = _regenerate(context, context.model, query, found, draft)
    further = retrievals[1:]
    return Found(joined(found, further, context.search.places) if further else found, "flare")


def _regenerate(
    context: StrategyContext, model: Generator, query: str, found: Retrieval, draft: Draft
) -> list[Retrieval]:
    """Return the first result and one for each sentence that was generated again."""
    retrievals = [found]
    accepted = ""
    options = context.options
    trusted = (
        0  # sentences at the start of the draft that count as accepted; probabilities are ignored
    )
    while len(retrievals) <= options.flare_max_rounds:
        unsure = draft.first_unsure(options.flare_threshold, skip=trusted)
        if unsure is None:
            break
        accepted = f"{accepted} {draft.text[: unsure.start]}".strip()
        latest = context.search(_query(context, query, unsure))
        retrievals.append(latest)
        draft = _draft(context, model, query, latest if latest.hits else found, accepted)
        trusted = 1  # Jiang 2023: the regenerated sentence is taken as it is
    return retrievals


def _query(context: StrategyContext, query: str, unsure: UnsureSentence) -> str:
    """Return the query: the sentence without unsure words, or a helper's question."""
    options = context.options
    masked = _GAPS.sub(" ", unsure.without_words_under(options.flare_mask_threshold))
    masked = " ".join(masked.split())[:_MAX_QUERY_CHARS]
    if options.flare_query == "question":
        asked = context.calls.ask(
            "flare_question", question=query, sentence=unsure.text, span=unsure.least_sure_words()
        )
        if any(char.isalnum() for char in asked):
            return asked.splitlines()[0].strip()[:_MAX_QUERY_CHARS]
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
    prompt = Prompt(
        messages,
        query,
        temperature=built.temperature,
        max_tokens=built.max_tokens,
        logprobs=True,
        model=context.search.question.model,
    )
    return read_draft(context.calls.stream(model, prompt), accepted)
