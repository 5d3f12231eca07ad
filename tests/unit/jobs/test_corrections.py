"""A correction and another reading of the same document at once: neither is lost, the later one is told."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from app.core.corrections import Edit
from app.core.errors import Conflict
from app.core.types import Document
from app.ingest.parsers import DirectParser
from app.jobs.corrections import Corrections
from app.jobs.ingest import raw_again
from app.jobs.runner import is_finished
from tests.fakes.ocr import scanned
from tests.unit.jobs.test_ingest import PAPERS, PROSE, WAIT_S, Shop, eventually


@pytest.fixture
def shop(tmp_path: Path) -> Iterator[Shop]:
    opened = Shop(tmp_path)
    opened.runner.start()
    yield opened
    opened.close()


def corrections_of(shop: Shop) -> Corrections:
    return Corrections(shop.parts, 1_000_000)


def only(shop: Shop) -> Document:
    (document,) = shop.store.catalog.documents(PAPERS)[0]
    return document


def text_of(shop: Shop) -> str:
    return shop.store.catalog.text(PAPERS, only(shop).doc_id).text


def test_a_document_that_ocr_reads_waits_and_its_corrections_outlast_the_next_reading(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    read, go_on = DirectParser.page_words, threading.Event()

    def held(*asked: Any) -> object:
        assert go_on.wait(WAIT_S)
        return read(*asked)

    monkeypatch.setattr(DirectParser, "page_words", held)
    shop.runner.wait(shop.send(report_pdf=scanned(PROSE, 0)).id, WAIT_S)
    corrections, doc_id = corrections_of(shop), only(shop).doc_id
    with pytest.raises(Conflict, match="is being read by OCR: wait until that job is done"):
        corrections.add(PAPERS, doc_id, 1, [Edit(0, 2, "That")], "ann")
    go_on.set()
    assert eventually(shop.runner, "ocr", is_finished).state == "done"
    at = text_of(shop).index("keeper")
    corrected = corrections.add(PAPERS, doc_id, 2, [Edit(at, at + 6, "warden")], "ann")
    assert (corrected.revision, corrected.flags) == (3, ("ocr:1",))
    assert "The warden rows" in text_of(shop)
    assert eventually(shop.runner, "backfill", is_finished).state == "done"
    assert only(shop).embedded == only(shop).chunks
    (again,) = shop.parts.pipeline_of(PAPERS).ingest(PAPERS, [_again(shop)])
    assert (again.status, again.unplaced) == ("replaced", 0)
    assert "The warden rows" in text_of(shop)


def _again(shop: Shop) -> Any:
    document = only(shop)
    path = shop.store.originals.path(document.sha256)
    return replace(raw_again(document, path, ""), again=True)


def test_of_two_at_once_the_second_is_refused_and_the_first_stays(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop.runner.wait(shop.send(a_txt=b"The moon pulls at the sea.").id, WAIT_S)
    corrections, doc_id = corrections_of(shop), only(shop).doc_id
    parse, done = DirectParser.parse, list[Document]()

    def meanwhile(*asked: Any, **named: Any) -> object:
        parsed = parse(*asked, **named)
        if not done:
            monkeypatch.setattr(DirectParser, "parse", parse)
            done.append(corrections.add(PAPERS, doc_id, 1, [Edit(4, 8, "Moon")], "ann"))
        return parsed

    monkeypatch.setattr(DirectParser, "parse", meanwhile)
    with pytest.raises(Conflict, match=r"revision 1 of .* is not the live one, 2 is"):
        corrections.add(PAPERS, doc_id, 1, [Edit(22, 25, "Sea")], "bob")
    assert text_of(shop) == "The Moon pulls at the sea."


def test_a_reading_that_began_before_a_correction_does_not_undo_it(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop.runner.wait(shop.send(a_txt=b"The moon pulls at the sea.").id, WAIT_S)
    corrections, parse = corrections_of(shop), DirectParser.parse

    def meanwhile(*asked: Any, **named: Any) -> object:
        parsed = parse(*asked, **named)
        monkeypatch.setattr(DirectParser, "parse", parse)
        corrections.add(PAPERS, only(shop).doc_id, 1, [Edit(4, 8, "Moon")], "ann")
        return parsed

    monkeypatch.setattr(DirectParser, "parse", meanwhile)
    (outcome,) = shop.parts.pipeline_of(PAPERS).ingest(PAPERS, [_again(shop)])
    assert outcome.code == "superseded"
    assert text_of(shop) == "The Moon pulls at the sea."


def test_a_correction_embeds_only_the_chunks_that_it_changes(shop: Shop) -> None:
    parts = [f"# Year {n}\n\nIn the year {n} the keeper rowed {n} miles. {PROSE}" for n in range(9)]
    shop.runner.wait(shop.send(log_md="\n\n".join(parts).encode()).id, WAIT_S)
    document = only(shop)
    assert document.embedded == document.chunks >= len(parts)
    shop.embedder.embedded.clear()
    at = text_of(shop).index("In the year 4") + len("In the year ")
    edits = [Edit(at, at + 1, "44")]
    corrections_of(shop).add(PAPERS, document.doc_id, document.revision, edits, "ann")
    assert eventually(shop.runner, "backfill", is_finished).state == "done"
    (embedded,) = shop.embedder.embedded
    assert "In the year 44 the keeper" in embedded
    assert only(shop).embedded == only(shop).chunks
    shop.embedder.embedded.clear()
    updated = "\n\n".join([*parts, "# Year 10\n\nThe lamp went out."]).encode()
    shop.runner.wait(shop.send(log_md=updated).id, WAIT_S)
    assert only(shop).embedded == only(shop).chunks == document.chunks + 1
    added, undone = sorted(shop.embedder.embedded)
    assert "The lamp went out." in added
    assert "In the year 4 the keeper" in undone, "another file has not the corrections"
