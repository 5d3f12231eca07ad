"""The figures of a capacity plan: measured, vendors' or assumed.

A measured figure names the report of evaluation/reports that it is from; a test holds them equal.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

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
