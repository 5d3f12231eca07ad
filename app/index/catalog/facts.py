"""Facts that projections are given: what is indexed of a document, what filters ask of it and of its rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class LexicalDocument:
    """What of a document is indexed: its fields and its live chunks as (chunk_id, section, text)."""

    doc: int
    doc_id: str
    title: str
    authors: tuple[str, ...]
    year: int | None
    type: str
    chunks: Sequence[tuple[int, str, str]]


@dataclass(frozen=True, slots=True)
class DocumentFacts:
    """What filters ask of a document."""

    doc: int
    doc_id: str
    type: str
    year: int | None
    authors: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class RowFacts:
    """What filters ask of a row: its document's key and its section."""

    doc: int
    section: str
