"""Office files made on the spot of XML that says what a test needs, and nothing else."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence

import xlwt

from tests.fakes.files import archive

_OFFICE = "http://schemas.openxmlformats.org/"
_NAMES = (
    f' xmlns:r="{_OFFICE}officeDocument/2006/relationships" xmlns:a="{_OFFICE}drawingml/2006/main"'
    f' xmlns:c="{_OFFICE}drawingml/2006/chart" xmlns:p="{_OFFICE}presentationml/2006/main"'
)
CHART = (
    f"<c:chartSpace{_NAMES}><c:chart><c:title><c:tx><a:p><a:r><a:t>Rain</a:t></a:r></a:p></c:tx>"
    "</c:title><c:plotArea><c:barChart><c:ser><c:tx><c:v>North</c:v></c:tx><c:cat><c:pt><c:v>2024"
    "</c:v></c:pt></c:cat><c:val><c:pt><c:v>512</c:v></c:pt></c:val></c:ser></c:barChart>"
    "</c:plotArea></c:chart></c:chartSpace>"
)


def relations(targets: Mapping[str, tuple[str, str]]) -> str:
    """Return a part's relations: id to kind and target."""
    rows = "".join(
        f'<Relationship Id="{name}" Type="{_OFFICE}officeDocument/2006/relationships/{kind}"'
        f' Target="{target}"/>'
        for name, (kind, target) in targets.items()
    )
    return f'<Relationships xmlns="{_OFFICE}package/2006/relationships">{rows}</Relationships>'


def sheet(rows: Sequence[str], *, before: str = "", behind: str = "") -> str:
    """Return a sheet of rows of cells, each row the XML of its `c` elements."""
    lines = "".join(f'<row r="{at}">{cells}</row>' for at, cells in enumerate(rows, 1))
    return (
        f'<worksheet xmlns="{_OFFICE}spreadsheetml/2006/main"{_NAMES}>{before}<sheetData>{lines}'
        f"</sheetData>{behind}</worksheet>"
    )


def cells(row: int, *values: str | float | None, style: Sequence[int] = ()) -> str:
    """Return a row's cells from column A on."""
    made = []
    for at, value in enumerate(values):
        place = f'r="{chr(ord("A") + at)}{row}" s="{style[at] if style else 0}"'
        if isinstance(value, str):
            made.append(f'<c {place} t="inlineStr"><is><t>{value}</t></is></c>')
        elif value is not None:
            made.append(f"<c {place}><v>{value!r}</v></c>")
    return "".join(made)


def table(*rows: Sequence[str | float | None], style: Sequence[int] = ()) -> str:
    """Return a sheet of plain values."""
    return sheet([cells(at, *row, style=style) for at, row in enumerate(rows, 1)])


def make_xlsx(
    sheets: Mapping[str, str],
    *,
    formats: Sequence[str] = (),
    state: Mapping[str, str] | None = None,
    more: Mapping[str, str | bytes] | None = None,
) -> bytes:
    """Return a workbook; style n + 1 has the n-th of `formats`, `state` says what is hidden."""
    listed = "".join(
        f'<sheet name="{name}" sheetId="{at}" r:id="s{at}"'
        f' state="{(state or {}).get(name, "visible")}"/>'
        for at, name in enumerate(sheets, 1)
    )
    own = "".join(
        f'<numFmt numFmtId="{164 + at}" formatCode="{code}"/>' for at, code in enumerate(formats)
    )
    styles = "".join(f'<xf numFmtId="{164 + at}"/>' for at in range(len(formats)))
    main = f'xmlns="{_OFFICE}spreadsheetml/2006/main"'
    return archive(
        {
            "_rels/.rels": relations({"r1": ("officeDocument", "xl/workbook.xml")}),
            "xl/workbook.xml": f"<workbook {main}{_NAMES}><sheets>{listed}</sheets></workbook>",
            "xl/_rels/workbook.xml.rels": relations(
                {
                    "styles": ("styles", "styles.xml"),
                    **{
                        f"s{at}": ("worksheet", f"worksheets/sheet{at}.xml")
                        for at in range(1, len(sheets) + 1)
                    },
                }
            ),
            "xl/styles.xml": f"<styleSheet {main}><numFmts>{own}</numFmts><cellXfs>"
            f'<xf numFmtId="0"/>{styles}</cellXfs></styleSheet>',
            **{
                f"xl/worksheets/sheet{at}.xml": content
                for at, content in enumerate(sheets.values(), 1)
            },
            **(more or {}),
        }
    )


