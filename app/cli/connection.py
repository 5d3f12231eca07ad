"""Connect a command to its data: a running server, or one started for it.

Either way it speaks HTTP by the same client, so there is one path for every command.
"""

from __future__ import annotations

import signal
import sys
import threading
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from itertools import islice
from signal import SIGHUP, SIGTERM
from typing import NoReturn
from urllib.parse import urlsplit

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.spinner import Spinner
from rich.table import Table
from rich.text import Text

from app.cli.output import duration, emit_line, err, job_progress, make_app
from app.client import FINISHED, DocuMindClient, Json, ServerEvent, error_from
from app.core.errors import DocuMindError, Locked, ProviderUnreachable
from app.core.types import Library, ReadingEvent, WaitsFor
from app.settings import Settings
from app.storage.files.lock import DirectoryLock, owner

START_TIMEOUT_S = 600.0
"""A first start may rebuild an index of a million chunks."""
_POLL_S = 0.05


@contextmanager
def connect(settings: Settings) -> Iterator[DocuMindClient]:
    """Yield a client that reaches this configuration's data.

    Raises:
        Locked: A process without a server owns the data directory.
        ProviderUnreachable: The server that owns it does not answer.
    """
    held_by = owner(settings.data_dir)
    if held_by is not None and held_by.url:
        with DocuMindClient(held_by.url, settings.api_key or held_by.key) as client:
            client.ready()
            yield client
        return
    if held_by is not None:
        raise Locked(
            f"process {held_by.pid} is working on {str(settings.data_dir)!r}; wait for it, or use"
            " another DATA_DIR"
        )
    with _own_server(settings) as client:
        yield client


@contextmanager
def _own_server(settings: Settings) -> Iterator[DocuMindClient]:
    """Serve on a free loopback port in a thread, quietly."""
    lock = DirectoryLock([settings.data_dir, settings.chroma_dir])
    try:
        # SQL comes after the lock
        from app.storage.maintenance.start import refuse_foreign_catalog  # noqa: PLC0415

        refuse_foreign_catalog(settings.data_dir, settings.database_url)
        # heavy imports come after the lock, so that a second process is refused at once
        import uvicorn  # noqa: PLC0415

        failures: list[BaseException] = []
        app = make_app(
            settings.model_copy(update={"api_host": "127.0.0.1", "samples": False}),
            lock,
            on_failure=failures.append,
        )
        server = uvicorn.Server(
            uvicorn.Config(app, host="127.0.0.1", port=0, log_level="error", access_log=False)
        )
        thread = threading.Thread(target=server.run, name="own-server", daemon=True)
        thread.start()
        try:
            while not server.started:
                if not thread.is_alive():
                    raise ProviderUnreachable(
                        "the server inside this command did not start; run: documind doctor"
                    )
                time.sleep(_POLL_S)
            url = f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
            lock.announce(url, lasting=False)
            with DocuMindClient(url, lock.key) as client:
                _wait_until_ready(client, thread, failures)
                yield client
        finally:
            server.should_exit = True
            thread.join(30)
    finally:
        lock.close()


def _wait_until_ready(
    client: DocuMindClient, thread: threading.Thread, failures: Sequence[BaseException]
) -> None:
    deadline = time.monotonic() + START_TIMEOUT_S
    while client.ready().get("status") != "ready":
        if failures:
            raise failures[0]
        if not thread.is_alive() or time.monotonic() > deadline:
            raise ProviderUnreachable(
                "the server inside this command ended while it opened the data; run: documind"
                " doctor"
            )
        time.sleep(_POLL_S)


def base_url(settings: Settings) -> str:
    """Return the address of `documind serve` as a person on this machine writes it."""
    host = settings.api_host
    if host in ("0.0.0.0", "::"):  # noqa: S104  # compared, not bound
        host = "127.0.0.1"
    url = f"http://{f'[{host}]' if ':' in host else host}:{settings.api_port}"
    return urlsplit(url).geturl() + settings.root_path.rstrip("/")


_MOST_COMPLETED = 50


def document_names(incomplete: str) -> list[str]:
    """Return file names that begin so, for the Tab key; none where no server runs."""
    settings = Settings()
    held_by = owner(settings.data_dir)
    if held_by is None or not held_by.url:
        return []
    with (
        suppress(DocuMindError),
        DocuMindClient(held_by.url, settings.api_key or held_by.key) as client,
    ):
        rows = (row for of in Library for row in client.documents(of.value, incomplete))
        names = (str(row["filename"] or row["source_key"]) for row in rows)
        return list(islice((one for one in names if one.startswith(incomplete)), _MOST_COMPLETED))
    return []


INTERRUPTED = 130
PAUSE_TIMEOUT_S = 120.0
"""A batch that is being written ends before a run pauses, seconds."""


