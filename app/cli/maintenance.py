"""Commands for the store: check, rebuild, purge, back up, restore.

`rebuild`, `restore` and `fsck --repair` need the server stopped: they take the data directory's
lock themselves. The rest goes through the server that owns the data.
"""

from __future__ import annotations

import os
import sys
from functools import partial
from pathlib import Path
from typing import Annotated

import typer
from dotenv import dotenv_values

from app.cli.connection import connect, run, run_job
from app.cli.models import answering
from app.cli.output import JsonOption, check_library, emit, out, say, size, table, tell
from app.client import Json
from app.core.ids import without_credentials
from app.settings import Settings, names_of
from app.storage.files.lock import DirectoryLock, owner


def fsck(
    repair: Annotated[
        bool, typer.Option("--repair", help="repair faults; the server must be stopped")
    ] = False,
    library: Annotated[
        str,
        typer.Option(
            "--library",
            "-l",
            help="library for entries that --repair adds for uploads without a document",
        ),
    ] = "papers",
    as_json: JsonOption = False,
) -> None:
    """Check texts, counters, vectors, originals and every index against each other.

    --repair also makes an entry for each uploaded file that no document names: read again, titled
    from its first page and flagged `recovered`.

    Exit code 0: sound, all repaired, or only what a killed server leaves and its next start
    repairs. 7: faults that --repair fixes. 8: faults of the catalog, which need a backup.

    Example: documind fsck --repair
    """
    check_library(library)
    settings = Settings()
    held_by = owner(settings.data_dir)
    if held_by is not None and held_by.url and not repair:
        with connect(settings) as client:
            found = run_job(client, client.post("/api/v1/fsck"), "checking")["result"]
    else:
        # Without a server the check opens the store itself and repairs nothing first, so that it
        # sees every fault.
        with DirectoryLock([settings.data_dir, settings.chroma_dir]):
            # heavy imports come after the lock
            from app.bootstrap.maintenance import open_stopped, recover_originals  # noqa: PLC0415

            with open_stopped(settings, heal=False) as store:
                recover = partial(recover_originals, store, settings, check_library(library))
                found = store.fsck.run(repair=repair, recover=recover).record()
    show_report(found, as_json=as_json)
    sys.exit(found["exit_code"])


def show_report(found: Json, *, as_json: bool) -> None:
    if as_json:
        emit(found)
        return
    checked = ", ".join(f"{count:,} {what}" for what, count in found["checked"].items())
    say(f"checked in {found['seconds']} s: {checked or 'nothing, the catalog cannot be read'}")
    for fault in found["faults"]:
        where = f" in {fault['library']}" if fault["library"] else ""
        waits = fault.get("at_start") and not fault["repaired"]
        kind = "repaired" if fault["repaired"] else "waits" if waits else "FAULT"
        then = "; will be repaired at the next start" if waits else ""
        say(f"{kind}  {fault['code']}{where}, {fault['count']} times: {fault['detail']}{then}")
    say("sound" if found["sound"] else "not sound; stop the server and run: documind fsck --repair")


def rebuild(
    passages: Annotated[
        bool, typer.Option("--passages", help="rebuild the codes for late interaction too")
    ] = False,
) -> None:
    """Rebuild the lexical and vector indexes from the catalog; embed nothing.

    The server of this DATA_DIR must be stopped; others on the same catalog go on.

    Example: documind rebuild
    """
    settings = Settings()
    with DirectoryLock([settings.data_dir, settings.chroma_dir]):
        # heavy imports come after the lock
        from app.bootstrap.maintenance import open_stopped, remake_codes  # noqa: PLC0415

        with open_stopped(settings, heal=True) as store:
            store.rebuild()
            if passages:
                made = remake_codes(
                    settings, store, lambda done, of: say(f"{done:,} of {of:,} passages coded")
                )
                say(f"{made:,} passages were coded")
    say("every index was rebuilt from the catalog")


def purge(as_json: JsonOption = False) -> None:
    """Remove every byte of deleted documents from the indexes and the catalog now.

    Otherwise this happens some time after a deletion.

    Example: documind purge
    """
    found = run("/api/v1/purge", {}, "purging")
    if as_json:
        emit(found)
        return
    say(f"{size(found['bytes_before'])} before, {size(found['bytes_after'])} after")
    say("out of reach: " + "; ".join(found["out_of_reach"]))


