"""Open the search engine that a setting names; its client is imported for nothing else."""

from __future__ import annotations

from typing import TYPE_CHECKING

from app.core.errors import InvalidInput
from app.core.hosts import without_credentials
from app.index.options import IndexOptions

if TYPE_CHECKING:
    from app.index.engine.qdrant import SearchEngine


def _named(url: str, api_key: str, replicas: int = 1) -> SearchEngine:
    """Return the engine at `url`, not asked yet.

    Raises:
        InvalidInput: An address is none, or the extra `shared` is missing.
    """
    try:
        from app.index.engine.qdrant import SearchEngine  # noqa: PLC0415  # an extra
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
