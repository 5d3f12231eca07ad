"""Read answer sets: questions and what a good answer holds."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from pydantic import ConfigDict, Field, TypeAdapter, ValidationError
from pydantic.dataclasses import dataclass

from app.core.errors import InvalidInput
from app.core.ids import regular_file
from app.core.types import Scope

Words = Annotated[str, Field(min_length=1, max_length=4000)]
BODY = ConfigDict(extra="forbid")
"""Of what a request may hold: an unknown field is a mistake."""


@dataclass(frozen=True, config=BODY)
class CaseBody:
    """One line of an answer set."""

    question: Words
    library: Scope
    intent: Literal["question", "chitchat"] = "question"
    expected_substrings: tuple[Words, ...] = Field(
        default=(), max_length=50, description="the answer is right if it contains any of them"
    )
    keywords: tuple[Words, ...] = Field(default=(), max_length=50)
    expected_docs: tuple[Words, ...] = Field(
        default=(), max_length=50, description="doc_ids, file names or source keys"
    )
    oos: bool = Field(
        default=False, strict=True, description="out of scope: the right answer is a refusal"
    )


_CASE = TypeAdapter(CaseBody)
MOST_BYTES = 64 * 2**20
"""Of an answer set."""


def load(path: Path) -> list[CaseBody]:
    """Read an answer set: JSON Lines of `CaseBody`.

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
    cases = []
    for number, line in enumerate(lines, start=1):
        if line.strip():
            try:
                cases.append(_CASE.validate_json(line))
            except ValidationError as exc:
                raise InvalidInput(f"line {number} of {path.name!r}: {in_words(exc)}") from exc
    return cases


def in_words(error: ValidationError) -> str:
    """Return a model's first complaint: which field, what was expected, what was given."""
    first = error.errors(include_url=False)[0]
    where = ".".join(map(str, first["loc"]))
    return f"{where}: {first['msg']}, got {first['input']!r:.200}" if where else first["msg"]
