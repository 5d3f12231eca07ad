"""Check, for `documind doctor`, what needs no server: machine, settings, data.

Packages too.
"""

from __future__ import annotations

import os
import platform
import resource
import shutil
import sqlite3
import sys
import tempfile
import time
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path

from app.cli.findings import Diagnosis, note, ok, problem
from app.cli.output import size
from app.cli.serve import check_port
from app.cli.up_state import UpState
from app.core.errors import DocuMindError
from app.index.files.lock import owner
from app.settings import Settings
from app.settings.checks import check_start, unknown_names
from app.settings.variables import HOSTED

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
    """Look at Python, the system, its clock and limits."""
    if sys.version_info >= MIN_PYTHON:
        yield ok("Python", f"{platform.python_version()} on {platform.platform(terse=True)}")
    else:
        yield problem("Python", platform.python_version(), "use Python 3.11 or newer")
    now = time.time()
    if now < EARLIEST:
        yield problem(
            "clock",
            time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime(now)),
            "set this machine's date",
        )
    else:
        yield ok("clock", time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime(now)))
    files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if files != resource.RLIM_INFINITY and files < MIN_OPEN_FILES:
        yield note(
            "open files",
            f"this shell allows {files}",
            f"run before starting: ulimit -n {4 * MIN_OPEN_FILES}",
        )
    else:
        yield ok("open files", "no limit" if files == resource.RLIM_INFINITY else f"up to {files}")


def packages() -> Iterator[Diagnosis]:
    """Look at what is installed, what of it is optional, and the page."""
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
        where = (
            held_by.url if held_by and held_by.url else (f"{settings.api_host}:{settings.api_port}")
        )
        yield ok(
            "access", f"listens on {where}, {'asks for the key' if settings.api_key else 'no key'}"
        )
    if settings.llm_provider in HOSTED:
        prefix = settings.llm_provider.upper()
        unset = [
            f"{prefix}_{part}"
            for part in ("API_KEY", "MODEL")
            if not getattr(settings, f"{settings.llm_provider}_{part.lower()}")
        ]
        if unset:
            yield problem(
                "LLM_PROVIDER",
                f"{settings.llm_provider} without {' and '.join(unset)}",
                f"set {' and '.join(unset)}",
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
    "ORIGINALS_URL": "start the object store, make its bucket, or correct ORIGINALS_URL,"
    " AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY",
}
"""What to do about an engine that does not answer, by the setting that names it."""


def engines(settings: Settings) -> Iterator[Diagnosis]:
    """Ask the engines that settings name, if any: address, version, state."""
    from app.index.maintenance.engine_states import engine_states  # noqa: PLC0415  # SQL for this check only

    try:
        options = settings.index()
    except DocuMindError as error:
        yield problem("SEARCH_URL", error.message, "set DATABASE_URL too, or neither")
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
    yield ok(
        "data directory",
        f"{str(path)!r}, "
        + (f"held by process {held_by.pid} {held_by.url}" if held_by else "free"),
    )
    newest = max((file.stat().st_mtime for file in path.glob("catalog*")), default=0.0)
    if newest > time.time() + CLOCK_SLACK_S:
        ahead = time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime(newest))
        yield note(
            "clock",
            f"the catalog was written at {ahead}, which is yet to come",
            "set this machine's date",
        )
    if held_by is None:
        yield from _port(settings)
    log = UpState(settings.data_dir).log("server")
    if log.exists():
        yield ok("log", f"of `documind up`: {log}")


def _port(settings: Settings) -> Iterator[Diagnosis]:
    try:
        check_port(settings)
        yield ok("port", f"{settings.api_port} is free")
    except DocuMindError as error:
        yield problem("port", error.message, "choose another one: API_PORT")


def _write_trouble(folder: Path) -> str:
    """Return why a folder is not writable; empty if it is.

    A write is tried, because permissions are not the only reason.
    """
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
    """List stores that were moved aside."""
    roots = {settings.data_dir.resolve(), settings.chroma_dir.resolve().parent}
    for broken in sorted({path for root in roots for path in root.glob("**/*.broken.*")}):
        yield note(
            "moved aside",
            f"{broken} was damaged",
            "it was rebuilt from the catalog; delete the copy when you like",
        )
