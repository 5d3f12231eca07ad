"""Jobs about models: one into Ollama, and the test of one."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict
from typing import Protocol, cast

from app.answer.model_advice import ModelReply
from app.answer.model_test import ModelTester
from app.core.cancel import CancelToken
from app.core.ports import ModelStore
from app.core.types import Job, ModelFindings
from app.jobs.context import JobContext
from app.jobs.kinds import MODEL_TEST
from app.jobs.runner import JobRunner


class PullStep(Protocol):
    """One step of a pull, as the host reports it."""

    @property
    def status(self) -> str:
        """Return the current activity."""
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
    """Handler of `pull`; resumes an interrupted pull."""

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


class ModelTestJob:
    """Handler of `model_test`; one that was cut short asks only what it had not asked."""

    def __init__(self, tester: ModelTester) -> None:
        """Keep what tests models."""
        self._tester = tester

    def __call__(self, context: JobContext) -> Mapping[str, object]:
        """Test the model of the payload and return its name and what was found.

        Raises:
            ModelNotInstalled: The host does not have the model.
            InvalidInput: No model answers here.
            ProviderError: The host failed.
            Cancelled: Paused, cancelled or shut down; replies so far are kept.
        """
        wanted = cast("str | None", context.payload["model"])
        digest = self._tester.choice(wanted)[0].profile.digest
        before = context.previous or {}
        rows = cast(
            "Sequence[Mapping[str, object]]",
            before.get("replies", ()) if before.get("digest") == digest else (),
        )

        def watch(replies: Sequence[ModelReply], total: int) -> None:
            context.progress(len(replies), total, "questions")
            context.publish({"digest": digest, "replies": [asdict(one) for one in replies]})
            context.checkpoint()

        done = [ModelReply(**row) for row in rows]  # type: ignore[arg-type]  # as `watch` wrote them
        return {"digest": digest, **asdict(self._tester.run(wanted, context.cancel, done, watch))}


class ModelTestService:
    """Starts tests of models and returns their findings."""

    def __init__(self, runner: JobRunner, tester: ModelTester, store: ModelStore) -> None:
        """Keep the runner, the tester and the findings."""
        self._runner = runner
        self._tester = tester
        self._store = store

    def start(self, model: str | None) -> Job:
        """Accept a test; the same one that is under way is joined.

        Raises:
            ModelNotInstalled: The host does not have the model.
            InvalidInput: No model answers here.
            DiskFull: The job could not be written down.
        """
        self._tester.choice(model)
        return self._runner.submit(MODEL_TEST, {"model": model}, unit="questions", coalesce=True)

    def results(self) -> Sequence[tuple[str, ModelFindings]]:
        """Return names and findings of all tested models, newest first."""
        return self._store.tested()


def register_model_tests(
    runner: JobRunner, tester: ModelTester, store: ModelStore
) -> ModelTestService:
    """Register `model_test`, one at a time, and return where tests are asked for."""
    runner.register(
        MODEL_TEST, ModelTestJob(tester), lane="network", exclusive=lambda _: MODEL_TEST
    )
    return ModelTestService(runner, tester, store)
