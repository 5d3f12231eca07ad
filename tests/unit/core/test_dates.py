"""Dates in every form that is read are one number."""

from __future__ import annotations

import pytest

from app.core.dates import dates_in


@pytest.mark.parametrize(
    "said",
    [
        "on 2024-03-05", "on 5 March 2024", "on the 5th of March 2024", "on March 5, 2024",
        "on Mar. 5 2024", "am 5.3.2024", "am 05. 03. 2024.",
    ],
)  # fmt: skip
def test_a_date_in_any_form_is_one_number(said: str) -> None:
    assert dates_in(f"The board met {said}")[1] == {20240305}


@pytest.mark.parametrize("said", ["10.0.28.5", "1.2.2024.1", "2024-13-05", "in 2024", "32 March"])
def test_what_is_no_date(said: str) -> None:
    assert dates_in(said)[1] == frozenset()


def test_a_date_without_a_year_is_month_and_day() -> None:
    assert dates_in("on 5 March")[1] == {305}
