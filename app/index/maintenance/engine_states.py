"""Ask the engines that settings name, each by itself: PostgreSQL, Qdrant, object store."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from app.core.errors import DocuMindError
from app.index.catalog.opening import ask_database
from app.index.engine.opening import ask_node
from app.index.files.opening import ask_object_store
from app.index.options import IndexOptions


@dataclass(frozen=True, slots=True)
class EngineState:
    """An engine that a setting names, and how it is now."""

    name: str
    setting: str
    detail: str
    """Its address and version; or why it cannot be used, with its address."""
    answers: bool


def engine_states(options: IndexOptions) -> Iterator[EngineState]:
    """Yield the state of each engine, and of each node of a search engine.

    Nothing is created or locked. An engine that no setting names is left out.
    """
    if options.database_url:
        yield _state("PostgreSQL", "DATABASE_URL", lambda: ask_database(options.database_url))
    for url in filter(None, options.search_url.split(",")):
        yield _state("Qdrant", "SEARCH_URL", lambda url=url: ask_node(url, options.search_api_key))  # type: ignore[misc]
    if options.originals_url:
        yield _state(
            "object store", "ORIGINALS_URL", lambda: ask_object_store(options.originals_url)
        )


def _state(name: str, setting: str, ask: Callable[[], str]) -> EngineState:
    try:
        return EngineState(name, setting, ask(), answers=True)
    except DocuMindError as exc:
        return EngineState(name, setting, exc.message, answers=False)
