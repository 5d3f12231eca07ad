"""Find documents that say the same: equal bytes, equal texts, versions of one paper."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Literal

from app.core.serialization import PUBLIC
from app.core.text import words
from app.core.types import Document

MOST_DOCUMENTS = 20_000
"""Of a library that is looked through; a personal one has fewer."""
_LEAST_TITLE = 4
"""Words from which an equal title means one work: `Notes` and `Annual report` name many."""
_FEWEST_CHARACTERS = 40
"""Of a text from which it being equal says something."""
_VERSION = re.compile(r"v\d+\Z")

Likeness = Literal["same_bytes", "same_text", "versions"]


@dataclass(frozen=True, slots=True)
class Duplicates:
    """Documents of a library that are alike, the newest first; at least two."""

    __pydantic_config__ = PUBLIC
    likeness: Likeness
    documents: tuple[Document, ...]


def duplicates(
    documents: Iterable[Document], text_of: Callable[[Document], str]
) -> tuple[Duplicates, ...]:
    """Return groups of documents that are alike; a document is in one group at most.

    Versions are of one arXiv id, or have the same title of four words or more and the same first
    author.

    Args:
        documents: Live ones, newest first.
        text_of: Reads a document's text; asked only of documents of one length.
    """
    left = list(documents)
    found: list[Duplicates] = []
    ways: tuple[tuple[Likeness, Callable[[Document], object]], ...] = (
        ("same_bytes", lambda one: one.sha256),
        ("same_text", _text_key(left, text_of)),
        ("versions", _work),
    )
    for likeness, key_of in ways:
        groups: dict[object, list[Document]] = {}
        for one in left:
            if (key := key_of(one)) is not None:
                groups.setdefault(key, []).append(one)
        alike = [tuple(group) for group in groups.values() if len(group) > 1]
        found += [Duplicates(likeness, group) for group in alike]
        taken = {one.doc_id for group in alike for one in group}
        left = [one for one in left if one.doc_id not in taken]
    return tuple(found)


def _text_key(
    documents: Iterable[Document], text_of: Callable[[Document], str]
) -> Callable[[Document], object]:
    lengths = Counter(one.characters for one in documents)

    def key(one: Document) -> object:
        if one.characters < _FEWEST_CHARACTERS or lengths[one.characters] < 2:
            return None
        return hashlib.sha256(text_of(one).encode("utf-8", "replace")).digest()

    return key


def _work(one: Document) -> object:
    if one.arxiv_id:
        return _VERSION.sub("", one.arxiv_id)
    title = words(one.title)
    author = words(one.authors[0]) if one.authors else []
    return (tuple(title), tuple(author[-1:])) if len(title) >= _LEAST_TITLE else None
