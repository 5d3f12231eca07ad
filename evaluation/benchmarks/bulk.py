"""Index synthetic text by the bulk path at several sizes; write evaluation/reports/bulk.{json,md}.

    make bench-bulk                                     # about twenty minutes on two idle cores
    python -m evaluation.benchmarks.bulk --steps 10000,100000 --vectors 0

Growth is fitted on the smaller libraries and held against the largest. Our search by words and bare
tantivy ask the same files in turn. Then the tables of docs/scale.md are made from the report.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path

import numpy as np
import tantivy

from app.core.trace import Trace
from app.core.types import FloatArray, Library
from app.core.vectors import l2_normalise
from app.ingest.embedding import fingerprint_of
from app.ingest.options import IngestOptions
from app.ingest.parsers.wikitext import parse_wikitext
from app.ingest.sources.dumps import XmlDump
from app.models.minilm import MiniLmEmbedder
from app.retrieval.pipeline import Retriever
from app.retrieval.request import RetrievalOptions, SearchRequest
from app.storage.options import IndexOptions
from app.storage.store import IndexStore
from app.storage.words.tantivy import ANALYZER, BODY, build_analyzer, build_schema
from evaluation.benchmarks import scale_page
from evaluation.lib.corpus import Figures, TextPool, give_vectors, index_articles
from evaluation.lib.growth import Law, Part, fit, is_part, percentiles, run_part, tables, timed
from evaluation.lib.reports import COLLECTIONS, Line, options, write
from evaluation.lib.served import Served

DUMP = Path("wikipedia") / "enwiki-shortened.xml.bz2"
CHUNKS_PER_ARTICLE = 5.0
"""Of this text at the default chunk size; a library's own count is what is reported."""
LAWS: dict[str, tuple[Law, str]] = {
    "index_cpu_s": (
        "linear",
        "every chunk is cut, stored and indexed once, and merged a few times",
    ),
    "disk_mb": ("linear", "every chunk has its rows and its postings"),
    "bm25_p95_ms": ("linear", "a posting list is as long as its word is frequent"),
    "index_pss_mb": ("logarithmic", "heaps have fixed sizes; a segment comes for each doubling"),
}
LIBRARY = Library.PUBLIC
DIMENSION = 384
QUERIES, ROUNDS = 300, 3
"""Questions, and how often each is asked: its fastest time counts."""
POOL = 50
TURNS = 3
"""Each library's fastest of so many openings; libraries come in turn, for a machine has slow
minutes."""
MODULE = "evaluation.benchmarks.bulk"
_MEMORY_MB = 2 * 1024**3 / 1e6


class RandomEmbedder:
    """Random unit vectors: they cost what real ones cost; only speed is measured.

    They are said to be the server's own: one that is started in between embeds some chunks.
    """

    def __init__(self) -> None:
        self.identity = MiniLmEmbedder(threads=1).identity
        self._rng = np.random.default_rng(11)

    def embed_passages(self, texts: Sequence[str]) -> FloatArray:
        return l2_normalise(self._rng.standard_normal((len(texts), DIMENSION)).astype(np.float32))

    def embed_query(self, text: str) -> FloatArray:
        return np.asarray(self.embed_passages([text])[0])

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        return [len(text.split()) for text in texts]


def index_options(path: Path) -> IndexOptions:
    return IndexOptions(path, path / "chroma")


def index(path: Path, _: Path, chunks: int) -> Figures:
    articles = TextPool().articles(round(chunks / CHUNKS_PER_ARTICLE))
    with IndexStore(index_options(path), vector_store="off") as store:
        started, cpu = time.perf_counter(), time.process_time()
        index_articles(store, articles)
        index_s, index_cpu_s = time.perf_counter() - started, time.process_time() - cpu
        counts = store.catalog.counts(LIBRARY)
    size = sum(file.stat().st_size for file in path.rglob("*") if file.is_file())
    return {
        "index_s": index_s,
        "index_cpu_s": index_cpu_s,
        "chunks": counts.chunks,
        "text_mb": counts.bytes / 1e6,
        "disk_mb": size / 1e6,
    }


def lexical(path: Path, _: Path, __: int) -> Figures:
    """Search windows of sentences: our index and bare tantivy in turn, on the same files."""
    bare = tantivy.Index(build_schema(), path=str(path / "tantivy" / LIBRARY.value))
    bare.register_tokenizer(ANALYZER, build_analyzer())
    bare.reload()
    searcher = bare.searcher()

    def ask_bare(text: str) -> None:
        searcher.search(bare.parse_query(text, [BODY]), POOL, count=False)

    with IndexStore(index_options(path), vector_store="off") as store:
        return _in_turn(
            {"bm25": lambda text: store.lexical.search(LIBRARY, text, POOL), "tantivy": ask_bare}
        )


def embed(path: Path, _: Path, vectors: int) -> Figures:
    """Give `vectors` chunks a random unit vector and bring the projections up."""
    embedder = RandomEmbedder()
    made_by = fingerprint_of(embedder.identity, IngestOptions())
    with IndexStore(index_options(path), vector_store="foreground") as store:
        started = time.perf_counter()
        done = give_vectors(store, made_by, vectors, lambda _, n: embedder.embed_passages([""] * n))
        return {"vectors": done, "embed_s": time.perf_counter() - started}


