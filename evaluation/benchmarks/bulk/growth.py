"""Grow a library step by step: indexing, disk, memory, retrieval, start-up.

Each part runs in a process of its own, whose proportional set size (PSS, with that of its children)
a parent samples; a part prints its figures as JSON.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt
import tantivy

from app.core.trace import Trace
from app.core.types import Article, EmbedderIdentity, Fingerprint, FloatArray, Library
from app.core.vectors import l2_normalise
from app.ingest.bulk import BulkIndexer, BulkOptions, BulkTask
from app.ingest.names import IngestOptions
from app.retrieval.pipeline import Retriever
from app.retrieval.request import RetrievalOptions, SearchRequest
from app.storage.options import IndexOptions
from app.storage.store import IndexStore
from app.storage.words.query import ANALYZER, BODY, build_analyzer, build_schema

_SENTENCES = 200_000
_VOCABULARY = 100_000
_ZIPF = 1.05  # English text: about 1 (Piantadosi 2014)
_SENTENCES_PER_ARTICLE = 34
CHUNKS_PER_ARTICLE = 5.0
"""Of this corpus at the default chunk size: tells how many articles a step needs. The step's own
count is what is reported."""


class TextPool:
    """Seeded articles, in constant memory apart from the pool of sentences."""

    def __init__(self, seed: int = 7) -> None:
        """Make the sentences."""
        rng = np.random.default_rng(seed)
        weights = np.arange(1, _VOCABULARY + 1, dtype=np.float64) ** -_ZIPF
        lengths = rng.integers(8, 28, _SENTENCES)
        ranks = np.searchsorted(np.cumsum(weights / weights.sum()), rng.random(int(lengths.sum())))
        names = [_word(number) for number in range(_VOCABULARY + 1)]
        words = [names[rank] for rank in ranks]
        self.sentences: list[str] = []
        at = 0
        for length in lengths:
            self.sentences.append(" ".join(words[at : at + length]).capitalize() + ".")
            at += length
        self._seed = seed

    def articles(self, count: int) -> Iterator[Article]:
        """Yield `count` articles of several paragraphs each."""
        rng = np.random.default_rng(self._seed + 1)
        for number in range(count):
            chosen = rng.integers(0, len(self.sentences), _SENTENCES_PER_ARTICLE)
            paragraphs = [
                " ".join(self.sentences[i] for i in chosen[at : at + 6])
                for at in range(0, len(chosen), 6)
            ]
            yield Article(
                str(number + 1),
                "1",
                f"{_word(number % _VOCABULARY)} {number}",
                "text",
                "\n\n".join(paragraphs),
            )

    def queries(self, count: int) -> list[str]:
        """Return windows of 8 to 12 words of indexed sentences."""
        rng = np.random.default_rng(self._seed + 2)
        found: list[str] = []
        while len(found) < count:
            words = self.sentences[int(rng.integers(_SENTENCES))].split()
            size = int(rng.integers(8, 13))
            if len(words) >= size:
                start = int(rng.integers(0, len(words) - size + 1))
                found.append(" ".join(words[start : start + size]))
        return found


def _word(number: int) -> str:
    """Return a pronounceable word, a different one for each number, short ones first."""
    syllables = ""
    number += 1
    while number:
        number, digit = divmod(number, 70)
        syllables += "bcdfghklmnprst"[digit // 5] + "aeiou"[digit % 5]
    return syllables


LIBRARY = Library.PUBLIC
DIMENSION = 384
QUERIES = 300
ROUNDS = 3
"""The fastest of so many counts, for each question."""
POOL = 50
_SAMPLE_S = 0.2
Figures = dict[str, float]


class RandomEmbedder:
    """Random unit vectors: they cost what real ones cost; only speed is measured."""

    identity = EmbedderIdentity("bench", "random", "0", DIMENSION, 256)

    def __init__(self) -> None:
        """Start the stream of vectors."""
        self._rng = np.random.default_rng(11)

    def embed_passages(self, texts: Sequence[str]) -> FloatArray:
        """Return one row per text."""
        return l2_normalise(self._rng.standard_normal((len(texts), DIMENSION)).astype(np.float32))

    def embed_query(self, text: str) -> FloatArray:
        """Return one vector."""
        return np.asarray(self.embed_passages([text])[0])

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        """Return a count that always fits."""
        return [len(text.split()) for text in texts]


def options(path: Path) -> IndexOptions:
    """Return where a step's data lies."""
    return IndexOptions(path, path / "chroma")


def index(path: Path, chunks: int) -> Figures:
    articles = TextPool().articles(round(chunks / CHUNKS_PER_ARTICLE))
    with IndexStore(options(path), vector_store="off") as store:
        started, cpu = time.perf_counter(), time.process_time()
        BulkIndexer(store.writer, store.ledger).run(
            BulkTask(LIBRARY, "bench", IngestOptions()), articles, BulkOptions()
        )
        figures = {
            "index_s": time.perf_counter() - started,
            "index_cpu_s": time.process_time() - cpu,
        }
        counts = store.catalog.counts(LIBRARY)
    size = sum(file.stat().st_size for file in path.rglob("*") if file.is_file())
    return {
        **figures,
        "chunks": counts.chunks,
        "text_mb": counts.bytes / 1e6,
        "disk_mb": size / 1e6,
    }


