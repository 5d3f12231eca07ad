"""Tags and own metadata of documents: what a value may be, how values compare, what is asked.

A tag is a short name. Own metadata are values under keys that people choose: a text, a number or a
date. A key keeps the kind of its first value in both libraries for as long as a document has it.
Who sends a document may also know its title, authors and year better than its text shows them.
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime
from typing import Any, Literal, Self

from app.core.errors import InvalidInput
from app.core.normalisation import normalise

Value = str | int | float
"""A text, a number, or a date as `YYYY-MM-DD`."""
Kind = Literal["text", "number", "date"]

CITATION_KEY, DOI = "citation key", "DOI"
"""Keys under which a reference manager's facts are kept."""
FILE_DATE = "file date"
"""Key of the day on which a file was changed last, as who sends it knows it."""
MOST_TAGS = 64
"""Of one document, as its keys."""
MOST_LABEL_CHARACTERS = 64
"""Of a tag, and of a key."""
MOST_VALUE_CHARACTERS = 500
"""Of a value, a title, and a name of an author."""
MOST_AUTHORS = 200
_LATEST_YEAR = 9999
_EARLIEST_FILE_S = 366 * 86_400
"""Seconds since 1970: archives without times and broken clocks give the first days of that year."""
_MOST_NUMBER = 1e15
"""Numbers below it are kept exactly, as 64-bit floats."""


@dataclass(frozen=True, slots=True)
class Labels:
    """Tags, own metadata and facts that a document is given."""

    tags: tuple[str, ...] | None = None
    """All of them; None keeps those that it has."""
    metadata: Mapping[str, Value | None] = field(default_factory=dict, hash=False)
    """By key; None takes the key away, keys that are not named stay."""
    title: str | None = None
    """None, as for authors and year: what the text shows, or a person corrected."""
    authors: tuple[str, ...] | None = None
    year: int | None = None

    def __bool__(self) -> bool:
        return self.tags is not None or bool(self.metadata or self.facts)

    @property
    def facts(self) -> dict[str, Any]:
        """Return the given ones of title, authors and year, as fields of a document."""
        named = {"title": self.title, "authors": self.authors, "year": self.year}
        return {name: value for name, value in named.items() if value is not None}

    @classmethod
    def of(
        cls,
        tags: Iterable[object] | None,
        metadata: Mapping[str, object] | None,
        *,
        title: object = None,
        authors: Sequence[object] | None = None,
        year: object = None,
    ) -> Self:
        """Return checked labels.

        Raises:
            InvalidInput: A tag, a key, a value or a fact is none, or there are too many.
        """
        checked = None if tags is None else tag_list(tags)
        values = {
            key_of(key): None if value is None else value_of(key, value)
            for key, value in (metadata or {}).items()
        }
        _refuse_many(values)
        if len(authors or ()) > MOST_AUTHORS:
            raise InvalidInput(f"{len(authors or ())} authors, at most {MOST_AUTHORS} are kept")
        if year is not None and (type(year) is not int or not 0 <= year <= _LATEST_YEAR):
            raise InvalidInput(f"year {year!r:.80} must be a whole number up to {_LATEST_YEAR}")
        return cls(
            checked,
            values,
            None if title is None else _line(title, "title", MOST_VALUE_CHARACTERS),
            None
            if authors is None
            else tuple(_line(one, "author", MOST_VALUE_CHARACTERS) for one in authors),
            year,
        )

    def as_json(self) -> str:
        """Return them as `labels_from` reads them."""
        said = {"tags": self.tags, "metadata": self.metadata, **self.facts}
        given = {name: value for name, value in said.items() if value is not None}
        return json.dumps(given, ensure_ascii=False, sort_keys=True)

    def under(self, other: Labels) -> Labels:
        """Return both; what the other says of a key, of the tags or of a fact counts."""
        return replace(
            self,
            tags=self.tags if other.tags is None else other.tags,
            metadata={**self.metadata, **other.metadata},
            **other.facts,
        )

    def over(
        self, tags: tuple[str, ...], metadata: Mapping[str, Value]
    ) -> tuple[tuple[str, ...], dict[str, Value]]:
        """Return tags and metadata of a document that had these before.

        Raises:
            InvalidInput: It would have too many keys.
        """
        merged = {**metadata, **self.metadata}
        values = {key: value for key, value in merged.items() if value is not None}
        _refuse_many(values)
        return tags if self.tags is None else self.tags, values


NO_LABELS = Labels()
"""Keeps what a document has."""


