"""Presentations and OpenDocument files: what a reader of them sees, and what is named instead."""

from __future__ import annotations

import pytest

from app.core.errors import Encrypted, TooLarge, Unreadable
from app.core.types import ParsedDocument
from app.ingest.chunking import chunk
from app.ingest.options import IngestOptions
from app.ingest.parsers import DirectParser
from tests.fakes.files import archive
from tests.fakes.office import make_odf, make_pptx, said, shape


def read(content: bytes, name: str) -> ParsedDocument:
    return DirectParser(IngestOptions()).parse(content, name)


FRAME = (
    '<p:graphicFrame><p:nvGraphicFramePr><p:cNvPr id="4"/></p:nvGraphicFramePr>{}</p:graphicFrame>'
)
TABLE = (
    '<a:tbl><a:tblPr firstRow="1"/><a:tr><a:tc><a:p><a:r><a:t>Boat</a:t></a:r></a:p></a:tc>'
    '<a:tc gridSpan="2"><a:p><a:r><a:t>Trips</a:t></a:r></a:p></a:tc><a:tc hMerge="1"/></a:tr>'
    '<a:tr><a:tc rowSpan="2"><a:p><a:r><a:t>Hilda</a:t></a:r></a:p></a:tc>'
    "<a:tc><a:p><a:r><a:t>12</a:t></a:r></a:p></a:tc><a:tc><a:p><a:r><a:t>14</a:t></a:r></a:p></a:tc></a:tr>"
    '<a:tr><a:tc vMerge="1"/><a:tc><a:p><a:r><a:t>9</a:t></a:r></a:p></a:tc>'
    "<a:tc><a:p><a:r><a:t>8</a:t></a:r></a:p></a:tc></a:tr></a:tbl>"
)


def test_a_slide_is_a_page_with_its_title_lists_tables_charts_and_notes() -> None:
    numbered = '<a:pPr lvl="{}"><a:buAutoNum type="arabicPeriod"/></a:pPr>'
    slides = [
        shape(said("A box of its own.")) + shape(said("Harbour talk"), kind="ctrTitle"),
        shape(said("Steps"), kind="title")
        + shape(
            said("cast off", numbered.format(0)),
            said("slowly", '<a:pPr lvl="1"/>'),
            said("steer", numbered.format(0)),
            kind="body",
        )
        + shape(said("7"), kind="sldNum")
        + '<p:grpSp><p:nvGrpSpPr><p:cNvPr id="9"/></p:nvGrpSpPr>'
        + shape(said("within a group"))
        + "</p:grpSp>",
        FRAME.format(TABLE)
        + FRAME.format('<c:chart r:id="c"/>')
        + '<p:pic><p:nvPicPr><p:cNvPr id="5" descr="The pier at dawn"/></p:nvPicPr></p:pic>',
    ]
    parsed = read(make_pptx(slides, notes={2: "Say it twice."}), "talk.pptx")
    pages = [parsed.text[page.start : page.end].strip() for page in parsed.pages]
    assert pages == [
        "Harbour talk\n\nA box of its own.",
        "Steps\n\n1. cast off\n  - slowly\n2. steer\n\nwithin a group\n\nNotes: Say it twice.",
        "Boat | Trips\nBoat: Hilda | Trips: 12 | Trips: 14\nBoat: Hilda | Trips: 9 | Trips: 8\n\n"
        "Rain\nNorth\n2024 | North: 512\n\nThe pier at dawn",
    ]
    assert [page.number for page in parsed.pages] == [1, 2, 3]
    assert parsed.title == "Harbour talk"
    assert [one.title for one in parsed.headings] == ["Harbour talk", "Steps"]
    assert [one.page for one in chunk(parsed, IngestOptions())] == [1, 2, 3]


def test_hidden_slides_keep_their_number_and_are_named() -> None:
    slides = [
        shape(said("one")),
        shape(said("secret")),
        shape(said("x"), hidden=True)
        + "<p:pic><p:nvPicPr><p:cNvPr id='5'/></p:nvPicPr></p:pic>"
        + shape(said("three")),
    ]
    parsed = read(make_pptx(slides, hidden=[2]), "talk.pptx")
    assert [parsed.text[page.start : page.end].strip() for page in parsed.pages] == [
        "one",
        "",
        "three",
    ]
    assert parsed.warnings == (
        "not read: hidden slide 2",
        "not read: hidden shapes",
        "not read: pictures without a description",
    )


