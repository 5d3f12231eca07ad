"""Decide the outcome of a model's words: kept, below the quote, or replaced.

The quote replaces them. The engine has found and quoted before the model wrote; nothing that no
passage supports is ever an answer.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from app.core.text import tokenise
from app.core.types import Notice, Quote, Sentence
from app.generation.citations import without_marks
from app.generation.grounding import Grounded
from app.generation.prompts import REFUSAL
from app.generation.runaway import Runaway

_SAME = 0.7
"""Share of words from which a model's sentence repeats a quoted one (Jaccard similarity)."""
_REFUSES = re.compile(
    r"(?:don't|do not|doesn't|does not|didn't|did not|isn't|is not|are not|aren't|not|no|cannot"
    r"|can't|unable to)\b.{0,40}?"
    r"\b(?:enough information|information|specif\w+|mention\w*|provid\w+|stat(?:e|ed)|giv(?:e|en)"
    r"|contain\w*|answer\w*"
    r"|determin\w+|availab\w+|know)\b.{0,60}?\b(?:facts?|text|passages?|documents?|context"
    r"|information|question|above|provided|given)\b",
    re.IGNORECASE,
)
_REASONS: dict[Runaway | Literal["failed", "refused", "unsupported"], str] = {
    "loop": "the model repeated itself",
    "leak": "the model recited its instructions",
    "refused": "the model refused though the documents answer",
    "unsupported": "no passage says what the model wrote",
}


@dataclass(frozen=True, slots=True)
class Outcome:
    """An answer's text, its checked sentences, and the fate of the model's words."""

    text: str
    sentences: tuple[Sentence, ...]
    model_text: str | None = None
    notice: Notice | None = None
    quoted: bool = False
    """The quote is the whole answer."""
    below: bool = False
    """The model's words stand below the quote."""


def settle(
    quote: Quote | None, grounded: Grounded, stopped: Runaway | None, *, confident: bool
) -> Outcome:
    """Return what the reader gets.

    Args:
        quote: What the documents say word for word; None where nothing could be quoted.
        grounded: The model's words, checked.
        stopped: Why the model's stream was ended early, if it was.
        confident: The quote answers the question with good probability.

    Returns:
        The model's answer, the quote with the model's words below it, the quote alone, or the
        refusal.
    """
    grounded, notice = _without_contradicted(grounded)
    own = _holding(grounded.sentences)
    words = " ".join(sentence.text for sentence in own)
    refused = is_refusal(grounded.text)
    if quote is None:
        return (
            Outcome(grounded.text, grounded.sentences, words, notice)
            if own and not refused and not stopped
            else _refusal(words)
        )
    if refused or (not own and reads_as_refusal(grounded.text)):
        return (
            quoted_instead(quote, _REASONS["refused"], "")
            if confident or quote.leads
            else _refusal("")
        )
    if stopped or not own:
        return quoted_instead(quote, _REASONS[stopped or "unsupported"], words)
    if quote.leads:
        return replace(_below(quote, own, words), notice=notice)
    return Outcome(grounded.text, grounded.sentences, words, notice)


def quoted_instead(quote: Quote, reason: str, model_text: str | None) -> Outcome:
    """Return the quote as the answer, with the reason."""
    notice = Notice("quoted_instead", f"{reason}; the answer quotes your documents instead")
    return Outcome(quote.text, quote.sentences, model_text, notice, quoted=True)


def is_refusal(text: str) -> bool:
    """Return whether an answer is the refusal, quoted or first without a citation."""
    plain = text.replace("\u2019", "'").strip(" \n\"'*_>")
    return plain.startswith(REFUSAL.rstrip(".")) and ("[" not in plain)


def reads_as_refusal(text: str) -> bool:
    """Return whether a model says in its own words that it was not told the answer."""
    return bool(_REFUSES.search(text.replace("\u2019", "'")))


def supported_share(outcome: Outcome) -> float:
    """Return the supported share of an answer's claims, in [0, 1]; 1 if it claims nothing.

    Retrieval is calibrated on whether passages answer a question; what a model adds that they do
    not say lowers that. Quotes are always supported, so the calibration stands as it is for them,
    and what stands below a quote neither adds to it nor takes from it where it is weak.
    """
    claims = [
        sentence.verdict
        for sentence in outcome.sentences
        if sentence.verdict != "no_claim" and not (outcome.below and sentence.verdict == "weak")
    ]
    return claims.count("supported") / len(claims) if claims else 1.0


def _refusal(model_text: str) -> Outcome:
    return Outcome(REFUSAL, (), model_text)


def _holding(sentences: Sequence[Sentence]) -> tuple[Sentence, ...]:
    return tuple(one for one in sentences if one.verdict in ("supported", "weak") and one.citations)


def _without_contradicted(grounded: Grounded) -> tuple[Grounded, Notice | None]:
    """Return the answer without the sentences that a passage contradicts, and the notice."""
    kept: list[Sentence] = []
    text, at = "", 0
    for one in grounded.sentences:
        before = grounded.text[at : one.answer_start]
        at = one.answer_end
        if one.verdict == "contradicted":
            continue
        text += before if text else before.lstrip()
        kept.append(replace(one, answer_start=len(text), answer_end=len(text) + len(one.text)))
        text += one.text
    gone = len(grounded.sentences) - len(kept)
    if not gone:
        return grounded, None
    said = "a sentence" if gone == 1 else f"{gone} sentences"
    return (
        replace(grounded, text=text + grounded.text[at:], sentences=tuple(kept)),
        Notice("contradicted_removed", f"{said} of the model left out: a passage says otherwise"),
    )


def _below(quote: Quote, own: Sequence[Sentence], words: str) -> Outcome:
    """Return the quote, with the model's sentences below that say more."""
    said = [frozenset(tokenise(without_marks(sentence.text))) for sentence in quote.sentences]
    fresh = [one for one in own if not _repeats(one, said)]
    text, sentences = quote.text, list(quote.sentences)
    for at, one in enumerate(fresh):
        text += "\n\n" if at == 0 else " "
        moved = len(text) - one.answer_start
        sentences.append(
            replace(one, answer_start=one.answer_start + moved, answer_end=one.answer_end + moved)
        )
        text += one.text
    return Outcome(text, tuple(sentences), words, below=True)


def _repeats(one: Sentence, said: Sequence[frozenset[str]]) -> bool:
    tokens = frozenset(tokenise(without_marks(one.text)))
    return any(
        len(tokens & other) >= _SAME * max(1, len(tokens | other)) or tokens <= other
        for other in said
    )
