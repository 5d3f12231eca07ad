"""Rows of published sets become pairs with short windows, spans at their places, and false twins."""

from __future__ import annotations

import gzip
import json
import random
from pathlib import Path

import pytest

from app.generation.language.windows import WINDOW_WORDS, window_for
from evaluation.training.pairs import (
    CONTRADICTED,
    NOT_STATED,
    SUPPORTED,
    UNSUPPORTED,
    Pair,
    Row,
    exchanged,
    made_of,
    not_stated,
    pairs_of,
)

PASSAGE = (
    "The mill was built in 1874 by two brothers. It ground corn for ninety years."
    " The river turned its wheel. In 1964 the mill was closed."
)


def _question(question: str, answer: str, passage: str = PASSAGE) -> Row:
    start = passage.index(answer)
    return {
        "task": "qa",
        "src": "qamr",
        "q": question,
        "passage": passage,
        "answers": [{"start": start, "text": answer}],
    }


@pytest.mark.parametrize("seed", range(6))
def test_a_question_gives_the_window_that_answers_and_one_that_does_not(seed: int) -> None:
    row = _question("When was the mill closed?", "1964")
    right, wrong = made_of(row, random.Random(seed))
    assert right.span is not None
    assert right.second[slice(*right.span)] == "1964"
    assert (right.answers, wrong.answers, wrong.span) == (1.0, 0.0, None)
    assert "1964" not in wrong.second
    assert wrong.second in PASSAGE


def test_a_row_of_a_table_has_its_heads_before_it() -> None:
    table = "Boat | Length\nGull | 9 m\nTern | 7 m"
    right, wrong = made_of(_question("How long is the Tern?", "7 m", table), random.Random(0))
    assert right.second.startswith("Boat | Length\n")
    assert right.span is not None
    assert right.second[slice(*right.span)] == "7 m"
    assert wrong.second.startswith("Boat | Length\n")
    assert "7 m" not in wrong.second


def test_a_long_passage_is_cut_to_what_a_claim_speaks_of() -> None:
    long = " ".join(f"Room {n} has {n} chairs and a lamp by the door." for n in range(60))
    window = window_for("There are 41 chairs in room 41.", long)
    assert "Room 41 has" in window
    assert len(window.split()) <= WINDOW_WORDS
    assert window_for("short", PASSAGE) == PASSAGE


def _claim(claim: str, label: str, passage: str = PASSAGE) -> Row:
    return {"task": "nli", "src": "wikisplit", "claim": claim, "passage": passage, "label": label}


def test_labels_are_kept_and_a_claim_is_not_stated_by_another_passage() -> None:
    labels = ("supported", "contradicted", "not_stated", "unsupported")
    made = [next(made_of(_claim("The mill is old.", one), random.Random(0))) for one in labels]
    assert [one.claim for one in made] == [SUPPORTED, CONTRADICTED, NOT_STATED, UNSUPPORTED]
    rows = [
        _claim(f"Mill {n} is old.", "supported", f"Mill {n} is old, they say.") for n in range(9)
    ]
    for pair in not_stated(rows, random.Random(0), share=1.0):
        assert (pair.claim, pair.first.rstrip(".") in pair.second) == (NOT_STATED, False)


def test_a_false_twin_differs_from_what_the_passage_says() -> None:
    found = [
        pair
        for seed in range(20)
        for pair in exchanged(
            _claim("The mill was built in 1874.", "supported"), random.Random(seed)
        )
    ]
    assert found
    assert {pair.claim for pair in found} <= {CONTRADICTED, UNSUPPORTED}
    assert all(pair.first != "The mill was built in 1874." for pair in found)


def test_a_source_that_is_left_out_leaves_nothing_behind(tmp_path: Path) -> None:
    for name in ("one", "other"):
        with gzip.open(tmp_path / f"{name}.jsonl.gz", "wt", encoding="utf-8") as file:
            for n in range(4):
                row = _claim(f"Claim {n}.", "supported", f"Passage {n}.") | {"src": name}
                file.write(json.dumps(row) + "\n")
    caps = {"one": 3, "other": 9}
    both = pairs_of(tmp_path, caps, 5)
    assert sum(pair.source == "one" for pair in both) == 3
    assert both == pairs_of(tmp_path, caps, 5)
    left: list[Pair] = pairs_of(tmp_path, caps, 5, ("other",))
    assert {pair.source for pair in left} == {"one"}
