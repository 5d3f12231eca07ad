"""Close a turn: the answer with its confidence, or an abstention that says why."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from app.answer.outcome import Outcome, supported_share
from app.answer.turn import Turn
from app.core.types import Answer, Notice
from app.generation.injection import ADDRESSED_TO_A_MODEL, inspect
from app.generation.prompts import REFUSAL

NO_WRITER = "none"
"""Generator of an answer that nothing had to write."""


def closed(turn: Turn, outcome: Outcome, generator: str) -> Answer:
    """Return the answer; the refusal is an abstention."""
    turn.note(*flagged_notice(turn, outcome))
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
        confidence=answer.confidence * supported_share(outcome),
        model_text=outcome.model_text,
    )


def missing_notice(missing: Sequence[str]) -> tuple[Notice, ...]:
    """Return the notice `subject_missing` if no passage names the question's subject."""
    if not missing:
        return ()
    names = ", ".join(repr(name) for name in missing)
    return (Notice("subject_missing", f"no passage that was found names {names}"),)


def flagged_notice(turn: Turn, outcome: Outcome) -> tuple[Notice, ...]:
    """Return the notice `injection_flagged`: instructions in a passage that was used.

    A passage is used when it is cited or was handed to a model. What stands elsewhere in its
    document is told by the document's flags.
    """
    cited = {one.n for sentence in outcome.sentences for one in sentence.citations}
    used = turn.calls.handed | {item.n: item for item in turn.evidence if item.n in cited}
    passages = (item.hit.passage for _, item in sorted(used.items()))
    titles = dict.fromkeys(
        repr(passage.document.title)
        for passage in passages
        if not ADDRESSED_TO_A_MODEL.isdisjoint(passage.document.flags)
        and not ADDRESSED_TO_A_MODEL.isdisjoint(inspect(passage.chunk.text))
    )
    if not titles:
        return ()
    said = f"text that looks like instructions to a model was found in {', '.join(titles)}"
    return (Notice("injection_flagged", said),)


def hosted_notice(turn: Turn) -> tuple[Notice, ...]:
    """Return the notice that words left the machine, when a hosted model was asked."""
    host = turn.choice.model or turn.choice.helper
    if not turn.choice.hosted or host is None or not turn.trace.llm_calls:
        return ()
    said = (
        "the question, and passages of your documents where they were read, were sent to"
        f" {host.name}"
    )
    return (Notice("hosted_provider", f"{said}, which is not on this machine"),)
