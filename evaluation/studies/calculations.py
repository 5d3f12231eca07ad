"""Ask a server about tables: stated values, and what has to be calculated from them.

    python -m evaluation.studies.calculations [--data DIR] [--tables N]

The first tables of tatqa, each with its paragraphs as an HTML file whose cells nothing marks, and
as a workbook whose numbers are numbers with a format, asked one document at a time without a model. A calculated answer is right when it is the reference's
number within rounding; sign and percent are free, as the references write them either way. A
stated one is right when the answer holds the reference, separators of thousands aside. Writes
evaluation/reports/calculations.{md,json}.
"""

from __future__ import annotations

import html
import io
import json
import re
import tempfile
import zipfile
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
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


# The same as a workbook, of the few parts that one needs (ISO/IEC 29500-1).

_NUMBER = re.compile(
    r"(?P<open>\()?(?P<currency>\$)?\s*(?P<minus>-)?(?P<whole>\d{1,3}(?:,\d{3})+|\d+)"
    r"(?:\.(?P<decimals>\d{1,3}))?\s*(?P<inner>%)?(?P<close>\))?\s*(?P<outer>%)?"
)
_OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
_SHEETS = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
_PACKAGE = "http://schemas.openxmlformats.org/package/2006"


def workbook(context: Json) -> bytes:
    """Return a table as a sheet, its numbers as numbers, and its paragraphs as another."""
    table = cast("Json", context["table"])
    texts = [[str(one["text"])] for one in cast("Sequence[Json]", context["paragraphs"])]
    formats = ["General"]
    grids = cast("Sequence[Sequence[str]]", table["table"]), texts
    sheets = [
        "".join(f"<row>{''.join(_cell(cell, formats) for cell in row)}</row>" for row in grid)
        for grid in grids
    ]
    codes = "".join(
        f'<numFmt numFmtId="{200 + at}" formatCode="{html.escape(code)}"/>'
        for at, code in enumerate(formats)
    )
    styles = "".join(f'<xf numFmtId="{200 + at}"/>' for at in range(len(formats)))
    kinds = {"r1": ("worksheet", "s1"), "r2": ("worksheet", "s2"), "r3": ("styles", "styles")}
    related = "".join(
        f'<Relationship Id="{name}" Type="{_OFFICE}/{kind}" Target="{part}.xml"/>'
        for name, (kind, part) in kinds.items()
    )
    parts = {
        "[Content_Types].xml": f'<Types xmlns="{_PACKAGE}/content-types"/>',
        "_rels/.rels": f'<Relationships xmlns="{_PACKAGE}/relationships"><Relationship Id="r"'
        f' Type="{_OFFICE}/officeDocument" Target="xl/workbook.xml"/></Relationships>',
        "xl/_rels/workbook.xml.rels": f'<Relationships xmlns="{_PACKAGE}/relationships">{related}'
        "</Relationships>",
        "xl/workbook.xml": f'<workbook xmlns="{_SHEETS}" xmlns:r="{_OFFICE}"><sheets>'
        '<sheet name="Table" sheetId="1" r:id="r1"/><sheet name="Text" sheetId="2" r:id="r2"/>'
        "</sheets></workbook>",
        "xl/styles.xml": f'<styleSheet xmlns="{_SHEETS}"><numFmts>{codes}</numFmts>'
        f"<cellXfs>{styles}</cellXfs></styleSheet>",
    }
    for at, sheet in enumerate(sheets, start=1):
        parts[f"xl/s{at}.xml"] = (
            f'<worksheet xmlns="{_SHEETS}"><sheetData>{sheet}</sheetData></worksheet>'
        )
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        for name, part in parts.items():
            archive.writestr(name, part)
    return file.getvalue()


def _cell(text: str, formats: list[str]) -> str:
    """Return a cell; a number gets the format that shows it, which is added where it is new."""
    found = _NUMBER.fullmatch(text.strip())
    if found is None or bool(found["open"]) != bool(found["close"]):
        return f'<c t="inlineStr"><is><t>{html.escape(text)}</t></is></c>' if text else "<c/>"
    decimals = found["decimals"] or ""
    value = float(f"{found['whole'].replace(',', '')}.{decimals or 0}")
    is_percent = bool(found["inner"] or found["outer"])
    grouped = "#,##0" if "," in found["whole"] else "0"
    currency = '"$"' if found["currency"] else ""
    code = f"{currency}{grouped}{'.' * bool(decimals)}"
    code += "0" * len(decimals) + "%" * is_percent
    if code not in formats:
        formats.append(code)
    value = round(value / 100, 8) if is_percent else value
    sign = "-" if found["open"] or found["minus"] else ""
    return f'<c s="{formats.index(code)}"><v>{sign}{value!r}</v></c>'


