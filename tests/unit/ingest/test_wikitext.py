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
        ("{{infobox|a={{b|c}}|d=[[e]]}}After.", "A: c\nD: e\n\nAfter."),
        ("x {{convert|5|km|mi}} y", "x 5 km y"),
        ("{{lang|fr|bonjour}} all", "bonjour all"),
        ("[[File:A.jpg|thumb|A [[caption]] with [[links|many]]]]Text.", "Text."),
        ("[[Category:Things]]Text [[:Category:Shown|shown]].", "Text shown."),
        ("Text [[de:Wort]].", "Text ."),
        ("a &amp; b &nbsp;c", "a & b c"),
        ("<!-- hidden -->seen", "seen"),
        ("<nowiki>[[raw]]</nowiki>", "[[raw]]"),
        ("* one\n* two\n** three", "- one\n- two\n  - three"),
        ("# one\n# two\n#* dot\n# three\n\n# new", "1. one\n2. two\n  - dot\n3. three\n1. new"),
        ("; Term : its meaning\n; Other\n: below", "Term: its meaning\nOther: below"),
        ("a<br/>b", "a\nb"),
        ("text (; )", "text"),
        ("{| class=x\n| a\n{|\n| nested\n|}\n|}\nAfter.", "a\n\nnested\n\nAfter."),
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


def test_an_unclosed_template_loses_no_paragraph() -> None:
    parsed = parse_wikitext(
        "First paragraph.\n\n{{broken|\n\nSecond paragraph with [[a link|words]].\n\n== H"
        " ==\nThird.",
        "T",
    )
    assert parsed.warnings
    assert "First paragraph." in parsed.text
    assert "Second paragraph with words." in parsed.text
    assert parsed.text.endswith("H\n\nThird.")
    assert "{{" not in parsed.text


def test_a_table_without_an_end_stops_at_the_next_heading() -> None:
    assert text_of("{|\n! A !! B\n|-\n| 1 || 2\n== H ==\nText.") == (
        "A | B\nA: 1 | B: 2\n\nH\n\nText."
    )


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