def with_file_date(labels: str, changed_s: float) -> str:
    """Return labels, as JSON or empty, with the day on which their file was changed.

    `changed_s` are seconds since 1970; a time that no file can have, such as a missing one, is left
    out.
    """
    if not _EARLIEST_FILE_S < changed_s < time.time():
        return labels
    day = datetime.fromtimestamp(changed_s, UTC).date().isoformat()
    with suppress(InvalidInput):  # which the server answers
        return Labels(metadata={FILE_DATE: day}).under(labels_from(labels)).as_json()
    return labels


def found_labels(tags: object, values: Mapping[object, object]) -> Labels:
    """Return the labels that a file or a row says, without what is none.

    Args:
        tags: A list, or a text with commas; a hash before a tag is dropped.
        values: By key; only texts, numbers, dates and truth values are taken.
    """
    named = tags.split(",") if isinstance(tags, str) else tags if isinstance(tags, list) else []
    kept: list[str] = []
    for tag in named:
        with suppress(InvalidInput):
            kept = list(tag_list([*kept, str(tag).lstrip(" #")]))
    metadata: dict[str, Value | None] = {}
    for key, given in values.items():
        value = str(given)[:10] if isinstance(given, date) else given
        value = str(value).lower() if isinstance(value, bool) else value
        with suppress(InvalidInput):
            metadata[key_of(key)] = value_of(str(key), value)
        if len(metadata) == MOST_TAGS:
            break
    return Labels(tuple(kept) or None, metadata)


def _refuse_many(values: Mapping[str, object]) -> None:
    if len(values) > MOST_TAGS:
        raise InvalidInput(
            f"{len(values)} keys of metadata, at most {MOST_TAGS} are kept; remove some"
        )


def fold(text: str) -> str:
    """Return a tag or a text as filters compare it: case-folded, single spaces."""
    return " ".join(normalise(text)[0].casefold().split())


def tag_list(tags: Iterable[object]) -> tuple[str, ...]:
    """Return tags without repetitions, in order.

    Raises:
        InvalidInput: One is no tag, or there are too many.
    """
    found: dict[str, str] = {}
    for given in tags:
        tag = _line(given, "tag", MOST_LABEL_CHARACTERS)
        if "," in tag:
            raise InvalidInput(f"tag {tag!r} has a comma; send two tags")
        found.setdefault(fold(tag), tag)
    if len(found) > MOST_TAGS:
        raise InvalidInput(f"{len(found)} tags, a document has at most {MOST_TAGS}; remove some")
    return tuple(found.values())


def split_tags(texts: Iterable[str]) -> tuple[str, ...]:
    """Return the tags of texts that name one or, between commas, several."""
    return tag_list(tag for text in texts for tag in text.split(",") if tag.strip())


def key_of(given: object) -> str:
    """Return a key as it is kept.

    Raises:
        InvalidInput: It is none.
    """
    key = _line(given, "key of metadata", MOST_LABEL_CHARACTERS)
    if "=" in key:
        raise InvalidInput(f"key of metadata {key!r} has an equals sign; leave it out")
    return key


def value_of(key: str, given: object) -> Value:
    """Return a value as it is kept.

    Raises:
        InvalidInput: It is no text, number or date.
    """
    if isinstance(given, (int, float)) and not isinstance(given, bool):
        if not math.isfinite(given) or abs(given) >= _MOST_NUMBER:
            raise InvalidInput(f"metadata {key!r}: {given!r} must be below {_MOST_NUMBER:.0e}")
        return given
    return _line(given, f"metadata {key!r}", MOST_VALUE_CHARACTERS)


def _line(given: object, what: str, most: int) -> str:
    if not isinstance(given, str):
        raise InvalidInput(f"{what}: {given!r:.80} must be a text or, as a value, a number")
    text = " ".join(normalise(given)[0].split())
    if not 0 < len(text) <= most:
        raise InvalidInput(f"{what}: {given!r:.80} must have 1 to {most} characters")
    return text


def kind_of(value: Value) -> Kind:
    """Return what a value is, seen alone."""
    if not isinstance(value, str):
        return "number"
    return "text" if _day(value) is None else "date"


def fits(value: Value, kind: Kind) -> bool:
    """Return whether a value may stand under a key of a kind; a text may look like a date."""
    return kind_of(value) == kind or (kind == "text" and isinstance(value, str))


def _day(text: str) -> date | None:
    try:
        return date.fromisoformat(text) if len(text) == len("2026-01-31") else None
    except ValueError:
        return None


def comparable(value: Value) -> str:
    """Return a value as equality compares it."""
    if isinstance(value, str):
        return fold(value)
    return str(int(value)) if float(value).is_integer() else repr(float(value))


def position(value: Value) -> float | None:
    """Return where a value stands among those of its kind: a number, the day; None for a text."""
    if not isinstance(value, str):
        return float(value)
    day = _day(value)
    return None if day is None else float(day.toordinal())


