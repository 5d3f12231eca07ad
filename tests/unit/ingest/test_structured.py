"""JSON, YAML and XML: records are rows, fields are lines with labels, prose stays prose, no tag or brace is text."""

from __future__ import annotations

import base64
import json
import random

import pytest

from app.core.errors import Unreadable
from app.core.types import ParsedDocument
from app.ingest.options import IngestOptions
from app.ingest.parsers import DirectParser
from app.ingest.parsers.sniffing import identify, without_encoded


def read(content: str | bytes, name: str) -> ParsedDocument:
    data = content.encode() if isinstance(content, str) else content
    return DirectParser(IngestOptions()).parse(data, name)


STORY = "The harbour was built in 1911. It burned down twice and was built again. " * 4


def test_records_are_rows_objects_have_headings_and_prose_stays_prose() -> None:
    source = {
        "title": "Harbour",
        "count": 3,
        "open": True,
        "none": None,
        "boats": [
            {"name": "Hilda", "length": 14.5, "crew": ["Ann", "Bo"], "berth": {"no": 7}},
            {"name": "Runa", "length": 22},
        ],
        "owner": {"name": "City", "story": STORY, "seat": {"town": "Oslo"}},
    }
    parsed = read(json.dumps(source).replace("14.5", "14.50"), "a.json")
    assert parsed.text.split("\n\n") == [
        "title: Harbour\ncount: 3\nopen: true",
        "boats\nname | length | crew | berth no\nname: Hilda | length: 14.50 | crew: Ann, Bo"
        " | berth no: 7\nname: Runa | length: 22",
        "owner City",
        "name: City",
        f"story: {STORY.strip()}",
        "seat",
        "town: Oslo",
    ]
    assert parsed.title == "Harbour"
    assert [(one.title, one.level) for one in parsed.headings] == [("owner City", 1), ("seat", 2)]


def test_records_with_prose_or_lists_of_their_own_are_sections() -> None:
    source = [
        {"name": "Pump", "notes": STORY, "parts": [{"no": "P-1", "stock": 4}]},
        {"name": "Valve", "notes": "<p>Opens <b>slowly</b>.</p>"},
        {"bar": 40},
    ]
    text = read(json.dumps(source), "a.json").text
    assert text.split("\n\n") == [
        "Pump",
        "name: Pump",
        f"notes: {STORY.strip()}",
        "parts\nno | stock\nno: P-1 | stock: 4",
        "Valve",
        "name: Valve\nnotes:",
        "Opens slowly.",
        "entry 3",
        "bar: 40",
    ]


def test_json_lines_are_records_and_broken_lines_are_named() -> None:
    parsed = read('{"id": "a", "bar": 40}\n\n{"id": "b", "bar": 16}\n{"id": "c"\n', "a.jsonl")
    assert parsed.text == "id | bar\nid: a | bar: 40\nid: b | bar: 16"
    assert parsed.warnings == ("not read: lines that are no JSON",)


def test_comments_in_settings_are_read_where_they_stand() -> None:
    source = """// of the pump
    {
      // opened by the keeper
      "port": 4710, /* not 4711 */
      "address": "http://x.example", // no comment in a text
      "steps": [1, 2, // two
                3],
      "last": true // the end
    }"""
    parsed = read(source, "pump.json")
    assert parsed.text.split("\n\n") == [
        "opened by the keeper",
        "port: 4710",
        "not 4711",
        "address: http://x.example",
        "no comment in a text",
        "steps: 1, 2, 3\nlast: true",
        "the end",
    ]
    assert "no valid JSON" in parsed.warnings[0]


def test_long_lists_of_numbers_are_named_not_read() -> None:
    parsed = read(json.dumps({"name": "x", "vector": list(range(500))}), "a.json")
    assert parsed.text == "name: x"
    assert parsed.warnings == ("not read: long lists of numbers",)


