"""Log a server process: lines for people, or one JSON object a line."""

from __future__ import annotations

import json
import logging
import sys
from datetime import UTC, datetime
from typing import TextIO

_STANDARD = frozenset(logging.LogRecord("", 0, "", 0, "", (), None).__dict__) | {
    "message",
    "asctime",
    "taskName",
}
_CONTROL = {code: f"\\x{code:02x}" for code in (*range(9), *range(11, 32), 127, *range(128, 160))}
"""Everything but tab and line feed: a document's or client's text must not steer a terminal
(docs/facts/libraries.md)."""


class PlainFormatter(logging.Formatter):
    """`time level logger: message`, UTC, control characters made visible."""

    def __init__(self) -> None:
        """Set the layout."""
        super().__init__("%(asctime)s %(levelname)s %(name)s: %(message)s")

    def formatTime(self, record: logging.LogRecord, datefmt: str | None = None) -> str:  # noqa: N802  # the base class's name
        """Return the time as UTC ISO 8601 with milliseconds."""
        del datefmt
        return _utc(record.created)

    def format(self, record: logging.LogRecord) -> str:
        """Return the line."""
        return super().format(record).translate(_CONTROL)


class JsonFormatter(logging.Formatter):
    """Formats a record as one JSON object a line.

    Time, level, logger, message, `extra` fields, and the traceback.
    """

    def format(self, record: logging.LogRecord) -> str:
        """Return the line."""
        fields: dict[str, object] = {
            "time": _utc(record.created),
            "level": record.levelname,
            "logger": record.name,
            "message": record.getMessage(),
        }
        fields.update(
            (name, value) for name, value in record.__dict__.items() if name not in _STANDARD
        )
        if record.exc_info:
            fields["traceback"] = self.formatException(record.exc_info)
        return json.dumps(fields, default=str)


def configure(level: str, *, as_json: bool, stream: TextIO | None = None) -> None:
    """Send every log line of the process to one place.

    Args:
        level: Least severe line shown, like INFO.
        as_json: One JSON object per line.
        stream: Where; None is standard error.
    """
    handler = logging.StreamHandler(stream or sys.stderr)
    handler.setFormatter(JsonFormatter() if as_json else PlainFormatter())
    root = logging.getLogger()
    for old in root.handlers[:]:
        root.removeHandler(old)
    root.addHandler(handler)
    root.setLevel(
        logging.WARNING if level == "INFO" else level
    )  # libraries chat at INFO; ours is what INFO asks for
    logging.getLogger("app").setLevel(level)


def _utc(seconds: float) -> str:
    return (
        datetime.fromtimestamp(seconds, UTC)
        .isoformat(timespec="milliseconds")
        .replace("+00:00", "Z")
    )
