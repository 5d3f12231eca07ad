"""Write openapi.json and docs/http.md from the app.

`python -m scripts.write_openapi`
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from app.api.app import create_app
from app.settings import Settings

ROOT = Path(__file__).resolve().parent.parent
TARGET = ROOT / "openapi.json"
PAGE = ROOT / "docs" / "http.md"
_HEAD = """\
# The HTTP API

Every route, from `openapi.json`; `/docs` on a running server lists fields and errors and lets you try them. Made by
`python -m scripts.write_openapi`. [doors.md](doors.md) has examples; `/mcp` speaks MCP and is described there.

| method | path | what it does |
|---|---|---|
"""


def document() -> str:
    """Return the OpenAPI document of the app with default settings, as stable text."""
    settings = Settings(_env_file=None)
    return json.dumps(create_app(settings).openapi(), indent=1, sort_keys=True, ensure_ascii=False) + "\n"


def page(agreed: str) -> str:
    """Return the table of an OpenAPI document's routes, in Markdown."""
    rows = [
        f"| {method.upper()} | `{path}` | {operation['description'].splitlines()[0]} |\n"
        for path, operations in sorted(json.loads(agreed)["paths"].items())
        for method, operation in sorted(operations.items())
    ]
    return _HEAD + "".join(rows)


def main() -> None:
    """Write the files."""
    argparse.ArgumentParser(description=__doc__).parse_args()
    agreed = document()
    TARGET.write_text(agreed, encoding="utf-8")
    PAGE.write_text(page(agreed), encoding="utf-8")
    print(f"wrote {TARGET.name} and {PAGE.relative_to(ROOT)}")


if __name__ == "__main__":
    main()
