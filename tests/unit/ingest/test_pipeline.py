from __future__ import annotations

from pathlib import Path

import pytest

from app.core.cancel import CancelToken
from app.core.errors import Cancelled, DiskFull
from app.core.ids import document_id
from app.core.types import IngestOutcome, JobFile, Library, RawDocument
from app.ingest.options import IngestOptions
from app.ingest.parsers import DirectParser
from app.ingest.pipeline import IngestPipeline
from tests.fakes import files
from tests.fakes.embedders import HashEmbedder
from tests.stores import OpenWriter

PAPERS = Library.PAPERS


def raw(name: str, content: bytes | Path) -> RawDocument:
    return RawDocument(name, name, content)


@pytest.fixture
def writer() -> OpenWriter:
    return OpenWriter()


@pytest.fixture
def pipeline(writer: OpenWriter) -> IngestPipeline:
    options = IngestOptions()
    return IngestPipeline(DirectParser(options), writer, HashEmbedder(), options)


def _flags(writer: OpenWriter, key: str) -> tuple[str, ...]:
    document = writer.current(PAPERS, key)
    assert document is not None
    return document.flags


def statuses(outcomes: list[IngestOutcome]) -> list[str]:
    return [outcome.status for outcome in outcomes]


def test_a_paper_becomes_a_described_document_with_chunks_and_a_receipt(
    pipeline: IngestPipeline, writer: OpenWriter
) -> None:
    [outcome] = pipeline.ingest(PAPERS, [raw("paper.pdf", files.make_pdf())])
    draft = writer.current(PAPERS, "paper.pdf")
    assert draft is not None
    text, chunks = writer.text(PAPERS, "paper.pdf"), writer.chunks.values()
    assert outcome.status == "indexed"
    assert outcome.doc_id == draft.doc_id == document_id(PAPERS, "paper.pdf")
    assert draft.title == "Sleepwalking Lattices: A Study of Slow Crystals"
    assert draft.authors == ("Maria Okonkwo", "Jan de Vries")
    assert (draft.type, draft.has_original) == ("pdf", True)
    assert writer.original_path(draft.sha256).exists()
    receipt = outcome.receipt
    assert receipt is not None
    assert receipt.pages == 2
    assert receipt.characters == len(text)
    assert receipt.covered_characters == len("".join(text.split()))
    assert receipt.chunks == draft.chunks == len(chunks)
    assert {chunk.section for chunk in chunks} >= {
        "abstract",
        "introduction",
        "methodology",
        "results",
        "conclusion",
        "references",
    }
    assert receipt.vectors == 0


def test_outcomes_come_in_order_and_a_bad_file_never_sinks_the_others(
    pipeline: IngestPipeline, writer: OpenWriter
) -> None:
    outcomes = pipeline.ingest(
        PAPERS,
        [
            raw("a.txt", b"first text"),
            raw("b.pdf", files.make_scan()),
            raw("c.exe", b"MZ" + bytes(99)),
            raw("d.md", b"# Last"),
        ],
    )
    assert statuses(outcomes) == ["indexed", "failed", "failed", "indexed"]
    assert [outcome.code for outcome in outcomes] == [
        None,
        "no_text_layer",
        "unsupported_type",
        None,
    ]
    assert outcomes[1].doc_id is None
    assert "OCR" in (outcomes[1].reason or "")
    assert len(writer.opened.originals.names()) == 2  # a refused file leaves nothing behind


def test_the_same_bytes_again_are_unchanged_and_new_bytes_replace(
    pipeline: IngestPipeline, writer: OpenWriter
) -> None:
    pipeline.ingest(PAPERS, [raw("a.txt", b"first text")])
    assert statuses(pipeline.ingest(PAPERS, [raw("a.txt", b"first text")])) == ["unchanged"]
    [replaced] = pipeline.ingest(PAPERS, [raw("a.txt", b"second text")])
    assert replaced.status == "replaced"
    assert [document.revision for document in writer.documents(PAPERS)] == [2]
    assert [chunk.text for chunk in writer.chunks.values()] == ["second text"]


