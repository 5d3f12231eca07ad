"""Health, diagnostics, models and jobs."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from typing import Annotated, Literal, Self

from pydantic import Field, StringConstraints

from app.answer.model_test import compared
from app.api.schemas.base import Reply, Request
from app.api.schemas.documents import CollectionStats, Embedding
from app.core.types import (
    DefaultLibrary,
    Fingerprint,
    IngestOutcome,
    Job,
    JobFile,
    JobState,
    LibraryName,
    Message,
    ModelFindings,
)


class Live(Reply):
    """The process is up."""

    status: Literal["ok"] = "ok"


class Ready(Reply):
    """Readiness: requests are answered now, or what is missing."""

    status: Literal["ready", "starting", "failed"]
    missing: list[str] = Field(description="missing parts; empty when ready")
    detail: str = Field("", description="why the start failed, or which engine or files are gone")
    degraded: list[str] = Field(
        [],
        description="what is not as it should be though requests are answered: a database that can"
        " only be read, a node or an object store that does not answer, words or vectors that are"
        " filled again",
    )


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
    settings: bool = Field(
        description="models, hosts and keys can be changed over HTTP (ALLOW_SETTINGS)"
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


ModelName = Annotated[
    str, StringConstraints(min_length=1, max_length=200, pattern=r"^[A-Za-z0-9][A-Za-z0-9._/:-]*$")
]


class ModelOnDisk(Reply):
    """A model on Ollama's disk."""

    name: str
    size_bytes: int | None
    chats: bool = Field(description="writes answers; false: it embeds")


class PromptCounts(Reply):
    """Outcomes of the built-in questions with one prompt; median times in seconds."""

    asked: int
    right: int = Field(
        description="right by the model's own words; a question without an answer is refused"
    )
    cited: int = Field(
        description="some of the model's words are supported and carry a mark that holds"
    )
    own_marks: int = Field(description="the model wrote such a mark itself")
    refused_rightly: int
    refused_wrongly: int
    loops: int
    leaks: int
    prompt_tokens: float | None
    first_word_s: float | None
    whole_s: float


class ModelTest(Reply):
    """The findings of one model's test."""

    model: str = Field(description="provider:model")
    prompts: Literal["compact", "full"] = Field(description="prompt to use from now on")
    evidence: Literal["short", "full"] = Field(description="amount of evidence to use from now on")
    as_good_as_quotes: bool = Field(
        description="its own words were right at least as often as the quotes alone; it speaks"
        " alone"
    )
    advice: str
    at: str = Field(description="when it was tested, UTC ISO 8601")
    questions: int
    quotes_right: int = Field(
        description="questions that the quotes alone answer, or rightly refuse"
    )
    counts: dict[str, PromptCounts] = Field(description="by prompt: compact, full")
    reading_tokens_s: float | None
    writing_tokens_s: float | None
    budget_tokens: int = Field(description="most evidence it gets")
    budget_s: float | None = Field(description="seconds this host needs to read it")

    @classmethod
    def of(cls, model: str, found: ModelFindings) -> Self:
        report = json.loads(found.report)
        counts = report.pop("prompts")
        return cls.model_validate({**report, **asdict(found), "model": model, "counts": counts})


class ModelTests(Reply):
    """All tested models, newest first."""

    tests: list[ModelTest]
    advice: str = Field(
        description="one line that compares them with each other and the quotes; empty without a"
        " test"
    )

    @classmethod
    def of(cls, found: Sequence[tuple[str, ModelFindings]]) -> Self:
        return cls(tests=[ModelTest.of(model, one) for model, one in found], advice=compared(found))


class ModelList(Reply):
    """Models of the Ollama host, and what is in use."""

    installed: list[ModelOnDisk]
    loaded: list[str] = Field(description="in memory now")
    in_use: dict[str, str] = Field(description="answers, helper, embeds -> provider:model")
    decided_by: Literal["environment", "choice", "server"] = Field(
        description="who decided which model answers; only without `environment` can one be chosen"
    )
    why: str = Field(
        description="why this model answers; without one, why none does, and what to do"
    )
    fit: bool | None = Field(
        description="whether the answering and the embedding model stay in memory together; null:"
        " unknown"
    )
    tests: list[ModelTest] = Field(description="results of model tests, newest first")


class PullRequest(Request):
    """Which model."""

    model: ModelName


class ChoiceRequest(Request):
    """Which model answers from now on."""

    model: ModelName | None = Field(description="null: the server decides")


class HostReply(Reply):
    """An OpenAI-compatible host as it was chosen; its key is not shown."""

    base_url: str
    model: str
    has_key: bool
    overruled_by: str = Field(
        description="the setting of the environment that decides instead; empty: none"
    )


class HostRequest(Request):
    """An OpenAI-compatible host whose model answers from now on."""

    base_url: Annotated[str, Field(max_length=500, examples=["https://api.example.com/v1"])]
    model: ModelName
    api_key: str | None = Field(
        None, repr=False, description="null: that of before, if the address is the same"
    )


class PromptReply(Reply):
    """What is sent to a model, with {question} and {passages} for what varies."""

    full: list[Message]
    compact: list[Message] = Field(description="for small or slow models (MODEL_PROMPTS)")
    own: list[str] = Field(description="files of PROMPTS_DIR that took the place of packaged ones")


class TestRequest(Request):
    """Which model to test."""

    __test__ = False  # no test case

    model: ModelName | None = Field(default=None, description="null: the configured model")


class JobReply(Reply):
    """A piece of long work; it survives a restart of the server."""

    id: str
    kind: str
    library: str | None = Field(description="the library it works on; null for several or none")
    state: JobState
    done: int
    total: int | None
    unit: str
    eta_s: float | None = Field(description="seconds left, null while unknown")
    errors: list[str]
    files: list[JobFile]
    result: dict[str, object] | None = Field(description="result of the job, by kind")
    created_at: str
    updated_at: str

    @classmethod
    def of(cls, job: Job) -> Self:
        library = str(job.payload["library"]) if "library" in job.payload else None
        shared = cls.model_fields.keys() - {"library"}
        return cls(library=library, **{name: getattr(job, name) for name in shared})


class JobList(Reply):
    """Jobs, newest first."""

    jobs: list[JobReply]


class IngestResponse(Reply):
    """Outcomes in upload order; empty while the job is still queued (202)."""

    job_id: str
    documents: list[IngestOutcome]
