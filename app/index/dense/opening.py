"""Open the store of vectors that the settings ask for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from app.index.dense.chroma.store import ChromaStore
from app.index.dense.port import VectorStore
from app.index.files.durable import delete_tree
from app.index.files.steps import Steps
from app.index.options import IndexOptions

if TYPE_CHECKING:
    from app.index.engine.qdrant import SearchEngine


def open_vector_store(
    options: IndexOptions, engine: SearchEngine | None, steps: Steps
) -> VectorStore:
    """Return the engine's store where there is an engine, else Chroma's."""
    if engine is None:
        return ChromaStore(options.chroma_dir, steps, ef_search=options.ef_search)
    from app.index.dense.qdrant import QdrantStore  # noqa: PLC0415  # an extra

    return QdrantStore(engine, steps, ef_search=options.ef_search)


def delete_embedded(options: IndexOptions, steps: Steps) -> bool:
    """Remove Chroma's files after a change to an engine; return whether there were any.

    Without them the engine is filled from the catalog, and so is Chroma if it is used again.
    """
    found = options.data_dir in options.chroma_dir.parents and options.chroma_dir.exists()
    if found:
        delete_tree(options.chroma_dir, steps, "vectors.delete_embedded")
    return found
