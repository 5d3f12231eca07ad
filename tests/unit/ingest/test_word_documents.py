"""Word documents of every kind: what stands in forms, lists, boxes, headers and equations is read with its meaning."""

from __future__ import annotations

import io
import zipfile

import pytest

from app.core.errors import Unreadable
from app.core.types import ParsedDocument
from app.ingest.options import IngestOptions
from app.ingest.parsers import DirectParser

W = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
M = "http://schemas.openxmlformats.org/officeDocument/2006/math"
RELATIONS = "http://schemas.openxmlformats.org/package/2006/relationships"
OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
STRICT = "http://purl.oclc.org/ooxml/wordprocessingml/main"
NUMBERING = (
    f'<w:numbering xmlns:w="{W}"><w:abstractNum w:abstractNumId="1">'
    '<w:lvl w:ilvl="0"><w:start w:val="1"/><w:numFmt w:val="decimal"/><w:lvlText w:val="%1."/></w:lvl>'
    '<w:lvl w:ilvl="1"><w:start w:val="1"/><w:numFmt w:val="lowerLetter"/><w:lvlText w:val="%1.%2)"/>'
    '</w:lvl></w:abstractNum><w:num w:numId="7"><w:abstractNumId w:val="1"/></w:num></w:numbering>'
)


def read(
    body: str, name: str = "a.docx", main: str = "word/document.xml", space: str = W, **parts: str
) -> ParsedDocument:
    """Return what is read of a package with this body and these other parts, by kind."""
    root = f'<Relationships xmlns="{RELATIONS}"><Relationship Id="r" Type="{OFFICE}/officeDocument" Target="{main}"/></Relationships>'
    own = "".join(
        f'<Relationship Id="{kind}" Type="{OFFICE}/{kind}" Target="{kind}.xml"/>' for kind in parts
    )
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("_rels/.rels", root)
        archive.writestr(
            main,
            f'<w:document xmlns:w="{space}" xmlns:m="{M}"><w:body>{body}</w:body></w:document>',
        )
        folder, _, base = main.rpartition("/")
        archive.writestr(
            f"{folder}/_rels/{base}.rels",
            f'<Relationships xmlns="{RELATIONS}">{own}</Relationships>',
        )
        for kind, text in parts.items():
            archive.writestr(f"word/{kind}.xml", text)
    return DirectParser(IngestOptions()).parse(packed.getvalue(), name)


def run(text: str, properties: str = "") -> str:
    return f'<w:r><w:rPr>{properties}</w:rPr><w:t xml:space="preserve">{text}</w:t></w:r>'


def paragraph(inner: str, properties: str = "") -> str:
    return f"<w:p><w:pPr>{properties}</w:pPr>{inner if '<' in inner else run(inner)}</w:p>"


def cell(text: str, properties: str = "") -> str:
    return f"<w:tc><w:tcPr>{properties}</w:tcPr>{paragraph(text)}</w:tc>"


def item(text: str, depth: int) -> str:
    return paragraph(text, f'<w:numPr><w:ilvl w:val="{depth}"/><w:numId w:val="7"/></w:numPr>')


@pytest.mark.parametrize(
    ("name", "main", "space"),
    [
        ("a.docm", "word/document.xml", W),
        ("a.dotx", "word/document.xml", W),
        ("a.docx", "word/document2.xml", W),
        ("a.docx", "word/document.xml", STRICT),
    ],
)
def test_every_variety_of_word_is_read(name: str, main: str, space: str) -> None:
    assert read(paragraph("23 kilograms"), name, main, space).text == "23 kilograms"


def test_cells_in_content_controls_stay_under_their_labels_and_merged_ones_are_repeated() -> None:
    held = f"<w:sdt><w:sdtContent>{cell('17')}</w:sdtContent></w:sdt>"
    rows = [
        cell("Item") + cell("Value") + cell("Unit"),
        cell("Wind", '<w:vMerge w:val="restart"/>') + held + cell("knots"),
        cell("", "<w:vMerge/>") + cell("9", '<w:gridSpan w:val="2"/>'),
    ]
    inner = "".join(f"<w:tr>{row}</w:tr>" for row in rows)
    assert read(f"<w:tbl>{inner}</w:tbl>").text.split("\n") == [
        "Item | Value | Unit",
        "Item: Wind | Value: 17 | Unit: knots",
        "Item: Wind | Value: 9 | Unit: 9",
    ]


