"""What takes something away in storage says how far: hide, delete or purge."""

from __future__ import annotations

import ast
from pathlib import Path

import app.storage as package

OTHER_VERBS = {
    "blank", "clear", "discard", "disown", "drop", "erase", "forget", "prune", "remove", "retire",
    "scrub", "sweep", "unset", "wipe",
}  # fmt: skip
WHOLE_COLLECTION = "drop"
"""The VectorStore port's verb for a collection, as stores of vectors name it."""


def test_storage_takes_away_with_three_verbs() -> None:
    folder = Path(package.__path__[0])
    names = [
        (path.relative_to(folder).as_posix(), node.name)
        for path in sorted(folder.rglob("*.py"))
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.FunctionDef)
    ]
    assert any(name == WHOLE_COLLECTION for _, name in names)
    assert [
        (path, name)
        for path, name in names
        if name.strip("_").split("_")[0] in OTHER_VERBS and name != WHOLE_COLLECTION
    ] == []
