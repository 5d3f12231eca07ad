"""Read answer sets: questions and what a good answer holds."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import get_args

from app.core.data_folder import regular_file
from app.core.errors import InvalidInput
from app.core.types import Scope


@dataclass(frozen=True, slots=True)
class AnswerCase:
    """One line of an answer set."""

    question: str
    library: Scope
    intent: str
    """`question` or `chitchat`."""
    expected_substrings: tuple[str, ...] = ()
    """Any of them in the answer makes it right."""
    keywords: tuple[str, ...] = ()
    expected_docs: tuple[str, ...] = ()
    """doc_ids or file names that should be among the sources."""
    oos: bool = False
    """Out of scope: the right answer is a refusal."""


MOST_BYTES = 64 * 2**20
"""Of an answer set."""


def load(path: Path) -> list[AnswerCase]:
    """Read an answer set in JSON Lines.

    Fields: question, library, intent, expected_substrings, keywords, expected_docs, oos.

    Raises:
        InvalidInput: The file is missing, or a line lacks a field, has an unknown one, or one of
            the wrong kind.
        TooLarge: The file is over `MOST_BYTES`.
    """
    try:
        lines = regular_file(path, MOST_BYTES).read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as exc:
        raise InvalidInput(
            f"{path.name!r} cannot be read; an answer set is a file of JSON Lines"
        ) from exc
    return [
        _case(line, f"line {number} of {path.name!r}")
        for number, line in enumerate(lines, start=1)
        if line.strip()
    ]


def _case(line: str, where: str) -> AnswerCase:
    try:
        row = json.loads(line)
    except json.JSONDecodeError as exc:
        raise InvalidInput(f"{where} is not JSON: {exc}") from exc
    return case_of(row, where)


def case_of(row: object, where: str) -> AnswerCase:
    """Return the case of a JSON object; `where` says in messages what was read.

    Raises:
        InvalidInput: A field is missing, unknown or of the wrong kind.
    """
    fields = {
        "question",
        "library",
        "intent",
        "expected_substrings",
        "keywords",
        "expected_docs",
        "oos",
    }
    if not isinstance(row, Mapping) or not {"question", "library"} <= set(row) <= fields:
        raise InvalidInput(
            f"{where} must be an object with question, library and none but"
            f" {', '.join(sorted(fields))}"
        )
    if row["library"] not in get_args(Scope):
        raise InvalidInput(
            f"{where} names the library {row['library']!r}; use one of {', '.join(get_args(Scope))}"
        )
    lists = {
        name: row.get(name, []) for name in ("expected_substrings", "keywords", "expected_docs")
    }
    for name, values in lists.items():
        if not isinstance(values, list | tuple) or not all(
            isinstance(value, str) for value in values
        ):
            raise InvalidInput(f"{where}: {name} must be a list of strings, got {values!r}")
    return AnswerCase(
        str(row["question"]),
        row["library"],
        str(row.get("intent", "question")),
        oos=bool(row.get("oos", False)),
        **{name: tuple(values) for name, values in lists.items()},
    )
