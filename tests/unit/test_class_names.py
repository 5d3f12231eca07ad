"""Class names of the package: a reader who searches for one finds one."""

from __future__ import annotations

import ast
from collections import Counter
from pathlib import Path

APP = Path(__file__).parents[2] / "app"


def test_every_class_has_a_name_of_its_own() -> None:
    trees = (ast.parse(path.read_text("utf-8")) for path in APP.rglob("*.py"))
    names = Counter(
        node.name for tree in trees for node in ast.walk(tree) if isinstance(node, ast.ClassDef)
    )
    assert len(names) > 500
    assert [name for name, count in names.items() if count > 1] == []
