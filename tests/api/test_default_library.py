"""A question that names no library goes where the reader's own documents are, through every door."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from app.storage.files.lock import DirectoryLock
from tests.api.conftest import Site, listening, site
from tests.unit.cli.test_main import run

ASKED = "What is the melting point of copper?"
OWN = ("copper.txt", b"Copper is a soft red metal. Its melting point is 1085 degrees Celsius.")
TIDES = ("tides.txt", b"Tides are the rise and fall of sea levels caused by the Moon.")


def chosen(shop: Site) -> tuple[str, str]:
    listed = shop.client.get("/api/v1/libraries").json()
    return listed["default_library"], listed["default_reason"]


def asked_everywhere(shop: Site) -> set[str]:
    """Return where each kind of question looked."""
    body = {"question": ASKED}
    answers = [
        shop.client.post("/api/v1/query", json=body).json(),
        shop.client.post("/api/v1/query", json=body | {"retrieve_only": True}).json(),
        shop.client.post("/api/v1/chat", json={"message": ASKED}).json(),
        shop.client.get("/api/v1/search", params={"q": ASKED}).json(),
        shop.client.post(
            "/v1/chat/completions",
            json={"model": "documind", "messages": [{"role": "user", "content": ASKED}]},
        ).json()["documind"],
    ]
    return {answer["library"] for answer in answers}


@pytest.mark.parametrize(
    ("samples", "own", "expected"),
    [
        (False, (), "public"),
        (True, (), "papers"),
        (True, ("papers",), "papers"),
        (True, ("public",), "public"),
        (False, ("papers", "public"), "all"),
    ],
)
def test_the_library_that_is_asked(
    samples: bool, own: Sequence[str], expected: str, shop: Site
) -> None:
    if samples:
        assert shop.client.post("/api/v1/samples").status_code == 201
    for library in own:
        assert shop.upload(OWN, library=library)[0] == 201
    assert chosen(shop)[0] == expected
    assert asked_everywhere(shop) == {expected}
    assert shop.client.get("/api/v1/collection/stats").json()["library"] == "public"


def test_the_reason_is_said_and_a_setting_decides(tmp_path: Path) -> None:
    with site(tmp_path, default_library="public") as fixed:
        assert fixed.upload(OWN)[0] == 201
        assert chosen(fixed) == ("public", "DEFAULT_LIBRARY names it")
        assert asked_everywhere(fixed) == {"public"}


def test_named_documents_are_looked_for_in_both_libraries(shop: Site) -> None:
    assert shop.upload(TIDES, library="public")[0] == 201
    _, body = shop.upload(OWN)
    assert isinstance(body, dict)
    doc_id = body["documents"][0]["doc_id"]
    assert chosen(shop) == ("all", "both libraries hold your own documents")
    for named in ({"doc_ids": [doc_id]}, {"filters": {"doc_ids": [doc_id]}}):
        reply = shop.client.post("/api/v1/query", json={"question": ASKED, **named}).json()
        assert (reply["library"], reply["status"]) == ("papers", "answered")
    found = shop.client.get("/api/v1/search", params={"q": ASKED, "doc_ids": [doc_id]}).json()
    assert (found["library"], len(found["hits"])) == ("papers", 1)


def test_a_checked_text_is_held_against_own_documents(shop: Site) -> None:
    assert shop.client.post("/api/v1/samples").status_code == 201
    assert shop.upload(OWN)[0] == 201
    report = shop.client.post(
        "/api/v1/check", json={"text": "The melting point of copper is 1085 degrees Celsius."}
    ).json()
    (sentence,) = report["sentences"]
    assert sentence["verdict"] == "supported"
    assert {one["library"] for one in sentence["citations"]} == {"papers"}


@pytest.fixture
def beside(shop: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    """A site with own documents in papers, which commands find by its lock."""
    assert shop.client.post("/api/v1/samples").status_code == 201
    assert shop.upload(OWN)[0] == 201
    with listening(shop.app, lifespan="off") as url, DirectoryLock([tmp_path / "lock"], url):
        monkeypatch.setenv("DATA_DIR", str(tmp_path / "lock"))
        yield shop


def test_the_command_line_asks_own_documents(
    beside: Site, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for command in (("ask", ASKED), ("ask", ASKED, "--document", "copper.txt"), ("search", ASKED)):
        capsys.readouterr()
        assert run(monkeypatch, *command, "--json") == 0
        assert json.loads(capsys.readouterr().out)["library"] == "papers", command
    assert run(monkeypatch, "ask", "Who wrote the Iliad?") == 0
    assert "Only the library papers was asked" in capsys.readouterr().err
    assert run(monkeypatch, "ask", ASKED, "--library", "nowhere") == 2
    assert "'nowhere'" in capsys.readouterr().err
