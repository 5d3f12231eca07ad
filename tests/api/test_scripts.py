"""Scripts that ask a server, against one."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from app.api.app import create_app
from app.cli.main import run_at_edge
from app.client import DocuMindClient
from scripts import (
    report_corpus_scale,
    run_query_eval,
    run_retrieval_ablation,
    run_wiki_public_bench,
)
from tests.api.conftest import Site, listening, settings_for, site
from tests.fakes.encyclopedia import ARTICLES


@pytest.fixture
def shop_address(tmp_path: Path) -> Iterator[tuple[Site, str]]:
    with site(tmp_path) as opened, listening(opened.app, lifespan="off") as address:
        yield opened, address


def run(monkeypatch: pytest.MonkeyPatch, script: object, *arguments: str) -> int:
    """Run a script as its command line does; returns the exit code."""
    monkeypatch.setattr(sys, "argv", ["script", *arguments])
    try:
        run_at_edge(script.main)  # type: ignore[attr-defined]
    except SystemExit as end:
        return int(end.code or 0)
    return 0


def index(opened: Site, titles: list[str]) -> None:
    files = [(f"{title}.txt", f"{title}\n\n{ARTICLES[title]}".encode()) for title in titles]
    assert opened.upload(*files, library="public")[0] == 201


def reports(folder: Path) -> list[str]:
    return [f"--report-md={folder}/w.md", f"--csv={folder}/w.csv", f"--json-out={folder}/w.json"]


def test_the_encyclopedia_is_asked_about_what_is_indexed(
    shop_address: tuple[Site, str],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
) -> None:
    opened, address = shop_address
    asked = ["--base-url", address, *reports(tmp_path)]
    assert run(monkeypatch, run_wiki_public_bench, *asked) == 4
    said = capsys.readouterr()
    assert (said.out, said.err.count("\n")) == ("", 1)
    assert "documind bulk index FILE --library public" in said.err
    assert not list(tmp_path.glob("w.*"))

    titles = list(ARTICLES)
    index(opened, titles[:30])
    assert run(monkeypatch, run_wiki_public_bench, *asked) == 0
    assert (
        "Skipped, because their article is not indexed: Ayn Rand, Aikido."
        in (tmp_path / "w.md").read_text()
    )

    index(opened, titles[18:])
    assert run(monkeypatch, run_wiki_public_bench, *asked) == 0
    found = json.loads((tmp_path / "w.json").read_text())
    (experiment,) = found["experiments"]
    assert (experiment["questions"], experiment["passages"], experiment["baseline"]) == (
        64,
        32,
        "baseline",
    )
    measures = experiment["arms"][0]["measures"]
    assert measures["grounded"]["mean"] >= 0.9
    assert 0.9 <= measures["nDCG"]["mean"] < 1
    assert "Skipped" not in (tmp_path / "w.md").read_text()


def test_a_report_over_http_says_what_it_was_made_from(
    shop_address: tuple[Site, str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    opened, address = shop_address
    index(opened, list(ARTICLES)[:3])
    assert run(monkeypatch, run_retrieval_ablation, "--base-url", address, *reports(tmp_path)) == 0
    made = (tmp_path / "w.md").read_text().rpartition("Made from ")[2]
    assert made.startswith(
        f"git {opened.client.get('/api/v1/diagnostics').json()['git_sha'][:12]}, settings "
    )
    assert "index public " in made
    assert ", ," not in made


def test_the_scale_of_a_corpus_names_every_store(
    shop_address: tuple[Site, str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    opened, address = shop_address
    index(opened, list(ARTICLES)[:3])
    report = tmp_path / "scale.md"
    assert (
        run(
            monkeypatch,
            report_corpus_scale,
            "--base-url",
            address,
            "--rounds",
            "1",
            "--report-md",
            str(report),
        )
        == 0
    )
    lines = [
        line.strip("| ").split(" | ")
        for line in report.read_text().splitlines()
        if line.startswith("| ")
    ]
    sizes = {
        row[0]: int(row[1].replace(",", ""))
        for row in lines
        if len(row) == 2 and row[1][0].isdigit()
    }
    assert {"catalog", "chroma", "originals", "tantivy"} <= set(sizes)
    assert sizes["originals"] >= sum(len(ARTICLES[title]) for title in list(ARTICLES)[:3])
    assert sizes["all"] == sum(size for store, size in sizes.items() if store != "all")


def test_all_query_cases_pass_on_a_fresh_server_without_a_model(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    settings = settings_for(tmp_path, ollama_base_url="http://127.0.0.1:9")
    settings.data_dir.mkdir(parents=True)
    app = create_app(settings, on_failure=lambda _: None)
    with listening(app) as address:
        assert app.state.edge.startup.wait(60)
        with DocuMindClient(address) as client:
            client.samples()
        code = run(
            monkeypatch, run_query_eval, "--base-url", address, "--csv", str(tmp_path / "cases.csv")
        )
    said = capsys.readouterr().out
    assert code == 0, said
    assert "20 of 20 passed, 0 failed" in said
    assert (tmp_path / "cases.csv").read_text().count(",passed,") == 20
