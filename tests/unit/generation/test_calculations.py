from __future__ import annotations

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.generation.language.quantities import figure_of
from app.generation.quote.calculations import calculate, lines_of, operation_of, write_calculation
from app.generation.quote.quoting import Quoting
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


ORDERS = """Order: O-1 | City: Turin | Items: 3 | Amount: 10 | Year: 2024 | Status: cancelled
Order: O-2 | City: Turin | Items: 4 | Amount: 20 | Year: 2024 | Status: open
Order: O-3 | City: Basel | Items: 1 | Amount: 30 | Year: 2025 | Status: cancelled
Order: O-4 | City: Basel | Items: 2 | Amount: 40 | Year: 2025 | Status: open
Order: O-5 | City: Turin | Items: 9 | Amount: 50 | Year: 2025 | Status: cancelled"""

GUESTS = """id: 1 | guest: Ana | town: Oslo | age: 30 | nights: 3
id: 2 | guest: Bo | town: Bergen | age: 41 | nights: 2
id: 3 | guest: Cai | town: Oslo | age: 50 | nights: 1
id: 4 | guest: Ida | town: Bergen | age: 77 | nights: 7"""

TOWNS = """Arms: - | Town: Berg | Inhabitants (31 December 2017): 823 | Area in km\u00b2: 3.74
Arms: - | Town: Goldach | Inhabitants (31 December 2017): 9,200 | Area in km\u00b2: 4.6
Arms: - | Town: Rorschach | Inhabitants (31 December 2017): 9,400 | Area in km\u00b2: 1.8
Arms: - | Town: Total (3) | Inhabitants (31 December 2017): 19,423 | Area in km\u00b2: 10.2"""

NETS = """Net: Net A | Port: Oslo | Metres: 10
Net: Overall net | Port: Oslo | Metres: 20
Net: Net B | Port: Bergen | Metres: 30
Net: Net C | Port: Bergen | Metres: lost
Net: Total (4) | Port: all | Metres: 60"""

