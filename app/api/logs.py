"""How log lines look: one line for people, or one JSON object a line for programs."""

from __future__ import annotations

import json
import logging
from datetime import UTC, datetime

_FIELDS = ("request_id", "method", "path", "status", "duration_ms")


class JsonLines(logging.Formatter):
    """One JSON object a line: time, level, logger, message, the access log's fields, and a traceback when there is one."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line."""
        line: dict[str, object] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname,
            "logger": record.name,
            "message": record.getMessage(),
        }
        line |= {name: getattr(record, name) for name in _FIELDS if hasattr(record, name)}
        if record.exc_info:
            line["traceback"] = self.formatException(record.exc_info)
        return json.dumps(line, ensure_ascii=False)


def configure(level: str, *, as_json: bool) -> None:
    """Send everything of this level and above to standard error; replaces what was configured before."""
    handler = logging.StreamHandler()
    handler.setFormatter(JsonLines() if as_json else logging.Formatter("%(asctime)s %(levelname)-7s %(name)s: %(message)s"))
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(logging.WARNING if level == "INFO" else level)  # libraries chat at INFO; ours is what INFO asks for
    logging.getLogger("app").setLevel(level)
