"""Ask a server about tables: stated values, rows, and what has to be calculated from them.

    python -m evaluation.studies.calculations [--data DIR] [--tables N]

Each table is a document of its own, as HTML whose cells nothing marks and as a workbook whose
numbers are numbers with a format, asked without a model. Tables of tatqa have their paragraphs
behind them. Those of fetaqa stand under a title, which is a row over all columns in the workbook;
equal texts that stand together are one merged cell.

A calculated answer is right when it is the reference's number within rounding; sign and percent are
free, as the references write them either way. A stated one is right when the answer holds the
reference, separators of thousands aside. Of fetaqa it has to hold every value of the marked cells
that the reference answer names and the question does not. Misses are printed. Writes
evaluation/reports/calculations.{md,json}.
"""

from __future__ import annotations

import html
import io
import re
import tempfile
import zipfile
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import groupby
from pathlib import Path

import httpx

from app.evaluation.collections import json_lines
from evaluation.lib.served import Served, write
from evaluation.lib.workbench import arguments
from evaluation.studies.extractive import share

COMMAND = "python -m evaluation.studies.calculations"
Json = Mapping[str, object]
KINDS = {"arithmetic": "calculated", "count": "counted", "span": "one span", "multi-span": "spans"}
CALCULATED = "calculated", "counted"
_RESULT = re.compile(r"\A\*\*(?P<said>[^*]+)\*\*")
Grid = Sequence[Sequence[str]]
Place = tuple[int, int]
"""Row and column, from 0."""


@dataclass(frozen=True, slots=True)
class Question:
    """A question with what is right."""

    text: str
    kind: str
    wanted: object
    is_right: Callable[[str], bool]


@dataclass(frozen=True, slots=True)
class Table:
    """A table as a document: what stands above it, below it, and what is asked."""

    grid: Grid
    questions: Sequence[Question]
    prose: Sequence[str] = ()
    title: str = ""


# The tables.


def of_tatqa(data: Path) -> Iterator[Table]:
    for context in json_lines(data / "foreign" / "tatqa" / "contexts.jsonl"):
        asked = [
            Question(
                one["question"], KINDS[one["answer_type"]], one["answer"], partial(is_right, one)
            )
            for one in context["questions"]
        ]
        yield Table(
            context["table"]["table"], asked, [one["text"] for one in context["paragraphs"]]
        )


def of_fetaqa(data: Path) -> Iterator[Table]:
    """Yield tables whose reference answer names a value of them that the question does not."""
    for row in json_lines(data / "foreign" / "fetaqa" / "tables.jsonl"):
        grid = row["table_array"]
        question, answer = str(row["question"]), plain(str(row["answer"]))
        named: dict[str, int] = {}
        for line, column in row["highlighted_cell_ids"]:
            value = plain(grid[line][column])
            if line and value and holds(answer, value) and not holds(plain(question), value):
                named.setdefault(value, line)
        if named:
            kind = "values of a row" if len(set(named.values())) == 1 else "values of rows"
            right = partial(_holds_all, list(named))
            asked = Question(question, kind, list(named), right)
            title = f"{row['table_page_title']}: {row['table_section_title']}"
            yield Table(grid, [asked], title=title)


def _holds_all(values: Sequence[str], answer: str) -> bool:
    return all(holds(plain(answer), value) for value in values)


def holds(text: str, value: str) -> bool:
    """Return whether a value stands in a text as a whole."""
    return re.search(rf"(?<!\w){re.escape(value)}(?!\w)", text) is not None


def _td(text: str, end: Place | None, place: Place) -> str:
    """Return a cell of HTML, which reaches to a place where it is merged."""
    rows, columns = (last - first + 1 for first, last in zip(place, end or place, strict=True))
    return f'<td rowspan="{rows}" colspan="{columns}">{html.escape(text)}</td>'


def page(table: Table) -> bytes:
    """Return a table and its paragraphs as HTML."""
    merged, inner = _merged(table.grid) if table.title else ({}, set[Place]())
    lines = "".join(
        "<tr>"
        + "".join(
            _td(cell, merged.get((n, at)), (n, at))
            for at, cell in enumerate(row)
            if (n, at) not in inner
        )
        + "</tr>"
        for n, row in enumerate(table.grid)
    )
    prose = "".join(f"<p>{html.escape(text)}</p>" for text in table.prose)
    title = html.escape(table.title or "Report")
    heading = f"<h1>{title}</h1>" if table.title else ""
    return (
        f"<html><title>{title}</title><body>{heading}<table>{lines}</table>{prose}</body></html>"
    ).encode()


# The same as a workbook, of the few parts that one needs (ISO/IEC 29500-1).

_NUMBER = re.compile(
    r"(?P<open>\()?(?P<currency>\$)?\s*(?P<minus>-)?(?P<whole>\d{1,3}(?:,\d{3})+|\d+)"
    r"(?:\.(?P<decimals>\d{1,3}))?\s*(?P<inner>%)?(?P<close>\))?\s*(?P<outer>%)?"
)
_OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
_SHEETS = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
_PACKAGE = "http://schemas.openxmlformats.org/package/2006"


