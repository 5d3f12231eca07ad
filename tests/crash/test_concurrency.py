"""The short forms of `make bench-concurrency` and `make bench-mixed-load`, and whether their model sees what is wrong."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from evaluation.campaigns.concurrency import (
    APART,
    MIXED,
    Model,
    Shown,
    Tally,
    Version,
    make_text,
    trial,
)


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    (tmp_path / "data").mkdir()
    return tmp_path


def holds(tally: Tally) -> None:
    assert tally.wrong == []
    assert tally.odd == []
    assert tally.done["deleted"] > 0


def test_ten_seconds_of_everything_at_once(directory: Path) -> None:
    tally, faults = trial(directory, APART, 8.0, at_least=12)
    holds(tally)
    assert faults == []
    assert tally.done["uploaded"] >= 12
    assert tally.statuses["search 200"] > tally.done["uploaded"]


def test_eighty_clients_see_only_2xx_and_503_and_lose_nothing(directory: Path) -> None:
    tally, faults = trial(directory, {f"c{n}": MIXED for n in range(80)}, 6.0)
    holds(tally)
    assert faults == []
    assert all(tally.statuses[f"{what} 200"] for what in ("query", "search", "list", "delete"))


def shown(version: Version, start: int = 0, end: int = 40) -> Shown:
    return Shown(version.doc_id, start, end, version.text[start:end])


def test_the_model_sees_wrong_phantom_and_missing() -> None:
    model, rng = Model(), random.Random(3)
    first = Version("k", make_text("k", "one", rng), "one", 1.0)
    model.begin(first)
    assert model.wrong([shown(first)], 0.5, 0.9) != []  # before it was sent
    assert model.wrong([shown(first)], 0.5, 1.1) == []  # it may be there already
    model.acknowledge(first, 2.0)
    assert model.missing(first, [], 1.9, 3.0) == []
    assert model.missing(first, [], 2.1, 3.0) != []
    assert model.missing(first, [shown(first)], 2.1, 3.0) == []
    second = Version("k", make_text("k", "two", rng), "two", 4.0)
    model.begin(second)
    assert model.missing(first, [], 3.9, 4.1) == []  # it was about to be replaced
    model.acknowledge(second, 5.0)
    text = first.text.index("one")
    assert model.wrong([shown(first, text, text + 20)], 4.9, 5.5) == []
    assert "phantom" in model.wrong([shown(first, text, text + 20)], 5.1, 5.5)[0]
    assert "wrong text" in model.wrong([Shown(first.doc_id, 3, 9, "rubber")], 5.1, 5.5)[0]
    assert "wrong text" in model.wrong([Shown("unknown", 0, 4, "Item")], 5.1, 5.5)[0]
    assert model.take(rng) is second
    assert model.take(rng) is None  # it ends already
    model.ended(second, 7.0)
    assert model.live() == []
    assert "phantom" in model.wrong([shown(second, text, text + 20)], 7.1, 7.5)[0]
