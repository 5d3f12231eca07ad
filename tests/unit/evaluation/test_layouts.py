"""Collections of other people, in the layouts that they are published in."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from app.core.errors import InvalidInput
from evaluation.lib.layouts import from_conversations, from_papers, from_tables, from_texts

READ = {
    "texts": from_texts,
    "papers": from_papers,
    "tables": from_tables,
    "talks": from_conversations,
}


def _lines(path: Path, *rows: object) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")


def _published(folder: Path) -> None:
    """Write a small collection of each layout below a folder."""
    _lines(
        folder / "texts" / "questions.jsonl",
        {"question": "Who built it?", "corpus": "mill", "references": [{"content": "Ada Pell"}]},
        {"question": "When is low tide?", "corpus": "tide", "references": [{"content": "Noon."}]},
    )
    for name in ("mill", "tide", "README"):
        (folder / "texts" / f"{name}.md").write_text(f"# The {name}\n\nAda Pell. Noon.\n")
    _lines(folder / "papers" / "documents.jsonl", {"_id": "c0", "text": "Copper is red."})
    _lines(
        folder / "papers" / "questions.jsonl",
        {"doc": "c0", "question": "How does it look?", "answers": [{"text": "red"}, {"text": "."}]},
    )
    grid = [["Year", "Role"], ["2015", "Sanjana"], ["2016", "Pernia"]]
    _lines(
        folder / "tables" / "tables.jsonl",
        {
            "feta_id": "7",
            "table_page_title": "Sharma",
            "table_section_title": "Television",
            "table_array": grid,
            "question": "Who was she in 2016?",
        },
    )
    talk = [("user", "Who built the mill?"), ("agent", "Ada Pell."), ("user", "And when?")]
    said = [{"speaker": speaker, "text": text} for speaker, text in talk]
    held = [{"document_id": "m", "text": "The mill is of 1802."}]
    _lines(
        folder / "talks" / "tasks.jsonl",
        {"task_id": "1", "contexts": held, "input": said, "answerability": ["ANSWERABLE"]},
        {"task_id": "2", "contexts": [], "input": said[:1], "answerability": ["UNANSWERABLE"]},
    )


def test_layouts_of_published_collections(tmp_path: Path) -> None:
    _published(tmp_path)
    found = {name: read(tmp_path / name) for name, read in READ.items()}
    asked = {
        name: [(q.id, q.text, q.line, q.answers, dict(one.relevance[q.id])) for q in one.questions]
        for name, one in found.items()
    }
    assert asked == {
        "texts": [
            ("1", "Who built it?", 1, ("Ada Pell",), {"mill": 1}),
            ("2", "When is low tide?", 2, ("Noon.",), {"tide": 1}),
        ],
        "papers": [("1", "How does it look?", 1, ("red",), {"c0": 1})],
        "tables": [("7", "Who was she in 2016?", 1, (), {"7": 1})],
        "talks": [("1", "And when?", 1, (), {"m": 1}), ("2", "Who built the mill?", 2, (), {})],
    }
    assert [one.id for one in found["talks"].judged().questions] == ["1"]
    assert [one.id for one in found["texts"].passages] == ["mill", "tide"]
    table = "Year | Role\nYear: 2015 | Role: Sanjana\nYear: 2016 | Role: Pernia"
    assert found["tables"].passages[0].document == f"Sharma\n\nTelevision\n\n{table}"


def test_a_published_collection_that_is_damaged_is_named(tmp_path: Path) -> None:
    _published(tmp_path)
    (tmp_path / "texts" / "tide.md").unlink()
    with pytest.raises(InvalidInput, match="asks about 'tide', which is no text of it"):
        from_texts(tmp_path / "texts")
