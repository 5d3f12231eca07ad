"""Write the tables of docs/scale.md from evaluation/reports/*.json.

`python -m evaluation.benchmarks.scale_page`

Nothing on that page is typed by hand but words: what a report does not hold is left out.
"""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from app.jobs.bulk import catalog_vector_bytes
from app.storage.options import stored_bytes
from evaluation.benchmarks.bulk.report import WIKIPEDIA_CHUNKS
from evaluation.lib.paths import REPORTS, ROOT

Mark = Literal["measured", "vendor", "assumed"]


@dataclass(frozen=True, slots=True)
class Figure:
    """A number and where it is from."""

    value: float
    mark: Mark
    source: str
    """The report, the vendor's page, or why it is assumed."""

    def __str__(self) -> str:
        """Return mark and source."""
        return f"{self.mark}: {self.source}"


DIMENSION = 384
"""Of the vectors in the reports."""

MEASURED_CHUNKS = 25_000_000
"""Chunks to which bulk.json and ann.json carry their measurements."""

WORDS_P95_MS = Figure(402.35645541978465, "measured", "bulk.json, carried to 25,000,000 chunks")
"""A search by words in the embedded server at `MEASURED_CHUNKS`, milliseconds."""

TEXT_DISK_MB = Figure(20100.466957628716, "measured", "bulk.json, carried to 25,000,000 chunks")
"""Text and words of the embedded server at `MEASURED_CHUNKS`, MB."""

FAISS_BYTES = Figure(86.388736, "measured", "ann.json, at 1,000,000 chunks")
"""Memory of a vector of `DIMENSION` numbers in faiss."""

SERVER_MB = Figure(433.5, "measured", "start.json")
"""Memory of a server with 10,000 chunks, MB."""

PASSAGES_PER_S = Figure(114.2, "measured", "embed.json, built-in model, 2 cores")
"""Passages that a machine like the report's embeds a second."""

VECTOR_MEMORY_FACTOR = Figure(1.5, "vendor", "Qdrant's documentation, Capacity Planning")
"""Memory of vectors in the engine, graph included, per byte of their float32 numbers."""

LINK_BYTES = Figure(150.0, "assumed", "graph of 16 links, Malkov 2016")
"""Links of a vector in the engine's graph on disk, bytes."""

WORD_BYTES = Figure(640.0, "assumed", "80 distinct words a chunk, 8 bytes each")
"""Words of a chunk in the engine on disk, bytes."""

CATALOG_CHUNK_BYTES = Figure(1587.0, "measured", "load_shared.json, at 100,000 chunks")
"""A chunk in PostgreSQL with text, rows, indexes and a vector of `DIMENSION` numbers, bytes."""

NODE_MEMORY_GB = Figure(128.0, "assumed", "a common server")
NODE_DISK_GB = Figure(1000.0, "assumed", "a common server")
FILLED = Figure(0.8, "assumed", "a fifth stays free")
"""Share of a node's memory and disk that is planned with."""

SLOWEST_SEARCH_MS = Figure(1000.0, "assumed", "a person waits a second")
"""Search by words above which the embedded server is not planned, p95."""


@dataclass(frozen=True, slots=True)
class Row:
    """One figure of a plan."""

    mode: str
    """`embedded`, `shared`, or `both`."""
    what: str
    value: float | None
    """None: not possible or not known at this size."""
    unit: str
    source: str
    """The figures that it is computed from, each with its mark."""


def plan(
    chunks: int, dimension: int = DIMENSION, replicas: int = 2, machines: int = 1
) -> list[Row]:
    """Return what a library of so many chunks needs, embedded and shared.

    Args:
        chunks: In the library, 1 or more.
        dimension: Numbers of a vector.
        replicas: Copies of each point in the search engine.
        machines: Machines that embed, each like that of the report.
    """
    return [
        _hours(chunks, dimension, machines),
        *_embedded(chunks, dimension),
        *_shared(chunks, dimension, replicas),
    ]


