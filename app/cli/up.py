"""`documind up` and `documind down`: start and stop everything in the background.

For people without make.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated
from urllib.parse import urlsplit

import typer
from rich.markup import escape
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TransferSpeedColumn

from app.cli.connection import START_TIMEOUT_S, base_url
from app.cli.output import HostOption, JsonOption, PortOption, complain, emit, err, open_page, say
from app.cli.serve import check_port
from app.client import DocuMindClient
from app.core.cancel import CancelToken
from app.core.errors import DocuMindError, Locked, ProviderError, ProviderUnreachable
from app.settings import Settings, check_start
from app.storage.files.lock import DirectoryLock, owner

if TYPE_CHECKING:
    from app.models.ollama import OllamaHost

_PROC = Path("/proc")
_TAIL_BYTES = 8192


@dataclass(frozen=True, slots=True)
class Background:
    """A process by its pid and by when it started, as the operating system tells it."""

    pid: int
    started: str

    @classmethod
    def of(cls, pid: int) -> Background | None:
        """Return the running process with this pid; None without one, or for a zombie."""
        started = start_time(pid)
        return cls(pid, started) if started else None

    def runs(self) -> bool:
        """True while this very process runs; false for another one that was given its pid."""
        return start_time(self.pid) == self.started

    def stop(self, grace_s: float) -> bool:
        """End the process, by force after `grace_s` seconds; return whether it ran.

        Force ends its process group, which `start` made its own, so that no runner of a model host
        stays behind.
        """
        if not self._signal(signal.SIGTERM):
            return False
        if not self._gone_within(grace_s) and self._signal(signal.SIGKILL, group=True):
            self._gone_within(grace_s)
        return True

    def _signal(self, number: signal.Signals, *, group: bool = False) -> bool:
        if not self.runs():
            return False
        try:
            if group and os.getpgid(self.pid) == self.pid:
                os.killpg(self.pid, number)
            else:
                os.kill(self.pid, number)
        except ProcessLookupError:
            return False
        return True

    def _gone_within(self, seconds: float) -> bool:
        deadline = time.monotonic() + seconds
        while self.runs():
            if time.monotonic() > deadline:
                return False
            time.sleep(_POLL_S)
        return True


def start_time(pid: int) -> str:
    """Return a process's start time in the system's words; empty if not running.

    On Linux the boot's id and field 22 of /proc/PID/stat, clock ticks since that boot (proc(5));
    elsewhere what `ps` prints.
    """
    if not _PROC.joinpath("self").exists():
        return _start_time_by_ps(pid)
    try:
        stat = _PROC.joinpath(str(pid), "stat").read_text(encoding="utf-8", errors="replace")
        boot = _PROC.joinpath("sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    except OSError:
        return ""
    # the name, field 2, may hold anything; field 3 is the state
    fields = stat[stat.rindex(")") + 2 :].split()
    # A leader that is gone while other threads of it still run (field 20 counts them) holds its
    # files and locks.
    ended = fields[0] == "X" or (fields[0] == "Z" and int(fields[17]) <= 1)
    return "" if ended else f"{boot}:{fields[19]}"


def _start_time_by_ps(pid: int) -> str:
    ps = shutil.which("ps") or "/bin/ps"
    shown = subprocess.run(  # noqa: S603
        [ps, "-o", "stat=,lstart=", "-p", str(pid)], capture_output=True, text=True, check=False
    )
    state, _, started = shown.stdout.strip().partition(" ")
    return "" if not state or state.startswith("Z") else started.strip()


def start(
    command: Sequence[str], log: Path, environment: Mapping[str, str]
) -> tuple[subprocess.Popen[bytes], Background | None]:
    """Start a program in its own session that outlives this one; no Ctrl-C here reaches it.

    Both its outputs go to `log`; an earlier run's is kept as `.1`. Returns the handle for this
    process, and how later ones recognise it: None when it has ended already.
    """
    if log.exists():
        log.replace(log.with_name(f"{log.name}.1"))
    with log.open("wb") as sink:
        process = subprocess.Popen(  # noqa: S603  # the command is ours
            list(command),
            stdin=subprocess.DEVNULL,
            stdout=sink,
            stderr=subprocess.STDOUT,
            env={**os.environ, **environment},
            start_new_session=True,
        )
    return process, Background.of(process.pid)


def last_lines(log: Path, count: int = 12) -> str:
    """Return the end of a log; empty when there is none."""
    try:
        with log.open("rb") as file:
            file.seek(max(0, log.stat().st_size - _TAIL_BYTES))
            text = file.read().decode("utf-8", "replace")
    except OSError:
        return ""
    return "\n".join(text.splitlines()[-count:])


Started = dict[str, Background]
"""Processes that `up` started and that may still run: `server` and `ollama`."""


class UpState:
    """The folder `run` of a data directory: a state file, and logs."""

    def __init__(self, data_dir: Path) -> None:
        self.directory = data_dir / "run"
        self._file = self.directory / "up.json"

    def log(self, name: str) -> Path:
        return self.directory / f"{name}.log"

    @contextmanager
    def held(self) -> Iterator[Started]:
        """Yield what runs, for one command at a time.

        Raises:
            Locked: Another `up` or `down` is at work on this directory.
        """
        try:
            lock = DirectoryLock([self.directory])
        except Locked as error:
            busy = owner(self.directory)
            who = f"process {busy.pid}" if busy else "another process"
            raise Locked(
                f"{who} is starting or stopping this server (documind up or down); wait for it and"
                " try again"
            ) from error
        with lock:
            yield {name: process for name, process in self._load().items() if process.runs()}

    def start(
        self, name: str, command: Sequence[str], environment: Mapping[str, str], started: Started
    ) -> subprocess.Popen[bytes]:
        process, ours = start(command, self.log(name), environment)
        if ours is not None:
            started[name] = ours
        self.save(started)
        return process

    def save(self, started: Started) -> None:
        """Store what was started, at once, so that an interruption loses nothing."""
        part = self._file.with_suffix(".part")
        content = {name: asdict(process) for name, process in started.items()}
        part.write_text(json.dumps(content), encoding="utf-8")
        part.replace(self._file)

    def _load(self) -> Started:
        try:
            found = json.loads(self._file.read_text(encoding="utf-8"))
            return {
                name: Background(int(one["pid"]), str(one["started"]))
                for name, one in found.items()
                if one
            }
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            # No file yet, or not ours to read: then nothing can be recognised, and nothing is
            # ended.
            return {}


OLLAMA_START_TIMEOUT_S = 60.0
"""Ollama's port answers only after it has looked for graphics cards, which may take half a
minute."""
_ASK_S = 2.0
_OLLAMA_POLL_S = 0.1


def find_or_start(
    host: OllamaHost, started: Started, state: UpState, report: UpReport
) -> tuple[str, ...] | None:
    """Return Ollama's models, started where it can be; None if absent: the report says why."""
    report.ollama = "started" if "ollama" in started else "running"
    models = _models(host)
    if models is not None:
        return models
    report.ollama = "absent"
    if not host.local:
        report.ollama_detail = f"{host.name} does not answer; check OLLAMA_BASE_URL"
        return None
    program = shutil.which("ollama")
    if program is None:
        report.ollama_detail = (
            "there is no program 'ollama' on the PATH; install it from ollama.com"
        )
        return None
    address = urlsplit(host.shown_url)
    # Documents never leave this machine through a model of Ollama's own cloud, unless the user
    # allows it.
    environment = {"OLLAMA_HOST": address.netloc, "OLLAMA_NO_CLOUD": "1"}
    process = state.start("ollama", [program, "serve"], environment, started)
    deadline = time.monotonic() + OLLAMA_START_TIMEOUT_S
    while (models := _models(host)) is None:
        if process.poll() is not None or time.monotonic() > deadline:
            code, log = process.returncode, state.log("ollama")
            what = "does not answer" if code is None else f"ended with code {code}"
            report.ollama_detail = (
                f"'ollama serve' was started and {what}; its log {log} ends:\n{last_lines(log)}"
            )
            return None
        time.sleep(_OLLAMA_POLL_S)
    report.ollama = "started"
    return models