def test_yaml_keeps_values_as_written_its_documents_and_its_comments() -> None:
    source = (
        "# How the pump house is set\nmode: yes\nversion: 1.10\nport: 8080  # for the gate\n"
        "since: 2024-04-01\nname: 'a # b'\nnothing: ~\nmotd: |\n  # no comment\n  welcome\n"
        "base: &base {x: 1}\nown:\n  # more than the base\n  <<: *base\n  y: 2\n---\nkind: Job\n"
    )
    parsed = read(source, "a.yaml")
    assert parsed.text.split("\n\n") == [
        "a # b",
        "How the pump house is set",
        "mode: yes\nversion: 1.10\nport: 8080 (for the gate)\nsince: 2024-04-01\nname: a # b",
        "motd: # no comment\nwelcome",
        "base",
        "x: 1",
        "own",
        "more than the base",
        "x: 1\ny: 2",
        "document 2",
        "kind: Job",
    ]


def test_yaml_makes_no_objects_and_its_bombs_and_loops_are_bounded() -> None:
    assert read("a: !!python/object/apply:os.system ['true']\n", "a.yaml").text == "a: true"
    loop = read("a: &a {b: *a, c: d}\n", "a.yml")
    assert "c: d" in loop.text
    bomb = "".join(f"a{at}: &a{at} [{', '.join([f'*a{at - 1}'] * 9)}]\n" for at in range(1, 10))
    parsed = read("a0: &a0 [x, {y: z}]\n" + bomb, "a.yaml")
    assert any(one.startswith("not read: further values") for one in parsed.warnings)


def test_xml_loses_its_tags_and_keeps_their_meaning() -> None:
    source = (
        '<?xml version="1.0"?><!-- no --><c:catalog xmlns:c="urn:x"><title>Plants</title>'
        '<plant id="p1"><common>Bloodroot</common><price currency="EUR">2.44</price></plant>'
        '<plant id="p2"><common>Columbine</common><price currency="EUR">9.37</price></plant>'
        "<section><title>Care</title><para>Water <b>daily</b> &lt; 2 l.</para><para>Keep dry.</para>"
        "</section></c:catalog>"
    )
    parsed = read(source, "a.xml")
    assert parsed.text.split("\n\n") == [
        "title: Plants",
        "plant\nid | common | price\nid: p1 | common: Bloodroot | price: 2.44 (currency: EUR)\n"
        "id: p2 | common: Columbine | price: 9.37 (currency: EUR)",
        "section Care",
        "title: Care",
        "Water daily < 2 l.",
        "Keep dry.",
    ]
    assert parsed.title == "Plants"


@pytest.mark.parametrize(
    ("name", "content"),
    [("a.json", "[" * 200_000), ("a.xml", "<a><b></a>"), ("a.xml", "<a>" * 100_000)],
)
def test_what_is_broken_says_where_and_what_to_do(name: str, content: str) -> None:
    with pytest.raises(Unreadable, match=r"correct it|simplify it"):
        read(content, name)


def test_entities_of_the_file_are_read_and_none_from_outside() -> None:
    own = '<!DOCTYPE a [<!ENTITY co "City of Oslo">]><a><b>seen</b><c>&co;</c></a>'
    assert read(own, "a.xml").text == "b: seen\nc: City of Oslo"
    outside = own.replace('"City of Oslo"', 'SYSTEM "file:///etc/passwd"')
    with pytest.raises(Unreadable, match="correct it"):
        read(outside, "a.xml")


@pytest.mark.parametrize(
    ("content", "name", "kind"),
    [
        ('{"a": 1}', "data", "json"),
        ('{"a": 1}', "data.txt", "text"),
        ("{not json}", "data", "text"),
        ('<?xml version="1.0"?><a/>', "feed", "xml"),
        ('<?xml version="1.0"?><html><p>x</p></html>', "page.xml", "html"),
        ("a: 1", "settings.yml", "yaml"),
        ("a\tb", "x.tsv", "csv"),
    ],
)
def test_text_formats_are_told_by_name_then_by_content(content: str, name: str, kind: str) -> None:
    assert identify(content.encode(), name) == kind


