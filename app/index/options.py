"""Options of storage."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class IndexOptions:
    """Directories of data, and parameters of the projections."""

    data_dir: Path
    chroma_dir: Path
    max_file_bytes: int = 50 * 1024 * 1024
    """Largest original that an import takes in."""
    collection_papers: str = "papers"
    collection_public: str = "public"
    max_dense_vectors: int = 1_000_000
    """Beyond it chunks are found lexically only; set from RAM by the settings."""
    exact_limit: int = 100_000
    """Libraries up to this many vectors keep exact float32 rows."""
    exact_unfiltered_limit: int = 100_000
    """Up to it the exact rows answer unfiltered questions too: faster than Chroma's graph, recall 1 (ADR 0020)."""
    behind_at_most: int = 10_000
    """Vectors that Chroma may lack while exact rows serve; the rest is some seconds of its work (ADR 0026)."""
    follow_after_s: float = 10.0
    """Idle seconds before Chroma applies what it lacks; longer than the parse of a long PDF."""
    ef_search_factor: int = 4
    """Chroma's ef_search is at least this many times the pool."""
    tantivy_heap_bytes: int = 128 * 1024 * 1024
    tantivy_threads: int = 0
    """0: one per core, at most 4."""
    title_boost: float = 0.3  # evaluation/reports/late.md
    """Weight of BM25 over the title against the body's 1.0; 0 does not search it."""
    section_boost: float = 0.5
    """Weight of BM25 over the section's name."""
