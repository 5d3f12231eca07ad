"""Show an answer in progress: quote, time to read, then the model's words."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from typing import cast

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.spinner import Spinner
from rich.table import Table
from rich.text import Text

from app.cli.output import duration
from app.client import Json, ServerEvent
from app.core.types import ReadingEvent, WaitsFor

REFRESH_PER_S = 12
_BAR_COLUMNS = 24


class Provisional:
    """The state of an answer so far; the newest lines that fit on the screen."""

    def __init__(self, console: Console) -> None:
        """Begin with nothing but a spinner.

        Args:
            console: Where it is shown.
        """
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
        """Return the text below the quote; the quote may come first."""
        return self._said.removeprefix(self._quote).strip()

    def live(self) -> Live:
        """Return what shows it until the block ends."""
        return Live(self, console=self._console, transient=True, refresh_per_second=REFRESH_PER_S)

    def follow(self, events: Iterator[ServerEvent]) -> Iterator[ServerEvent]:
        """Yield events as they come, after showing what they say."""
        for event in events:
            if event.name == "quote":
                self._quote = str(event.data["text"])
            elif event.name == "reading":
                self._reads(event.data)
            elif event.name == "token":
                self._said += str(event.data["text"])
            yield event

    def _reads(self, data: Json) -> None:
        seconds = data["seconds"]
        known = float(seconds) if isinstance(seconds, int | float) else None
        part, parts = (int(str(data[name])) for name in ("part", "parts"))
        reading = ReadingEvent(
            str(data["model"]),
            int(str(data["tokens"])),
            known,
            part,
            parts,
            cast("WaitsFor | None", data.get("waits_for")),
        )
        if reading.waits_for is not None:  # the bar goes on
            self._spinner.update(text=reading_line(reading))
            return
        self._since = time.monotonic()
        self._spinner.update(text=reading_line(reading))
        self._bar = ProgressBar(total=known or None, width=_BAR_COLUMNS, pulse=not known)

    def __rich__(self) -> RenderableType:
        """Return the text, and what is waited for while there are no words yet."""
        lines = Text(self.text).wrap(self._console, self._console.width)[
            -max(1, self._console.height - 3) :
        ]
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

    Rounded, since both are estimates. Of several parts it names the one that is read.
    """
    if reading.waits_for is not None:
        return f"{reading.model} {WAITING[reading.waits_for]}"
    which = f"part {reading.part} of {reading.parts}, " if reading.parts > 1 else ""
    line = f"{reading.model} is reading {which}about {float(f'{reading.tokens:.2g}'):,.0f} tokens"
    return line if reading.seconds is None else f"{line}, about {duration(max(1, reading.seconds))}"