RANDOM = base64.b64encode(random.Random(3).randbytes(3_000)).decode()
WRAPPED = "\n".join(RANDOM[at : at + 76] for at in range(0, len(RANDOM), 76))


@pytest.mark.parametrize(
    "encoded",
    [
        RANDOM,
        WRAPPED,
        f"data:image/png;base64,{RANDOM}",
        f"-----BEGIN CERTIFICATE-----\n{WRAPPED}\n-----END CERTIFICATE-----",
        random.Random(4).randbytes(400).hex(),
        "\ufffd\ufffdx\ufffd\ufffdy",
    ],
)
def test_encoded_data_never_reaches_the_text(encoded: str) -> None:
    for name in ("a.txt", "a.md", "a.json"):
        source = f"The pump runs.\n\n{encoded}\n\nThe valve is shut."
        content = json.dumps({"a": source}) if name == "a.json" else source
        parsed = read(content, name)
        assert not any(part in parsed.text for part in encoded.split())
        assert "The pump runs." in parsed.text
        assert "The valve is shut." in parsed.text
        assert any(one.startswith("encoded data is left out") for one in parsed.warnings)


@pytest.mark.parametrize(
    "text",
    [
        "https://example.org/a/very/long/path/that/goes/on/and/on/for/ever/and/ever/index2024.html",
        "/Users/Shared/Library/Application/Support/Project2024/Sources/Main/Resources/Settings.plist",
        "-" * 100,
        "ACGT" * 50,
        "Donaudampfschifffahrtsgesellschaftskapitaensmuetzenabzeichenfabrik1",
        "sha512 " + "ab12" * 32,
        "thisIsAVeryLongIdentifierThatSomebodyWroteInAProgramOfTheirOwn1 and more",
        "a line\ufffdwith one damaged character\ufffdor two, or three\ufffdin much text",
    ],
)
def test_long_names_paths_and_rules_are_no_encoded_data(text: str) -> None:
    assert without_encoded(f"{text} then words") == (f"{text} then words", 0)


def test_a_file_of_nothing_but_encoded_data_is_refused() -> None:
    with pytest.raises(Unreadable, match="no readable text"):
        read(WRAPPED, "a.txt")


def test_a_text_that_an_editor_cut_at_each_change_of_the_font_is_whole() -> None:
    pieces = [{"text": "The ferry "}, {"text": "Runa", "bold": True}, {"text": " sails at nine."}]
    page = read(json.dumps({"title": "Ferry", "children": pieces}), "page.json")
    assert "children: The ferry Runa sails at nine." in page.text
    comments = read(json.dumps({"comments": [{"text": "Great"}, {"text": "Late"}]}), "c.json")
    assert "GreatLate" not in comments.text


def test_an_exported_chat_is_messages_with_their_writers_and_times() -> None:
    chat = [
        {"from": "Siv", "date": "2025-03-04T18:02:11", "text": ["It is ", {"text": "4471"}, "."]},
        {"from": "Ola", "date": "2025-03-05T07:40:00", "text": "I moved the Runa."},
    ]
    assert read(json.dumps({"messages": chat}), "chat.json").text.split("\n\n") == [
        "Siv, 2025-03-04 18:02: It is 4471.",
        "Ola, 2025-03-05 07:40: I moved the Runa.",
    ]
    work = {
        "users": [{"id": "U7", "real_name": "Ida Dahl"}, {"id": "U8", "real_name": "Bo Lind"}],
        "messages": [
            {"user": "U7", "ts": "1741111331.000200", "text": "We sail."},
            {"user": "U8", "ts": "1741111391.000200", "text": "At nine."},
        ],
    }
    assert "Ida Dahl, 2025-03-04 18:02: We sail." in read(json.dumps(work), "work.json").text


def test_references_to_one_list_are_looked_at_once() -> None:
    laughs = "\n".join(
        [
            "a0: &a0 [lol, lol]",
            *(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 12)),
        ]
    )
    assert read(laughs, "bomb.yaml").text
