"""`documind migrate`: the catalog's schema, without a server."""

from __future__ import annotations

import sys
from contextlib import AbstractContextManager, nullcontext

import typer

from app.cli.output import complain, say
from app.core.errors import InvalidInput
from app.index.files.lock import DirectoryLock
from app.settings import Settings


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(migrate)


def migrate() -> None:
    """Bring the catalog's schema to this release's, and exit.

    For installations of several servers: run it once before servers of a new release start. A
    server does the same as it starts. Exit code 2: a setting is wrong, or the database does not
    answer.

    Example: documind migrate
    """
    from app.index.maintenance.migration import migrate_catalog  # noqa: PLC0415  # SQL comes after the lock

    settings = Settings()
    try:
        with _alone(settings):
            done = migrate_catalog(settings.index())
    except InvalidInput as error:  # a setting, or what it names
        complain(error.message)
        sys.exit(2)
    if done.before is None:
        say(f"{done.name}: a new catalog, schema {done.after}")
    elif done.before == done.after:
        say(f"{done.name}: schema {done.after}, nothing to do")
    else:
        say(f"{done.name}: schema {done.before} is now {done.after}")


def _alone(settings: Settings) -> AbstractContextManager[object]:
    """Return the lock of a catalog that is a file; a database has locks of its own."""
    if settings.database_url:
        return nullcontext()
    return DirectoryLock([settings.data_dir, settings.chroma_dir])
