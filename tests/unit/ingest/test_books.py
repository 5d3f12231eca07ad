"""Books, rich text, notebooks and subtitles: what a reader sees of them, and what is named as not read."""

from __future__ import annotations

import io
import json
import zipfile

import pytest

from app.core.errors import Encrypted
from app.core.types import ParsedDocument
from app.ingest.options import IngestOptions
from app.ingest.parsers import DirectParser
from tests.fakes.files import make_epub

RTF = rb"""{\rtf1\ansi\ansicpg1250\deff0{\fonttbl{\f0\fbidi \froman\fcharset238\fprq2 Times;}{\f1\fnil\fcharset204 Arial;}}
{\stylesheet{\s1\outlinelevel0 heading 1;}}{\info{\title Harbour rules}{\author Dora Pell}{\creatim\yr2019\mo2}}
\pard\plain\s1\outlinelevel0 Depths\par
\pard\plain The quay of {\f1 \'cc\'ee\'f1\'ea\'e2\'e0} is deep: \'9elut\'fd k\u367?\'f2.{\v secret words} See {\field{\*\fldinst{HYPERLINK "http://x.org"}}{\fldrslt{the map}}}.\par
\trowd\cellx1000\cellx2000\pard\intbl Pier\cell Depth\cell\row
\trowd\pard\intbl East\cell 4 m\par low\cell\row
\pard Last line{\footnote a note}.\par{\pict\wmetafile8 0102}}"""


def read(content: bytes, name: str) -> ParsedDocument:
    return DirectParser(IngestOptions()).parse(content, name)


def titles(parsed: ParsedDocument) -> list[tuple[int, str]]:
    return [(one.level, one.title) for one in parsed.headings]


def test_chapters_of_a_book_come_in_the_order_of_its_spine() -> None:
    for navigation in ("nav", "ncx"):
        parsed = read(make_epub(navigation), "tides.epub")
        assert parsed.text == (
            "Springs\n\nThe spring tide is 4 m.\n\nNeaps\n\nThe neap tide is 2 m.\n\nPier: East | Depth: 3 m"
        ).replace("Pier: East", "Pier | Depth\nPier: East")
        assert titles(parsed) == [(1, "Springs"), (2, "Neaps")]
        assert (parsed.title, parsed.authors, parsed.year) == (
            "Of Tides",
            ("Ann Lee", "Bo Hill"),
            2011,
        )
        assert parsed.warnings == ("pages not read: gone.xhtml", "1 pictures are not read")


def test_a_protected_book_is_named_and_hidden_fonts_are_no_protection() -> None:
    def with_encryption(method: str) -> bytes:
        data = io.BytesIO(make_epub("nav"))
        with zipfile.ZipFile(data, "a") as archive:
            archive.writestr(
                "META-INF/encryption.xml",
                '<encryption xmlns="urn:oasis:names:tc:opendocument:xmlns:container"><EncryptedData'
                ' xmlns="http://www.w3.org/2001/04/xmlenc#">'
                f'<EncryptionMethod Algorithm="{method}"/></EncryptedData></encryption>',
            )
        return data.getvalue()

    with pytest.raises(Encrypted, match="DRM"):
        read(with_encryption("http://www.w3.org/2001/04/xmlenc#aes128-cbc"), "tides.epub")
    assert (
        "spring tide" in read(with_encryption("http://www.idpf.org/2008/embedding"), "t.epub").text
    )


def test_rich_text_has_its_code_pages_headings_and_tables() -> None:
    parsed = read(RTF, "rules.rtf")
    assert parsed.text == (
        "Depths\n\nThe quay of Москва is deep: žlutý kůň. See the map.\n\n"
        "Pier | Depth\nPier: East | Depth: 4 m low\n\nLast line.\n\na note"
    )
    assert titles(parsed) == [(1, "Depths")]
    assert (parsed.title, parsed.authors, parsed.year) == ("Harbour rules", ("Dora Pell",), 2019)
    assert parsed.warnings == ("pictures are not read",)
    assert parsed.stripped_characters == len(r"{\v secret words}")
    assert read(RTF, "rules.doc").text == parsed.text
    assert read(b"About `{\\rtf1 x}` and more.", "notes.md").media_type == "text/markdown"


def test_a_notebook_has_prose_code_and_printed_text() -> None:
    picture = {
        "output_type": "display_data",
        "data": {"image/png": "iVBORw0KGgo" * 99, "text/plain": ["<Figure>"]},
    }
    table = {
        "output_type": "execute_result",
        "data": {"text/html": "<table>", "text/plain": "pier 4"},
    }
    failed = {
        "output_type": "error",
        "ename": "ValueError",
        "evalue": "no tide",
        "traceback": ["\x1b[31mx"],
    }
    cells = [
        {"cell_type": "markdown", "source": ["# Tides\n", "\n", "Water of *Søby*.\n"]},
        {
            "cell_type": "code",
            "source": "depth = 4\n\nprint(depth)",
            "outputs": [
                {"output_type": "stream", "name": "stdout", "text": ["4\n"]},
                picture,
                table,
                failed,
            ],
        },
        {"cell_type": "raw", "source": "raw words"},
    ]
    notebook = {"nbformat": 4, "metadata": {"authors": [{"name": "Ann Lee"}]}, "cells": cells}
    parsed = read(json.dumps(notebook).encode(), "tides.ipynb")
    assert parsed.text == (
        "Tides\n\nWater of Søby.\n\ndepth = 4\n\nprint(depth)\n\n4\n\npier 4\n\nValueError: no tide\n\nraw words"
    )
    assert titles(parsed) == [(1, "Tides")]
    assert [parsed.text[start:end] for _, start, end in parsed.blocks][:2] == [
        "depth = 4\n\nprint(depth)",
        "4",
    ]
    assert parsed.authors == ("Ann Lee",)
    assert parsed.warnings == ("not read: 1 pictures, 1 outputs in HTML",)


def test_subtitles_are_paragraphs_with_the_time_in_front() -> None:
    srt = (
        "\ufeff1\r\n00:00:01,000 --> 00:00:02,500\r\n<i>The lock</i>\r\n\r\n"
        "2\r\n00:00:03,000 --> 00:00:05,000\r\n{\\an8}opens at noon.\r\n\r\n"
        "3\r\n01:02:05,000 --> 01:02:09,000\r\nFor 7 < 8 minutes.\r\n4\r\n01:02:20,000 --> 01:02:29,000\r\nEnd\r\n"
    )
    assert read(srt.encode(), "film.srt").text == (
        "[00:00:01] The lock opens at noon.\n\n[01:02:05] For 7 < 8 minutes.\n\n[01:02:20] End"
    )
    vtt = (
        "WEBVTT - tides\n\nSTYLE\n::cue { color: red }\n\nNOTE made by hand\n\n"
        "intro\n00:01.000 --> 00:03.000 align:start\n<v Ann Lee>Salt &amp; <c.red>sand</c>\n\n"
        "00:03.000 --> 00:05.000\nSalt & sand\nare heavy.\n"
    )
    assert (
        read(vtt.encode(), "film.vtt").text
        == "[00:00:01] Ann Lee: Salt & sand Salt & sand are heavy."
    )
