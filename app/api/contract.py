"""The OpenAPI document, as the contract says it: errors are problem+json."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from fastapi import FastAPI
from starlette.routing import compile_path

from app.api.errors import PROBLEM_TYPE

_PROBLEM = "#/components/schemas/Problem"

Node = dict[str, Any]
"""A JSON object of the document, whose shape FastAPI decides."""


def publish(app: FastAPI) -> None:
    """Correct the media type of errors in the app's OpenAPI document.

    FastAPI only knows the media type of successes.
    """
    generate: Callable[[], Node] = app.openapi

    def document() -> Node:
        fresh = app.openapi_schema is None
        found = generate()
        if fresh:
            for response in _responses(found):
                content = response.get("content", {})
                if content.get("application/json", {}).get("schema", {}).get("$ref") == _PROBLEM:
                    content[PROBLEM_TYPE] = content.pop("application/json")
        return found

    app.openapi = document  # type: ignore[method-assign]  # FastAPI's documented way to change the document


def _responses(document: Node) -> Iterator[Node]:
    for path in document["paths"].values():
        for operation in path.values():
            yield from operation["responses"].values()


_EVENT = {
    "type": "object",
    "properties": {
        "event": {"type": "string"},
        "data": {"type": "string", "description": "a JSON object"},
    },
}


def events(description: str) -> dict[int | str, Node]:
    """Return OpenAPI `responses` of a route that streams events."""
    return {200: {"description": description, "content": {"text/event-stream": {"schema": _EVENT}}}}


def allowed_methods(app: FastAPI, path: str) -> list[str]:
    """Return the methods declared for a path within the app, sorted.

    The framework names only one route's methods.
    """
    found: set[str] = set()
    for template, operations in app.openapi()["paths"].items():
        if compile_path(template)[0].match(path):
            found.update(method.upper() for method in operations)
    return sorted(found)
