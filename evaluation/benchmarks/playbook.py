"""Compute the playbook's figures of docs/scale.md: measured or derived.

Each is from a report, or arithmetic on one, and marked as such.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from app.storage.options import stored_bytes

MONTH_H = 30 * 24.0
AVAILABLE = 0.995
"""Share of the hours of a month that the service level promises."""
WRITE_MB_S = 200.0
"""Assumed speed of a cloud disk or of a network to the place of backups, MB/s."""
VECTOR_BYTES = stored_bytes("chroma", 384)
"""A vector that is searched: see `scale_page.GRAPH_BYTES`."""

Row = tuple[str, str, str]


def rows(reports: Path) -> list[Row]:
    """Return what, figure and source of each row.

    Args:
        reports: Folder of the reports that are read.
    """
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
