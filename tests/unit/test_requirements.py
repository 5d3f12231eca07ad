"""docs/requirements.md names tests that exist."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGE = (
    (ROOT / "docs" / "requirements.md")
    .read_text(encoding="utf-8")
    .split("## Packages and folders")[0]
)
ROWS = re.findall(r"^\| (?!feature)(.+?) \| `(.+?)::(.+?)` \|$", PAGE, re.MULTILINE)


def test_every_feature_has_a_test() -> None:
    lines = [
        line
        for line in PAGE.splitlines()
        if line.startswith("| ") and not line.startswith("| feature")
    ]
    assert len(ROWS) == len(lines) >= 100
    assert re.findall(r"^## ([A-G])\.", PAGE, re.MULTILINE) == list("ABCDEFG")


@pytest.mark.parametrize("path", sorted({path for _, path, _ in ROWS}))
def test_the_tests_that_are_named_exist(path: str) -> None:
    tree = ast.parse((ROOT / path).read_text(encoding="utf-8"))
    there = {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}
    assert {name for _, own, name in ROWS if own == path} <= there
