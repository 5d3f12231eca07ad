"""What a terminal shows of an answer on its way, event by event."""

from __future__ import annotations

import io
from collections.abc import Sequence

import pytest
from rich.console import Console

from app.cli import ask
from app.cli.connection import Provisional, reading_line
from app.client import ServerEvent
from app.core.types import ReadingEvent

QUOTE = ServerEvent("quote", {"text": "Bees dance [2].", "sentences": [], "leads": True})
READING = ServerEvent(
    "reading", {"model": "ollama:tiny", "tokens": 1312, "seconds": 9.2, "part": 1, "parts": 1}
)


def _after(*events: ServerEvent) -> tuple[Provisional, str]:
    console = Console(
        file=io.StringIO(),
        width=100,
        height=20,
        force_terminal=True,
        color_system="standard",
        highlight=False,
    )
    shown = Provisional(console)
    shown.follow(events)
    with console.capture() as printed:
        console.print(shown)
    return shown, printed.get()


def _said(*texts: str) -> Sequence[ServerEvent]:
    return [ServerEvent("token", {"text": text}) for text in texts]


def test_the_quote_stands_above_what_is_waited_for() -> None:
    _, printed = _after(QUOTE, READING)
    quote, _, waiting = printed.partition("Bees dance [2].")
    assert quote == ""
    assert "ollama:tiny is reading about 1,300 tokens, about 9 s" in waiting
    assert "\u2501" in waiting


def test_a_quote_that_leads_the_tokens_is_shown_once_and_the_words_end_the_waiting() -> None:
    _, printed = _after(QUOTE, *_said("Bees dance [2].\n\n"), READING)
    assert printed.count("Bees dance") == 1
    assert "is reading" in printed
    shown, printed = _after(
        QUOTE, *_said("Bees dance [2].\n\n"), READING, *_said("They show", " the way [2].")
    )
    assert printed.count("Bees dance") == 1
    assert "is reading" not in printed
    assert shown.text == "Bees dance [2].\n\nThey show the way [2]."


def test_the_words_follow_a_quote_that_does_not_lead() -> None:
    shown, _ = _after(QUOTE, READING, *_said("They show the way [2]."))
    assert shown.text == "Bees dance [2].\n\nThey show the way [2]."


def test_nothing_but_a_spinner_before_anything_is_known() -> None:
    shown, printed = _after(ServerEvent("meta", {}))
    assert (shown.text, "reading" in printed) == ("", True)


@pytest.mark.parametrize(
    ("tokens", "seconds", "line"),
    [
        (348, None, "m is reading about 350 tokens"),
        (348, 0.2, "m is reading about 350 tokens, about 1 s"),
        (20_512, 150.0, "m is reading about 21,000 tokens, about 2 min"),
    ],
)
def test_estimates_are_said_in_round_numbers(tokens: int, seconds: float | None, line: str) -> None:
    assert reading_line(ReadingEvent("m", tokens, seconds)) == line


def test_the_first_of_several_parts_says_how_many_and_how_long() -> None:
    said = [reading_line(ReadingEvent("m", 900, 9.0, part, 20)) for part in (1, 2)]
    assert said == [
        "m is reading part 1 of 20, about 900 tokens, about 9 s; all of it about 3 min",
        "m is reading part 2 of 20, about 900 tokens, about 9 s",
    ]


@pytest.mark.parametrize(
    ("leads", "text", "shown"),
    [
        (
            True,
            "Bees dance [2].\n\nThey show [2].",
            ["From your documents", "Bees dance [2].", "In the words of m", "They show [2]."],
        ),
        (True, "Bees dance [2].", ["Bees dance [2]."]),
        (False, "They show [2].", ["They show [2]."]),
    ],
)
def test_an_answer_says_what_is_quoted_and_whose_the_words_are(
    leads: bool, text: str, shown: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    quote = {"text": "Bees dance [2].", "sentences": [], "leads": leads}
    ask.show_answer(
        {"answer": text, "quote": quote, "generator": "m", "notices": [], "sources": []}
    )
    assert [line.strip() for line in capsys.readouterr().out.splitlines() if line.strip()] == shown