def run_job(
    client: DocuMindClient, job: Json, title: str, again: str = "", *, as_json: bool = False
) -> Json:
    """Follow a job to its end and return it; Ctrl-C, or an end from outside, pauses it.

    Without `again`, the command that goes on with it, the job is cancelled.

    Raises:
        DocuMindError: The job failed, or it was paused or cancelled elsewhere.
    """
    job_id = str(job["id"])
    try:
        with _ended_like_ctrl_c(), job_progress(title, quiet=as_json) as changed:
            told = set[str]()

            def tell(now: Json) -> None:
                for line in set(now.get("errors") or ()) - told if now["state"] == "queued" else ():
                    told.add(line)
                    err.print(f"{title}: waiting, and trying again: {line}", markup=False)
                if as_json:
                    names = ("id", "kind", "state", "done", "total", "unit", "eta_s")
                    result = {"result": now["result"]} if now["state"] in FINISHED else {}
                    emit_line({**{name: now[name] for name in names}, **result})
                else:
                    changed(now)
                if now["state"] == "paused":
                    raise DocuMindError(f"job {job_id} was paused; go on with: {again}")

            done = client.follow(job_id, tell)
    except KeyboardInterrupt:
        _pause_and_exit(client, job_id, again)
    if done["state"] == "done":
        return done
    problem = done["result"] or {}
    if "error" in problem:
        raise error_from(problem["error"])
    raise DocuMindError(
        f"job {job_id} was {done['state']}; what it has done stays. Go on with: {again}"
    )


def run(path: str, body: Json, title: str, again: str = "") -> Json:
    """Start a job at a path of the API, follow it to its end, and return its result."""
    with connect(Settings()) as client:
        found: Json = run_job(client, client.post(path, body), title, again)["result"]
    return found


@contextmanager
def _ended_like_ctrl_c() -> Iterator[None]:
    """Let SIGTERM and SIGHUP do what Ctrl-C does, so that no job goes on unseen."""

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.signal(number, interrupt) for number in (SIGTERM, SIGHUP)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _pause_and_exit(client: DocuMindClient, job_id: str, again: str) -> NoReturn:
    """Pause a job, wait until it stands still, and end the command."""
    job = client.pause(job_id) if again else client.cancel(job_id)
    deadline = time.monotonic() + PAUSE_TIMEOUT_S
    while job["state"] not in {"paused", *FINISHED} and time.monotonic() < deadline:
        time.sleep(0.1)
        job = client.job(job_id)
    if job["state"] == "paused":
        err.print(
            f"paused at {job['done']} {job['unit']}; what is indexed can be searched. Go on with:"
            f" {again}",
            markup=False,
        )
    sys.exit(INTERRUPTED)


REFRESH_PER_S = 12
_BAR_COLUMNS = 24


class Provisional:
    """The state of an answer so far; the newest lines that fit on the screen."""

    def __init__(self, console: Console) -> None:
        self.final: Json | None = None
        self.conversation_id = ""
        self._console = console
        self._spinner = Spinner("dots", "reading")
        self._quote = ""
        self._said = ""
        self._bar: ProgressBar | None = None
        self._since = 0.0

    @property
    def text(self) -> str:
        """The quote and what came of the model's words."""
        return f"{self._quote}\n\n{self._words}".strip()

    @property
    def _words(self) -> str:
        return self._said.removeprefix(self._quote).strip()

    def live(self) -> Live:
        return Live(self, console=self._console, transient=True, refresh_per_second=REFRESH_PER_S)

    def answer(self) -> Json:
        """Return the answer.

        Raises:
            DocuMindError: Its stream ended before it came.
        """
        if self.final is None:
            raise DocuMindError("the answer's stream ended early; ask again")
        return self.final

    def follow(self, events: Iterable[ServerEvent]) -> None:
        for event in events:
            if event.name == "meta":
                self.conversation_id = str(event.data.get("conversation_id") or "")
            elif event.name == "final":
                self.final = event.data
            elif event.name == "quote":
                self._quote = str(event.data["text"])
            elif event.name == "reading":
                self._reads(event.data)
            elif event.name == "token":
                self._said += str(event.data["text"])

    def _reads(self, data: Json) -> None:
        reading = ReadingEvent(
            **{name: data[name] for name in ReadingEvent.__slots__ if name in data}
        )
        self._spinner.update(text=reading_line(reading))
        if reading.waits_for is None:  # else the bar goes on
            self._since, total = time.monotonic(), reading.seconds or None
            self._bar = ProgressBar(total=total, width=_BAR_COLUMNS, pulse=total is None)

    def __rich__(self) -> RenderableType:
        fit = max(1, self._console.height - 3)
        lines = Text(self.text).wrap(self._console, self._console.width)[-fit:]
        return Group(*lines) if self._words else Group(*lines, self._waiting())

    def _waiting(self) -> RenderableType:
        if self._bar is None:
            return self._spinner
        self._bar.update(time.monotonic() - self._since)
        row = Table.grid(padding=(0, 1))
        row.add_row(self._spinner, self._bar)
        return row


WAITING: Mapping[WaitsFor, str] = {
    "reading": "is still reading",
    "loading": "is being loaded into memory",
    "queue": "answers another question first",
    "silent": "says nothing: its host does not respond; still waiting",
}
"""What a model does that has no first word yet."""


def reading_line(reading: ReadingEvent) -> str:
    """Return a line such as "llama3.2 is reading about 1,300 tokens, about 9 s".

    Rounded, since both are estimates. Of several parts it names the one that is read,
    the first with the time that all take.
    """
    if reading.waits_for is not None:
        return f"{reading.model} {WAITING[reading.waits_for]}"
    which = f"part {reading.part} of {reading.parts}, " if reading.parts > 1 else ""
    line = f"{reading.model} is reading {which}about {float(f'{reading.tokens:.2g}'):,.0f} tokens"
    if reading.seconds is None:
        return line
    seconds = max(1, reading.seconds)
    in_all = reading.parts > 1 and reading.part == 1
    whole = f"; all of it about {duration(reading.parts * seconds)}" if in_all else ""
    return f"{line}, about {duration(seconds)}{whole}"
