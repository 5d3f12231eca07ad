"""Read a model's size from hosts and names."""

from __future__ import annotations

import re

_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*([KMBT])", re.IGNORECASE)
_IN_NAME = re.compile(r"(?<![\w.])(?:(\d+)x)?(\d+(?:\.\d+)?)([mb])(?![a-z0-9])", re.IGNORECASE)
_UNITS = {"K": 1e3, "M": 1e6, "B": 1e9, "T": 1e12}


def parameters_of(size: str) -> float | None:
    """Return the parameters in a host's "494.03M" or "7.6B"; None without a number."""
    found = _SIZE.fullmatch(size.strip())
    return float(found[1]) * _UNITS[found[2].upper()] if found else None


def parameters_in_name(name: str) -> float | None:
    """Return the parameters in a name such as `qwen2.5:0.5b` or `mixtral-8x7b`.

    None if the name has none.
    """
    found = _IN_NAME.search(re.sub(r"[:/_-]", " ", name))
    if not found:
        return None
    return int(found[1] or 1) * float(found[2]) * _UNITS[found[3].upper()]
