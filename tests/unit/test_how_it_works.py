"""docs/how-it-works.md names the function of every formula: the functions are there."""

from __future__ import annotations

import ast
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "how-it-works.md"


def defined() -> set[str]:
    """Return `module.name`, `Class.method` and `Class` of everything that the code defines."""
    names: set[str] = set()
    for path in (ROOT / "app").rglob("*.py"):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.FunctionDef | ast.ClassDef):
                names |= {node.name, f"{path.stem}.{node.name}"}
            if isinstance(node, ast.ClassDef):
                names |= {
                    f"{node.name}.{part.name}"
                    for part in node.body
                    if isinstance(part, ast.FunctionDef)
                }
    return names


def test_every_formula_names_functions_and_files_that_exist() -> None:
    rows = [
        line
        for line in PAGE.read_text(encoding="utf-8").splitlines()
        if line.startswith("| ") and " | function |" not in line
    ]
    named = [name for row in rows for name in re.findall(r"`([^`]+)`", row.rsplit("|", 2)[1])]
    assert len(named) > 30
    known = defined()
    assert [
        name for name in named if not ((ROOT / name).exists() if "/" in name else name in known)
    ] == []


def test_every_path_that_is_named_exists() -> None:
    paths = re.findall(r"`((?:app|evaluation|docs)/[\w./-]+)`", PAGE.read_text(encoding="utf-8"))
    assert paths
    assert [path for path in paths if not (ROOT / path).exists()] == []
