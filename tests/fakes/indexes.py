"""The read side of the index in memory: a catalog, exact nearest neighbours and BM25 by the textbook."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from datetime import date

import numpy as np

from app.core.errors import NotFound
from app.core.languages import language_of
from app.core.text import content_or_all, edit_distance, tokenise
from app.core.types import (
    Chunk,
    Condition,
    Document,
    Filters,
    FloatArray,
    Heading,
    Library,
    LibraryCounts,
    Passage,
    Scored,
    TextSpan,
    Value,
)
from app.core.vectors import cosine_distances


def matches(passage: Passage, filters: Filters | None) -> bool:
    """Whether a passage fulfils every given condition."""
    if not filters:
        return True
    chunk, document = passage.chunk, passage.document
    return (
        (not filters.sections or chunk.section in filters.sections)
        and (not filters.doc_ids or chunk.doc_id in filters.doc_ids)
        and (not filters.types or document.type in filters.types)
        and (
            filters.year_from is None
            or (document.year is not None and document.year >= filters.year_from)
        )
        and (
            filters.year_to is None
            or (document.year is not None and document.year <= filters.year_to)
        )
        and (
            not filters.author
            or any(filters.author.lower() in author.lower() for author in document.authors)
        )
        and (
            not filters.tags
            or any(tag.lower() in map(str.lower, document.tags) for tag in filters.tags)
        )
        and all(_holds(asked, document.metadata.get(asked.key)) for asked in filters.metadata)
    )


def _holds(asked: Condition, value: Value | None) -> bool:
    if value is None:
        return False
    if asked.values:
        return str(value).lower() in asked.values
    ordered = date.fromisoformat(value).toordinal() if isinstance(value, str) else value
    return (asked.low is None or asked.low <= ordered) and (
        asked.high is None or ordered <= asked.high
    )


class MemoryCatalog:
    """Passages by id; `gone` ones are no longer live."""

    def __init__(self, passages: Sequence[Passage] = ()) -> None:
        self.by_library: dict[Library, dict[int, Passage]] = {library: {} for library in Library}
        for passage in passages:
            self.by_library[passage.chunk.library][passage.chunk.chunk_id] = passage
        self.gone: set[int] = set()
        self.read: list[int] = []
        """Ids asked for, in order."""

    def moment(self) -> AbstractContextManager[None]:
        return nullcontext()

    def outlines(
        self, library: Library, named: Collection[tuple[str, int]]
    ) -> Mapping[tuple[str, int], tuple[Heading, ...]]:
        return {}

    def passages(self, library: Library, chunk_ids: Sequence[int]) -> dict[int, Passage]:
        self.read.extend(chunk_ids)
        known = self.by_library[library]
        return {
            chunk_id: known[chunk_id]
            for chunk_id in chunk_ids
            if chunk_id in known and chunk_id not in self.gone
        }

    def document(self, library: Library, doc_id: str) -> Document:
        for passage in self.by_library[library].values():
            if passage.document.doc_id == doc_id:
                return passage.document
        raise NotFound(f"no document {doc_id!r} in library {library.value!r}")

    def documents(
        self, library: Library, query: str = "", cursor: str | None = None, limit: int = 50
    ) -> tuple[list[Document], str | None]:
        documents = {
            p.document.doc_id: p.document
            for p in self.by_library[library].values()
            if query.casefold() in p.document.title.casefold()
        }
        found = [
            document
            for doc_id, document in sorted(documents.items())
            if cursor is None or doc_id > cursor
        ]
        return found[:limit], found[limit - 1].doc_id if len(found) > limit else None

    def chunks(self, library: Library, doc_id: str, revision: int | None = None) -> list[Chunk]:
        chunks = [p.chunk for p in self.by_library[library].values() if p.chunk.doc_id == doc_id]
        return sorted(
            (c for c in chunks if revision in (None, c.revision)), key=lambda c: c.ordinal
        )

    def text(
        self,
        library: Library,
        doc_id: str,
        start: int = 0,
        end: int | None = None,
        revision: int | None = None,
    ) -> TextSpan:
        chunks = self.chunks(library, doc_id, revision)
        if not chunks:
            raise NotFound(f"no document {doc_id!r} in library {library.value!r}")
        length = max(chunk.end for chunk in chunks)
        characters = [" "] * length
        for chunk in chunks:
            characters[chunk.start : chunk.end] = chunk.text
        stop = length if end is None else min(end, length)
        return TextSpan("".join(characters[start:stop]), start, stop, length, chunks[0].revision)

    def counts(self, library: Library) -> LibraryCounts:
        live = [p for i, p in self.by_library[library].items() if i not in self.gone]
        return LibraryCounts(
            len({p.document.doc_id for p in live}),
            len(live),
            len(live),
            sum(len(p.chunk.text) for p in live),
        )


class ExactVectors:
    """Every vector compared, nothing approximate."""

    def __init__(self, catalog: MemoryCatalog) -> None:
        self._catalog = catalog
        self.rows: dict[Library, dict[int, FloatArray]] = {library: {} for library in Library}
        self.searched: list[Library] = []

    def add(self, library: Library, chunk_ids: Sequence[int], vectors: FloatArray) -> None:
        """Store rows of norm 1."""
        self.rows[library].update(zip(chunk_ids, vectors, strict=True))

    def search(
        self, library: Library, query: FloatArray, k: int, filters: Filters | None = None
    ) -> list[Scored]:
        self.searched.append(library)
        known = self._catalog.by_library[library]
        rows = {
            i: row
            for i, row in self.rows[library].items()
            if i in known and matches(known[i], filters)
        }
        if not rows:
            return []
        ids = list(rows)
        distances = cosine_distances(query, np.stack(list(rows.values())))
        return [
            Scored(ids[at], float(distances[at]))
            for at in np.argsort(distances, kind="stable")[:k].tolist()
        ]

    def fetch(self, library: Library, chunk_ids: Sequence[int]) -> dict[int, FloatArray]:
        rows = self.rows[library]
        return {chunk_id: rows[chunk_id] for chunk_id in chunk_ids if chunk_id in rows}

    def count(self, library: Library) -> int:
        return len(self.rows[library])


class TextbookBM25:
    """Okapi BM25 with Lucene's idf over title and body as one field, k1 = 1.2, b = 0.75; Robertson and Zaragoza 2009."""

    K1 = 1.2
    B = 0.75

    def __init__(self, catalog: MemoryCatalog) -> None:
        self._catalog = catalog
        self._bags = {
            library: {
                i: Counter(
                    tokenise(
                        f"{'' if p.chunk.text.startswith(p.document.title) else p.document.title}"
                        f" {p.chunk.text}",
                        p.document.language or "en",
                    )
                )
                for i, p in known.items()
            }
            for library, known in catalog.by_library.items()
        }
        self.searched: list[Library] = []

    def search(
        self, library: Library, text: str, k: int, filters: Filters | None = None
    ) -> list[Scored]:
        self.searched.append(library)
        known = self._catalog.by_library[library]
        scores = self.score(library, text, [i for i, p in known.items() if matches(p, filters)])
        found = sorted(((score, -i) for i, score in scores.items() if score > 0), reverse=True)[:k]
        return [Scored(-i, score) for score, i in found]

    def score(self, library: Library, text: str, chunk_ids: Sequence[int]) -> dict[int, float]:
        bags = self._bags[library]
        n = len(bags)
        mean = sum(bag.total() for bag in bags.values()) / n if n else 1.0
        tokens = {
            token
            for code in self.languages(library)
            for token in content_or_all(tokenise(text, code), code, language_of(text))
        }
        total, frequencies = self.document_frequencies(library, list(tokens))
        idf = {t: math.log(1 + (total - df + 0.5) / (df + 0.5)) for t, df in frequencies.items()}
        return {
            i: sum(
                idf[t]
                * bags[i][t]
                * (self.K1 + 1)
                / (bags[i][t] + self.K1 * (1 - self.B + self.B * bags[i].total() / mean))
                for t in tokens
                if bags[i][t]
            )
            for i in chunk_ids
            if i in bags
        }

    def near(self, library: Library, token: str, edits: int, k: int) -> list[int]:
        held = ((i, bag) for i, bag in self._bags[library].items())
        return [i for i, bag in held if any(edit_distance(token, other) <= edits for other in bag)][
            :k
        ]

    def languages(self, library: Library) -> tuple[str, ...]:
        passages = self._catalog.by_library[library].values()
        counts = Counter(passage.document.language or "en" for passage in passages)
        return tuple(code for code, _ in counts.most_common()) or ("en",)

    def document_frequencies(
        self, library: Library, tokens: Sequence[str]
    ) -> tuple[int, dict[str, int]]:
        bags = self._bags[library]
        return len(bags), {token: sum(token in bag for bag in bags.values()) for token in tokens}
