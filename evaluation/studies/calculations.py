"""Ask a server about tables: stated values, and what has to be calculated from them.

    python -m evaluation.studies.calculations [--data DIR] [--tables N]

The first tables of tatqa, each with its paragraphs as an HTML file whose cells nothing marks, asked
one document at a time without a model. A calculated answer is right when it is the reference's
number within rounding; sign and percent are free, as the references write them either way. A
stated one is right when the answer holds the reference. Writes
evaluation/reports/calculations.{md,json}.
"""

from __future__ import annotations

import html
import json
import re
import tempfile
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import cast

import httpx

from evaluation.lib.served import Served, write
from evaluation.lib.workbench import arguments
from evaluation.studies.extractive import share

COMMAND = "python -m evaluation.studies.calculations"
Json = Mapping[str, object]
KINDS = {"arithmetic": "calculated", "count": "counted", "span": "one span", "multi-span": "spans"}
_RESULT = re.compile(r"\A\*\*(?P<said>[^*]+)\*\*")


def page(context: Json) -> str:
    """Return a table and its paragraphs as HTML."""
    table = cast("Json", context["table"])
    rows = "".join(
        f"<tr>{''.join(f'<td>{html.escape(cell)}</td>' for cell in row)}</tr>"
        for row in cast("Sequence[Sequence[str]]", table["table"])
    )
    texts = (str(one["text"]) for one in cast("Sequence[Json]", context["paragraphs"]))
    prose = "".join(f"<p>{html.escape(text)}</p>" for text in texts)
    return f"<html><title>Report</title><body><table>{rows}</table>{prose}</body></html>"


def number(text: object) -> float | None:
    """Return the number that a text is, without currency and separators."""
    digits = re.sub(r"[^\d.-]", "", str(text).split(" ")[0])
    try:
        return float(digits)
    except ValueError:
        return None


def is_right(question: Json, answer: str) -> bool:
    """Return whether an answer holds the reference."""
    wanted = question["answer"]
    if question["answer_type"] in ("arithmetic", "count"):
        result = _RESULT.match(answer)
        said, gold = number(result["said"]) if result else None, number(wanted)
        if said is None or gold is None:
            return False
        near = max(0.011, abs(gold) * 0.0006)
        return min(abs(abs(said) - abs(gold)), abs(said / 100 - gold)) <= near
    parts = wanted if isinstance(wanted, list) else [wanted]
    plain = " ".join(answer.split()).lower()
    return all(" ".join(str(part).split()).lower() in plain for part in parts)


def main() -> None:
    parser = arguments("Ask about tables.")
    parser.add_argument("--tables", type=int, default=139, help="most tables")
    given = parser.parse_args()
    source = given.data / "foreign" / "tatqa" / "contexts.jsonl"
    contexts = [json.loads(line) for line in source.read_text().splitlines()][: given.tables]
    right: dict[str, list[bool]] = {kind: [] for kind in KINDS.values()}
    came: Counter[str] = Counter()
    with tempfile.TemporaryDirectory(prefix="documind-tables-") as folder:
        server = Served(Path(folder) / "data")
        with server, httpx.Client(base_url=server.url, timeout=300) as client:
            for at, context in enumerate(contexts):
                file = ("file", (f"report-{at}.html", page(context).encode(), "text/html"))
                kept = client.post(
                    "/api/v1/ingest?wait=true", files=[file], data={"library": "papers"}
                ).raise_for_status()
                doc_id = kept.json()["documents"][0]["doc_id"]
                for question in context["questions"]:
                    body = {
                        "question": question["question"],
                        "library": "papers",
                        "doc_ids": [doc_id],
                    }
                    reply = client.post("/api/v1/query", json=body).raise_for_status().json()
                    kind = KINDS[question["answer_type"]]
                    found = is_right(question, reply["answer"])
                    right[kind].append(found)
                    made = _RESULT.match(reply["answer"]) is not None
                    came[f"{kind}: {'a result' if made else 'none'}, {found}"] += 1
    tables = ["| questions | asked | right, with 95 % interval |", "|---|---|---|"]
    tables += [f"| {kind} | {len(of)} | {share(of)} |" for kind, of in right.items() if of]
    calculated = [
        came[f"{kind}: a result, {flag}"]
        for kind in ("calculated", "counted")
        for flag in (True, False)
    ]
    results, good = sum(calculated), calculated[0] + calculated[2]
    stray = sum(
        came[f"{kind}: a result, {flag}"]
        for kind in ("one span", "spans")
        for flag in (True, False)
    )
    remarks = [
        f"{len(contexts)} tables of tatqa with their paragraphs as HTML; no model. Of {results}"
        f" calculated results {good} are right; {stray} of"
        f" {len(right['one span']) + len(right['spans'])} questions for a stated value got a"
        " calculated one.",
    ]
    figures = {f"right: {kind}": sum(of) / len(of) for kind, of in right.items() if of}
    figures |= {"right of the results": good / max(1, results)}
    title = "Calculations from tables"
    write("calculations", title, remarks, [], figures, COMMAND, tables=tables)


if __name__ == "__main__":
    main()