def test_numbers_of_lists_and_headings_are_as_printed() -> None:
    heading = paragraph(
        "Delay",
        '<w:outlineLvl w:val="1"/><w:numPr><w:ilvl w:val="1"/><w:numId w:val="7"/></w:numPr>',
    )
    parsed = read(item("Open it.", 0) + item("Look.", 1) + heading + item("Shut it.", 0),
                  numbering=NUMBERING)  # fmt: skip
    assert parsed.text == "1. Open it.\n  1.a) Look.\n\n1.b) Delay\n\n2. Shut it."
    assert [one.title for one in parsed.headings] == ["1.b) Delay"]


def test_powers_struck_text_signs_and_drop_caps_keep_their_meaning() -> None:
    power = run("5 x 10") + run("6", '<w:vertAlign w:val="superscript"/>') + run(" particles")
    struck = run("costs ") + run("900 ", "<w:strike/>") + run("1,150")
    signs = '<w:r><w:sym w:font="Symbol" w:char="F0B1"/></w:r>' + run("2 ")
    signs += '<w:r><w:sym w:font="Wingdings" w:char="F0FE"/></w:r>' + run(" Has a boat")
    cap = paragraph("H", '<w:framePr w:dropCap="drop"/>') + paragraph("arbours of the north")
    parsed = read("".join(map(paragraph, (power, struck, signs))) + cap)
    assert parsed.text.split("\n\n") == [
        "5 x 10^6 particles",
        "costs 1,150",
        "\u00b12 \u2611 Has a boat",
        "Harbours of the north",
    ]
    assert "struck-through text is left out" in parsed.warnings


def test_equations_are_readable() -> None:
    def math(inner: str) -> str:
        return f"<m:oMath>{inner}</m:oMath>"

    def part(name: str, text: str) -> str:
        return f"<m:{name}><m:r><m:t>{text}</m:t></m:r></m:{name}>"

    fraction = f"<m:f>{part('num', '1')}{part('den', '16')}</m:f>"
    power = f"<m:sSup>{part('e', 'x')}{part('sup', 'n+1')}</m:sSup>"
    root = f"<m:rad><m:deg/>{part('e', 'a+b')}</m:rad>"
    body = "".join(
        paragraph(run("It is") + math(one) + run("here.")) for one in (fraction, power, root)
    )
    assert read(body).text.split("\n\n") == [
        "It is 1/16 here.",
        "It is x^(n+1) here.",
        "It is \u221a(a+b) here.",
    ]


def test_headers_notes_and_comments_stand_behind_the_text_once() -> None:
    def notes(tag: str, child: str, text: str, extra: str = "") -> str:
        return f'<w:{tag} xmlns:w="{W}"><w:{child} w:id="2" {extra}>{paragraph(text)}</w:{child}></w:{tag}>'

    parsed = read(
        paragraph("Dear sir"),
        header=f'<w:hdr xmlns:w="{W}">{paragraph("Reference QS-2291")}</w:hdr>',
        footnotes=notes("footnotes", "footnote", "See the plan."),
        comments=notes("comments", "comment", "Is that so?", 'w:author="Moe"'),
    )
    assert parsed.text.split("\n\n") == [
        "Dear sir",
        "See the plan.",
        "Comment by Moe: Is that so?",
        "Reference QS-2291",
    ]


@pytest.mark.parametrize("depth", [40, 300])
def test_deep_equations_and_tables_end(depth: int) -> None:
    equation = "<m:d><m:e>" * depth + "<m:r><m:t>x</m:t></m:r>" + "</m:e></m:d>" * depth
    table = paragraph("core")
    for _ in range(depth):
        table = f"<w:tbl><w:tr><w:tc>{table}</w:tc></w:tr></w:tbl>"
    for body in (paragraph(f"<m:oMath>{equation}</m:oMath>"), table):
        if depth > 256:  # of elements, at which lxml stops
            with pytest.raises(Unreadable):
                read(body + paragraph("end"))
        else:
            assert read(body + paragraph("end")).text.endswith("end")
