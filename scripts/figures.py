"""Write measured figures into README.md and docs from the reports: `python -m scripts.figures`.

A figure is a number in the text of a link to its report, whose title names it:
`[762 MB](../evaluation/reports/install.md "installed by pip from the wheel")`. It keeps its
decimals. docs/scale.md has a program of its own.
"""

from __future__ import annotations

import argparse
import json
import re
from pathlib import Path
from typing import Any

from app.core.errors import InvalidInput
from scripts.reports import ROOT

PAGES = (*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").glob("*.md")))
FIGURE = re.compile(
    r"\[(?P<number>[+-]?[\d,]*\.?\d+)(?P<unit>[^\]\[]*)\]"
    r'\((?P<report>(?:\.\./)?evaluation/reports/\w+)\.md "(?P<name>[^"]+)"\)'
)


def measured(report: Path, name: str) -> float:
    """Return a figure of a report (`report.json`) by its name.

    Raises:
        InvalidInput: The report has no such figure.
    """
    found: dict[str, Any] = json.loads(report.with_suffix(".json").read_text("utf-8"))
    held = {line["what"]: line["measured"] for line in found.get("lines", ())}
    held |= {fit["name"]: fit["measured"] for fit in found.get("fits", ())}
    held |= found["figures"]
    if name not in held:
        raise InvalidInput(f"{report.name}.json has no figure {name!r}, only {sorted(held)}")
    return float(held[name])


def rendered(page: Path, text: str) -> str:
    """Return a page's text with the figures of the reports that it links to."""

    def write(link: re.Match[str]) -> str:
        _, _, decimals = link["number"].partition(".")
        sign = "+" if link["number"].startswith("+") else ""
        value = measured(page.parent / link["report"], link["name"])
        return f"[{value:{sign},.{len(decimals)}f}{link[0][link.end('number') - link.start() :]}"

    return FIGURE.sub(write, text)


def main() -> None:
    argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    ).parse_args()
    for page in PAGES:
        text = page.read_text("utf-8")
        if (new := rendered(page, text)) != text:
            page.write_text(new, "utf-8")
            print(page.relative_to(ROOT))


if __name__ == "__main__":
    main()
