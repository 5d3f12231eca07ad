"""Search BM25 in Qdrant: a collection a library, a sparse vector a chunk."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

from qdrant_client import models

from app.core.edits import one_edit_away
from app.core.function_words import content_or_all
from app.core.languages import DEFAULT, LANGUAGES
from app.core.languages.detection import language_of
from app.core.text import tokenise
from app.core.types import Filters, Library, Scored
from app.index.catalog.facts import LexicalDocument
from app.index.catalog.rows import author_key
from app.index.engine.nodes import NoCollection
from app.index.engine.qdrant import SearchEngine
from app.index.files.steps import Steps
from app.index.lexical.known_terms import KnownTerms
from app.index.lexical.qdrant_points import (
    FIELDS,
    LANGUAGE,
    WORDS,
    chunk_points,
    conditions,
    held_in,
    holds,
    of_documents,
    of_ids,
    sparse,
)
from app.index.lexical.weights import BODY, SECTION, TITLE, question_vector
from app.index.options import IndexOptions

PIECE = 128
"""Chunks a request."""

MOST_TERMS = 1024
"""Distinct terms of a question, as in tantivy's index."""

MOST_TIED = 1000
"""How far beyond k a tie for the last place is followed."""

OVERFETCH = 4
"""How many times the candidates are that a question for an author asks for in its next try."""

MOST_CANDIDATES = 10_000
"""Most candidates of such a question; an author of fewer than k of them has fewer hits."""

FRESH_S = 5.0
"""How long a count of a word is used again, in seconds; other servers write meanwhile."""

EVERY = ("", "")
"""Counts every chunk, in the place of a field and its value."""

MOST_KNOWN = 10_000
"""Counts that are kept."""

COUNTERS = 8
"""Words that are counted at the same time."""


