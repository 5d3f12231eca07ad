"""The pull job: a model into Ollama."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Protocol

from app.core.cancel import CancelToken
from app.jobs.context import JobContext


class PullStep(Protocol):
    """One step of a pull, as the host reports it."""

    @property
    def status(self) -> str:
        """What is being done."""
        ...

    @property
    def completed(self) -> int | None:
        """Bytes of the blob in work that are there."""
        ...

    @property
    def total(self) -> int | None:
        """Bytes of the blob in work."""
        ...


class PullJob:
    """Handler of `pull`. A pull that was cut off goes on where it was."""

    def __init__(self, pull: Callable[[str, CancelToken], Iterable[PullStep]]) -> None:
        """Keep how a model is fetched."""
        self._pull = pull

    def __call__(self, context: JobContext) -> Mapping[str, object]:
        """Fetch the model named in the payload, reporting bytes.

        Raises:
            ModelNotInstalled: The registry has no such model.
            ProviderError: The host failed.
            Cancelled: Asked to stop.
        """
        model = str(context.payload["model"])
        status = ""
        for step in self._pull(model, context.cancel):
            status = step.status
            if step.total:
                context.progress(step.completed or 0, step.total, "bytes")
        return {"model": model, "status": status}
