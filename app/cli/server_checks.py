"""Check, for `documind doctor`, the model host and the server."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from itertools import takewhile
from typing import TYPE_CHECKING, cast

from app.cli.connection import base_url, connect
from app.cli.findings import Diagnosis, note, ok, problem
from app.cli.models import answering
from app.cli.ollama_start import missing
from app.cli.output import size
from app.client import DocuMindClient, Json
from app.core.errors import DocuMindError, Locked, ProviderError, Unauthorized
from app.settings import Settings

if TYPE_CHECKING:
    from app.providers.ollama import OllamaHost
    from app.providers.ollama_listing import InstalledModel

_MISMATCH = "fingerprint_mismatch"
_JOBS = 100
"""Of the latest, that are looked at for what became of a library's vectors."""
MEMORY_SHARE = 0.8
"""Models that take more of the memory than this leave too little for the index and the rest of
the machine."""


def ollama(settings: Settings) -> Iterator[Diagnosis]:
    """Ask the model host itself, so that it is known also when no server can start."""
    from app.bootstrap.hosts import (  # noqa: PLC0415  # most of a second to import
        needs_ollama,
        ollama_host,
        wanted_models,
    )

    if not needs_ollama(settings):
        yield ok("Ollama", "not needed by these settings")
        return
    try:
        host = ollama_host(settings)
    except DocuMindError as error:
        yield problem("Ollama", error.message, "correct OLLAMA_BASE_URL")
        return
    try:
        installed = host.models(timeout_s=3.0)
        release = host.version()
        vectors = list(_vectors(settings, host, installed))
        wanted = wanted_models(settings, host)
    except ProviderError as error:
        required = "ollama" in {settings.llm_provider, settings.embedding_provider}
        cure = "start it: documind up, or: ollama serve"
        if required:
            yield problem("Ollama", error.message, cure)
        else:
            yield note(
                "Ollama",
                f"{error.message}; without it answers are quotes",
                f"only if you want a model to write: {cure}",
            )
        return
    finally:
        host.http.close()
    yield ok("Ollama", f"version {release} answers at {host.shown_url}")
    yield from vectors
    for model in missing(wanted, (row.name for row in installed)):
        yield note(
            "Ollama",
            f"{model} is not installed",
            f"run: ollama pull {model} (or: documind up --pull)",
        )
    used = [row for row in installed if not missing([row.name], wanted)]
    need, have = (
        sum(row.size_bytes for row in used),
        os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
    )
    if host.local and need > MEMORY_SHARE * have:
        yield note(
            "memory",
            f"{' and '.join(row.name for row in used)} are {size(need)} and need that in memory,"
            f" of {size(have)}",
            "choose a smaller answering model, or EMBEDDING_PROVIDER=minilm for a new library",
        )
    elif used:
        yield ok("memory", f"{size(need)} of models, {size(have)} in this machine")


def _vectors(
    settings: Settings, host: OllamaHost, installed: Sequence[InstalledModel]
) -> Iterator[Diagnosis]:
    """Compare Ollama's embedding model with the embedded one, if both can be used."""
    from app.bootstrap.hosts import embedders_compared  # noqa: PLC0415  # most of a second to import

    model = settings.embedding_model
    if settings.embedding_provider not in {"auto", "ollama"} or missing(
        [model], (row.name for row in installed)
    ):
        return
    try:
        found = embedders_compared(settings, host)
    except DocuMindError as error:
        yield note(
            "embedding",
            error.message,
            "choose another EMBEDDING_MODEL, or EMBEDDING_PROVIDER=minilm for a new library",
        )
        return
    if found.same and settings.embedding_provider == "auto":
        why = (
            f"Ollama's {model} is the embedded model (cosines {found.lowest:.3f} and more), so"
            " the embedded one stays"
        )
        yield ok("embedding", f"{why}: {found.speeds}")
    else:
        yield ok("embedding", f"{model}: {found.speeds}")


