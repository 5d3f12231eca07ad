"""Collections from a folder, from Parquet, from one's own library."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from app.core.errors import InvalidInput
from app.core.types import Library
from app.evaluation.collections import (
    Collection,
    collections_below,
    from_datasets,
    from_folder,
    from_library,
    from_path,
)
from tests.stores import passage, shelved

CORPUS: list[dict[str, object]] = [
    {"_id": "p1", "title": "Normans", "text": "Rollo led them."},
    {"_id": "p2", "title": "", "text": "Wheat is a cereal."},
    {"_id": "p3", "title": "Blank", "text": "  "},
]
QUERIES: list[dict[str, object]] = [
    {"_id": "q1", "text": "Who led the Normans?", "answers": ["Rollo"]},
    {"_id": "q2", "text": "What is wheat?"},
    {"_id": "q3", "text": "Who led the Saxons?", "answerable": False},
    {"_id": "q4", "text": "Nobody judged this"},
]
QRELS = [("q1", "p1", 1), ("q2", "p2", 2), ("q3", "p1", 1), ("q4", "p1", 0)]


def _write(folder: Path, *, header: bool = False, nested: bool = False) -> Path:
    folder.mkdir(exist_ok=True)
    for name, rows in (("corpus.jsonl", CORPUS), ("queries.jsonl", QUERIES)):
        folder.joinpath(name).write_text(
            "".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8"
        )
    lines = ["query-id\tcorpus-id\tscore"] if header else []
    lines += ["\t".join(map(str, row)) for row in QRELS]
    target = folder / "qrels" / "test.tsv" if nested else folder / "qrels.tsv"
    target.parent.mkdir(exist_ok=True)
    target.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return folder


def _check(found: Collection) -> None:
    assert [p.id for p in found.passages] == ["p1", "p2"]
    assert found.passages[0].document == "Normans\n\nRollo led them."
    assert found.passages[1].document == "Wheat is a cereal."
    assert [q.id for q in found.judged().questions] == ["q1", "q2"]
    assert [q.id for q in found.judged().half("odd").questions] == ["q1"]
    assert [q.id for q in found.judged().half("even").questions] == ["q2"]
    assert found.relevance["q2"] == {"p2": 2}


@pytest.mark.parametrize(("header", "nested"), [(False, False), (True, True)])
def test_a_folder_in_beir_layout(tmp_path: Path, *, header: bool, nested: bool) -> None:
    found = from_folder(_write(tmp_path / "toy", header=header, nested=nested))
    assert found.name == "toy"
    assert found.questions[0].answers == ("Rollo",)
    _check(found)


def test_local_parquet_through_datasets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pa = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    monkeypatch.setenv("HF_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    folder = tmp_path / "toy"
    folder.mkdir()
    judged = [{"query-id": q, "corpus-id": p, "score": s} for q, p, s in QRELS]
    queries = [{"answers": [], "answerable": True, **row} for row in QUERIES]
    for name, rows in (("corpus", CORPUS), ("queries", queries), ("qrels", judged)):
        parquet.write_table(pa.Table.from_pylist(rows), folder / f"{name}.parquet")
    _check(from_datasets(str(folder)))


def test_what_is_wrong_is_named(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match=r"no qrels\.tsv"):
        from_folder(tmp_path)
    folder = _write(tmp_path / "toy")
    folder.joinpath("qrels.tsv").write_text("q1 p1 1\n")
    with pytest.raises(InvalidInput, match=r"line 1 of 'qrels\.tsv'"):
        from_folder(folder)
    folder.joinpath("corpus.jsonl").write_text('{"text": "no id"}\n')
    with pytest.raises(InvalidInput, match=r"line 1 of 'corpus\.jsonl'"):
        from_folder(folder)
    folder.joinpath("corpus.jsonl").write_text("{\n")
    with pytest.raises(InvalidInput, match="not JSON Lines"):
        from_folder(folder)
    folder.joinpath("corpus.jsonl").unlink()
    with pytest.raises(InvalidInput, match="cannot be read"):
        from_folder(folder)


def test_a_sample_is_a_draw_in_order(tmp_path: Path) -> None:
    found = from_folder(_write(tmp_path / "toy"))
    drawn = found.sample(2, seed=1)
    assert drawn.questions == found.sample(2, seed=1).questions
    assert len(drawn.questions) == 2
    assert found.sample(99, seed=1) is found


def test_ones_own_library_becomes_known_items() -> None:
    texts = {
        "normans": "Rollo was a Viking leader of the Norse raiders who became the first ruler of"
        " Normandy.",
        "cereals": "Wheat is a grass that people of the temperate regions grow widely for its"
        " seed, a cereal grain.",
        "short": "Too short.",
    }
    store = shelved(*(passage(text, key=key) for key, text in texts.items()))
    found = from_library(store.catalog, store.lexical, Library.PAPERS, questions=3, seed=3)
    assert found.size == 3
    assert len(found.judged().questions) == 2
    for question in found.questions:
        (doc_id,) = found.relevance[question.id]
        text = store.catalog.chunks(Library.PAPERS, doc_id)[0].text.lower()
        assert all(word in text for word in question.text.split())
        assert len(question.text.split()) <= 6


def test_documents_without_a_sentence_that_is_long_enough_cost_no_question() -> None:
    texts = {f"short{n}": "Too short." for n in range(8)}
    texts |= {
        f"long{n}": f"Wheat {n} is a grass that people of the temperate regions grow widely."
        for n in range(3)
    }
    store = shelved(*(passage(text, key=key) for key, text in texts.items()))
    for seed in range(10):
        found = from_library(store.catalog, store.lexical, Library.PAPERS, questions=2, seed=seed)
        assert len(found.questions) == 2


def test_documents_with_questions_are_a_collection(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text("# Mills")
    rows = [
        {"id": "q1", "question": "Who built it?", "file": "a.md"},
        {"id": "q2", "question": "And when?", "file": "a.md", "history": ["Who built it?"]},
        {"id": "q3", "question": "How deep is the sea?", "file": None},
    ]
    questions = tmp_path / "questions.json"
    questions.write_text(json.dumps(rows))
    found = from_path(tmp_path)
    assert [passage.file for passage in found.passages] == [tmp_path / "a.md"]
    assert [(one.id, one.answerable) for one in found.questions] == [("q1", True), ("q3", False)]
    assert found.relevance == {"q1": {"a.md": 1}}
    for wrong, said in (
        ([{"id": "q1", "question": "?", "file": "b.md"}], "names 'b.md'"),
        ([{"id": "q1"}], "no list of objects"),
        ({}, "no list of objects"),
    ):
        questions.write_text(json.dumps(wrong))
        with pytest.raises(InvalidInput, match=said):
            from_path(tmp_path)


def test_the_outermost_folders_that_are_no_collection_are_known(tmp_path: Path) -> None:
    (tmp_path / "deep").mkdir()
    _write(tmp_path / "deep" / "beir")
    (tmp_path / "deep" / "whole").mkdir()
    (tmp_path / "deep" / "whole" / "questions.json").write_text("[]")
    for name in ("scans/inner/a.pdf", "scans/b.pdf", "deep/whole/licences/MIT", "deep/notes.txt"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("no collection")
    found, others = collections_below(tmp_path)
    assert found == [tmp_path / "deep" / name for name in ("beir", "whole")]
    assert others == [tmp_path / "scans"]
    with pytest.raises(InvalidInput, match=r"no collection in 'scans'; expected .*corpus\.jsonl"):
        from_path(tmp_path / "scans")
