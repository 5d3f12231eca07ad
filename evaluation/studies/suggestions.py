"""List fifty suggested questions, with what a reader said of each.

    python -m evaluation.studies.suggestions [--data DIR]

Over HTTP of a real server without a model: up to three questions a document, of the bundled
samples and the papers under DIR/pdf. suggestions_read.json holds the questions that a reader found
not to make sense, with the reason. Writes evaluation/reports/suggestions.{md,json}.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import cast

from app.client import DocuMindClient, FileToSend, Json
from evaluation.lib.paths import DATA
from evaluation.lib.served import Line, Served, write

LISTED, SENSIBLE = 50, 45
_EACH = 3


def suggested(client: DocuMindClient, library: str) -> list[tuple[str, str]]:
    """Return (question, title) of every document of a library."""
    found = []
    for document in client.documents(library):
        asked = {"library": library, "doc_id": document["doc_id"], "n": _EACH}
        listed = client.get("/api/v1/suggestions", asked)
        found += [
            (str(one["question"]), str(one["title"]))
            for one in cast("Sequence[Json]", listed["suggestions"])
        ]
    return found


def main() -> int:
    """List the questions; the exit code says whether enough make sense."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--data", type=Path, default=DATA, help="folder that holds pdf/*.pdf")
    papers = sorted((parser.parse_args().data / "pdf").glob("*.pdf"))
    path = Path(__file__).with_name("suggestions_read.json")
    senseless: dict[str, str] = json.loads(path.read_text("utf-8"))
    with (
        tempfile.TemporaryDirectory(prefix="documind-suggestions-") as name,
        Served(Path(name) / "data") as server,
    ):
        server.client.samples()
        server.client.ingest([FileToSend(path) for path in papers], "papers")
        found = [
            *suggested(server.client, "papers"),
            *suggested(server.client, "public"),
        ][:LISTED]
    rows = ["| question | document | makes sense |", "|---|---|---|"]
    rows += [
        f"| {question} | {title} |"
        f" {f'no: {senseless[question]}' if question in senseless else 'yes'} |"
        for question, title in found
    ]
    sensible = sum(question not in senseless for question, _ in found)
    lines = [
        Line("suggestions listed", len(found), LISTED, "", at_most=False),
        Line("of them make sense to a reader", sensible, SENSIBLE, "", at_most=False),
    ]
    remarks = ["Made without a model, and answered by the document.", "", *rows]
    command = "python -m evaluation.studies.suggestions"
    return write("suggestions", "Suggested questions", remarks, lines, {}, command)


if __name__ == "__main__":
    sys.exit(main())
