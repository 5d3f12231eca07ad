"""Commands for the store: check, rebuild, purge, export, import, back up, restore.

`rebuild`, `restore` and `fsck --repair` need the server stopped: they take the data directory's lock themselves. The rest goes
through the server that owns the data.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast, get_args

import typer

from app.cli.bulk import run_job
from app.cli.connection import connect
from app.cli.output import emit, say, size
from app.client import Json
from app.core.errors import InvalidInput
from app.core.types import Library, LibraryName
from app.index.files.lock import DirectoryLock, owner
from app.settings import Settings

if TYPE_CHECKING:
    from app.index.store import IndexStore

JsonOption = Annotated[bool, typer.Option("--json", help="print the report as JSON")]
LIBRARIES = get_args(LibraryName)
NEW_VECTORS_FIND_LESS = 9
"""Exit code of a re-embedding that left the old vectors in service."""


def register(app: typer.Typer) -> None:
    """Add the commands."""
    app.command()(fsck)
    app.command()(rebuild)
    app.command()(purge)
    app.command("export")(export_library)
    app.command("import")(import_library)
    app.command()(reembed)
    app.command()(calibrate)
    app.command()(backup)
    app.command()(restore)


@contextmanager
def stopped(settings: Settings) -> Iterator[None]:
    """Hold the data directory's lock, which no server may have.

    Raises:
        Locked: A process owns the directory; the message names it.
    """
    with DirectoryLock([settings.data_dir, settings.chroma_dir]):
        yield


def open_store(settings: Settings, *, heal: bool) -> IndexStore:
    """Return the store of a directory whose lock is held; Chroma opens on demand."""
    from app.bootstrap.maintenance import open_stopped  # noqa: PLC0415  # heavy imports come after the lock

    return open_stopped(settings, heal=heal)


def check_stopped(store: IndexStore, settings: Settings, library: str, *, repair: bool) -> Json:
    """Return the report of a check of a store that this process opened."""
    from app.bootstrap.recovery import recover_originals  # noqa: PLC0415  # heavy imports come after the lock

    return store.fsck.run(repair=repair, recover=partial(recover_originals, store, settings, Library(library))).record()


def fsck(
    repair: Annotated[bool, typer.Option("--repair", help="mend what can be mended; the server must be stopped")] = False,
    library: Annotated[
        str, typer.Option("--library", "-l", help="where --repair makes entries for uploaded files that no document names")
    ] = "papers",
    as_json: JsonOption = False,
) -> None:
    """Check texts, counters, vectors, originals and every index against each other.

    --repair also makes an entry for each uploaded file that no document names: read again, titled from its first page and flagged
    `recovered`.

    Exit code 0: sound, or all mended. 7: faults that --repair mends. 8: faults of the catalog, which need a backup.

    Example: documind fsck --repair
    """
    if library not in LIBRARIES:
        raise InvalidInput(f"library {library!r} is none of {', '.join(LIBRARIES)}")
    settings = Settings()
    held_by = owner(settings.data_dir)
    if held_by is not None and held_by.url and not repair:
        with connect(settings) as client:
            found = cast("Json", run_job(client, client.post("/api/v1/fsck"), "checking")["result"])
    else:
        # Without a server the check opens the store itself and repairs nothing first, so that it sees every fault.
        with stopped(settings), open_store(settings, heal=False) as store:
            found = check_stopped(store, settings, library, repair=repair)
    show_report(found, as_json=as_json)
    sys.exit(cast("int", found["exit_code"]))


def show_report(found: Json, *, as_json: bool) -> None:
    """Print what a check found."""
    if as_json:
        emit(found)
        return
    checked = ", ".join(f"{count:,} {what}" for what, count in cast("dict[str, int]", found["checked"]).items())
    say(f"checked in {found['seconds']} s: {checked or 'nothing, the catalog cannot be read'}")
    for fault in cast("list[Json]", found["faults"]):
        where = f" in {fault['library']}" if fault["library"] else ""
        say(f"{'mended' if fault['repaired'] else 'FAULT'}  {fault['code']}{where}, {fault['count']} times: {fault['detail']}")
    say("sound" if found["sound"] else "not sound; stop the server and run: documind fsck --repair")


def rebuild(
    passages: Annotated[
        bool, typer.Option("--passages", help="make the codes of passages again too, for late interaction")
    ] = False,
) -> None:
    """Rebuild the lexical and vector indexes from the catalog; embed nothing.

    The server must be stopped.

    Example: documind rebuild
    """
    settings = Settings()
    with stopped(settings), open_store(settings, heal=True) as store:
        store.rebuild()
        if passages:
            from app.bootstrap.maintenance import remake_codes  # noqa: PLC0415  # heavy imports come after the lock

            made = remake_codes(settings, store, lambda done, of: say(f"{done:,} of {of:,} passages coded"))
            say(f"{made:,} passages were coded")
    say("every index was rebuilt from the catalog")


def purge(as_json: JsonOption = False) -> None:
    """Remove every byte of deleted documents from the indexes and the catalog now.

    Otherwise this happens some time after a deletion.

    Example: documind purge
    """
    with connect(Settings()) as client:
        found = cast("Json", run_job(client, client.post("/api/v1/purge"), "purging")["result"])
    if as_json:
        emit(found)
        return
    say(f"{size(cast('float', found['bytes_before']))} before, {size(cast('float', found['bytes_after']))} after")
    say("out of reach: " + "; ".join(cast("list[str]", found["out_of_reach"])))


def export_library(
    library: Annotated[str, typer.Argument(help="public or papers")],
    file: Annotated[Path, typer.Argument(help="the file to write; it must not exist")],
    as_json: JsonOption = False,
) -> None:
    """Write a library with texts, vectors and originals into one checksummed file.

    Example: documind export papers papers.documind
    """
    if library not in LIBRARIES:
        raise InvalidInput(f"library {library!r} is none of {', '.join(LIBRARIES)}")
    with connect(Settings()) as client:
        job = client.post("/api/v1/export", {"library": library, "path": str(file.absolute())})
        _show_bundle(cast("Json", run_job(client, job, f"exporting {library}")["result"]), "written", as_json=as_json)


def import_library(
    file: Annotated[Path, typer.Argument(help="a file that `documind export` wrote")],
    library: Annotated[
        str | None, typer.Option("--library", "-l", help="where to: public or papers [default: the one it came from]")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Import an exported file into a library; embed nothing again.

    After an interruption, the same command continues.

    Example: documind import papers.documind --library papers
    """
    with connect(Settings()) as client:
        job = client.post("/api/v1/import", {"path": str(file.absolute()), "library": library})
        _show_bundle(cast("Json", run_job(client, job, f"importing {file.name}")["result"]), "imported", as_json=as_json)


