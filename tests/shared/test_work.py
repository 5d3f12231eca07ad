"""`documind work` as a process: it runs what a server accepted, and ends cleanly."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from app.core.types import Library, json_values
from app.jobs.payloads import IngestPayload, UploadedFile
from app.storage.options import IndexOptions
from app.storage.store import IndexStore
from tests.shared.engines import ROOT, DoubleProcess, Working

WORDS = b"Walruses whistle to their calves in the first week of winter."


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[DoubleProcess]:
    process = DoubleProcess(tmp_path / "engine")
    process.start()
    yield process
    process.kill()


def is_healthy(data: Path) -> bool:
    """Return what the health check of the compose file says of a worker's directory."""
    compose = yaml.safe_load((ROOT / "deploy/compose/shared.yml").read_text("utf-8"))
    _, _, option, code = compose["x-documind"]["worker"]["healthcheck"]["test"]
    code = code.replace("/var/lib/documind", str(data))
    return subprocess.run([sys.executable, option, code], check=False).returncode == 0


def test_a_worker_does_what_another_process_accepted(
    tmp_path: Path, database_url: str, engine: DoubleProcess
) -> None:
    data = tmp_path / "data"
    data.mkdir()
    options = IndexOptions(
        data, data / "chroma", database_url, search_url=engine.url, vector_cache_vectors=0
    )
    with IndexStore(options, vector_store="off") as store:
        file = UploadedFile("walrus.txt", "walrus.txt", store.writer.store_original(WORDS))
        payload = json_values(IngestPayload(Library.PAPERS, (file,)))
        job_id = store.jobs.create("ingest", payload).id
    worker = Working(
        data, DATABASE_URL=database_url, SEARCH_URL=engine.url, EMBEDDING_PROVIDER="minilm",
        LOG_LEVEL="INFO", JOB_LANES="interactive,background",
    )  # fmt: skip
    worker.start()
    worker.wait_said("DocuMind works: interactive, background")
    worker.wait_said(f"job {job_id} (ingest): done")
    assert is_healthy(data)
    os.utime(data / "worker_alive", (0, 0))  # as a frozen one leaves it
    assert not is_healthy(data)
    worker.process.send_signal(signal.SIGTERM)
    assert worker.process.wait(60) == 0
    worker.client.close()
    with IndexStore(options, vector_store="off") as store:
        assert store.jobs.get(job_id).state == "done"
        counts = store.catalog.counts(Library.PAPERS)
        assert (counts.documents, counts.embedded) == (1, counts.chunks)


def test_a_worker_without_a_database_ends_with_2(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "app", "work"],
        cwd=ROOT, env={"DATA_DIR": str(tmp_path), "PATH": ""},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 2
    assert "DATABASE_URL and SEARCH_URL" in done.stderr