TEMPLATES = [
    ("{{formatnum:-10}} \u00b0C", "-10 \u00b0C"),
    ("{{formatnum:1234567|R}}", "1234567"),
    ("{{birth date and age|1961|4|9}}", "April 9, 1961"),
    ("{{death date and age|df=yes|1981|12|28|1885|4|3}}", "28 December 1981 (aged 96)"),
    ("{{start date|1983|3}}", "March 1983"),
    ("{{date|21|mars|1977}}", "21 mars 1977"),
    ("{{start date|1984|5|6|20|15}}", "20:15, May 6, 1984"),
    ("{{age in years|1999|1|2|2020|1|1}}", "20"),
    (
        "{{age in years, months and days|1775|4|19|1783|9|3}}",
        "April 19, 1775 \u2013 September 3, 1783",
    ),
    ("{{As of|2011|3|2}}", "As of 2 March 2011"),
    ("{{as of|2011|lc=y}}", "as of 2011"),
    ("{{circa|1120}}", "c. 1120"),
    ("{{fl.|1152}}", "fl. 1152"),
    ("{{reign|1150|1171}}", "r. 1150\u20131171"),
    ("{{US$|5 million}}", "US$5 million"),
    ("{{\u00a3|40}}", "\u00a340"),
    ("{{unit\u00e9|12|km}}", "12 km"),
    ("{{duration|1:42:10}}", "1:42:10"),
    ("{{duration|h=1|m=42}}", "1 h 42 min"),
    ("{{height|m=1.83}}", "1.83 m"),
    ("{{height|ft=6|in=1}}", "6 ft 1 in"),
    ("{{convert|5|ft|8|in|m}}", "5 ft 8 in"),
    ("{{convert|1,200|t|ST|0}}", "1,200 t"),
    ("{{convert|3|km2|sqmi}}", "3 km\u00b2"),
    ("{{convert|59|F}}", "59 \u00b0F"),
    ("{{cvt|4|\u2013|6|m}}", "4 \u2013 6 m"),
    ("{{frac|2|1|2}} or {{sfrac|1|3}}", "2 1/2 or 1/3"),
    ("6 \u00d7 10{{sup|12}}", "6 \u00d7 10^12"),
    ("H{{sub|2}}O", "H2O"),
    ("{{chem|SO|4|2-}}", "SO4^(2-)"),
    ("4{{e|-3}} mol", "4\u00d710^-3 mol"),
    ("{{val|1.2|0.1|e=5|u=kg}}", "1.2\u00b10.1\u00d710^5 kg"),
    ("{{flatlist|\n* Anna Holm\n* [[Bo|Bo Lund]]\n}}", "Anna Holm, Bo Lund"),
    ("{{hlist|cup|medal}}", "cup, medal"),
    ("{{quote|text=So it is.|author=Ann}}", "So it is. \u2014 Ann"),
    ("{{lang|fr|bonjour}}", "bonjour"),
    ("{{langx|ja|\u307f\u306a\u3068}}", "\u307f\u306a\u3068"),
    ("{{lang-ja|\u6e2f}}", "\u6e2f"),
    ("{{transliteration|ja|minato}}", "minato"),
    ("{{nihongo|Harbour Line|\u6e2f\u7dda|Minato-sen}}", "Harbour Line (\u6e2f\u7dda, Minato-sen)"),
    ("{{zh|s=\u7801\u5934|p=m\u01cet\u00f3u}}", "\u7801\u5934, m\u01cet\u00f3u"),
    ("{{IPA|[minato]}}", "[minato]"),
    ("{{IPAc-en|\u02c8|m|\u026a|n}}", "/\u02c8m\u026an/"),
    ("{{HMS|5|30|12}}", "5h 30m 12s"),
    ("{{HMS|Victory}}", "HMS Victory"),
    ("{{sic|recieve}}", "recieve"),
    ("{{angbr|x}}", "\u27e8x\u27e9"),
    ("{{nowrap|1=E = mc<sup>2</sup>}}", "E = mc\u00b2"),
    ("{{abbr|kn|knots}}", "kn"),
    ("{{color|red|stop}}", "stop"),
    ("{{#if:x|open at six|shut}}", "open at six"),
    ("{{#if:|open|shut}}", "shut"),
    ("{{#ifeq:a|b|yes|no}}", "no"),
    ("{{#switch:b|a=1|b|c=2|#default=3}}", "2"),
    ("{{#switch:z|a=1|3}}", "3"),
    ("{{lc:NORTH}} and {{ucfirst:side}}", "north and Side"),
    ("{{plural:3|boat|boats}}", "boats"),
    ("{{PAGENAME}}", "T"),
    ("{{FRA}}", "FRA"),
    ("{{never heard of|12|knots|style=x}}", "12 knots"),
    ("{{never heard of|[[a|b]]|http://a.example|a.jpg}}", "b"),
    ("{{never heard of|a {curly} word}}", "a {curly} word"),
    ("{{template:circa|1120}}", "1120"),
]


@pytest.mark.parametrize(("source", "text"), TEMPLATES)
def test_a_sentence_has_no_hole_where_a_template_stands(source: str, text: str) -> None:
    assert text_of(f"It is {source}, they say.") == f"It is {text}, they say."


@pytest.mark.parametrize(
    "source",
    [
        "{{citation needed|date=May 2011}}",
        "{{sfn|Holm|1999|p=4}}",
        "{{efn|A note.}}",
        "{{clarify|reason=why}}",
        "{{flagicon|France}}",
        "{{inflation|US|5|1929}}",
        "{{refn|A note of several words that says more than the text itself does.}}",
    ],
)
def test_notices_and_notes_are_left_out(source: str) -> None:
    assert text_of(f"It is so.{source} They say.") == "It is so. They say."


@pytest.mark.parametrize(
    "source",
    ["{{Main|Other page}}", "{{Use dmy dates|date=May 2011}}", "{{Some navigation|state=open}}",
     "{{Unheard|Tarn}}", "{{Navbox|name=a|title=b|list1=c|list2=d}}"],
)  # fmt: skip
def test_furniture_on_lines_of_its_own_is_left_out(source: str) -> None:
    assert text_of(f"Before.\n{source}\nAfter.") in ("Before.\nAfter.", "Before.\n\nAfter.")