def test_presentations_that_cannot_be_read_say_what_to_do() -> None:
    whole = make_pptx([shape(said("one"))])
    with pytest.raises(Unreadable, match="save it again"):
        read(whole[: len(whole) // 2], "a.pptx")
    with pytest.raises(Unreadable, match="damaged presentation"):
        read(archive({"ppt/presentation.xml": "<x"}), "a.pptx")
    with pytest.raises(TooLarge, match="times its size"):
        read(archive({"ppt/presentation.xml": b"0" * 40_000_000}), "a.pptx")


STYLES = (
    '<style:style style:name="Up"><style:text-properties style:text-position="super 58%"/></style:style>'
    '<style:style style:name="Gone"><style:text-properties text:display="none"/></style:style>'
    '<style:style style:name="Cut"><style:text-properties style:text-line-through-style="solid"/></style:style>'
    '<style:style style:name="P1" style:parent-style-name="Title"/>'
    '<text:list-style style:name="L1"><text:list-level-style-number text:level="1" style:num-format="1"'
    ' style:num-suffix="."/><text:list-level-style-number text:level="2" style:num-format="a"'
    ' style:num-suffix=")"/></text:list-style>'
    '<style:style style:name="Off"><style:table-properties table:display="false"/></style:style>'
)


def item(text: str, more: str = "") -> str:
    return f"<text:list-item><text:p>{text}</text:p>{more}</text:list-item>"


def cell(text: str, about: str = "") -> str:
    return f"<table:table-cell {about}><text:p>{text}</text:p></table:table-cell>"


def row(*cells: str) -> str:
    return f"<table:table-row>{''.join(cells)}</table:table-row>"


def test_an_open_text_has_headings_numbered_lists_tables_and_notes_but_nothing_deleted() -> None:
    nested = f"<text:list>{item('inner')}</text:list>"
    body = (
        "<text:tracked-changes><text:p>deleted words</text:p></text:tracked-changes>"
        '<text:p text:style-name="P1">Harbour rules</text:p>'
        '<text:h text:outline-level="2">Mooring</text:h>'
        '<text:p>A deck of 12 m<text:span text:style-name="Up">2</text:span>,<text:s text:c="2"/>'
        '<text:span text:style-name="Gone">hidden</text:span><text:span text:style-name="Cut">old'
        "</text:span>dry<text:note><text:note-citation>1</text:note-citation><text:note-body>"
        "<text:p>In summer.</text:p></text:note-body></text:note>.</text:p>"
        f'<text:list text:style-name="L1">{item("first", nested)}{item("second")}</text:list>'
        '<text:list text:style-name="L1" text:continue-numbering="true">'
        f"{item('third')}</text:list>"
        "<table:table><table:table-header-rows>"
        + row(
            cell("Boat"),
            cell("Trips", 'table:number-columns-spanned="2"'),
            "<table:covered-table-cell/>",
        )
        + "</table:table-header-rows>"
        + row(cell("Hilda", 'table:number-rows-spanned="2"'), cell("12"), cell("14"))
        + row("<table:covered-table-cell/>", cell("9"), cell("8"))
        + "</table:table><text:p><draw:frame><draw:image/><svg:desc>The pier</svg:desc></draw:frame>"
        "<draw:frame><draw:image/></draw:frame><draw:frame><draw:text-box><text:p>In a box.</text:p>"
        "</draw:text-box></draw:frame></text:p>"
    )
    parsed = read(make_odf("text", body, styles=STYLES), "rules.odt")
    assert parsed.text == (
        "Harbour rules\n\nMooring\n\nA deck of 12 m\u00b2,  dry.\n\n"
        "1. first\n  a) inner\n2. second\n3. third\n\n"
        "Boat | Trips\nBoat: Hilda | Trips: 12 | Trips: 14\nBoat: Hilda | Trips: 9 | Trips: 8\n\n"
        "The pier\n\nIn a box.\n\n1 In summer."
    )
    assert (parsed.title, parsed.authors) == ("Harbour rules", ("Ann Berg",))
    assert parsed.stripped_characters == len("hidden")
    assert parsed.warnings == (
        "struck-through text is left out",
        "not read: pictures without a description",
    )


def test_an_open_sheet_is_read_as_it_is_shown() -> None:
    date = 'office:value-type="date" office:date-value="2024-04-01T00:00:00"'
    rows = (
        '<table:table-column table:number-columns-repeated="3"/>'
        '<table:table-column table:visibility="collapse"/>'
        + row(cell("Name"), cell("Fee"), cell("Since"), cell("Cost"))
        + row(cell("Ann"), cell("12.50 €"), cell("1. April", date), cell("99"))
        + row(
            cell("Bo"), cell("19%"), cell("2. May", date), '<table:table-cell table:formula="x"/>'
        )
        + '<table:table-row table:number-rows-repeated="1048000"><table:table-cell'
        ' table:number-columns-repeated="16384"/></table:table-row>'
    )
    body = (
        f'<table:table table:name="Fees">{rows}</table:table>'
        f'<table:table table:name="Plan" table:style-name="Off">{row(cell("secret"))}</table:table>'
    )
    parsed = read(make_odf("spreadsheet", body, styles=STYLES), "fees.ods")
    assert parsed.text == (
        "Fees\n\nName | Fee | Since\nName: Ann | Fee: 12.50 € | Since: 2024-04-01\n"
        "Name: Bo | Fee: 19% | Since: 2024-04-01"
    )
    assert set(parsed.warnings) == {
        "not read: hidden sheet 'Plan'",
        "not read: cells of hidden columns of sheet 'Fees' (2)",
        "not read: formulas without a stored value (open the file in its program and save it)",
    }


def test_a_row_repeated_without_end_is_bounded_and_named() -> None:
    repeated = row(cell("7", 'table:number-columns-repeated="16384"')).replace(
        "<table:table-row>", '<table:table-row table:number-rows-repeated="1048576">'
    )
    parsed = read(
        make_odf("spreadsheet", f'<table:table table:name="A">{repeated}</table:table>'), "a.ods"
    )
    assert parsed.warnings[0].startswith("not read: rows of sheet 'A', too many cells")


def test_protected_open_documents_are_refused() -> None:
    with pytest.raises(Encrypted, match="without one"):
        read(make_odf("text", "", manifest="<encryption-data/>"), "a.odt")


@pytest.mark.parametrize("kind", ["text", "spreadsheet"])
def test_an_open_document_without_content_is_damaged(kind: str) -> None:
    packed = archive({"mimetype": f"application/vnd.oasis.opendocument.{kind}"})
    with pytest.raises(Unreadable, match=f"damaged OpenDocument {kind}"):
        DirectParser(IngestOptions()).parse(packed, "a.odt")
