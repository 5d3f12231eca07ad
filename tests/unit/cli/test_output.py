from __future__ import annotations

import io
import json

import pytest

from app.cli import output
from app.cli.output import CleanConsole, emit, emit_line, say, table

HOSTILE = "a\x1b]0;owned\x07\x9b31m\x00\u202egpj.exe"
CLEAN = "a]0;owned31mgpj.exe"


@pytest.fixture
def screen(monkeypatch: pytest.MonkeyPatch) -> io.StringIO:
    """What a terminal gets."""
    file = io.StringIO()
    console = CleanConsole(file=file, force_terminal=True, highlight=False, soft_wrap=True)
    monkeypatch.setattr(output, "out", console)
    return file


def test_the_terminal_gets_no_controls_of_others(screen: io.StringIO) -> None:
    say(HOSTILE)
    table(("file",), [(HOSTILE,)])
    lines = screen.getvalue()
    assert lines.count(CLEAN) == 2
    assert not any(sign in lines for sign in ("\x07", "\x9b", "\x00", "\u202e", "\x1b]"))


def test_json_keeps_them_as_escapes(capsys: pytest.CaptureFixture[str]) -> None:
    emit({"name": HOSTILE})
    emit_line({"name": HOSTILE})
    shown = capsys.readouterr().out
    first, _, second = shown.partition("}\n")
    assert [json.loads(one)["name"] for one in (first + "}", second)] == [HOSTILE, HOSTILE]
    assert "\n" in shown
    assert not any(sign in shown for sign in ("\x1b", "\x07", "\x9b", "\x00", "\u202e"))
