from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.answer.modes import inventory, scan
from app.answer.strategies import numbered
from app.core.types import REFUSAL, Evidence, Hit
from tests.stores import passage
from tests.unit.answer.bench import Bench, papers


def _evidence(*texts: str) -> tuple[Evidence, ...]:
    return numbered([Hit(passage(text, key=f"d{i}"), 1.0) for i, text in enumerate(texts)])


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("Experiments on CIFAR-10 and ImageNet show gains.", ["CIFAR-10", "ImageNet"]),
        (
            "The Stanford Sentiment Treebank contains 11,855 sentences.",
            ["Stanford Sentiment Treebank"],
        ),
        ("We use the Cranfield test collection.", ["Cranfield"]),
        ("We present AloudQ, a corpus of 4,800 questions.", ["AloudQ"]),
        ("OpenTides is the largest public benchmark.", ["OpenTides"]),
        ("The catalog is an SQLite database in write-ahead mode.", []),
        ("Data of the General Household Survey were used.", ["General Household Survey"]),
        ("A corpus called OpenTides was gathered.", ["OpenTides"]),
        ("The MNIST database of handwritten digits.", ["MNIST"]),
        ("We also use MS MARCO passages.", ["MS MARCO"]),
        ("The Adult dataset is imbalanced.", ["Adult"]),
        ("This dataset is large. These corpora are small. Our benchmark is new.", []),
        ("Every adult wrote a survey.", []),
        ("Results on the Table 3 dataset were poor.", []),
        ("Data are at https://zenodo.org/record/12345.", ["https://zenodo.org/record/12345"]),
        (
            "Reads were deposited under PRJNA123456 (doi: 10.1000/xyz123).",
            ["PRJNA123456", "doi: 10.1000/xyz123"],
        ),
    ],
)
def test_names_and_places(text: str, names: list[str]) -> None:
    assert [finding.name for finding in scan(_evidence(text))] == names


def test_one_entry_per_name_with_all_its_marks() -> None:
    found = scan(
        _evidence("We train on CIFAR-10.", "Nothing here.", "CIFAR10 is small. CIFAR-10 again.")
    )
    assert [(finding.name, finding.numbers, finding.sentence) for finding in found] == [
        ("CIFAR-10", (1, 3), "We train on CIFAR-10.")
    ]


def test_the_inventory_cites_every_entry_and_the_citations_hold() -> None:
    bench = Bench(
        passages=[
            passage(
                "We evaluate data on CIFAR-10 [12]. Data is at https://github.com/example/tides.",
                key="a",
            ),
            passage("The Cranfield test collection has data of 1,400 abstracts.", key="b"),
        ]
    )
    answer = bench.ask(papers("Which data?", mode="datasets"))
    assert answer.text == (
        "### Data sets\n\n"
        "- **CIFAR-10**: We evaluate data on CIFAR-10 [1].\n"
        "- **Cranfield**: The Cranfield test collection has data of 1,400 abstracts [2].\n\n"
        "### Where data can be had\n\n"
        "- **https://github.com/example/tides**: Data is at https://github.com/example/tides [1]."
    )
    entries = [sentence for sentence in answer.sentences if sentence.text.startswith("- ")]
    assert [sentence.verdict for sentence in entries] == ["supported"] * 3
    assert (answer.generator, answer.status) == ("scanner", "answered")


def test_passages_without_data_sets_abstain() -> None:
    answer = Bench().ask(papers("What is the melting point of copper?", mode="datasets"))
    assert (answer.status, answer.text, answer.evidence) == ("abstained", REFUSAL, ())


@given(st.text(max_size=200))
def test_any_text_can_be_scanned(text: str) -> None:
    evidence = _evidence(text)
    for finding in scan(evidence):
        assert finding.numbers == (1,)
    assert "[2]" not in inventory(evidence) or "[2]" in text
