from __future__ import annotations

import pytest

from app.generation.language.clauses import read
from app.generation.language.rows import rows_of, rows_say, stands_under_another_head

LABELLED = """Travel limits per day in euros

City: Bergen | Hotel limit: 140 euros | Guide: Solveig Dahl
City: Oslo | Hotel limit: 165 euros | Guide: Tor Lie
"""
TABS = "City\tHotel limit\tGuide\nBergen\t140 euros\tSolveig Dahl\nOslo\t165 euros\tTor Lie\n"


@pytest.mark.parametrize("text", [LABELLED, TABS])
@pytest.mark.parametrize(
    ("claim", "said"),
    [
        ("The hotel limit in Bergen is 140 euros.", True),
        ("Oslo has a hotel limit of 165 euros.", True),
        ("The guide of Oslo is Tor Lie.", True),
        ("The hotel limit in Oslo is higher than in Bergen.", True),
        ("Oslo has the highest hotel limit.", True),
        ("The hotel limit in Bergen is 165 euros.", False),
        ("The guide of Oslo is Solveig Dahl.", False),
        ("The hotel limit in Bergen is higher than in Oslo.", False),
        ("Bergen has the highest hotel limit.", False),
        ("The hotel limit in Bergen is not 140 euros.", None),
        ("The hotel limit in Bergen is 140 euros and a breakfast.", None),
        ("The limit in Turku is 140 euros.", None),
    ],
)
def test_a_claim_about_a_row_is_judged_by_that_row(
    text: str, claim: str, said: bool | None
) -> None:
    assert rows_say(read(claim), rows_of(text))[0] is said


def test_rows_lie_where_they_say() -> None:
    for text in (LABELLED, TABS):
        assert [text[row.start : row.end].split()[0] for row in rows_of(text)] in (
            ["City:", "City:"],
            ["Bergen", "Oslo"],
        )
    assert rows_of("No table here: a | b\n\nat all.") == []


MILLS = """Mills of the valley, fees in crowns

| Mill | Built | Wheels |
|---|---|---|
| Upper | 1790 | 2 |
| Lower | 1850 | 3 |
| Old | 1710 | 1 |

Entry: 4
Guided tour: 25
"""


@pytest.mark.parametrize(
    ("claim", "said"),
    [
        ("The Old mill is the oldest of the three mills.", True),
        ("The Lower mill is newer than the Upper mill.", True),
        ("The Upper mill is older than the Old mill.", False),
        ("Of all mills the Lower mill has the most wheels.", True),
        ("A guided tour costs 25 crowns.", True),
        ("A guided tour costs 4 crowns.", False),
        ("A guided tour and a cake cost 25 crowns.", None),
    ],
)
def test_years_are_ages_and_a_named_value_is_a_row(claim: str, said: bool | None) -> None:
    assert rows_say(read(claim), rows_of(MILLS))[0] is said


QUARTERS = """Loans in $000's

Loan type: Farms | Spring 2009 $000's: 361 | Spring 2009 %: 2.2 | Autumn 2010 $000's: 331 | Autumn 2010 %: 2.4
"""


@pytest.mark.parametrize(
    ("claim", "is_misplaced"),
    [
        ("Farms had loans of 361 in Autumn 2010.", True),
        ("Farms had loans of 331 in Spring 2009.", True),
        ("In Autumn 2010 the share of farms was 2.2 %.", True),
        ("Farms had loans of 331 in Autumn 2010.", False),
        ("Farms had loans of 361 in Spring 2009 and 331 in Autumn 2010.", False),
        ("Farms had loans of 361 in Spring 2009, more than in Autumn 2010.", False),
        ("Farms had loans of 361.", False),
        ("Farms had loans of 400 in Autumn 2010.", False),
        ("Mills had loans of 361 in Autumn 2010.", False),
    ],
)
def test_a_figure_stands_under_another_head_than_the_claim_names(
    claim: str, is_misplaced: bool
) -> None:
    assert stands_under_another_head(read(claim), rows_of(QUARTERS)) is is_misplaced


def test_the_first_row_of_a_text_is_no_caption_of_the_next() -> None:
    """A passage may begin within a table: its first row says nothing of the second."""
    rows = (
        "Loan: Mills | 2009 $000's: 415 | 2010 $000's: 409\n"
        "Loan: Farms | 2009 $000's: 361 | 2010 $000's: 331"
    )
    assert rows_say(read("Farms in 2010 were $331."), rows_of(rows))[0] is True
    assert rows_say(read("Farms in 2010 were $361."), rows_of(rows))[0] is not True
