"""Plan machines, memory, disk and hours for a number of chunks, by arithmetic.

A measured figure names the report of evaluation/reports that it is from; a test holds them equal.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from app.jobs.bulk import catalog_vector_bytes
from app.storage.options import stored_bytes

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