def _number(text: str) -> float | None:
    try:
        number = float(text)
    except ValueError:
        return None
    return number if math.isfinite(number) else None


# What is asked of own metadata.

BETWEEN = ".."
"""Stands between the ends of a range, as in `due=2026-01-01..2026-06-30`; an end may be open."""


@dataclass(frozen=True, slots=True)
class Condition:
    """What is asked of the value under a key: that it is one of `values`, or in a range."""

    key: str
    values: tuple[str, ...] = ()
    """As `comparable` returns them; empty: a range."""
    kind: Kind = "number"
    """Of a range."""
    low: float | None = None
    high: float | None = None
    given: str = field(default="", compare=False)
    """As a person writes it, without the key."""

    @classmethod
    def equal(cls, key: str, value: object) -> Self:
        """Ask for one value; a text of digits finds the number too.

        Raises:
            InvalidInput: Key or value is none.
        """
        name = key_of(key)
        wanted = value_of(name, value)
        number = _number(wanted) if isinstance(wanted, str) else None
        values = (comparable(wanted), *([] if number is None else [comparable(number)]))
        return cls(name, tuple(dict.fromkeys(values)), given=str(wanted))

    @classmethod
    def between(cls, key: str, low: Value | None, high: Value | None) -> Self:
        """Ask for a number or a day from `low` to `high`, both included; None is open.

        Raises:
            InvalidInput: An end is neither, they are of two kinds, or both are open.
        """
        name = key_of(key)
        ends = [value_of(name, end) for end in (low, high) if end is not None]
        kinds = {kind_of(end) for end in ends}
        if len(kinds) != 1 or "text" in kinds:
            raise InvalidInput(
                f"metadata {name!r}: a range has two numbers or two dates (YYYY-MM-DD), or one and"
                " an open end"
            )
        places = [None if end is None else position(value_of(name, end)) for end in (low, high)]
        shown = BETWEEN.join("" if end is None else str(end) for end in (low, high))
        return cls(name, (), kinds.pop(), places[0], places[1], shown)

    @classmethod
    def written(cls, text: str) -> Self:
        """Return the condition that `KEY=VALUE` or `KEY=FROM..TO` says.

        Raises:
            InvalidInput: It says none.
        """
        key, sign, wanted = text.partition("=")
        if not sign:
            raise InvalidInput(f"{text!r:.80} must be KEY=VALUE, or KEY=FROM..TO for a range")
        ends = [_end(end.strip()) for end in wanted.split(BETWEEN)]
        named = [end for end in ends if end is not None]
        if len(ends) == 2 and named and all(position(end) is not None for end in named):
            return replace(cls.between(key.strip(), ends[0], ends[1]), given=wanted)
        return cls.equal(key.strip(), wanted)

    def __str__(self) -> str:
        return f"{self.key}={self.given}"

    @classmethod
    def __get_pydantic_core_schema__(cls, *_: object) -> Any:  # pydantic's
        from pydantic_core import core_schema  # noqa: PLC0415  # a parser's child reads no JSON

        return core_schema.no_info_after_validator_function(
            cls.written, core_schema.str_schema(), serialization=core_schema.to_string_ser_schema()
        )


def _end(text: str) -> Value | None:
    number = _number(text)
    return number if number is not None else text or None


def parse_object(text: str) -> dict[str, object]:
    """Return a JSON object.

    Raises:
        InvalidInput: It is none.
    """
    try:
        found = json.loads(text)
    except (ValueError, RecursionError) as exc:
        raise InvalidInput(f'{text!r:.80} must be a JSON object, as {{"year": 2026}}') from exc
    if not isinstance(found, dict):
        raise InvalidInput(f'{text!r:.80} must be a JSON object, as {{"year": 2026}}')
    return found


def labels_from(text: str) -> Labels:
    """Return the labels that a JSON object says; an empty text says none.

    Its keys are `tags`, `metadata`, `title`, `authors` and `year`, each of them if wanted.

    Raises:
        InvalidInput: It has other keys, or a value is none.
    """
    given = parse_object(text) if text.strip() else {}
    tags, metadata = given.pop("tags", None), given.pop("metadata", {})
    title, authors, year = (given.pop(name, None) for name in ("title", "authors", "year"))
    if (
        given
        or not isinstance(metadata, dict)
        or not isinstance(tags, list | None)
        or not isinstance(authors, list | None)
    ):
        raise InvalidInput(
            f"{text!r:.80} must be a JSON object with `tags` and `authors`, lists, `metadata`, an"
            " object, `title` and `year`; other keys go into `metadata`"
        )
    return Labels.of(tags, metadata, title=title, authors=authors, year=year)
