"""States of hosts and services, facts about models, jobs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from app.core.answers import Notice
from app.core.serialization import INTERNAL, PUBLIC


@dataclass(frozen=True, slots=True)
class HostStatus:
    """A host that models run on."""

    __pydantic_config__ = PUBLIC
    name: str
    url: str
    reachable: bool
    detail: str = ""
    busy: bool = False
    """It runs and did not answer in time; `reachable` until that lasts half a minute."""


@dataclass(frozen=True, slots=True)
class EmbeddingState:
    """The embedder of a library."""

    __pydantic_config__ = PUBLIC
    embedder: str
    """`provider:model`; for an empty library, the one it would use now."""
    reachable: bool
    detail: str = ""
    """Why it is unreachable, and the fix."""
    notices: tuple[Notice, ...] = field(default=(), metadata=INTERNAL)
    """What every search of the library says of its vectors."""


@dataclass(frozen=True, slots=True)
class ServiceStatus:
    """State of a running server's parts: counts and change numbers, no model call."""

    hosts: tuple[HostStatus, ...] = ()
    watermarks: Mapping[str, int] = field(default_factory=dict)
    """`library:projection` -> last change applied; `catalog` -> newest change there is."""
    builds: Mapping[str, str] = field(default_factory=dict)
    """Library -> its live build, or what is happening to it (`rebuilding 40 %`)."""
    embedding: Mapping[str, EmbeddingState] = field(default_factory=dict)
    """Library -> what embeds it."""
    acting: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    """Library -> thresholds and weights that decide there."""
    inert: tuple[str, ...] = ()
    """Settings that have no effect as things are set, and what acts instead."""
    answers_why: str = ""
    """Why this model answers; without one, why none does, and the cure."""


@dataclass(frozen=True, slots=True)
class ModelOnDisk:
    """A model on Ollama's disk."""

    __pydantic_config__ = PUBLIC
    name: str
    size_bytes: int | None
    chats: bool
    """Writes answers; false: it embeds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelReport:
    """Models of the Ollama host, and what is in use."""

    __pydantic_config__ = PUBLIC
    installed: tuple[ModelOnDisk, ...]
    loaded: tuple[str, ...]
    """In memory now."""
    in_use: Mapping[str, str]
    """`answers`, `helper`, `embeds` -> `provider:model`."""
    decided_by: Literal["environment", "choice", "server"]
    """Who decided which model answers; only without `environment` can one be chosen."""
    why: str
    """Why this model answers; without one, why none does, and what to do."""
    fit: bool | None
    """Whether the answering and the embedding model stay in memory together; null: unknown."""


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


JobState = Literal["queued", "running", "paused", "done", "failed", "cancelled"]


@dataclass(frozen=True, slots=True)
class JobFile:
    """Progress of one file within a job; `progress` in [0, 1]."""

    filename: str
    state: Literal["queued", "running", "done", "failed"]
    progress: float


@dataclass(frozen=True, slots=True)
class Job:
    """A piece of long work; it survives a restart of the server."""

    __pydantic_config__ = PUBLIC
    id: str
    kind: str
    state: JobState
    done: int
    total: int | None
    unit: str
    eta_s: float | None
    """Seconds left, null while unknown."""
    errors: tuple[str, ...]
    files: tuple[JobFile, ...]
    payload: Mapping[str, object] = field(metadata=INTERNAL)
    """JSON values."""
    result: Mapping[str, object] | None
    """Result of the job, by kind."""
    created_at: str
    updated_at: str
    library: str | None = field(default=None, init=False)
    """The library it works on; null for several or none."""

    def __post_init__(self) -> None:
        named = self.payload.get("library")
        object.__setattr__(self, "library", None if named is None else str(named))


StopRequest = Literal["pause", "cancel"]
