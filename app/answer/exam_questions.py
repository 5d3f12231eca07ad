"""Define the questions and passages that test models.

The passages are about things that do not exist, so that no model knows an answer from elsewhere. In
most of them the right figure or name stands next to another one of its kind.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from app.core.types import Chunk, Document, Evidence, Hit, Library, Passage

_FILE = Path(__file__).with_name("model_test.json")


@dataclass(frozen=True, slots=True)
class ExamQuestion:
    """One question with its passages, best first."""

    text: str
    evidence: tuple[Evidence, ...]
    expected: tuple[str, ...]
    """Any of them makes an answer right; empty where the passages do not hold the answer."""

    def right(self, text: str) -> bool:
        """Return whether a text holds an expected answer as whole words."""
        return any(
            re.search(rf"(?<!\w){re.escape(one)}(?!\w)", text, re.IGNORECASE)
            for one in self.expected
        )


def exam_questions() -> tuple[ExamQuestion, ...]:
    """Return the 24 built-in questions; the last four have no answer."""
    data = json.loads(_FILE.read_text(encoding="utf-8"))
    passages = {row["name"]: _passage(at, row) for at, row in enumerate(data["passages"])}
    return tuple(
        ExamQuestion(
            row["question"],
            _evidence([passages[name] for name in row["passages"]]),
            tuple(row["expected"]),
        )
        for row in data["questions"]
    )


def _evidence(passages: Sequence[Passage]) -> tuple[Evidence, ...]:
    return tuple(Evidence(n, Hit(passage, 1.0 / n)) for n, passage in enumerate(passages, start=1))


def _passage(at: int, row: Mapping[str, str]) -> Passage:
    """Return a passage of a document that holds nothing else and lies in no library."""
    name, text = f"test:{row['name']}", row["text"]
    chunk = Chunk(at, name, Library.PUBLIC, 1, 0, 0, len(text), "body", None, text)
    document = Document(
        doc_id=name,
        library=Library.PUBLIC,
        source_key=name,
        revision=1,
        sha256="",
        title=row["title"],
        authors=(),
        year=None,
        type="text",
        state="live",
        characters=len(text),
        pages=0,
        chunks=1,
        embedded=0,
        duplicate_of=None,
        source_url=None,
        licence=None,
        added_at="",
        updated_at="",
    )
    return Passage(chunk, document)
