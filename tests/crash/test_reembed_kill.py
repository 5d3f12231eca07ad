"""A server killed while it embeds a library anew: the old vectors serve, the work goes on where it was, and ends."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import cast

import pytest

from app.client import DocuMindClient, FileToSend, Json
from app.core.types import Library
from app.storage.files.durable import CRASH_STATUS
from app.storage.options import IndexOptions
from app.storage.store import IndexStore, VectorStoreUse
from evaluation.lib.served import Served
from tests.fakes.ollama_double import DoubleModel, OllamaDouble
from tests.unit.storage.maintenance.test_reembedding import (
    NEVER,
    NEW,
    OLD,
    add,
    embed_live,
    fill,
    made_by,
    own_rank_one,
    vectors_by_build,
)

PAPERS = Library.PAPERS
FILES = 24
MODELS = (DoubleModel("small:latest", dimension=32), DoubleModel("large:latest", dimension=48))


def texts_for(double: OllamaDouble, model: str) -> int:
    """How many passages a model was sent; probes of the dimension are not."""
    inputs = [body["input"] for body in double.bodies("/api/embed") if body["model"] == model]
    return sum(len(texts) for texts in inputs if isinstance(texts, list) and texts != ["dimension"])


def test_a_killed_server_goes_on(tmp_path: Path) -> None:
    folder = tmp_path / "files"
    folder.mkdir()
    files = []
    for n in range(FILES):
        path = folder / f"river{n}.txt"
        sentences = [
            f"River{n} passes mill{n}x{k} and bends round hill{n}x{k} before noon."
            for k in range(40)
        ]
        path.write_text(" ".join(sentences))
        files.append(FileToSend(path))
    with OllamaDouble(MODELS) as double:
        settings = {
            "OLLAMA_BASE_URL": double.url,
            "EMBEDDING_PROVIDER": "ollama",
            "EMBEDDING_MODEL": "small",
        }
        data = tmp_path / "data"
        server = Served(data, **settings)
        with server:
            server.client.ingest(files, library="papers")
            chunks = _embedded(server.client)
            double.embed_ms = 15.0
            job = server.client.post(
                "/api/v1/reembed", {"library": "papers", "provider": "ollama", "model": "large"}
            )
            while texts_for(double, "large") < chunks // 3:
                time.sleep(0.01)
            os.kill(server.process.pid, signal.SIGKILL)
            server.process.wait(20)
        before = texts_for(double, "large")
        double.embed_ms = 0.0
        with Served(data, **settings) as again:
            assert _finds(again.client, "mill3x7")
            done = again.client.follow(str(job["id"]))
            assert done["state"] == "done", done
            assert cast("Json", done["result"])["after"] == "large"
            assert _embedded(again.client) == chunks
            assert _finds(again.client, "mill3x7")
            # What was sent and not yet stored is sent again: at most the batches in the pipe.
            assert texts_for(double, "large") < chunks + 7 * 32 + 10
            assert before < chunks


def _embedded(client: DocuMindClient) -> int:
    rows = cast("list[Json]", client.get("/api/v1/libraries")["libraries"])
    papers = next(row for row in rows if row["library"] == "papers")
    chunks = cast("int", papers["chunks"])
    assert papers["embedded"] == chunks
    assert chunks > 0
    return chunks


def _finds(client: DocuMindClient, word: str) -> bool:
    hits = cast(
        "list[Json]", client.get("/api/v1/search", {"q": word, "library": "papers"})["hits"]
    )
    return bool(hits) and word in str(hits[0]["text"])


CHILD = """
import sys, threading
from pathlib import Path
from app.storage.options import IndexOptions
from app.storage.store import IndexStore
from tests.unit.storage.maintenance.test_reembedding import NEW, NEVER, PAPERS, fill, made_by
data = Path(sys.argv[1])
options = IndexOptions(data, data / "chroma", tantivy_threads=1, tantivy_heap_bytes=15_000_000)
with IndexStore(options, crash_at=int(sys.argv[2]), vector_store=sys.argv[3]) as store:
    store.writer.delete(PAPERS, store.catalog.find(PAPERS, "otter").doc_id)
    staged = store.reembedding.begin(PAPERS, made_by(NEW))
    fill(store, staged.number)
    with store.reembedding.beside(PAPERS, staged.number, NEVER):
        store.reembedding.swap(PAPERS, staged.number)
    store.reembedding.complete(PAPERS, NEVER)
    store.reembedding.revert(PAPERS, NEVER)
    store.reembedding.delete_others(PAPERS)
    print(store.steps.reached)
"""


def _options(data: Path) -> IndexOptions:
    return IndexOptions(
        data,
        data / "chroma",
        tantivy_threads=1,
        tantivy_heap_bytes=15_000_000,
        vector_cache_vectors=0,
    )


def _child(data: Path, crash_at: int, use: VectorStoreUse) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", CHILD, str(data), str(crash_at), use]
    return subprocess.run(
        command, capture_output=True, text=True, check=False, cwd=Path(__file__).parents[2]
    )


EVERY = int(os.environ.get("DOCUMIND_REEMBED_CRASH_EVERY", "0"))
"""Every how many write steps the process is ended; 1 tries all of them. 0 is the short form:
some, without Chroma."""


FORMS: list[tuple[VectorStoreUse, int]] = (
    [("off", EVERY), ("foreground", EVERY)] if EVERY else [("off", 11)]
)


@pytest.mark.parametrize(("use", "every"), FORMS)
def test_a_process_ended_at_any_write_leaves_one_build_or_the_other(
    tmp_path: Path, use: VectorStoreUse, every: int
) -> None:
    origin = tmp_path / "origin"
    with IndexStore(_options(origin), vector_store=use) as store:
        add(store, "walrus", "heron", "otter")
        embed_live(store)
        store.writer.apply(PAPERS)
    shutil.copytree(origin, tmp_path / "whole")
    whole = _child(tmp_path / "whole", 10**6, use)
    assert whole.returncode == 0, whole.stderr
    seen: set[str] = set()
    for n in range(every // 2 + 1, int(whole.stdout), every):
        data = tmp_path / f"at-{n}"
        shutil.copytree(origin, data)
        ended = _child(data, n, use)
        assert ended.returncode == CRASH_STATUS, ended.stderr
        with IndexStore(_options(data), vector_store=use) as store:
            seen.add(_check(store, n))
    assert seen == {"old", "new"}


def _check(store: IndexStore, n: int) -> str:
    """Hold a store to one whole build, finish what was begun, and return whose vectors were found."""
    fingerprint = store.catalog.fingerprint(PAPERS)
    assert fingerprint is not None
    old = fingerprint == made_by(OLD)
    own_rank_one(store, OLD if old else NEW)
    faults = store.fsck.run().faults
    assert [fault for fault in faults if fault.code != "leftovers"] == [], n
    if old:
        staged = store.reembedding.begin(PAPERS, made_by(NEW))
        fill(store, staged.number)
        with store.reembedding.beside(PAPERS, staged.number, NEVER):
            store.reembedding.swap(PAPERS, staged.number)
        store.reembedding.complete(PAPERS, NEVER)
    own_rank_one(store, NEW)
    store.reembedding.delete_others(PAPERS)
    assert len(vectors_by_build(store)) == 1
    return fingerprint.embedding_model
