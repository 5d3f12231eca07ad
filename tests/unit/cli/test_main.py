"""What holds for every command: help with an example that works, a row in the docs, one meaning per exit code."""

from __future__ import annotations

import io
import re
import shlex
from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
import typer
from rich.console import Console

from app.cli import evaluate, output
from app.cli import main as entry
from app.client import FileToSend, Json
from app.core import errors
from app.evaluation.arms import AxesBody
from app.evaluation.cases import CaseBody
from app.settings import Settings

ROOT = Path(__file__).parents[3]


def commands(
    group: Any, path: tuple[str, ...] = ()
) -> Iterator[tuple[tuple[str, ...], Any]]:  # click's own types
    """Yield every command that does something, with the words that lead to it."""
    for name, command in group.commands.items():
        if hasattr(command, "commands"):
            yield from commands(command, (*path, name))
        elif not command.hidden:  # another name of one that is shown
            yield (*path, name), command


COMMANDS = list(commands(typer.main.get_command(entry.app)))


def run(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> int:
    """Run `documind` in this process and return its exit code."""
    monkeypatch.setattr("sys.argv", ["documind", *arguments])
    try:
        entry.main()
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else 1
    return 0


def example_of(command: Any) -> list[str]:  # click's own types
    """Return the words of the example in a command's help."""
    lines = [
        line.strip() for line in command.help.splitlines() if line.strip().startswith("Example: ")
    ]
    assert len(lines) == 1, command.name
    return shlex.split(lines[0].removeprefix("Example: ").partition(" > ")[0])


@pytest.mark.parametrize(
    ("path", "command"), COMMANDS, ids=[" ".join(path) for path, _ in COMMANDS]
)
def test_every_example_is_a_command_line_that_parses(path: tuple[str, ...], command: Any) -> None:
    program, *words = example_of(command)
    assert program == "documind"
    assert tuple(words[: len(path)]) == path
    context = command.make_context(" ".join(path), words[len(path) :])
    assert context.params is not None


@pytest.mark.parametrize("path", [path for path, _ in COMMANDS], ids=" ".join)
def test_every_command_has_a_row_in_the_docs(path: tuple[str, ...]) -> None:
    rows = (ROOT / "docs/cli.md").read_text("utf-8").splitlines()
    name = " ".join(path)
    assert any(row.startswith((f"| `documind {name}`", f"| `documind {name} ")) for row in rows), (
        f"docs/cli.md lacks {name!r}"
    )


def test_add_is_ingest_and_a_command_that_is_not_there_names_the_nearest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("ingest", "add"):
        assert run(monkeypatch, name, str(tmp_path / "nothing.md")) == 2
        assert "there is no file or folder" in capsys.readouterr().err
    for mistyped, nearest in (("ad", "add"), ("serch", "search"), ("lst", "list")):
        assert run(monkeypatch, mistyped) == 2
        assert f"Did you mean '{nearest}'" in capsys.readouterr().err


def test_every_option_says_what_it_does() -> None:
    for path, command in COMMANDS:
        for parameter in command.params:
            assert parameter.name == "help" or parameter.help, (path, parameter.name)


def options() -> Iterator[tuple[str, Any]]:
    """Yield every option and optional argument that takes a value, with its command."""
    for path, command in COMMANDS:
        for parameter in command.params:
            if not parameter.required and not getattr(parameter, "is_flag", False):
                yield " ".join(path), parameter


def test_every_option_that_takes_a_value_says_its_default() -> None:
    known = {name.upper() for name in Settings.model_fields}
    for path, parameter in options():
        named = re.search(r"\[default: (.+)\]$", parameter.help)
        if parameter.default is None or parameter.default == "":
            assert named, f"{path} {parameter.name}: say [default: ...], typer shows none for None"
            assert set(re.findall(r"\b[A-Z]{2,}_[A-Z_]+\b", named[1])) <= known, (
                path,
                parameter.name,
            )
        else:
            assert parameter.show_default is not False, (path, parameter.name)
            assert not named, f"{path} {parameter.name}: typer shows the default itself"


UNITS = {"passages", "hits", "processes", "articles", "chunks", "questions", "port", "number"}


def test_every_number_says_what_it_counts() -> None:
    numbers = [
        (path, parameter)
        for path, parameter in options()
        if parameter.bare_type() in {"int", "float"}
    ]
    assert len(numbers) >= 10
    for path, parameter in numbers:
        assert set(re.findall(r"[a-z]+", parameter.help)) & UNITS, (
            f"{path} {parameter.name}: {parameter.help}"
        )


def test_every_error_has_one_documented_exit_code() -> None:
    documented = (ROOT / "docs/cli.md").read_text("utf-8")
    assert [
        entry.exit_code(error("x"))
        for error in (errors.NotFound, errors.Locked, errors.ModelNotInstalled)
    ] == [4, 5, 6]
    for error in errors.error_classes().values():
        code = entry.exit_code(error("x"))
        assert code != 0
        assert f"| {code} |" in documented, error


def test_a_wrong_command_line_is_2(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(monkeypatch, "dance") == 2
    assert run(monkeypatch, "ask") == 2
    assert run(monkeypatch, "search", "x", "--limit", "many") == 2
    assert "--limit" in capsys.readouterr().err


def test_a_wrong_setting_is_2_and_named(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setenv("DATA_DIR", str(tmp_path))
    monkeypatch.setenv("CHUNK_SIZE", "lots")
    assert run(monkeypatch, "status") == 2
    assert "CHUNK_SIZE" in capsys.readouterr().err


def test_an_interrupt_is_130(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(arguments: list[str] | None, *, standalone_mode: bool) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(entry, "app", interrupted)
    assert run(monkeypatch, "status") == 130


def test_an_overlay_of_prompts_is_checked(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert run(monkeypatch, "prompt", "show") == 0
    shown = capsys.readouterr().out
    assert (
        "I don't have enough information in the provided documents to answer that." in shown
        or "{refusal}" in shown
    )
    assert "== general / papers" in shown
    assert run(monkeypatch, "prompt", "check", "--json") == 0
    assert capsys.readouterr().out.strip() == "[]"
    (tmp_path / "rewrite.yml").write_text(
        "parts: {instruction: hi, mood: cheerful}\ntemperature: 0\nmax_tokens: 5\n"
    )
    assert run(monkeypatch, "prompt", "check", str(tmp_path)) == 1
    assert "mood" in capsys.readouterr().err
    monkeypatch.setenv("PROMPTS_DIR", str(tmp_path))
    assert run(monkeypatch, "prompt", "show") == 2
    assert "mood" in capsys.readouterr().err


def test_every_evaluation_in_the_docs_parses_and_every_axis_has_a_row() -> None:
    page = (ROOT / "docs/evaluation.md").read_text("utf-8")
    lines = [
        line.strip() for line in page.splitlines() if line.startswith("    documind evaluate ")
    ]
    assert len(lines) >= 6
    commands = dict(COMMANDS)
    for line in lines:
        _, *words = shlex.split(line)
        context = commands[tuple(words[:2])].make_context("documind", words[2:])
        for axis in context.params.get("axis") or ():
            evaluate.read_axis(axis)
    for field in fields(AxesBody):
        assert f"`{field.name}`" in page
    for field in fields(CaseBody):
        assert f"`{field.name}`" in page


@pytest.mark.parametrize(
    "command", [("serve", "--port", "0"), ("fsck",), ("rebuild",), ("status",)], ids=" ".join
)
def test_a_data_directory_that_cannot_be_used_is_one_line_and_1(
    command: tuple[str, ...],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("DATA_DIR", str(tmp_path / "file" / "data"))
    assert run(monkeypatch, *command) == 1
    said = capsys.readouterr().err.strip()
    assert said.startswith("error: ")
    assert "make the data directory writable" in said
    assert "\n" not in said


@pytest.mark.parametrize(("words", "waits"), [((), "true"), (("--no-wait",), "text")])
def test_ingest_waits_for_vectors_unless_told_not_to(
    words: tuple[str, ...], waits: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    asked: list[str] = []

    class Client:
        def ingest(
            self, files: Sequence[FileToSend], library: str, wait: str, *, sync_folder: str
        ) -> Json:
            assert (len(files), library, sync_folder) == (1, "papers", "")
            asked.append(wait)
            return {
                "documents": [
                    {"filename": "a.txt", "status": "indexed", "doc_id": "d", "receipt": None}
                ]
            }

    monkeypatch.setattr("app.cli.library.connect", lambda _: nullcontext(Client()))
    (tmp_path / "a.txt").write_text("Copper melts.")
    assert run(monkeypatch, "ingest", str(tmp_path / "a.txt"), *words) == 0
    assert asked == [waits]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["ask", "x", "--library", "foo"], "'foo' must be public, papers or all"),
        (["ask", "x", "--mode", "foo"], "'foo' must be general"),
        (["list", "--library", "foo"], "'foo' must be public or papers"),
        (["clear", "--library", "foo"], "'foo' must be public or papers"),
        (["keys", "add", "me", "--scope", "all"], "'all' must be read, ask, write or admin"),
        (["search", "x", "--limit", "99"], "must be at most 50"),
        (["ask", "x", "--limit", "many"], "must be a whole number"),
        (["up", "--port", "abc"], "must be a whole number"),
        (["search"], "Missing argument 'query'"),
    ],
)
def test_a_mistake_is_one_sentence_and_exit_code_2(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    arguments: list[str],
    said: str,
) -> None:
    assert run(monkeypatch, *arguments) == 2
    shown = capsys.readouterr().err
    assert said in " ".join(shown.split())
    assert "Input should" not in shown
    assert shown.startswith("error: ")


@pytest.mark.parametrize("is_terminal", [True, False])
def test_what_is_to_be_copied_stands_on_one_line(
    monkeypatch: pytest.MonkeyPatch, is_terminal: bool
) -> None:
    shown = Console(file=io.StringIO(), width=60, force_terminal=is_terminal, no_color=True)
    monkeypatch.setattr(output, "out", shown)
    row = ("a7096f19a792cba7", "travel-policy-of-the-company.docx", "A long title, " * 9)
    output.table(("id", "file", "title"), [row], whole=(0, 1))
    text = shown.file.getvalue()  # type: ignore[attr-defined]
    lines = [line for line in text.splitlines() if row[0] in line]
    assert len(lines) == 1
    assert row[1] in lines[0]
    assert is_terminal or row[2].strip() in lines[0]
