"""Files of earlier releases that nothing reads any more."""

from __future__ import annotations

import re
from contextlib import suppress
from pathlib import Path

from app.index.files.durable import delete_tree
from app.index.files.steps import Steps

_ROWS = re.compile(r"(papers|public)-\d+")
_ROW_FILES = frozenset(
    {"rows.f32", "ids.i64", "header.json", "rows.f32.tmp", "ids.i64.tmp", "header.json.tmp"}
)


def delete_retired(data_dir: Path, steps: Steps) -> None:
    """Remove vectors that earlier releases kept in `exact/`, and nothing else.

    A directory that holds anything else stays.
    """
    folder = data_dir / "exact"
    if not folder.is_dir() or folder.is_symlink():
        return
    for path in folder.iterdir():
        if _ROWS.fullmatch(path.name) and _only_rows(path):
            delete_tree(path, steps, "retired.remove")
    with suppress(OSError), steps.at("retired.remove"):
        folder.rmdir()  # fails when something else is in it


def _only_rows(path: Path) -> bool:
    return (
        path.is_dir()
        and not path.is_symlink()
        and {entry.name for entry in path.iterdir()} <= _ROW_FILES
    )
