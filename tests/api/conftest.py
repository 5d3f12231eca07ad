"""The real app: in process for most tests, behind a real socket where connections matter."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import pytest
import uvicorn
from fastapi import FastAPI
from starlette.testclient import TestClient

from app.api.app import create_app
from app.api.serving import server_config
from app.bootstrap.services import Services
from app.core.trace import SILENT, Spans
from app.settings import Settings
from tests.fakes.generators import FixedModels
from tests.fakes.services import Pull, local_services

BASE = "http://127.0.0.1:8001"


@dataclass
class Site:
    """A running app and what is behind it."""

    client: TestClient
    app: FastAPI
    settings: Settings
    services: Services

    def upload(
        self,
        *files: tuple[str, bytes],
        library: str = "papers",
        wait: str = "true",
        **fields: object,
    ) -> tuple[int, object]:
        """Post files the way curl does; returns status and body."""
        reply = self.client.post(
            f"/api/v1/ingest?wait={wait}",
            files=[
                ("file", (name, content, "application/octet-stream")) for name, content in files
            ],
            data={"library": library, **fields},
        )
        return reply.status_code, reply.json()


def settings_for(directory: Path, **values: object) -> Settings:
    """Return settings that read neither the environment's file nor its directory."""
    return Settings(_env_file=None, data_dir=directory / "data", **values)  # type: ignore[arg-type]


@contextmanager
def site(
    directory: Path,
    models: FixedModels | None = None,
    pull: Pull | None = None,
    spans: Spans = SILENT,
    **values: object,
) -> Iterator[Site]:
    """Run the app in process, and wait until it is ready."""
    settings = settings_for(directory, **values)
    opened: list[Services] = []

    @contextmanager
    def build(given: Settings) -> Iterator[Services]:
        with local_services(given, models, pull, spans) as services:
            opened.append(services)
            yield services

    app = create_app(settings, build=build, on_failure=lambda _: None)
    with TestClient(app, base_url=BASE) as client:
        assert app.state.edge.startup.wait(30)
        yield Site(client, app, settings, opened[0])


OpenSite = Callable[..., AbstractContextManager[Site]]


@pytest.fixture
def shop(tmp_path: Path) -> Iterator[Site]:
    """An empty site without key."""
    with site(tmp_path) as opened:
        yield opened


LIBRARY = {
    "copper.txt": "Copper\n\nCopper is a soft red metal. Its melting point is 1085 degrees"
    " Celsius. Copper conducts well.",
    "tides.md": "# Tides\n\n## Causes\n\nTides are the rise and fall of sea levels caused by the"
    " Moon. Spring tides come twice.",
    "lions.html": "<html><title>Lions</title><body><h1>Lions</h1><p>Lions live in prides and sleep"
    " twenty hours.</p></body></html>",
}


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """A site with three papers, for tests that only read."""
    with site(tmp_path_factory.mktemp("site")) as opened:
        status, body = opened.upload(*((name, text.encode()) for name, text in LIBRARY.items()))
        assert status == 201, body
        yield opened


@contextmanager
def listening(app: FastAPI, lifespan: Literal["on", "off"] = "on") -> Iterator[str]:
    """Serve an app on a free loopback port, as `documind serve` does, and return its address."""
    config = server_config(app, app.state.edge.settings, port=0)
    config.lifespan, config.timeout_graceful_shutdown = lifespan, 5
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    started = threading.Event()
    while not server.started:
        assert thread.is_alive()
        started.wait(0.01)
    port = server.servers[0].sockets[0].getsockname()[1]
    try:
        yield f"http://127.0.0.1:{port}"
    finally:
        server.should_exit = True
        thread.join(20)
