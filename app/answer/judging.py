"""Let a model judge whether passages state a sentence, next to the reader or in its place.

A decision model where the host has one, else the chat model that answers.
"""

from __future__ import annotations

import math
import re
import secrets
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial

from app.answer.checking import Watch, unwatched
from app.answer.models import ModelCalls, ModelSelector
from app.core.cancel import CancelToken
from app.core.errors import InvalidInput, ModelNotInstalled, ProviderError
from app.core.ports import Generator
from app.core.types import (
    CheckBy,
    CheckCounts,
    CheckedSentence,
    CheckReport,
    Evidence,
    Prompt,
    SecondVerdict,
    Sentence,
    Token,
    Verdict,
)
from app.generation.check.citations import plain_claim
from app.generation.check.grounding import Grounded
from app.generation.prompt.prompts import PromptLibrary
from app.generation.quote.quoting import EXACT

MOST_JUDGED = 100
"""Sentences of a text: a model on a small host takes a second for each."""
STATES_FROM = 0.5
"""Probability of a yes from which a model says that passages state a sentence."""
_SAID = re.compile(r"\b(yes|no)\b", re.IGNORECASE)

Stream = Callable[[Prompt], Iterator[Token]]
"""A call of the model that judges."""


def verdict_by(by: CheckBy, own: Verdict, judged: SecondVerdict | None) -> Verdict:
    """Return the verdict of the one that decides.

    A model that says no takes `supported` away and leaves the other verdicts as the reader has
    them; one that gave no clear reply, or failed, counts as one that said no.

    Args:
        by: Who decides; `both`: a sentence is supported where both say so.
        own: The reader's verdict.
        judged: The model's.
    """
    if by == "reader" or own == "no_claim":
        return own
    if judged == "supported":
        return "supported" if by == "model" else own
    return "unsure" if own == "supported" else own


def probability_of_yes(tokens: Iterable[Token]) -> float | None:
    """Return how probable a yes is by a model's reply, in [0, 1]; None where it says neither.

    A host that gives no log-probabilities is taken at its word: 1 or 0.
    """
    text, yes = "", None
    for token in tokens:
        text += token.text
        if yes is None and (said := _SAID.search(text)):
            certain = math.exp(token.logprob) if token.logprob is not None else 1.0
            yes = certain if said[1].lower() == "yes" else 1.0 - certain
    return yes


def states(
    prompts: PromptLibrary, sentence: str, passages: Iterable[str], stream: Stream
) -> float | None:
    """Return how probable it is that passages state a sentence; None without a clear reply.

    Raises:
        ProviderError: The host failed.
        Cancelled: The call was cancelled.
    """
    fence = secrets.token_hex(8)  # a passage cannot close a fence that it cannot guess
    texts = dict.fromkeys(passages)
    context = "\n\n".join(f"<passage-{fence}>\n{text}\n</passage-{fence}>" for text in texts)
    prompt = prompts.task("judge_claim", context=context, fence=fence, claim=plain_claim(sentence))
    return probability_of_yes(stream(replace(prompt, logprobs=True)))


def judged_answer(
    by: CheckBy,
    grounded: Grounded,
    evidence: Iterable[Evidence],
    model: Generator,
    calls: ModelCalls,
) -> Grounded:
    """Return an answer with the verdicts of the one that decides.

    A sentence is held against the passages that it cites, whole. One that cites none, or is an
    exact copy, keeps its verdict. A host that fails says no.
    """
    if by == "reader":
        return grounded
    texts = {item.n: item.hit.passage.chunk.text for item in evidence}
    sentences = list(grounded.sentences)
    failed = False
    for at, one in enumerate(sentences):
        if one.verdict == "no_claim" or not one.citations or _is_copy(one):
            continue
        judged: SecondVerdict | None = None
        if not failed:
            passages = [texts[citation.n] for citation in one.citations]
            try:
                yes = states(calls.prompts, one.text, passages, partial(calls.stream, model))
                judged = _said(yes)
            except (ProviderError, InvalidInput):
                failed = True
        sentences[at] = replace(one, verdict=verdict_by(by, one.verdict, judged))
    return replace(grounded, sentences=tuple(sentences))


