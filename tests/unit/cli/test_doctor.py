"""What `documind doctor` finds on a machine, each fault made for real where that can be done."""

from __future__ import annotations

import os
import resource
import socket
import time
from collections.abc import Iterable
from pathlib import Path

import pytest

from app.cli import doctor
from app.cli.doctor import Diagnosis
from app.client import Json
from app.settings import Settings
from app.storage.files.lock import DirectoryLock
from tests.fakes.ollama_double import DoubleModel, OllamaDouble


def settings(tmp_path: Path, **values: object) -> Settings:
    return Settings(_env_file=None, data_dir=tmp_path / "data", **values)  # type: ignore[arg-type]


def of(findings: Iterable[Diagnosis], what: str) -> list[Diagnosis]:
    return [finding for finding in findings if finding.what == what]


def only(findings: Iterable[Diagnosis], what: str) -> Diagnosis:
    (found,) = of(findings, what)
    return found


def test_every_finding_that_is_not_in_order_has_a_cure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CHROMA_DIRR", "x")
    with socket.socket() as free:  # a server may run on the usual one
        free.bind(("0.0.0.0", 0))
        port = free.getsockname()[1]
    wrong = settings(
        tmp_path,
        llm_provider="openai",
        api_host="0.0.0.0",
        api_port=port,
        otel_exporter_otlp_endpoint="http://127.0.0.1:1",
    )
    found = [*doctor.machine(), *doctor.packages(), *doctor.configuration(wrong)]
    found += doctor.directory(wrong)
    assert {finding.what for finding in found if finding.state == "problem"} == {
        "access",
        "LLM_PROVIDER",
    }
    assert only(found, "CHROMA_DIRR").state == "note"
    assert only(found, "LLM_PROVIDER").cure == "set HOSTED_KEY and HOSTED_MODEL"
    assert all(finding.cure for finding in found if finding.state != "ok")
    assert {
        "Python",
        "chromadb",
        "SQLite",
        "extra bulk",
        "page",
        "disk",
        "port",
        "data directory",
    } <= {f.what for f in found}


def test_a_clock_without_battery_and_too_few_files(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time, "time", lambda: 86_400.0)
    monkeypatch.setattr(resource, "getrlimit", lambda _: (256, 256))
    found = list(doctor.machine())
    assert only(found, "clock").state == "problem"
    assert "1970" in only(found, "clock").detail
    assert only(found, "open files").cure == "run before starting: ulimit -n 4096"


def test_missing_packages_and_extras(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "PACKAGES", ("no-such-package",))
    monkeypatch.setattr(doctor, "EXTRAS", (("odd", ("no_such_parent.module",), "nothing"),))
    found = list(doctor.packages())
    assert only(found, "no-such-package").state == "problem"
    assert only(found, "extra odd").state == "note"


def test_a_folder_that_cannot_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)  # permissions do not stop a test that runs as root
    (found,) = doctor.directory(settings(tmp_path))
    assert (found.what, found.state) == ("data directory", "problem")
    assert "No space left on device" in found.detail


