"""Of several statements of one thing the newest that is valid leads."""

from __future__ import annotations

from dataclasses import replace

import pytest

from app.core.labels import FILE_DATE
from app.core.types import Evidence
from app.generation.quote.candidates import candidates
from app.generation.quote.versions import same_with_other_figures, versions
from tests.unit.generation.passages import evidence

TODAY = 20261128


def order(
    question: str, *texts: str, titles: tuple[str, ...] = (), files: tuple[str, ...] = ()
) -> list[tuple[str, str]]:
    """Return each version's date and words; the one that is found first leads."""
    items: list[Evidence] = []
    for n, item in enumerate(evidence(*texts)):
        document = replace(item.hit.passage.document, year=None)
        if titles:
            document = replace(document, title=titles[n])
        if files:
            document = replace(document, metadata={FILE_DATE: files[n]})
        passage = replace(item.hit.passage, document=document)
        items.append(replace(item, hit=replace(item.hit, passage=passage)))
    found = [one for one in candidates(items) if "euros" in one.text]
    said = same_with_other_figures(found[0], found)
    openings = {one.hit.passage.document: one.hit.passage.chunk.text for one in items}
    return [(one.shown, one.said.text) for one in versions(question, said, openings, TODAY)]


OLD, NEW = "The fee of the berth is 140 euros.", "The fee of the berth is 165 euros."
ASKED = "How much is the fee of the berth?"


@pytest.mark.parametrize(
    ("old", "new", "since"),
    [
        (f"Valid from 1 May 2021.\n\n{OLD}", f"Valid from 3 June 2024.\n\n{NEW}", "2024-06-03"),
        (f"Stand: 2021\n\n{OLD}", f"Stand: 2024\n\n{NEW}", "2024"),
        (f"Date: Mon, 3 May 2021 10:00\n\n{OLD}", f"Date: 4 Jun 2024\n\n{NEW}", "2024-06-04"),
        (f"date: 2021-05-03\n\n{OLD}", f"date: 2024-06-04\n\n{NEW}", "2024-06-04"),
    ],
)
def test_the_newest_leads_wherever_it_was_found(old: str, new: str, since: str) -> None:
    for texts in ((old, new), (new, old)):
        assert [words for _, words in order(ASKED, *texts)] == [NEW, OLD]
        assert order(ASKED, *texts)[0][0] == since


def test_a_title_tells_and_what_is_valid_later_comes_last() -> None:
    later = "The fee of the berth is 180 euros."
    titles = ("Fees 2021", "fees-2099-01-01.md", "Fees 2024")
    assert order(ASKED, OLD, later, NEW, titles=titles) == [
        ("2024", NEW), ("2021", OLD), ("2099-01-01", later),
    ]  # fmt: skip


def test_the_time_of_a_file_tells_last() -> None:
    files = "2024-06-04", "2021-05-03"
    assert order(ASKED, NEW, OLD, files=files) == [("2024-06-04", NEW), ("2021-05-03", OLD)]
    dated = f"Valid from 1 May 2021.\n\n{OLD}", f"Valid from 3 June 2024.\n\n{NEW}"
    assert [words for _, words in order(ASKED, *dated, files=files)] == [NEW, OLD]
    assert order(ASKED, dated[1], OLD, files=files)[1] == ("2021-05-03", OLD)
    assert order(ASKED, OLD, dated[1], files=("2025-01-02", "2025-01-02")) == [], "may be a copy"
    assert order(ASKED, OLD, NEW, files=("2024-06-04", "2024-06-04")) == [], "one copy of all"


def test_nothing_is_ordered_where_that_is_not_safe() -> None:
    dated = f"Valid from 2021.\n\n{OLD}", f"Valid from 2024.\n\n{NEW}"
    assert order("How much was the fee of the berth in 2021?", *dated) == []
    assert order("How much did the fee of the berth change?", *dated) == []
    assert order(ASKED, OLD, NEW) == [], "nothing tells"
    assert order(ASKED, dated[0], dated[1].replace("2024", "2021")) == [], "both at one time"
    other = NEW.replace("berth", "crane")
    assert order(ASKED, dated[0], f"Valid from 2024.\n\n{other}") == [], "another thing"