def server(settings: Settings) -> Iterator[Diagnosis]:
    """Check the running server, or one opened for this command.

    Opening it probes every store.
    """
    try:
        with connect(settings) as client:
            yield from _ask(client)
    except Unauthorized:
        yield problem(
            "server",
            "it asks for another key than this shell has",
            "set API_KEY as the server has it",
        )
    except Locked as error:
        yield problem("server", error.message, "wait for that command, then run: documind doctor")
    except DocuMindError as error:
        yield problem(
            "server",
            error.message,
            f"start it and read what it prints: documind serve ({base_url(settings)})",
        )


def _ask(client: DocuMindClient) -> Iterator[Diagnosis]:
    health, diagnostics = client.health(), client.diagnostics()
    yield ok(
        "server",
        f"version {health['version']}, {health['status']}; every store was probed when it opened",
    )
    models = client.get("/api/v1/models")
    yield ok("answers", answering(models))
    if models["fit"] is False:
        yield note(
            "memory",
            "the answering and the embedding model push each other out of Ollama's memory, so"
            " every question loads both",
            "choose a smaller answering model or LLM_NUM_CTX, or EMBEDDING_PROVIDER=minilm for a"
            " new library",
        )
    if advice := client.get("/api/v1/models/tests")["advice"]:
        yield ok("models tested", str(advice))
    elif str(health["generator"]) != "extractive":
        yield note(
            "models tested",
            "none, so how the model is asked goes by its size",
            "run: documind models test",
        )
    jobs = cast("Sequence[Json]", client.get("/api/v1/jobs", {"limit": _JOBS})["jobs"])
    for row in cast("Sequence[Json]", client.libraries()["libraries"]):
        yield from library(row, [job for job in jobs if job["library"] == row["library"]])
    yield from projections(cast("Mapping[str, int]", diagnostics["lags"]))
    failed = cast("Mapping[str, int]", diagnostics["jobs"]).get("failed", 0)
    if failed:
        yield note(
            "jobs",
            f"{failed} of the last jobs failed",
            "documind status, or the page under Status, says why",
        )


def library(row: Json, jobs: Sequence[Json]) -> Iterator[Diagnosis]:
    """Check a library, a row of `/api/v1/libraries`.

    `jobs` are its own, the latest first.
    """
    name, behind = str(row["library"]), cast("int", row["chunks"]) - cast("int", row["embedded"])
    detail = f"{row['documents']} documents, {row['chunks']} chunks"
    embedding = cast("Json", row["embedding"])
    made_by = f"{embedding['embedder']} embeds it"
    if not embedding["reachable"] and row["chunks"]:
        trouble, _, cure = str(embedding["detail"]).partition("; ")
        yield problem(
            name, f"{made_by}, and {trouble}: questions are searched by their words alone", cure
        )
    for notice in cast("Sequence[Json]", row["notices"]):
        message, _, cure = str(notice["message"]).partition("run: ")
        yield note(name, message.rstrip(" ;,"), f"run: {cure}" if cure else "documind status")
    if row["build"] != "ready":
        yield note(
            name,
            f"{detail}; its vector index is being rebuilt ({row['build']})",
            "wait: documind status",
        )
    if behind:
        since = takewhile(lambda job: job["kind"] != "reembed", jobs)
        said = next(
            (
                error
                for job in since
                for error in cast("Sequence[str]", job["errors"])
                if _MISMATCH in error
            ),
            "",
        )
        cure = said.partition(": ")[2] or "wait for the backfill: documind status"
        yield note(name, f"{detail}, {behind} without a vector yet", cure)
    else:
        yield ok(name, f"{detail}; {made_by}")


def projections(lags: Mapping[str, int]) -> Iterator[Diagnosis]:
    """Look for indexes that are behind the catalog.

    Args:
        lags: Changes that each has yet to apply, by `library/projection`.
    """
    behind = {name: count for name, count in sorted(lags.items()) if count}
    for name, count in behind.items():
        cure = "it does so by itself, ten seconds after the last upload; if not: documind rebuild"
        yield note("index", f"{name} has {count} changes to apply", cure)
    if not behind:
        yield ok("index", "every projection is level with the catalog")
