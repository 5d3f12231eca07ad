"""A server killed while OCR reads a scan: the next one goes on behind the pages that it had, and ends with every word once."""

from __future__ import annotations

import os
import shutil
import signal
import sys
import time
from collections import Counter
from functools import partial
from pathlib import Path
from typing import cast

import psutil

from app.client import DocuMindClient, FileToSend, Json
from app.core.types import Library
from app.jobs.runner import is_finished
from app.storage.files.durable import CRASH_STATUS
from app.storage.options import IndexOptions
from app.storage.store import IndexStore
from evaluation.lib.served import Served
from tests.crash.forks import Forks
from tests.fakes.ocr import scanned
from tests.fakes.ollama_double import DoubleModel, OllamaDouble
from tests.unit.jobs.test_ingest import PROSE, WAIT_S, Shop

PAPERS = Library.PAPERS
EVERY = 7
"""Every how many write steps a process is ended."""
PAGES = ("heron ledger", "anvil prow", "tallow wick", "gable mast")
SCAN = scanned(PROSE, *range(len(PAGES)))

ENGINE = f"""#!{sys.executable} -IS
# Reads a picture of gray 100 + n as the n-th text, once the file go.n is there.
import os, sys, time
from pathlib import Path
if "--list-langs" in sys.argv:
    raise SystemExit(print("Languages (1):", "eng", sep=chr(10)))
at = sys.stdin.buffer.read()[-1] - 100
folder = Path(__file__).parent
(folder / f"asked.{{at}}.{{os.getpid()}}").touch()
while not (folder / f"go.{{at}}").exists():
    time.sleep(0.01)
columns = "level block_num par_num line_num left top width height text".split()
print(*columns, sep=chr(9))
for n, word in enumerate({PAGES!r}[at].split()):
    print(5, 1, 1, 1, 100 + 200 * n, 100, 150, 40, word, sep=chr(9))
"""


