"""Write the tables of docs/scale.md from evaluation/reports/*.json.

`python -m evaluation.benchmarks.scale_page`

Nothing on that page is typed by hand but words: what a report does not hold is left out.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping
from typing import Any

from app.jobs.bulk import catalog_vector_bytes
from app.storage.options import stored_bytes
from evaluation.lib.growth import WIKIPEDIA_CHUNKS
from evaluation.lib.reports import ROOT, report, table

PAGE = ROOT / "docs" / "scale.md"
COMMAND = "python -m evaluation.benchmarks.scale_page -->"
END = "<!-- end of figures -->"
DIMENSION = 384
"""Of the vectors in the reports."""
CATALOG_BYTES = catalog_vector_bytes(DIMENSION)
"""A vector in the catalog: float16, key and row header."""
GRAPH_BYTES = stored_bytes("chroma", DIMENSION)
"""A vector in Chroma's graph: float32, links and labels of M = 16 (Malkov 2016, 4.2.3); as
`documind bulk plan` counts it."""
PLANNED = (1_000_000, 25_000_000, 100_000_000, 1_000_000_000)
REPLICAS = 2
"""Copies of each point in the search engine."""
_HOUR, _DAY = 3600.0, 86400.0

Report = Mapping[str, Any]
Row = tuple[str, ...]


def fitted(found: Report) -> dict[str, float]:
    """Return what each figure of a report comes to at the size of Wikipedia."""
    return {one["name"]: float(one["at_wikipedia"]) for one in found["fits"]}


def page(text: str) -> str:
    """Return the page with new tables.

    Raises:
        SystemExit: It has no place for them.
    """
    for name, made in (
        ("figures", tables()),
        ("figures of the playbook", playbook()),
        ("figures of the plan", plans()),
    ):
        begin = f"<!-- {name}: {COMMAND}"
        before, mark, rest = text.partition(begin)
        _, closing, after = rest.partition(END)
        if not mark or not closing:
            raise SystemExit(f"docs/scale.md has no lines {begin!r} and {END!r}")
        text = f"{before}{begin}\n\n{made}\n\n{END}{after}"
    return text


# --- what several sizes need

SLOWEST_SEARCH_MS = 1000.0
"""Search by words above which the embedded server is not planned, p95."""
NODE_MEMORY_GB, NODE_DISK_GB, FILLED = 128.0, 1000.0, 0.8
"""Of a search node, and the share that is planned with."""
VECTOR_MEMORY_FACTOR = 1.5
"""Memory of vectors in the engine, graph included, per byte of their float32 numbers."""
LINK_BYTES = 150.0
"""Links of a vector in the engine's graph on disk."""
WORD_BYTES = 640.0
"""Words of a chunk in the engine on disk."""
WORD_MEMORY_BYTES = 2000.0
"""Words of a chunk in the engine's memory, page cache of mapped files included."""
VENDOR = "vendor: Qdrant's documentation, Capacity Planning"
NODE = f"{VENDOR}; measured: words, as below; assumed: a common server; assumed: a common server; assumed: a fifth stays free"
CLUSTER = "measured: three nodes of Qdrant 1.19.0, 2026-11, 300,000 chunks of 25 distinct words"
LINKS = "assumed: graph of 16 links, Malkov 2016"
WORDS = "assumed: 80 distinct words a chunk, 8 bytes each"


