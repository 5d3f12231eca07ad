"""Labels stay with their values, in whichever dialect, and numbers keep their signs and units."""

from __future__ import annotations

import pytest

from app.core.types import ParsedDocument
from app.ingest.options import IngestOptions
from app.ingest.parsers import DirectParser


def _read(text: str | bytes, filename: str) -> ParsedDocument:
    content = text.encode() if isinstance(text, str) else text
    return DirectParser(IngestOptions()).parse(content, filename)


def _text(text: str | bytes, filename: str) -> str:
    return _read(text, filename).text


def test_a_value_may_be_a_paragraph() -> None:
    page = (
        "<p>The boom swings.</p><dl><dt>angle<span>:</span></dt><dd><p>in degrees</p><p>at most"
        " 270</p></dd><dt>speed</dt><dd><div><p>2.5 m/s</p></div></dd><dt>Raises</dt>"
        "<dd><ul><li><p>WindError</p></li></ul></dd>"
        "<dt>Outer</dt><dd><dl><dt>inner</dt><dd>7</dd></dl></dd><dt>empty</dt><dd></dd></dl>"
        "<p>The end.</p>"
    )
    assert _text(page, "api.html") == (
        "The boom swings.\n\nangle: in degrees\n\nat most 270\n\nspeed: 2.5 m/s\n\nRaises\n\n"
        "- WindError\n\nOuter\n\ninner: 7\n\nempty\n\nThe end."
    )


def test_the_mark_of_a_note_is_no_digit() -> None:
    page = (
        '<p>Begun in 1889<a epub:type="noteref" href="#n">1</a>, ready in 1893'
        '<a role="doc-noteref" href="#m">[2]</a>, see <a href="#x">12</a>.</p>'
    )
    assert _text(page, "weir.html") == "Begun in 1889, ready in 1893, see 12."


@pytest.mark.parametrize(
    ("source", "text"),
    [
        ("Grade:: 46\nAmount:: 3 litres", "Grade: 46\nAmount: 3 litres"),
        ("Change::\n\n  every second spring\n\nEnd.", "Change: every second spring\n\nEnd."),
        ("Two words:: of *oil*\nand more", "Two words: of oil\nand more"),
        ("image::crane.png[]\nText.", "Text."),
        ("std::vector is a type", "std::vector is a type"),
    ],
)
def test_labels_of_asciidoc(source: str, text: str) -> None:
    assert _text(source, "oil.adoc") == text


@pytest.mark.parametrize(
    ("source", "text"),
    [
        ("Owner:: Ola Vik\nBuilt:: 1961", "Owner: Ola Vik\nBuilt: 1961"),
        ("The Runa [length:: 14 m] leaks", "The Runa [length: 14 m] leaks"),
        ("> [!warning] Hull\n> It leaks.", "Warning: Hull\nIt leaks."),
        ("- [x] Mend the mast\n- [ ] Order paint", "- \u2612 Mend the mast\n- \u2610 Order paint"),
        ("==The mast== is ash. ^ref1", "The mast is ash."),
        ("It costs 5 %% 900 %% euros", "It costs 5  euros"),
        ("a == b and c == d, 2 ^10", "a == b and c == d, 2 ^10"),
        ("`std::x == y`, std::vector, 10 ^5", "std::x == y, std::vector, 10 ^5"),
        ("See [1] and [x](y)", "See [1] and x"),
    ],
)
def test_dialects_of_markdown(source: str, text: str) -> None:
    assert " ".join(_text(source, "vault.md").split(" ")).replace("  ", " ") == text.replace(
        "  ", " "
    )


@pytest.mark.parametrize(
    ("source", "text"),
    [
        (r"40\,\% of it, \$520 \& 12\% more", "40 % of it, $520 & 12% more"),
        (r"A line\\ break, 5\% of it % a comment", "A line break, 5% of it"),
        (r"\SIrange{3}{5}{\kilo\watt}", "3 to 5 kW"),
        (r"\SI{340}{\litre\per\minute}", "340 L/min"),
        (r"\qty{60}{\celsius} and \ang{1;2;3}", "60 \u00b0C and 1\u00b02\u20323\u2033"),
        (r"\SI{9.81}{\metre\per\second\squared}", "9.81 m/s\u00b2"),
        (r"\SI{20}{\square\metre}, \SI{4}{m.s^{-1}}", "20 m\u00b2, 4 m s^-1"),
        (r"\num{6.02e23}, \num{1.5+-0.2}", "6.02 \u00d7 10^23, 1.5 \u00b1 0.2"),
        (r"\SIlist{1;2;3}{\mm} at \SI{12}{\percent}", "1, 2, 3 mm at 12 %"),
        (r"\SI{5}{\kilo\gram\kilo\metre}, \si{\per\hour}", "5 kg km, 1/h"),
        (r"\pounds 410, \euro{}5, 7\,\texteuro", "\u00a3410, \u20ac5, 7 \u20ac"),
        (r"\SI{5}", r"5"),
    ],
)
def test_quantities_of_latex(source: str, text: str) -> None:
    assert _text(source, "budget.tex") == text


def test_commands_of_the_document_stand_for_their_text() -> None:
    source = (
        r"\newcommand{\weir}[1]{the weir of #1}\newcommand\lake{Senn}"
        r"\newcommand{\both}[2]{\weir{#2} by \SI{#1}{\metre}}\newcommand{\x}{\x\x}"
        r"\begin{document}At \weir{Tolm}, \lake{} and \both{9}{Arn}.\end{document}"
    )
    assert _text(source, "weir.tex") == "At the weir of Tolm, Senn and the weir of Arn by 9 m."