def _models(host: OllamaHost) -> tuple[str, ...] | None:
    try:
        return tuple(model.name for model in host.models(timeout_s=_ASK_S))
    except ProviderError:
        return None


def missing(wanted: Iterable[str], installed: Iterable[str]) -> list[str]:
    from app.models.ollama import same_model  # noqa: PLC0415  # only where a host was found

    have = list(installed)
    return [name for name in wanted if not any(same_model(name, other) for other in have)]


def pull(host: OllamaHost, model: str, *, quiet: bool) -> None:
    """Fetch a model with progress on standard error; continue an interrupted fetch.

    Raises:
        ModelNotInstalled: The registry has no such model.
        ProviderError: The host failed, or cannot reach the registry.
    """
    with Progress(
        TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TransferSpeedColumn(),
        console=err, transient=True, disable=quiet or not err.is_terminal,
    ) as bar:  # fmt: skip
        task = bar.add_task(escape(model), total=None)
        for step in host.pull(model, CancelToken()):
            bar.update(
                task,
                description=escape(f"{model}: {step.status}"),
                total=step.total,
                completed=step.completed or 0,
            )


STOP_GRACE_S = 30.0
"""A server lets answers under way end for 20 seconds; after this one it is ended by force."""
RELEASE_S = 5.0
MODEL_FAILED = 6
_POLL_S = 0.05


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
    host: HostOption = None,
    port: PortOption = None,
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
            process = started.get(name)
            if process is not None and process.stop(STOP_GRACE_S):
                ended[name] = process.pid
                if name == "server":
                    await_release(settings, process.pid)
        state.save({})
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
    """End what this command started, and only that, if it fails or is interrupted."""
    before = dict(started)
    try:
        yield
    except BaseException:
        for name in ("server", "ollama"):
            process = started.get(name)
            if process is not None and process is not before.get(name):
                process.stop(STOP_GRACE_S)
        state.save(before)
        raise


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
    from app.bootstrap.models import needs_ollama, ollama_host, wanted_models  # noqa: PLC0415

    if not needs_ollama(settings):
        return
    host = ollama_host(settings.providers())
    try:
        with err.status("looking for Ollama"):
            models = find_or_start(host, started, state, report)
        if models is not None:
            report.missing_models = missing(wanted_models(settings, host), models)
        for model in list(report.missing_models) if fetch else ():
            try:
                pull(host, model, quiet=quiet)
                report.missing_models.remove(model)
            except ProviderError as error:
                complain(f"{model} was not fetched: {error.message}")
                report.failed_models.append(model)
    finally:
        host.http.close()


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
        if "server" not in started:
            report.log = ""
        await_ready(settings, None, report)
        return
    check_port(settings)
    options = [
        word
        for name, value in given.items()
        for word in (f"--{name.removeprefix('api_')}", str(value))
    ]
    command = [sys.executable, "-m", "app", "serve", *options]
    process = state.start("server", command, {}, started)
    report.server, report.pid = "started", process.pid
    with err.status("starting the server"):
        await_ready(settings, process, report)


def await_ready(
    settings: Settings, process: subprocess.Popen[bytes] | None, report: UpReport
) -> None:
    """Wait until the server answers; it may prepare its models or rebuild an index first."""
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


def tell(report: UpReport) -> None:
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
