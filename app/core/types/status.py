"""Define the states of hosts and services."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from app.core.types.retrieval import Notice


@dataclass(frozen=True, slots=True)
class HostStatus:
    """A host that models run on, and whether it answers."""

    name: str
    url: str
    reachable: bool
    detail: str = ""


@dataclass(frozen=True, slots=True)
class EmbeddingState:
    """A library's embedder, whether it can be reached, and its replacement."""

    embedder: str
    """`provider:model`; of an empty library, the one that it would get now."""
    reachable: bool
    detail: str = ""
    """Why it cannot be reached, and the cure; empty when it can."""
    notices: tuple[Notice, ...] = ()
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
class ModelReport:
    """Models of the host that runs here: installed, in memory, in use."""

    installed: tuple[tuple[str, int | None], ...] = ()
    """Name and bytes on disk."""
    chat: tuple[str, ...] = ()
    """Names of the installed models that write; the others embed."""
    decided_by: Literal["environment", "choice", "server"] = "server"
    """Who decided which model answers."""
    why: str = ""
    """Why this model answers; without one, why none does, and the cure."""
    loaded: tuple[str, ...] = ()
    in_use: Mapping[str, str] = field(default_factory=dict)
    """Purpose (`answers`, `helper`, `embeds`) -> `provider:model`."""
    fit: bool | None = None
    """Whether the answering and the embedding model stay in memory together; None when that
    cannot be told."""
