"""Define what `documind doctor` reports: a line for each check, with its fix."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

State = Literal["ok", "note", "problem"]


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """The result of one check.

    A note is worth knowing; a problem keeps something from working.
    """

    what: str
    state: State
    detail: str
    cure: str = ""


def ok(what: str, detail: str) -> Diagnosis:
    """Return a finding that needs nothing."""
    return Diagnosis(what, "ok", detail)


def note(what: str, detail: str, cure: str) -> Diagnosis:
    """Return a finding that is worth knowing."""
    return Diagnosis(what, "note", detail, cure)


def problem(what: str, detail: str, cure: str) -> Diagnosis:
    """Return a finding that keeps something from working."""
    return Diagnosis(what, "problem", detail, cure)
