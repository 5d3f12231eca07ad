"""Options of ingest."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Chunker = Literal["headings", "recursive"]
"""`headings`: a chunk never crosses a heading; `recursive`: headings are text like any other,
for comparison."""


@dataclass(frozen=True, slots=True)
class IngestOptions:
    """Limits and sizes of parsing and chunking."""

    chunk_size: int = 1000
    """Ceiling of a chunk, in characters."""
    chunk_overlap: int = 150
    """Characters shared by neighbours; less than chunk_size."""
    chunker: Chunker = "headings"  # docs/decisions/0010-chunks-stay-within-page-and-section.md
    """Where a chunk may not go on; either way it is cut recursively and stays on its page."""
    max_file_bytes: int = 50 * 1024 * 1024
    max_pages: int = 5_000
    max_characters: int = 20_000_000
    """Of one document's text."""
    parse_processes: int = 2
    parse_wall_s: float = 120.0
    parse_cpu_s: int = 60
    parse_memory_bytes: int = 1024**3
    parse_output_bytes: int = 256 * 1024 * 1024
    late_interaction_max_chunks: int = 100_000
    """Libraries of more chunks keep no codes for late interaction, about 5 KB a chunk; 0: none
    does."""
    embed_batch: int = 128
    """Chunks per vector transaction."""
