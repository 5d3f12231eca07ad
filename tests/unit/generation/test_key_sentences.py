from __future__ import annotations

from app.core.types import Evidence, Hit
from app.generation.quote.summaries import (
    FEWEST,
    MOST,
    document_parts,
    heading_of,
    joined_parts,
    key_sentences,
    telling_texts,
)
from tests.stores import passage

SEA = (
    "The tide gauge of the harbour has measured the level of the sea since 1893.",
    "The level of the sea at the gauge rises by two millimetres a year.",
    "A storm in 1953 broke the gauge for eleven weeks.",
    "The harbour was dredged twice, which moved the gauge by four metres.",
    "Figure 3 shows the gauge before the storm of that year.",
    "See also the appendix on the tables of Smith et al. for more on the gauge.",
)


def evidence(*texts: str, sections: tuple[str, ...] = ()) -> tuple[Evidence, ...]:
    """Return passages of one document in order, numbered from 1."""
    start, found = 0, []
    for n, text in enumerate(texts, 1):
        section = sections[n - 1] if sections else "body"
        one = passage(text, key="gauge", section=section, ordinal=n, start=start, chunk_id=n)
        found.append(Evidence(n, Hit(one, 1.0)))
        start += len(text) + 1
    return tuple(found)


def test_parts_end_at_headings_and_at_sections() -> None:
    found = document_parts(
        evidence(
            "The Gauge of the Harbour\nAuthors: A. Writer",
            "Abstract\nWe read the gauge.",
            "1 Introduction\nGauges are old.",
            "They stand in harbours.",
            "2 Data\nWe have all readings.",
            "2.1 Sources\nThe readings are on paper.",
            "3 Methodology\nWe fit a line.",
            "References\n[1] Smith.",
            sections=(
                "body",
                "abstract",
                "introduction",
                "introduction",
                "methodology",
                "methodology",
                "methodology",
                "references",
            ),
        )
    )
    assert [(part.name, [item.n for item in part.evidence]) for part in found] == [
        ("Abstract", [2]),
        ("Introduction", [3, 4]),
        ("Data", [5, 6]),
        ("Methodology", [7]),
    ]


def test_a_document_without_headings_is_one_part_without_a_name() -> None:
    (part,) = document_parts(evidence(" ".join(SEA[:2]), SEA[2], SEA[3]))
    assert (part.name, len(part.evidence)) == ("", 3)
    assert heading_of(part.evidence[0]) is None


def test_rows_of_tables_are_no_headings() -> None:
    (row,) = evidence("Method 66.6 40.0\nThe rest of the table follows here.")
    assert heading_of(row) is None


def test_joining_keeps_the_order_and_every_passage() -> None:
    parts = document_parts(evidence(*(f"Part {name}\n{SEA[0]}" for name in "ABCDEFG")))
    joined = joined_parts(parts, 3)
    assert len(parts) == 7
    assert len(joined) == 3
    assert [item.n for part in joined for item in part.evidence] == list(range(1, 8))


def test_key_sentences_are_few_distinct_whole_and_in_order() -> None:
    text = " ".join(SEA)
    found = [one for _, part in key_sentences(document_parts(evidence(text))) for one in part]
    assert len(found) == FEWEST
    assert [one.start for one in found] == sorted(one.start for one in found)
    assert all(one.whole for one in found)
    assert {*SEA[:4]} < {one.text for one in found}  # one of six is left: it leads elsewhere


def test_no_more_than_the_most_and_each_part_speaks() -> None:
    nouns = (
        "anchor buoy crane dock engine ferry galley hull inlet jetty keel lock mast net oar pier"
    )
    texts = [
        f"About the {noun.capitalize()}\nEvery {noun}{noun} needs a {noun} of {noun}wood and"
        f" {noun}iron."
        for noun in nouns.split()
    ]
    found = key_sentences(document_parts(evidence(*texts)))
    assert len(found) == MOST
    assert sum(len(part) for _, part in found) <= MOST


def test_a_repeated_sentence_is_said_once() -> None:
    found = key_sentences(document_parts(evidence(SEA[0], SEA[0], SEA[1])))
    said = [one.text for _, part in found for one in part]
    assert len(said) == len(set(said))


def test_telling_texts_stay_within_their_length_and_in_order() -> None:
    whole = evidence(*SEA)
    texts = telling_texts(whole, 170)
    assert list(texts) == sorted(texts)
    assert sum(len(text) for text in texts.values()) <= 170
    assert 5 not in texts
    assert telling_texts(whole, 1)
