"""Run `documind serve`, or nothing, with a watch on the event loop.

    python -m evaluation.benchmarks.load.watched GAPS_FILE            the server, configured by the
    environment python -m evaluation.benchmarks.load.watched --alone GAPS_FILE    only the watch:
    what this machine does to any process

A gap is how much later than asked a pause of five milliseconds ended. The file gets one line
`seconds gap_ms` for each, on the clock of `time.monotonic`, when the process is told to stop.
"""

from __future__ import annotations

import asyncio
import signal
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

from fastapi import FastAPI

PAUSE_S = 0.005


class Watch:
    """Samples a loop's gaps."""

    def __init__(self) -> None:
        """Start without samples."""
        self._samples: list[tuple[float, float]] = []

    async def run(self) -> None:
        """Sample until cancelled."""
        while True:
            begun = time.perf_counter()
            await asyncio.sleep(PAUSE_S)
            late_ms = max(0.0, (time.perf_counter() - begun - PAUSE_S) * 1000)
            self._samples.append((time.monotonic(), late_ms))

    def write(self, path: Path) -> None:
        """Write the samples."""
        path.write_text("".join(f"{at:.4f} {late:.3f}\n" for at, late in self._samples))


def read(path: Path, begin_s: float, end_s: float) -> list[float]:
    """Return the gaps of a stretch of time, in milliseconds."""
    rows = (line.split() for line in path.read_text().splitlines())
    return [float(late) for at, late in rows if begin_s <= float(at) <= end_s]


def watch_app(app: FastAPI, path: Path) -> None:
    """Sample the loop that serves an app for as long as it does."""
    inner = app.router.lifespan_context

    @asynccontextmanager
    async def watched(served: FastAPI) -> AsyncIterator[object]:
        watch = Watch()
        async with inner(served) as state:
            task = asyncio.create_task(watch.run())
            try:
                yield state
            finally:
                task.cancel()
                watch.write(path)

    app.router.lifespan_context = watched  # type: ignore[assignment]  # FastAPI types it by its own state


async def _alone(path: Path) -> None:
    watch, ended = Watch(), asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, ended.set)
    task = asyncio.create_task(watch.run())
    await ended.wait()
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task
    watch.write(path)


def main() -> None:
    path = Path(sys.argv[-1])
    if "--alone" in sys.argv:
        asyncio.run(_alone(path))
        return
    from app.api.app import create_app  # noqa: PLC0415  # the watch alone needs none of it
    from app.api.serving import (  # noqa: PLC0415
        configure,
        make_server,
    )
    from app.settings import Settings  # noqa: PLC0415

    settings = Settings()
    configure(settings.log_level, as_json=settings.log_json)
    app = create_app(settings)
    watch_app(app, path)
    make_server(app, settings).run()


if __name__ == "__main__":
    main()
