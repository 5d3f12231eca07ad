"""What a question costs at the database and the engine, and what servers cost that are asked nothing."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from sqlalchemy import Engine, event

from app.bootstrap import build_services
from app.bootstrap.embedders import Calibrator
from app.bootstrap.services import Services
from app.core.types import Library, Question
from app.jobs.kinds import SAMPLES
from app.jobs.maintenance import LOOK_SHARED_S, Housekeeper
from app.jobs.runner import LOOK_EVERY_S, JobOptions
from app.settings import Settings
from app.storage.vectors import supervisor
from tests.fakes.postgres_server import PostgresServer
from tests.fakes.qdrant_double import QdrantDouble

QUESTIONS = (
    "What does retrieval augmented generation combine?",
    "How are documents retrieved for a generation?",
    "Which attention does the model use?",
)


@dataclass
class Cost:
    """Counts what a thread of this test asks for."""

    services: Services = field(init=False)
    double: QdrantDouble
    transactions: int = 0
    statements: list[str] = field(default_factory=list)
    _counted: int = 0
    """The thread that is counted now, 0 none."""

    def __enter__(self) -> Cost:
        """Listen before an engine exists: one that is asked meanwhile takes no listener."""
        event.listen(Engine, "checkout", self._begun)
        event.listen(Engine, "before_cursor_execute", self._executed)
        return self

    def __exit__(self, *_: object) -> None:
        event.remove(Engine, "checkout", self._begun)
        event.remove(Engine, "before_cursor_execute", self._executed)

    def _begun(self, *_: object) -> None:
        self.transactions += threading.get_ident() == self._counted

    def _executed(self, _: object, __: object, statement: str, *___: object) -> None:
        if threading.get_ident() == self._counted:
            self.statements.append(statement)

    def of(self, work: Callable[[], object]) -> int:
        """Count afresh while something is done; return how many statements it took."""
        self.transactions = 0
        self.statements.clear()
        self.double.asked.clear()
        self._counted = threading.get_ident()
        work()
        self._counted = 0
        return len(self.statements)


@pytest.fixture(scope="module")
def cost(
    tmp_path_factory: pytest.TempPathFactory, postgres_server: PostgresServer
) -> Iterator[Cost]:
    """Count over a server whose libraries hold the samples."""
    folder: Path = tmp_path_factory.mktemp("cost")
    postgres_server.run("CREATE SCHEMA cost")
    with QdrantDouble(folder / "engine") as double, Cost(double) as counted:
        settings = Settings(
            _env_file=None, data_dir=folder / "data", database_url=postgres_server.url("cost"),
            search_url=double.url, embedding_provider="minilm", samples="off", ocr="off",
        )  # fmt: skip
        with build_services(settings) as services:
            job = services.jobs.submit(SAMPLES, {"purge": False})
            assert services.jobs.wait(job.id, 120).state == "done"
            assert services.store.supervisor.wait(60)
            counted.services = services
            yield counted


def test_a_search_takes_four_transactions_and_three_requests(cost: Cost) -> None:
    """And no count, whose time would grow with the library. They were 21, and 10 to 14."""

    def search(text: str) -> Callable[[], object]:
        asked = Question(text, "papers", retrieve_only=True)
        return lambda: cost.services.rag.answer(asked)

    requests: list[list[str]] = []
    for text in QUESTIONS * 2:
        cost.of(search(text))
        assert cost.transactions <= 4, cost.statements
        assert len(cost.statements) <= 24, cost.statements
        requests.append([path for _, path in cost.double.asked])
        assert not [path for path in requests[-1] if path.endswith("count")]
    # The fewest: the supervisor looks after collections and counts languages, in other threads.
    fewest = min(requests, key=len)
    assert len(fewest) <= 3, fewest


def test_a_search_sees_what_was_written_before_it(cost: Cost) -> None:
    """Though what does not change is read once."""
    catalog = cost.services.catalog
    with catalog.snapshot():
        before = catalog.counts(Library.PUBLIC).documents
        ids = [hit.chunk_id for hit in cost.services.store.lexical.search(Library.PUBLIC, "the", 5)]
        assert len(catalog.passages(Library.PUBLIC, ids)) == len(ids)
        name = catalog.documents(Library.PUBLIC)[0][0].doc_id
        cost.services.writer.delete(Library.PUBLIC, name, grace_s=3600)
        assert catalog.counts(Library.PUBLIC).documents == before
        left = catalog.passages(Library.PUBLIC, ids).values()
        assert name not in {passage.document.doc_id for passage in left}
    assert catalog.counts(Library.PUBLIC).documents == before - 1
    cost.services.writer.restore(Library.PUBLIC, name)
    with catalog.snapshot():
        assert catalog.counts(Library.PUBLIC).documents == before


def test_two_idle_servers_and_a_worker_take_two_statements_a_second(cost: Cost) -> None:
    """The housekeeper writes, so that each server looks at its libraries afresh."""
    services = cost.services
    jobs, beat_s = services.jobs, 2 * JobOptions().beat_s
    calibrator = Calibrator(services.embedders.calibrations, services.store, jobs)
    housekeeper = Housekeeper(services.maintenance, jobs, 1e-9)
    deadline_s = time.monotonic() + 60
    while services.store.supervisor._left_behind():  # what the test before wrote
        assert time.monotonic() < deadline_s
        time.sleep(0.05)
    one_s = cost.of(housekeeper.look) / LOOK_SHARED_S
    assert calibrator.look_at_all() == LOOK_SHARED_S
    housekeeper.look()
    each_s = (
        cost.of(calibrator.look_at_all) / LOOK_SHARED_S
        + cost.of(services.store.supervisor._left_behind) / supervisor.LOOK_EVERY_S
        + cost.of(lambda: jobs._heartbeat(jobs._beaten_s + 1e3)) / beat_s
        + 1 / LOOK_SHARED_S  # another process has the turn of the housekeeper
    )
    worker_s = cost.of(lambda: jobs._sync_with_queue(due=True)) / LOOK_EVERY_S
    assert 0.1 < one_s + 3 * each_s + worker_s <= 2
