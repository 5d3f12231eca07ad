"""Finding or starting Ollama, and fetching its models, before a server is there."""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal
from urllib.parse import urlsplit

from rich.markup import escape
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TransferSpeedColumn

from app.cli.output import err
from app.cli.processes import last_lines, start
from app.cli.up_state import Started, UpState
from app.core.cancel import CancelToken
from app.core.errors import ProviderError

if TYPE_CHECKING:
    from app.providers.ollama import OllamaHost

START_TIMEOUT_S = 60.0
"""Ollama's port answers only after it has looked for graphics cards, which may take half a
minute."""
_ASK_S = 2.0
_POLL_S = 0.1

State = Literal["not needed", "running", "started", "absent"]


@dataclass(frozen=True, slots=True)
class OllamaFound:
    """The state of Ollama; `detail` says why it is absent, `models` what it has."""

    state: State
    detail: str = ""
    models: tuple[str, ...] = ()

    @property
    def there(self) -> bool:
        """True when it answers."""
        return self.state in {"running", "started"}


def find_or_start(host: OllamaHost, started: Started, state: UpState) -> OllamaFound:
    """Return Ollama as found, or start it if its program is on this machine."""
    models = _models(host)
    if models is not None:
        return OllamaFound("started" if started.ollama else "running", models=models)
    if not host.local:
        return OllamaFound("absent", f"{host.name} does not answer; check OLLAMA_BASE_URL")
    program = shutil.which("ollama")
    if program is None:
        return OllamaFound(
            "absent", "there is no program 'ollama' on the PATH; install it from ollama.com"
        )
    address = urlsplit(host.shown_url)
    # Documents never leave this machine through a model of Ollama's own cloud, unless the user
    # allows it.
    environment = {"OLLAMA_HOST": address.netloc, "OLLAMA_NO_CLOUD": "1"}
    process, started.ollama = start([program, "serve"], state.log("ollama"), environment)
    state.save(started)
    deadline = time.monotonic() + START_TIMEOUT_S
    while (models := _models(host)) is None:
        if process.poll() is not None or time.monotonic() > deadline:
            what = (
                f"ended with code {process.returncode}"
                if process.returncode is not None
                else "does not answer"
            )
            log = state.log("ollama")
            return OllamaFound(
                "absent",
                f"'ollama serve' was started and {what}; its log {log} ends:\n{last_lines(log)}",
            )
        time.sleep(_POLL_S)
    return OllamaFound("started", models=models)


def _models(host: OllamaHost) -> tuple[str, ...] | None:
    try:
        return tuple(model.name for model in host.models(timeout_s=_ASK_S))
    except ProviderError:
        return None


def missing(wanted: Iterable[str], installed: Iterable[str]) -> list[str]:
    """Return the models that are not installed."""
    from app.providers.ollama_listing import same_model  # noqa: PLC0415  # only where a host was found

    have = list(installed)
    return [name for name in wanted if not any(same_model(name, other) for other in have)]


def pull(host: OllamaHost, model: str, *, quiet: bool) -> None:
    """Fetch a model with progress on standard error; continue an interrupted fetch.

    Raises:
        ModelNotInstalled: The registry has no such model.
        ProviderError: The host failed, or cannot reach the registry.
    """
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        DownloadColumn(),
        TransferSpeedColumn(),
    )
    with Progress(
        *columns, console=err, transient=True, disable=quiet or not err.is_terminal
    ) as bar:
        task = bar.add_task(escape(model), total=None)
        for step in host.pull(model, CancelToken()):
            bar.update(
                task,
                description=escape(f"{model}: {step.status}"),
                total=step.total,
                completed=step.completed or 0,
            )
