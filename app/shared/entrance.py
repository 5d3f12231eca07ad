"""What `app.storage.opening` may ask of this package; `SharedMode` there is its type."""

from __future__ import annotations

from pathlib import Path
from typing import cast

from app.core.types import Library
from app.shared import originals as objects
from app.shared import postgres
from app.shared.changes import SharedChangeLog
from app.shared.originals import ObjectOriginals
from app.shared.postgres import PostgresDatabase
from app.shared.qdrant import QdrantStore, SearchEngine
from app.shared.qdrant_words import FIELDS, WORDS, QdrantWords
from app.shared.words import SharedLexicalWriter
from app.storage.catalog.changes import ChangeLog
from app.storage.catalog.database import Database
from app.storage.catalog.epochs import KEY
from app.storage.files.durable import Steps
from app.storage.files.originals import Originals
from app.storage.opening import Engine
from app.storage.options import IndexOptions
from app.storage.vectors.port import VectorStore
from app.storage.words.port import WordIndex
from app.storage.words.writer import LexicalWriter


def catalog(url: str, steps: Steps) -> Database:
    return PostgresDatabase(url, steps)


def changes(database: Database) -> ChangeLog:
    return SharedChangeLog(database)


def originals(cache: Path, steps: Steps, url: str, most_bytes: int) -> Originals:
    return ObjectOriginals(cache, steps, url, most_bytes)


def engine(options: IndexOptions) -> SearchEngine:
    """Return the engine of the settings; nothing is sent yet."""
    return SearchEngine(
        options.search_url, options.search_api_key, options.search_replicas, options.search_shards
    )


def checked(opened: Engine) -> Engine:
    """Return an engine that answers and knows the fields of words.

    Raises:
        InvalidInput: It does not answer, or is too old.
    """
    found = _of_ours(opened)
    found.check()
    found.adopt({WORDS: FIELDS})
    return found


def words(library: Library, opened: Engine, options: IndexOptions, steps: Steps) -> WordIndex:
    return QdrantWords(library, _of_ours(opened), options, steps)


def writer_of_words() -> type[LexicalWriter]:
    return SharedLexicalWriter


def vectors(opened: Engine, steps: Steps, *, ef_search: int) -> VectorStore:
    return QdrantStore(_of_ours(opened), steps, ef_search=ef_search)


def database_said(url: str) -> str:
    """Return a database's address and version; InvalidInput where it does not answer."""
    return postgres.ask(url)


def epoch_said(url: str) -> str:
    """Return the epoch that a database has, empty without one (app.storage.catalog.epochs)."""
    return postgres.ask_meta(url, KEY)


def store_said(url: str) -> str:
    """Return an object store's address; InvalidInput where it does not answer."""
    return objects.ask(url)


def node_said(url: str, api_key: str) -> str:
    """Return the version of one node of the engine; InvalidInput where it does not answer."""
    node = SearchEngine(url, api_key)
    try:
        return node.version()
    finally:
        node.close()


def _of_ours(opened: Engine) -> SearchEngine:
    return cast("SearchEngine", opened)
