from __future__ import annotations

import threading
from collections.abc import Sequence

import numpy as np
import pytest

from app.core.cancel import CancelToken
from app.core.errors import Cancelled, DiskFull, ProviderBadResponse, ProviderUnreachable
from app.core.types import FloatArray, Library
from app.core.vectors import l2_normalise
from app.ingest.embedding import VectorBackfill, fingerprint_of
from app.ingest.options import IngestOptions
from tests.fakes.embedders import HashEmbedder
from tests.stores import OpenWriter, passage

PUBLIC = Library.PUBLIC
OPTIONS = IngestOptions(embed_batch=4)
ROUNDED = 1e-3
"""By which a number of a stored vector may differ."""


def filled(
    texts: Sequence[str], dimension: int = 64, kind: type[OpenWriter] = OpenWriter
) -> OpenWriter:
    """Return a library of one document, whose chunks are the texts, for vectors of a dimension."""
    writer = kind()
    writer.shelve([passage(text, key="k", library=PUBLIC) for text in texts])
    writer.claim(PUBLIC, fingerprint_of(HashEmbedder(dimension).identity, OPTIONS))
    return writer


class PoisonedEmbedder(HashEmbedder):
    """Fails on a batch that holds the word poison, as a model host does that cannot digest one text."""

    def __init__(self) -> None:
        super().__init__()
        self.calls = 0

    def embed_passages(self, texts: Sequence[str]) -> FloatArray:
        self.calls += 1
        if any("poison" in text for text in texts):
            raise ProviderBadResponse("the host answered 500")
        return super().embed_passages(texts)


def test_every_pending_chunk_gets_its_vector_and_the_projections_hear_of_it() -> None:
    texts = [f"text about topic {n} " + "and more " * (n % 7) for n in range(150)]
    writer, embedder = filled(texts), HashEmbedder()
    seen: list[int] = []
    report = VectorBackfill(writer, embedder, OPTIONS).run(PUBLIC, progress=seen.append)
    assert report.embedded == 150
    assert report.failed == ()
    assert seen[-1] == 150
    assert seen == sorted(seen)
    assert writer.opened.vectors.count(PUBLIC) == 150
    expected = HashEmbedder().embed_passages(texts)
    vectors = writer.vectors
    assert all(
        np.allclose(vectors[chunk_id], expected[chunk_id - 1], atol=ROUNDED)
        for chunk_id in writer.chunks
    )
    assert VectorBackfill(writer, embedder, OPTIONS).run(PUBLIC).embedded == 0


@pytest.mark.parametrize("workers", [1, 3])
def test_as_many_batches_as_workers_are_with_the_embedder_at_once(workers: int) -> None:
    class Counting(HashEmbedder):
        """Waits in each call until all workers are in one, and notes how many were."""

        def __init__(self) -> None:
            super().__init__()
            self.together = threading.Barrier(workers)
            self.met: list[int] = []

        def embed_passages(self, texts: Sequence[str]) -> FloatArray:
            self.met.append(self.together.wait(10))
            return super().embed_passages(texts)

    texts = [f"text {n}" for n in range(24)]
    writer, embedder = filled(texts), Counting()
    report = VectorBackfill(writer, embedder, OPTIONS).run(PUBLIC, workers=workers)
    assert report.embedded == 24
    assert sorted(set(embedder.met)) == list(range(workers))
    expected = HashEmbedder().embed_passages(texts)
    vectors = writer.vectors
    assert all(
        np.allclose(vectors[chunk_id], expected[chunk_id - 1], atol=ROUNDED)
        for chunk_id in writer.chunks
    )


def test_what_is_with_the_embedder_when_work_is_cancelled_is_kept() -> None:
    writer, embedder = filled([f"text {n}" for n in range(40)]), HashEmbedder()
    cancel = CancelToken()
    with pytest.raises(Cancelled):
        VectorBackfill(writer, embedder, OPTIONS).run(
            PUBLIC, cancel=cancel, progress=lambda _: cancel.cancel(), workers=3
        )
    assert len(writer.vectors) == len(embedder.embedded) == 12


def test_batches_hold_texts_of_similar_length() -> None:
    embedder = HashEmbedder()
    VectorBackfill(filled(["word " * (1 + n * 7 % 40) for n in range(40)]), embedder, OPTIONS).run(
        PUBLIC
    )
    assert embedder.embedded == sorted(embedder.embedded, key=len)