FILES: dict[str, tuple[str, str, Callable[[Json], bytes]]] = {
    "HTML": ("html", "text/html", lambda context: page(context).encode()),
    "XLSX": (
        "xlsx",
        "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
        workbook,
    ),
}
"""Each kind of file that the tables are asked as: extension, media type, and how it is made."""


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
    whole = plain(answer)
    return all(plain(str(part)) in whole for part in parts)


def plain(text: str) -> str:
    """Return a text as files of every kind say it: `(1,250)` and `-1250` are the same.

    Marks of sources, and a full stop at the end, are no part of it.
    """
    words = " ".join(re.sub(r" ?\[\d+\]", "", text).split()).lower().removesuffix(".")
    without = re.sub(r"(?<=\d),(?=\d{3})", "", words)
    return re.sub(r"\((\$?\d[\d.]*)\)", r"-\1", without)


def main() -> None:
    parser = arguments("Ask about tables.")
    parser.add_argument("--tables", type=int, default=139, help="most tables")
    given = parser.parse_args()
    source = given.data / "foreign" / "tatqa" / "contexts.jsonl"
    contexts = [json.loads(line) for line in source.read_text().splitlines()][: given.tables]
    right: dict[str, dict[str, list[bool]]] = {}
    remarks: list[str] = []
    figures: dict[str, float] = {}
    for name in FILES:
        right[name], came = ask(contexts, name)
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
        stated = len(right[name]["one span"]) + len(right[name]["spans"])
        remarks.append(
            f"{len(contexts)} tables of tatqa with their paragraphs as {name}; no model. Of"
            f" {results} calculated results {good} are right; {stray} of {stated} questions for a"
            " stated value got a calculated one."
        )
        figures |= {f"{name}, right: {kind}": sum(of) / len(of) for kind, of in right[name].items()}
        figures |= {f"{name}, right of the results": good / max(1, results)}
    tables = [
        f"| questions | asked | {' | '.join(f'{name}: right, with 95 % interval' for name in FILES)} |",
        f"|---|---|{'---|' * len(FILES)}",
    ]
    for kind in KINDS.values():
        shares = [share(of[kind]) for of in right.values()]
        tables.append(f"| {kind} | {len(right['HTML'][kind])} | {' | '.join(shares)} |")
    title = "Calculations from tables"
    write("calculations", title, remarks, [], figures, COMMAND, tables=tables)


def ask(contexts: Sequence[Json], name: str) -> tuple[dict[str, list[bool]], Counter[str]]:
    """Ask all questions of tables that are files of one kind; return what was right, and how."""
    suffix, media_type, made_of = FILES[name]
    right: dict[str, list[bool]] = {kind: [] for kind in KINDS.values()}
    came: Counter[str] = Counter()
    with tempfile.TemporaryDirectory(prefix="documind-tables-") as folder:
        server = Served(Path(folder) / "data")
        with server, httpx.Client(base_url=server.url, timeout=300) as client:
            for at, context in enumerate(contexts):
                file = ("file", (f"report-{at}.{suffix}", made_of(context), media_type))
                kept = client.post(
                    "/api/v1/ingest?wait=true", files=[file], data={"library": "papers"}
                ).raise_for_status()
                doc_id = kept.json()["documents"][0]["doc_id"]
                for question in cast("Sequence[Json]", context["questions"]):
                    body = {
                        "question": question["question"],
                        "library": "papers",
                        "doc_ids": [doc_id],
                    }
                    reply = client.post("/api/v1/query", json=body).raise_for_status().json()
                    kind = KINDS[str(question["answer_type"])]
                    found = is_right(question, reply["answer"])
                    right[kind].append(found)
                    made = _RESULT.match(reply["answer"]) is not None
                    came[f"{kind}: {'a result' if made else 'none'}, {found}"] += 1
                print(name, at, {kind: sum(of) for kind, of in right.items()}, flush=True)
    return right, came


if __name__ == "__main__":
    main()
