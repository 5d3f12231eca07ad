import pytest

from app.ingest.parsers.wikitext import parse_wikitext


def text_of(source: str) -> str:
    return parse_wikitext(source, "T").text


@pytest.mark.parametrize(
    ("source", "text"),
    [
        ("'''Bold''' and ''italic''.", "Bold and italic."),
        ("A [[link]] and [[target|label]]s.", "A link and labels."),
        ("See [http://a.example the site] or [http://b.example].", "See the site or ."),
        (
            "One<ref>a {{cite|x=[[y]]}}</ref> two<ref name='n'/> three<ref name=a group=b />.",
            "One two three.",
        ),
        ("Before {{infobox|a={{b|c}}|d=[[e]]}}after.", "Before after."),
        ("x {{convert|5|km|mi}} y", "x 5 km y"),
        ("{{lang|fr|bonjour}} all", "bonjour all"),
        ("[[File:A.jpg|thumb|A [[caption]] with [[links|many]]]]Text.", "Text."),
        ("[[Category:Things]]Text [[:Category:Shown|shown]].", "Text shown."),
        ("Text [[de:Wort]].", "Text ."),
        ("a &amp; b &nbsp;c", "a & b c"),
        ("<!-- hidden -->seen", "seen"),
        ("<nowiki>[[raw]]</nowiki>", "[[raw]]"),
        ("* one\n* two\n** three", "- one\n- two\n- three"),
        ("a<br/>b", "a\nb"),
        ("text (; )", "text"),
        ("{| class=x\n| a\n{|\n| nested\n|}\n|}\nAfter.", "After."),
        ("Broken [[link and more.", "Broken link and more."),
        ("__NOTOC__Text", "Text"),
    ],
)
def test_markup_reads_as_text(source: str, text: str) -> None:
    assert text_of(source) == text


def test_headings_are_spans_of_the_text_and_empty_sections_vanish() -> None:
    parsed = parse_wikitext(
        "Lead.\n\n== A ==\nText of a.\n=== B ===\n* item\n== Empty ==\n== References"
        " ==\n{{reflist}}\n",
        "T",
    )
    assert parsed.text == "Lead.\n\nA\n\nText of a.\n\nB\n\n- item"
    assert [(h.level, parsed.text[h.start : h.end]) for h in parsed.headings] == [
        (2, "A"),
        (3, "B"),
    ]


def test_an_unclosed_template_goes_through_the_full_parser_and_loses_no_paragraph() -> None:
    parsed = parse_wikitext(
        "First paragraph.\n\n{{broken|\n\nSecond paragraph with [[a link|words]].\n\n== H"
        " ==\nThird.",
        "T",
    )
    assert parsed.warnings
    assert "First paragraph." in parsed.text
    assert "Second paragraph with words." in parsed.text
    assert "Third." in parsed.text
    assert "{{" not in parsed.text


def test_an_unclosed_reference_does_not_swallow_the_page() -> None:
    assert "After." in text_of("Before.<ref>never closed\n\nAfter.")


@pytest.mark.parametrize(
    ("source", "text"),
    [
        ("It owns {{convert|44|e6acre|km2}} of land.", "It owns 44 million acre of land."),
        ("From {{convert|5|to|10|km|mi|abbr=on}} away.", "From 5 to 10 km away."),
        ("Up to {{convert|3|-|4|ft}}.", "Up to 3 - 4 ft."),
        (
            "Fell at {{Coord|30|12|N|74|7|W|name=Sea}} and {{coord|51.5|-0.12}}.",
            "Fell at 30\u00b012\u2032N 74\u00b07\u2032W and 51.5, -0.12.",
        ),
        ("{{coord|1|2|3|N|4|5|6|E|display=title}}It lies on a hill.", "It lies on a hill."),
        ("It holds {{val|0.5|e=-3|ul=mm}} or {{val|12}}.", "It holds 0.5\u00d710^-3 mm or 12."),
        ("A{{nbsp}}B{{snd}}C{{'}}s", "A B \u2013 C's"),
        ("[[File:a.jpg|thumb|See [[B|the {{lang|fr|bé}}]] and [[C]], [sic].]]Text.", "Text."),
        ("[[File:a.jpg|thumb|A [http://x.example y] [[link]]]] Text.", "Text."),
    ],
)
def test_small_templates_and_nested_files(source: str, text: str) -> None:
    assert parse_wikitext(source, "T").text == text