def _hours(chunks: int, dimension: int, machines: int) -> Row:
    hours = chunks / PASSAGES_PER_S.value / machines / 3600
    known = hours if dimension == DIMENSION else None  # another model has a speed of its own
    return Row("both", f"embedding, {2 * machines} cores", known, "h", str(PASSAGES_PER_S))


def _embedded(chunks: int, dimension: int) -> list[Row]:
    share = chunks / MEASURED_CHUNKS
    slow_ms = WORDS_P95_MS.value * share
    fits = slow_ms <= SLOWEST_SEARCH_MS.value
    each = FAISS_BYTES.value * stored_bytes("faiss", dimension) / stored_bytes("faiss", DIMENSION)
    memory = SERVER_MB.value * 1e6 + chunks * each
    disk = TEXT_DISK_MB.value * 1e6 * share + chunks * (catalog_vector_bytes(dimension) + each)
    rows = [
        ("nodes", 1.0, "", _of(SLOWEST_SEARCH_MS)),
        ("memory", memory / 1e9, "GB", _of(FAISS_BYTES, SERVER_MB)),
        ("disk", disk / 1e9, "GB", _of(TEXT_DISK_MB, FAISS_BYTES)),
    ]
    return [
        Row("embedded", "search by words, p95", slow_ms, "ms", _of(WORDS_P95_MS)),
        *(Row("embedded", what, value if fits else None, *rest) for what, value, *rest in rows),
    ]


def _shared(chunks: int, dimension: int, replicas: int) -> list[Row]:
    copies = chunks * replicas
    memory_gb = copies * 4 * dimension * VECTOR_MEMORY_FACTOR.value / 1e9
    codes_gb = copies * (dimension + LINK_BYTES.value) / 1e9
    disk_gb = copies * (4 * dimension + LINK_BYTES.value + WORD_BYTES.value) / 1e9
    least = 3 if replicas > 1 else 1  # a majority must survive the loss of one
    nodes = max(
        least,
        replicas,
        math.ceil(memory_gb / NODE_MEMORY_GB.value / FILLED.value),
        math.ceil(disk_gb / NODE_DISK_GB.value / FILLED.value),
    )
    catalog_gb = chunks * (CATALOG_CHUNK_BYTES.value + 2 * (dimension - DIMENSION)) / 1e9
    node = _of(VECTOR_MEMORY_FACTOR, NODE_MEMORY_GB, NODE_DISK_GB, FILLED)
    return [
        Row("shared", "search nodes of 128 GB, 1 TB", float(nodes), "", node),
        Row("shared", "memory of all nodes", memory_gb, "GB", _of(VECTOR_MEMORY_FACTOR)),
        Row(
            "shared", "memory with codes of a byte (DocuMind sets none)", codes_gb, "GB",
            _of(LINK_BYTES),
        ),
        Row("shared", "disk of all nodes", disk_gb, "GB", _of(LINK_BYTES, WORD_BYTES)),
        Row("shared", "PostgreSQL, each server", catalog_gb, "GB", _of(CATALOG_CHUNK_BYTES)),
    ]  # fmt: skip


def _of(*figures: Figure) -> str:
    return "; ".join(str(figure) for figure in figures)


def shown(row: Row) -> str:
    """Return a row's value as people read it."""
    if row.value is None:
        return "not possible" if row.mode == "embedded" else "not measured"
    if row.unit == "GB" and row.value >= 1000:
        return f"{row.value / 1000:.1f} TB"
    number = f"{row.value:,.0f}" if row.value >= 10 or not row.unit else f"{row.value:.1f}"
    return f"{number} {row.unit}".strip()


MONTH_H = 30 * 24.0
AVAILABLE = 0.995
"""Share of the hours of a month that the service level promises."""
WRITE_MB_S = 200.0
"""Assumed speed of a cloud disk or of a network to the place of backups, MB/s."""
VECTOR_BYTES = stored_bytes("chroma", 384)
"""A vector that is searched: see `GRAPH_BYTES`."""

Said = tuple[str, str, str]
"""What, figure and source, in words."""


