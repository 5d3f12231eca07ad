"""Draw the rooms of storage in docs/architecture.md from the imports.

    python -m scripts.rooms

An arrow says that files of one room import files of another.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import grimp

PACKAGE = "app.storage"
PAGE = Path(__file__).parent.parent / "docs" / "architecture.md"
BEGIN, END = "<!-- rooms: made by `python -m scripts.rooms` -->", "<!-- end of rooms -->"
WHOLE = "writing"
"""The files that order writes over all rooms below."""
WRITING = ("projector", "writer")


def room_of(module: str) -> str:
    """Return the room of a module of storage: its folder, itself, or `writing`."""
    name = module.removeprefix(f"{PACKAGE}.").split(".")[0]
    return WHOLE if name in WRITING else name


def arrows() -> set[tuple[str, str]]:
    """Return the imports between rooms, `(importer, imported)`."""
    graph = grimp.build_graph("app")
    packages = {name for name in graph.find_children(PACKAGE) if graph.find_children(name)}
    pairs = {
        (room_of(module), room_of(imported))
        for module in graph.find_descendants(PACKAGE) - packages
        for imported in graph.find_modules_directly_imported_by(module)
        if imported.startswith(f"{PACKAGE}.")
    }
    return {(importer, imported) for importer, imported in pairs if importer != imported}


def drawing() -> str:
    """Return the drawing as a Mermaid flowchart between its two marks."""
    lines = [f"    {importer} --> {imported}" for importer, imported in sorted(arrows())]
    return "\n".join([BEGIN, "```mermaid", "flowchart TD", *lines, "```", END])


def main() -> None:
    argparse.ArgumentParser(description=__doc__).parse_args()
    page = PAGE.read_text(encoding="utf-8")
    before, _, rest = page.partition(BEGIN)
    after = rest.partition(END)[2]
    PAGE.write_text(before + drawing() + after, encoding="utf-8")


if __name__ == "__main__":
    main()
