"""Scripts that fill libraries: papers of a list from arXiv, and the samples as folders for `documind sync`."""

from __future__ import annotations

import hashlib
import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import parse_qs, unquote, urlsplit

import pytest
from typer.testing import CliRunner

from app.cli.main import app, run_at_edge
from app.client import DocuMindClient
from app.core.errors import Busy, InvalidInput, ProviderUnreachable
from app.models.arxiv import ID
from app.storage.files.lock import DirectoryLock
from scripts import bulk_ingest_arxiv as arxiv
from scripts import materialize_institutional_corpus as corpus
from tests.api.conftest import Site, listening, site
from tests.fakes.arxiv_double import ArxivDouble
from tests.fakes.files import make_pdf
from tests.fakes.http_double import Asked, Canned

IDS = ["2210.03629", "1706.03762v5", "cs/0112017"]


class PapersDouble(ArxivDouble):
    """Serves a readable PDF that names its id, so that no two are the same."""

    def default(self, asked: Asked) -> Canned:
        path = unquote(urlsplit(asked.path).path)
        self.pdf = make_pdf(
            [f"The paper {path} says that copper melts at 1085 degrees. It was measured twice."]
        )
        return super().default(asked)


@pytest.fixture
def served(tmp_path: Path) -> Iterator[tuple[Site, str, PapersDouble]]:
    with (
        PapersDouble() as double,
        site(tmp_path / "server", arxiv_base_url=double.url) as opened,
        listening(opened.app, lifespan="off") as address,
    ):
        yield opened, address, double


def run(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> int:
    monkeypatch.setattr(sys, "argv", ["script", *arguments])
    monkeypatch.setattr(arxiv, "INTERVAL_S", 0.0)
    try:
        run_at_edge(arxiv.main)
    except SystemExit as end:
        return int(end.code or 0)
    return 0


def test_a_list_is_fetched_and_goes_on_where_it_stopped(
    served: tuple[Site, str, PapersDouble],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
) -> None:
    opened, address, double = served
    seeds = tmp_path / "list.txt"
    seeds.write_text(
        "# papers\n\n2210.03629 ReAct  # read\nno-id here\n1706.03762v5\n1706.03762v5\n"
    )
    asked = ["--list", str(seeds), "--base-url", address]
    assert run(monkeypatch, *asked) == 0
    said = capsys.readouterr()
    assert "line 4 of 'list.txt' is left out: 'no-id' is no arXiv id" in said.err
    assert said.out.splitlines()[-1] == "2 added, 0 were here, 0 failed"

    seeds.write_text("\n".join([*IDS, "9999.99999"]))
    asked_before = len(double.asked)
    assert run(monkeypatch, *asked) == 3
    said = capsys.readouterr()
    assert said.out.splitlines()[-1] == "1 added, 2 were here, 1 failed"
    assert "9999.99999: failed: arXiv has no paper '9999.99999'" in said.out
    wanted = {
        parse_qs(urlsplit(one.path).query).get("id_list", [""])[0]
        for one in double.asked[asked_before:]
    }
    assert wanted - {""} == {"cs/0112017", "9999.99999"}
    rows = opened.client.get("/api/v1/papers", params={"library": "papers"}).json()["documents"]
    assert sorted(row["source_key"] for row in rows) == ["1706.03762", "2210.03629", "cs/0112017"]


def test_papers_are_three_seconds_apart_and_patience_is_kept(
    served: tuple[Site, str, PapersDouble],
) -> None:
    _, address, double = served
    waits: list[float] = []
    with DocuMindClient(address) as client:
        double.queue(Canned(b"slow down", 429, "text/plain"))
        summary = arxiv.ingest(client, IDS, lambda s: waits.append(float(s)))
        assert (summary.added, summary.failed) == (IDS, [])
        assert waits == [arxiv.RETRY_S, arxiv.INTERVAL_S, arxiv.INTERVAL_S]
        assert arxiv.INTERVAL_S == 3.0
        for _ in range(arxiv.TRIES):
            double.queue(Canned(b"slow down", 429, "text/plain"))
        with pytest.raises(Busy):
            arxiv.fetch(client, "2004.04906", waits.append)


def test_a_host_that_is_away_ends_the_run_with_what_to_do(tmp_path: Path) -> None:
    with (
        site(tmp_path) as opened,
        listening(opened.app, lifespan="off") as address,
        DocuMindClient(address) as client,
        pytest.raises(
            ProviderUnreachable, match="0 added, 0 were here, 0 failed, run it again to go on"
        ),
    ):
        arxiv.ingest(client, IDS, lambda _: None)


def test_the_list_that_comes_along_is_well_formed(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    ids = list(arxiv.read_list(arxiv.SEEDS))
    assert capsys.readouterr().err == ""
    assert len(set(ids)) == len(ids) >= 20
    assert all(ID.fullmatch(one) for one in ids)
    text = arxiv.SEEDS.read_text(encoding="utf-8")
    assert "Not fetched here" in text
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    assert all(re.match(r"\S+ \S.+", line) for line in lines)  # each with its title
    with pytest.raises(InvalidInput, match="one arXiv id a line"):
        list(arxiv.read_list(tmp_path / "none"))


def test_the_samples_become_folders_that_a_library_follows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "corpus"
    monkeypatch.setattr(sys, "argv", ["script", "--out", str(out)])
    corpus.main()
    assert f"documind sync {out / 'papers'} --library papers" in capsys.readouterr().out
    entries = json.loads((out / "manifest.json").read_text())["documents"]
    titles = {entry["file"]: entry["title"] for entry in entries}
    assert titles["lighthouse.txt"] == "Lighthouse"
    assert (
        titles["reading-aloud-corpus.md"]
        == "A Corpus of Read Questions for Evaluating Local Assistants"
    )
    for entry in entries:
        copied = out / entry["library"] / entry["file"]
        assert hashlib.sha256(copied.read_bytes()).hexdigest() == entry["sha256"]
    with (
        site(tmp_path / "server") as opened,
        listening(opened.app, lifespan="off") as address,
        DirectoryLock([tmp_path / "lock"], address),
    ):
        monkeypatch.setenv("DATA_DIR", str(tmp_path / "lock"))
        for library in ("public", "papers"):
            done = CliRunner().invoke(
                app, ["sync", str(out / library), "--library", library, "--json"]
            )
            assert done.exit_code == 0, done.output
            expected = {
                (entry["source_key"], entry["title"])
                for entry in entries
                if entry["library"] == library
            }
            rows = opened.client.get(
                "/api/v1/papers", params={"library": library, "limit": 500}
            ).json()["documents"]
            assert {(row["source_key"], row["title"]) for row in rows} == expected

    with pytest.raises(SystemExit) as end:
        run_at_edge(corpus.main)
    assert end.value.code == 1
    assert "is not empty" in capsys.readouterr().err