def lexical(path: Path, _: int) -> Figures:
    """Search windows of sentences: our index and bare tantivy in turn, on the same files."""
    index_path = path / "tantivy" / LIBRARY.value
    bare = tantivy.Index(build_schema(), path=str(index_path))
    bare.register_tokenizer(ANALYZER, build_analyzer())
    bare.reload()
    searcher = bare.searcher()

    def ask_bare(text: str) -> None:
        searcher.search(bare.parse_query(text, [BODY]), POOL, count=False)

    with IndexStore(options(path), vector_store="off") as store:
        ours, theirs = _alternate(lambda text: store.lexical.search(LIBRARY, text, POOL), ask_bare)
    return {
        "bm25_p50_ms": _ms(ours, 50),
        "bm25_p95_ms": _ms(ours, 95),
        "tantivy_p95_ms": _ms(theirs, 95),
    }


def embed(path: Path, vectors: int) -> Figures:
    """Give `vectors` chunks a random unit vector and bring the projections up."""
    embedder = RandomEmbedder()
    with IndexStore(options(path), vector_store="foreground") as store:
        identity = embedder.identity
        store.writer.claim(
            LIBRARY,
            Fingerprint(identity.model, identity.digest, DIMENSION, "", "", "bench", "en_stem"),
        )
        started, done = time.perf_counter(), 0
        while done < vectors and (
            page := store.writer.pending_vectors(LIBRARY, min(2000, vectors - done))
        ):
            store.writer.write_vectors(
                LIBRARY,
                [chunk.chunk_id for chunk in page],
                embedder.embed_passages([""] * len(page)),
            )
            done += len(page)
        store.writer.apply(LIBRARY)
        return {"vectors": done, "embed_s": time.perf_counter() - started}


def full(path: Path, _: int) -> Figures:
    """Retrieve as the server does, and its floor: the searches and the catalog's join alone."""
    embedder = RandomEmbedder()
    retrieval = RetrievalOptions(embed_on_query_budget_ms=0)
    with IndexStore(options(path), vector_store="foreground") as store:
        retriever = Retriever(store.catalog, store.vectors, store.lexical, embedder, retrieval)

        def whole(text: str) -> None:
            retriever.retrieve(SearchRequest(text, LIBRARY, top_k=5), Trace())

        def floor(text: str) -> None:
            dense = store.vectors.search(LIBRARY, embedder.embed_query(text), POOL)
            words = store.lexical.search(LIBRARY, text, POOL)
            ids = list(dict.fromkeys(hit.chunk_id for hit in (*dense, *words)))
            store.lexical.score(LIBRARY, text, ids)
            store.vectors.fetch(LIBRARY, ids)
            store.catalog.passages(LIBRARY, ids)

        ours, theirs = _alternate(whole, floor)
    return {
        "full_p50_ms": _ms(ours, 50),
        "full_p95_ms": _ms(ours, 95),
        "floor_p50_ms": _ms(theirs, 50),
    }


def start(path: Path, _: int) -> Figures:
    """Open the store, as a server does before it answers."""
    started = time.perf_counter()
    with IndexStore(options(path), vector_store="off") as store:
        opened = time.perf_counter() - started
        store.lexical.search(LIBRARY, "first question", 5)
        return {"open_s": opened, "first_answer_s": time.perf_counter() - started}


PARTS: dict[str, Callable[[Path, int], Figures]] = {
    "index": index,
    "lexical": lexical,
    "embed": embed,
    "full": full,
    "start": start,
}


def run_part(part: str, path: Path, amount: int = 0) -> Figures:
    """Run a part in its own process; return its figures and peak `NAME_pss_mb`.

    Raises:
        subprocess.CalledProcessError: It failed.
    """
    arguments = [
        sys.executable,
        "-m",
        "evaluation.benchmarks.bulk.growth",
        part,
        str(path),
        str(amount),
    ]
    most = 0
    with subprocess.Popen(arguments, stdout=subprocess.PIPE, text=True) as process:
        while process.poll() is None:
            most = max(most, pss_bytes(process.pid))
            time.sleep(_SAMPLE_S)
        output = process.stdout.read() if process.stdout else ""
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, arguments, output)
    figures: Figures = json.loads(output.splitlines()[-1])
    return {**figures, f"{part}_pss_mb": most / 1e6}


def pss_bytes(pid: int) -> int:
    """Return the proportional set size of a process tree; 0 if the kernel lacks it."""
    total = 0
    try:
        for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
            if line.startswith("Pss:"):
                total += int(line.split()[1]) * 1024
        for task in Path(f"/proc/{pid}/task").iterdir():
            children = (task / "children").read_text().split()
            total += sum(pss_bytes(int(child)) for child in children)
    except (OSError, ValueError):  # it ended since
        return total
    return total


def _alternate(
    ours: Callable[[str], object], theirs: Callable[[str], object]
) -> tuple[list[float], list[float]]:
    """Time both on the same questions in turn, after a warm-up: the fastest round, seconds."""
    questions = TextPool().queries(QUERIES)
    for text in questions[:20]:
        ours(text)
        theirs(text)
    own, other = [], []
    for text in questions:
        own.append(min(_timed(ours, text) for _ in range(ROUNDS)))
        other.append(min(_timed(theirs, text) for _ in range(ROUNDS)))
    return own, other


def _timed(call: Callable[[str], object], text: str) -> float:
    started = time.perf_counter()
    call(text)
    return time.perf_counter() - started


def _ms(seconds: Sequence[float], percentile: float) -> float:
    values: npt.NDArray[np.float64] = np.asarray(seconds)
    return float(np.percentile(values, percentile)) * 1000


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("part", choices=PARTS)
    parser.add_argument("path", type=Path)
    parser.add_argument("amount", type=int)
    given = parser.parse_args()
    given.path.mkdir(parents=True, exist_ok=True)
    print(json.dumps(PARTS[given.part](given.path, given.amount)))