def test_a_box_is_lines_of_label_and_value() -> None:
    box = """{{Infobox settlement
| name = Korvik
| image = Korvik.jpg
| image_size = 250px
| population_total = {{formatnum:8412}}
| leader_title1 = Mayor
| leader_name1 = [[Tove|Tove Lindqvist]]<ref>a</ref>
| languages = {{plainlist|
* Norwegian
* English
}}
| area = 3<br />4 km<sup>2</sup>
| module = {{Infobox harbour|depth=9 m}}
}}
'''Korvik''' is a town."""
    assert text_of(box) == (
        "Name: Korvik\nPopulation total: 8412\nMayor: Tove Lindqvist\nLanguages: Norwegian, English"
        "\nArea: 3, 4 km\u00b2\nDepth: 9 m\n\nKorvik is a town."
    )


def test_any_template_of_named_values_on_its_own_lines_is_a_box() -> None:
    assert text_of("{{Ferje\n|navn=Hilda\n|bygd=1931\n|lengde=22 m\n|eier=Holm\n}}\nA ferry.") == (
        "Navn: Hilda\nBygd: 1931\nLengde: 22 m\nEier: Holm\n\nA ferry."
    )


def test_tables_keep_their_labels_over_spans_and_two_rows_of_heads() -> None:
    table = """{| class="wikitable"
|+ Ferries of the lake
! rowspan=2 | Year !! colspan="2" | Cars
|-
! Spring !! Autumn
|-
| rowspan=2 | 1921 || 3 || style="x" | 4<br>(strike)
|-
| 5
|
* Hilda
* Runa
|}"""
    assert text_of(table) == (
        "Ferries of the lake\nYear | Cars Spring | Cars Autumn\n"
        "Year: 1921 | Cars Spring: 3 | Cars Autumn: 4, (strike)\n"
        "Year: 1921 | Cars Spring: 5 | Cars Autumn: Hilda, Runa"
    )


def test_tables_of_html_tags_and_of_escaped_bars_are_tables() -> None:
    tags = "<table><tr><th>A</th><th>B</th></tr><tr><td align=x>1</td><td>2</td></tr></table>"
    bars = "{{#if:x|{{(!}}\n{{!}} 1 {{!!}} 2\n{{!)}}}}"
    assert text_of(tags) == "A | B\nA: 1 | B: 2"
    assert text_of(bars) == "1 | 2"


def test_a_table_that_lays_out_the_page_is_read_as_its_cells() -> None:
    source = "{|\n|\n== Left ==\nWords.\n|\n* a\n* b\n|}"
    assert text_of(source) == "Left\n\nWords.\n\n- a\n- b"


@pytest.mark.parametrize(
    ("source", "text"),
    [
        ("mass 6.4\u00d710<sup>23</sup> kg, CO<sub>2</sub>", "mass 6.4\u00d710^23 kg, CO2"),
        ("with <math>k = \\frac{a|b}{2}</math> here", "with k = (a|b)/2 here"),
        ("<chem>H2O</chem> and {{nowrap|<math>a=b</math>}}", "H2O and a=b"),
        ("costs <s>900</s> 1,150", "costs 1,150"),
        ("-{zh-hans:\u8ba1\u7b97\u673a; zh-hant:\u96fb\u8166;}- \u5728 -{R|\u6cb3}--{H|zh-cn:x}-",
         "\u8ba1\u7b97\u673a \u5728 \u6cb3"),
        ("<nowiki>{{a|b}} | ''c''</nowiki>", "{{a|b}} | ''c''"),
        ('a\n<syntaxhighlight lang="c">int [[x]];\n  y = {{2}};</syntaxhighlight>b',
         "a\n\nint [[x]];\n  y = {{2}};\n\nb"),
    ],
)  # fmt: skip
def test_elements_keep_what_they_mean(source: str, text: str) -> None:
    assert text_of(source) == text
