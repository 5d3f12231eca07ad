"""What a record, a log or a trace tells of what people wrote."""

from __future__ import annotations

import re


def tells(record: str, figure: str) -> bool:
    """True when a figure stands in a record by itself.

    Hashes, identifiers and durations are at random; any four digits come up inside of one.
    """
    return re.search(rf"(?<![\w.]){re.escape(figure)}(?!\w|\.\d)", record) is not None
