"""Locks of extras hold what the runtime's lock has not."""

from __future__ import annotations

from pathlib import Path

import pytest

from scripts.slim_locks import added, entries

LOCKS = Path(__file__).resolve().parents[2] / "locks"


def test_a_requirement_with_the_same_hashes_is_dropped_and_another_version_stays() -> None:
    base = "a==1 \\\n    --hash=sha256:11\nb==2 \\\n    --hash=sha256:22\n"
    lock = "a==1 \\\n    --hash=sha256:11\nb==3 \\\n    --hash=sha256:33\nc==1 \\\n    --hash=sha256:44\n"
    assert added(base, lock) == lock[lock.index("b==3") :]


@pytest.mark.parametrize("name", ["dev", "bulk", "large", "ocr", "otel", "shared"])
def test_nothing_is_locked_twice(name: str) -> None:
    names = [
        {one.split("==")[0] for one in entries((LOCKS / f"{lock}.lock").read_text("utf-8"))}
        for lock in ("runtime", name)
    ]
    assert names[1]
    assert not names[0] & names[1]
