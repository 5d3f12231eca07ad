"""Decide how a model is asked: prompt, amount of evidence, alone or not.

What costs on a slow host is reading the prompt, and what a small model loses itself in is a long
one. So the evidence is bounded by what this host reads in FIRST_TOKEN_TARGET_S, and a model that
was not shown to be as good as the quotes speaks below them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from app.core.types import Evidence, EvidenceKind, Mode, ModelProfile, ModelSpeed, PromptKind, Quote

SMALL_PARAMETERS = 4e9
"""Below it a model gets the compact prompt and speaks below the quotes until its test says better:
evaluation/reports/models.md."""
ASSUMED_TOKENS_S = 100.0
"""Reading speed of a host that was never measured: a model of 1.5 billion parameters on two
cores."""
QUICK_TOKENS_S = 1000.0
"""From this speed on reading is no reason to hand over less."""
MIN_TOKENS, PLAIN_TOKENS = 150, 350
"""Least evidence, and most for a plain question on a host that is not quick, in tokens."""
_WIDE_MODES = 4
"""Modes other than `general` need more than the answer to one question: so many times the
budget."""


@dataclass(frozen=True, slots=True)
class Manner:
    """The way one model is asked one question."""

    prompts: Literal["compact", "full"]
    evidence: Literal["short", "full"]
    leads: bool
    """The quote leads and the model's words stand below it."""
    budget_tokens: int
    """Evidence to hand over at most."""
    reads_tokens_s: float | None
    """Measured reading speed, tokens a second; None before the first call."""
    why: str
    """The reason, for people."""


@dataclass(frozen=True, slots=True)
class MannerOptions:
    """The configuration of it."""

    prompts: PromptKind = "auto"
    evidence: EvidenceKind = "auto"
    first_token_target_s: float = 3.0
    """Seconds that a model may read before its first word."""


def manner(
    profile: ModelProfile,
    speed: ModelSpeed | None,
    options: MannerOptions,
    *,
    mode: Mode = "general",
    asked: EvidenceKind | None = None,
    own_prompt: bool = False,
) -> Manner:
    """Return how to ask a model.

    Args:
        profile: What is known of it.
        speed: Its measured speed on this host, if any.
        options: The configuration.
        mode: What the answer is for; all but `general` get more evidence.
        asked: How much evidence the question asks for; overrides the configuration.
        own_prompt: The user wrote the full prompt, which is taken unless the configuration names
            the other.
    """
    findings = profile.findings
    small = not profile.hosted and (
        profile.parameters is None or profile.parameters < SMALL_PARAMETERS
    )
    prompts = options.prompts
    if prompts == "auto":
        prompts = findings.prompts if findings else "compact" if small else "full"
        prompts = "full" if own_prompt else prompts
    quick = profile.hosted or (speed is not None and speed.reading > QUICK_TOKENS_S)
    evidence = options.evidence if asked in (None, "auto") else asked
    if evidence == "auto":
        evidence = findings.evidence if findings else "full" if quick and not small else "short"
    if mode != "general":
        evidence = "full"
    leads = not findings.as_good_as_quotes if findings else small
    budget, why = _budget(
        speed,
        options.first_token_target_s,
        quick=quick,
        wide=mode != "general",
        full=evidence == "full",
    )
    because = "its test" if findings else "its size"
    return Manner(
        prompts,
        evidence,
        leads,
        budget,
        speed.reading if speed else None,
        f"{why}; prompt and evidence by {because}",
    )


def worth_asking(
    evidence: Sequence[Evidence], quoted: Quote | None, how: Manner, *, cutoff_decides: bool = False
) -> bool:
    """Return whether to ask a model.

    Not without passages, and not where the engine decides and finds no answer; it does not decide
    where the user's own cutoff does.
    """
    if not evidence:
        return False
    fallback = any(item.hit.fallback for item in evidence)
    return quoted is not None or fallback or how.evidence == "full" or cutoff_decides


def _budget(
    speed: ModelSpeed | None, target_s: float, *, quick: bool, wide: bool, full: bool
) -> tuple[int, str]:
    """Return the most evidence in tokens, and why."""
    if quick:
        return 1_000_000, "this host reads quickly, the window is the bound"
    reads = speed.reading if speed else ASSUMED_TOKENS_S
    budget = int(reads * target_s)
    if wide or full:
        budget *= _WIDE_MODES
    else:
        budget = min(budget, PLAIN_TOKENS)
    known = "measured" if speed else "assumed"
    why = (
        f"this host reads {reads:.0f} tokens a second ({known}), the first word is due in"
        f" {target_s:g} s"
    )
    return max(MIN_TOKENS, budget), why
