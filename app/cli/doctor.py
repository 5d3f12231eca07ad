"""`documind doctor`: everything a stuck user needs to know, with the cure."""

from __future__ import annotations

import os
import platform
import resource
import shutil
import sqlite3
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from itertools import takewhile
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, get_args

import typer

from app.cli.connection import base_url, connect
from app.cli.models import answering
from app.cli.output import emit, out, say, size
from app.cli.serve import check_port
from app.cli.up import UpState, missing
from app.client import DocuMindClient, Json
from app.core.errors import DocuMindError, Locked, ProviderError, Unauthorized
from app.core.types import LibraryName
from app.models.options import PRESETS
from app.settings import Settings, check_start, unknown_names
from app.storage.files.lock import owner

if TYPE_CHECKING:
    from app.models.ollama import InstalledModel, OllamaHost

State = Literal["ok", "note", "problem"]


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """The result of one check. A note is worth knowing; a problem keeps something from working."""

    what: str
    state: State
    detail: str
    cure: str = ""


def ok(what: str, detail: str) -> Diagnosis:
    return Diagnosis(what, "ok", detail)


def note(what: str, detail: str, cure: str) -> Diagnosis:
    return Diagnosis(what, "note", detail, cure)


def problem(what: str, detail: str, cure: str) -> Diagnosis:
    return Diagnosis(what, "problem", detail, cure)


MIN_PYTHON = (3, 11)
MIN_FREE_BYTES = 2 * 1024**3
MIN_OPEN_FILES = 1024
"""128 threads with a connection each, tantivy's segments, Chroma's files and SQLite's need a few
hundred together."""
EARLIEST = 1_735_689_600
"""2025-01-01 UTC: a clock before that has lost its battery."""
CLOCK_SLACK_S = 3600.0
PACKAGES = ("chromadb", "tantivy", "onnxruntime", "fastapi", "sqlalchemy")
TRACES = "opentelemetry.exporter.otlp.proto.http"
EXTRAS = (
    (
        "bulk",
        ("pyarrow", "libzim", "datasets"),
        "Parquet files, ZIM archives and data sets of the hub",
    ),
    ("large", ("faiss",), "VECTOR_STORE=faiss, for millions of vectors"),
    ("otel", (TRACES,), "traces by OpenTelemetry"),
    (
        "shared",
        ("psycopg", "qdrant_client", "obstore"),
        "catalog in PostgreSQL, search in Qdrant, originals in an object store",
    ),
)
NETWORK_FILE_SYSTEMS = frozenset(
    {"nfs", "nfs4", "cifs", "smb3", "smbfs", "9p", "fuse.sshfs", "afs", "ceph", "glusterfs"}
)
PAGE = Path(__file__).parents[1] / "api" / "static" / "page" / "index.html"


def machine() -> Iterator[Diagnosis]:
    if sys.version_info >= MIN_PYTHON:
        yield ok("Python", f"{platform.python_version()} on {platform.platform(terse=True)}")
    else:
        yield problem("Python", platform.python_version(), "use Python 3.11 or newer")
    now, shown = time.time(), _minute(time.time())
    yield problem("clock", shown, _SET_DATE) if now < EARLIEST else ok("clock", shown)
    files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if files != resource.RLIM_INFINITY and files < MIN_OPEN_FILES:
        yield note(
            "open files",
            f"this shell allows {files}",
            f"run before starting: ulimit -n {4 * MIN_OPEN_FILES}",
        )
    else:
        yield ok("open files", "no limit" if files == resource.RLIM_INFINITY else f"up to {files}")


def _minute(seconds: float) -> str:
    return time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime(seconds))


_SET_DATE = "set this machine's date"


def packages() -> Iterator[Diagnosis]:
    for package in PACKAGES:
        try:
            yield ok(package, version(package))
        except PackageNotFoundError:
            yield problem(package, "not installed", "run: make setup")
    yield ok("SQLite", sqlite3.sqlite_version)
    for extra, modules, purpose in EXTRAS:
        missing = [module for module in modules if not _installed(module)]
        if missing:
            yield note(
                f"extra {extra}",
                f"without {', '.join(missing)}: no {purpose}",
                "only if you need it: docs/operations.md",
            )
        else:
            yield ok(f"extra {extra}", purpose)
    if PAGE.is_file():
        yield ok("page", "built")
    else:
        yield note(
            "page",
            "not built; everything works from the command line and over HTTP",
            "with Node 20 installed, run: make page",
        )


