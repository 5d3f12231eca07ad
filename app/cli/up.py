"""`documind up` and `documind down`: start and stop everything in the background.

For people without make.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Annotated

import typer

from app.cli.connection import START_TIMEOUT_S, base_url
from app.cli.ollama_start import OllamaFound, find_or_start, missing, pull
from app.cli.options import JsonOption
from app.cli.output import complain, emit, err, say
from app.cli.page import open_page
from app.cli.processes import Background, last_lines, start
from app.cli.serve import check_port
from app.cli.up_state import Started, UpState
from app.client import DocuMindClient
from app.core.errors import DocuMindError, Locked, ProviderError, ProviderUnreachable
from app.index.files.lock import owner
from app.settings import Settings
from app.settings.checks import check_start

STOP_GRACE_S = 30.0
"""A server lets answers under way end for 20 seconds; after this one it is ended by force."""
RELEASE_S = 5.0
MODEL_FAILED = 6
_POLL_S = 0.05


def register(app: typer.Typer) -> None:
    """Add the commands."""
    app.command()(up)
    app.command()(down)


@dataclass(slots=True)
class UpReport:
    """The findings and actions of `up`."""

    url: str
    server: str = "running"
    pid: int = 0
    log: str = ""
    ollama: str = "not needed"
    ollama_detail: str = ""
    missing_models: list[str] = field(default_factory=list)
    failed_models: list[str] = field(default_factory=list)


def up(
    pull_models: Annotated[
        bool, typer.Option("--pull", help="fetch missing models (several GB)")
    ] = False,
    no_open: Annotated[
        bool, typer.Option("--no-open", help="do not open the page in a browser")
    ] = False,
    host: Annotated[
        str | None, typer.Option(help="address to listen on [default: API_HOST]")
    ] = None,
    port: Annotated[
        int | None, typer.Option("--port", "-p", help="port to listen on [default: API_PORT]")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Start Ollama if installed, then the server, and open the page when ready.

    All in the background. Without Ollama it works too: a built-in model finds, and answers are
    quotes. `documind down` ends what this started. Logs are in the folder `run` of the data
    directory.

    Example: documind up --pull
    """
    given = {
        name: value for name, value in (("api_host", host), ("api_port", port)) if value is not None
    }
    settings = Settings().model_copy(update=given)
    check_start(settings)
    state = UpState(settings.data_dir)
    report = UpReport(base_url(settings))
    with state.held() as started:
        with ended_on_failure(started, state):
            prepare_ollama(settings, started, state, report, fetch=pull_models, quiet=as_json)
            serve_in_background(settings, given, started, state, report)
        state.save(started)
    if not no_open:
        open_page(report.url)
    emit(asdict(report)) if as_json else tell(report)
    if report.failed_models:
        sys.exit(MODEL_FAILED)


def down(as_json: JsonOption = False) -> None:
    """End the server and the Ollama that `documind up` started, and nothing else.

    Example: documind down
    """
    settings = Settings()
    state = UpState(settings.data_dir)
    ended: dict[str, int] = {}
    with state.held() as started:
        for name in ("server", "ollama"):
            process: Background | None = getattr(started, name)
            if process is not None and process.stop(STOP_GRACE_S):
                ended[name] = process.pid
                if name == "server":
                    await_release(settings, process.pid)
            setattr(started, name, None)
        state.save(started)
    held_by = owner(settings.data_dir)
    if as_json:
        emit({"ended": ended, "still_running": held_by.pid if held_by else None})
        return
    for name, pid in ended.items():
        say(f"ended the {name} (process {pid})")
    if not ended:
        say("nothing that `documind up` started is running")
    if held_by is not None:
        say(
            f"process {held_by.pid} {held_by.url} was not started by `documind up`; end it where"
            " it was started"
        )


def await_release(settings: Settings, pid: int) -> None:
    """Wait until the data directory is free: parsing processes outlive their server."""
    deadline = time.monotonic() + RELEASE_S
    while (
        (held_by := owner(settings.data_dir)) is not None
        and held_by.pid == pid
        and time.monotonic() < deadline
    ):
        time.sleep(_POLL_S)


