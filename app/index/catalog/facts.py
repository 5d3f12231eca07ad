"""Define the facts given to projections: indexed fields, filter values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class LexicalDocument:
    """A document's indexed fields and live chunks: (chunk_id, section, text)."""

    doc: int
    doc_id: str
    title: str
    authors: tuple[str, ...]
    year: int | None
    type: str
    chunks: Sequence[tuple[int, str, str]]
    language: str = ""
    """By whose rules the words are stemmed; empty: English."""


@dataclass(frozen=True, slots=True)
class DocumentFacts:
    """A document's values for filters."""

    doc: int
    doc_id: str
    type: str
    year: int | None
    authors: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class RowFacts:
    """A row's values for filters: its document's key and its section."""

    doc: int
    section: str
