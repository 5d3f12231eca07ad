"""Tags, own metadata, and what is asked of them."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.core.errors import InvalidInput
from app.core.labels import (
    FILE_DATE,
    Condition,
    Labels,
    Value,
    comparable,
    fits,
    fold,
    found_labels,
    kind_of,
    labels_from,
    position,
    split_tags,
    with_file_date,
)


def test_tags_keep_their_spelling_and_come_once() -> None:
    assert Labels.of(["  Deep  Sea ", "deep sea", "Ocean"], None).tags == ("Deep Sea", "Ocean")
    assert split_tags(["a, b", "c,", "A"]) == ("a", "b", "c")


@pytest.mark.parametrize(
    ("tags", "metadata"),
    [
        ([""], {}),
        (["x" * 65], {}),
        (["a,b"], {}),
        ([5], {}),
        ([str(n) for n in range(65)], {}),
        (None, {"": 1}),
        (None, {"a=b": 1}),
        (None, {"k": True}),
        (None, {"k": [1]}),
        (None, {"k": float("nan")}),
        (None, {"k": 10**20}),
        (None, {"k": "x" * 501}),
        (None, {str(n): n for n in range(65)}),
    ],
    ids=str,
)
def test_what_is_no_label_is_refused(
    tags: list[object] | None, metadata: dict[str, object]
) -> None:
    with pytest.raises(InvalidInput):
        Labels.of(tags, metadata)


@pytest.mark.parametrize("text", ["[]", "{", '{"tags": "a"}', '{"metadata": []}', '{"other": 1}'])
def test_labels_of_a_form_are_an_object(text: str) -> None:
    with pytest.raises(InvalidInput):
        labels_from(text)


def test_labels_are_laid_over_those_of_before() -> None:
    before: tuple[tuple[str, ...], dict[str, Value]] = ("a",), {"x": 1, "y": "two"}
    assert Labels().over(*before) == before
    assert Labels((), {"x": None, "z": "2026-01-31"}).over(*before) == (
        (),
        {"y": "two", "z": "2026-01-31"},
    )
    assert Labels(("b",), {"x": 2}).under(Labels(None, {"x": 3})) == Labels(("b",), {"x": 3})


def test_kinds() -> None:
    kinds = [kind_of(value) for value in (1, 2.5, "2026-02-28", "2026-02-30", "20260228", "text")]
    assert kinds == ["number", "number", "date", "text", "text", "text"]
    assert fits("2026-02-28", "text")
    assert not fits("soon", "date")
    assert not fits(5, "text")


@pytest.mark.parametrize(
    ("text", "condition"),
    [
        ("a=b", Condition("a", ("b",))),
        ("a = B  c", Condition("a", ("b c",))),
        ("a=5", Condition("a", ("5",))),
        ("a=5.0", Condition("a", ("5.0", "5"))),
        ("a=0..5", Condition("a", (), "number", 0.0, 5.0)),
        ("a=..0", Condition("a", (), "number", None, 0.0)),
        ("a=2026-01-01..", Condition("a", (), "date", 739617.0, None)),
        ("a=x..y", Condition("a", ("x..y",))),
        ("a=b=c", Condition("a", ("b=c",))),
    ],
)
def test_conditions_as_people_write_them(text: str, condition: Condition) -> None:
    asked = Condition.written(text)
    assert asked == condition
    assert Condition.written(str(asked)) == condition


@pytest.mark.parametrize("text", ["a", "=b", "a=", "a=1..2026-01-01"])
def test_what_is_no_condition_is_refused(text: str) -> None:
    with pytest.raises(InvalidInput):
        Condition.written(text)


@given(st.one_of(st.integers(-(10**14), 10**14), st.floats(-1e9, 1e9), st.dates().map(str)))
def test_a_value_meets_what_asks_for_it(value: float | str) -> None:
    assert comparable(value) in Condition.equal("k", value).values
    assert comparable(value) in Condition.equal("k", str(value)).values
    asked = Condition.between("k", value, value)
    assert asked.low == asked.high == position(value)


def test_what_a_file_says_is_taken_without_what_is_no_label() -> None:
    values: dict[object, object] = {
        "rating": 5,
        "done": True,
        "day": date(2026, 2, 1),
        "at": datetime(2026, 2, 1, 10, tzinfo=UTC),
        "list": [1, 2],
        "none": None,
        "long": "x" * 501,
        "a=b": 1,
        7: "seven",
    }
    found = found_labels(["Sea", "#moon", "", "x" * 65, "sea", 2026], values)
    assert found.tags == ("Sea", "moon", "2026")
    assert found.metadata == {"rating": 5, "done": "true", "day": "2026-02-01", "at": "2026-02-01"}
    assert found_labels("a, b c", {}).tags == ("a", "b c")
    assert found_labels(None, {}) == found_labels({}, {}) == Labels()
    many = found_labels([str(n) for n in range(99)], {str(n): n for n in range(99)})
    assert (len(many.tags or ()), len(many.metadata)) == (64, 64)


@given(st.text())
def test_folding_twice_changes_nothing(text: str) -> None:
    assert fold(fold(text)) == fold(text)


def test_facts_of_a_form_are_checked_and_come_one_by_one() -> None:
    given = labels_from('{"title": " Rivers  and silt ", "authors": ["Ann Baker"], "year": 2021}')
    assert given.facts == {"title": "Rivers and silt", "authors": ("Ann Baker",), "year": 2021}
    assert given
    assert labels_from('{"year": 1999}').facts == {"year": 1999}
    both = given.under(labels_from('{"year": 1999, "tags": ["sea"]}'))
    assert (both.title, both.year, both.tags) == ("Rivers and silt", 1999, ("sea",))


@pytest.mark.parametrize(
    "text",
    [
        '{"title": ""}',
        '{"title": 5}',
        '{"authors": "Ann"}',
        '{"authors": [5]}',
        '{"year": "2021"}',
        '{"year": true}',
        '{"year": -1}',
    ],
)
def test_what_is_no_fact_is_refused(text: str) -> None:
    with pytest.raises(InvalidInput):
        labels_from(text)


def test_the_day_of_a_file_stands_under_what_is_said() -> None:
    changed_s = datetime(2024, 6, 4, 12, tzinfo=UTC).timestamp()
    assert json.loads(with_file_date("", changed_s)) == {"metadata": {FILE_DATE: "2024-06-04"}}
    said = '{"tags": ["fees"], "metadata": {"file date": "2021-05-03"}}'
    assert json.loads(with_file_date(said, changed_s)) == json.loads(said)
    for no_time in (0.0, changed_s + 1e10):
        assert with_file_date("", no_time) == ""
    assert with_file_date("no labels", changed_s) == "no labels", "the server says what is wrong"
