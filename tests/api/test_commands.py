"""Commands against a real server: what they print, as JSON and for people, and how they end."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from app.cli.output import SOME_FAILED
from app.core.cancel import CancelToken
from app.core.errors import ModelNotInstalled
from app.core.types import REFUSAL, ModelProfile
from app.evaluation.cases import load
from app.models.ollama import PullProgress
from app.storage.files.lock import DirectoryLock
from tests.api.conftest import LIBRARY, Site, listening, site
from tests.fakes.generators import FixedModels, ScriptedGenerator
from tests.fakes.ollama_double import OllamaDouble
from tests.unit.cli.test_main import run

QUESTION = "What is the melting point of copper?"
UNSAID = "What do lions eat for breakfast?"


@dataclass
class Shell:
    """A command line beside a server that owns the data."""

    site: Site
    run: Callable[..., tuple[int, str, str]]

    def json(self, *arguments: str) -> object:
        code, printed, complaint = self.run(*arguments, "--json")
        assert code == 0, complaint
        found: object = json.loads(printed)
        return found


def _pull(model: str, cancel: CancelToken) -> Iterable[PullProgress]:
    if model == "nope":
        raise ModelNotInstalled(f"the registry has no model {model!r}")
    yield PullProgress("pulling", 100, 200)
    yield PullProgress("success", 200, 200)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Site, Path]]:
    directory = tmp_path_factory.mktemp("shell")
    with site(directory / "server", pull=_pull) as opened:
        status, _ = opened.upload(*((name, text.encode()) for name, text in LIBRARY.items()))
        assert status == 201
        with listening(opened.app, lifespan="off") as url, DirectoryLock([directory / "lock"], url):
            yield opened, directory / "lock"


@pytest.fixture
def shell(
    server: tuple[Site, Path], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Shell:
    opened, lock = server
    monkeypatch.setenv("DATA_DIR", str(lock))

    def execute(*arguments: str) -> tuple[int, str, str]:
        capsys.readouterr()
        code = run(monkeypatch, *arguments)
        printed = capsys.readouterr()
        return code, printed.out, printed.err

    return Shell(opened, execute)


def test_ask_and_search(shell: Shell) -> None:
    answer = shell.json("ask", QUESTION, "--library", "papers")
    assert isinstance(answer, dict)
    assert answer["status"] == "answered"
    code, printed, _ = shell.run("ask", QUESTION, "--library", "papers")
    assert code == 0
    assert "1085" in printed
    hits = shell.json("search", "tides", "--library", "papers", "--limit", "1")
    assert isinstance(hits, dict)
    assert [hit["title"] for hit in hits["hits"]] == ["Tides"]
    _, _, hint = shell.run("ask", "Who wrote the Iliad?", "--library", "papers")
    assert "Only the library papers was asked" in hint
    _, _, nothing = shell.run("ask", "Who wrote the Iliad?", "--library", "all")
    assert "was asked" not in nothing
    _, refused, _ = shell.run("ask", UNSAID, "--library", "papers")
    below = refused.partition("These places come nearest:")[2]
    assert "- \u201cLions live in prides and sleep twenty hours.\u201d (Lions)" in below
    record = shell.json("ask", UNSAID, "--library", "papers")
    assert isinstance(record, dict)
    assert (record["status"], record["sources"]) == ("abstained", [])
    assert "Lions" in {near["title"] for near in record["nearest"]}
    code, _, complaint = shell.run("ask", QUESTION, "--mode", "poetry")
    assert (code, "'poetry' must be general" in complaint) == (2, True)


def test_one_document_is_summarised_by_name_without_a_question(shell: Shell) -> None:
    asked = ("ask", "--mode", "summary", "--library", "papers", "--document", "Tides")
    answer = shell.json(*asked)
    assert isinstance(answer, dict)
    assert (answer["status"], answer["query_mode"]) == ("answered", "summary")
    assert {source["title"] for source in answer["sources"]} == {"Tides"}
    assert all(sentence["citations"] for sentence in answer["sentences"])
    code, _, complaint = shell.run(*asked[:-1], "No such thing")
    assert (code, "No such thing" in complaint) == (4, True)
    assert shell.run("ask")[0] == 2


def test_tags_are_given_renamed_and_asked(shell: Shell) -> None:
    first, second, *_ = LIBRARY
    code, printed, _ = shell.run("tag", "add", "Draft", first, second)
    assert code == 0
    assert printed.count("Draft") == 2
    assert shell.run("tag", "remove", "draft", second)[0] == 0
    assert shell.json("tag", "list") == {"tags": [{"tag": "Draft", "documents": 1}]}
    listed = shell.json("list", "--library", "papers", "--tag", "draft")
    assert isinstance(listed, list)
    assert [row["filename"] for row in listed] == [first]
    for options, filename in ((("--tag", "draft"), first), (("--where", "n=1.."), None)):
        hits = shell.json("search", "copper melting lions", *options)
        assert isinstance(hits, dict)
        found = {hit["doc_id"] for hit in hits["hits"]}
        assert found == ({listed[0]["doc_id"]} if filename else set())
    asked = shell.json("ask", QUESTION, "--library", "papers", "--where", "rating=5", "--tag", "x")
    assert isinstance(asked, dict)
    assert asked["status"] == "abstained"
    assert shell.run("ask", QUESTION, "--where", "rating")[0] == 2
    assert shell.run("ask", QUESTION, "--collection", "none")[0] == 4
    assert shell.json("tag", "rename", "draft", "final") == {"tag": "final", "documents": 1}
    assert shell.run("tag", "delete", "final")[0] == 0
    assert shell.run("tag", "delete", "final")[0] == 4


def test_models_are_listed_and_pulled(shell: Shell) -> None:
    code, printed, _ = shell.run("models", "list")
    assert code == 0
    assert "llama3.2:latest" in printed
    assert "2.0 GB" in printed
    listed = shell.json("models", "list")
    assert isinstance(listed, dict)
    assert listed["loaded"] == ["llama3.2:latest"]
    assert shell.run("models", "pull", "nomic-embed-text")[0] == 0
    pulled = shell.json("models", "pull", "nomic-embed-text")
    assert isinstance(pulled, dict)
    assert pulled["result"] == {"model": "nomic-embed-text", "status": "success"}
    code, _, complaint = shell.run("models", "pull", "nope")
    assert (code, "no model 'nope'" in complaint) == (6, True)


def test_a_model_is_tested_and_status_and_doctor_say_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    models = FixedModels(
        ScriptedGenerator(*[REFUSAL] * 176),
        profile=ModelProfile("fake:scripted", "fake", "digest", 5e8),
    )
    with (
        site(tmp_path / "server", models) as opened,
        listening(opened.app, lifespan="off") as url,
        DirectoryLock([tmp_path / "lock"], url),
    ):
        monkeypatch.setenv("DATA_DIR", str(tmp_path / "lock"))

        def printed(*arguments: str) -> str:
            capsys.readouterr()
            run(monkeypatch, *arguments)
            return capsys.readouterr().out

        assert "run: documind models test" in printed("doctor")
        told = printed("models", "test")
        line = r"fake:scripted: 4 of 24 with compact, first word after \d+\.\d s; quotes alone "
        assert re.search(line, told)
        assert re.search(r"compact +4 +0 +4 +20 +0 +0 ", told)
        assert "its words stand below the quotes" in told
        assert re.search(f"models tested: {line}", printed("status"))
        assert re.search(f"models tested: {line}", printed("doctor"))
        assert (
            json.loads(printed("models", "test", "--json"))["counts"]["compact"]["refused_wrongly"]
            == 20
        )


def test_feedback_becomes_an_answer_set_and_answers_can_be_forgotten(
    shell: Shell, tmp_path: Path
) -> None:
    client = shell.site.client
    asked = client.post("/api/v1/query", json={"question": QUESTION, "library": "papers"}).json()
    client.post("/api/v1/query", json={"question": "Where do lions live?", "library": "papers"})
    client.post(f"/api/v1/answers/{asked['answer_id']}/feedback", json={"thumbs": "up"})
    code, printed, _ = shell.run("feedback")
    assert code == 0
    target = tmp_path / "feedback.jsonl"
    target.write_text(printed, "utf-8")
    (case,) = load(target)
    assert case.question == QUESTION
    assert list(case.expected_docs) == [asked["sources"][0]["doc_id"]]
    gone = shell.json("forget", "--yes", "--conversations")
    assert isinstance(gone, dict)
    assert gone["answers"] >= 2
    assert client.get(f"/api/v1/answers/{asked['answer_id']}").status_code == 404
    assert shell.run("feedback")[1] == ""


def test_documents_by_name_and_what_is_not_there(shell: Shell, tmp_path: Path) -> None:
    zinc = tmp_path / "zinc.txt"
    zinc.write_text("Zinc is a bluish metal.")
    (row,) = _rows(shell.json("ingest", str(zinc)))
    assert row["status"] == "indexed"
    assert "zinc.txt" in {
        str(found["source_key"]) for found in _rows(shell.json("list", "--library", "papers"))
    }
    assert shell.run("delete", "zinc.txt")[0] == 0
    assert shell.run("delete", "zinc.txt")[0] == 4
    assert shell.run("ingest", str(tmp_path / "nothing.pdf"))[0] == 2
    (tmp_path / "x.pdf").write_bytes(b"MZ\x90\x00" + bytes(500))
    assert shell.run("ingest", str(zinc), str(tmp_path / "x.pdf"))[0] == 3
    status = shell.json("status")
    assert isinstance(status, dict)
    assert {row["library"] for row in status["libraries"]["libraries"]} == {"public", "papers"}


def _rows(found: object) -> list[dict[str, object]]:
    assert isinstance(found, list)
    return found


def test_searches_are_evaluated_over_ones_own_documents(shell: Shell, tmp_path: Path) -> None:
    axes = ("--axis", "fusion=rrf, relative_score", "--axis", "dense_weight=0.3,0.5")
    code, printed, complaint = shell.run(
        "evaluate", "ablation", "-l", "papers", *axes, "--out", str(tmp_path / "made")
    )
    assert code == 0, complaint
    assert "fusion=relative_score" in printed
    assert "cannot tell it" in printed
    assert sorted(path.name for path in (tmp_path / "made").iterdir()) == [
        "report.csv",
        "report.html",
        "report.json",
        "report.md",
    ]
    report = json.loads((tmp_path / "made" / "report.json").read_text("utf-8"))
    assert report["experiments"][0]["questions"] > 0
    found = shell.json("evaluate", "retrieval", "-l", "papers", "--questions", "2")
    assert isinstance(found, dict)
    assert found["experiments"][0]["questions"] == 2


def test_every_collection_below_a_folder_is_measured(shell: Shell, tmp_path: Path) -> None:
    for name in ("one", "deeper/two"):
        folder = tmp_path / "given" / name
        folder.mkdir(parents=True)
        (folder / "mill.md").write_text("# The mill\n\nThe mill was built by Ada Pell in 1802.\n")
        (folder / "tide.md").write_text("# The tide\n\nThe tide turns at noon near the pier.\n")
        asked = [{"id": "q", "question": "Who built the mill?", "file": "mill.md"}]
        (folder / "questions.json").write_text(json.dumps(asked))
    (tmp_path / "given" / "deeper" / "corpus.py").write_text("a program beside them\n")
    (tmp_path / "given" / "scans").mkdir()
    (tmp_path / "given" / "scans" / "letter.pdf").write_bytes(b"%PDF")
    made = tmp_path / "made"
    code, printed, complaint = shell.run(
        "evaluate", "retrieval", "--collections", str(tmp_path / "given"), "--out", str(made)
    )
    assert code == 0, complaint
    assert printed.count("1 questions, 2 documents") == 2
    (over,) = [line for line in complaint.splitlines() if line.startswith("passed over")]
    assert over.startswith("passed over: scans: no collection; expected corpus")
    report = json.loads((made / "deeper" / "two" / "report.json").read_text("utf-8"))
    assert report["experiments"][0]["arms"][0]["measures"]["nDCG@10"]["mean"] == 1.0
    assert (made / "one" / "qrels").read_text("utf-8") == "q 0 mill.md 1\n"
    run = (made / "one" / f"{report['experiments'][0]['arms'][0]['name']}.run").read_text("utf-8")
    first, *others = [line.split() for line in run.splitlines()]
    assert first[:4] == ["q", "Q0", "mill.md", "1"]
    assert {len(line) for line in (first, *others)} == {6}
    code, _, complaint = shell.run("evaluate", "retrieval", "--collections", str(made))
    assert (code, "no folder" in complaint) == (2, True)


def test_answers_are_evaluated_by_a_set(shell: Shell, tmp_path: Path) -> None:
    cases = tmp_path / "set.jsonl"
    cases.write_text(
        json.dumps({"question": QUESTION, "library": "papers", "expected_substrings": ["1085"]})
        + "\n"
    )
    code, printed, complaint = shell.run("evaluate", "answers", str(cases))
    assert code == 0, complaint
    assert "answer accuracy 1.000" in printed
    cases.write_text('{"question": "?"}')
    assert shell.run("evaluate", "answers", str(cases))[0] == 2


def test_a_wrong_axis_is_named(shell: Shell) -> None:
    for axis, said in (
        ("speed=1", "axis 'speed'"),
        ("fusion=best", "'best'"),
        ("top_k=", "no values"),
        ("top_k=ten", "should be a valid integer"),
    ):
        code, _, complaint = shell.run("evaluate", "ablation", "--axis", axis)
        assert (code, said in complaint) == (2, True), complaint


def test_doctor_beside_a_server(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    with OllamaDouble() as double:
        monkeypatch.setenv("OLLAMA_BASE_URL", double.url)
        found = {row["what"]: row for row in _rows(shell.json("doctor"))}
        names = ("Ollama", "server", "papers", "public", "data directory")
        assert {name: found[name]["state"] for name in names} == dict.fromkeys(names, "ok")
        index = found["index"]  # Chroma follows ten seconds after the site was filled
        assert index["state"] == "ok" or (index["state"], "to apply" in str(index["detail"])) == (
            "note",
            True,
        )
        assert "port" not in found  # the server has it
        code, printed, _ = shell.run("doctor", "--quiet")
        assert code == 0
        assert "0 problems" in printed
        assert "Python:" not in printed
    monkeypatch.setenv("LLM_PROVIDER", "ollama")
    monkeypatch.setenv("OLLAMA_BASE_URL", "http://127.0.0.1:9")
    code, printed, _ = shell.run("doctor")
    assert code == 1
    assert "cure: start it: documind up" in printed


def test_doctor_names_a_wrong_key(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setenv("DATA_DIR", str(tmp_path / "lock"))
    with (
        site(tmp_path / "server", api_key="right") as opened,
        listening(opened.app, lifespan="off") as url,
        DirectoryLock([tmp_path / "lock"], url),
    ):
        monkeypatch.setenv("API_KEY", "wrong")
        assert run(monkeypatch, "doctor") == 1
        assert "set API_KEY as the server has it" in capsys.readouterr().out
        monkeypatch.setenv("API_KEY", "right")
        run(monkeypatch, "doctor")
        assert "server: version" in capsys.readouterr().out


DRAFT = (
    "# Copper\n\nCopper is a soft red metal. Its melting point is 1185 degrees Celsius."
    " <b>Bananas</b> ripen in Ecuador.\n"
)


def test_check_reads_a_file_and_reports_in_three_forms(shell: Shell, tmp_path: Path) -> None:
    draft = tmp_path / "draft.md"
    draft.write_text(DRAFT)
    code, printed, complaint = shell.run(
        "check", str(draft), "--library", "papers", "--format", "json"
    )
    assert code == 0, complaint
    report = json.loads(printed)
    assert [one["verdict"] for one in report["sentences"]] == [
        "no_claim",
        "supported",
        "contradicted",
        "not_found",
    ]
    best = report["sentences"][1]["citations"][0]
    assert (best["quote"], best["library"], best["title"]) == (
        "Copper is a soft red metal.",
        "papers",
        "Copper",
    )
    code, printed, _ = shell.run("check", str(draft), "--library", "papers")
    assert code == 0
    assert "1 supported, 0 unsure, 1 contradicted" in printed
    assert (
        "- **supported**: Copper is a soft red metal.\n  > Copper is a soft red metal.\n  >"
        " (Copper, papers, " in printed
    )
    code, printed, _ = shell.run("check", str(draft), "--library", "papers", "--format", "html")
    assert code == 0
    assert "<td>contradicted</td>" in printed
    assert "<b>" not in printed


def test_check_of_a_folder_is_a_table_of_its_drafts(shell: Shell, tmp_path: Path) -> None:
    drafts = tmp_path / "drafts"
    (drafts / "second").mkdir(parents=True)
    (drafts / "one.md").write_text(DRAFT)
    (drafts / "second" / "two.txt").write_text("Copper is a soft red metal.")
    (drafts / "three.bin").write_bytes(bytes(range(256)))
    code, printed, complaint = shell.run("check", str(drafts), "--library", "papers")
    assert code == SOME_FAILED
    head, one, two = printed.splitlines()
    assert head.split()[:3] == ["file", "supported", "unsure"]
    assert one.split() == ["one.md", "1", "0", "1", "1", "1", "0"]
    assert two.split() == ["second/two.txt", "1", "0", "0", "0", "0", "0"]
    assert "three.bin: " in complaint
    code, printed, _ = shell.run("check", str(drafts), "-l", "papers", "--format", "json")
    found = json.loads(printed)
    assert code == SOME_FAILED
    assert sorted(found["reports"]) == ["one.md", "second/two.txt"]
    assert list(found["failed"]) == ["three.bin"]
    assert shell.run("check", str(drafts), "--format", "docx")[0] == 2


def test_check_against_a_file_searches_nothing(shell: Shell, tmp_path: Path) -> None:
    draft, source = tmp_path / "draft.txt", tmp_path / "source.txt"
    draft.write_text("Bananas ripen in Ecuador.")
    source.write_text("In the north, bananas ripen in Ecuador. Copper is green.")
    code, printed, complaint = shell.run(
        "check", str(draft), "--against", str(source), "--format", "json"
    )
    assert code == 0, complaint
    (sentence,) = json.loads(printed)["sentences"]
    assert (sentence["verdict"], sentence["citations"][0]["doc_id"]) == ("supported", None)


def test_a_command_whose_own_server_cannot_open_the_data_says_why_and_has_its_exit_code(
    tmp_path: Path,
) -> None:
    (tmp_path / "catalog.sqlite3").write_bytes(b"no database " * 1000)
    done = subprocess.run(
        [sys.executable, "-m", "app", "status"],
        env=os.environ | {"DATA_DIR": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1, done  # not that of a signal
    assert "error: the catalog" in done.stderr
    assert "documind restore" in done.stderr
