"""A full disk at every stage: said as such, nothing acknowledged lost, and work goes on by itself once there is space.

RLIMIT_FSIZE 0 lets every write to a file fail, as a full disk does, in native code too; it is
lifted and set from outside for a real server, and around one named write for a store and its
processes.
"""

from __future__ import annotations

import resource
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path

import numpy as np
import psutil
import pytest

from app.client import FileToSend
from app.core.errors import DiskFull
from app.core.types import FloatArray, Library
from app.storage.files.durable import Steps
from app.storage.options import IndexOptions
from app.storage.store import IndexStore, VectorStoreUse
from evaluation.campaigns.crash import hits_of
from evaluation.lib.served import Served
from evaluation.lib.vector_checks import differences
from tests.crash.forks import Forks
from tests.fakes.ollama_double import OllamaDouble
from tests.fakes.ollama_double.models import DoubleModel
from tests.unit.storage.drafts import FINGERPRINT, make_draft, unit_rows
from tests.unit.storage.test_writer import embed_all

PAPERS = Library.PAPERS
UNLIMITED = (resource.RLIM_INFINITY, resource.RLIM_INFINITY)


@contextmanager
def full_disk() -> Iterator[None]:
    """Let every write to a file fail, in this process and in those that it started."""
    here = psutil.Process()
    processes = [here.pid, *(child.pid for child in here.children())]
    for pid in processes:
        resource.prlimit(pid, resource.RLIMIT_FSIZE, (0, resource.RLIM_INFINITY))
    try:
        yield
    finally:
        for pid in processes:
            with suppress(ProcessLookupError):
                resource.prlimit(pid, resource.RLIMIT_FSIZE, UNLIMITED)


class FullAt(Steps):
    """Steps whose disk is full while the write `target` is made, once."""

    def __init__(self) -> None:
        super().__init__()
        self.target = ""

    @contextmanager
    def at(self, name: str) -> Iterator[None]:
        with super().at(name):
            if name == self.target:
                self.target = ""
                with full_disk():
                    yield
            else:
                yield


Work = Callable[[IndexStore, Path], object]


def write(store: IndexStore, _: Path) -> None:
    sha256 = store.writer.store_original(b"penguins parade")
    store.writer.write(
        [make_draft("new.txt", "penguins parade past the pier", has_original=True, sha256=sha256)]
    )


def embed(store: IndexStore, _: Path) -> None:
    if store.writer.current(PAPERS, "new.txt") is None:
        write(store, _)
    embed_all(store)
    store.writer.apply(PAPERS)


def delete(store: IndexStore, _: Path) -> None:
    document = store.writer.current(PAPERS, "other.txt")
    if document is not None:
        store.writer.delete(PAPERS, document.doc_id)
    store.writer.apply(PAPERS)


def purge(store: IndexStore, _: Path) -> None:
    delete(store, _)
    store.purger.run()


def back_up(store: IndexStore, directory: Path) -> None:
    store.backup(directory / "backup")


def export(store: IndexStore, directory: Path) -> None:
    store.bundler.export(PAPERS, directory / "papers.documind")


STAGES: dict[str, Work] = {
    "catalog.documents": write,
    "tantivy.commit": write,
    "catalog.vectors": embed,
    "chroma.upsert": embed,
    "catalog.purge": delete,
    "catalog.vacuum": purge,
    "backup.catalog": back_up,
    "backup.copy": back_up,
    "everything": export,
}
"""Which write meets the full disk, and the work it is part of."""


