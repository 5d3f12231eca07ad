"""Health and diagnostics."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from app.api.schemas.base import Reply
from app.api.schemas.documents import CollectionStats, Embedding
from app.core.types import DefaultLibrary, Fingerprint, LibraryName


class Live(Reply):
    """The process is up."""

    status: Literal["ok"] = "ok"


class Ready(Reply):
    """Readiness: requests are answered now, or what is missing."""

    status: Literal["ready", "starting", "failed"]
    missing: list[str] = Field(description="missing parts; empty when ready")
    detail: str = Field("", description="why the start failed, or which engine or files are gone")


class ModelHost(Reply):
    """A host that models run on."""

    name: str
    url: str
    reachable: bool
    detail: str = ""


class Health(Reply):
    """Generator, embedder, and whether their hosts respond."""

    status: Literal["ready", "starting", "failed"]
    version: str
    embedder: str | None = Field(description="of the default library")
    generator: str | None
    generator_why: str = Field(
        "", description="why this one answers; without a model, why none does, and what to do"
    )
    embedding: dict[LibraryName, Embedding] = Field(
        description="embedder of each library, and whether it responds"
    )
    hosts: list[ModelHost]
    libraries: list[CollectionStats] | None = Field(
        description="null if an API key is set and the request has none"
    )


class LibraryDiagnostics(Reply):
    """One library in numbers."""

    library: LibraryName
    documents: int
    chunks: int
    embedded: int
    bytes: int
    fingerprint: Fingerprint | None


class Diagnostics(Reply):
    """Everything that support asks a user for."""

    version: str
    git_sha: str
    python: str
    platform: str
    uptime_s: float
    app_env: str
    embedder: str
    generator: str
    default_library: DefaultLibrary
    libraries: list[LibraryDiagnostics]
    retrieval: dict[str, float | int | str | bool] = Field(
        description="configured thresholds and weights"
    )
    acting: dict[str, dict[str, float]] = Field(
        description="by library, the constants that decide: of the fusion and the embedder's"
        " calibration"
    )
    inert: list[str] = Field(description="changed settings without effect, and what acts instead")
    chunking: dict[str, int] = Field(description="characters")
    disk: dict[str, int] = Field(
        description="bytes on disk by store: catalog, chroma, tantivy, exact, originals, models,"
        " ..."
    )
    limits: dict[str, int] = Field(description="bytes, threads, streams, requests")
    watermarks: dict[str, int] = Field(
        description="last change each projection has applied; `changes` is the newest there is"
    )
    lags: dict[str, int] = Field(description="changes each projection is behind; 10,000 means more")
    active_streams: int
    jobs: dict[str, int] = Field(description="jobs by state")