def full(path: Path, _: Path, __: int) -> Figures:
    """Retrieve as the server does, and its floor: the searches and the catalog's join alone."""
    embedder = RandomEmbedder()
    retrieval = RetrievalOptions(embed_on_query_budget_ms=0)
    with IndexStore(index_options(path), vector_store="foreground") as store:
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

        return _in_turn({"full": whole, "floor": floor})


def start(path: Path, _: Path, __: int) -> Figures:
    """Open the store, as a server does before it answers."""
    started = time.perf_counter()
    with IndexStore(index_options(path), vector_store="off") as store:
        opened = time.perf_counter() - started
        store.lexical.search(LIBRARY, "first question", 5)
        return {"open_s": opened, "first_answer_s": time.perf_counter() - started}


PARTS: dict[str, Part] = {
    "index": index, "lexical": lexical, "embed": embed, "full": full, "start": start,
}  # fmt: skip


def _in_turn(ways: dict[str, Callable[[str], object]]) -> Figures:
    """Time ways on the same questions in turn, after a warm-up: the fastest round of each."""
    questions = TextPool().queries(QUERIES)
    took: dict[str, list[float]] = {name: [] for name in ways}
    for text in questions[:20]:
        for way in ways.values():
            way(text)
    for text in questions:
        for name, way in ways.items():
            took[name].append(min(timed(way, [text] * ROUNDS)[1]))
    return {key: value for name, ms in took.items() for key, value in percentiles(name, ms).items()}


def _best(turns: Sequence[Figures]) -> Figures:
    """Return the shortest of each time and the most of the rest, which is memory."""
    return {
        name: (min if name.endswith(("_ms", "_s")) else max)(turn[name] for turn in turns)
        for name in turns[0]
    }


def server_starts(path: Path, empty: Path, name: str) -> Figures:
    """Start servers on both directories in turn; the first start makes files and does not count."""

    def start_s(data: Path) -> float:
        with Served(data) as server:
            return server.start_s

    pairs = [(start_s(path), start_s(empty)) for _ in range(TURNS + 1)][1:]
    return {
        f"{name}_s": min(pair[0] for pair in pairs),
        f"{name}_empty_s": min(pair[1] for pair in pairs),
    }


def wikitext_mb_per_cpu_s(dump: Path) -> float:
    """Return how fast a processor reads the articles of a real dump."""
    pages = [page for page in XmlDump(dump) if page.redirect_to is None and page.namespace == 0]
    started = time.process_time()
    for page in pages:
        parse_wikitext(page.source, page.title)
    return sum(len(page.source) for page in pages) / 1e6 / (time.process_time() - started)


def grown(directory: Path, sizes: Sequence[int], vectors: int) -> list[Figures]:
    """Make the libraries, measure each, and the largest one with vectors and under servers."""

    def part(name: str, size: int, amount: int = 0) -> Figures:
        return run_part(MODULE, name, directory / str(size), directory, amount)

    steps = {size: part("index", size, size) for size in sizes}
    turns = [
        {size: part("lexical", size) | part("start", size) for size in sizes} for _ in range(TURNS)
    ]
    for size in sizes:
        steps[size] |= _best([turn[size] for turn in turns])
    most, empty = max(sizes), directory / "empty"
    steps[most] |= server_starts(directory / str(most), empty, "server_start")
    if vectors:
        steps[most] |= part("embed", most, vectors) | part("full", most)
        steps[most] |= server_starts(directory / str(most), empty, "server_start_with_vectors")
    return list(steps.values())


def main() -> int:
    args = options(
        __doc__,
        data=COLLECTIONS["data"],
        steps=("10000,31623,100000,1000000", "chunks of each"),
        vectors=(100_000, "random ones of the largest; 0 for none"),
    )
    dump = args.data / DUMP
    wikitext = wikitext_mb_per_cpu_s(dump) if dump.exists() else None
    with tempfile.TemporaryDirectory(prefix="documind-bench-") as folder:
        sizes = sorted(int(size) for size in args.steps.split(","))
        steps = grown(Path(folder), sizes, args.vectors)
    fits, largest = fit(LAWS, steps, "chunks"), steps[-1]
    memory = max(value for step in steps for name, value in step.items() if "_pss_mb" in name)
    starts = ("server_start", "server_start_with_vectors")
    ratios: list[tuple[str, str, str, float]] = [
        ("BM25 p95 by bare tantivy's", "bm25_p95_ms", "tantivy_p95_ms", 2),
        *((f"{name} by an empty one's", f"{name}_s", f"{name}_empty_s", 2) for name in starts),
        ("full retrieval by its floor", "full_p50_ms", "floor_p50_ms", 1.5),
    ]
    lines = [
        Line("memory (PSS)", memory, _MEMORY_MB, "MB"),
        *(
            Line(what, largest[one] / largest[other], limit)
            for what, one, other, limit in ratios
            if one in largest
        ),
        *(Line(f"fit of {one.name}: off by", one.off, 0.25) for one in fits),
    ]
    figures = {} if wikitext is None else {"wikitext MB a processor second": wikitext}
    extra = {"steps": steps, "fits": [asdict(one) for one in fits]}
    page = tables(steps, "chunks", fits)
    remarks = ["Synthetic text; each part runs in a process of its own, sampled for memory."]
    code = write(
        "bulk",
        "Bulk indexing",
        remarks,
        lines,
        figures,
        "make bench-bulk",
        tables=page,
        extra=extra,
    )
    scale_page.main()
    return code


if __name__ == "__main__":
    sys.exit(None if is_part(PARTS) else main())
