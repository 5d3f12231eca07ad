"""Load questions and their answers: strings, word spans, passages, or none."""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import cast

from app.answer.intent import past_questions
from app.core.text import words
from app.core.types import Message
from app.evaluation.collections import Collection, TestPassage, TestQuestion, from_folder
from app.ingest.parsers.html import table_lines
from evaluation.lib.workbench import SEED

_QUOTED = 0.8
"""Share of the words of a span that a quote must hold."""


_DRAW = 5
"""Seed of the draw of squad's questions."""


@dataclass(frozen=True, slots=True)
class Asking:
    """A question, what makes a quote right, and the one document it is about."""

    question: TestQuestion
    spans: tuple[str, ...] = ()
    relevant: frozenset[str] = frozenset()
    document: str | None = None

    def covered(self, quoted: str) -> float:
        """Return the share of the spans of which a quote holds four fifths of the words."""
        held = Counter(words(quoted))
        return sum(_held(span, held) for span in self.spans) / max(1, len(self.spans))

    def right(self, quoted: str, passage: str | None) -> bool:
        """Return whether a quote, or the passage it comes from, answers the question."""
        if not quoted or not self.question.answerable:
            return False
        if self.spans:
            return self.covered(quoted) > 0
        if self.question.answers:
            return any(answer.lower() in quoted.lower() for answer in self.question.answers)
        return passage in self.relevant


def _held(span: str, held: Counter[str]) -> bool:
    wanted = Counter(words(span))
    return sum((wanted & held).values()) >= _QUOTED * sum(wanted.values())


@dataclass(frozen=True, slots=True)
class Asked:
    """A collection and the questions that are put to it."""

    collection: Collection
    questions: tuple[Asking, ...] = field(default=())


def squad(data: Path, most: int) -> tuple[Asked, Asked]:
    """Return the answerable and the unanswerable questions, `most` of each."""
    whole = from_folder(data / "squad")
    draw = random.Random(_DRAW)
    halves = []
    for answerable in (True, False):
        chosen = [
            q
            for q in whole.questions
            if q.answerable is answerable and (q.answers or not answerable)
        ]
        drawn = draw.sample(chosen, min(most, len(chosen)))
        name = "squad" if answerable else "squad unanswerable"
        halves.append(
            Asked(replace(whole, name=name), tuple(Asking(question) for question in drawn))
        )
    return halves[0], halves[1]


def judged(data: Path, name: str, most: int) -> Asked:
    """Return questions of which only the passage is known that answers them."""
    whole = from_folder(data / name).judged().sample(most, SEED)
    asked = (
        Asking(
            question,
            relevant=frozenset(
                passage for passage, grade in whole.relevance[question.id].items() if grade > 0
            ),
        )
        for question in whole.questions
    )
    return Asked(whole, tuple(asked))


def clapnq(data: Path) -> Asked:
    """Return real questions, half of which the passage found for them does not answer."""
    folder = data / "foreign" / "clapnq"
    spans = {str(row["_id"]): _texts(row.get("spans")) for row in rows(folder / "queries.jsonl")}
    whole = from_folder(folder)
    return Asked(whole, tuple(Asking(q, spans[q.id] or q.answers) for q in whole.questions))


def chunking(data: Path) -> Asked:
    """Return questions about three long texts."""
    folder = data / "foreign" / "chunking"
    texts = tuple(
        TestPassage(path.stem, "", path.read_text("utf-8")) for path in sorted(folder.glob("*.md"))
    )
    asked = [
        Asking(
            TestQuestion(str(line), str(row["question"]), line),
            _texts(row["references"], "content"),
        )
        for line, row in enumerate(rows(folder / "questions.jsonl"), start=1)
    ]
    return Asked(Collection("chunking", texts, (), {}), tuple(asked))


def covidqa(data: Path, most: int) -> Asked:
    """Return every second question about whole papers, each with its paper."""
    folder = data / "foreign" / "covidqa"
    texts = tuple(
        TestPassage(str(row["_id"]), "", str(row["text"]))
        for row in rows(folder / "documents.jsonl")
    )
    asked = [
        Asking(
            TestQuestion(str(n), str(row["question"]), n),
            _texts(row["answers"], "text"),
            document=str(row["doc"]),
        )
        for n, row in enumerate(rows(folder / "questions.jsonl")[::2])
    ]
    return Asked(Collection("covidqa", texts, (), {}), tuple(asked[:most]))


def tables(data: Path) -> Asked:
    """Return questions about tables; a span is what one row says of them."""
    passages, asked = [], []
    for line, row in enumerate(rows(data / "foreign" / "fetaqa" / "tables.jsonl"), start=1):
        cells = cast("list[list[str]]", row["table_array"])
        text = "\n".join([str(row["table_section_title"]), "", *table_lines(cells)])
        passages.append(TestPassage(str(row["feta_id"]), str(row["table_page_title"]), text))
        wanted: dict[int, list[str]] = {}
        for at, column in cast("list[tuple[int, int]]", row["highlighted_cell_ids"]):
            wanted.setdefault(at, []).append(cells[at][column])
        spans = tuple(" ".join(held) for at, held in wanted.items() if at > 0)
        if spans:
            question = TestQuestion(str(row["feta_id"]), str(row["question"]), line)
            asked.append(Asking(question, spans))
    return Asked(Collection("fetaqa", tuple(passages), (), {}), tuple(asked))


def conversations(data: Path) -> tuple[Asked, list[tuple[str, ...]]]:
    """Return conversations' last questions and history; corpus: all passages."""
    tasks = rows(data / "foreign" / "mtragun" / "tasks.jsonl")
    passages = {
        str(c["document_id"]): str(c["text"]) for task in tasks for c in _dicts(task["contexts"])
    }
    texts = tuple(TestPassage(name, "", text) for name, text in passages.items())
    asked, earlier = [], []
    for line, task in enumerate(tasks, start=1):
        said = [str(turn["text"]) for turn in _dicts(task["input"]) if turn["speaker"] == "user"]
        answerable = bool({"ANSWERABLE", "PARTIAL"} & set(_texts(task["answerability"])))
        relevant = frozenset(str(c["document_id"]) for c in _dicts(task["contexts"]))
        question = TestQuestion(str(task["task_id"]), said[-1], line, answerable=answerable)
        asked.append(Asking(question, relevant=relevant))
        earlier.append(tuple(past_questions([Message("user", text) for text in said[:-1]])))
    return Asked(Collection("mtragun", texts, (), {}), tuple(asked)), earlier


def rows(path: Path) -> list[Mapping[str, object]]:
    """Return the rows of a file of JSON lines."""
    return [json.loads(line) for line in path.read_text("utf-8").splitlines() if line.strip()]


def _dicts(value: object) -> Sequence[Mapping[str, object]]:
    assert isinstance(value, list)
    return value


def _texts(value: object, key: str = "") -> tuple[str, ...]:
    if not isinstance(value, list):
        return ()
    found = (str(one[key]) if key else str(one) for one in value)
    return tuple(text for text in found if words(text))
