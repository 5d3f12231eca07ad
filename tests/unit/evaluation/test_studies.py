"""The study programs: what they share, and a rerun of one on a small collection."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from app.evaluation.collections import Collection, TestPassage
from app.evaluation.report import ReportProvenance
from app.retrieval.request import RetrievalOptions
from evaluation import documents
from evaluation.benchmarks import ocr
from evaluation.lib import corpus, growth, reports
from evaluation.studies import whole


def _collection() -> Collection:
    text = (
        "Copper is a soft red metal that conducts well. It melts at 1085 degrees. People have"
        " used it for 9000 years."
    )
    return Collection(
        "toy", (TestPassage("a", "Copper", text), TestPassage("b", "", "word " * 200)), (), {}
    )


def test_windows_are_sentences_and_runs_of_them() -> None:
    listed = corpus.sentences(_collection())
    assert [window.text for window in listed[0]] == [
        "Copper is a soft red metal that conducts well.",
        "It melts at 1085 degrees.",
        "People have used it for 9000 years.",
    ]
    assert {window.source for window in listed[1]} == {"toy-b"}
    assert all(
        len(window.text.split()) <= corpus.WORDS for window in listed[1]
    )  # no sentence is to be found in it
    assert [run.text for run in corpus.runs(listed[:1], 2)] == [
        "Copper is a soft red metal that conducts well. It melts at 1085 degrees.",
        "It melts at 1085 degrees. People have used it for 9000 years.",
    ]
    assert len(corpus.distinct(iter([*listed[0], *listed[0]]), 10)) == 3


@pytest.mark.parametrize(
    ("answer", "refused", "right"),
    [
        ("It was\n1388, in Brook.", False, True),
        ("It was 1388.", False, False),  # one of two
        ("It was 1388, in Brook, or 1877.", False, False),  # holds what it must not
        ("1388 Brook", True, False),
    ],
)
def test_an_answer_over_whole_documents_has_what_it_needs(
    answer: str, refused: bool, right: bool
) -> None:
    row = {"file": "mill.md", "patterns": ["138[0-9]", "brook"], "need": 2, "not": ["1877"]}
    assert whole.is_right(row, answer, refused=refused) is right
    assert whole.is_right({**row, "file": None}, answer, refused=refused) is refused


def test_figures_are_written_with_their_origin(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reports, "REPORTS", tmp_path)
    made = ReportProvenance(
        "0123456789abcdef", reports.hash_of(RetrievalOptions()), "f00d", {"m": "d" * 20}, 7
    )
    late = reports.Line("p50", 1.25, 1.0, "ms")
    assert (
        reports.write("toy", "Toy", ("A remark.",), [late], {"auc": 0.5}, "make toy", made=made)
        == 1
    )
    written = json.loads((tmp_path / "toy.json").read_text("utf-8"))
    assert written["figures"] == {"auc": 0.5}
    assert [(line["what"], line["holds"]) for line in written["lines"]] == [("p50", False)]
    assert written["provenance"]["settings_hash"] == reports.hash_of(RetrievalOptions())
    assert reports.hash_of(RetrievalOptions()) != reports.hash_of(RetrievalOptions(top_k=6))
    text = (tmp_path / "toy.md").read_text("utf-8")
    assert "| auc | 0.5 |" in text
    assert "| p50 | 1.25 ms | <= 1 | no |" in text
    assert "git 0123456789ab" in text


def test_writers_make_the_pages_that_are_there() -> None:
    """Pages are what the writers of today make of the reports' JSON, byte for byte."""
    pages = {
        "documents": documents.page_of(reports.report("documents")),
        "ocr": ocr.page_of(dict(sorted(reports.report("ocr").items()))),
    }
    for name, page in pages.items():
        assert page == (reports.REPORTS / f"{name}.md").read_text("utf-8"), name
    bulk = reports.report("bulk")
    replies = [whole.Reply(**one) for one in reports.report("whole")["asked"].values()]
    tables = {
        "bulk": growth.tables(bulk["steps"], "chunks", [growth.Fit(**one) for one in bulk["fits"]]),
        "whole": whole.kinds_table(replies),
    }
    for name, lines in tables.items():
        assert "\n".join(lines) in (reports.REPORTS / f"{name}.md").read_text("utf-8"), name


def test_options_are_of_the_kind_of_their_defaults(monkeypatch: pytest.MonkeyPatch) -> None:
    said = "--size 3 --flag --many 1 2 --peer a --peer b c --one x --where here".split()
    monkeypatch.setattr("sys.argv", ["program", *said])
    given = reports.options(
        "What it does.",
        size=(1.5, "of it"),
        flag=(False, "whether"),
        many=((7,), "numbers"),
        peer=((), "names", str),
        one=(None, "of these", ("x", "y")),
        where=(None, "a folder", Path),
        left_out=((1, 2), "default"),
    )
    assert vars(given) == {
        "size": 3.0, "flag": True, "many": [1, 2], "peer": ["a", "b", "c"], "one": "x",
        "where": Path("here"), "left_out": [1, 2],
    }  # fmt: skip
