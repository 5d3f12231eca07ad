"""Open what the settings name: database, originals, search engine, stores of vectors.

What an extra brings is imported only where a setting asks for it.
"""

from __future__ import annotations

import importlib
import logging
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

from app.core.errors import ExtraMissing, InvalidInput
from app.core.ids import without_credentials
from app.core.types import Library, StoreKind
from app.storage.catalog.changes import ChangeLog, Settling
from app.storage.catalog.database import Database
from app.storage.catalog.sqlite import SqliteDatabase
from app.storage.files.durable import Steps, delete_tree
from app.storage.files.originals import Originals, names_in
from app.storage.options import IndexOptions
from app.storage.vectors.chroma import ChromaStore
from app.storage.vectors.port import VectorStore


def open_database(path: Path, url: str, steps: Steps, *, shared: bool = False) -> Database:
    """Return the open catalog; create its tables in a new one.

    Args:
        path: The SQLite file, where no address is given.
        url: Of a PostgreSQL database; empty: the file.
        steps: Where write steps are counted.
        shared: Whether other processes write to the database as well.

    Raises:
        InvalidInput: The address is wrong or does not answer, or the extra `shared` is missing.
        Locked: Another server writes to the database.
        IndexDamaged: The file is damaged.
        StorageError: A newer release wrote it.
    """
    if not url:
        return SqliteDatabase(path, steps)
    opened: Database = (
        _postgresql("several").SharedDatabase(url, steps)
        if shared
        else _postgresql("postgres").PostgresDatabase(url, steps)
    )
    return opened


def open_log(database: Database, *, shared: bool) -> tuple[ChangeLog, Settling]:
    """Return the log of changes, and what knows the revisions that are being replaced.

    Where the catalog is shared, both are read from it alone.
    """
    if not shared:
        return ChangeLog(database), Settling()
    from app.storage.catalog.several import (  # noqa: PLC0415
        SharedChangeLog,
        SharedSettling,
    )

    return SharedChangeLog(database), SharedSettling(database)


def ask_database(url: str) -> str:
    """Return a PostgreSQL database's name and version; nothing is created or locked.

    Raises:
        InvalidInput: The address is wrong or does not answer, or the extra `shared` is missing.
    """
    return str(_postgresql("postgres").ask(url))


def _postgresql(name: str) -> ModuleType:
    """Return a module of PostgreSQL, whose driver is an extra."""
    try:
        return importlib.import_module(f"app.storage.catalog.{name}")
    except ModuleNotFoundError as exc:
        raise InvalidInput(
            "DATABASE_URL needs the extra 'shared': pip install 'documind-server[shared]'"
        ) from exc


# Open the originals: an object store where an address names one, else a directory.

log = logging.getLogger(__name__)


def open_originals(options: IndexOptions, steps: Steps) -> Originals:
    """Return the originals; with an object store, put there what only the directory has.

    Args:
        options: Say where.
        steps: Where write steps are counted.

    Raises:
        InvalidInput: The address is wrong or does not answer, or the extra `shared` is missing.
        OriginalsAway: The store went away while files were put there; the next start goes on.
    """
    directory = options.data_dir / "originals"
    if not options.originals_url:
        return Originals(directory, steps)
    kept: Originals = _object_store().ObjectOriginals(
        options.data_dir / "originals-cache",
        steps,
        options.originals_url,
        options.originals_cache_bytes,
    )
    _put_there(directory, kept)
    return kept


def ask_object_store(url: str) -> str:
    """Return an object store's address; nothing is created.

    Raises:
        InvalidInput: The address is wrong or does not answer, or the extra `shared` is missing.
    """
    return str(_object_store().ask(url))


def _object_store() -> ModuleType:
    """Return the module of object stores, whose client is an extra."""
    try:
        return importlib.import_module("app.storage.files.object_originals")
    except ModuleNotFoundError as exc:
        raise InvalidInput(
            "ORIGINALS_URL needs the extra 'shared': pip install 'documind-server[shared]'"
        ) from exc


def _put_there(directory: Path, kept: Originals) -> None:
    missing = sorted(names_in(directory) - kept.names()) if directory.is_dir() else []
    for name in missing:
        kept.store(directory / f"{name}.bin")
    if missing:
        log.info("%d originals of %s were put into the object store", len(missing), directory)


# Open the search engine that a setting names; its client is imported for nothing else.

if TYPE_CHECKING:
    from app.storage.engine import SearchEngine


def _named(url: str, api_key: str, replicas: int = 1) -> SearchEngine:
    """Return the engine at `url`, not asked yet.

    Raises:
        InvalidInput: An address is none, or the extra `shared` is missing.
    """
    try:
        from app.storage.engine import SearchEngine  # noqa: PLC0415  # an extra
    except ModuleNotFoundError as exc:
        raise InvalidInput(
            "SEARCH_URL needs the extra 'shared': pip install 'documind-server[shared]'"
        ) from exc
    return SearchEngine(url, api_key, replicas)


def ask_node(url: str, api_key: str) -> str:
    """Return a node's address and version; nothing is created.

    Raises:
        InvalidInput: It does not answer or refuses the key, or the extra `shared` is missing.
    """
    engine = _named(url, api_key)
    try:
        return f"{without_credentials(engine.urls[0])}, Qdrant {engine.version()}"
    finally:
        engine.close()


def open_engine(options: IndexOptions) -> SearchEngine | None:
    """Return the engine, which answers; None where no setting names one.

    Raises:
        InvalidInput: The engine does not answer, or the extra `shared` is missing.
    """
    if not options.search_url:
        return None
    engine = _named(options.search_url, options.search_api_key, options.search_replicas)
    engine.check()
    return engine


# Open the store of vectors that each library asks for, and remove what it left.

if TYPE_CHECKING:
    from app.storage.engine import SearchEngine


def open_stores(
    options: IndexOptions, engine: SearchEngine | None, steps: Steps
) -> dict[Library, VectorStore]:
    """Return each library's store; libraries of one kind share it.

    Where there is an engine, it is the store of all.

    Raises:
        ExtraMissing: The extra of a kind is not installed; the message says how to install it.
    """
    if engine is not None:
        from app.storage.vectors.qdrant import QdrantStore  # noqa: PLC0415  # the extra `shared`

        return dict.fromkeys(Library, QdrantStore(engine, steps, ef_search=options.ef_search))
    kinds = {options.store_of(library) for library in Library}
    stores = {kind: _open(kind, options, steps) for kind in kinds}
    return {library: stores[options.store_of(library)] for library in Library}


def _open(kind: StoreKind, options: IndexOptions, steps: Steps) -> VectorStore:
    if kind == "faiss":
        try:
            from app.storage.vectors.faiss import FaissStore  # noqa: PLC0415  # the extra `large`
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