@dataclass(frozen=True, slots=True)
class ClaimJudge:
    """Puts a model's verdicts into the report of a check."""

    models: ModelSelector
    prompts: PromptLibrary
    by: CheckBy = "reader"
    """Who decides where a request does not say it (CHECK_BY)."""

    def speaks(self, model: str | None, by: CheckBy | None) -> bool:
        """Return whether a model is asked: one is named, or has a part in what decides."""
        return model is not None or (by or self.by) != "reader"

    def on_report(
        self,
        report: CheckReport,
        cancel: CancelToken,
        *,
        model: str | None = None,
        by: CheckBy | None = None,
        watch: Watch = unwatched,
    ) -> CheckReport:
        """Return a report with a model's verdicts, where one is named or decides.

        A sentence without a place is `not_supported` unasked: there is nothing to judge it by. An
        exact copy stays supported, even against the model. A model that fails is asked no further,
        and the report has the reason.

        Args:
            report: What the check found.
            cancel: Ends the calls.
            model: The model's name; None: a decision model of the host, else the one that answers.
            by: Who decides; None: as configured.
            watch: Is told how many sentences the model has judged.

        Raises:
            InvalidInput: The request asks for a model's verdict, and none answers here, or more
                than MOST_JUDGED sentences would be asked. Where only CHECK_BY asks for it, the
                reader decides, and the report has the reason.
            ModelNotInstalled: The host does not have the model.
        """
        if not self.speaks(model, by):
            return report
        decides = by or self.by
        choice = self.models.select(model)
        judge = choice.judge or choice.model
        asked = sum(bool(one.citations) for one in report.sentences)
        why = ""
        if judge is None:
            why = f"no model can judge: {choice.reason or 'no model host answers'}"
        elif asked > MOST_JUDGED:
            why = (
                f"a model judges at most {MOST_JUDGED} sentences at a time, not {asked}; check the"
                " text in parts"
            )
        if judge is None or why:
            if model is not None or by is not None:
                raise InvalidInput(why)
            return replace(report, judge_failed=why)
        judged, failed = self._judged(report.sentences, judge, cancel, watch)
        sentences = tuple(
            one
            if _is_copy(one)
            else replace(one, verdict=verdict_by(decides, one.verdict, one.judged))
            for one in judged
        )
        return replace(
            report,
            sentences=sentences,
            counts=CheckCounts.of(one.verdict for one in sentences),
            check_by=decides,
            judge=judge.name,
            judge_failed=failed,
        )

    def _judged(
        self,
        sentences: Sequence[CheckedSentence],
        model: Generator,
        cancel: CancelToken,
        watch: Watch,
    ) -> tuple[list[CheckedSentence], str | None]:
        """Return sentences with the model's verdicts, and why it was asked no further."""
        judged = list(sentences)
        for at, one in enumerate(judged):
            if one.verdict == "no_claim":
                continue
            if not one.citations:
                judged[at] = replace(one, judged="not_supported")
                continue
            cancel.raise_if_cancelled()
            watch(at, len(judged))
            quotes = [finding.quote for finding in one.citations]
            try:
                yes = states(self.prompts, one.text, quotes, partial(model.stream, cancel=cancel))
            except ModelNotInstalled:
                raise
            except ProviderError as error:
                return judged, error.message
            judged[at] = replace(one, judged=_said(yes))
        return judged, None


def _is_copy(one: Sentence | CheckedSentence) -> bool:
    """Return whether a sentence stands in a source word for word, which no model decides."""
    return one.verdict == "supported" and one.citations[0].support >= EXACT


def _said(yes: float | None) -> SecondVerdict | None:
    if yes is None:
        return None
    return "supported" if yes >= STATES_FROM else "not_supported"
