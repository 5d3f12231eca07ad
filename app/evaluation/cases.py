"""Read answer sets: questions and what a good answer holds."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import get_args

from app.core.errors import InvalidInput
from app.core.ids import regular_file
from app.core.types import AnswerStatus, Mode, Scope, Strategy


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


# Define query cases: what must hold of the reply to a question.


@dataclass(frozen=True, slots=True)
class QueryCase:
    """One question and what its reply must be."""

    id: str
    question: str
    library: Scope
    statuses: tuple[AnswerStatus, ...]
    """The reply has one of them."""
    mode: Mode = "general"
    strategy: Strategy = "baseline"
    retrieve_only: bool = False
    expected_docs: tuple[str, ...] = ()
    """One of these file names is among the sources' documents."""
    expected_substrings: tuple[str, ...] = ()
    """One of them stands in the answer."""
    needs_corpus: bool = True
    """False for cases that hold over an empty library too (greetings)."""


@dataclass(frozen=True, slots=True)
class CaseReply:
    """The parts of a reply that the cases check."""

    status: str
    answer: str
    titles: frozenset[str]
    """Of the sources, in lower case."""


MOST_CASES_BYTES = 16 * 2**20
"""Of a file of cases."""


def load_cases(path: Path) -> tuple[QueryCase, ...]:
    """Read a file of cases: a JSON object with `cases`.

    Raises:
        InvalidInput: The file is missing, or a case has an unknown field or value.
    """
    try:
        rows = json.loads(regular_file(path, MOST_CASES_BYTES).read_text(encoding="utf-8"))["cases"]
        cases = tuple(_query_case(row) for row in rows)
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as exc:
        raise InvalidInput(f"{path.name!r} is not a file of query cases ({exc!r})") from exc
    closed: Mapping[str, tuple[str, ...]] = {
        "library": get_args(Scope), "mode": get_args(Mode), "strategy": get_args(Strategy)
    }  # fmt: skip
    for case in cases:
        wrong = [name for name, values in closed.items() if getattr(case, name) not in values]
        if wrong or not set(case.statuses) <= set(get_args(AnswerStatus)) or not case.statuses:
            raise InvalidInput(
                f"case {case.id!r} of {path.name!r} has an unknown value in"
                f" {', '.join(wrong) or 'statuses'}"
            )
    return cases


def _query_case(row: Mapping[str, object]) -> QueryCase:
    values = {
        name: tuple(value) if isinstance(value, list) else value for name, value in row.items()
    }
    return QueryCase(**values)  # type: ignore[arg-type]  # closed sets are checked by the caller


def failures(case: QueryCase, reply: CaseReply) -> list[str]:
    """Return what does not hold, in words; empty when the case passes."""
    found = []
    if reply.status not in case.statuses:
        found.append(f"status {reply.status!r}, expected one of {', '.join(case.statuses)}")
    if case.expected_docs and not any(name.lower() in reply.titles for name in case.expected_docs):
        found.append(
            f"none of {', '.join(case.expected_docs)} among the sources {sorted(reply.titles)}"
        )
    if case.expected_substrings and not any(
        part.casefold() in reply.answer.casefold() for part in case.expected_substrings
    ):
        found.append(
            f"none of {', '.join(case.expected_substrings)} in the answer {reply.answer[:120]!r}"
        )
    return found
