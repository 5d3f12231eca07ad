"""Options of storage."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True, slots=True)
class IndexOptions:
    """Directories of data, and parameters of the projections."""

    data_dir: Path
    chroma_dir: Path
    search_url: str = ""
    """Nodes of a search engine, with commas; empty: the embedded stores."""
    search_api_key: str = field(default="", repr=False)
    search_replicas: int = 1
    """Copies of every point in the engine; a write waits for the majority."""
    max_file_bytes: int = 50 * 1024 * 1024
    """Largest original that an import takes in."""
    collection_papers: str = "papers"
    collection_public: str = "public"
    max_dense_vectors: int = 1_000_000
    """Beyond it chunks are found lexically only; set from RAM by the settings."""
    vector_cache_vectors: int = 100_000
    """Libraries up to this many vectors are searched in memory, exactly; 0 leaves every search to the store."""
    ef_search: int = 400
    """How wide Chroma searches at least: four times the largest pool of candidates."""
    tantivy_heap_bytes: int = 128 * 1024 * 1024
    tantivy_threads: int = 0
    """0: one per core, at most 4."""
    title_boost: float = 0.3  # evaluation/reports/late.md
    """Weight of BM25 over the title against the body's 1.0; 0 does not search it."""
    section_boost: float = 0.5
    """Weight of BM25 over the section's name."""

    @property
    def stored(self) -> bool:
        """Return whether there may be a store of vectors: Chroma's files, or an engine."""
        return bool(self.search_url) or self.chroma_dir.exists()
