"""Log lines: one per event, harmless to a terminal, complete for a program."""

from __future__ import annotations

import io
import json
import logging
from collections.abc import Iterator

import pytest

from app.api.serving import configure


@pytest.fixture(autouse=True)
def _restored() -> Iterator[None]:
    root, ours = logging.getLogger(), logging.getLogger("app")
    handlers, levels = root.handlers[:], (root.level, ours.level)
    yield
    root.handlers[:] = handlers
    root.setLevel(levels[0])
    ours.setLevel(levels[1])


def test_plain_lines_show_control_characters_instead_of_obeying_them() -> None:
    out = io.StringIO()
    configure("INFO", as_json=False, stream=out)
    logging.getLogger("app.x").info("name %s", "\x1b[31mred\x9b\r")
    logging.getLogger("app.x").debug("hidden")
    logging.getLogger("chatty_library").info("hidden too")
    line = out.getvalue()
    assert line.endswith("Z INFO app.x: name \\x1b[31mred\\x9b\\x0d\n")
    assert "hidden" not in line


def test_json_lines_carry_extras_and_tracebacks() -> None:
    out = io.StringIO()
    configure("DEBUG", as_json=True, stream=out)
    try:
        raise ValueError("why")
    except ValueError:
        logging.getLogger("app.x").exception(
            "it failed\nbadly", extra={"request_id": "r1", "size": 3}
        )
    [line] = out.getvalue().splitlines()
    found = json.loads(line)
    assert (found["level"], found["logger"], found["message"]) == (
        "ERROR",
        "app.x",
        "it failed\nbadly",
    )
    assert (found["request_id"], found["size"]) == ("r1", 3)
    assert "ValueError: why" in found["traceback"]
    assert set(found) == {"time", "level", "logger", "message", "request_id", "size", "traceback"}
