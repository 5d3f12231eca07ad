"""Share what every program has: folders, options, and how a report is written."""

from __future__ import annotations

import argparse
import json
import os
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
"""Root of the checkout."""
REPORTS = ROOT / "evaluation" / "reports"
"""Folder of the reports."""
DATA = Path(os.environ.get("DATA") or ROOT / "data" / "collections")
"""Folder of the collections: the variable DATA, or data/collections (docs/evaluation.md)."""


def parser_of(description: str | None) -> argparse.ArgumentParser:
    """Return a parser that shows a module's docstring as it is written."""
    return argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )


def resumable(parser: argparse.ArgumentParser) -> argparse.Namespace:
    """Parse, with the options of a program that works in parts; `minutes` is 0 for all of it."""
    parser.add_argument("--dir", type=Path, help="where it works; what was done there is kept")
    parser.add_argument(
        "--minutes", type=float, default=0.0, help="stop after so long, to go on later"
    )
    return parser.parse_args()


def publish(name: str, record: object, page: str) -> None:
    """Write `NAME.json` and `NAME.md` under evaluation/reports/, and print the page."""
    REPORTS.mkdir(parents=True, exist_ok=True)
    text = json.dumps(record, indent=1, ensure_ascii=False) + "\n"
    (REPORTS / f"{name}.json").write_text(text, encoding="utf-8")
    (REPORTS / f"{name}.md").write_text(page, encoding="utf-8")
    print(page)