def backup(
    directory: Annotated[Path, typer.Argument(help="a new directory")], as_json: JsonOption = False
) -> None:
    """Copy the catalog and the originals into a new directory, while everything works.

    Example: documind backup /media/disk/documind-monday
    """
    found = run("/api/v1/backup", {"path": str(directory.absolute())}, "backing up")
    total = size(found["catalog_bytes"] + found["original_bytes"])
    tell(found, f"{found['path']}: {total}, {found['originals']} originals", as_json=as_json)


def restore(
    directory: Annotated[Path, typer.Argument(help="a directory that `documind backup` wrote")],
) -> None:
    """Replace the data with a backup; keep the old data in DATA_DIR/replaced.<UTC>.

    The server must be stopped.

    Example: documind restore /media/disk/documind-monday
    """
    settings = Settings()
    with DirectoryLock([settings.data_dir, settings.chroma_dir]):
        # heavy imports come after the lock
        from app.bootstrap.maintenance import restore_backup  # noqa: PLC0415

        restore_backup(directory.absolute(), settings)
    say("restored; the next start rebuilds the indexes")


def status(as_json: JsonOption = False) -> None:
    """Show the libraries, the models in use and running jobs.

    Example: documind status
    """
    with connect(Settings()) as client:
        found = {
            "health": client.health(),
            "libraries": client.libraries(),
            "jobs": client.jobs(10),
            "models": client.get("/api/v1/models/tests"),
            "answering": client.get("/api/v1/models"),
        }
    if as_json:
        emit(found)
        return
    health = found["health"]
    say(f"answers: {answering(found['answering'])}")
    say(f"embeds: {health['embedder']}")
    if advice := found["models"]["advice"]:
        say(f"models tested: {advice}")
    libraries = found["libraries"]["libraries"]
    table(
        ("library", "documents", "chunks", "embedded", "size", "index"),
        [
            (r["library"], r["documents"], r["chunks"], r["embedded"], size(r["bytes"]), r["build"])
            for r in libraries
        ],
        right=(1, 2, 3, 4),
    )
    jobs = [row for row in found["jobs"]["jobs"] if row["state"] not in ("done", "cancelled")]
    if jobs:
        out.print()
        table(
            ("job", "kind", "state", "done", "of", "unit"),
            [tuple(r[k] for k in ("id", "kind", "state", "done", "total", "unit")) for r in jobs],
        )


HIDDEN = "(hidden)"
_LISTS = {"search_url", "ollama_base_url"}
"""Several addresses with commas between them."""


def config(
    everything: Annotated[
        bool, typer.Option("--all", "-a", help="also what stands at its default")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Show changed settings and their source: environment or `.env`. Keys are hidden.

    Example: documind config --all
    """
    rows = [
        row
        for row in settings_in_force()
        if everything or row["from"] != "default" or row["setting"] == "DATA_DIR"
    ]
    if as_json:
        emit(rows)
    else:
        table(
            ("setting", "value", "from"),
            [(row["setting"], row["value"], row["from"]) for row in rows],
        )


def settings_in_force() -> list[Json]:
    """Return every setting with its value as text and its source; secrets are hidden."""
    settings = Settings()
    environment = {name.upper() for name, value in os.environ.items() if value}
    written = {name.upper() for name, value in dotenv_values(".env").items() if value}
    rows: list[Json] = []
    for field in Settings.model_fields:
        name, names = field.upper(), {one.upper() for one in names_of(field)}
        origin = "environment" if names & environment else ".env" if names & written else "default"
        value = getattr(settings, field)
        shown_value = str(value.resolve()) if field == "data_dir" else shown(field, value)
        rows.append({"setting": name, "value": shown_value, "from": origin})
    return rows


def shown(field: str, value: object) -> str:
    """Return a setting's value as people may see it."""
    if value is None or value == "":
        return ""
    definition = Settings.model_fields.get(field)
    if definition is not None and definition.repr is False:
        return HIDDEN
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, tuple):
        return ",".join(without_credentials(str(part)) for part in value)
    if field in _LISTS:
        return ",".join(map(without_credentials, str(value).split(",")))
    return str(value) if isinstance(value, Path) else without_credentials(str(value))
