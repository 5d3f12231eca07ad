"""Drop from locks what another lock has already: `python -m scripts.slim_locks BASE LOCK...`.

An extra, or what developers need, is installed on top of the runtime: `make lock` resolves each with
all that it stands on, and keeps in its file what it adds.
"""

from __future__ import annotations

import argparse
import re
from pathlib import Path

_ENTRY = re.compile(r"^(?=[a-z0-9])", re.MULTILINE | re.IGNORECASE)


def entries(text: str) -> list[str]:
    """Return the requirements of a lock, each with its hashes."""
    return [one for one in _ENTRY.split(text) if one.strip()]


def added(base: str, lock: str) -> str:
    """Return a lock without the requirements that stand in another."""
    known = {one.rstrip() for one in entries(base)}
    return "".join(f"{one.rstrip()}\n" for one in entries(lock) if one.rstrip() not in known)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("base", type=Path)
    parser.add_argument("locks", type=Path, nargs="+")
    given = parser.parse_args()
    base = given.base.read_text("utf-8")
    for path in given.locks:
        path.write_text(added(base, path.read_text("utf-8")), "utf-8")


if __name__ == "__main__":
    main()