STOCK = """sku: A-100 | product: Hex bolt M8 | warehouse: Lyon | units: 5400 | unit_price_eur: 0.12
sku: A-101 | product: Hex bolt M10 | warehouse: Lyon | units: 2100 | unit_price_eur: 0.19
sku: B-200 | product: Cordless drill | warehouse: Ghent | units: 87 | unit_price_eur: 129.00
sku: B-201 | product: Impact driver | warehouse: Ghent | units: 45 | unit_price_eur: 159.00
sku: C-300 | product: Safety goggles | warehouse: Lyon | units: 640 | unit_price_eur: 4.50
sku: C-301 | product: Work gloves | warehouse: Porto | units: 1320 | unit_price_eur: 2.80
sku: D-400 | product: Workbench | warehouse: Porto | units: 12 | unit_price_eur: 349.00"""


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
        ("What is the average of Fjord, western side?", HARBOURS, "36", "(40 + 32) / 2"),
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
        ("What is the sum of the tulips in clay?", BEDS, "220", "120 + 100"),
        ("What is the sum of the units in Lyon?", STOCK, "8,140", "5,400 + 2,100 + 640"),
        ("How many units are in the Lyon warehouse in total?", STOCK,
         "8,140", "5,400 + 2,100 + 640"),
        ("How many units are in Lyon?", STOCK, "8,140", "5,400 + 2,100 + 640"),
        ("How many units of hex bolts are in Lyon?", STOCK, "7,500", "5,400 + 2,100"),
        ("How many units are in Ghent and Porto?", STOCK, "1,464", "87 + 45 + 1,320 + 12"),
        ("How many products are in Lyon?", STOCK, "3", ""),
        ("How many products are there?", STOCK, "7", ""),
        ("How many different warehouses are there?", STOCK, "3", ""),
        ("How many products in Lyon have more than 1,000 units?", STOCK, "2", "> 1,000"),
        ("What is the average unit price in Ghent?", STOCK, "144", "(129.00 + 159.00) / 2"),
        ("Which product has the highest unit price?", STOCK, "Workbench", ""),
        ("Which product in Lyon has the highest unit price?", STOCK, "Safety goggles", ""),
        ("Which product is the most expensive?", STOCK, "Workbench", ""),
        ("What is the cheapest product in Ghent?", STOCK, "Cordless drill", ""),
        ("Which product has the most units?", STOCK, "Hex bolt M8", ""),
        ("Which warehouse has the most units?", STOCK, "Lyon: 8,140", "5,400 + 2,100 + 640"),
        ("Which warehouse has the highest unit price?", STOCK, "Porto", ""),
        ("What is the highest unit price in Ghent?", STOCK, "159.00", ""),
        ("What are the three products with the most units?", STOCK,
         "Hex bolt M8, Hex bolt M10, Work gloves", ""),
        ("Which 2 products have the lowest unit price?", STOCK, "Hex bolt M8, Hex bolt M10", ""),
        ("Which warehouse has the most products?", STOCK, "Lyon: 3", ""),
        ("Which warehouse has the fewest products?", STOCK, "Ghent, Porto: 2", ""),
        ("What is the total amount of the cancelled orders in Turin?", ORDERS,
         "60", "10 + 50"),
        ("How many orders are open?", ORDERS, "2", ""),
        ("What was the change in the amount at 31 December?",
         "At 31 December | 2019 $ million: 2.0 | 2018 $ million: 2.3", "-0.3", "2.0 - 2.3"),
        ("How many nets are in Bergen?", NETS, "2", ""),
        ("How many nets are there?", NETS, "4", ""),
        ("What is the sum of the metres?", NETS, "60", "10 + 20 + 30"),
        ("Which port has the most nets?", NETS, "Oslo, Bergen: 2", ""),
        ("What are the 2 towns with the most inhabitants?", TOWNS, "Rorschach, Goldach", ""),
        ("How many guests come from Oslo?", GUESTS, "2", ""),
        ("What is the average age of the guests from Oslo?", GUESTS, "40", "(30 + 50) / 2"),
        ("Who is the oldest guest?", GUESTS, "Ida", ""),
        ("How many nights do the guests from Bergen stay?", GUESTS, "9", "2 + 7"),
        ("How many items were ordered in 2024?", ORDERS, "7", "3 + 4"),
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
        ("What is the sum of the units in Madrid?", STOCK),
        ("What is the sum of the units of drills in Lyon?", STOCK),
        ("How many hammers are in Lyon?", STOCK),
        ("How many drills are in Lyon?", STOCK),
        ("How many products are in Madrid?", STOCK),
        ("How many units of the workbench are in Porto?", STOCK),  # one row's
        ("How many bolts are in Lyon?", STOCK),
        ("Which product is the heaviest?", STOCK),
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


def test_of_many_rows_the_first_are_shown() -> None:
    text = "\n".join(f"Bed: {n} east | Soil: clay | Tulips: {n}" for n in range(1, 31))
    items = evidence(text)
    made = calculate("What is the sum of the tulips?", lines_of(items))
    assert made is not None
    assert (made.result, made.formula) == ("465", "sum of 30 figures")
    quoting = Quoting(items)
    write_calculation(quoting, made)
    done = quoting.done()
    assert len(done.sentences) == 20
    assert done.text.endswith("\n- 10 more rows of the same table")


def test_what_two_records_share_with_equal_figures_names_both() -> None:
    text = (
        STOCK + "\nsku: E-1 | product: Lathe | warehouse: Ghent | units: 1 | unit_price_eur: 349.00"
    )
    made = calculate("Which product is the most expensive?", lines_of(evidence(text)))
    assert made is not None
    assert made.result == "Workbench, Lathe"


@given(st.text(max_size=80), st.lists(st.text(max_size=60), max_size=6))
def test_any_text_is_read_without_an_error(question: str, lines: list[str]) -> None:
    calculate(f"What is the total {question}", lines_of(evidence("\n".join(lines) or "x")))
    operation_of(question)