def workbook(table: Table) -> bytes:
    """Return a table as a sheet, its numbers as numbers, and its paragraphs as another."""
    formats = ["General"]
    width = max(map(len, table.grid))
    grid = [[table.title] * width, *table.grid] if table.title else table.grid
    merged, inner = _merged(grid) if table.title else ({}, set[Place]())
    parted = [
        ["" if (n, at) in inner else cell for at, cell in enumerate(row)]
        for n, row in enumerate(grid)
    ]
    sheets = [
        "".join(f"<row>{''.join(_cell(cell, formats) for cell in row)}</row>" for row in some)
        for some in (parted, [[text] for text in table.prose])
    ]
    areas = "".join(
        f'<mergeCell ref="{_name(*place)}:{_name(*end)}"/>' for place, end in merged.items()
    )
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
            f'<worksheet xmlns="{_SHEETS}"><sheetData>{sheet}</sheetData>'
            f"{f'<mergeCells>{areas}</mergeCells>' if at == 1 and areas else ''}</worksheet>"
        )
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        for name, part in parts.items():
            archive.writestr(name, part)
    return file.getvalue()


def _merged(grid: Grid) -> tuple[dict[Place, Place], set[Place]]:
    """Return the last place of merged cells by their first, and all that they cover.

    Merged are equal texts side by side, else those below each other in the first column.
    """
    merged: dict[Place, Place] = {}
    for at, row in enumerate(grid):
        column = 0
        for text, run in groupby(row):
            width = sum(1 for _ in run)
            if width > 1 and text and not _NUMBER.fullmatch(text):
                merged[at, column] = at, column + width - 1
            column += width
    at = 0
    for text, same in groupby(row[0] if len(set(row[:2])) > 1 else "" for row in grid):
        height = sum(1 for _ in same)
        if height > 1 and text and not _NUMBER.fullmatch(text):
            merged[at, 0] = at + height - 1, 0
        at += height
    inner = {
        (row, column)
        for (top, left), (bottom, right) in merged.items()
        for row in range(top, bottom + 1)
        for column in range(left, right + 1)
        if (row, column) != (top, left)
    }
    return merged, inner


def _name(row: int, column: int) -> str:
    """Return a cell's name: `AB3`."""
    letters = ""
    column += 1
    while column:
        column, at = divmod(column - 1, 26)
        letters = chr(ord("A") + at) + letters
    return f"{letters}{row + 1}"


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


FILES: Mapping[str, tuple[str, str, Callable[[Table], bytes]]] = {
    "HTML": ("html", "text/html", page),
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
    parser.add_argument("--tables", type=int, default=500, help="most tables of each collection")
    given = parser.parse_args()
    collections = {
        "tatqa": list(of_tatqa(given.data))[: given.tables],
        "fetaqa": list(of_fetaqa(given.data))[: given.tables],
    }
    right: dict[str, dict[str, list[bool]]] = {}
    remarks: list[str] = []
    figures: dict[str, float] = {}
    for name in FILES:
        right[name] = {}
        for collection, tables in collections.items():
            of_kind, came = ask(tables, name)
            right[name] |= of_kind
            results = sum(came[kind, True, flag] for kind in CALCULATED for flag in (True, False))
            good = sum(came[kind, True, True] for kind in CALCULATED)
            stray = sum(count for (_, made, _), count in came.items() if made) - results
            stated = sum(len(of) for kind, of in of_kind.items() if kind not in CALCULATED)
            said = f"{len(tables)} tables of {collection} as {name}; no model."
            if results:
                said += f" Of {results} calculated results {good} are right."
                figures[f"{name}, right of the results"] = good / results
            remarks.append(
                f"{said} {stray} of {stated} questions for stated values got a calculated one."
            )
            figures |= {f"{name}, right: {kind}": sum(of) / len(of) for kind, of in of_kind.items()}
    tables_md = [
        f"| questions | asked | {' | '.join(f'{name}: right, with 95 % interval' for name in FILES)} |",
        f"|---|---|{'---|' * len(FILES)}",
    ]
    for kind in right["HTML"]:
        shares = [share(of[kind]) for of in right.values()]
        tables_md.append(f"| {kind} | {len(right['HTML'][kind])} | {' | '.join(shares)} |")
    remarks.append("These questions took part in the choice of rules: other tables show less.")
    title = "Questions over tables"
    write("calculations", title, remarks, [], figures, COMMAND, tables=tables_md)


def ask(
    tables: Sequence[Table], name: str
) -> tuple[dict[str, list[bool]], Counter[tuple[str, bool, bool]]]:
    """Ask all questions of tables that are files of one kind.

    Returns what was right by the kind of question, and counts by kind, whether a result was
    calculated, and whether it is right.
    """
    suffix, media_type, made_of = FILES[name]
    right: dict[str, list[bool]] = {}
    came: Counter[tuple[str, bool, bool]] = Counter()
    with tempfile.TemporaryDirectory(prefix="documind-tables-") as folder:
        server = Served(Path(folder) / "data")
        with server, httpx.Client(base_url=server.url, timeout=300) as client:
            for at, table in enumerate(tables):
                file = ("file", (f"report-{at}.{suffix}", made_of(table), media_type))
                kept = client.post(
                    "/api/v1/ingest?wait=true", files=[file], data={"library": "papers"}
                ).raise_for_status()
                doc_id = kept.json()["documents"][0]["doc_id"]
                for question in table.questions:
                    body = {"question": question.text, "library": "papers", "doc_ids": [doc_id]}
                    reply = client.post("/api/v1/query", json=body).raise_for_status().json()
                    found = question.is_right(reply["answer"])
                    right.setdefault(question.kind, []).append(found)
                    came[question.kind, _RESULT.match(reply["answer"]) is not None, found] += 1
                    if not found:
                        print(
                            f"{name} {at}, {question.kind}: {question.text}\n  for {question.wanted}"
                        )
                        print(f"  {reply['answer']!r:.600}", flush=True)
    return right, came


if __name__ == "__main__":
    main()