def test_one_poisonous_text_never_sinks_its_batch() -> None:
    writer, embedder = (
        filled([f"fine {n}" for n in range(30)] + ["poison", *(f"good {n}" for n in range(9))]),
        PoisonedEmbedder(),
    )
    report = VectorBackfill(writer, embedder, OPTIONS).run(PUBLIC)
    assert report.embedded == 39
    [failure] = report.failed
    assert writer.chunks[failure.chunk_id].text == "poison"
    assert failure.code == "provider_bad_response"
    assert embedder.calls < 20
    assert len(writer.vectors) == 39


def test_a_host_that_refuses_everything_is_an_error_not_forty_failures() -> None:
    writer = filled([f"poison {n}" for n in range(40)])
    with pytest.raises(ProviderBadResponse):
        VectorBackfill(writer, PoisonedEmbedder(), OPTIONS).run(PUBLIC)


def test_a_chunk_over_the_limit_is_embedded_whole_in_windows() -> None:
    long = "Alpha beta gamma delta. Epsilon zeta eta theta. Iota kappa lambda mu."
    writer, embedder = filled(["short text", long, "another short"]), HashEmbedder(max_tokens=12)
    report = VectorBackfill(writer, embedder, OPTIONS).run(PUBLIC)
    assert report.embedded == 3
    windows = [text for text in embedder.embedded if text in long]
    assert "".join("".join(windows).split()) == "".join(long.split())
    expected = l2_normalise(HashEmbedder(max_tokens=12).embed_passages(windows).mean(axis=0))
    assert np.allclose(writer.vectors[2], expected, atol=ROUNDED)


def test_a_limit_and_a_cancel_stop_in_time_and_a_second_run_resumes() -> None:
    writer, embedder = filled([f"text {n}" for n in range(100)]), HashEmbedder()
    assert VectorBackfill(writer, embedder, OPTIONS).run(PUBLIC, limit=10).embedded == 10
    assert len(writer.vectors) == 10
    cancel = CancelToken()
    with pytest.raises(Cancelled):
        VectorBackfill(writer, embedder, OPTIONS).run(
            PUBLIC, cancel=cancel, progress=lambda n: cancel.cancel() if n >= 20 else None
        )
    kept = len(writer.vectors)
    assert 30 <= kept < 100
    assert VectorBackfill(writer, embedder, OPTIONS).run(PUBLIC).embedded == 100 - kept
    assert len(embedder.embedded) == 100  # nothing twice


def test_an_unreachable_host_and_a_full_disk_reach_the_caller() -> None:
    class Gone(HashEmbedder):
        def embed_passages(self, texts: Sequence[str]) -> FloatArray:
            raise ProviderUnreachable("no connection")

    with pytest.raises(ProviderUnreachable):
        VectorBackfill(filled(["a", "b"]), Gone(), OPTIONS).run(PUBLIC)

    class Full(OpenWriter):
        def write_vectors(
            self,
            library: Library,
            chunk_ids: Sequence[int],
            vectors: FloatArray,
            build: int | None = None,
            *,
            wait: bool = True,
        ) -> None:
            raise DiskFull("no space")

    with pytest.raises(DiskFull):
        VectorBackfill(filled(["a", "b"], kind=Full), HashEmbedder(), OPTIONS).run(PUBLIC)


def test_vectors_are_stored_while_the_next_batch_is_embedded() -> None:
    second_batch = threading.Event()

    class Slow(HashEmbedder):
        def embed_passages(self, texts: Sequence[str]) -> FloatArray:
            if self.embedded:
                second_batch.set()
            return super().embed_passages(texts)

    class Waits(OpenWriter):
        def write_vectors(
            self,
            library: Library,
            chunk_ids: Sequence[int],
            vectors: FloatArray,
            build: int | None = None,
            *,
            wait: bool = True,
        ) -> None:
            assert second_batch.wait(10), (
                "the second batch was not embedded while the first was being stored"
            )
            super().write_vectors(library, chunk_ids, vectors, build, wait=wait)

    writer = filled([f"text {n}" for n in range(8)], kind=Waits)
    assert VectorBackfill(writer, Slow(), OPTIONS).run(PUBLIC).embedded == 8