def plan(chunks: int) -> list[tuple[str, str, float | None, str, str]]:
    """Return mode, what, value (None: not possible), unit and origin of what a library needs."""
    bulk, ann, start, embed, shared = map(report, ("bulk", "ann", "start", "embed", "load_shared"))
    share = chunks / WIKIPEDIA_CHUNKS
    slow_ms = fitted(bulk)["bm25_p95_ms"] * share
    each = float(ann["steps"][-1]["bytes_each"])
    faiss = f"measured: ann.json, at {ann['steps'][-1]['vectors']:,.0f} chunks"
    text = f"measured: bulk.json, carried to {WIKIPEDIA_CHUNKS:,} chunks"
    memory_gb = (start["figures"]["memory after 100 questions MB"] * 1e6 + chunks * each) / 1e9
    disk_gb = (fitted(bulk)["disk_mb"] * 1e6 * share + chunks * (CATALOG_BYTES + each)) / 1e9
    embedded = (("nodes", 1.0, "", "assumed: a person waits a second"), ("memory", memory_gb, "GB", f"{faiss}; measured: start.json"), ("disk", disk_gb, "GB", f"{text}; {faiss}"))  # fmt: skip
    copies = chunks * REPLICAS / 1e9
    vectors_gb = copies * 4 * DIMENSION * VECTOR_MEMORY_FACTOR
    words_gb = copies * WORD_MEMORY_BYTES
    node_disk_gb = copies * (4 * DIMENSION + LINK_BYTES + WORD_BYTES)
    nodes = max(
        3,  # a majority must survive the loss of one
        math.ceil((vectors_gb + words_gb) / NODE_MEMORY_GB / FILLED),
        math.ceil(node_disk_gb / NODE_DISK_GB / FILLED),
    )
    hours = chunks / float(embed["figures"]["squad passages/s"]) / _HOUR
    row_bytes = float(shared["figures"]["PostgreSQL, bytes a chunk"])
    return [
        ("both", "embedding, 2 cores", hours, "h", "measured: embed.json, built-in model, 2 cores"),
        ("embedded", "search by words, p95", slow_ms, "ms", text),
        *(
            ("embedded", what, value if slow_ms <= SLOWEST_SEARCH_MS else None, unit, source)
            for what, value, unit, source in embedded
        ),
        ("shared", "search nodes of 128 GB, 1 TB", float(nodes), "", NODE),
        ("shared", "shards of a collection", float(max(6, 2 * nodes)), "", "assumed: SEARCH_SHARDS is not set"),
        ("shared", "memory of all nodes, vectors", vectors_gb, "GB", VENDOR),
        ("shared", "memory of all nodes, words", words_gb, "GB", CLUSTER),
        (
            "shared", "memory of vectors with codes of a byte (DocuMind sets none)",
            copies * (DIMENSION + LINK_BYTES), "GB", LINKS,
        ),
        ("shared", "disk of all nodes", node_disk_gb, "GB", f"{LINKS}; {WORDS}"),
        (
            "shared", "PostgreSQL, each server", chunks * row_bytes / 1e9, "GB",
            f"measured: load_shared.json, at {shared['figures']['chunks']:,.0f} chunks",
        ),
    ]  # fmt: skip


def shown(value: float | None, unit: str) -> str:
    if value is None:
        return "not possible"
    if unit == "GB" and value >= 1000:
        return f"{value / 1000:.1f} TB"
    return f"{value:,.0f} {unit}".strip() if value >= 10 or not unit else f"{value:.1f} {unit}"


def plans() -> str:
    rows = [
        (one[0][0], one[0][1], *(shown(row[2], row[3]) for row in one), one[0][4])
        for one in zip(*map(plan, PLANNED), strict=True)
    ]
    return "\n".join(
        table(("mode", "what", *(f"{n:,} chunks" for n in PLANNED), "computed from"), rows)
    )


# --- the operator's playbook

MONTH_H = 30 * 24.0
AVAILABLE = 0.995
"""Share of the hours of a month that the service level promises."""
WRITE_MB_S = 200.0
"""Assumed speed of a cloud disk or of a network to the place of backups, MB/s."""


