"""Tables, office files and structured text: bombs, far corners, loops and damage."""

from __future__ import annotations

from tests.fakes.files import archive
from tests.fakes.hostile.model import WORDS, HostileFile, encoded, hostile
from tests.fakes.office import cells, make_odf, make_pptx, make_xls, make_xlsx, said, shape, sheet

_BOMB = "".join(f'<!ENTITY e{n} "{f"&e{n - 1};" * 10}">' for n in range(1, 12))
_PROLOG = f'<!DOCTYPE x [<!ENTITY e0 "boom">{_BOMB}]>'
_LEAK = '<!DOCTYPE x [<!ENTITY leak SYSTEM "file:///etc/passwd">]>'


def _book(content: str, more: str = "") -> bytes:
    shared = f'<sst xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main">{more}</sst>'
    return make_xlsx({"A": content}, more={"xl/sharedStrings.xml": shared})


def _far() -> bytes:
    corner = '<row r="1048576"><c r="XFD1048576"><v>7</v></c></row></sheetData>'
    return make_xlsx({"A": sheet([cells(1, WORDS)]).replace("</sheetData>", corner)})


def _diagonal() -> bytes:
    rows = "".join(
        f'<row r="{at}"><c r="{chr(65 + at % 26)}{chr(65 + at % 25)}{at}"><v>1</v></c></row>'
        for at in range(1, 20_000, 2)
    )
    return make_xlsx({"A": sheet([]).replace("<sheetData>", f"<sheetData>{rows}")})


def _merges() -> bytes:
    merged = '<mergeCell ref="A1:XFD1048576"/>' * 50_000
    rows = [cells(at, WORDS, 1, 2) for at in range(1, 200)]
    return make_xlsx({"A": sheet(rows, behind=f"<mergeCells>{merged}</mergeCells>")})


def _repeated() -> bytes:
    row = (
        '<table:table-row table:number-rows-repeated="1048576"><table:table-cell'
        ' table:number-columns-repeated="99999999"><text:p>7</text:p></table:table-cell>'
        "</table:table-row>"
    )
    return make_odf("spreadsheet", f'<table:table table:name="A">{row}</table:table>')


def _yaml_bomb() -> str:
    lists = "".join(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]\n" for n in range(1, 12))
    return f"a0: &a0 [{WORDS}]\n{lists}"


TABLES: tuple[HostileFile, ...] = (
    hostile("far-corners.xlsx", _far, "indexed"),
    hostile("diagonal.xlsx", _diagonal, "indexed", "unreadable"),
    hostile("merged-again-and-again.xlsx", _merges, "indexed"),
    hostile(
        "entities.xlsx", lambda: _book(_PROLOG + sheet([cells(1, WORDS)])), "indexed", "unreadable"
    ),
    hostile("bomb.xlsx", lambda: archive({"xl/workbook.xml": b"0" * 40_000_000}), "too_large"),
    hostile("half.xlsx", lambda: _far()[:700], "unreadable"),
    hostile("bad-index.xlsx", lambda: _book(sheet(['<c r="A1" t="s"><v>9</v></c>'])), "unreadable"),
    hostile("bad-number.xlsx", lambda: _book(sheet(['<c r="A1"><v>x</v></c>'])), "unreadable"),
    hostile("half.xls", lambda: make_xls([("a", "b")])[:2_000], "unreadable", "unsupported_type"),
    hostile(
        "noise.xls", lambda: make_xls([("a", "b")])[:1_500] + b"\xfe" * 5_000, "unsupported_type"
    ),
    hostile("entities.pptx", lambda: make_pptx([_LEAK + shape(said("&leak;"))]), "unreadable"),
    hostile(
        "deep-groups.pptx",
        lambda: make_pptx(["<p:grpSp>" * 20_000 + shape(said(WORDS)) + "</p:grpSp>" * 20_000]),
        "unreadable",
    ),
    hostile("repeated.ods", _repeated, "indexed"),
    hostile(
        "deep-lists.odt",
        lambda: make_odf(
            "text",
            "<text:list><text:list-item>" * 100
            + f"<text:p>{WORDS}</text:p>"
            + "</text:list-item></text:list>" * 100,
        ),
        "indexed",
        "unreadable",
    ),
    hostile("columns.csv", lambda: b"a," * 300_000 + b"\n" + b"1," * 300_000, "indexed"),
    hostile("quotation-marks.csv", lambda: b'"a\n' * 200_000, "indexed"),
    hostile("separators.csv", lambda: b";,|\t" * 300_000 + WORDS.encode(), "indexed"),
    hostile("deep.json", lambda: b"[" * 300_000, "unreadable"),
    hostile(
        "deep-objects.json", lambda: b'{"a":' * 900 + b"1" + b"}" * 900, "indexed", "unreadable"
    ),
    hostile("digits.json", lambda: b"[" + b"9" * 1_000_000 + b"]", "unreadable"),
    hostile("half.json", lambda: b'{"a": [1, 2', "indexed"),
    hostile("aliases.yaml", encoded(_yaml_bomb), "indexed", "too_large", "unreadable"),
    hostile("loop.yaml", lambda: b"a: &a {b: *a, c: words}", "indexed"),
    hostile("objects.yaml", lambda: b"a: !!python/object/apply:os.system ['x']", "indexed"),
    hostile("deep.yaml", lambda: b"[" * 200_000, "unreadable"),
    hostile("entities.xml", encoded(lambda: f"{_PROLOG}<x>&e11;</x>"), "unreadable"),
    hostile("leak.xml", encoded(lambda: f"{_LEAK}<x>{WORDS}&leak;</x>"), "unreadable", "indexed"),
    hostile("deep.xml", lambda: b"<a>" * 200_000, "unreadable"),
    hostile("data-urls.txt", lambda: b"data:a/b;base64," * 100_000 + WORDS.encode(), "indexed"),
    hostile("begins.txt", lambda: b"-----BEGIN A-----\n" * 100_000 + WORDS.encode(), "indexed"),
    hostile("runs.txt", lambda: (b"A1b" * 30 + b" \n") * 30_000 + WORDS.encode(), "indexed"),
)