FREIGHT = (
    "Ship: Runa | Cargo: salt | Mass: 850 kg\nShip: Hilda | Cargo: salt | Mass: 2 t\n"
    "Ship: Ternen | Cargo: salt | Mass: 300 kg"
)
PRICES = "Boat: Runa | Price: 40\nBoat: Hilda | Price: -\nBoat: Ternen | Price: 60"
VISITS = "Hall: North | Visitors: 1.200\nHall: South | Visitors: 950\nHall: East | Visitors: 2.050"
MONEY = "Fund: Roof | Amount: 1.200,50\nFund: Organ | Amount: 800,00\nFund: Path | Amount: 75,25"
MONTHS = (
    "Month: January | Tonnes: 10\nMonth: February | Tonnes: 12\nMonth: March | Tonnes: 8\n"
    "Month: Q1 | Tonnes: 30\nMonth: April | Tonnes: 9"
)
RIDES = "Trip: Senn | Time: 1:30\nTrip: Lund | Time: 2:45"
QUARTERS = "Part: Q1 | Tonnes: 30\nPart: Q2 | Tonnes: 40"


@pytest.mark.parametrize(
    ("question", "text", "result"),
    [
        ("What is the total mass of salt?", FREIGHT, "3,150 kg"),  # of kg and t
        ("Which ship has the largest mass?", FREIGHT, "Hilda"),
        ("What is the total mass of salt?", FREIGHT.replace("2 t", "2 sacks"), None),
        ("What is the average price?", PRICES, "50"),  # a dash is no price of 0
        ("Which boat has the lowest price?", PRICES, "Runa"),
        ("What is the sum of the visitors?", VISITS, "4.200"),
        ("Wie viele Visitors gab es insgesamt?", VISITS, "4.200"),
        ("What is the average of the visitors?", VISITS, "1.400"),
        ("Which hall has the most visitors?", VISITS, "East"),
        ("What is the sum of the amounts?", MONEY, "2.075,75"),
        ("What is the sum of the tonnes?", MONTHS, "39"),  # a quarter is the sum of its months
        ("What is the sum of the tonnes?", QUARTERS, "70"),
        ("What is the sum of tonnes from February to April?", MONTHS, "29"),
        ("What is the sum of tonnes from February to May?", MONTHS, None),
        ("What is the total time?", RIDES, "4 h 15 min"),
        ("What is the average time?", RIDES, "2 h 8 min"),
        ("Which trip has the largest time?", RIDES, None),
    ],
)
def test_figures_are_taken_together_only_where_that_is_safe(
    question: str, text: str, result: str | None
) -> None:
    made = calculate(question, lines_of(evidence(text)))
    assert (made and made.result) == result


def test_a_record_of_two_sheets_counts_once_and_not_at_all_where_they_differ() -> None:
    first, second = "Crew: Runa | Cups: 2\nCrew: Hilda | Cups: 13", "Crew: Runa | Cups: 2"
    sheets = [*evidence(first, section="Cups"), *evidence(second, section="Copy", start=100)]
    same = calculate("What is the sum of the cups?", lines_of(sheets))
    assert (same and same.result) == "15"
    other = [
        *evidence(first, section="Cups"),
        *evidence("Crew: Hilda | Cups: 0", section="Old", start=100),
    ]
    assert calculate("What is the sum of the cups?", lines_of(other)) is None


def test_a_record_of_two_titled_tables_counts_once_and_not_at_all_where_they_differ() -> None:
    text = (
        "Cups\n\nCrew | Cups\nCrew: Runa | Cups: 2\nCrew: Hilda | Cups: 13\n\nCups since 1990\n\n"
        "Crew | Cups\nCrew: Runa | Cups: 2\nCrew: Hilda | Cups: {}"
    )
    same = calculate("What is the sum of the cups?", lines_of(evidence(text.format(13))))
    assert (same and same.result) == "15"
    assert calculate("What is the sum of the cups?", lines_of(evidence(text.format(0)))) is None
