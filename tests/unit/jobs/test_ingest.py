"""Files of a job to live documents with vectors: outcomes, receipts, what is left behind, what is done again."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import cast

import pytest

from app.core.errors import (
    Cancelled,
    DatabaseAway,
    DiskFull,
    FingerprintMismatch,
    ProviderUnreachable,
    SearchAway,
    StorageError,
)
from app.core.ports import Embedder
from app.core.types import Fingerprint, FloatArray, Job, Library, json_values, page_texts
from app.ingest.embedding import VectorBackfill
from app.ingest.options import IngestOptions
from app.ingest.parsers import DirectParser
from app.ingest.pipeline import PARSER_EDITION, IngestPipeline
from app.jobs.ingest import Collecting, request_ocr, request_rereading
from app.jobs.kinds import register_ingest, resume_backfills
from app.jobs.payloads import IngestPayload, IngestReport, UploadedFile, has_text, report_of
from app.jobs.runner import JobOptions, JobRunner, is_finished
from app.storage.files.durable import Steps
from app.storage.maintenance.backup import restore
from app.storage.options import IndexOptions
from app.storage.store import IndexStore
from tests.fakes.embedders import HashEmbedder
from tests.fakes.job_queue import put_row
from tests.fakes.ocr import GrayReader, image, scanned

PAPERS = Library.PAPERS
WAIT_S = 20.0


class Switched(HashEmbedder):
    """An embedder whose host can be down."""

    def __init__(self) -> None:
        super().__init__(32)
        self.down = False

    def embed_passages(self, texts: object) -> FloatArray:
        if self.down:
            raise ProviderUnreachable("nobody answers")
        return super().embed_passages(cast("list[str]", texts))


class Shop:
    """An index, an embedder and a runner that is started on demand."""

    def __init__(self, directory: Path, crash_at: int | None = None) -> None:
        self.options = IndexOptions(
            directory, directory / "chroma", tantivy_threads=1, tantivy_heap_bytes=15_000_000
        )
        self.embedder = Switched()
        self.reader = GrayReader(["The keeper rows", "at dawn", "and lights", "the lamp."])
        self.store = IndexStore(self.options, crash_at=crash_at, vector_store="off")
        identity = self.embedder.identity
        self.store.writer.claim(
            PAPERS,
            Fingerprint(
                identity.model,
                identity.digest,
                identity.dimension,
                "",
                "",
                "test-chunker",
                "en_stem",
            ),
        )
        self.runner = self._runner()

    def _runner(self) -> JobRunner:
        runner = JobRunner(self.store.jobs, JobOptions(retry_s=0.01))
        ingest = IngestOptions(embed_batch=4, ocr_engine="a reader")
        parser = DirectParser(ingest, self.reader)
        embedder: Embedder = self.embedder
        self.parts = Collecting(
            runner,
            self.store.catalog,
            self.store.writer,
            pipeline_of=lambda _: IngestPipeline(
                parser,
                self.store.writer,
                embedder,
                ingest,
                ask_for_ocr=partial(request_ocr, runner),
            ),
            backfill_of=lambda _: VectorBackfill(self.store.writer, embedder, ingest),
        )
        register_ingest(self.parts, self.store.jobs, parser)
        return runner

    def payload(self, retry: bool = False, **files: bytes) -> Mapping[str, object]:
        accepted = tuple(
            UploadedFile(name.replace("_", "."), name, self.store.writer.store_original(content))
            for name, content in files.items()
        )
        return json_values(IngestPayload(PAPERS, accepted, retry))

    def send(self, retry: bool = False, **files: bytes) -> Job:
        return self.runner.submit("ingest", self.payload(retry, **files))

    def originals(self) -> int:
        return sum(1 for _ in (self.options.data_dir / "originals").iterdir())

    def restart(self) -> None:
        self.runner.close(WAIT_S)
        self.runner = self._runner()
        self.runner.start()

    def close(self) -> None:
        self.runner.close(WAIT_S)
        self.store.close()


@pytest.fixture
def shop(tmp_path: Path) -> Iterator[Shop]:
    opened = Shop(tmp_path)
    opened.runner.start()
    yield opened
    opened.close()


def report(job: Job) -> IngestReport:
    found = report_of(job.result)
    assert found is not None, job
    return found


def eventually(runner: JobRunner, kind: str, until: Callable[[Job], bool]) -> Job:
    """Wait for the only job of a kind."""
    [job] = [job for job in runner.list() if job.kind == kind]
    return runner.wait(job.id, WAIT_S, until)


def test_files_become_documents_with_vectors_and_receipts(shop: Shop) -> None:
    job = shop.runner.wait(
        shop.send(
            a_txt=b"Copper melts at 1085 degrees. " * 60, b_md=b"# Tides\n\nThe Moon pulls."
        ).id,
        WAIT_S,
    )
    assert (job.state, job.done, job.errors) == ("done", job.total, ())
    done = report(job)
    assert done.level == "vectors"
    assert [outcome.status for outcome in done.documents] == ["indexed", "indexed"]
    for outcome in done.documents:
        assert outcome.receipt is not None
        assert outcome.receipt.vectors == outcome.receipt.chunks > 0
    assert [file.state for file in job.files] == ["done", "done"]
    counts = shop.store.catalog.counts(PAPERS)
    assert (counts.documents, counts.embedded) == (2, counts.chunks)
    assert shop.store.vectors.count(PAPERS) == counts.chunks


def test_the_first_vectors_are_made_while_later_files_are_read(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    embedded, seen = threading.Event(), []
    embed, parse = shop.embedder.embed_passages, DirectParser.parse

    def announced(texts: object) -> FloatArray:
        embedded.set()
        return embed(texts)

    def patient(parser: DirectParser, content: object, name: str, **_: object) -> object:
        if name == "x19.txt":
            seen.append(embedded.wait(WAIT_S))
        return parse(parser, content, name)  # type: ignore[arg-type]

    monkeypatch.setattr(shop.embedder, "embed_passages", announced)
    monkeypatch.setattr(DirectParser, "parse", patient)
    files = {f"x{n}_txt": b"Text %d of many." % n for n in range(20)}
    done = report(
        shop.runner.wait(shop.runner.submit("ingest", shop.payload(False, **files)).id, WAIT_S)
    )
    assert seen == [True]
    assert [outcome.receipt.vectors for outcome in done.documents if outcome.receipt] == [1] * 20


def test_a_bad_file_is_reported_and_leaves_nothing(shop: Shop) -> None:
    job = shop.runner.wait(
        shop.send(
            good_txt=b"Something to read.", zero_txt=b"", exe_pdf=b"MZ\x90\x00" + bytes(500)
        ).id,
        WAIT_S,
    )
    outcomes = report(job).documents
    assert [outcome.status for outcome in outcomes] == ["indexed", "failed", "failed"]
    assert [outcome.code for outcome in outcomes[1:]] == ["unreadable", "unsupported_type"]
    assert [file.state for file in job.files] == ["done", "failed", "failed"]
    assert shop.originals() == 1


def test_bytes_that_another_upload_waits_for_are_spared(tmp_path: Path) -> None:
    shop = Shop(tmp_path)
    bad = b"MZ\x90\x00" + bytes(500)
    first = shop.send(a_pdf=bad)
    waiting = shop.send(b_pdf=bad)
    shop.runner.pause(waiting.id)
    shop.runner.start()
    shop.runner.wait(first.id, WAIT_S)
    assert shop.originals() == 1
    shop.runner.resume(waiting.id)
    assert report(shop.runner.wait(waiting.id, WAIT_S)).documents[0].code == "unsupported_type"
    assert shop.originals() == 0
    shop.close()


def test_text_is_reported_before_vectors_and_a_dead_embedder_only_delays_them(shop: Shop) -> None:
    shop.embedder.down = True
    job = shop.send(a_txt=b"Walruses whistle in the winter.")
    assert report(shop.runner.wait(job.id, WAIT_S, has_text)).documents[0].status == "indexed"
    ended = shop.runner.wait(job.id, WAIT_S)
    assert ended.state == "done"
    assert "vectors follow later" in ended.errors[0]
    receipt = report(ended).documents[0].receipt
    assert receipt is not None
    assert receipt.vectors == 0
    assert eventually(shop.runner, "backfill", lambda job: bool(job.errors)).state in {
        "queued",
        "running",
    }
    shop.embedder.down = False
    assert eventually(shop.runner, "backfill", lambda _: False).state == "done"
    assert shop.store.catalog.counts(PAPERS).embedded == 1


def test_a_job_cut_off_after_its_text_says_indexed_when_it_is_done_again(tmp_path: Path) -> None:
    first = Shop(tmp_path)
    job = first.store.jobs.create(
        "ingest", first.payload(a_txt=b"Penguins parade along the shore.")
    )
    first.embedder.down = True
    first.runner.start()
    first.runner.wait(job.id, WAIT_S)
    interrupted = first.store.jobs.get(job.id)
    first.close()
    second = Shop(tmp_path)
    put_row(second.store.jobs, replace(interrupted, state="running"))
    second.runner.start()
    again = report(second.runner.wait(job.id, WAIT_S))
    assert again.documents[0].status == "indexed"
    assert again.documents[0].receipt is not None
    assert again.documents[0].receipt.vectors == 1
    assert second.store.catalog.counts(PAPERS).documents == 1
    second.close()


@pytest.mark.parametrize("trouble", [DiskFull, DatabaseAway, SearchAway, StorageError])
def test_an_accepted_job_waits_until_it_can_be_stored_and_a_watched_one_is_told(
    shop: Shop, monkeypatch: pytest.MonkeyPatch, trouble: type[StorageError]
) -> None:
    tries: list[int] = []
    write = shop.store.writer.write

    def full(drafts: object) -> object:
        tries.append(1)
        if len(tries) <= 3:
            raise trouble("not now")
        return write(drafts)  # type: ignore[arg-type]

    monkeypatch.setattr(shop.store.writer, "write", full)
    watched = report(shop.runner.wait(shop.send(a_txt=b"first text").id, WAIT_S))
    assert watched.documents[0].code == trouble.code
    accepted = shop.runner.wait(shop.send(retry=True, b_txt=b"second text").id, WAIT_S)
    assert len(tries) == 4
    assert report(accepted).documents[0].status == "indexed"
    assert accepted.errors == (f"{trouble.code}: not now",)


def test_a_start_asks_for_missing_vectors_once(tmp_path: Path) -> None:
    shop = Shop(tmp_path)
    shop.embedder.down = True
    shop.runner.start()
    shop.runner.wait(shop.send(a_txt=b"Lions sleep at noon.").id, WAIT_S)
    shop.close()
    again = Shop(tmp_path)
    again.embedder.down = True
    again.runner.start()
    resume_backfills(again.runner, again.store.catalog)
    again.embedder.down = False
    assert eventually(again.runner, "backfill", lambda _: False).state == "done"
    counts = again.store.catalog.counts(PAPERS)
    assert counts.embedded == counts.chunks == 1
    again.close()


def test_bytes_of_a_document_deleted_while_its_vectors_are_made_go_with_the_job(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    embed = shop.embedder.embed_passages

    def deleted_meanwhile(texts: object) -> FloatArray:
        document = shop.store.writer.current(PAPERS, "a_txt")
        if document is not None:
            shop.store.writer.delete(PAPERS, document.doc_id)
        return embed(texts)

    monkeypatch.setattr(shop.embedder, "embed_passages", deleted_meanwhile)
    shop.runner.wait(shop.send(a_txt=b"Copper melts at 1085 degrees. " * 60).id, WAIT_S)
    assert shop.store.writer.current(PAPERS, "a_txt") is None
    assert shop.originals() == 0


def test_documents_of_an_older_release_are_read_again_and_keep_what_fails(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as older:
        older.setattr("app.ingest.pipeline.PARSER_EDITION", "reader 1")
        sent = shop.send(a_txt=b"The moon pulls at the sea.", b_txt=b"Copper melts slowly.")
        shop.runner.wait(sent.id, WAIT_S)
    kept = {row.filename: row for row in shop.store.catalog.documents(PAPERS)[0]}
    shop.store.originals.path(kept["b.txt"].sha256).write_bytes(b"\0\1\2" * 100)
    request_rereading(shop.runner, shop.store.catalog)
    job = eventually(shop.runner, "reread", is_finished)
    assert (job.state, job.result) == (
        "done",
        {"library": "papers", "read": 1, "failed": 1, "unplaced": 0},
    )
    assert "b.txt" in job.errors[0]
    after = {row.filename: row for row in shop.store.catalog.documents(PAPERS)[0]}
    assert after["a.txt"].revision == kept["a.txt"].revision + 1
    assert after["b.txt"].revision == kept["b.txt"].revision
    assert [row.filename for row in shop.store.catalog.read_before(PAPERS, PARSER_EDITION, 9)] == [
        "b.txt"
    ]
    request_rereading(shop.runner, shop.store.catalog)  # what cannot be read is tried once
    assert len([one for one in shop.runner.list() if one.kind == "reread"]) == 1


PROSE = "It is said in plain words that crystals walk at night. " * 4


def test_pages_that_are_pictures_are_read_in_the_background_as_a_new_revision(shop: Shop) -> None:
    sent = shop.runner.wait(shop.send(report_pdf=scanned(PROSE, 0, 1)).id, WAIT_S)
    (outcome,) = report(sent).documents
    assert outcome.status == "indexed"
    assert "OCR reads them in the background" in (outcome.reason or "")
    job = eventually(shop.runner, "ocr", is_finished)
    assert (job.state, job.done, job.total, job.unit, job.errors) == ("done", 2, 2, "pages", ())
    assert [(file.filename, file.state) for file in job.files] == [("report.pdf", "done")]
    (read,) = report(job).documents
    assert (read.status, read.doc_id) == ("replaced", outcome.doc_id)
    assert read.reason == "the text is read by OCR on 2 of 3 pages (2-3)"
    (document,) = shop.store.catalog.documents(PAPERS)[0]
    assert (document.revision, document.flags) == (2, ("ocr:2",))
    assert document.embedded == document.chunks
    assert "The keeper rows\nat dawn" in shop.store.catalog.text(PAPERS, document.doc_id).text
    before = shop.store.catalog.text(PAPERS, document.doc_id, revision=1).text
    assert "crystals walk" in before  # where citations of it point
    assert "keeper" not in before
    again = shop.runner.wait(shop.send(report_pdf=scanned(PROSE, 0, 1)).id, WAIT_S)
    assert [one.status for one in report(again).documents] == ["unchanged"]
    assert len([one for one in shop.runner.list() if one.kind == "ocr"]) == 1
    shop.store.writer.delete(PAPERS, document.doc_id)
    assert shop.store.writer.page_words(document.sha256) == []


def test_a_scan_waits_for_its_text(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    read, go_on = DirectParser.page_words, threading.Event()

    def held(*asked: object) -> object:
        assert go_on.wait(WAIT_S)
        return read(*asked)  # type: ignore[arg-type]

    monkeypatch.setattr(DirectParser, "page_words", held)
    sent = shop.runner.wait(shop.send(scan_pdf=scanned(0), photo_png=image(1)).id, WAIT_S)
    assert (sent.state, report(sent).documents[0].status) == ("done", "indexed")
    for document in shop.store.catalog.documents(PAPERS)[0]:
        assert (document.pages, document.chunks, document.flags) == (1, 0, ("unread:1",))
        assert shop.store.catalog.text(PAPERS, document.doc_id).text == ""
    assert shop.store.fsck.run().faults == ()
    go_on.set()
    jobs = [job for job in shop.runner.list() if job.kind == "ocr"]
    assert [shop.runner.wait(job.id, WAIT_S).state for job in jobs] == ["done", "done"]
    for document in shop.store.catalog.documents(PAPERS)[0]:
        assert (document.chunks, document.flags) == (1, ("ocr:1",))


def test_recognised_pages_are_found_by_words_where_their_vectors_would_be_of_another_model(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*_: object, **__: object) -> None:
        raise FingerprintMismatch("the library holds vectors of another model")

    monkeypatch.setattr(VectorBackfill, "run", refused)
    shop.runner.wait(shop.send(scan_pdf=scanned(0)).id, WAIT_S)
    job = eventually(shop.runner, "ocr", is_finished)
    assert job.state == "done"
    assert job.errors[0].startswith("fingerprint_mismatch: the documents are found by words only:")
    (document,) = shop.store.catalog.documents(PAPERS)[0]
    assert (document.chunks, document.flags) == (1, ("ocr:1",))


def test_ocr_goes_on_behind_the_pages_it_has_read(shop: Shop) -> None:
    shop.reader.stop_behind = 2
    shop.send(scan_pdf=scanned(0, 1, 2, 3))
    assert shop.reader.reached.wait(WAIT_S)
    [job] = [job for job in shop.runner.list() if job.kind == "ocr"]
    shop.runner.pause(job.id)
    shop.reader.go_on.set()
    assert shop.runner.wait(job.id, WAIT_S, lambda job: job.state == "paused").done == 2
    (document,) = shop.store.catalog.documents(PAPERS)[0]
    assert len(shop.store.writer.page_words(document.sha256)) == 2
    shop.restart()
    shop.runner.resume(job.id)
    done = shop.runner.wait(job.id, WAIT_S)
    assert (done.state, done.done) == ("done", 4)
    assert shop.reader.read == [0, 1, 2, 3]  # no page twice
    text = shop.store.catalog.text(PAPERS, document.doc_id).text
    assert text == "The keeper rows\nat dawn\nand lights\nthe lamp."


@pytest.mark.sqlite_file
def test_a_bundle_and_a_backup_carry_where_recognised_words_stand(
    shop: Shop, tmp_path: Path
) -> None:
    shop.reader.stop_behind = 2
    shop.send(scan_pdf=scanned(PROSE, 0), other_pdf=scanned(1))
    assert shop.reader.reached.wait(WAIT_S)
    shop.store.bundler.export(PAPERS, tmp_path / "papers.documind")  # one scan waits for its text
    report = shop.store.backup(tmp_path / "backup")
    shop.reader.go_on.set()
    assert report.originals == 2
    restore(tmp_path / "backup", tmp_path / "restored", Steps())

    def shown(store: IndexStore) -> tuple[float, ...]:
        (scan,) = store.catalog.documents(PAPERS, "scan")[0]
        text = store.catalog.text(PAPERS, scan.doc_id).text
        at = text.index("keeper")
        wanted = page_texts(
            store.catalog.pages(PAPERS, scan.doc_id), at, at + 6, lambda *span: text[slice(*span)]
        )
        words = store.writer.page_words(scan.sha256, [page.number for page in wanted])
        original = store.catalog.original(PAPERS, scan.doc_id)
        ((box,),) = (
            page.rects for page in DirectParser(IngestOptions()).page_boxes(original, wanted, words)
        )
        return box

    assert shown(shop.store) == pytest.approx((80, 40, 130, 55), abs=8)
    for name in ("bundled", "restored"):
        data = tmp_path / name
        with IndexStore(IndexOptions(data, data / "chroma"), vector_store="off") as store:
            if name == "bundled":
                store.bundler.load(tmp_path / "papers.documind")
            assert shown(store) == shown(shop.store)
            (other,) = store.catalog.documents(PAPERS, "other")[0]
            assert (other.flags, other.chunks) == (("unread:1",), 0)


def test_a_page_that_breaks_the_engine_costs_that_page(shop: Shop) -> None:
    shop.reader.broken = {1}
    shop.runner.wait(shop.send(scan_pdf=scanned(0, 1, 2)).id, WAIT_S)
    job = eventually(shop.runner, "ocr", is_finished)
    assert job.state == "done"
    assert job.errors == ("page 2 of 'scan.pdf' has no text: the engine fell over",)
    (document,) = shop.store.catalog.documents(PAPERS)[0]
    assert document.flags == ("ocr:2", "unread:1")
    shop.reader.broken = set()
    shop.runner.wait(
        shop.send(scan_pdf=scanned(0, 1, 2)).id, WAIT_S
    )  # sent again, it is tried again
    last = next(job for job in shop.runner.list() if job.kind == "ocr")
    assert shop.runner.wait(last.id, WAIT_S).state == "done"
    (document,) = shop.store.catalog.documents(PAPERS)[0]
    assert document.flags == ("ocr:3",)
    assert shop.reader.read == [0, 2, 1]


def test_an_engine_that_fails_on_every_page_fails_the_job(shop: Shop) -> None:
    shop.reader.broken = {0, 1}
    shop.runner.wait(shop.send(scan_pdf=scanned(0, 1)).id, WAIT_S)
    job = eventually(shop.runner, "ocr", is_finished)
    assert (job.state, len(job.errors)) == ("failed", 3)
    (document,) = shop.store.catalog.documents(PAPERS)[0]
    assert (document.revision, document.flags) == (1, ("unread:2",))


def test_a_document_that_goes_while_its_pages_are_read_does_not_come_back(shop: Shop) -> None:
    shop.reader.stop_behind = 1
    shop.send(scan_pdf=scanned(0, 1))
    assert shop.reader.reached.wait(WAIT_S)
    (document,) = shop.store.catalog.documents(PAPERS)[0]
    shop.store.writer.delete(PAPERS, document.doc_id)
    shop.reader.go_on.set()
    job = eventually(shop.runner, "ocr", is_finished)
    assert (job.state, shop.store.writer.current(PAPERS, "scan_pdf")) == ("cancelled", None)
    assert shop.store.writer.page_words(document.sha256) == []
    assert shop.originals() == 0


def test_a_file_that_failed_because_the_process_stops_is_read_after_it(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun = threading.Event()

    def cut(*_: object, **__: object) -> object:
        [run] = shop.runner._running.values()
        stopped = threading.Event()
        run.cancel.on_cancel(stopped.set)
        begun.set()
        assert stopped.wait(WAIT_S)
        raise Cancelled("the parser was closed while it worked")

    with monkeypatch.context() as patched:
        patched.setattr(DirectParser, "parse", cut)
        job = shop.send(a_txt=b"Copper is red.")
        assert begun.wait(WAIT_S)
        shop.runner.close(WAIT_S)
    assert shop.store.jobs.get(job.id).state == "queued"
    shop.restart()
    assert [one.status for one in report(shop.runner.wait(job.id, WAIT_S)).documents] == ["indexed"]
