"""The re-embedding job: swapped, resumed, rolled back, while documents come."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from app.bootstrap.services import register_reembed
from app.core.errors import Conflict, DiskFull, ProviderUnreachable
from app.core.ports import Embedder
from app.core.types import FloatArray, Job, Library, json_values
from app.ingest.embedding import VectorBackfill, fingerprint_of
from app.jobs.ingest import BACKFILL
from app.jobs.reembed import REEMBED, ReembedPayload, request_reembed
from app.jobs.runner import JobOptions, JobRunner
from app.settings import Settings
from app.storage.maintenance.reembedding import Reembedding
from app.storage.options import IndexOptions
from app.storage.store import IndexStore
from tests.fakes.embedders import HashEmbedder
from tests.unit.storage.drafts import make_draft

PAPERS = Library.PAPERS


class HookedEmbedder(HashEmbedder):
    """Calls back before each batch."""

    hook: Callable[[], None] = staticmethod(lambda: None)

    def embed_passages(self, texts: Sequence[str]) -> FloatArray:
        self.hook()
        return super().embed_passages(texts)


@dataclass
class Shop:
    """A store with jobs over it; `new` is what a re-embedding takes."""

    store: IndexStore
    jobs: JobRunner
    settings: Settings
    new: Embedder
    backfilled: list[str] = field(default_factory=list)

    def add(self, *names: str) -> None:
        self.store.writer.write(
            [
                make_draft(
                    name,
                    f"{name} {name}walks {name}along the {name}shore. Many {name} come {name}along"
                    f" {name}walks {name}shore.",
                )
                for name in names
            ]
        )

    def embed(self, embedder: HashEmbedder) -> None:
        ingest = self.settings.ingest()
        self.store.writer.claim(PAPERS, fingerprint_of(embedder.identity, ingest))
        VectorBackfill(self.store.writer, embedder, ingest).run(PAPERS)

    def named(self, _: Library, provider: str | None, model: str | None) -> Embedder:
        assert provider in {None, "minilm"}
        assert model is None
        return self.new

    def run(self, **asked: object) -> dict[str, object]:
        job = self.ended(**asked)
        assert job.state == "done", job.errors
        return dict(job.result or {})

    def ended(self, **asked: object) -> Job:
        job = request_reembed(self.jobs, ReembedPayload(PAPERS, **asked))  # type: ignore[arg-type]
        return self.jobs.wait(job.id, 30)


@pytest.fixture
def shop(tmp_path: Path) -> Iterator[Shop]:
    data = tmp_path / "data"
    options = IndexOptions(data, data / "chroma", tantivy_threads=1, tantivy_heap_bytes=15_000_000)
    settings = Settings(_env_file=None, data_dir=data)
    with IndexStore(options, vector_store="off") as store:
        jobs = JobRunner(store.jobs, JobOptions(retry_s=0.01))
        shop = Shop(store, jobs, settings, HashEmbedder(48, model="new"))

        def backfill(context: object) -> None:
            shop.backfilled.append("papers")

        jobs.register(BACKFILL, backfill)
        register_reembed(jobs, settings, store, shop.named)
        jobs.start()
        try:
            yield shop
        finally:
            jobs.close()


NAMES = tuple(f"heron{n}" for n in range(12))


def test_the_new_model_takes_over_and_says_how_to_go_back(shop: Shop) -> None:
    shop.add(*NAMES)
    shop.embed(HashEmbedder(64, model="old"))
    found = shop.run(provider="minilm")
    assert (found["outcome"], found["before"], found["after"], found["embedded"]) == (
        "swapped",
        "old",
        "new",
        24,
    )
    assert "documind reembed --library papers --rollback" in str(found["reason"])
    assert shop.store.catalog.fingerprint(PAPERS) == fingerprint_of(
        shop.new.identity, shop.settings.ingest()
    )
    again = shop.ended()
    assert (again.state, again.errors[0].split(":")[0]) == ("failed", "conflict")


def test_documents_that_come_meanwhile_are_in_both_builds(shop: Shop) -> None:
    shop.add(*NAMES)
    old = HashEmbedder(64, model="old")
    shop.embed(old)
    new = HookedEmbedder(48, model="new")
    late = iter([("egret",), ("stork",), ("crane",)])

    def arrive() -> None:
        names = next(late, ())
        if names:
            shop.add(*names)
            shop.embed(old)

    new.hook = arrive
    shop.new = new
    found = shop.run()
    assert (found["outcome"], found["failed"]) == ("swapped", 0)
    counts = shop.store.catalog.counts(PAPERS)
    assert (counts.documents, counts.embedded) == (15, 30)
    previous = shop.store.builds.of(PAPERS, "previous")
    assert previous is not None
    assert shop.store.reembedding.missing(PAPERS, previous.number) == 0
    assert not shop.backfilled


@pytest.mark.parametrize("action", ["start", "rollback"])
def test_a_run_that_is_tried_again_after_its_swap_does_not_swap_again(
    shop: Shop, action: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop.add(*NAMES)
    shop.embed(HashEmbedder(64, model="old"))
    if action == "rollback":
        shop.run()
    complete = Reembedding.complete
    calls: list[Library] = []

    def full_once(work: Reembedding, library: Library, stop: threading.Event) -> None:
        calls.append(library)
        if len(calls) == 1:
            raise DiskFull("no space")
        complete(work, library, stop)

    monkeypatch.setattr(Reembedding, "complete", full_once)
    before, after = ("new", "old") if action == "rollback" else ("old", "new")
    found = shop.run(action=action)
    assert (found["before"], found["after"], "swapping_to" in found) == (before, after, False)
    fingerprint = shop.store.catalog.fingerprint(PAPERS)
    assert fingerprint is not None
    assert fingerprint.embedding_model == after


def test_rolling_back_and_discarding(shop: Shop) -> None:
    shop.add(*NAMES)
    shop.embed(HashEmbedder(64, model="old"))
    shop.run()
    shop.add("late")
    back = shop.run(action="rollback")
    assert (back["outcome"], back["before"], back["after"]) == ("rolled_back", "new", "old")
    (backfill,) = [job for job in shop.jobs.list() if job.kind == BACKFILL]
    assert shop.jobs.wait(backfill.id, 30).state == "done"
    assert shop.backfilled == ["papers"]
    gone = shop.run(action="discard")
    assert (gone["outcome"], gone["removed_vectors"]) == ("discarded", 24)
    assert shop.ended(action="rollback").state == "failed"


def test_a_host_that_is_away_is_tried_again_and_nothing_is_embedded_twice(shop: Shop) -> None:
    shop.add(*NAMES)
    shop.embed(HashEmbedder(64, model="old"))
    new = HookedEmbedder(48, model="new")
    calls = iter([False, True, False, True])

    def fail() -> None:
        if next(calls, False):
            raise ProviderUnreachable("the host is away")

    new.hook = fail
    shop.new = new
    found = shop.run()
    assert found["outcome"] == "swapped"
    assert shop.store.catalog.counts(PAPERS).embedded == 24
    assert len(new.embedded) == 24


def test_an_empty_library_takes_the_new_model_at_once(shop: Shop) -> None:
    found = shop.run()
    assert (found["outcome"], found["before"]) == ("swapped", None)
    assert "rollback" not in str(found["reason"])
    fingerprint = shop.store.catalog.fingerprint(PAPERS)
    assert fingerprint is not None
    assert fingerprint.embedding_model == "new"


def test_a_job_of_an_older_release_is_joined_and_runs(shop: Shop) -> None:
    shop.add(*NAMES)
    shop.embed(HashEmbedder(64, model="old"))
    held, go = threading.Event(), threading.Event()
    new = HookedEmbedder(48, model="new")

    def hold() -> None:
        held.set()
        assert go.wait(30)

    new.hook = hold
    shop.new = new
    older = {**json_values(ReembedPayload(PAPERS)), "force": True, "questions": [], "retry": True}
    job = shop.jobs.submit(REEMBED, older, unit="chunks")
    assert held.wait(30)
    assert request_reembed(shop.jobs, ReembedPayload(PAPERS)).id == job.id
    with pytest.raises(Conflict, match="wait for it"):
        request_reembed(shop.jobs, ReembedPayload(PAPERS, provider="ollama"))
    go.set()
    assert shop.jobs.wait(job.id, 30).state == "done"
