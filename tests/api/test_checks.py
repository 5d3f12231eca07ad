"""Checks of texts over HTTP: a file's text, a better source, a second verdict, reports."""

from __future__ import annotations

import io
import json
import os
import re
import select
import signal
import socket
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import docx
import pytest
import requests

from app.check_report import SAID, as_markdown, as_text
from app.core.errors import ProviderTimeout
from app.ingest.sandbox import SandboxedParser
from tests.api.conftest import Site, listening, site
from tests.fakes.files import make_docx, make_pdf
from tests.fakes.generators import FixedModels, ScriptedGenerator

COPPER = "Copper is a soft red metal. Its melting point is 1085 degrees Celsius."


def _checked(shop: Site, **asked: object) -> dict[str, list[dict[str, object]]]:
    reply = shop.client.post("/api/v1/check", json=asked)
    assert reply.status_code == 200, reply.text
    body: dict[str, list[dict[str, object]]] = reply.json()
    return body


HOSTILE = (
    "T](http://evil.invalid) ![p](http://127.0.0.1:9/p.png) <script>x</script>\n\n# H\n- **x** `y`"
)


def test_a_report_shows_what_comes_from_outside_as_it_is() -> None:
    place: dict[str, object] = {
        "title": HOSTILE,
        "library": "papers",
        "doc_id": "1",
        "quote": HOSTILE,
    }
    place |= {"start": 0, "end": 9, "support": 0.5}
    report = {
        "judge": "m",
        "judge_failed": f"no\n- **supported**: {HOSTILE}",
        "counts": dict.fromkeys(SAID, 0) | {"not_found": 1},
        "sentences": [
            {"verdict": "not_found", "text": HOSTILE, "citations": [place], "judged": None}
        ],
    }
    written = as_markdown(report)
    plain = re.sub(r"\\[^\w\s]", "", written)
    assert not re.search(r"[\[\]<!`]|://", plain)
    assert [line[:3] for line in written.splitlines() if line] == [
        "# C",
        "0 s",
        "- *",
        "  >",
        "  >",
    ]
    assert "evil.invalid" in written
    assert len(as_text(report).splitlines()) == 3


@pytest.mark.parametrize(
    ("name", "content", "held"),
    [
        ("a.md", b"# Tin\n\nTin is grey.", "Tin is grey."),
        ("b.docx", make_docx(), ""),
        ("c.pdf", make_pdf(), ""),
    ],
)
def test_a_file_is_read_and_nothing_of_it_stays(
    shop: Site, name: str, content: bytes, held: str
) -> None:
    reply = shop.client.post("/api/v1/check/text", files={"file": (name, content)})
    assert reply.status_code == 200, reply.text
    assert reply.json()["filename"] == name
    assert reply.json()["text"].strip()
    assert held in reply.json()["text"]
    assert not list((shop.settings.data_dir / "uploads").iterdir())


def test_two_files_and_no_document_are_refused(shop: Site) -> None:
    two = [("file", ("a.txt", b"Tin.")), ("file", ("b.txt", b"Zinc."))]
    assert shop.client.post("/api/v1/check/text", files=two).status_code == 422
    reply = shop.client.post("/api/v1/check/text", files={"file": ("x.pdf", b"MZ\x90" + bytes(99))})
    assert (reply.status_code, reply.json()["code"]) == (415, "unsupported_type")


FORM = (
    b"POST /api/v1/check/text HTTP/1.1\r\nHost: %s\r\nContent-Length: %d\r\n"
    b"Content-Type: multipart/form-data; boundary=b\r\n\r\n%s"
)
PART = (
    b'--b\r\nContent-Disposition: form-data; name="file"; filename="a.txt"\r\n\r\nTin.\r\n--b--\r\n'
)


