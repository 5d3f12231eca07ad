"""Search BM25 in Qdrant: a collection a library, a sparse vector a chunk."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

from qdrant_client import models

from app.core.function_words import content_or_all
from app.core.text import tokenise
from app.core.types import Filters, Library, Scored
from app.index.catalog.facts import LexicalDocument
from app.index.catalog.rows import author_key
from app.index.engine.qdrant import NoCollection, SearchEngine
from app.index.files.steps import Steps
from app.index.lexical.qdrant_points import (
    FIELDS,
    WORDS,
    chunk_points,
    conditions,
    held_in,
    holds,
    of_documents,
    one_edit_away,
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
        self._known: dict[str | None, tuple[float, int]] = {}
        """When each token was counted, and what it was; None counts chunks."""
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
            chosen = models.Filter(must=[models.HasIdCondition(has_id=list(scores))])
            scores.update(self._engine.search(self._name, WORDS, query, len(scores), chosen=chosen))
        return scores

    def _query(self, text: str) -> models.SparseVector | None:
        counts = dict(Counter(content_or_all(tokenise(text))).most_common(MOST_TERMS))
        if not counts:
            return None
        total, frequencies = self.document_frequencies(list(counts))
        weights = question_vector(counts, total, frequencies, self._boosts)
        return models.SparseVector(indices=list(weights), values=list(weights.values()))

    def document_frequencies(self, tokens: Sequence[str]) -> tuple[int, dict[str, int]]:
        """Return the number of chunks and how many bodies hold each stemmed token.

        They are counted in every shard, so that a word weighs the same in each.
        """
        asked: list[str | None] = [None, *dict.fromkeys(tokens)]
        now = time.monotonic()
        with self._lock:
            known = {
                token: held[1]
                for token in asked
                if (held := self._known.get(token)) and held[0] > now - FRESH_S
            }
        missing = [token for token in asked if token not in known]
        counted = dict(zip(missing, self._counters.map(self._counted, missing), strict=True))
        with self._lock:
            if len(self._known) > 10_000:
                self._known.clear()
            self._known.update({token: (now, n) for token, n in counted.items()})
        known |= counted
        total = known[None]
        return total, {token: min(total, known[token]) for token in tokens}

    def _counted(self, token: str | None) -> int:
        return self._engine.count(self._name, None if token is None else holds(BODY, [token]))

    def near(self, token: str, edits: int, k: int) -> list[int]:
        """Return up to k chunks with a token within `edits` of this one, by id.

        In body or title. The engine compares whole tokens, so the tokens one edit away are listed;
        those two edits away are too many, and are not found.
        """
        tokens = [token] if edits == 0 else sorted(one_edit_away(token) | {token})
        chosen = models.Filter(should=[*held_in(BODY, tokens), *held_in(TITLE, tokens)])
        return self._engine.first_ids(self._name, chosen, k)

    def ids(self) -> list[int]:
        """Return all committed chunk ids."""
        return sorted(self._engine.ids(self._name))

    def finds(self, chunk_id: int, text: str) -> bool:
        """Return whether a chunk's own words find it; True without words."""
        return not tokenise(text) or self.score(text, [chunk_id])[chunk_id] > 0

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
