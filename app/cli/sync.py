"""`documind sync`: make a library follow a folder, once or continuously."""

from __future__ import annotations

import socket
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated

import typer
from watchfiles import Change, watch

from app.cli.connection import connect
from app.cli.library import SOME_FAILED, send_files
from app.cli.output import complain, emit, emit_line, err, say, table
from app.client import DocuMindClient, FileToSend
from app.core.errors import DocuMindError, InvalidInput, UnsupportedType
from app.core.types import Library
from app.ingest.sources.sync import FolderFile, Manifest, plan_sync
from app.settings import Settings

REMOVED_AT_ONCE = 500
"""Documents per request that removes some."""
DEBOUNCE_MS = 2000
"""Changes that follow each other within this many milliseconds are one: editors save in several
steps, copies come in rows."""


@dataclass(frozen=True, slots=True)
class SyncOutcome:
    """The outcome of one sync, by source key."""

    library: str
    added: tuple[str, ...]
    replaced: tuple[str, ...]
    removed: tuple[str, ...]
    unchanged: int
    failed: tuple[tuple[str, str], ...]
    """Source key or path, and the reason."""
    skipped: tuple[tuple[str, str], ...] = ()
    """The same of files that hold no document: empty, of a program, or of no known format."""

    @property
    def exit_code(self) -> int:
        """0 when nothing failed, 3 when some did, 1 when nothing else happened."""
        if not self.failed:
            return 0
        return SOME_FAILED if self.added or self.replaced or self.removed or self.unchanged else 1


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(sync)


def sync(
    folder: Annotated[
        Path, typer.Argument(help="the folder; its .documindignore lists files to ignore")
    ],
    library: Annotated[str, typer.Option("--library", "-l", help="public or papers")] = "papers",
    watching: Annotated[
        bool, typer.Option("--watch", help="follow every change until Ctrl-C")
    ] = False,
    again: Annotated[
        bool,
        typer.Option(
            "--again",
            help="send unchanged files too: the server parses again what an older release has"
            " parsed",
        ),
    ] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="print changes as JSON, one object a line with --watch")
    ] = False,
) -> None:
    """Add, replace and remove documents until a library equals a folder.

    Only documents that came from the folder are removed.

    Example: documind sync ~/papers --library papers --watch
    """
    settings, target = Settings(), library_named(library)

    def once(again: bool = False) -> SyncOutcome:
        with connect(settings) as client:
            return mirror(client, folder, target, again=again)

    outcome = once(again)
    if not watching:
        emit(asdict(outcome)) if as_json else show(outcome)
        sys.exit(outcome.exit_code)
    tell = (lambda done: emit_line(asdict(done))) if as_json else show
    tell(outcome)
    err.print(f"watching {folder}; Ctrl-C ends it", markup=False)
    follow(folder, once, tell, threading.Event())


def library_named(name: str) -> Library:
    """Return a library by name.

    Raises:
        InvalidInput: There is no such library.
    """
    try:
        return Library(name)
    except ValueError as exc:
        raise InvalidInput(f"library {name!r} is neither 'public' nor 'papers'") from exc


def mirror(
    client: DocuMindClient, folder: Path, library: Library, *, again: bool = False
) -> SyncOutcome:
    """Make a library equal a folder; the server remembers which files came from it.

    Args:
        client: Of the server.
        folder: The folder.
        library: The library to mirror it into.
        again: Send unchanged files too; the server parses again what an older release has parsed.

    Raises:
        InvalidInput: `folder` is no folder, or cannot be written.
        ProviderError: The server went away; the next sync goes on from there.
    """
    manifest, name = Manifest(folder, library), folder_name(folder)
    live = {str(row["doc_id"]): str(row["sha256"]) for row in client.documents(library.value)}
    plan = plan_sync(folder, library, manifest, live, client.synced(library.value, name))
    repeated = plan.unchanged if again else ()
    files = (*plan.add, *plan.replace, *repeated)
    rows = send_files(
        client,
        [FileToSend(file.path, file.source_key) for file in files],
        library.value,
        sync_folder=name,
    )
    refused = {
        file.source_key: str(row["reason"])
        for file, row in zip(files, rows, strict=True)
        if row["status"] == "failed"
    }
    foreign = {
        file.source_key
        for file, row in zip(files, rows, strict=True)
        if row["status"] == "failed" and row.get("code") == UnsupportedType.code
    }
    same = {
        file.source_key
        for file, row in zip(files, rows, strict=True)
        if row["status"] == "unchanged"
    }
    reread = tuple(file for file in repeated if file.source_key not in same)
    removed = tuple(
        key
        for at in range(0, len(plan.remove), REMOVED_AT_ONCE)
        for key in client.remove_synced(library.value, name, plan.remove[at : at + REMOVED_AT_ONCE])
    )
    manifest.record(
        (
            file
            for file in (*plan.add, *plan.replace, *plan.unchanged)
            if file.source_key not in refused
        ),
        plan.remove,
    )
    manifest.save()

    def sent(files: tuple[FolderFile, ...]) -> tuple[str, ...]:
        return tuple(file.source_key for file in files if file.source_key not in refused)

    return SyncOutcome(
        library.value,
        sent(plan.add),
        sent((*plan.replace, *reread)),
        removed,
        len(plan.unchanged) - len(reread),
        (*plan.failed, *((key, why) for key, why in refused.items() if key not in foreign)),
        (*plan.skipped, *((key, refused[key]) for key in refused if key in foreign)),
    )


def folder_name(folder: Path) -> str:
    """Return the folder's name on the server: this machine's name and its path.

    Never a name stored in the folder.
    """
    return f"{socket.gethostname()}:{folder.resolve()}"


def show(outcome: SyncOutcome) -> None:
    """Print what was done, for people."""
    rows = [(key, "added", "") for key in outcome.added]
    rows += [(key, "replaced", "") for key in outcome.replaced]
    rows += [(key, "removed", "") for key in outcome.removed]
    rows += [(key, "failed", reason) for key, reason in outcome.failed]
    rows += [(key, "skipped", reason) for key, reason in outcome.skipped]
    if rows:
        table(("file", "what", "remark"), rows)
    say(
        f"{outcome.library}: {len(outcome.added)} added, {len(outcome.replaced)} replaced,"
        f" {len(outcome.removed)} removed, "
        f"{outcome.unchanged} unchanged, {len(outcome.failed)} failed"
        + (f", {len(outcome.skipped)} skipped" if outcome.skipped else "")
    )
    if outcome.failed:
        err.print(
            "files that failed are tried again next time; name them in .documindignore to leave"
            " them out",
            markup=False,
        )


def follow(
    folder: Path,
    once: Callable[[], SyncOutcome],
    tell: Callable[[SyncOutcome], None],
    stop: threading.Event,
) -> None:
    """Sync after every change of visible files until `stop` is set.

    A failed sync is reported and repeated at the next change.
    """
    for _ in changes(folder, stop):
        try:
            outcome = once()
        except DocuMindError as error:
            complain(error.message)
            continue
        if outcome.added or outcome.replaced or outcome.removed or outcome.failed:
            tell(outcome)


def changes(folder: Path, stop: threading.Event) -> Iterator[set[tuple[Change, str]]]:
    """Yield changes below a folder in groups, without hidden files.

    Our own manifest is hidden.
    """
    root = folder.resolve()

    def visible(_: Change, path: str) -> bool:
        return not any(part.startswith(".") for part in Path(path).relative_to(root).parts)

    yield from watch(
        root, watch_filter=visible, debounce=DEBOUNCE_MS, stop_event=stop, raise_interrupt=True
    )
