"""Open the store of vectors that each library asks for, and remove what it left."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from app.core.errors import ExtraMissing
from app.core.types import Library, StoreKind
from app.index.dense.chroma.store import ChromaStore
from app.index.dense.port import VectorStore
from app.index.files.durable import delete_tree
from app.index.files.steps import Steps
from app.index.options import IndexOptions

if TYPE_CHECKING:
    from app.index.engine.qdrant import SearchEngine

log = logging.getLogger(__name__)


def open_stores(
    options: IndexOptions, engine: SearchEngine | None, steps: Steps
) -> dict[Library, VectorStore]:
    """Return each library's store; libraries of one kind share it.

    Where there is an engine, it is the store of all.

    Raises:
        ExtraMissing: The extra of a kind is not installed; the message says how to install it.
    """
    if engine is not None:
        from app.index.dense.qdrant import QdrantStore  # noqa: PLC0415  # the extra `shared`

        return dict.fromkeys(Library, QdrantStore(engine, steps, ef_search=options.ef_search))
    kinds = {options.store_of(library) for library in Library}
    stores = {kind: _open(kind, options, steps) for kind in kinds}
    return {library: stores[options.store_of(library)] for library in Library}


def _open(kind: StoreKind, options: IndexOptions, steps: Steps) -> VectorStore:
    if kind == "faiss":
        try:
            from app.index.dense.faiss.store import FaissStore  # noqa: PLC0415  # the extra `large`
        except ImportError as exc:
            raise ExtraMissing(
                "VECTOR_STORE=faiss needs the extra 'large'; run: pip install 'faiss-cpu>=1.15'"
            ) from exc
        return FaissStore(options.faiss_dir, steps)
    return ChromaStore(options.chroma_dir, steps, ef_search=options.ef_search)


def delete_unused(
    options: IndexOptions, stores: Mapping[Library, VectorStore], steps: Steps
) -> None:
    """Remove vectors of a library from stores that it does not use any more.

    Call it when every library's own store is whole. A directory that lies outside the data
    directory may hold other files: a line of the log names it.

    Raises:
        IndexDamaged: A store failed.
    """
    for library, mine in stores.items():
        for store in set(stores.values()) - {mine}:
            for name in store.collections():
                if name.startswith(options.prefix_of(library)):
                    store.drop(name)
    for kind, path in options.store_dirs.items():
        if kind not in map(options.store_of, stores) and path.exists():
            _delete(path, options, steps)


def _delete(path: Path, options: IndexOptions, steps: Steps) -> None:
    if options.data_dir in path.parents:
        delete_tree(path, steps, "vectors.delete_unused")
    else:
        log.warning("no library keeps its vectors in %s any more: it may be removed", path)
