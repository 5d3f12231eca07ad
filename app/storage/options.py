"""Options of storage."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path

from app.core.types import EmbeddedStore, Library, StoreKind

STORE_BYTES: dict[StoreKind, int] = {"chroma": 2048, "faiss": 120, "qdrant": 0}
"""Bytes of memory that a vector of 384 numbers counts for: row and graph links, or code and id
with room to grow; an engine has its own."""


def stored_bytes(kind: StoreKind, dimension: int) -> int:
    """Return the bytes that a vector takes in a store, on disk and in memory.

    A graph keeps float32 rows and, with M = 16, some 300 bytes of links and labels (Malkov 2016,
    4.2.3). Lists keep a bit a number, two factors, an id and its mark (evaluation/reports/ann.md).
    """
    if kind == "qdrant":
        return 0
    return 4 * dimension + 300 if kind == "chroma" else dimension // 8 + 24


MOST_VECTORS = 1 << 40
"""Vectors in an engine at most: as many as there are chunk ids."""

LEAST_VECTORS = 100_000
"""Vectors that are searched on a machine of any memory."""


@dataclass(frozen=True, slots=True)
class IndexOptions:
    """Directories of data, and parameters of the projections."""

    data_dir: Path
    chroma_dir: Path
    database_url: str = field(default="", repr=False)
    """PostgreSQL that holds the catalog of several servers; empty: a SQLite file in `data_dir`."""
    chroma_store_text: bool = False
    """Whether Chroma's rows hold the text and the title too."""
    search_url: str = ""
    """Nodes of a search engine, with commas; empty: the embedded stores."""
    search_api_key: str = field(default="", repr=False)
    search_replicas: int = 1
    """Copies of every point in the engine, of which all but one may be away."""
    search_shards: int = 0
    """Shards of a new collection; 0: twice the nodes of the cluster, at least 6."""
    max_file_bytes: int = 50 * 1024 * 1024
    """Largest original that an import takes in."""
    collection_papers: str = "papers"
    collection_public: str = "public"
    papers_store: EmbeddedStore = "chroma"
    public_store: EmbeddedStore = "chroma"
    max_dense_vectors: int = 1_000_000
    """Beyond it chunks are found lexically only; both libraries share it."""
    dense_memory_bytes: int = 0
    """Memory for vectors that are searched, which sets the limit by each store's bytes; 0:
    `max_dense_vectors` does."""
    vector_cache_vectors: int = 100_000
    """Libraries up to this many vectors are searched in memory, exactly; 0 leaves every search
    to the store."""
    ef_search: int = 400
    """How wide Chroma searches at least: four times the largest pool of candidates."""
    tantivy_heap_bytes: int = 128 * 1024 * 1024
    tantivy_threads: int = 0
    """0: one per core, at most 4."""
    title_boost: float = 0.3  # evaluation/reports/late.md
    """Weight of BM25 over the title against the body's 1.0; 0 does not search it."""
    section_boost: float = 0.5
    """Weight of BM25 over the section's name."""
    originals_url: str = ""
    """Object store that keeps originals; empty: a directory in `data_dir`."""
    originals_cache_bytes: int = 2 << 30
    """Originals of the object store that stay on this machine, the last used."""

    @property
    def shared(self) -> bool:
        """Return whether other processes may work on the same catalog."""
        return bool(self.database_url and self.search_url)

    @property
    def faiss_dir(self) -> Path:
        return self.data_dir / "faiss"

    @property
    def store_dirs(self) -> dict[EmbeddedStore, Path]:
        return {"chroma": self.chroma_dir, "faiss": self.faiss_dir}

    @property
    def stored(self) -> bool:
        """Return whether a store that is used has files, or is an engine's."""
        kinds = {self.papers_store, self.public_store}
        return bool(self.search_url) or any(self.store_dirs[kind].exists() for kind in kinds)

    def store_of(self, library: Library) -> StoreKind:
        """Return the kind of a library's store: the engine's where there is one."""
        if self.search_url:
            return "qdrant"
        return self.papers_store if library is Library.PAPERS else self.public_store

    def prefix_of(self, library: Library) -> str:
        """Return how the names of a library's collections begin."""
        papers = library is Library.PAPERS
        return f"{self.collection_papers if papers else self.collection_public}__"

    def advised_store(self, library: Library, vectors: int) -> StoreKind:
        """Return the kind for so many vectors: Chroma, faiss beyond its limit, or the engine."""
        if self.search_url:
            return "qdrant"
        graph = replace(self, search_url="", papers_store="chroma", public_store="chroma")
        return "chroma" if vectors <= graph.most_vectors(library) else "faiss"

    def most_vectors(self, library: Library, papers: int = 0) -> int:
        """Return how many vectors are searched at most; `public` has what `papers` leaves."""
        mine = STORE_BYTES[self.store_of(library)]
        most = self.max_dense_vectors
        taken = papers
        if self.dense_memory_bytes and not mine:
            return MOST_VECTORS
        if self.dense_memory_bytes:
            most = max(LEAST_VECTORS, self.dense_memory_bytes // mine)
            taken = papers * STORE_BYTES[self.store_of(Library.PAPERS)] // mine
        return max(0, most - (taken if library is Library.PUBLIC else 0))
