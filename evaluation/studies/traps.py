"""Ask a hundred questions that lead to lists, labels and attachments: is one of them quoted?

    python -m evaluation.studies.traps [--data DIR]

Over HTTP of a real server without a model: two papers (their lists of references, and the labels
of their figures), and two files made of them here: a table of contents, and pictures in base64.
The questions are in traps.json, each with the words that must not be quoted. Writes
evaluation/reports/traps.{md,json}.
"""

from __future__ import annotations

import argparse
import base64
import json
import re
import sys
import tempfile
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import cast

from app.client import FileToSend, Json
from evaluation.lib.paths import DATA
from evaluation.lib.served import Line, Served, write

_CODE = re.compile(r"[A-Za-z0-9+/]{40,}")
_LEADERS = re.compile(r"\.(?: ?\.){3}")
_PICTURE_BYTES = 600
Trap = Mapping[str, str]


def contents_of(traps: Sequence[Trap]) -> str:
    """Return a table of contents with leaders and page numbers."""
    heads = [trap["marker"] for trap in traps if trap["kind"] == "contents"]
    lines = [f"{n} {head} {'. ' * 24}{3 * n}" for n, head in enumerate(heads, start=1)]
    return "\n".join(["Contents", "", *lines, ""])


def pictures_of(traps: Sequence[Trap], paper: bytes) -> str:
    """Return text with pictures as mail and notebooks carry them; their bytes are a paper's."""
    parts = ["# Pictures", "", "The pictures of the talk follow. They were made by the authors."]
    for at, trap in enumerate(one for one in traps if one["kind"] == "base64"):
        held = paper[at * _PICTURE_BYTES : (at + 1) * _PICTURE_BYTES]
        code = base64.b64encode(held).decode()
        parts.append(f"![{trap['marker']}](data:image/png;base64,{code})")
    return "\n\n".join(parts) + "\n"


def fell(trap: Trap, quote: str) -> bool:
    """Return whether a quote holds what a trap is made of."""
    if trap["kind"] == "base64":
        return bool(_CODE.search(quote))
    if trap["kind"] == "contents":
        return bool(_LEADERS.search(quote))
    return _plain(trap["marker"]) in _plain(quote)


def _plain(text: str) -> str:
    return " ".join(text.lower().split())


def main() -> int:
    """Ask the questions; the exit code says whether none fell for a trap."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--data", type=Path, default=DATA, help="folder that holds pdf/*.pdf")
    papers = sorted((parser.parse_args().data / "pdf").glob("*.pdf"))
    traps: list[Trap] = json.loads(Path(__file__).with_name("traps.json").read_text("utf-8"))
    quoted: list[str] = []
    answered: Counter[str] = Counter()
    fallen: Counter[str] = Counter()
    with tempfile.TemporaryDirectory(prefix="documind-traps-") as name:
        folder = Path(name)
        (folder / "contents.txt").write_text(contents_of(traps), "utf-8")
        (folder / "pictures.md").write_text(pictures_of(traps, papers[0].read_bytes()), "utf-8")
        with Served(folder / "data") as server:
            files = [*papers, folder / "contents.txt", folder / "pictures.md"]
            server.client.ingest([FileToSend(path) for path in files], "papers")
            for trap in traps:
                answer = server.client.query(trap["question"], library="papers")
                quotes = [
                    str(citation["quote"])
                    for sentence in cast("Sequence[Json]", answer["sentences"])
                    for citation in cast("Sequence[Json]", sentence["citations"])
                ]
                answered[trap["kind"]] += bool(quotes)
                if bad := [quote for quote in quotes if fell(trap, quote)]:
                    fallen[trap["kind"]] += 1
                    quoted.append(f"- {trap['kind']}, {trap['question']} {bad[0][:160]!r}")
    asked = Counter(trap["kind"] for trap in traps)
    lines = [
        Line(f"{kind} quoted", fallen[kind], 0, f"of {count}, {answered[kind]} answered")
        for kind, count in asked.items()
    ]
    return write(
        "traps",
        "Lists, labels and attachments",
        [
            "Questions whose words stand in text that says nothing.",
            *(["", *quoted] if quoted else []),
        ],
        lines,
        {},
        "python -m evaluation.studies.traps",
    )


if __name__ == "__main__":
    sys.exit(main())
