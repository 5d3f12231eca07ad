"""Read collections of other people in the layouts that they are published in."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from app.core.errors import InvalidInput
from app.core.ids import regular_file
from app.core.text import words
from app.evaluation.collections import (
    MOST_BYTES,
    README,
    Collection,
    TestPassage,
    TestQuestion,
    json_lines,
)
from app.ingest.parsers.blocks import Cell, table_lines

Asked = tuple[TestQuestion, Sequence[str]]
"""A question, and the passages that answer it."""


def from_texts(folder: Path) -> Collection:
    """Read `*.md` and `questions.jsonl`: `question`, the `corpus` that answers, `references`."""
    files = sorted(one for one in folder.glob("*.md") if one.name != README)
    texts = [
        TestPassage(one.stem, "", regular_file(one, MOST_BYTES).read_text("utf-8")) for one in files
    ]
    return _of(folder, texts, _numbered(folder, "corpus", "references", "content"))


def from_papers(folder: Path) -> Collection:
    """Read `documents.jsonl` and `questions.jsonl`: `question`, its `doc`, and `answers` in it."""
    rows = json_lines(folder / "documents.jsonl")
    texts = [TestPassage(str(row["_id"]), "", str(row["text"])) for row in rows]
    return _of(folder, texts, _numbered(folder, "doc", "answers", "text"))


def _numbered(folder: Path, place: str, spans: str, key: str) -> Iterator[Asked]:
    for line, row in enumerate(json_lines(folder / "questions.jsonl"), start=1):
        answers = strings_of(row[spans], key)
        yield TestQuestion(str(line), str(row["question"]), line, answers), [str(row[place])]


def from_tables(folder: Path) -> Collection:
    """Read `tables.jsonl`: a table with its titles and a question on each line."""
    passages, asked = [], []
    for line, row in enumerate(json_lines(folder / "tables.jsonl"), start=1):
        name = str(row["feta_id"])
        text = "\n".join([str(row["table_section_title"]), "", *_lines_of(row["table_array"])])
        passages.append(TestPassage(name, str(row["table_page_title"]), text))
        asked.append((TestQuestion(name, str(row["question"]), line), [name]))
    return _of(folder, passages, asked)


def from_conversations(folder: Path) -> Collection:
    """Read `tasks.jsonl`: the last question of each conversation, without what came before it."""
    passages: dict[str, str] = {}
    asked = []
    for line, task in enumerate(json_lines(folder / "tasks.jsonl"), start=1):
        contexts = {str(one["document_id"]): str(one["text"]) for one in task["contexts"]}
        passages |= contexts
        said = [str(turn["text"]) for turn in task["input"] if turn["speaker"] == "user"]
        answerable = bool({"ANSWERABLE", "PARTIAL"} & set(task["answerability"]))
        question = TestQuestion(str(task["task_id"]), said[-1], line, answerable=answerable)
        asked.append((question, list(contexts)))
    return _of(folder, [TestPassage(name, "", text) for name, text in passages.items()], asked)


def strings_of(value: object, key: str = "") -> tuple[str, ...]:
    """Return the strings of a list, or under a key of its objects; those without a word left out.

    A value that is no list has none.
    """
    if not isinstance(value, list):
        return ()
    found = (str(one[key]) if key else str(one) for one in value)
    return tuple(text for text in found if words(text))


def _lines_of(table: Sequence[Sequence[str]]) -> list[str]:
    return table_lines([[Cell(cell) for cell in row] for row in table])


def _of(folder: Path, passages: Sequence[TestPassage], asked: Iterable[Asked]) -> Collection:
    pairs = list(asked)
    known = {passage.id for passage in passages}
    if missing := [name for _, names in pairs for name in names if name not in known]:
        raise InvalidInput(f"{folder.name!r} asks about {missing[0]!r}, which is no text of it")
    relevance = {question.id: dict.fromkeys(names, 1) for question, names in pairs}
    return Collection(
        folder.name, tuple(passages), tuple(question for question, _ in pairs), relevance
    )