def test_files_that_a_parser_does_not_end_with_hold_no_other_request_up(
    shop: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    with (
        SandboxedParser(replace(shop.settings.ingest(), parse_processes=1)) as parser,
        listening(shop.app, lifespan="off") as url,
        ExitStack() as clients,
    ):
        monkeypatch.setattr(shop.services, "parser", parser)
        parser.parse(b"Tin.", "a.txt")
        os.kill(parser.pids[0], signal.SIGSTOP)
        host = url.removeprefix("http://")
        address = (host.split(":")[0], int(host.split(":")[1]))
        waiting: list[socket.socket] = []
        for _ in range(135):
            client = clients.enter_context(socket.create_connection(address, timeout=60))
            client.sendall(FORM % (host.encode(), len(PART), PART))
            waiting.append(client)
        refused: list[socket.socket] = []
        while len(waiting) > 4 and (ready := select.select(waiting, [], [], 60)[0]):
            assert all(one.recv(12) == b"HTTP/1.1 503" for one in ready)
            refused += ready
            waiting = [one for one in waiting if one not in ready]
        assert (len(refused), len(waiting)) == (131, 4)  # the rest have a place
        with requests.Session() as others:
            assert others.get(f"{url}/api/v1/search", params={"q": "tin"}, timeout=60).ok
            body = {"file": ("b.txt", b"Tin is grey.")}
            sent = others.post(f"{url}/api/v1/ingest?library=papers", files=body, timeout=60)
            assert sent.status_code == 201, sent.text
            for one in waiting:
                one.close()
            read = others.post(f"{url}/api/v1/check/text", files=body, timeout=60)
            assert (read.status_code, read.json()["text"]) == (200, "Tin is grey.")


def test_a_source_that_does_not_hold_gets_a_better_one_and_a_report(shop: Site) -> None:
    assert shop.upload(("copper.txt", COPPER.encode()))[0] == 201
    body = _checked(
        shop, text="Copper is a soft red metal.", against="Zinc is blue.", library="papers"
    )
    (sentence,) = body["sentences"]
    assert sentence["verdict"] == "not_found"
    better = sentence["better"]
    assert isinstance(better, dict)
    assert better["quote"] == "Copper is a soft red metal."
    reports = {
        form: shop.client.post("/api/v1/check/report", params={"format": form}, json=body)
        for form in ("markdown", "html")
    }
    assert "better: Copper is a soft red metal." in reports["markdown"].text
    assert reports["markdown"].headers["content-disposition"] == 'attachment; filename="check.md"'
    assert reports["html"].text.startswith("<!doctype html>")


def test_a_sentence_is_held_against_the_document_that_it_cites_first(shop: Site) -> None:
    for name, title, length in (("a", "Bridges of Avon", 40), ("b", "Bridges of Wye", 60)):
        text = f"# {title}\n\nThe stone bridge is {length} metres long."
        assert shop.upload((f"{name}.md", text.encode()))[0] == 201
    said = "The stone bridge is 60 metres long"
    draft = f"{said} [1]. {said} (Wye, 1999). {said}.\n\n## References\n\n"
    draft += "[1] Bridges of Avon, 1998.\n[2] Wye, A. Bridges of Wye, 1999.\n[3] Fords, 1950."
    body = _checked(shop, text=draft, library="papers")
    verdicts = [(one["verdict"], one["cites"]) for one in body["sentences"]][:3]
    assert verdicts == [("contradicted", [0]), ("supported", [1]), ("supported", [])]
    assert {one["verdict"] for one in body["sentences"][3:]} == {"no_claim"}
    assert [one["state"] for one in body["references"]] == ["found", "found", "not_there"]
    elsewhere = _checked(shop, text=draft, library="public")
    assert elsewhere["references"] == []
    assert not any(one["cites"] for one in elsewhere["sentences"])
    report = shop.client.post("/api/v1/check/report", json=body).text
    assert "**not in the library**: Fords, 1950." in report.replace("\\", "")


def test_a_word_report_has_the_text_with_a_comment_on_each_sentence(shop: Site) -> None:
    assert shop.upload(("copper.txt", COPPER.encode()))[0] == 201
    body = _checked(shop, text="# Metals\n\nCopper is \x01soft. It melts at 20.", library="papers")
    sent = {**body, "judge_failed": "the host said \x03"}
    reply = shop.client.post("/api/v1/check/report", params={"format": "docx"}, json=sent)
    assert reply.headers["content-disposition"] == 'attachment; filename="check.docx"'
    opened = docx.Document(io.BytesIO(reply.content))
    assert opened.paragraphs[0].text.endswith("the reader decided: the host said \ufffd")
    assert [one.text for one in opened.paragraphs[1:]] == [
        "# Metals",
        "Copper is \N{REPLACEMENT CHARACTER}soft. It melts at 20.",
    ]
    comments = [one.text for one in opened.comments]
    assert len(comments) == 2  # a heading claims nothing
    assert '"Copper is a soft red metal.' in comments[0]
    verdicts = [SAID[str(one["verdict"])] for one in body["sentences"][1:]]
    assert [one.split("\n")[0] for one in comments] == verdicts


@pytest.mark.parametrize(
    ("body", "said"), [([], "must be an object"), ({"sentences": 7}, "must be a list")]
)
def test_what_is_no_report_is_refused_in_words(shop: Site, body: object, said: str) -> None:
    reply = shop.client.post("/api/v1/check/report", json=body)
    assert reply.status_code == 422
    assert said in reply.json()["detail"]


def test_a_model_judges_next_to_the_check(tmp_path: Path) -> None:
    with site(tmp_path, FixedModels(ScriptedGenerator("no"))) as opened:
        assert opened.upload(("copper.txt", COPPER.encode()))[0] == 201
        body = _checked(opened, text="Copper is a soft red metal.", library="papers", judge="tiny")
    (sentence,) = body["sentences"]
    assert (sentence["verdict"], sentence["judged"]) == ("supported", "not_supported")
    assert body["judge"]


def test_a_judge_that_fails_is_told_in_the_reply_and_in_reports(tmp_path: Path) -> None:
    model = ScriptedGenerator(ProviderTimeout("the model said nothing for 60 s"))
    with site(tmp_path, FixedModels(model)) as opened:
        assert opened.upload(("copper.txt", COPPER.encode()))[0] == 201
        body = _checked(opened, text="Copper is a soft red metal.", library="papers", judge="tiny")
        report = opened.client.post("/api/v1/check/report", json=body).text
    (sentence,) = body["sentences"]
    assert (sentence["verdict"], sentence["judged"]) == ("supported", None)
    assert str(body["judge_failed"]) == "the model said nothing for 60 s"
    assert f"{model.name} failed: the model said nothing for 60 s" in report


def test_without_a_model_a_judge_is_refused_with_the_reason(shop: Site) -> None:
    reply = shop.client.post("/api/v1/check", json={"text": "Tin is grey.", "judge": "tiny"})
    assert (reply.status_code, reply.json()["code"]) == (422, "invalid_input")


def _events(shop: Site, **asked: object) -> list[tuple[str, dict[str, object]]]:
    reply = shop.client.post("/api/v1/check", json={**asked, "stream": True})
    assert reply.headers["content-type"].startswith("text/event-stream")
    parts = [part.split("\n") for part in reply.text.split("\n\n") if part.startswith("event: ")]
    return [
        (name.removeprefix("event: "), json.loads(data.removeprefix("data: ")))
        for name, data in parts
    ]


def test_a_check_tells_how_far_it_is_and_the_readers_verdicts_before_a_models(
    tmp_path: Path,
) -> None:
    text = "Copper is a soft red metal. Copper melts at 1085 degrees Celsius."
    model = ScriptedGenerator("Yes.", "No.")
    with site(tmp_path, FixedModels(model)) as opened:
        assert opened.upload(("copper.txt", COPPER.encode()))[0] == 201
        alone = _events(opened, text=text, library="papers")
        judged = _events(opened, text=text, library="papers", judge="tiny")
    assert [name for name, _ in alone] == ["progress", "progress", "final"]
    assert [said for name, said in alone if name == "progress"] == [
        {"done": done, "of": 2, "by": "reader"} for done in (0, 1)
    ]
    names = [name for name, _ in judged]
    assert names == ["progress", "progress", "report", "progress", "progress", "final"]
    assert judged[2][1] == alone[-1][1]
    assert judged[-1][1]["judge"] == model.name


def test_a_check_that_is_refused_while_it_streams_ends_with_the_reason(shop: Site) -> None:
    ((name, said), *_) = reversed(_events(shop, text="Tin is grey.", judge="tiny"))
    assert (name, said["code"]) == ("error", "invalid_input")
