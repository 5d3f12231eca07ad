"""An answer's pieces under the limits of a request: stop texts and the most tokens."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass, field

from tests.fakes.ollama_double.engine import Piece

Fields = dict[str, object]


@dataclass
class Spoken:
    """What was said so far, and why it ended; the end token counts, though it has no piece."""

    tokens: int = 0
    reason: str = "stop"
    pieces: list[Piece] = field(default_factory=list)


def limited(
    said: Generator[Piece, None, str], stops: Sequence[str], most: int, spoken: Spoken
) -> Iterator[Piece]:
    """Yield pieces until a stop text, the limit or the end; a stop text is not said."""
    held = ""
    while True:
        if spoken.tokens >= most:
            spoken.reason = "length"
            break
        try:
            piece = next(said)
        except StopIteration as end:
            spoken.reason = end.value
            spoken.tokens += spoken.reason == "stop"
            break
        spoken.tokens += len(piece.entries)
        text = held + piece.text
        if (found := _first(text, stops)) is not None:
            if found:
                yield Piece(text[:found], piece.entries)
            said.close()
            return
        held = text[len(text) - _open_end(text, stops) :]
        shown = text[: len(text) - len(held)]
        if shown:
            yield Piece(shown, piece.entries)
    said.close()
    if held:
        yield Piece(held)


def _first(text: str, stops: Sequence[str]) -> int | None:
    places = [at for stop in stops if (at := text.find(stop)) >= 0]
    return min(places) if places else None


def _open_end(text: str, stops: Sequence[str]) -> int:
    """Characters at the end that may begin a stop text."""
    longest = max((len(stop) - 1 for stop in stops), default=0)
    return next(
        (
            size
            for size in range(min(longest, len(text)), 0, -1)
            if any(s.startswith(text[-size:]) for s in stops)
        ),
        0,
    )


def entries_of(piece: Piece, top: int) -> list[Fields]:
    """The log-probabilities of a line."""

    def shown(token: str, logprob: float) -> Fields:
        return {"token": token, "logprob": logprob, "bytes": list(token.encode())}

    rows = [(shown(entry.token, entry.logprob), entry.top) for entry in piece.entries]
    return [
        {**row, "top_logprobs": [shown(*other) for other in others]} if top else row
        for row, others in rows
    ]
