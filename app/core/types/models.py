"""Define facts about models: size, speed on this host, test findings."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


def bare_name(name: str) -> str:
    """Return a model's own name of `provider:model`, for sentences."""
    return name.partition(":")[2] or name


@dataclass(frozen=True, slots=True)
class ModelFindings:
    """Settings that a model's built-in test found best; kept per model digest."""

    prompts: Literal["compact", "full"]
    evidence: Literal["short", "full"]
    as_good_as_quotes: bool
    """The model's own words were right at least as often as the quoted sentences alone."""
    advice: str
    """One line for people."""
    at: str
    """When it was tested, UTC ISO 8601."""
    report: str = "{}"
    """Every count of the test, as JSON."""


@dataclass(frozen=True, slots=True)
class ModelSpeed:
    """A model's speed on one host, in tokens per second."""

    reading: float
    writing: float | None = None


@dataclass(frozen=True, slots=True)
class ModelProfile:
    """A model as the answering code sees it."""

    name: str = ""
    """`provider:model`, as answers report it."""
    host: str = ""
    """Address of its host, without credentials."""
    digest: str = ""
    """Of the model file, where the host says so; else `name@host`."""
    parameters: float | None = None
    """Number of parameters; None where neither the host nor the name says."""
    hosted: bool = False
    """Runs on a named provider's machines rather than on one of the user's own."""
    findings: ModelFindings | None = None