def _installed(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:  # a package above it
        return False


def configuration(settings: Settings) -> Iterator[Diagnosis]:
    """Look at names in the environment, who may connect, and keys of hosted models."""
    for name in unknown_names():
        yield note(name, "looks like a setting but is none", "see docs/configuration.md")
    try:
        check_start(settings)
    except DocuMindError as error:
        yield problem("access", error.message, "set API_KEY")
    else:
        held_by = owner(settings.data_dir)
        where = (held_by and held_by.url) or f"{settings.api_host}:{settings.api_port}"
        asks = "asks for API_KEY" if settings.api_key else "no API_KEY"
        yield ok("access", f"listens on {where}, {asks}")
    if settings.llm_provider in PRESETS and settings.llm_provider != "openai_compatible":
        names = ("HOSTED_KEY", "HOSTED_MODEL")
        if unset := " and ".join(name for name in names if not getattr(settings, name.lower())):
            yield problem(
                "LLM_PROVIDER", f"{settings.llm_provider} without {unset}", f"set {unset}"
            )
    if settings.otel_exporter_otlp_endpoint and not _installed(TRACES):
        yield note(
            "traces",
            "OTEL_EXPORTER_OTLP_ENDPOINT is set without the extra",
            "docs/operations.md, Watch",
        )


CURES = {
    "DATABASE_URL": "start PostgreSQL, or correct DATABASE_URL",
    "SEARCH_URL": "start Qdrant, or correct SEARCH_URL and SEARCH_API_KEY",
    "SEARCH_REPLICAS": "start the nodes that are away and wait a minute; if it stays, run:"
    " documind rebuild, which makes collections as the settings say while servers go on",
    "epoch": "start a server, or wait a minute where servers run: ids are compared and put right",
    "ORIGINALS_URL": "start the object store, make its bucket, or correct ORIGINALS_URL,"
    " AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY",
}
"""What to do about an engine that does not answer, by the setting that names it."""


def engines(settings: Settings) -> Iterator[Diagnosis]:
    """Ask the engines that settings name, if any: address, version, state."""
    # SQL for this check only
    from app.storage.opening import engine_states  # noqa: PLC0415

    try:
        options = settings.index()
    except DocuMindError as error:
        yield problem("engines", error.message, "set DATABASE_URL and SEARCH_URL, or neither")
        return
    for engine in engine_states(options):
        if engine.answers:
            yield ok(engine.name, engine.detail)
        else:
            yield problem(
                engine.name,
                engine.detail,
                f"{CURES[engine.setting]}: docs/operations.md, Several machines",
            )


def directory(settings: Settings) -> Iterator[Diagnosis]:
    """Check the data directory: writable, space, lock, clock."""
    path = settings.data_dir.resolve()
    there = path if path.exists() else next(parent for parent in path.parents if parent.exists())
    if trouble := _write_trouble(there):
        yield problem(
            "data directory",
            f"{str(there)!r} cannot be written: {trouble}",
            "change its owner, or set DATA_DIR",
        )
        return
    free = shutil.disk_usage(there).free
    if free < MIN_FREE_BYTES:
        yield problem(
            "disk", f"{size(free)} free", "free some space, or set DATA_DIR to a larger disk"
        )
    else:
        yield ok("disk", f"{size(free)} free")
    if (kind := file_system(there)) in NETWORK_FILE_SYSTEMS:
        yield problem(
            "file system",
            f"{str(there)!r} is on {kind}: locks and SQLite are not safe there",
            "set DATA_DIR to a disk of this machine",
        )
    held_by = owner(settings.data_dir)
    holder = f"held by process {held_by.pid} {held_by.url}" if held_by else "free"
    yield ok("data directory", f"{str(path)!r}, {holder}")
    newest = max((file.stat().st_mtime for file in path.glob("catalog*")), default=0.0)
    if newest > time.time() + CLOCK_SLACK_S:
        ahead = f"the catalog was written at {_minute(newest)}, which is yet to come"
        yield note("clock", ahead, _SET_DATE)
    if held_by is None:
        try:
            check_port(settings)
            yield ok("port", f"{settings.api_port} is free")
        except DocuMindError as error:
            yield problem("port", error.message, "choose another one: API_PORT")
    log = UpState(settings.data_dir).log("server")
    if log.exists():
        yield ok("log", f"of `documind up`: {log}")


def _write_trouble(folder: Path) -> str:
    """Return why a write to a folder fails, permissions or other; empty if it does not."""
    try:
        with tempfile.TemporaryFile(dir=folder) as file:
            file.write(b"documind")
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        return error.strerror or str(error)
    return ""


def file_system(folder: Path, mounts: Path = Path("/proc/mounts")) -> str:
    """Return a folder's file system type, such as ext4; empty if unknown."""
    try:
        lines = mounts.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return ""
    found = ("", "")
    for line in lines:
        point, kind = line.split()[1:3]
        point = point.replace("\\040", " ")
        if (folder == Path(point) or Path(point) in folder.parents) and len(point) >= len(found[0]):
            found = (point, kind)
    return found[1]


def broken_copies(settings: Settings) -> Iterator[Diagnosis]:
    roots = {settings.data_dir.resolve(), settings.chroma_dir.resolve().parent}
    for broken in sorted({path for root in roots for path in root.glob("**/*.broken.*")}):
        yield note(
            "moved aside",
            f"{broken} was damaged",
            "it was rebuilt from the catalog; delete the copy when you like",
        )


_MISMATCH = "fingerprint_mismatch"
_JOBS = 100
"""Of the latest, that are looked at for what became of a library's vectors."""
MEMORY_SHARE = 0.8
"""Models that take more of the memory than this leave too little for the index and the rest of
the machine."""


def ollama(settings: Settings) -> Iterator[Diagnosis]:
    """Ask the model host itself, so that it is known also when no server can start."""
    from app.bootstrap.models import needs_ollama, ollama_host, wanted_models  # noqa: PLC0415

    if not needs_ollama(settings):
        yield ok("Ollama", "not needed by these settings")
        return
    try:
        host = ollama_host(settings.providers())
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
    need = sum(row.size_bytes for row in used)
    have = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
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
    # most of a second to import
    from app.bootstrap.models import embedders_compared  # noqa: PLC0415

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
    """Check the running server, or one opened for this command. Opening it probes every store."""
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
    jobs = client.get("/api/v1/jobs", {"limit": _JOBS})["jobs"]
    for row in client.libraries()["libraries"]:
        yield from library(row, [job for job in jobs if job["library"] == row["library"]])
    yield from alike({name: client.duplicates(name)["groups"] for name in get_args(LibraryName)})
    yield from projections(diagnostics["lags"])
    failed = diagnostics["jobs"].get("failed", 0)
    if failed:
        yield note(
            "jobs",
            f"{failed} of the last jobs failed",
            "documind status, or the page under Status, says why",
        )


def library(row: Json, jobs: Sequence[Json]) -> Iterator[Diagnosis]:
    """Check a library, a row of `/api/v1/libraries`. `jobs` are its own, the latest first."""
    name, behind = str(row["library"]), row["chunks"] - row["embedded"]
    detail = f"{row['documents']} documents, {row['chunks']} chunks"
    embedding = row["embedding"]
    made_by = f"{embedding['embedder']} embeds it"
    if not embedding["reachable"] and row["chunks"]:
        trouble, _, cure = str(embedding["detail"]).partition("; ")
        yield problem(
            name, f"{made_by}, and {trouble}: questions are searched by their words alone", cure
        )
    for notice in row["notices"]:
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
        said = next((error for job in since for error in job["errors"] if _MISMATCH in error), "")
        cure = said.partition(": ")[2] or "wait for the backfill: documind status"
        yield note(name, f"{detail}, {behind} without a vector yet", cure)
    else:
        yield ok(name, f"{detail}; {made_by}")


def alike(found: Mapping[str, Sequence[Json]]) -> Iterator[Diagnosis]:
    """Say how many documents of a library are there more than once, by its groups of them."""
    for name, groups in found.items():
        if groups:
            more = sum(len(group["documents"]) - 1 for group in groups)
            said = f"{more} of its documents are alike others: the same bytes, text, or work"
            yield note(name, said, f"to see them, run: documind duplicates --library {name}")


def projections(lags: Mapping[str, int]) -> Iterator[Diagnosis]:
    """Look for indexes that have changes of the catalog yet to apply, by `library/projection`."""
    behind = {name: count for name, count in sorted(lags.items()) if count}
    for name, count in behind.items():
        cure = "it does so by itself, ten seconds after the last upload; if not: documind rebuild"
        yield note("index", f"{name} has {count} changes to apply", cure)
    if not behind:
        yield ok("index", "every projection is level with the catalog")


MARKS = {"ok": "[green]ok[/]", "note": "[yellow]note[/]", "problem": "[red]problem[/]"}


def doctor(
    as_json: Annotated[bool, typer.Option("--json", help="print the findings as JSON")] = False,
    quiet: Annotated[
        bool, typer.Option("--quiet", "-q", help="show only problems and notes")
    ] = False,
) -> None:
    """Check everything that may stop a user, and say how to fix it.

    Exit code 1 if there is a problem. Python, packages, clock, settings, keys, engines (PostgreSQL,
    Qdrant, object store), disk, file system, locks, ports, Ollama and its models, memory, every
    store, vectors that are missing, indexes that lag behind. A server is asked when one runs;
    otherwise one is opened for as long as this takes,
    which probes the stores.

    Example: documind doctor
    """
    settings = Settings()
    findings: list[Diagnosis] = []
    for check in (
        machine(),
        packages(),
        configuration(settings),
        directory(settings),
        engines(settings),
        ollama(settings),
    ):
        findings += check
    if ("data directory", "problem") not in ((one.what, one.state) for one in findings):
        findings += server(settings)
        findings += broken_copies(settings)
    shown = [finding for finding in findings if not quiet or finding.state != "ok"]
    if as_json:
        emit([asdict(finding) for finding in shown])
    else:
        tell(shown, Counter(finding.state for finding in findings))
    if any(finding.state == "problem" for finding in findings):
        sys.exit(1)


def tell(findings: list[Diagnosis], counts: Counter[str]) -> None:
    for finding in findings:
        out.print(f"{MARKS[finding.state]:>18}  ", end="")
        cure = f"\n         cure: {finding.cure}" if finding.cure else ""
        say(f"{finding.what}: {finding.detail}{cure}")
    say(f"{counts['problem']} problems, {counts['note']} notes, {counts['ok']} in order")
