"""Ask a server about whole documents, all of them in one library, without a model.

    python -m evaluation.studies.whole [--data DIR]

Papers, manuals and everyday files of DIR/whole with their questions. An answer is right when it
holds as many of a question's patterns as it needs and none of those that it must not hold; where
no file has the answer, a refusal is right. Earlier questions of a conversation are asked first.
Writes evaluation/reports/whole.{md,json}.
"""

from __future__ import annotations

import json
import re
import tempfile
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import httpx

from app.ingest.parsers.formats import FORMATS
from evaluation.lib.reports import COLLECTIONS, Line, options, say, share, table, write
from evaluation.lib.served import Served

COMMAND = "python -m evaluation.studies.whole"
ABSENT = "absent"
LEAST_RIGHT, LEAST_REFUSED = 0.68, 0.75
_TOP_K = 5
_SENT = 20
"""Files of a request."""
_NOT_ASKED = ("README.md", "questions.json")


@dataclass(frozen=True, slots=True)
class Reply:
    """The answer to a question, and whether it is right."""

    kind: str
    refused: bool
    right: bool
    confidence: float
    words: int
    """Of the answer."""


def is_right(row: Mapping[str, object], answer: str, *, refused: bool) -> bool:
    """Return whether an answer is what a row of `questions.json` expects."""
    if row["file"] is None or refused:
        return refused and row["file"] is None
    said = " ".join(answer.split())

    def found(patterns: object) -> int:
        assert isinstance(patterns, list)
        return sum(re.search(one, said, re.IGNORECASE) is not None for one in patterns)

    need = row["need"]
    assert isinstance(need, int)
    return found(row["patterns"]) >= need and not found(row.get("not", []))


def ask(client: httpx.Client, row: Mapping[str, object]) -> Reply:
    """Ask a question after those that its conversation had before it."""
    earlier = row.get("history", [])
    assert isinstance(earlier, list)
    history: list[dict[str, str]] = []
    for question in (*earlier, row["question"]):
        asked = {"question": question, "library": "papers", "top_k": _TOP_K, "history": history}
        reply = client.post("/api/v1/query", json=asked).raise_for_status().json()
        history = [
            *history,
            {"role": "user", "content": str(question)},
            {"role": "assistant", "content": reply["answer"] or "-"},
        ]
    refused = reply["status"] != "answered"
    right = is_right(row, reply["answer"], refused=refused)
    words = 0 if refused else len(reply["answer"].split())
    return Reply(str(row["kind"]), refused, right, reply["confidence"], words)


def documents(folder: Path) -> list[Path]:
    """Return the files of a folder that the questions are about."""
    suffixes = {suffix for one in FORMATS.values() for suffix in one.suffixes}
    files = [path for path in sorted(folder.iterdir()) if path.suffix in suffixes]
    return [path for path in files if path.name not in _NOT_ASKED]


def replies(files: Sequence[Path], rows: Sequence[Mapping[str, object]]) -> list[Reply]:
    """Put files into the library of a new server and ask it the questions of `questions.json`."""
    with tempfile.TemporaryDirectory(prefix="documind-whole-") as place:
        server = Served(Path(place) / "data")
        with server, httpx.Client(base_url=server.url, timeout=600) as client:
            for at in range(0, len(files), _SENT):
                sent = [("file", (path.name, path.read_bytes())) for path in files[at : at + _SENT]]
                client.post(
                    "/api/v1/ingest?wait=true", files=sent, data={"library": "papers"}
                ).raise_for_status()
                say(f"{min(at + _SENT, len(files))} of {len(files)} files")
            return [ask(client, row) for row in rows]


def kinds_table(found: Sequence[Reply]) -> list[str]:
    """Return a table of kinds, the absent ones last, and the sum of the others."""
    kinds: dict[str, list[Reply]] = defaultdict(list)
    for reply in found:
        kinds[reply.kind].append(reply)
    absent = kinds.pop(ABSENT, [])
    rows = [
        *sorted(kinds.items()),
        ("all of these", [one for of in kinds.values() for one in of]),
        (ABSENT, absent),
    ]
    cells = [
        (
            kind.replace("_", " "),
            str(len(of)),
            str(sum(one.right for one in of)),
            str(sum(not one.right and not one.refused for one in of)),
            str(sum(one.refused for one in of)),
            share([one.right for one in of]),
        )
        for kind, of in rows
    ]
    return table("kind|asked|right|wrong|refused|right, with 95 % interval".split("|"), cells)


def main() -> None:
    given = options(__doc__, **COLLECTIONS)
    folder = given.data / "whole"
    rows = json.loads((folder / "questions.json").read_text("utf-8"))
    files = documents(folder)
    found = replies(files, rows)
    present = [one for one in found if one.kind != ABSENT]
    absent = [one for one in found if one.kind == ABSENT]
    right = sum(one.right for one in present) / len(present)
    refused = sum(one.refused for one in absent) / len(absent)
    wrongly = sum(one.refused for one in present) / len(present)
    remarks = [
        f"{len(files)} files, {len(rows)} questions, each asked of all files at once; no model."
        " These questions took part in the choice of weights and rules: other documents show less."
    ]
    lines = [
        Line("right, of the questions that a file answers", right, LEAST_RIGHT, at_most=False),
        Line("refused, of those that none answers", refused, LEAST_REFUSED, at_most=False),
    ]
    figures = {"refused, of the questions that a file answers": wrongly}
    asked = {str(row["id"]): asdict(reply) for row, reply in zip(rows, found, strict=True)}
    write(
        "whole", "Whole documents", remarks, lines, figures, COMMAND,
        tables=kinds_table(found), extra={"asked": asked}, sets=[folder],
    )  # fmt: skip


if __name__ == "__main__":
    main()
