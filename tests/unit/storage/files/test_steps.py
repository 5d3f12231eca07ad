"""Every write in app/index is a named step, and the n-th one can end the process."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

from app.storage.files.durable import CRASH_STATUS, Steps

INDEX = Path(__file__).resolve().parents[4] / "app" / "storage"

METHODS = {
    "commit", "rollback_to", "fsync", "fdatasync", "rename", "replace", "unlink", "rmtree", "rmdir", "upsert", "delete_collection",
    "get_or_create_collection", "PersistentClient", "delete_documents_by_term", "delete_documents_by_query",
    "delete_all_documents", "wait_merging_threads", "truncate", "write_bytes", "write_text", "copyfile", "copytree", "move",
}  # fmt: skip
"""Calls that change what is on disk. `write` is not one: bytes count once they are synced or
renamed, and those are."""

IN_A_CHILD = INDEX / "vectors" / "chroma_child.py"
"""The process that owns Chroma may end at any moment; its callers name the steps."""

ELSEWHERE = INDEX / "engine.py"
"""What it changes is on the disks of the search engine."""

WRITE_PRAGMAS = ("wal_checkpoint", "VACUUM")


def is_step(node: ast.AST) -> bool:
    return isinstance(node, (ast.With, ast.AsyncWith)) and any(
        isinstance(item.context_expr, ast.Call)
        and isinstance(item.context_expr.func, ast.Attribute)
        and item.context_expr.func.attr == "at"
        and ast.unparse(item.context_expr.func.value).rstrip(")").endswith("steps")
        for item in node.items
    )


def writes(call: ast.Call) -> bool:
    """Whether a call changes what is on disk."""
    function = call.func
    if not isinstance(function, ast.Attribute):
        return False
    receiver = ast.unparse(function.value)
    if (
        function.attr == "replace"
    ):  # str.replace takes two values, dataclasses.replace is a function; Path.replace takes one
        return len(call.args) == 1 and not call.keywords
    if function.attr == "commit":
        return receiver.endswith(("transaction", "_writer", "writer"))
    if function.attr == "delete":
        return receiver.endswith("collection")
    if function.attr == "upsert":
        return receiver.endswith("collection")
    if function.attr == "execute":
        return any(pragma in ast.unparse(call) for pragma in WRITE_PRAGMAS)
    return function.attr in METHODS


def unnamed(source: str) -> list[int]:
    """Lines of write calls that no `with ...steps.at(...)` surrounds."""
    found: list[int] = []

    def visit(node: ast.AST, inside: bool) -> None:
        if isinstance(node, ast.Call) and writes(node) and not inside:
            found.append(node.lineno)
        for child in ast.iter_child_nodes(node):
            visit(child, inside or is_step(node))

    visit(ast.parse(source), inside=False)
    return found


@pytest.mark.parametrize(
    "module",
    sorted({*INDEX.rglob("*.py")} - {IN_A_CHILD, ELSEWHERE}),
    ids=lambda path: str(path.relative_to(INDEX)),
)
def test_every_write_is_a_named_step(module: Path) -> None:
    assert unnamed(module.read_text()) == []


@pytest.mark.parametrize(
    "line",
    [
        "os.fsync(handle)",
        "path.unlink()",
        "temporary.replace(target)",
        "path.rename(target)",
        "shutil.rmtree(path)",
        "transaction.commit()",
        "self._writer.commit()",
        "self._writer.wait_merging_threads()",
        "collection.upsert(ids=[])",
        "collection.delete(ids=[])",
        "cursor.execute('VACUUM')",
    ],
)
def test_the_check_sees_a_bare_write_and_accepts_a_named_one(line: str) -> None:
    assert unnamed(line) == [1]
    assert unnamed(f"with steps.at('x'):\n    {line}") == []
    assert unnamed(f"with a, self._steps.at('x'):\n    {line}") == []


def test_transactions_are_committed_in_one_place_only() -> None:
    """Once for each kind of database; what no document depends on has a transaction of its own in PostgreSQL."""
    implicit = [
        path.name
        for path in INDEX.rglob("*.py")
        if path.name != "postgres.py"
        and ".begin()" in path.read_text().replace("connection.begin()", "", 1)
    ]
    assert implicit == []


def test_steps_are_counted_before_and_after() -> None:
    steps = Steps()
    with steps.at("a"):
        assert steps.reached == 1
    with pytest.raises(ValueError, match="no"), steps.at("b"):
        raise ValueError("no")
    assert (steps.reached, steps.names) == (3, {"a": 1, "b": 1})


def test_an_armed_step_ends_the_process_without_cleaning_up() -> None:
    program = (
        "from app.storage.files.durable import Steps\n"
        "steps = Steps(crash_at=2)\n"
        "try:\n"
        "    with steps.at('write'): print('written', flush=True)\n"
        "finally: print('cleaned up', flush=True)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        cwd=INDEX.parents[1],
        check=False,
    )
    assert (done.returncode, done.stdout) == (CRASH_STATUS, "written\n")
