"""How an answer came to be."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class StageTrace:
    """One step of a question: its name, duration, how many candidates went in and came out, and (full trace) each one's fate."""

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
    """How the context window was used, in tokens; `used`, `trimmed`, `dropped` list evidence numbers."""

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
    """The figures of one sentence that the other side does not have: `document_text[start:end]` in the revision of evidence `n`."""

    n: int
    start: int
    end: int
    values: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Disagreement:
    """A sentence of a paper and one of the encyclopedia that give different figures for the same thing."""

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
