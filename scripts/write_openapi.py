"""Write docs/openapi.json and docs/http.md from the app.

`python -m scripts.write_openapi`
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, get_args

from app.api.app import create_app
from app.core.types import (
    DocumentType,
    EvidenceKind,
    Fusion,
    Mode,
    NoticeCode,
    Reasoning,
    Rerank,
    Scope,
    Strategy,
    TraceLevel,
)
from app.settings import Settings

ROOT = Path(__file__).resolve().parent.parent
TARGET = ROOT / "docs" / "openapi.json"
PAGE = ROOT / "docs" / "http.md"
_HEAD = """\
# The HTTP API

Every route, from `openapi.json` beside it; `/docs` on a running server lists fields and errors and lets you try them. Made by
`python -m scripts.write_openapi`. [doors.md](doors.md) has examples; `/mcp` speaks MCP and is described there.

| method | path | what it does | scope of the key |
|---|---|---|---|
"""


_SETS = {
    "library": Scope,
    "query_mode": Mode,
    "retrieval_strategy": Strategy,
    "fusion": Fusion,
    "rerank": Rerank,
    "reasoning": Reasoning,
    "evidence": EvidenceKind,
    "trace": TraceLevel,
    "type of a document": DocumentType,
    "code of a notice": NoticeCode,
}
"""Closed sets by the field that holds them."""


def document() -> str:
    """Return the OpenAPI document of the app with default settings, as stable text."""
    settings = Settings(_env_file=None)
    return (
        json.dumps(create_app(settings).openapi(), indent=1, sort_keys=True, ensure_ascii=False)
        + "\n"
    )


def page(agreed: str) -> str:
    """Return the routes of an OpenAPI document and the closed sets, in Markdown."""
    rows = [
        f"| {method.upper()} | `{path}` | {operation['description'].splitlines()[0]} |"
        f" {_scope(operation)} |\n"
        for path, operations in sorted(json.loads(agreed)["paths"].items())
        for method, operation in sorted(operations.items())
    ]
    sets = [
        f"| {field} | {', '.join(f'`{name}`' for name in get_args(names))} |\n"
        for field, names in _SETS.items()
    ]
    return _HEAD + "".join(rows) + "\n## Names\n\n| field | one of |\n|---|---|\n" + "".join(sets)


def _scope(operation: Mapping[str, Any]) -> str:
    """Return the scope that an operation needs; empty for one without a key."""
    needed = [pair for one in operation.get("security", ()) for pair in one.items()]
    return "; ".join(
        f"{', '.join(scopes)}{', every library' if name == 'key_of_every_library' else ''}"
        for name, scopes in needed
    )


def main() -> None:
    argparse.ArgumentParser(description=__doc__).parse_args()
    agreed = document()
    TARGET.write_text(agreed, encoding="utf-8")
    PAGE.write_text(page(agreed), encoding="utf-8")
    print(f"wrote {TARGET.name} and {PAGE.relative_to(ROOT)}")


if __name__ == "__main__":
    main()
