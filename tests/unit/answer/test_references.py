"""A draft's citations are tied to its list of references, and that list to documents."""

from __future__ import annotations

from dataclasses import replace

import pytest

from app.answer.references import cited_in, entries_of, look_up, without_citations
from app.core.types import Document
from tests.stores import passage

NUMBERED = """Fish breathe by gills [1, 3]. Frogs do not [2].

## References

[1] Baker, A.: Gills of River Fish. 2014.
[2] Lee, C. How frogs breathe in water and on
    land. Journal of Ponds 3, 2019.
[3] Moss, D. Slow Rivers, 2001.
"""
BY_NAME = """Frogs breathe by their skin (Lee, 2019; Moss et al. 2001a).

Literaturverzeichnis

Lee, C. (2019). How Frogs Breathe. Journal of Ponds 3.

Moss, D. and Reed, F. (2001a). Slow Rivers. Harbour
Press.
"""


def document(title: str, **fields: object) -> Document:
    known = {"title": title, "authors": (), "year": None, **fields}
    return replace(passage("").document, **known)  # type: ignore[arg-type]


def test_entries_are_those_under_the_last_heading_and_run_over_lines() -> None:
    one, two, three = entries_of(NUMBERED)
    assert (one.label, one.text) == ("1", "Baker, A.: Gills of River Fish. 2014.")
    assert two.text.endswith("in water and on land. Journal of Ponds 3, 2019.")
    assert NUMBERED[three.start : three.end] == "[3] Moss, D. Slow Rivers, 2001."
    assert [one.text[:4] for one in entries_of(BY_NAME)] == ["Lee,", "Moss"]
    assert entries_of(BY_NAME)[1].text.endswith("Slow Rivers. Harbour Press.")


def test_a_text_without_a_list_has_no_entries() -> None:
    assert entries_of("See the references below. Frogs [2] sing.") == ()


@pytest.mark.parametrize(
    ("sentence", "text", "cited"),
    [
        ("Fish breathe by gills [1, 3].", NUMBERED, (0, 2)),
        ("All do [1-3].", NUMBERED, (0, 1, 2)),
        ("None does.", NUMBERED, ()),
        ("None of 12 does [4].", NUMBERED, ()),
        ("Frogs breathe by their skin (Lee, 2019; Moss et al. 2001a).", BY_NAME, (0, 1)),
        ("Lee (2019) saw frogs.", BY_NAME, (0,)),
        ("Moss and Reed (2001a) saw rivers.", BY_NAME, (1,)),
        ("Lee (2018) saw nothing.", BY_NAME, ()),
        ("They sing [@lee2019].", "References\n\n@lee2019: Lee, C. Songs. 2019.", (0,)),
    ],
)
def test_a_sentence_cites_by_number_name_or_key(
    sentence: str, text: str, cited: tuple[int, ...]
) -> None:
    assert cited_in(sentence, entries_of(text)) == cited


def test_what_cites_claims_nothing() -> None:
    entries = entries_of(BY_NAME)
    assert without_citations("Frogs sing (Lee, 2019).", entries) == "Frogs sing."
    assert without_citations("Frogs sing (in 2019).", entries) == "Frogs sing (in 2019)."


def test_references_are_found_differ_or_are_not_there() -> None:
    papers = [
        document("Gills of river fish", authors=("Ann Baker",), year=2014),
        document("How Frogs Breathe", authors=("Chris Lee",), year=2018),
    ]
    gills, frogs, rivers = look_up(entries_of(NUMBERED), papers)
    assert (gills.state, gills.title, gills.differs) == ("found", "Gills of river fish", ())
    assert (frogs.state, frogs.differs) == ("differs", ("year 2018",))
    assert (rivers.state, rivers.doc_id, rivers.differs) == ("not_there", None, ())


def test_a_number_of_arxiv_or_a_doi_tells_a_document_whatever_it_is_called() -> None:
    text = "References\n\n[1] Some title. arXiv:1706.03762v5.\n[2] Other. doi:10.1000/xyz-12."
    papers = [
        document("Attention", arxiv_id="1706.03762v2"),
        document("Ponds", metadata={"doi": "10.1000/XYZ-12"}),
    ]
    first, second = look_up(entries_of(text), papers)
    assert (first.title, first.state, first.differs) == (
        "Attention",
        "differs",
        ("title Attention",),
    )
    assert second.title == "Ponds"