def _show_bundle(found: Json, done: str, *, as_json: bool) -> None:
    if as_json:
        emit(found)
        return
    say(f"{done}: {found['documents']} documents, {found['chunks']} chunks, {found['vectors']} vectors")


def reembed(
    library: Annotated[str, typer.Option("--library", "-l", help="public or papers")],
    embedder: Annotated[
        str | None, typer.Option("--embedder", help="ollama, minilm or a hosted provider [default: EMBEDDING_PROVIDER]")
    ] = None,
    model: Annotated[str | None, typer.Option("--model", help="embedding model of the provider [default: EMBEDDING_MODEL]")] = None,
    questions: Annotated[
        Path | None,
        typer.Option(
            "--questions",
            help="answer set (JSON Lines) to compare old and new vectors with [default: questions made from the documents]",
        ),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="take the new vectors even when they find less")] = False,
    rollback: Annotated[bool, typer.Option("--rollback", help="let the previous vectors serve again; nothing is embedded")] = False,
    discard: Annotated[bool, typer.Option("--discard", help="remove previous and unfinished vectors")] = False,
    as_json: JsonOption = False,
) -> None:
    """Re-embed a library with another model; swap unless the new vectors find less.

    The current vectors keep serving. The same command goes on after an interruption. Exit code 9:
    the new vectors find less and the old ones serve on.

    Example: documind reembed --library papers --embedder ollama --model nomic-embed-text
    """
    if library not in LIBRARIES:
        raise InvalidInput(f"library {library!r} is none of {', '.join(LIBRARIES)}")
    if rollback and discard:
        raise InvalidInput("--rollback and --discard exclude each other")
    body: Json = {
        "library": library,
        "action": "rollback" if rollback else "discard" if discard else "start",
        "provider": embedder,
        "model": model,
        "questions": str(questions.absolute()) if questions else None,
        "force": force,
    }
    with connect(Settings()) as client:
        job = client.post("/api/v1/reembed", body)
        found = cast("Json", run_job(client, job, f"re-embedding {library}", "the same command")["result"])
    if as_json:
        emit(found)
    else:
        say(f"{found['outcome']}: {found['reason']}")
    if found["outcome"] == "kept":
        sys.exit(NEW_VECTORS_FIND_LESS)


def calibrate(
    library: Annotated[str, typer.Option("--library", "-l", help="public or papers")],
    as_json: JsonOption = False,
) -> None:
    """Calibrate a library's embedding model from the library's own sentences.

    Bands, cutoff and confidence go by it in every library of that model. It runs by itself after indexing.

    Example: documind calibrate --library papers
    """
    if library not in LIBRARIES:
        raise InvalidInput(f"library {library!r} is none of {', '.join(LIBRARIES)}")
    with connect(Settings()) as client:
        job = client.post("/api/v1/calibrate", {"library": library})
        found = cast("Json", run_job(client, job, f"calibrating {library}")["result"])
    if as_json:
        emit(found)
    else:
        line = f"(similarity - {found['similarity_offset']}) / {found['similarity_scale']}"
        say(f"{found['embedding_model']}: {line} is on the scale of the thresholds, by {found['pairs']} pairs")


def backup(
    directory: Annotated[Path, typer.Argument(help="a new directory")],
    as_json: JsonOption = False,
) -> None:
    """Copy the catalog and the originals into a new directory, while everything works.

    Example: documind backup /media/disk/documind-monday
    """
    with connect(Settings()) as client:
        job = client.post("/api/v1/backup", {"path": str(directory.absolute())})
        found = cast("Json", run_job(client, job, "backing up")["result"])
    if as_json:
        emit(found)
        return
    total = cast("float", found["catalog_bytes"]) + cast("float", found["original_bytes"])
    say(f"{found['path']}: {size(total)}, {found['originals']} originals")


def restore(directory: Annotated[Path, typer.Argument(help="a directory that `documind backup` wrote")]) -> None:
    """Replace the data with a backup; keep the old data in DATA_DIR/replaced.<UTC>.

    The server must be stopped.

    Example: documind restore /media/disk/documind-monday
    """
    settings = Settings()
    with stopped(settings):
        from app.bootstrap.maintenance import restore_backup  # noqa: PLC0415  # heavy imports come after the lock

        restore_backup(directory.absolute(), settings)
    say("restored; the next start rebuilds the indexes")
