"""Write the tables of docs/scale.md from evaluation/reports/*.json.

`python -m evaluation.benchmarks.scale_page`

Nothing on that page is typed by hand but words: what a report does not hold is left out.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from app.jobs.bulk import catalog_vector_bytes
from app.storage.options import stored_bytes
from evaluation.benchmarks.bulk.fitting import WIKIPEDIA_CHUNKS
from evaluation.benchmarks.capacity import plan, shown
from evaluation.benchmarks.playbook import rows
from evaluation.lib.paths import REPORTS, ROOT

PAGE = ROOT / "docs" / "scale.md"
BEGIN, END = (
    "<!-- figures: python -m evaluation.benchmarks.scale_page -->",
    "<!-- end of figures -->",
)
PLAYBOOK = "<!-- figures of the playbook: python -m evaluation.benchmarks.scale_page -->"
PLAN = "<!-- figures of the plan: python -m evaluation.benchmarks.scale_page -->"
PLANNED = (1_000_000, 25_000_000, 100_000_000, 1_000_000_000)
DIMENSION = 384
"""Of the built-in model."""
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
    """Return both tables."""
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
    """Write the tables of the page again."""
    PAGE.write_text(page(PAGE.read_text("utf-8")), "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
