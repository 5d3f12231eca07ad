"""Open what the settings name: database, originals, search engine, stores of vectors.

What an extra brings is imported only where a setting asks for it.
"""

from __future__ import annotations

import importlib
import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Protocol, cast

from app.core.errors import DocuMindError, ExtraMissing, InvalidInput
from app.core.ids import without_credentials
from app.core.types import Library, StoreKind
from app.storage.catalog.changes import ChangeLog
from app.storage.catalog.database import Database
from app.storage.catalog.epochs import epoch_in
from app.storage.catalog.sqlite import SqliteDatabase
from app.storage.files.durable import Steps, delete_tree
from app.storage.files.originals import Originals, names_in
from app.storage.options import IndexOptions
from app.storage.vectors.chroma import ChromaStore
from app.storage.vectors.port import VectorStore
from app.storage.words.port import WordIndex
from app.storage.words.tantivy import TantivyIndex
from app.storage.words.writer import LexicalWriter

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Copies:
    """How the cluster of a search engine keeps a collection, and what the settings ask for."""

    collection: str
    shards: int
    fewest: int
    """Copies that follow writes, of the shard that has the fewest."""
    dead: int
    """Copies that are not asked until they have caught up."""
    wanted: int
    """SEARCH_REPLICAS."""
    wanted_shards: int
    """SEARCH_SHARDS, or what stands for 0 with the nodes that there are."""
    of_nodes: Mapping[int, int]
    """How many copies of shards each node of the cluster has, also those that have none."""


class Engine(Protocol):
    """A search engine of several servers; `app.shared.qdrant` has it."""

    def copies(self) -> Sequence[Copies]:
        """Return how each collection is kept; SearchAway where no node answers."""
        ...

    def away(self) -> tuple[str, ...]:
        """Return what is missing: nothing, or the engine with its address."""

    def silent(self) -> tuple[str, ...]:
        """Return the nodes that do not answer now."""

    def peers(self) -> int:
        """Return how many nodes the cluster has."""
        ...

    def epochs(self) -> Mapping[str, str]:
        """Return of which state of the catalog each collection is; empty: not noted."""
        ...

    def close(self) -> None: ...


class SharedMode(Protocol):
    """The entrance of `app.shared`: `app/shared/entrance.py` says what each function does."""

    def catalog(self, url: str, steps: Steps) -> Database: ...
    def changes(self, database: Database) -> ChangeLog: ...
    def originals(self, cache: Path, steps: Steps, url: str, most_bytes: int) -> Originals: ...
    def engine(self, options: IndexOptions) -> Engine: ...
    def checked(self, opened: Engine) -> Engine: ...
    def words(
        self, library: Library, opened: Engine, options: IndexOptions, steps: Steps
    ) -> WordIndex: ...
    def writer_of_words(self) -> type[LexicalWriter]: ...
    def vectors(self, opened: Engine, steps: Steps, *, ef_search: int) -> VectorStore: ...
    def database_said(self, url: str) -> str: ...
    def epoch_said(self, url: str) -> str: ...
    def store_said(self, url: str) -> str: ...
    def node_said(self, url: str, api_key: str) -> str: ...


def _shared(setting: str) -> SharedMode:
    """Return what a setting asks for of `app.shared`."""
    try:
        return cast("SharedMode", importlib.import_module("app.shared.entrance"))
    except ModuleNotFoundError as exc:
        raise InvalidInput(
            f"{setting} needs the extra 'shared': pip install 'documind-server[shared]'"
        ) from exc


def open_database(path: Path, url: str, steps: Steps) -> Database:
    """Return the open catalog, in PostgreSQL where there is a `url`; create tables in a new one.

    Raises:
        InvalidInput: The address is wrong or does not answer, or the extra `shared` is missing.
        Locked: A server of an earlier release writes to the database alone.
        IndexDamaged: The file is damaged.
        StorageError: A newer release wrote it.
    """
    if not url:
        return SqliteDatabase(path, steps)
    return _shared("DATABASE_URL").catalog(url, steps)


def open_log(database: Database, *, shared: bool) -> ChangeLog:
    """Return the log of changes; where the catalog is shared, marks are read from it alone."""
    return _shared("DATABASE_URL").changes(database) if shared else ChangeLog(database)


def open_originals(options: IndexOptions, steps: Steps) -> Originals:
    """Return the originals; with an object store, put there what only the directory has.

    Raises:
        InvalidInput: The address is wrong or does not answer, or the extra `shared` is missing.
        OriginalsAway: The store went away while files were put there; the next start goes on.
    """
    directory = options.data_dir / "originals"
    if not options.originals_url:
        return Originals(directory, steps)
    cache, most = options.data_dir / "originals-cache", options.originals_cache_bytes
    kept = _shared("ORIGINALS_URL").originals(cache, steps, options.originals_url, most)
    missing = sorted(names_in(directory) - kept.names()) if directory.is_dir() else []
    for name in missing:
        kept.store(directory / f"{name}.bin")
    if missing:
        log.info("%d originals of %s were put into the object store", len(missing), directory)
    return kept


def open_engine(options: IndexOptions) -> Engine | None:
    """Return the engine, which answers; None where no setting names one.

    Raises:
        InvalidInput: The engine does not answer, or the extra `shared` is missing.
    """
    if not options.search_url:
        return None
    entrance = _shared("SEARCH_URL")
    return entrance.checked(entrance.engine(options))


def open_words(
    library: Library, path: Path, options: IndexOptions, engine: Engine | None, steps: Steps
) -> WordIndex:
    """Return a library's index of words: in the engine where there is one, else at `path`.

    Raises:
        IndexDamaged: Its files cannot be opened.
    """
    if engine is None:
        return TantivyIndex(path, options, steps)
    return _shared("SEARCH_URL").words(library, engine, options, steps)