@contextmanager
def ended_on_failure(started: Started, state: UpState) -> Iterator[None]:
    """End what this command started if it fails or is interrupted.

    Processes that ran before keep running.
    """
    before = (started.server, started.ollama)
    try:
        yield
    except BaseException:
        for process, earlier in ((started.server, before[0]), (started.ollama, before[1])):
            if process is not None and process is not earlier:
                process.stop(STOP_GRACE_S)
        started.server, started.ollama = before
        state.save(started)
        raise


# --- Ollama


def prepare_ollama(
    settings: Settings,
    started: Started,
    state: UpState,
    report: UpReport,
    *,
    fetch: bool,
    quiet: bool,
) -> None:
    """Find or start Ollama and check its models; report missing ones, never stop."""
    from app.bootstrap.hosts import (  # noqa: PLC0415  # most of a second to import
        needs_ollama,
        ollama_host,
        wanted_models,
    )

    if not needs_ollama(settings):
        return
    host = ollama_host(settings)
    try:
        with err.status("looking for Ollama"):
            found: OllamaFound = find_or_start(host, started, state)
        report.ollama, report.ollama_detail = found.state, found.detail
        if found.there:
            report.missing_models = missing(wanted_models(settings, host), found.models)
        for model in list(report.missing_models) if fetch else ():
            try:
                pull(host, model, quiet=quiet)
                report.missing_models.remove(model)
            except ProviderError as error:
                complain(f"{model} was not fetched: {error.message}")
                report.failed_models.append(model)
    finally:
        host.http.close()


# --- the server


def serve_in_background(
    settings: Settings,
    given: dict[str, str | int],
    started: Started,
    state: UpState,
    report: UpReport,
) -> None:
    """Start the server unless one runs, and wait until it answers questions.

    Raises:
        Locked: A command without a server is working on the data.
        ProviderUnreachable: The server ended while it started; the message holds the end of its
            log.
    """
    report.log = str(state.log("server"))
    running = owner(settings.data_dir)
    if running is not None:
        if not running.url or not running.lasting:
            raise Locked(
                f"process {running.pid} is working on {str(settings.data_dir)!r}; wait for it, or"
                " use another DATA_DIR"
            )
        report.url, report.pid = running.url, running.pid
        if started.server is None:
            report.log = ""
        await_ready(settings, None, report)
        return
    check_port(settings)
    options = [
        word
        for name, value in given.items()
        for word in (f"--{name.removeprefix('api_')}", str(value))
    ]
    process, started.server = start(
        [sys.executable, "-m", "app", "serve", *options], state.log("server"), {}
    )
    state.save(started)
    report.server, report.pid = "started", process.pid
    with err.status("starting the server"):
        await_ready(settings, process, report)


def await_ready(
    settings: Settings, process: subprocess.Popen[bytes] | None, report: UpReport
) -> None:
    """Wait until the server answers questions.

    A first start prepares its models; a later one may rebuild an index.
    """
    deadline = time.monotonic() + START_TIMEOUT_S
    with DocuMindClient(report.url, settings.api_key, timeout_s=5.0) as client:
        while not _ready(client):
            if process is not None and process.poll() is not None:
                raise ProviderUnreachable(
                    f"the server ended while it started; its log {report.log}"
                    f" ends:\n{last_lines(Path(report.log))}"
                )
            if time.monotonic() > deadline:
                raise ProviderUnreachable(
                    f"the server at {report.url} is not ready after {START_TIMEOUT_S:.0f} s; see"
                    " its log"
                )
            time.sleep(_POLL_S)


def _ready(client: DocuMindClient) -> bool:
    try:
        return client.ready().get("status") == "ready"
    except DocuMindError:
        return False  # not listening yet


# --- what a person sees


def tell(report: UpReport) -> None:
    """Print what was found and done."""
    say(
        f"DocuMind {'is ready' if report.server == 'started' else 'runs already'}: {report.url} "
        " (documind down ends it)"
    )
    if report.log:
        say(f"its log: {report.log}")
    if report.ollama == "absent":
        say(f"Ollama: {report.ollama_detail}")
        say(
            "without it a built-in model finds passages and answers are quotes from them, with the"
            " same checked citations"
        )
    elif report.ollama != "not needed":
        say(f"Ollama: {report.ollama}")
    for model in report.missing_models:
        say(f"not installed: {model}; fetch it with: documind up --pull")