def trial(data: Path, stage: str) -> list[str]:
    """Run a stage's work on a full disk, then with space, then open the store anew; return what was broken."""
    broken: list[str] = []
    work = STAGES[stage]
    options = IndexOptions(data, data / "chroma", tantivy_threads=1, tantivy_heap_bytes=15_000_000)
    steps = FullAt()
    use: VectorStoreUse = (
        "foreground" if stage.startswith("chroma") else "off"
    )  # opening Chroma takes seconds
    with IndexStore(options, vector_store=use, steps=steps) as store:
        sha256 = store.writer.store_original(b"walruses whistle")
        store.writer.write(
            [
                make_draft(
                    "kept.txt", "walruses whistle in the wind", has_original=True, sha256=sha256
                )
            ]
        )
        store.writer.write([make_draft("other.txt", "gulls glide over grey waves")])
        embed_all(store)
        try:
            if stage == "everything":
                with full_disk():
                    work(store, data.parent)
            else:
                steps.target = stage
                work(store, data.parent)
            if steps.target:
                broken.append("the write was never made")
            else:
                broken.append("a full disk went unnoticed")
        except DiskFull as error:
            if not error.retryable:
                broken.append("not retryable")
        broken += [f"on the full disk: {what}" for what in missing(store, vectors=False)]
        broken += [f"left behind: {path.name}" for path in data.parent.iterdir() if path != data]
        work(store, data.parent)
        broken += [f"with space: {what}" for what in missing(store, vectors=True)]
        if work in (write, embed) and len(store.lexical.search(PAPERS, "penguins", 5)) != 1:
            broken.append("what was written with space is not found")
        if work in (delete, purge) and store.lexical.search(PAPERS, "gulls", 5):
            broken.append("what was deleted with space is found")
    with IndexStore(options, vector_store=use) as store:
        broken += [f"afterwards: {what}" for what in missing(store, vectors=True)]
        broken += [
            f"fsck: {fault.code} {fault.detail}"
            for fault in store.fsck.run().faults
            if fault.code != "leftovers"
        ]
    return broken


def full_while_a_group_is_committed(data: Path) -> list[str]:
    """Let the commit of a bulk run's words find no space, and return what was broken."""
    options = IndexOptions(data, data / "chroma", tantivy_threads=1, tantivy_heap_bytes=15_000_000)
    steps = FullAt()
    broken: list[str] = []
    with IndexStore(options, vector_store="off", steps=steps) as store:
        for name in ("walrus", "penguin", "gull"):
            store.writer.store([make_draft(name, f"{name} alone", chunks=1)])
            steps.target = "tantivy.commit" if name == "penguin" else ""
            store.writer.flush(PAPERS)
            if steps.target:
                broken.append("nothing was committed")
            if len(store.lexical.search(PAPERS, name, 5)) != 1:
                broken.append(f"{name} is not found")
        broken += [f"fsck: {fault.code} {fault.detail}" for fault in store.fsck.run().faults]
    return broken


def until(holds: Callable[[], bool]) -> None:
    """Wait until something holds, a minute at most."""
    deadline = time.monotonic() + 60
    while not holds() and time.monotonic() < deadline:
        time.sleep(0.02)


def full_while_chroma_writes_its_files(data: Path) -> list[str]:
    """Let Chroma find no space for its graph, which destroys it, and return what was broken; nobody lends a hand."""
    options = IndexOptions(data, data / "chroma", vector_cache_vectors=0, tantivy_threads=1)
    broken: list[str] = []
    rows: dict[int, FloatArray] = {}

    def add(store: IndexStore, name: str) -> None:
        store.writer.write(
            [make_draft(f"{name}{n}", f"{name} number {n}. " * 20, chunks=20) for n in range(60)]
        )
        store.writer.claim(PAPERS, FINGERPRINT)
        ids = [chunk.chunk_id for chunk in store.writer.pending_vectors(PAPERS, 1200)]
        rows.update(zip(ids, unit_rows(1200, seed=len(rows)), strict=True))
        store.writer.write_vectors(PAPERS, ids, np.stack([rows[chunk_id] for chunk_id in ids]))
        store.writer.apply(PAPERS)

    def check(store: IndexStore, when: str) -> None:
        broken.extend(f"{when}: {line}" for line in differences(store, PAPERS))

    with IndexStore(options) as store:
        if not store.supervisor.wait(100):
            broken.append("the store does not come up")
        add(store, "walrus")
        until(lambda: store.projector.log.lags().get("papers/chroma") == 0)
        written = next(options.chroma_dir.rglob("index_metadata.pickle"))
        written.unlink()
        written.symlink_to("/dev/full")  # Chroma writes it anew after every thousand vectors
        add(store, "penguin")
        if len(store.lexical.search(PAPERS, "penguin", 10)) != 10:
            broken.append("what was written is not found by its words")
        until(lambda: bool(list(data.glob("chroma.broken.*"))))
        if not store.supervisor.wait(100):
            broken.append("the store does not heal")
        until(lambda: store.projector.log.lags().get("papers/chroma") == 0)
        check(store, "healed")
        if len(list(data.glob("chroma.broken.*"))) != 1:
            broken.append("the destroyed store was not moved aside")
    with IndexStore(options, vector_store="foreground") as store:
        check(store, "afterwards")
        if len(list(data.glob("chroma.broken.*"))) != 1:
            broken.append("the healed store was moved aside")
    return broken


