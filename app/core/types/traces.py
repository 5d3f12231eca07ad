"""Define the trace of an answer."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class StageTrace:
    """A step of a question: duration, candidates in and out.

    A full trace also has the outcome of each candidate.
    """

    name: str
    ms: float
    n_in: int
    n_out: int
    items: tuple[TraceItem, ...] = ()


@dataclass(frozen=True, slots=True)
class TraceItem:
    """One candidate after a step."""

    chunk: int
    rank: int
    score: float
    kept: bool
    reason: str = ""


@dataclass(frozen=True, slots=True)
class ContextTrace:
    """Use of the context window in tokens.

    `used`, `trimmed` and `dropped` list evidence numbers.
    """

    budget: int
    planned: int
    seen: int | None
    used: tuple[int, ...] = ()
    trimmed: tuple[int, ...] = ()
    dropped: tuple[int, ...] = ()
    prompts: str = "full"
    """How the model was told what to do: `compact` or `full`."""
    evidence: str = "full"
    """What it was handed: `short` (sentences) or `full` (whole passages)."""
    why: str = ""
    """Why so much was handed over and not more."""


@dataclass(frozen=True, slots=True)
class Figures:
    """Figures of one sentence that the other side does not have.

    `document_text[start:end]` in the revision of evidence `n`.
    """

    n: int
    start: int
    end: int
    values: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Disagreement:
    """A paper's and an encyclopedia's sentence with different figures for one thing."""

    paper: Figures
    article: Figures


@dataclass(frozen=True, slots=True)
class TraceReport:
    """Everything recorded while answering."""

    stages: tuple[StageTrace, ...] = ()
    llm_calls: int = 0
    context: ContextTrace | None = None
    disagreements: tuple[Disagreement, ...] = ()
    """Found where a question spans both libraries."""
