"""The replay job: what a stored question would find now."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict

from app.answer.replay import Replayer
from app.jobs.context import JobContext


class ReplayJob:
    """Handler of `replay`; it changes nothing, so it may run any number of times."""

    def __init__(self, replayer: Replayer) -> None:
        """Keep what repeats a search."""
        self._replayer = replayer

    def __call__(self, context: JobContext) -> Mapping[str, object]:
        """Search again for the answer named in the payload and return the comparison.

        Raises:
            NotFound: There is no such answer.
            Conflict: Only hashes of it were kept.
        """
        return asdict(self._replayer.replay(str(context.payload["answer_id"]), context.cancel))