def rows(reports: Path) -> list[Said]:
    """Return what, figure and source of each row."""
    start, load, query, ingest = (
        _figures(reports, name) for name in ("start", "load", "query", "ingest")
    )
    crash, damage, bulk = (_report(reports, name) for name in ("crash", "damage", "bulk"))
    largest = max(bulk["steps"], key=lambda step: step["chunks"])
    memory = start["memory after 100 questions MB"]
    ready = [outcome["served"]["ready_s"] for outcome in damage["outcomes"] if outcome["damaged"]]
    budget_h = MONTH_H * (1 - AVAILABLE)
    tokens_s = 20 * 64
    disk_mb = largest["disk_mb"]
    return [
        ("memory of a server with 10,000 chunks", f"{memory:.0f} MB", "start.md"),
        (
            "memory for a million vectors more",
            f"{VECTOR_BYTES * 1e6 / 1e9:.1f} GB",
            f"arithmetic: {VECTOR_BYTES} bytes each",
        ),
        (
            "search over HTTP at 50,000 chunks, p50 / p95",
            f"{query['search p50 ms']:.0f} / {query['search p95 ms']:.0f} ms",
            "query.md",
        ),
        (
            "searches a second, one after the other",
            f"{1000 / query['search p50 ms']:.0f}",
            "arithmetic: 1 s / p50 of query.md",
        ),
        (
            "answers streamed at once without an error",
            "64",
            "load.md, with a model host of 20 tokens a second each",
        ),
        (
            "tokens a second the model host must write for that",
            f"{tokens_s:,}",
            "arithmetic: 64 times 20",
        ),
        (
            "processor time of the server per answer",
            f"{load['64 streams, processor ms of the server per answer']:.0f} ms",
            "load.md",
        ),
        (
            "files to vectors, built-in model",
            f"{ingest['chunks/s']:.0f} chunks a second",
            "ingest.md",
        ),
        (
            "100,000 chunks to vectors",
            f"{100_000 / ingest['chunks/s'] / 60:.0f} min",
            "arithmetic: by ingest.md",
        ),
        ("start, 10,000 chunks", f"{start['start-up s']:.1f} s", "start.md"),
        (
            "start with " + f"{largest['chunks']:,.0f} chunks",
            f"{largest['server_start_s']:.1f} s",
            "bulk.md",
        ),
        (
            "promises broken in kills under load",
            f"{crash['figures']['broken_promises']:.0f} in {crash['figures']['kills']:.0f} kills",
            "crash.md",
        ),
        (
            "ready again after such a kill, p50 / at most",
            f"{crash['figures']['ready_s_p50']:.1f} / {crash['figures']['ready_s_max']:.1f} s",
            "crash.md",
        ),
        (
            "ready again after damage to a vector store, at most",
            f"{max(ready):.0f} s",
            "damage.md, 2,600 vectors; search by words goes on",
        ),
        (
            f"backup of {largest['chunks']:,.0f} chunks of text, at {WRITE_MB_S:.0f} MB/s",
            f"{disk_mb / WRITE_MB_S:.0f} s",
            f"arithmetic: {disk_mb:.0f} MB of bulk.md, words included, which a backup leaves out",
        ),
        (
            "words again after a restore, as many chunks",
            f"{largest['index_s']:.0f} s at most",
            "arithmetic: bulk.md's time for cutting, rows and words; a restore needs the words"
            " alone",
        ),
        (
            f"error budget at {AVAILABLE:.1%} of a month",
            f"{budget_h:.1f} h",
            f"arithmetic: {1 - AVAILABLE:.1%} of {MONTH_H:.0f} h",
        ),
        (
            "restarts that this budget pays for",
            f"{budget_h * 3600 / start['start-up s']:,.0f}",
            "arithmetic: budget / start",
        ),
    ]


