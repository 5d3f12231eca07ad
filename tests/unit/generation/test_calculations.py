from __future__ import annotations

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.generation.calculations import (
    calculate,
    figure_of,
    lines_of,
    operation_of,
    write_calculation,
)
from app.generation.quoting import Quoting
from tests.unit.generation.passages import evidence

FERRIES = """Ferries of the lake

Trips | 2017 | 2018 | 2019
Passengers | 2017: 40,000 | 2018: 50,000 | 2019: 62,500
Dogs | 2017: 300 | 2018: 250 | 2019: (50)
Costs:
Fuel | 2017: 120.5 | 2018: 130.0 | 2019: 99.5
Wages | 2017: 200 | 2018: 210 | 2019: 300.5
Total costs | 2017: 320.5 | 2018: 340.0 | 2019: 400.0
Share of cyclists | 2017: 10 % | 2018: 12.5 % | 2019: 20 %"""

BEDS = """Bed | Soil | Tulips | Roses
Bed: East | Soil: clay | Tulips: 120 | Roses: 45
Bed: West | Soil: sand | Tulips: 80 | Roses: 60
Bed: North | Soil: clay | Tulips: 100 | Roses: \u2014
Total | Tulips: 300 | Roses: 105"""


HARBOURS = """Berths of the northern harbours:

June 27, 2019 (1) | June 28, 2018 | June 30, 2017
Large harbours:
Fjord, western side | June 27, 2019 (1): 40 | June 28, 2018: 32 | June 30, 2017: —
Sound | June 27, 2019 (1): 21 | June 28, 2018: 25 | June 30, 2017: 5
western side | June 27, 2019 (1): 4 | June 28, 2018: 2 | June 30, 2017: 1
Total | June 27, 2019 (1): 65 | June 28, 2018: 59 | June 30, 2017: 6"""

STAFF = """Staff | FY19 | FY181 | 2016/2017 | Change %
Pilots | FY19: 12 | FY181: 10 | 2016/2017: 8 | Change %: 20 %
Total boats | FY19: 3 | FY181: 4 | 2016/2017: 5 | Change %: (25) %"""


@pytest.mark.parametrize(
    ("question", "text", "result", "formula"),
    [
        ("What was the change in passengers from 2017 to 2019?", FERRIES,
         "22,500", "62,500 - 40,000"),
        ("What is the difference in dogs between 2018 and 2019?", FERRIES, "-300", "-50 - 250"),
        ("What is the percentage change in passengers between 2018 and 2019?", FERRIES,
         "25 %", "(62,500 - 50,000) / 50,000"),
        ("By what percent did the passengers change from 2017 to 2018?", FERRIES,
         "25 %", "(50,000 - 40,000) / 40,000"),
        ("What is the average fuel cost from 2017 to 2019?", FERRIES,
         "116.67", "(120.5 + 130.0 + 99.5) / 3"),
        ("What was the change in the share of cyclists from 2018 to 2019?", FERRIES,
         "7.5 percentage points", "20 - 12.5"),
        ("What was the percentage change in the share of cyclists from 2018 to 2019?", FERRIES,
         "7.5 percentage points", "20 - 12.5"),
        ("What was the change in berths of the sound between 2018 and 2019?", HARBOURS,
         "-4", "21 - 25"),
        ("What is the average number of berths in the sound in 2019, 2018 and 2017?", HARBOURS,
         "17", "(5 + 25 + 21) / 3"),
        ("What is the average of Fjord, western side?", HARBOURS, "24", "(40 + 32 + 0) / 3"),
        ("What was the change in total berths in 2019 compared to 2018?", HARBOURS,
         "6", "65 - 59"),
        ("Which harbour had the lowest total of berths in 2019?", HARBOURS, "western side", ""),
        ("Which years does the table show?", FERRIES, "2017, 2018, 2019", ""),
        ("In which years were berths of the fjord, western side recorded?", HARBOURS,
         "2019, 2018", ""),
        ("Which years does the table of berths provide information for?", HARBOURS,
         "2019, 2018, 2017", ""),
        ("What were the respective wages in 2018 and 2019?", FERRIES, "", ""),
        ("What was the change in pilots from 2018 to FY2019?", STAFF, "2", "12 - 10"),
        ("What was the change in pilots in 2018/2019 from 2016/17?", STAFF, "4", "12 - 8"),
        ("What is the average number of pilots over the three years?", STAFF,
         "10", "(12 + 10 + 8) / 3"),
        ("What are wages as a percentage of total costs in 2019?", FERRIES,
         "75.13 %", "300.5 / 400.0"),
        ("What is the difference between wages and fuel in 2019?", FERRIES,
         "201.0", "300.5 - 99.5"),
        ("How many years did passengers exceed 45,000?", FERRIES, "2", "> 45,000"),
        ("In which year were the wages highest?", FERRIES, "2019", ""),
        ("Which bed has the most tulips?", BEDS, "East", ""),
        ("Which bed has the fewest tulips?", BEDS, "West", ""),
        ("What is the average number of tulips?", BEDS, "100", "(120 + 80 + 100) / 3"),
        ("What is the sum of the roses of the East and the West bed?", BEDS, "105", "45 + 60"),
        ("How many beds have more than 90 tulips?", BEDS, "2", "> 90"),
    ],
)  # fmt: skip
def test_a_result_names_its_cells(question: str, text: str, result: str, formula: str) -> None:
    made = calculate(question, lines_of(evidence(text)))
    assert made is not None
    assert (made.result, made.formula) == (result, formula)