def rows() -> list[Row]:
    """Return what, figure and source of each row."""
    start, load, query, ingest = (
        report(name)["figures"] for name in ("start", "load", "query", "ingest")
    )
    crash, damage, bulk = report("crash")["figures"], report("damage"), report("bulk")
    largest = max(bulk["steps"], key=lambda step: step["chunks"])
    ready = [outcome["served"]["ready_s"] for outcome in damage["outcomes"] if outcome["damaged"]]
    budget_h, disk_mb = MONTH_H * (1 - AVAILABLE), largest["disk_mb"]
    p50, p95 = query["search p50 ms"], query["search p95 ms"]
    many = f"{largest['chunks']:,.0f}"
    return [
        ("memory of a server with 10,000 chunks", f"{start['memory after 100 questions MB']:.0f} MB", "start.md"),
        ("memory for a million vectors more", f"{GRAPH_BYTES / 1e3:.1f} GB", f"arithmetic: {GRAPH_BYTES} bytes each"),
        ("search over HTTP at 50,000 chunks, p50 / p95", f"{p50:.0f} / {p95:.0f} ms", "query.md"),
        ("searches a second, one after the other", f"{1000 / p50:.0f}", "arithmetic: 1 s / p50 of query.md"),
        ("answers streamed at once without an error", "64", "load.md, with a model host of 20 tokens a second each"),
        ("tokens a second the model host must write for that", f"{20 * 64:,}", "arithmetic: 64 times 20"),
        ("processor time of the server per answer", f"{load['64 streams, processor ms of the server per answer']:.0f} ms", "load.md"),
        ("files to vectors, built-in model", f"{ingest['chunks/s']:.0f} chunks a second", "ingest.md"),
        ("100,000 chunks to vectors", f"{100_000 / ingest['chunks/s'] / 60:.0f} min", "arithmetic: by ingest.md"),
        ("start, 10,000 chunks", f"{start['start-up s']:.1f} s", "start.md"),
        (f"start with {many} chunks", f"{largest['server_start_s']:.1f} s", "bulk.md"),
        ("promises broken in kills under load", f"{crash['broken_promises']:.0f} in {crash['kills']:.0f} kills", "crash.md"),
        ("ready again after such a kill, p50 / at most", f"{crash['ready_s_p50']:.1f} / {crash['ready_s_max']:.1f} s", "crash.md, taken while other programs used both cores"),
        ("ready again after damage to a vector store, at most", f"{max(ready):.0f} s", "damage.md, 4,600 vectors; search by words goes on"),
        (f"backup of {many} chunks of text, at {WRITE_MB_S:.0f} MB/s", f"{disk_mb / WRITE_MB_S:.0f} s",
         f"arithmetic: {disk_mb:.0f} MB of bulk.md, words included, which a backup leaves out"),
        ("words again after a restore, as many chunks", f"{largest['index_s']:.0f} s at most",
         "arithmetic: bulk.md's time for cutting, rows and words; a restore needs the words alone"),
        (f"error budget at {AVAILABLE:.1%} of a month", f"{budget_h:.1f} h", f"arithmetic: {1 - AVAILABLE:.1%} of {MONTH_H:.0f} h"),
        ("restarts that this budget pays for", f"{budget_h * _HOUR / start['start-up s']:,.0f}", "arithmetic: budget / start"),
    ]  # fmt: skip


def playbook() -> str:
    return "\n".join(table(("what", "figure", "from"), rows()))


# --- all of Wikipedia, and the sizes that were measured


def tables() -> str:
    bulk, embed, ann = report("bulk"), report("embed"), report("ann")
    if not bulk or not embed:
        return "No report of `make bench-bulk` or `make bench-embed` is here."
    passages_per_s = float(embed["figures"]["squad passages/s"])
    parts = [_all_of_wikipedia(bulk, passages_per_s), _levels(bulk, passages_per_s)]
    if ann.get("fits"):
        parts.insert(1, _with_vectors(ann))
    return "\n\n".join(parts)


def _tested(found: Report, size: str) -> str:
    """Return how far off the fits would be without the largest library."""
    off = max(abs(one["predicted"] / one["measured"] - 1) for one in found["fits"])
    return (
        f"These fits are made on {len(found['steps'])} libraries. Without the largest, of"
        f" {found['steps'][-1][size]:,.0f} chunks, they would be at most {off:.0%} off what was"
        " measured there"
    )