def test_what_another_release_has_read_is_read_again(
    pipeline: IngestPipeline, writer: OpenWriter, monkeypatch: pytest.MonkeyPatch
) -> None:
    document = raw("a.txt", b"first text")
    pipeline.ingest(PAPERS, [document])
    monkeypatch.setattr("app.ingest.pipeline.PARSER_EDITION", "reader of tomorrow")
    options = IngestOptions()
    waiting = IngestPipeline(
        DirectParser(options), writer, HashEmbedder(), options, rereads=lambda: False
    )
    assert statuses(waiting.ingest(PAPERS, [document])) == ["unchanged"]
    assert statuses(pipeline.ingest(PAPERS, [document])) == ["replaced"]
    assert statuses(pipeline.ingest(PAPERS, [document])) == ["unchanged"]
    assert [document.revision for document in writer.documents(PAPERS)] == [2]


def test_one_key_twice_in_a_request_is_taken_in_order(
    pipeline: IngestPipeline, writer: OpenWriter
) -> None:
    outcomes = pipeline.ingest(
        PAPERS, [raw("a.txt", b"old"), raw("a.txt", b"new"), raw("a.txt", b"new")]
    )
    assert statuses(outcomes) == ["indexed", "replaced", "unchanged"]
    assert writer.text(PAPERS, "a.txt") == "new"


def test_the_same_bytes_under_another_key_are_marked(pipeline: IngestPipeline) -> None:
    first, second = pipeline.ingest(PAPERS, [raw("a.txt", b"same"), raw("b.txt", b"same")])
    assert second.duplicate_of == first.doc_id


def test_a_fixed_doc_id_is_kept(pipeline: IngestPipeline) -> None:
    [outcome] = pipeline.ingest(
        Library.PUBLIC, [RawDocument("sample_bees", "bees.md", b"# Bees", doc_id="sample_bees")]
    )
    assert outcome.doc_id == "sample_bees"


def test_a_full_disk_fails_the_batch_and_says_so(
    pipeline: IngestPipeline, writer: OpenWriter, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(_: object) -> None:
        raise DiskFull("no space left in the data directory; free some and try again")

    monkeypatch.setattr(writer, "write", full)
    [outcome] = pipeline.ingest(PAPERS, [raw("a.txt", b"text")])
    assert (outcome.status, outcome.code) == ("failed", "disk_full")
    assert writer.documents(PAPERS) == []


def test_flags_and_remarks_reach_the_reader(writer: OpenWriter) -> None:
    options = IngestOptions()
    pipeline = IngestPipeline(
        DirectParser(options),
        writer,
        None,
        options,
        inspect=lambda text: ("injection",) if "obey" in text else (),
    )
    [outcome] = pipeline.ingest(
        PAPERS,
        [raw("a.txt", "obey\u200b me, caf\u00e9".encode("cp1252", "ignore") + b" \x93quoted\x94")],
    )
    assert _flags(writer, "a.txt") == ("injection",)
    assert "cp1252" in (outcome.reason or "")
    pipeline.ingest(PAPERS, [raw("b.txt", "in\u200bvis\u2060ible \U000e0041".encode())])
    assert _flags(writer, "b.txt") == ("stripped:3",)


def test_many_documents_are_written_in_batches_with_progress(
    pipeline: IngestPipeline, writer: OpenWriter
) -> None:
    seen: list[tuple[int, JobFile]] = []
    documents = [raw(f"{n}.txt", f"text number {n}".encode()) for n in range(40)]
    outcomes = pipeline.ingest(
        PAPERS, documents, progress=lambda index, file: seen.append((index, file))
    )
    assert len(outcomes) == 40
    assert sum(writer.batches) == 40
    assert len(writer.batches) < 10
    assert [index for index, file in seen if file.state == "done"] == list(range(40))
    assert {file.progress for _, file in seen if file.state == "done"} == {1.0}


def test_cancel_keeps_what_was_read_before(pipeline: IngestPipeline, writer: OpenWriter) -> None:
    cancel = CancelToken()

    def stop(index: int, file: JobFile) -> None:
        if index == 2:
            cancel.cancel()

    with pytest.raises(Cancelled, match="3 documents"):
        pipeline.ingest(
            PAPERS,
            [raw(f"{n}.txt", b"text %d" % n) for n in range(9)],
            progress=stop,
            cancel=cancel,
        )
    assert len(writer.documents(PAPERS)) == 3


def test_a_file_that_cannot_be_read_is_one_failure(
    pipeline: IngestPipeline, tmp_path: Path
) -> None:
    [outcome] = pipeline.ingest(PAPERS, [raw("gone.txt", tmp_path / "gone.txt")])
    assert (outcome.status, outcome.code) == ("failed", "unreadable")