def word_writer(*, shared: bool) -> type[LexicalWriter]:
    """Return what writes words: of this process alone, or of several that share an engine."""
    return _shared("SEARCH_URL").writer_of_words() if shared else LexicalWriter


def open_stores(
    options: IndexOptions, engine: Engine | None, steps: Steps
) -> dict[Library, VectorStore]:
    """Return each library's store; libraries of one kind share it.

    Where there is an engine, it is the store of all.

    Raises:
        ExtraMissing: The extra of a kind is not installed; the message says how to install it.
    """
    if engine is not None:
        store = _shared("SEARCH_URL").vectors(engine, steps, ef_search=options.ef_search)
        return dict.fromkeys(Library, store)
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
        if kind in map(options.store_of, stores) or not path.exists():
            continue
        if options.data_dir in path.parents:
            delete_tree(path, steps, "vectors.delete_unused")
        else:
            log.warning("no library keeps its vectors in %s any more: it may be removed", path)


# Ask the engines that settings name, each by itself: PostgreSQL, Qdrant, object store.


@dataclass(frozen=True, slots=True)
class EngineState:
    """An engine that a setting names, and how it is now."""

    name: str
    setting: str
    detail: str
    """Its address and version; or why it cannot be used, with its address."""
    answers: bool


def engine_states(options: IndexOptions) -> Iterator[EngineState]:
    """Yield the state of each engine, of each node of a search engine, and of its copies.

    Nothing is created or locked. An engine that no setting names is left out.
    """
    asked: list[tuple[str, str, Callable[[], str]]] = []
    if url := options.database_url:
        asked.append(("PostgreSQL", "DATABASE_URL", partial(_ask_database, url)))
    for url in filter(None, options.search_url.split(",")):
        asked.append(("Qdrant", "SEARCH_URL", partial(_ask_node, url, options.search_api_key)))
    if options.search_url:
        asked.append(("copies in Qdrant", "SEARCH_REPLICAS", partial(_ask_cluster, options)))
    if options.shared:
        asked.append(("state of Qdrant", "epoch", partial(_ask_epochs, options)))
    if url := options.originals_url:
        asked.append(("object store", "ORIGINALS_URL", partial(_ask_store, url)))
    answering: set[str] = set()
    for name, setting, ask in asked:
        if not _NEEDED.get(setting, frozenset()) <= answering:
            continue  # that it does not answer is said
        try:
            yield EngineState(name, setting, ask(), answers=True)
            answering.add(setting)
        except DocuMindError as exc:
            yield EngineState(name, setting, exc.message, answers=False)


_NEEDED = {"SEARCH_REPLICAS": {"SEARCH_URL"}, "epoch": {"SEARCH_URL", "DATABASE_URL"}}
"""What has to answer before something else can be asked."""


def _ask_database(url: str) -> str:
    return _shared("DATABASE_URL").database_said(url)


def _ask_store(url: str) -> str:
    return _shared("ORIGINALS_URL").store_said(url)


def _ask_node(url: str, api_key: str) -> str:
    """Return a node's address and version."""
    said = _shared("SEARCH_URL").node_said(url, api_key)
    return f"{without_credentials(url.strip().rstrip('/'))}, Qdrant {said}"


def _ask_cluster(options: IndexOptions) -> str:
    """Return what the copies of every collection permit.

    Raises:
        InvalidInput: The cluster has other copies or fewer shards than the settings ask for, or a
            node has at least two copies more than another.
    """
    replicas = options.search_replicas
    with _asked(options) as engine:
        kept, peers = engine.copies(), engine.peers()
    if replicas > peers:
        raise InvalidInput(f"SEARCH_REPLICAS={replicas}, and the cluster has {peers} nodes")
    for one in kept:
        if one.dead or one.fewest < one.wanted:
            raise InvalidInput(
                f"a shard of {one.collection} has {one.fewest} of {one.wanted} copies,"
                f" {one.dead} are dead"
            )
        if one.shards < min(one.wanted_shards, 2 * peers):
            raise InvalidInput(
                f"{one.collection} has {one.shards} shards for {peers} nodes, new collections have"
                f" {one.wanted_shards}"
            )
        if max(one.of_nodes.values()) - min(one.of_nodes.values()) > 1:
            said = ", ".join(f"{node}: {held}" for node, held in sorted(one.of_nodes.items()))
            raise InvalidInput(f"{one.collection} is unbalanced; copies of shards by node: {said}")
    may = {1: "no node may be away"}.get(replicas, f"any {replicas - 1} may be away")
    nodes = f"{peers} {'node' if peers == 1 else 'nodes'}"
    return f"SEARCH_REPLICAS={replicas} in a cluster of {nodes}: {may}"


def _ask_epochs(options: IndexOptions) -> str:
    """Return that every collection was written for this state of the catalog.

    Raises:
        InvalidInput: One was not: the catalog was restored, or the engine.
    """
    with _asked(options) as engine:
        noted = engine.epochs()  # before the catalog's is read
    known = epoch_in(_shared("DATABASE_URL").epoch_said(options.database_url))
    if strange := [name for name, epoch in noted.items() if not known.knows(epoch)]:
        raise InvalidInput(
            f"{', '.join(strange)}: written for another state of the catalog, as after a restore"
        )
    return "every collection was written for this state of the catalog"


@contextmanager
def _asked(options: IndexOptions) -> Iterator[Engine]:
    """Yield an engine to be asked something."""
    engine = _shared("SEARCH_URL").engine(options)
    try:
        yield engine
    finally:
        engine.close()
