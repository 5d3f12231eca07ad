"""Store filter values of rows and documents as parallel arrays.

A filter over 100,000 rows is a few vectorised comparisons.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import numpy.typing as npt

from app.core.types import Filters
from app.index.catalog.facts import DocumentFacts, RowFacts
from app.index.catalog.rows import author_key

Mask = npt.NDArray[np.bool_]

NO_YEAR = np.iinfo(np.int32).min


class Columns:
    """Facts of a growing list of rows. Not thread-safe: the index that owns it locks."""

    def __init__(self) -> None:
        """Start without rows."""
        self._documents: dict[int, int] = {}
        self._facts: list[DocumentFacts] = []
        self._sections: dict[str, int] = {}
        self._row_document = np.empty(0, dtype=np.int32)
        self._row_section = np.empty(0, dtype=np.int32)
        self._years: npt.NDArray[np.int32] | None = None

    def __len__(self) -> int:
        """Return the number of rows."""
        return len(self._row_document)

    def set_documents(self, documents: Iterable[DocumentFacts]) -> None:
        """Add documents or replace what is known of them."""
        for facts in documents:
            at = self._documents.setdefault(facts.doc, len(self._facts))
            if at == len(self._facts):
                self._facts.append(facts)
            else:
                self._facts[at] = facts
        self._years = None

    def append(self, rows: Sequence[RowFacts]) -> None:
        """Add rows whose documents were set before."""
        documents = np.fromiter(
            (self._documents.get(row.doc, -1) for row in rows), dtype=np.int32, count=len(rows)
        )
        sections = np.fromiter(
            (self._sections.setdefault(row.section, len(self._sections)) for row in rows),
            dtype=np.int32,
            count=len(rows),
        )
        self._row_document = np.concatenate([self._row_document, documents])
        self._row_section = np.concatenate([self._row_section, sections])

    def take(self, positions: npt.NDArray[np.intp]) -> None:
        """Keep only these rows, in this order."""
        self._row_document = self._row_document[positions]
        self._row_section = self._row_section[positions]

    def mask(self, filters: Filters) -> Mask:
        """Return which rows meet every condition: bool `[rows]`."""
        mask = np.ones(len(self), dtype=np.bool_)
        if filters.sections:
            wanted = [self._sections[name] for name in filters.sections if name in self._sections]
            mask &= np.isin(self._row_section, wanted)
        if (
            filters.doc_ids
            or filters.types
            or filters.author
            or filters.year_from is not None
            or filters.year_to is not None
        ):
            # One extra entry for rows whose document is gone: index -1 reads it, and it never
            # matches.
            mask &= np.append(self._document_mask(filters), np.False_)[self._row_document]
        return mask

    def _document_mask(self, filters: Filters) -> Mask:
        mask = np.ones(len(self._facts), dtype=np.bool_)
        if filters.doc_ids:
            wanted = set(filters.doc_ids)
            mask &= np.fromiter(
                (facts.doc_id in wanted for facts in self._facts), np.bool_, len(self._facts)
            )
        if filters.types:
            kinds = set(filters.types)
            mask &= np.fromiter(
                (facts.type in kinds for facts in self._facts), np.bool_, len(self._facts)
            )
        if filters.year_from is not None or filters.year_to is not None:
            if self._years is None:
                years = (NO_YEAR if facts.year is None else facts.year for facts in self._facts)
                self._years = np.fromiter(years, np.int32, len(self._facts))
            low = NO_YEAR + 1 if filters.year_from is None else filters.year_from
            high = np.iinfo(np.int32).max if filters.year_to is None else filters.year_to
            mask &= (self._years >= low) & (self._years <= high)
        name = author_key(filters.author or "")
        if name:
            mask &= np.fromiter(
                (any(name in author for author in facts.authors) for facts in self._facts),
                np.bool_,
                len(self._facts),
            )
        return mask