def missing(store: IndexStore, *, vectors: bool) -> list[str]:
    """Return what of the acknowledged document is not there."""
    wrong: list[str] = []
    document = store.writer.current(PAPERS, "kept.txt")
    if (
        document is None
        or store.catalog.text(PAPERS, document.doc_id).text != "walruses whistle in the wind"
    ):
        return ["the document or its text"]
    if store.catalog.original(PAPERS, document.doc_id).read_bytes() != b"walruses whistle":
        wrong.append("its original")
    if len(store.lexical.search(PAPERS, "walruses", 5)) != 1:
        wrong.append("the hit for its word")
    if vectors and store.vectors.search(PAPERS, unit_rows(4)[0], 1)[0].chunk_id != 1:
        wrong.append("the hit for its vector")
    return wrong


@pytest.mark.parametrize("stage", STAGES)
def test_a_full_disk_loses_nothing_and_needs_no_hand(
    forks: Forks, tmp_path: Path, stage: str
) -> None:
    assert forks.run(partial(trial, tmp_path / "data", stage)) == (0, "[]")


def test_a_disk_that_is_full_while_a_group_of_words_is_committed(
    forks: Forks, tmp_path: Path
) -> None:
    assert forks.run(partial(full_while_a_group_is_committed, tmp_path / "data")) == (0, "[]")


def test_a_disk_that_fills_up_while_chroma_writes_its_files(forks: Forks, tmp_path: Path) -> None:
    assert forks.run(partial(full_while_chroma_writes_its_files, tmp_path / "data")) == (0, "[]")


def test_a_server_says_507_and_goes_on_when_there_is_space(tmp_path: Path) -> None:
    with OllamaDouble([DoubleModel("all-minilm:latest", "bert", 512, dimension=32)]) as double:
        settings = {
            "OLLAMA_BASE_URL": double.url,
            "EMBEDDING_MODEL": "all-minilm",
            "EMBEDDING_PROVIDER": "ollama",
        }
        acknowledged: set[str] = set()
        refused = 0
        with Served(tmp_path / "data", **settings) as server:

            def upload(name: str) -> None:
                path = tmp_path / name
                path.write_text(f"{name.removesuffix('.txt')} is a word of its own. " * 40)
                server.client.ingest([FileToSend(path)], "papers", wait="text")
                acknowledged.add(name)

            upload("first.txt")
            for size in (0, 1_000, 4_096, 20_000, 60_000, 200_000):
                resource.prlimit(
                    server.process.pid, resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY)
                )
                for n in range(3):
                    try:
                        upload(f"full{size}x{n}.txt")
                    except DiskFull:
                        refused += 1
                assert len(hits_of(server.client, "first")) == 1
                resource.prlimit(server.process.pid, resource.RLIMIT_FSIZE, UNLIMITED)
                upload(f"space{size}.txt")
            server.kill()
        assert refused >= 3
        with Served(tmp_path / "data", **settings) as server:
            held = {str(document["filename"]) for document in server.client.documents("papers")}
            assert acknowledged <= held
            found = {
                name: hits_of(server.client, name.removesuffix(".txt")) for name in acknowledged
            }
            assert [
                name for name, hits in found.items() if name.removesuffix(".txt") not in str(hits)
            ] == []
