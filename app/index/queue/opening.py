"""Open the queue of several processes where the settings ask for it."""

from __future__ import annotations

import importlib
from contextlib import AbstractContextManager, closing
from typing import cast

from app.core.errors import DatabaseAway, InvalidInput
from app.core.ports.shared_jobs import SharedJobs


def open_shared_jobs(url: str) -> AbstractContextManager[SharedJobs]:
    """Return the queue in the catalog's database; leaving it closes it.

    Raises:
        InvalidInput: The database does not answer, or the extra `shared` is missing.
    """
    try:
        module = importlib.import_module("app.index.queue.postgres_jobs")
    except ModuleNotFoundError as exc:
        raise InvalidInput(
            "jobs of several servers (SEARCH_URL) need the extra 'shared': pip install"
            " 'documind-server[shared]'"
        ) from exc
    try:
        return cast("AbstractContextManager[SharedJobs]", closing(module.PostgresJobs(url)))
    except DatabaseAway as exc:
        raise InvalidInput(exc.message) from exc
