"""Scripts as a user runs them: with the packages of `make run`, with a server or without one."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from app.cli.main import run_at_edge
from app.core.errors import InvalidInput
from scripts import (
    report_corpus_scale,
    reports,
    run_query_eval,
    run_retrieval_ablation,
    run_wiki_public_bench,
)
from tests.fakes.runtime_only import ROOT, developers_modules

FOR_DEVELOPERS = {
    "audit",
    "build_release",
    "make_sample_papers",
    "moving_picture",
    "rooms",
    "build_model",
    "screenshots",
}
"""Need packages of developers, and say so in their first lines."""
PARTS = {"__init__", "graph", "probes", "reports", "whole_build"}
"""Imported by scripts, or by the build of a wheel; no script themselves."""
SCRIPTS = sorted(path.stem for path in (ROOT / "scripts").glob("*.py") if path.stem not in PARTS)
NO_SERVER = "http://127.0.0.1:9"


def run(module: str, *arguments: str, developers: bool = False) -> subprocess.CompletedProcess[str]:
    runner = [] if developers else ["tests.fakes.runtime_only"]
    return subprocess.run(
        [sys.executable, "-m", *runner, module, *arguments], cwd=ROOT, capture_output=True, text=True, check=False, timeout=500,
        env={**os.environ, "OLLAMA_BASE_URL": NO_SERVER},
    )  # fmt: skip


@pytest.mark.parametrize("name", SCRIPTS)
def test_help_is_shown_and_nothing_else_is_done(name: str) -> None:
    done = run(f"scripts.{name}", "--help", developers=name in FOR_DEVELOPERS)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("usage:")


def test_every_script_of_users_is_on_its_page() -> None:
    page = (ROOT / "docs" / "scripts.md").read_text(encoding="utf-8")
    makers = {
        "licences",
        "make_token_axes",
        "slim_locks",
        "figures",
        "formats",
        "write_antonyms",
        "write_env_example",
        "write_openapi",
    }
    assert {name for name in SCRIPTS if f"| `{name}" in page} == set(
        SCRIPTS
    ) - FOR_DEVELOPERS - makers


def test_packages_of_developers_are_hidden_from_such_a_run() -> None:
    hidden = developers_modules()
    assert {"pytest", "scipy", "ir_measures", "reportlab", "pyarrow"} <= hidden
    assert not {"numpy", "fastapi", "chromadb", "app"} & hidden


def test_the_offline_ablation_and_the_dashboard_are_made_with_the_packages_of_a_server(
    tmp_path: Path,
) -> None:
    files = [
        f"--report-md={tmp_path}/a.md",
        f"--csv={tmp_path}/a.csv",
        f"--json-out={tmp_path}/a.json",
    ]
    done = run("scripts.run_retrieval_ablation_offline", *files)
    assert done.returncode == 0, done.stderr
    (experiment,) = json.loads((tmp_path / "a.json").read_text())["experiments"]
    assert experiment["questions"] == 70
    assert "| baseline |" in (tmp_path / "a.md").read_text()
    done = run("scripts.refresh_stakeholder_views", f"--html={tmp_path}/page.html")
    assert done.returncode == 0, done.stderr
    page = (tmp_path / "page.html").read_text()
    assert page.count("<svg") == 2
    assert "settings" in page


@pytest.mark.parametrize(
    "script",
    [report_corpus_scale, run_query_eval, run_retrieval_ablation, run_wiki_public_bench],
    ids=lambda s: str(s.__name__),
)
def test_without_a_server_a_script_ends_in_one_line(
    script: object,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
) -> None:
    monkeypatch.setattr(reports, "ROOT", tmp_path)
    monkeypatch.setenv("DATA_DIR", str(tmp_path / "data"))
    monkeypatch.setattr(sys, "argv", ["script", "--base-url", NO_SERVER])
    with pytest.raises(SystemExit) as end:
        run_at_edge(script.main)  # type: ignore[attr-defined]
    said = capsys.readouterr()
    assert end.value.code == 6
    assert said.out == ""
    assert said.err.count("\n") == 1
    assert "documind serve" in said.err


def test_reports_go_to_the_data_directory_where_there_is_no_checkout(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert reports.reports_folder() == ROOT / "evaluation" / "reports"
    monkeypatch.setattr(reports, "ROOT", tmp_path)
    monkeypatch.setenv("DATA_DIR", str(tmp_path / "data"))
    assert reports.reports_folder() == tmp_path / "data" / "reports"


def test_what_cannot_be_written_is_said_before_anything_is_asked(tmp_path: Path) -> None:
    reports.require_writable([tmp_path / "new" / "report.md"])
    assert list((tmp_path / "new").iterdir()) == []
    with pytest.raises(InvalidInput, match="it is a folder"):
        reports.require_writable([tmp_path])
    (tmp_path / "file").write_text("")
    with pytest.raises(InvalidInput, match=r"report\.md' cannot be written"):
        reports.require_writable([tmp_path / "file" / "report.md"])