def test_articles_in_xml_keep_powers_and_tables() -> None:
    source = """<article><body><sec><title>Results</title>
<p>5 \u00d7 10<sup>6</sup> in 340 m<sup>3</sup>, as found<sup><xref rid="b">12</xref></sup> by
<italic>Holm</italic> (CO<sub>2</sub>).</p>
<table-wrap><label>Table 1</label><table><thead><tr><th>Lake</th><th>Depth</th></tr></thead>
<tbody><tr><td>Senn</td><td>10<sup>2</sup> m</td></tr></tbody></table></table-wrap></sec></body></article>"""
    text = _text(source, "dust.xml")
    assert "5 \u00d7 10^6 in 340 m\u00b3, as found by Holm (CO2)." in text
    assert "Lake: Senn | Depth: 10^2 m" in text


@pytest.mark.parametrize(
    "table",
    [
        '<table><row role="label"><cell>Lake</cell><cell>Depth</cell></row>'
        "<row><cell>Senn &amp; Lund</cell><cell>41</cell></row></table>",
        "<table><tgroup><thead><row><entry>Lake</entry><entry>Depth</entry></row></thead><tbody>"
        "<row><entry>Senn &amp; Lund</entry><entry>41</entry></row></tbody></tgroup></table>",
    ],
)
def test_tables_of_tei_and_docbook_are_labelled(table: str) -> None:
    text = _text(f"<text><body><p>Depths</p>{table}</body></text>", "lakes.xml")
    assert "Lake: Senn & Lund | Depth: 41" in text


def test_the_exponent_of_tei_is_marked() -> None:
    text = _text('<p>10<hi rend="sup">9</hi> bricks</p>', "tei.xml")
    assert text == "10^9 bricks"


@pytest.mark.parametrize(
    ("source", "held"),
    [
        ('{ // settings\n "port": 4710, /* not 4711 */ "url": "http://a//b", }', "port: 4710"),
        ('{"port": 4710}\n{"port": 4711}', "4711"),
        ('{\n"port": 4710\n}\n{\n"port": 4711\n}\n', "4711"),
        ('{"port": 4710, "keeper": {{ keeper }}}', '"port": 4710'),
    ],
)
def test_json_that_bends_its_rules_is_read(source: str, held: str) -> None:
    assert held in _text(source, "settings.json")


def test_what_was_bent_is_said() -> None:
    assert _read('{"port": 4710,}', "a.json").warnings[0].endswith("read as far as it goes")
    assert _read('{"port": }', "a.json").warnings[0].endswith("read as plain text")
    assert _read("a: {{ b }}\nc: [", "a.yaml").warnings[0].endswith("read as plain text")
    assert _read('{"port": 4710}\n{"port": 4711}', "a.json").warnings == ()


@pytest.mark.parametrize(
    ("source", "text"),
    [
        (
            "<note><p>Fish &nbsp; chips cost 9 \u20ac &eacute;</p></note>",
            "chips cost 9 \u20ac \u00e9",
        ),
        ('<note a="1" a="2"><p>Nine</p></note>', "Nine"),
        ("<note><p>Nine euros<br></p></note>", "Nine euros"),
    ],
)
def test_xml_that_bends_its_rules_is_read(source: str, text: str) -> None:
    parsed = _read(source, "note.xml")
    assert text in parsed.text
    assert parsed.warnings[-1].endswith("read as far as it goes")


def test_a_mislabelled_encoding_of_xml() -> None:
    source = '<?xml version="1.0" encoding="UTF-8"?><note><p>Fläche: 12 m²</p></note>'
    assert "Fläche: 12 m²" in _text(source.encode("latin-1"), "note.xml")


def test_rich_text_keeps_powers_and_leaves_out_what_is_struck() -> None:
    source = (
        r"{\rtf1\ansi Mass {\strike 900} 5 10{\super 12} kg, {\f0\super 2}H{\sub 2}O,"
        r" 340 m{\super 3}.\par}"
    )
    parsed = _read(source, "mass.rtf")
    assert "10^12 kg" in parsed.text
    assert "H2O, 340 m\u00b3." in parsed.text
    assert "900" not in parsed.text
    assert parsed.warnings == ("struck-through text is left out",)


def test_the_footnotes_of_rich_text_stand_behind_it() -> None:
    note = r"{\super\chftn{\footnote\pard\plain {\super\chftn} Checked by {\b Siv Moe}.}}"
    parsed = _read(rf"{{\rtf1\ansi The weir{note} holds.\par The end.}}", "weir.rtf")
    assert parsed.text.split("\n\n") == ["The weir holds.", "The end.", "Checked by Siv Moe."]
    assert parsed.warnings == ()


def test_what_a_picture_shows_and_a_short_name_means() -> None:
    page = (
        '<figure><img alt="Two dark loaves"><figcaption>Rye bread</figcaption></figure>'
        '<p>By the <abbr title="Senn Bakers Guild">SBG</abbr> <img alt="logo"></p>'
    )
    assert _text(page, "bread.html") == (
        "Two dark loaves\n\nRye bread\n\nBy the SBG (Senn Bakers Guild)"
    )