def test_a_taken_port_and_a_catalog_from_the_future(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        chosen = settings(tmp_path, api_port=taken.getsockname()[1])
        chosen.data_dir.mkdir()
        catalog = chosen.data_dir / "catalog.sqlite"
        catalog.touch()
        os.utime(catalog, (time.time() + 86_400,) * 2)
        found = list(doctor.directory(chosen))
    assert only(found, "port").state == "problem"
    assert only(found, "clock").state == "note"


@pytest.mark.parametrize(
    ("point", "kind"), [("/srv/my data", "nfs4"), ("/srv", "ext4"), ("/", "overlay")]
)
def test_the_file_system_is_that_of_the_nearest_mount(
    tmp_path: Path, point: str, kind: str
) -> None:
    mounts = tmp_path / "mounts"
    rows = (
        "overlay / overlay",
        "disk /srv ext4",
        "host:/x /srv/my\\040data nfs4",
        "disk /srv/my2 xfs",
    )
    mounts.write_text("".join(f"{row} rw 0 0\n" for row in rows))
    assert doctor.file_system(Path(point) / "deep" / "down", mounts) == kind
    assert doctor.file_system(Path("/x"), tmp_path / "none") == ""


def test_a_network_file_system_is_a_problem(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(doctor, "file_system", lambda _: "nfs4")
    assert only(doctor.directory(settings(tmp_path)), "file system").state == "problem"


def test_stores_that_were_moved_aside_are_listed_once(tmp_path: Path) -> None:
    chosen = settings(tmp_path, chroma_persist_dir=tmp_path / "elsewhere" / "chroma")
    for folder in (
        chosen.data_dir / "exact.broken.20260101T000000Z",
        tmp_path / "elsewhere" / "chroma.broken.20260101T000000Z",
    ):
        folder.mkdir(parents=True)
    found = list(doctor.broken_copies(chosen))
    assert [finding.state for finding in found] == ["note", "note"]


def test_the_address_is_the_one_of_the_server_that_holds_the_data(tmp_path: Path) -> None:
    chosen = settings(tmp_path, api_port=8001)
    chosen.data_dir.mkdir()
    with DirectoryLock([chosen.data_dir], "http://127.0.0.1:8711"):
        access = only(doctor.configuration(chosen), "access")
    assert access.detail.startswith("listens on http://127.0.0.1:8711,")
    access = only(doctor.configuration(chosen), "access")
    assert access.detail.startswith("listens on 127.0.0.1:8001,")


def test_ollama_missing_models_and_too_large_ones(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with OllamaDouble((DoubleModel("llama3.2:latest"),)) as double:
        chosen = settings(tmp_path, ollama_base_url=double.url)
        found = list(doctor.ollama(chosen))
        assert [finding.state for finding in of(found, "Ollama")] == ["ok", "note"]
        assert "ollama pull nomic-embed-text" in of(found, "Ollama")[1].cure
        assert only(found, "memory").state == "ok"
        monkeypatch.setattr(doctor, "MEMORY_SHARE", 0.0)
        assert only(doctor.ollama(chosen), "memory").state == "note"


def test_no_ollama_is_a_problem_only_where_it_was_asked_for(tmp_path: Path) -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{probe.getsockname()[1]}"
    assert only(doctor.ollama(settings(tmp_path, ollama_base_url=url)), "Ollama").state == "note"
    assert (
        only(
            doctor.ollama(settings(tmp_path, ollama_base_url=url, llm_provider="ollama")), "Ollama"
        ).state
        == "problem"
    )
    assert (
        only(doctor.ollama(settings(tmp_path, ollama_base_url="http://:x")), "Ollama").cure
        == "correct OLLAMA_BASE_URL"
    )
    nobody = settings(tmp_path, llm_provider="extractive", embedding_provider="minilm")
    assert only(doctor.ollama(nobody), "Ollama").detail == "not needed by these settings"


def test_indexes_that_lag_are_named() -> None:
    (found,) = doctor.projections({"papers/chroma": 2, "papers/tantivy": 0})
    assert (found.state, found.detail) == ("note", "papers/chroma has 2 changes to apply")
    (found,) = doctor.projections({"papers/tantivy": 0})
    assert found.state == "ok"


def test_documents_that_are_alike_are_counted() -> None:
    group = {"likeness": "same_bytes", "documents": [{}, {}, {}]}
    (found,) = doctor.alike({"papers": [group, group], "public": []})
    assert (found.what, found.state) == ("papers", "note")
    assert found.detail.startswith("4 of its documents")
    assert found.cure.endswith("documind duplicates --library papers")


def test_a_library_that_waits_says_for_what() -> None:
    row: Json = {
        "library": "papers",
        "documents": 2,
        "chunks": 9,
        "embedded": 7,
        "build": "ready",
        "notices": [],
        "embedding": {"embedder": "minilm:all-MiniLM-L6-v2", "reachable": True, "detail": ""},
    }
    reembedded: Json = {"kind": "reembed", "errors": []}
    other: Json = {"kind": "check", "errors": []}
    refused: Json = {
        "kind": "ingest",
        "errors": [
            "fingerprint_mismatch: library 'papers' was made otherwise, run: documind reembed"
            " --library papers"
        ],
    }
    assert [found.cure for found in doctor.library(row, [reembedded, refused])] == [
        "wait for the backfill: documind status"
    ]
    (found,) = doctor.library(row, [other, refused])
    assert found.cure.endswith("run: documind reembed --library papers")
    assert [found.state for found in doctor.library({**row, "embedded": 9}, [refused])] == ["ok"]
    anew, _ = doctor.library({**row, "embedded": 9, "build": "rebuilding 3 of 9"}, [])
    assert (anew.state, "rebuilding 3 of 9" in anew.detail) == ("note", True)
