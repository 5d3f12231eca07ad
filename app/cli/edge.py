"""Import the edge and the composition by name, as late as possible.

`cli` and `api` never import each other (the import rule), and both take most of a second to import,
which must come after the data directory's lock, so that a second process is refused at once.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import partial
from typing import Any

from app.index.files.lock import DirectoryLock
from app.settings import Settings


def make_app(settings: Settings, lock: DirectoryLock, **told: Callable[..., None]) -> Any:  # noqa: ANN401  # an ASGI app
    """Return the HTTP application over a data directory whose lock is held.

    `told` holds its `on_ready` and `on_failure`.
    """
    edge = importlib.import_module("app.api.app")
    bootstrap = importlib.import_module("app.bootstrap")
    return edge.create_app(settings, build=partial(bootstrap.build_services, lock=lock), **told)


def make_server(app: Any, settings: Settings) -> Any:  # noqa: ANN401  # an ASGI app, and the server around it
    """Return the server of an application; `run` blocks until it is told to stop."""
    return importlib.import_module("app.api.serving").make_server(app, settings)


def make_services(settings: Settings, lock: DirectoryLock) -> AbstractContextManager[object]:
    """Return everything but the HTTP application; the directory's lock is held."""
    services: AbstractContextManager[object] = importlib.import_module(
        "app.bootstrap"
    ).build_services(settings, lock)
    return services


def configure_logs(settings: Settings) -> None:
    """Set up logging as the settings say."""
    importlib.import_module("app.api.logs").configure(settings.log_level, as_json=settings.log_json)