class QdrantWords:
    """The WordIndex port over one collection."""

    failed = True
    """A collection that the engine refuses to serve is made again."""

    def __init__(
        self, library: Library, engine: SearchEngine, options: IndexOptions, steps: Steps
    ) -> None:
        """Use the collection of `library`; nothing is sent yet."""
        self._name = f"{WORDS}_{library.value}"
        self._engine = engine
        self._steps = steps
        boosts = {BODY: 1.0, TITLE: options.title_boost, SECTION: options.section_boost}
        self._boosts = {field: boost for field, boost in boosts.items() if boost > 0}
        self._counters = ThreadPoolExecutor(COUNTERS, thread_name_prefix=f"{self._name}-counts")
        self._known: dict[tuple[str, str], tuple[float, int]] = {}
        """When each value of a field was counted, and how many chunks had it."""
        self._terms = KnownTerms(self._listed)
        self._lock = threading.Lock()
        self._queued: list[models.PointStruct] = []
        self._written: dict[int, list[int]] = {}
        """Chunks that the group added, by document, since its last removal."""
        self._removed: set[int] = set()

    # --- read

    @property
    def count(self) -> int:
        """Return how many chunks are committed."""
        return self._engine.count(self._name)

    def search(self, text: str, k: int, filters: Filters | None) -> list[Scored]:
        """Return up to k chunks by BM25, descending, ties by chunk id."""
        query = self._query(text)
        if query is None or k < 1:
            return []
        author = author_key(filters.author or "") if filters else ""
        found = self._by(author, query, k, filters) if author else self._best(query, k, filters)
        found.sort(key=lambda hit: (-hit[1], hit[0]))
        return [Scored(chunk_id, score) for chunk_id, score in found[:k]]

    def _best(
        self, query: models.SparseVector, k: int, filters: Filters | None
    ) -> list[tuple[int, float]]:
        """Return k hits at least where there are as many, with all that tie for the last place."""
        chosen, limit = conditions(filters), k + 1
        found = self._engine.search(self._name, WORDS, query, limit, chosen=chosen)
        while len(found) == limit and found[k - 1][1] == found[-1][1] and limit < k + MOST_TIED:
            limit = min(4 * limit, k + MOST_TIED)
            found = self._engine.search(self._name, WORDS, query, limit, chosen=chosen)
        return found

    def _by(
        self, author: str, query: models.SparseVector, k: int, filters: Filters | None
    ) -> list[tuple[int, float]]:
        """Return hits of an author: the engine compares whole names, and this asks for a part."""
        chosen, limit = conditions(filters), OVERFETCH * k
        while True:
            found = self._engine.search(self._name, WORDS, query, limit, chosen=chosen)
            names = self._engine.payload(self._name, [chunk_id for chunk_id, _ in found], "authors")
            kept = [hit for hit in found if any(author in name for name in names.get(hit[0], []))]
            if len(kept) > k or len(found) < limit or limit >= MOST_CANDIDATES:
                return kept
            limit = min(OVERFETCH * limit, MOST_CANDIDATES)

    def score(self, text: str, chunk_ids: Sequence[int]) -> dict[int, float]:
        """Return the BM25 of given chunks; those sharing no term, or unknown, are 0.0."""
        scores = dict.fromkeys(chunk_ids, 0.0)
        query = self._query(text)
        if query is not None and scores:
            chosen = of_ids(scores)
            scores.update(self._engine.search(self._name, WORDS, query, len(scores), chosen=chosen))
        return scores

    def _tokens(self, text: str) -> dict[str, int]:
        """Return how often a text holds each of its content words, most frequent first."""
        found: Counter[str] = Counter()
        for language in self.languages:
            tokens = tokenise(text, language)
            found |= Counter(content_or_all(tokens, language, language_of(text)))
        return dict(found.most_common(MOST_TERMS))

    def _query(self, text: str) -> models.SparseVector | None:
        counts = self._tokens(text)
        if not counts:
            return None
        total, frequencies = self.document_frequencies(list(counts))
        return sparse(question_vector(counts, total, frequencies, self._boosts))

    def document_frequencies(self, tokens: Sequence[str]) -> tuple[int, dict[str, int]]:
        """Return the number of chunks and how many bodies hold each stemmed token.

        They are counted in every shard, so that a word weighs the same in each.
        """
        counted = self._counted([EVERY, *((BODY, token) for token in dict.fromkeys(tokens))])
        total = counted[EVERY]
        return total, {token: min(total, counted[BODY, token]) for token in tokens}

    @property
    def languages(self) -> tuple[str, ...]:
        """Return the languages of the documents, that of most chunks first."""
        counted = self._counted([(LANGUAGE, code) for code in LANGUAGES])
        held = {code: counted[LANGUAGE, code] for code in LANGUAGES}
        found = sorted((code for code in held if held[code]), key=lambda code: -held[code])
        return tuple(found) or (DEFAULT,)

    def _counted(self, asked: Sequence[tuple[str, str]]) -> dict[tuple[str, str], int]:
        """Return how many chunks have each value of a field, as of a few seconds ago."""
        now = time.monotonic()
        with self._lock:
            held = {value: self._known[value] for value in asked if value in self._known}
        known = {value: n for value, (at, n) in held.items() if at > now - FRESH_S}
        missing = [value for value in asked if value not in known]
        counted = dict(zip(missing, self._counters.map(self._count, missing), strict=True))
        with self._lock:
            if len(self._known) > MOST_KNOWN:
                self._known.clear()
            self._known.update({value: (now, n) for value, n in counted.items()})
        return known | counted

    def _count(self, value: tuple[str, str]) -> int:
        field, token = value
        return self._engine.count(self._name, holds(field, [token]) if field else None)

    def near(self, token: str, edits: int, k: int) -> list[int]:
        """Return up to k chunks with a token within `edits` of this one, by id.

        In body or title. The engine compares whole tokens: those one edit away are listed, those
        further away are chosen from the library's most frequent terms.
        """
        near = {token} | (one_edit_away(token) if edits else set())
        if edits > 1:
            near.update(self._terms.near(token, edits))
        held = [condition for field in (BODY, TITLE) for condition in held_in(field, sorted(near))]
        return self._engine.first_ids(self._name, models.Filter(should=held), k)

    def _listed(self, most: int) -> list[str]:
        """Return the terms of titles and bodies, at most so many of each."""
        found = [self._engine.values(self._name, field, most) for field in (TITLE, BODY)]
        return list(dict.fromkeys(term for terms in found for term in terms))

    def ids(self) -> list[int]:
        """Return all committed chunk ids."""
        return sorted(self._engine.ids(self._name))

    def finds(self, chunk_id: int, text: str) -> bool:
        """Return whether a chunk's own words find it; True without words.

        They weigh alike: to count each in the library is a request a word.
        """
        counts = self._tokens(text)
        chosen, query = of_ids([chunk_id]), sparse(question_vector(counts, 1, {}, self._boosts))
        return not counts or bool(self._engine.search(self._name, WORDS, query, 1, chosen=chosen))

    # --- write

    def add(self, document: LexicalDocument) -> None:
        """Queue a document's chunks; full pieces are sent at once."""
        for point in chunk_points(document):
            self._queued.append(point)
            self._written.setdefault(document.doc, []).append(int(point.id))
        if len(self._queued) >= PIECE:
            self._send()

    def delete(self, doc: int) -> None:
        """Queue the removal of a document's chunks, committed or queued before.

        They are removed after what replaces them is there: a document is found at every moment.
        """
        self._removed.add(doc)
        self._written.pop(doc, None)

    def commit(self) -> None:
        """Make everything queued durable and searchable.

        Raises:
            SearchAway: The engine does not answer; the queue is dropped.
        """
        try:
            if self._queued:
                self._send()
            if self._removed:
                kept = [i for doc in self._removed for i in self._written.get(doc, [])]
                with self._steps.at("qdrant_words.delete"):
                    self._engine.delete(self._name, of_documents(self._removed, kept))
        finally:
            self.rollback()

    def _send(self) -> None:
        with self._steps.at("qdrant_words.upsert"):
            for at in range(0, len(self._queued), PIECE):
                self._put(self._queued[at : at + PIECE])
        self._queued = []

    def _put(self, points: Sequence[models.PointStruct]) -> None:
        try:
            self._engine.upsert(self._name, points)
        except NoCollection:
            self._engine.create(self._name, sparse=[WORDS], fields=FIELDS)
            self._engine.upsert(self._name, points)

    def rollback(self) -> None:
        """Forget what is queued; what was sent is replaced by the replay of the changes."""
        self._queued, self._written, self._removed = [], {}, set()
        with self._lock:
            self._known.clear()

    def delete_all(self) -> None:
        """Remove every chunk, durably."""
        self.rollback()
        with self._steps.at("qdrant_words.drop"):
            self._engine.drop(self._name)

    def compact(self) -> None:
        """Leave it to the engine, which rewrites a segment with many removed points."""

    def set_background(self, background: bool) -> None:
        """Ignore it: the work is the engine's."""

    def damaged(self) -> list[str]:
        """Return nothing: the engine looks after its files."""
        return []

    def lost(self) -> bool:
        """Return False: whether the engine answers is asked of the engine itself."""
        return False

    def close(self) -> None:
        """Stop counting; queued chunks are dropped."""
        self.rollback()
        self._counters.shutdown()
