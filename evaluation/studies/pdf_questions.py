"""Ask thirty questions over two papers: right pages, correct quotes?

    python -m evaluation.studies.pdf_questions [--data DIR]

Asked over HTTP of a real server without a model, so answers are quotes. After the answers both
files are replaced by others under the same names, and every citation is looked up again: the
revision that was cited must still give its quote.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import cast

from app.client import DocuMindClient, FileToSend, Json
from evaluation.lib.paths import DATA
from evaluation.lib.served import Line, Served, write

RIGHT_PAGE, FIRST_PAGE = 27, 24
_CONTENT_WORD = re.compile(r"\w{4,}")


def citations(answer: Json) -> list[tuple[str, Json, Json]]:
    """Return (sentence, citation, source) in the order of the answer."""
    sources = {source["n"]: source for source in cast("Sequence[Json]", answer["sources"])}
    return [
        (str(sentence["text"]), citation, sources[citation["n"]])
        for sentence in cast("Sequence[Json]", answer["sentences"])
        for citation in cast("Sequence[Json]", sentence["citations"])
    ]


def quoted(client: DocuMindClient, citation: Json, source: Json) -> str:
    """Return the stored characters of a citation in the revision that was cited."""
    start, end, revision = (
        cast("int", value) for value in (citation["start"], citation["end"], source["revision"])
    )
    return str(client.text("papers", str(source["doc_id"]), start, end, revision)["text"])


def shares_words(sentence: str, quote: str) -> bool:
    """Return whether most content words of the sentence are in the quote."""
    wanted = set(_CONTENT_WORD.findall(sentence.lower()))
    return len(wanted & set(_CONTENT_WORD.findall(quote.lower()))) >= 0.5 * len(wanted)


def main() -> int:
    """Ask the questions; the exit code says whether the limits hold."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--data", type=Path, default=DATA, help="folder that holds pdf/*.pdf")
    args = parser.parse_args()
    rows: list[Mapping[str, object]] = json.loads(
        Path(__file__).with_name("pdf_questions.json").read_text(encoding="utf-8")
    )
    files = sorted((args.data / "pdf").glob("*.pdf"))
    right = first = 0
    kept: list[tuple[str, Json, Json]] = []
    missed: list[str] = []
    with (
        tempfile.TemporaryDirectory(prefix="documind-pdf-") as name,
        Served(Path(name) / "data") as server,
    ):
        outcome = server.client.ingest([FileToSend(path) for path in files], "papers")
        names = {
            row["doc_id"]: row["filename"] for row in cast("Sequence[Json]", outcome["documents"])
        }
        for row in rows:
            answer = server.client.query(str(row["question"]), library="papers")
            found = citations(answer)
            pages = cast("list[int]", row["pages"])
            hits = [
                names.get(source["doc_id"]) == row["file"] and source["page"] in pages
                for _, _, source in found
            ]
            right += any(hits)
            first += bool(hits) and hits[0]
            kept += found
            if not any(hits):
                cited = [f"{names.get(s['doc_id'])} p. {s['page']}" for _, _, s in found]
                missed.append(
                    f"- {row['question']} Wanted {row['file']} p. {pages}, cited"
                    f" {', '.join(cited) or 'nothing'}."
                )
        exact = sum(
            quoted(server.client, citation, source) == citation["quote"]
            for _, citation, source in kept
        )
        near = sum(shares_words(sentence, str(citation["quote"])) for sentence, citation, _ in kept)
        server.client.ingest(
            [FileToSend(files[0], files[1].name), FileToSend(files[1], files[0].name)], "papers"
        )
        after = sum(
            quoted(server.client, citation, source) == citation["quote"]
            for _, citation, source in kept
        )
    lines = [
        Line(
            "questions with a right page among their citations",
            right,
            RIGHT_PAGE,
            f"of {len(rows)}",
            at_most=False,
        ),
        Line(
            "questions whose first citation is on a right page",
            first,
            FIRST_PAGE,
            f"of {len(rows)}",
            at_most=False,
        ),
        Line("citations whose quote equals its span", exact, len(kept), "", at_most=False),
        Line(
            "citations that share most content words with their sentence",
            near,
            len(kept),
            "",
            at_most=False,
        ),
        Line(
            "citations whose quote still equals its span after the files were replaced",
            after,
            len(kept),
            "",
            at_most=False,
        ),
    ]
    remarks = [
        "Without a model: answers are quotes.",
        *(["", "Missed:", *missed] if missed else []),
    ]
    return write(
        "pdf_questions",
        "Thirty questions over two papers",
        remarks,
        lines,
        {},
        "make pdf-questions",
    )


if __name__ == "__main__":
    sys.exit(main())