@pytest.mark.parametrize(
    ("question", "text"),
    [
        ("What were the total costs in 2019?", FERRIES),  # the table states them
        ("What were the total berths of the sound in 2019?", HARBOURS),  # one row's
        ("In which years were there fewer dogs than passengers?", FERRIES),
        ("What were the tolls in 2018 and 2019?", FERRIES),
        ("What was the change in berths of the southern sound between 2018 and 2019?", HARBOURS),
        ("What are the total passengers?", FERRIES),  # of which year?
        ("What was the change in cats from 2017 to 2019?", FERRIES),
        ("What was the change in passengers from 2016 to 2019?", FERRIES),
        ("What is the change in the average fuel cost from 2017 to 2019?", FERRIES),
        ("Why did the wages increase from 2018 to 2019?", FERRIES),
        ("What does the ferry cost?", FERRIES),
        ("What is the average price of a ticket?", BEDS),
        ("What is the average number of tulips?", "The average bed has many tulips."),
    ],
)
def test_what_the_table_does_not_tell_is_not_calculated(question: str, text: str) -> None:
    assert calculate(question, lines_of(evidence(text))) is None


def test_rows_of_another_table_do_not_take_part() -> None:
    other = BEDS.replace("Tulips", "Lilies") + "\n\nWhat follows was counted a year later by hand"
    text = f"{other} and by other people than before.\n\n{BEDS}\n\n{other}"
    made = calculate("What is the average number of lilies?", lines_of(evidence(text)))
    assert made is not None
    assert len(made.cells) == 3


def test_the_answer_shows_the_rows_that_it_used() -> None:
    items = evidence(FERRIES)
    made = calculate("What was the change in wages from 2017 to 2019?", lines_of(items))
    assert made is not None
    quoting = Quoting(items)
    write_calculation(quoting, made)
    done = quoting.done()
    assert done.text == (
        "**100.5** = 300.5 - 200\n\n- Wages | 2017: 200 | 2018: 210 | 2019: 300.5 [1]."
    )
    (sentence,) = done.sentences
    assert sentence.citations[0].quote == "Wages | 2017: 200 | 2018: 210 | 2019: 300.5"
    stated = calculate("What were the wages in 2017 and 2019?", lines_of(items))
    assert stated is not None
    quoting = Quoting(items)
    write_calculation(quoting, stated)
    assert quoting.done().text == "- Wages | 2017: 200 | 2018: 210 | 2019: 300.5 [1]."


@pytest.mark.parametrize(
    ("cell", "value"),
    [
        ("$ 1,571.7", "1571.7"),
        ("(3.1)", "-3.1"),
        ("$(72,836)", "-72836"),
        ("\u22124 %", "-4"),
        ("27%", "27"),
        ("\u2014", "0"),
        ("12 EUR", "12"),
        ("WO-24-0346", None),
        ("4012888003456781237", None),
        ("2.1.3", None),
        ("clay", None),
        ("", None),
    ],
)
def test_a_cell_is_read_as_it_is_printed(cell: str, value: str | None) -> None:
    figure = figure_of(cell)
    assert (figure and figure.value) == (None if value is None else Decimal(value))


def test_figures_of_many_digits_are_calculated() -> None:
    text = "Debt | 2018 | 2019\nDebt | 2018: 0.0000000000000001 | 2019: 999,999,999,999,999,999"
    made = calculate(
        "What is the percentage change in debt from 2018 to 2019?", lines_of(evidence(text))
    )
    assert made is not None
    assert made.result.startswith("999,999,999,")


@given(st.text(max_size=80), st.lists(st.text(max_size=60), max_size=6))
def test_any_text_is_read_without_an_error(question: str, lines: list[str]) -> None:
    calculate(f"What is the total {question}", lines_of(evidence("\n".join(lines) or "x")))
    operation_of(question)
