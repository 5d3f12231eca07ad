"""Fill a library by the bulk path: real sentences as text, prepared rows as vectors."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import numpy.typing as npt

from app.core.types import Article, Fingerprint, FloatArray, Library
from app.core.vectors import l2_normalise
from app.evaluation.collections import from_folder
from app.ingest.bulk import BulkIndexer, BulkOptions, BulkTask
from app.ingest.names import IngestOptions
from app.models.minilm import MiniLmEmbedder
from app.storage.store import IndexStore
from evaluation.benchmarks.bulk.growth import Figures, TextPool
from evaluation.lib.windows import collected, vectors
from evaluation.lib.workbench import SEED, say

HalfArray = npt.NDArray[np.float16]

NEAREST, FARTHEST = 0.95, 0.9
"""Cosines between which a copy lies of what it is a copy of."""

_BLOCK = 20_000

CHUNKS_PER_ARTICLE = 7.75
"""Of these articles: a few more than are asked for have a chunk."""


def noisy(rows: FloatArray, rng: np.random.Generator) -> FloatArray:
    """Return a copy of each row, float32 `[n, dim]` of norm 1, at a drawn cosine."""
    noise = rng.standard_normal(rows.shape).astype(np.float32)
    noise -= np.einsum("ij,ij->i", noise, rows)[:, np.newaxis] * rows
    noise /= np.linalg.norm(noise, axis=1, keepdims=True)
    cosines = rng.uniform(FARTHEST, NEAREST, (len(rows), 1)).astype(np.float32)
    return np.asarray(cosines * rows + np.sqrt(1 - cosines**2) * noise, np.float32)


def blocks(real: FloatArray, count: int) -> Iterator[HalfArray]:
    """Yield `count` vectors as the catalog keeps them: the real ones, then copies."""
    rng = np.random.default_rng(SEED)
    yield real[:count].astype(np.float16)
    done = min(len(real), count)
    while done < count:
        n = min(_BLOCK, count - done)
        yield noisy(real[rng.integers(0, len(real), n)], rng).astype(np.float16)
        done += n


def save_rows(real: FloatArray, count: int, path: Path) -> None:
    """Write `count` vectors to a .npy file, float16 `[count, dim]`."""
    kept = np.lib.format.open_memmap(
        path, mode="w+", dtype=np.float16, shape=(count, real.shape[1])
    )
    at = 0
    for block in blocks(real, count):
        kept[at : at + len(block)] = block
        at += len(block)
    kept.flush()


class RealText(TextPool):
    """Articles of real sentences, drawn with a seed."""

    def __init__(self, sentences: list[str]) -> None:
        self.sentences = sentences
        self._seed = SEED

    def chunks(self, count: int) -> Iterator[Article]:
        return self.articles(round(count / CHUNKS_PER_ARTICLE))


WINDOWS = 100_000
"""Sentences and runs of sentences that texts and vectors are drawn from."""
QUESTIONS = 500


def make_inputs(
    data: Path, cache: Path, embedder: MiniLmEmbedder, most: int, inputs: Path, real: int = WINDOWS
) -> int:
    """Write vectors, sentences and questions; return how many vectors are real.

    Args:
        data: Folder of the collections and of the dump.
        cache: Where vectors of windows are kept between runs.
        embedder: Makes the real vectors and those of the questions.
        most: Vectors to write.
        inputs: Folder that gets the files.
        real: How many windows are embedded; the other vectors are copies of theirs.
    """
    windows = collected(data, WINDOWS)
    rows: FloatArray = np.concatenate(
        vectors([window.text for window in windows[:real]], embedder, cache / "windows")
    )
    save_rows(rows, most, inputs / "rows.npy")
    sentences = [window.text for window in windows if window.text.count(". ") == 0]
    (inputs / "sentences.json").write_text(json.dumps(sentences), "utf-8")
    questions = [q.text for q in from_folder(data / "squad").sample(QUESTIONS, SEED).questions]
    questions = list(dict.fromkeys(questions))
    (inputs / "questions.json").write_text(json.dumps(questions), "utf-8")
    np.save(inputs / "queries.npy", np.stack([embedder.embed_query(text) for text in questions]))
    say(f"{len(rows)} real vectors, {len(sentences)} sentences, {len(questions)} questions")
    return len(rows)


LIBRARY = Library.PUBLIC
_PAGE = 2000


def fill_library(store: IndexStore, inputs: Path, chunks: int, fingerprint: Fingerprint) -> Figures:
    """Index about `chunks` chunks and give each a vector; return seconds and counts.

    Args:
        store: An empty index, embedded or shared.
        inputs: Folder that `make_inputs` wrote.
        chunks: How many, at least as many as there are vectors.
        fingerprint: What the vectors are said to be made with.
    """
    sentences = json.loads((inputs / "sentences.json").read_text("utf-8"))
    rows = np.load(inputs / "rows.npy", mmap_mode="r")
    started = time.perf_counter()
    task = BulkTask(LIBRARY, "bench", IngestOptions())
    text = RealText(sentences).chunks(chunks)
    BulkIndexer(store.writer, store.ledger).run(task, text, BulkOptions())
    indexed_s = time.perf_counter() - started
    store.writer.claim(LIBRARY, fingerprint)
    done = 0
    while done < len(rows) and (
        page := store.writer.pending_vectors(LIBRARY, min(_PAGE, len(rows) - done))
    ):
        some = l2_normalise(rows[done : done + len(page)].astype(np.float32))
        store.writer.write_vectors(LIBRARY, [chunk.chunk_id for chunk in page], some)
        done += len(page)
    store.writer.apply(LIBRARY)
    return {
        "index_s": indexed_s,
        "vectors_s": time.perf_counter() - started - indexed_s,
        "vectors": done,
    }