class Engine:
    """A program `tesseract` that stops at a page until it may go on."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir()
        program = folder / "tesseract"
        program.write_text(ENGINE)
        program.chmod(0o755)

    def go_on(self, *pages: int) -> None:
        for page in pages:
            (self.folder / f"go.{page}").touch()

    def asked(self, page: int) -> set[int]:
        """The processes that were to read a page."""
        return {int(path.suffix[1:]) for path in self.folder.glob(f"asked.{page}.*")}

    def wait_for(self, page: int, times: int) -> None:
        deadline = time.monotonic() + WAIT_S
        while len(self.asked(page)) < times:
            assert time.monotonic() < deadline, f"nobody asks for page {page} a {times}. time"
            time.sleep(0.01)


def found(client: DocuMindClient, word: str) -> list[tuple[str, int | None]]:
    """The files and pages on which a word is found."""
    hits = cast("list[Json]", client.search(word, "papers", fusion="lexical")["hits"])
    return [
        (str(hit["filename"]), cast("int | None", hit["page"]))
        for hit in hits
        if word in str(hit["text"])
    ]


def test_a_killed_server_goes_on_with_the_next_page(tmp_path: Path) -> None:
    engine = Engine(tmp_path / "bin")
    note, scan, data = tmp_path / "note.txt", tmp_path / "scan.pdf", tmp_path / "data"
    note.write_text("The ferry leaves the quay at nine.")
    scan.write_bytes(SCAN)
    with OllamaDouble([DoubleModel("all-minilm:latest", "bert", 512, dimension=32)]) as double:
        settings = {
            "OLLAMA_BASE_URL": double.url,
            "EMBEDDING_PROVIDER": "ollama",
            "EMBEDDING_MODEL": "all-minilm",
            "OCR": "auto",
            "OCR_ENGINE": "tesseract",
            "PATH": f"{engine.folder}{os.pathsep}{os.environ['PATH']}",
        }
        engine.go_on(0, 1)
        with Served(data, **settings) as server:
            server.client.ingest([FileToSend(note), FileToSend(scan)], library="papers")
            engine.wait_for(2, 1)
            os.kill(server.process.pid, signal.SIGKILL)
            server.process.wait(WAIT_S)
        left = [psutil.Process(pid) for pid in engine.asked(2) if psutil.pid_exists(pid)]
        assert psutil.wait_procs(left, timeout=WAIT_S)[1] == []
        with Served(data, **settings) as server:
            engine.wait_for(2, 2)
            # What was indexed before serves all the time.
            assert found(server.client, "ferry") == [("note.txt", None)]
            assert ("scan.pdf", 1) in found(server.client, "crystals")
            assert found(server.client, "heron") == []
            engine.go_on(2, 3)
            jobs = cast("list[Json]", server.client.jobs()["jobs"])
            (job,) = [str(job["id"]) for job in jobs if job["kind"] == "ocr"]
            done = server.client.follow(job)
            assert (done["state"], done["errors"]) == ("done", [])
            assert [len(engine.asked(page)) for page in range(len(PAGES))] == [1, 1, 2, 1]
            assert found(server.client, "ferry") == [("note.txt", None)]
            for number, words in enumerate(PAGES, start=2):
                for word in words.split():
                    assert found(server.client, word) == [("scan.pdf", number)]
            (document,) = server.client.documents("papers", "scan")
            assert (document["flags"], document["embedded"]) == (["ocr:4"], document["chunks"])
            read = str(server.client.text("papers", str(document["doc_id"]))["text"])
    held = Counter(read.split())
    assert [held[word] for words in PAGES for word in words.split()] == [1] * 8
    with IndexStore(IndexOptions(data, data / "chroma"), vector_store="off") as store:
        assert store.fsck.run().faults == ()


def read_on(data: Path, crash_at: int | None = None) -> int:
    """Let the OCR job that waits there come to its end; return the write steps that this took."""
    shop = Shop(data, crash_at)
    opened = shop.store.steps.reached
    shop.runner.start()
    (job,) = [job for job in shop.runner.list() if job.kind == "ocr"]
    assert shop.runner.wait(job.id, WAIT_S, is_finished).state == "done"
    shop.close()
    return shop.store.steps.reached - opened


def test_a_process_ended_at_any_write_keeps_every_page_once(forks: Forks, tmp_path: Path) -> None:
    shop = Shop(tmp_path / "origin")
    shop.reader.stop_behind = 1
    shop.runner.start()
    shop.runner.wait(shop.send(scan_pdf=scanned(PROSE, 0, 1, 2)).id, WAIT_S)
    assert shop.reader.reached.wait(WAIT_S)
    shop.runner.close(0)
    shop.reader.go_on.set()
    shop.close()
    shutil.copytree(tmp_path / "origin", tmp_path / "whole")
    steps = read_on(tmp_path / "whole")
    with IndexStore(shop.options, vector_store="off") as store:
        opened = store.steps.reached
    ended = 0
    for n in range(opened + 1, opened + steps, EVERY):
        data = tmp_path / f"at-{n}"
        shutil.copytree(tmp_path / "origin", data)
        status, said = forks.run(partial(read_on, data, n))
        assert status in {CRASH_STATUS, 0}, said
        ended += status == CRASH_STATUS
        read_on(data)
        with IndexStore(IndexOptions(data, data / "chroma"), vector_store="off") as store:
            (document,) = store.catalog.documents(PAPERS)[0]
            text = store.catalog.text(PAPERS, document.doc_id).text
            assert text.endswith("night\nThe keeper rows\nat dawn\nand lights"), n
            assert text.count("crystals") == 4, n
            assert (document.flags, document.embedded) == (("ocr:3",), document.chunks)
            assert [page.page for page in store.writer.page_words(document.sha256)] == [2, 3, 4]
            hits = store.lexical.search(PAPERS, "keeper", 5)
            assert len(hits) == 1, n
            assert store.fsck.run().faults == (), n
    assert ended >= 4