def _report(reports: Path, name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((reports / f"{name}.json").read_text("utf-8"))
    return found


def _figures(reports: Path, name: str) -> dict[str, float]:
    found: dict[str, float] = _report(reports, name)["figures"]
    return found


PAGE = ROOT / "docs" / "scale.md"
BEGIN, END = (
    "<!-- figures: python -m evaluation.benchmarks.scale_page -->",
    "<!-- end of figures -->",
)
PLAYBOOK = "<!-- figures of the playbook: python -m evaluation.benchmarks.scale_page -->"
PLAN = "<!-- figures of the plan: python -m evaluation.benchmarks.scale_page -->"
PLANNED = (1_000_000, 25_000_000, 100_000_000, 1_000_000_000)
CATALOG_BYTES = catalog_vector_bytes(DIMENSION)
"""A vector in the catalog: float16, key and row header."""
GRAPH_BYTES = stored_bytes("chroma", DIMENSION)
"""A vector in Chroma's graph: float32, links and labels of M = 16 (Malkov 2016, 4.2.3); as
`documind bulk plan` counts it."""
_HOUR = 3600.0
_DAY = 86400.0

Figures = Mapping[str, float]


def report(name: str) -> dict[str, Any] | None:
    """Return a report, None when it was not made yet."""
    path = REPORTS / f"{name}.json"
    return json.loads(path.read_text("utf-8")) if path.exists() else None


def page(text: str) -> str:
    """Return the page with new tables.

    Raises:
        SystemExit: It has no place for them.
    """
    for begin, made in ((BEGIN, tables()), (PLAYBOOK, playbook()), (PLAN, plans())):
        before, mark, rest = text.partition(begin)
        _, closing, after = rest.partition(END)
        if not mark or not closing:
            raise SystemExit(f"docs/scale.md has no lines {begin!r} and {END!r}")
        text = f"{before}{begin}\n\n{made}\n\n{END}{after}"
    return text


def playbook() -> str:
    """Return the table of the operator's playbook."""
    return _table(("what", "figure", "from"), rows(REPORTS))


def plans() -> str:
    """Return what libraries of several sizes need."""
    sizes = [plan(chunks) for chunks in PLANNED]
    rows = [
        (one[0].mode, one[0].what, *(shown(row) for row in one), one[0].source)
        for one in zip(*sizes, strict=True)
    ]
    heads = [f"{chunks:,} chunks" for chunks in PLANNED]
    return _table(("mode", "what", *heads, "computed from"), rows)


def tables() -> str:
    bulk, embed = report("bulk"), report("embed")
    if bulk is None or embed is None:
        return "No report of `make bench-bulk` or `make bench-embed` is here."
    passages_per_s = float(embed["figures"]["squad passages/s"])
    parts = [_all_of_wikipedia(bulk, passages_per_s), _levels(bulk, passages_per_s)]
    if (ann := report("ann")) is not None and ann.get("fits"):
        parts.insert(1, _with_vectors(ann))
    return "\n\n".join(parts)


def _with_vectors(ann: Mapping[str, Any]) -> str:
    """Return what a library of that size is with every vector in VECTOR_STORE=faiss."""
    fitted = {fit["name"]: fit for fit in ann["fits"]}
    each = fitted["bytes_each"]["at_wikipedia"]
    largest = ann["steps"][-1]
    rows = [
        (
            "memory of all vectors",
            f"{each * WIKIPEDIA_CHUNKS / 1e9:.1f} GB",
            f"{each:.0f} bytes each at {largest['vectors']:,.0f}",
        ),
        ("search by vectors, p50", f"{fitted['dense p50_ms']['at_wikipedia']:.0f} ms", "fit"),
        (
            "search by words, questions, p95",
            f"{fitted['bm25_p95_ms']['at_wikipedia']:.0f} ms",
            "fit",
        ),
    ]
    off = max(abs(fit["predicted"] / fit["measured"] - 1) for fit in ann["fits"][1:])
    return (
        _table((f"{WIKIPEDIA_CHUNKS:,} chunks, every vector in faiss", "", "from ann.md"), rows)
        + f"\n\nThese fits are made on {len(ann['steps'])} libraries of real sentences. Without"
        " the largest,"
        f" of {largest['vectors']:,.0f} chunks, they would be at most {off:.0%} off what was"
        " measured there:"
        f" recall@10 {largest['dense recall@10']:.3f}, search by vectors p95"
        f" {largest['dense p95_ms']:.1f} ms, by words {largest['bm25_p95_ms']:.1f} ms."
    )


def _all_of_wikipedia(bulk: Mapping[str, Any], passages_per_s: float) -> str:
    fitted = {fit["name"]: fit for fit in bulk["fits"]}
    cores = int(bulk["cores"])
    cpu_s = fitted["index_cpu_s"]["at_wikipedia"]
    largest = max(bulk["steps"], key=lambda step: step["chunks"])
    text_mb = largest["text_mb"] / largest["chunks"] * WIKIPEDIA_CHUNKS
    rows = [
        (
            "text: cut, stored, searchable by words",
            f"{cpu_s / _HOUR:.1f} processor hours, at least {cpu_s / _HOUR / cores:.1f} h",
            "fit",
        ),
        ("clean text in it", f"{text_mb / 1000:.0f} GB", "per chunk of the largest step"),
        (
            "vectors, built-in model",
            f"{WIKIPEDIA_CHUNKS / passages_per_s / _DAY:.0f} days",
            "passages a second of embed.md",
        ),
        ("disk, text and words", f"{fitted['disk_mb']['at_wikipedia'] / 1000:.0f} GB", "fit"),
        (
            "disk, vectors in the catalog",
            f"{CATALOG_BYTES * WIKIPEDIA_CHUNKS / 1e9:.0f} GB",
            f"{CATALOG_BYTES} bytes each",
        ),
        ("memory while indexing", f"{fitted['index_pss_mb']['at_wikipedia']:.0f} MB", "fit"),
        (
            "memory of vectors that are searched, Chroma",
            f"{GRAPH_BYTES * 1e6 / 1e9:.1f} GB a million",
            f"{GRAPH_BYTES} bytes each",
        ),
        ("search by words, p95", f"{fitted['bm25_p95_ms']['at_wikipedia']:.0f} ms", "fit"),
    ]
    if (words := bulk["wikitext"]) is not None:
        rows.insert(
            1,
            (
                "reading wikitext comes on top",
                f"{words['fast_mb_per_cpu_s']:.0f} MB of it a processor second",
                "measured",
            ),
        )
    off = max(abs(fit["predicted"] / fit["measured"] - 1) for fit in bulk["fits"])
    return (
        _table((f"{WIKIPEDIA_CHUNKS:,} chunks, {cores} cores", "", "from"), rows)
        + f"\n\nA fit is made on libraries up to 100,000 chunks. At {largest['chunks']:,.0f}"
        " chunks the worst of them is"
        f" {off:.0%} off what was measured; the last step to Wikipedia is not measured."
    )


def _levels(bulk: Mapping[str, Any], passages_per_s: float) -> str:
    rows = []
    for step in bulk["steps"]:
        rows.append(
            (
                f"{step['chunks']:,.0f}",
                f"{step['index_cpu_s']:.0f} s",
                _duration(step["chunks"] / passages_per_s),
                f"{step['disk_mb']:.0f} MB",
                f"{step['index_pss_mb']:.0f} MB",
                f"{step['bm25_p50_ms']:.1f} / {step['bm25_p95_ms']:.1f} ms",
                _optional(step, "full_p50_ms", "full_p95_ms"),
                f"{step['open_s']:.2f} s",
            )
        )
    head = (
        "chunks", "text, processor time", "vectors, built-in model", "disk", "memory, indexing",
        "words p50 / p95", "words and 100,000 vectors p50 / p95", "opening",
    )  # fmt: skip
    return _table(head, rows)


def _duration(seconds: float) -> str:
    if seconds < _HOUR:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / _HOUR:.1f} h" if seconds < 2 * _DAY else f"{seconds / _DAY:.0f} days"


def _optional(figures: Figures, first: str, second: str) -> str:
    return f"{figures[first]:.1f} / {figures[second]:.1f} ms" if first in figures else ""


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = ["| " + " | ".join(head) + " |", "|---" * len(head) + "|"]
    return "\n".join(lines + ["| " + " | ".join(row) + " |" for row in rows])


def main() -> int:
    PAGE.write_text(page(PAGE.read_text("utf-8")), "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
