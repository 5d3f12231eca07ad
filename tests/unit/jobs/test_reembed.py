"""The re-embedding job: compared, swapped or kept, resumed, rolled back, while documents come."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pytest

from app.bootstrap.services import register_reembed
from app.core.errors import DiskFull, ProviderUnreachable
from app.core.ports import Embedder
from app.core.types import FloatArray, Job, Library
from app.evaluation.cases import CaseBody
from app.ingest.embedding import VectorBackfill, fingerprint_of
from app.jobs.ingest import BACKFILL
from app.jobs.reembed import ReembedPayload, request_reembed
from app.jobs.runner import JobOptions, JobRunner
from app.settings import Settings
from app.storage.maintenance.reembedding import Reembedding
from app.storage.options import IndexOptions
from app.storage.store import IndexStore
from tests.fakes.embedders import HashEmbedder
from tests.unit.storage.drafts import make_draft

PAPERS = Library.PAPERS


class BlindEmbedder(HashEmbedder):
    """Vectors that say nothing about the text."""

    def _rows(self, texts: Sequence[str]) -> FloatArray:
        rows = np.zeros((len(texts), self.identity.dimension), dtype=np.float32)
        rows[:, 0] = 1.0
        return rows


class HookedEmbedder(HashEmbedder):
    """Calls back before each batch."""

    hook: Callable[[], None] = staticmethod(lambda: None)

    def embed_passages(self, texts: Sequence[str]) -> FloatArray:
        self.hook()
        return super().embed_passages(texts)


@dataclass
class Shop:
    """A store with jobs over it; `new` is what a re-embedding takes, `live` what answers questions."""

    store: IndexStore
    jobs: JobRunner
    settings: Settings
    new: Embedder
    embedders: dict[str, Embedder] = field(default_factory=dict)
    gone: bool = False
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
        self.embedders[embedder.identity.model] = embedder
        ingest = self.settings.ingest()
        self.store.writer.claim(PAPERS, fingerprint_of(embedder.identity, ingest))
        VectorBackfill(self.store.writer, embedder, ingest).run(PAPERS)

    def live(self, library: Library) -> Embedder | None:
        fingerprint = self.store.catalog.fingerprint(library)
        return (
            None
            if fingerprint is None or self.gone
            else self.embedders[fingerprint.embedding_model]
        )

    def named(self, _: Library, provider: str | None, model: str | None) -> Embedder:
        assert provider in {None, "minilm"}
        assert model is None
        self.embedders[self.new.identity.model] = self.new
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
        register_reembed(jobs, settings, store, live_embedder=shop.live, embedder_named=shop.named)
        jobs.start()
        try:
            yield shop
        finally:
            jobs.close()


NAMES = tuple(f"heron{n}" for n in range(12))


def test_a_model_that_finds_as_much_takes_over(shop: Shop) -> None:
    shop.add(*NAMES)
    shop.embed(HashEmbedder(64, model="old"))
    found = shop.run(provider="minilm")
    assert (found["outcome"], found["before"], found["after"], found["embedded"]) == (
        "swapped",
        "old",
        "new",
        24,
    )
    assert found["question_set"] == "automatic"
    assert shop.store.catalog.fingerprint(PAPERS) == fingerprint_of(
        shop.new.identity, shop.settings.ingest()
    )
    again = shop.ended()
    assert (again.state, again.errors[0].split(":")[0]) == ("failed", "conflict")


def test_a_model_that_finds_less_does_not_until_it_is_forced(shop: Shop) -> None:
    shop.add(*NAMES)
    shop.embed(HashEmbedder(64, model="old"))
    shop.new = BlindEmbedder(48, model="blind")
    found = shop.run()
    assert (found["outcome"], found["after"]) == ("kept", "old")
    assert "find less" in str(found["reason"])
    assert "--force" in str(found["reason"])
    fingerprint = shop.store.catalog.fingerprint(PAPERS)
    assert fingerprint is not None
    assert fingerprint.embedding_model == "old"
    forced = shop.run(force=True)
    assert (forced["outcome"], forced["after"], forced["embedded"]) == ("swapped", "blind", 0)
    live = shop.store.builds.of(PAPERS, "live")
    assert live is not None
    assert "find less" in shop.store.builds.remark_of(live.number)


def test_the_users_questions_decide(shop: Shop) -> None:
    shop.add(*NAMES)
    shop.embed(BlindEmbedder(64, model="old"))
    questions = tuple(
        CaseBody(
            f"who {name}walks {name}along the {name}shore",
            "papers",
            "question",
            expected_docs=(name,),
        )
        for name in NAMES
    )
    found = shop.run(questions=questions)
    assert (found["outcome"], found["question_set"]) == ("swapped", "yours")
    comparison = found["comparison"]
    assert isinstance(comparison, dict)
    assert comparison["questions"] == len(NAMES)
    assert comparison["after"] >= comparison["before"]


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


def test_without_the_old_model_there_is_nothing_to_compare_with(shop: Shop) -> None:
    shop.add(*NAMES)
    shop.embed(HashEmbedder(64, model="old"))
    shop.gone = True
    found = shop.run()
    assert (found["outcome"], found["question_set"], found["comparison"]) == (
        "swapped",
        "none",
        None,
    )
    assert "cannot be searched" in str(found["reason"])


def test_an_empty_library_takes_the_new_model_at_once(shop: Shop) -> None:
    assert shop.run()["outcome"] == "swapped"
    fingerprint = shop.store.catalog.fingerprint(PAPERS)
    assert fingerprint is not None
    assert fingerprint.embedding_model == "new"
