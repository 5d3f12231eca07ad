"""What the job queue does, on each database of the catalog."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from app.core.errors import NotFound
from app.storage.options import IndexOptions
from app.storage.queue import JobQueue
from app.storage.store import IndexStore
from tests.fakes.job_queue import put_row


@pytest.fixture
def jobs(tmp_path: Path, database_url: str) -> Iterator[JobQueue]:
    options = IndexOptions(tmp_path, tmp_path / "chroma", database_url, tantivy_threads=1)
    with IndexStore(options, vector_store="off") as store:
        yield store.jobs


def test_a_new_job_is_queued(jobs: JobQueue) -> None:
    job = jobs.create("ingest", {"files": ["a"]}, total=2, unit="chunks")
    assert (job.kind, job.state, job.done, job.total, job.unit, job.payload) == (
        "ingest",
        "queued",
        0,
        2,
        "chunks",
        {"files": ["a"]},
    )
    assert jobs.get(job.id) == job


def test_an_unknown_job_is_not_found(jobs: JobQueue) -> None:
    with pytest.raises(NotFound):
        jobs.get("nothing")


def test_saving_replaces_the_state(jobs: JobQueue) -> None:
    job = jobs.create("ingest", {})
    put_row(jobs, replace(job, state="running", done=1, errors=("oops",), result={"n": 1}))
    found = jobs.get(job.id)
    assert (found.state, found.done, found.errors, found.result) == (
        "running",
        1,
        ("oops",),
        {"n": 1},
    )


def test_lists_are_newest_first_and_unfinished_oldest_first(jobs: JobQueue) -> None:
    made = [jobs.create("kind", {"i": i}) for i in range(4)]
    put_row(jobs, replace(made[1], state="done"))
    assert [job.id for job in jobs.list(3)] == [job.id for job in reversed(made)][:3]
    assert [job.id for job in jobs.unfinished()] == [made[0].id, made[2].id, made[3].id]


def test_pruning_keeps_the_newest_finished_and_all_unfinished(jobs: JobQueue) -> None:
    made = [jobs.create("kind", {}) for _ in range(5)]
    for job in made[:4]:
        put_row(jobs, replace(job, state="cancelled"))
    assert jobs.delete_finished(1) == 3
    assert {job.id for job in jobs.list()} == {made[3].id, made[4].id}