def _with_vectors(ann: Report) -> str:
    """Return what a library of that size is with every vector in VECTOR_STORE=faiss."""
    at, largest = fitted(ann), ann["steps"][-1]
    each = at["bytes_each"]
    rows = [
        ("memory of all vectors", f"{each * WIKIPEDIA_CHUNKS / 1e9:.1f} GB", f"{each:.0f} bytes each at {largest['vectors']:,.0f}"),
        ("search by vectors, p50", f"{at['dense_p50_ms']:.0f} ms", "fit"),
        ("search by words, questions, p95", f"{at['bm25_p95_ms']:.0f} ms", "fit"),
    ]  # fmt: skip
    return (
        "\n".join(
            table((f"{WIKIPEDIA_CHUNKS:,} chunks, every vector in faiss", "", "from ann.md"), rows)
        )
        + f"\n\n{_tested(ann, 'vectors')}: recall@10 {largest['dense recall@10']:.3f}, search by"
        f" vectors p95 {largest['dense_p95_ms']:.1f} ms, by words {largest['bm25_p95_ms']:.1f} ms."
    )


def _all_of_wikipedia(bulk: Report, passages_per_s: float) -> str:
    at, cores = fitted(bulk), int(bulk["machine"]["cores"])
    cpu_h = at["index_cpu_s"] / _HOUR
    largest = max(bulk["steps"], key=lambda step: step["chunks"])
    text_gb = largest["text_mb"] / largest["chunks"] * WIKIPEDIA_CHUNKS / 1000
    wikitext = bulk["figures"].get("wikitext MB a processor second")
    read = f"{wikitext or 0:.0f} MB of it a processor second"
    rows = [
        ("text: cut, stored, searchable by words", f"{cpu_h:.1f} processor hours, at least {cpu_h / cores:.1f} h", "fit"),
        *([("reading wikitext comes on top", read, "measured")] if wikitext else []),
        ("clean text in it", f"{text_gb:.0f} GB", "per chunk of the largest step"),
        ("vectors, built-in model", f"{WIKIPEDIA_CHUNKS / passages_per_s / _DAY:.0f} days", "passages a second of embed.md"),
        ("disk, text and words", f"{at['disk_mb'] / 1000:.0f} GB", "fit"),
        ("disk, vectors in the catalog", f"{CATALOG_BYTES * WIKIPEDIA_CHUNKS / 1e9:.0f} GB", f"{CATALOG_BYTES} bytes each"),
        ("memory while indexing", f"{at['index_pss_mb']:.0f} MB", "fit"),
        ("memory of vectors that are searched, Chroma", f"{GRAPH_BYTES / 1e3:.1f} GB a million", f"{GRAPH_BYTES} bytes each"),
        ("search by words, p95", f"{at['bm25_p95_ms']:.0f} ms", "fit"),
    ]  # fmt: skip
    return (
        "\n".join(table((f"{WIKIPEDIA_CHUNKS:,} chunks, {cores} cores", "", "from"), rows))
        + f"\n\n{_tested(bulk, 'chunks')}; the last step to Wikipedia is not measured."
    )


def _levels(bulk: Report, passages_per_s: float) -> str:
    def duration(seconds: float) -> str:
        if seconds < _HOUR:
            return f"{seconds / 60:.0f} min"
        return f"{seconds / _HOUR:.1f} h" if seconds < 2 * _DAY else f"{seconds / _DAY:.0f} days"

    def both(step: Mapping[str, float], name: str) -> str:
        p50, p95 = step.get(f"{name}_p50_ms"), step.get(f"{name}_p95_ms")
        return f"{p50:.1f} / {p95:.1f} ms" if p50 and p95 else ""

    rows = [
        (
            f"{step['chunks']:,.0f}", f"{step['index_cpu_s']:.0f} s",
            duration(step["chunks"] / passages_per_s), f"{step['disk_mb']:.0f} MB",
            f"{step['index_pss_mb']:.0f} MB", both(step, "bm25"), both(step, "full"),
            f"{step['open_s']:.2f} s",
        )
        for step in bulk["steps"]
    ]  # fmt: skip
    head = (
        "chunks", "text, processor time", "vectors, built-in model", "disk", "memory, indexing",
        "words p50 / p95", "words and 100,000 vectors p50 / p95", "opening",
    )  # fmt: skip
    return "\n".join(table(head, rows))


def main() -> int:
    PAGE.write_text(page(PAGE.read_text("utf-8")), "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