def make_xls(rows: Sequence[Sequence[object]], *, first: tuple[int, int] = (0, 0)) -> bytes:
    """Return a workbook of Excel 97 with a second sheet that is hidden."""
    book = xlwt.Workbook()
    shown, hidden = book.add_sheet("Fees"), book.add_sheet("Drafts")
    hidden.visibility = 1
    hidden.write(0, 0, "not for readers")
    date = xlwt.easyxf(num_format_str="YYYY-MM-DD")
    for at, row in enumerate(rows, first[0]):
        for column, value in enumerate(row, first[1]):
            shown.write(at, column, value, *([date] if hasattr(value, "year") else []))
    buffer = io.BytesIO()
    book.save(buffer)
    return buffer.getvalue()


def shape(*paragraphs: str, kind: str | None = None, hidden: bool = False) -> str:
    """Return a shape with paragraphs, each the XML of an `a:p` element's inside."""
    place = "" if kind is None else f'<p:ph type="{kind}"/>'
    lines = "".join(f"<a:p>{one}</a:p>" for one in paragraphs)
    return (
        f'<p:sp><p:nvSpPr><p:cNvPr id="2" name="x" hidden="{int(hidden)}"/><p:cNvSpPr/><p:nvPr>'
        f"{place}</p:nvPr></p:nvSpPr><p:txBody>{lines}</p:txBody></p:sp>"
    )


def said(text: str, about: str = "") -> str:
    """Return the inside of a paragraph that says `text`; `about` are its properties."""
    return f"{about}<a:r><a:t>{text}</a:t></a:r>"


def make_pptx(
    slides: Sequence[str],
    *,
    hidden: Sequence[int] = (),
    notes: Mapping[int, str] | None = None,
    more: Mapping[str, str | bytes] | None = None,
) -> bytes:
    """Return a presentation of slides, each the XML of its shapes; relations of all: `c`, a chart."""
    numbers = range(1, len(slides) + 1)
    ids = "".join(f'<p:sldId id="{255 + at}" r:id="s{at}"/>' for at in numbers)
    parts: dict[str, str | bytes] = {
        "_rels/.rels": relations({"r1": ("officeDocument", "ppt/presentation.xml")}),
        "ppt/presentation.xml": f"<p:presentation{_NAMES}><p:sldIdLst>{ids}</p:sldIdLst>"
        "</p:presentation>",
        "ppt/_rels/presentation.xml.rels": relations(
            {f"s{at}": ("slide", f"slides/slide{at}.xml") for at in numbers}
        ),
        "ppt/charts/chart1.xml": CHART,
    }
    for at, shapes in enumerate(slides, 1):
        show = ' show="0"' if at in hidden else ""
        tree = f"<p:cSld><p:spTree>{shapes}</p:spTree></p:cSld>"
        parts[f"ppt/slides/slide{at}.xml"] = f"<p:sld{_NAMES}{show}>{tree}</p:sld>"
        targets = {"c": ("chart", "../charts/chart1.xml")}
        if at in (notes or {}):
            targets["n"] = ("notesSlide", f"../notesSlides/n{at}.xml")
            body = shape(said((notes or {})[at]), kind="body")
            parts[f"ppt/notesSlides/n{at}.xml"] = f"<p:notes{_NAMES}>{body}</p:notes>"
        parts[f"ppt/slides/_rels/slide{at}.xml.rels"] = relations(targets)
    return archive({**parts, **(more or {})})


_ODF = " ".join(
    f'xmlns:{short}="urn:oasis:names:tc:opendocument:xmlns:{name}:1.0"'
    for short, name in (
        *(("office", "office"), ("text", "text"), ("table", "table"), ("draw", "drawing")),
        *(("style", "style"), ("meta", "meta"), ("svg", "svg-compatible")),
    )
)


def make_odf(kind: str, body: str, *, styles: str = "", manifest: str = "") -> bytes:
    """Return an OpenDocument file; `kind` is `text` or `spreadsheet`, `styles` automatic ones."""
    about = (
        f'<office:document-meta {_ODF} xmlns:dc="http://purl.org/dc/elements/1.1/"><office:meta>'
        "<dc:title>Declared title</dc:title><meta:initial-creator>Ann Berg</meta:initial-creator>"
        "</office:meta></office:document-meta>"
    )
    return archive(
        {
            "mimetype": f"application/vnd.oasis.opendocument.{kind}",
            "META-INF/manifest.xml": f"<manifest>{manifest}</manifest>",
            "meta.xml": about,
            "content.xml": f'<office:document-content {_ODF} xmlns:dc="http://purl.org/dc/elements/1.1/">'
            f"<office:automatic-styles>{styles}</office:automatic-styles><office:body>"
            f"<office:{kind}>{body}</office:{kind}></office:body></office:document-content>",
        }
    )
