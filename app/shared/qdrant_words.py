"""Search BM25 in Qdrant: one collection per library, one sparse vector per chunk."""

from __future__ import annotations

import logging
import math
import string
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from concurrent.futures import Future, wait
from contextlib import suppress
from functools import partial
from hashlib import blake2b
from typing import Generic, TypeVar

import numpy as np
from qdrant_client import models

from app.core.errors import StorageError
from app.core.languages import DEFAULT, LANGUAGES, language_of
from app.core.lazy import lazy
from app.core.text import content_or_all, edit_distance, one_edit_away, tokenise
from app.core.types import Filters, Library, Scored
from app.shared.qdrant import WORK_S, WRITERS, NoCollection, SearchEngine
from app.storage.catalog.rows import LexicalDocument, author_key
from app.storage.files.durable import Steps
from app.storage.options import IndexOptions
from app.storage.words.port import NO_SECTION, SharedWords, WordIndex

log = logging.getLogger(__name__)

Found = TypeVar("Found")

# Weigh words for an engine that multiplies sparse vectors: BM25 in two halves.

K1, B = 1.2, 0.75
"""As tantivy's (Bm25Weight), so that both rank alike."""

BODY, TITLE, SECTION = "body", "title", "section"
"""The fields that are searched; the same word in two of them is two dimensions."""

AVERAGE: Mapping[str, float] = {BODY: 160.0, TITLE: 8.0, SECTION: 3.0}
"""Tokens of a field on average; ADR 0251 says how little it matters."""


KEPT_DIMENSIONS = 400_000
"""Tokens of a field whose dimensions are remembered: 50 MB."""


class Dimensions(dict[str, int]):
    """The dimensions of a field's tokens, from 0 below 2^32.

    Two tokens share one by chance: one pair in a vocabulary of 100,000.
    """

    def __init__(self, field: str) -> None:
        super().__init__()
        self._field = field

    def __missing__(self, token: str) -> int:
        if len(self) >= KEPT_DIMENSIONS:
            self.clear()
        digest = blake2b(f"{self._field}\0{token}".encode(), digest_size=4).digest()
        self[token] = found = int.from_bytes(digest)
        return found


DIMENSIONS = {field: Dimensions(field) for field in AVERAGE}


def chunk_vector(counts: Mapping[str, Counter[str]]) -> dict[int, float]:
    """Return a chunk's half by dimension: a saturated count for each field's token."""
    found: dict[int, float] = {}
    for field, held in counts.items():
        norm = K1 * (1 - B + B * held.total() / AVERAGE[field])
        for at, tf in zip(map(DIMENSIONS[field].__getitem__, held), held.values(), strict=True):
            weight = tf * (K1 + 1) / (tf + norm)
            found[at] = found[at] + weight if at in found else weight
    return found


def question_vector(
    counts: Mapping[str, int],
    total: int,
    frequencies: Mapping[str, int],
    boosts: Mapping[str, float],
) -> dict[int, float]:
    """Return the question's half by dimension.

    Args:
        counts: How often the question holds each token.
        total: Chunks of the library.
        frequencies: How many bodies hold each token.
        boosts: Weight of each field, above 0.
    """
    found: dict[int, float] = {}
    for token, n in counts.items():
        weight = n * idf(frequencies.get(token, 0), total)
        for field, boost in boosts.items():
            at = DIMENSIONS[field][token]
            found[at] = found.get(at, 0.0) + boost * weight
    return found


def idf(frequency: int, total: int) -> float:
    """Return how telling a token is, above 0: ln(1 + (N - n + .5) / (n + .5))."""
    held = min(frequency, total)
    return math.log(1 + (total - held + 0.5) / (held + 0.5))


# Turn chunks into points of words, and what is asked of them into filters of Qdrant.

WORDS = "words"
"""The name of a point's vector, and how the names of these collections begin."""

LANGUAGE = "language"
"""The payload by whose rules a chunk's words are stemmed."""

FIELDS = {
    "doc": models.PayloadSchemaType.INTEGER,
    "year": models.PayloadSchemaType.INTEGER,
    **dict.fromkeys(
        ("doc_id", "type", "section", LANGUAGE, BODY, TITLE), models.PayloadSchemaType.KEYWORD
    ),
}
"""Payload that filters name; the tokens of body and title count and find single words."""


def chunk_points(document: LexicalDocument) -> Iterator[models.PointStruct]:
    """Yield one point a chunk, in order."""
    language = document.language or DEFAULT
    title = Counter(tokenise(document.title, language))
    authors = [author_key(name) for name in document.authors]
    for chunk_id, section, text in document.chunks:
        counts = {BODY: Counter(tokenise(text, language)), TITLE: title}
        if section != NO_SECTION:
            counts[SECTION] = Counter(tokenise(section, language))
        vector = chunk_vector(counts)
        payload = {
            "doc": document.doc,
            "doc_id": document.doc_id,
            "type": document.type,
            "section": section,
            LANGUAGE: language,
            "authors": authors,
            "year": document.year,
            BODY: list(counts[BODY]),
            TITLE: list(title),
        }
        yield models.PointStruct(id=chunk_id, vector={WORDS: sparse(vector)}, payload=payload)


def sparse(weights: Mapping[int, float]) -> models.SparseVector:
    """Return weights by dimension as the engine takes them."""
    return models.SparseVector(indices=list(weights), values=list(weights.values()))


def holds(field: str, values: Sequence[str]) -> models.Filter:
    """Return a filter for points whose field has one of these values."""
    return models.Filter(must=held_in(field, values))


def held_in(field: str, values: Sequence[str]) -> list[models.Condition]:
    return [models.FieldCondition(key=field, match=models.MatchAny(any=list(values)))]


def of_ids(chunk_ids: Iterable[int]) -> models.Filter:
    """Return a filter for these points."""
    return models.Filter(must=[models.HasIdCondition(has_id=list(chunk_ids))])


def conditions(filters: Filters | None) -> models.Filter | None:
    """Return what the payload has to meet, the author aside; None where everything does."""
    if not filters:
        return None
    must: list[models.Condition] = []
    named = {"section": filters.sections, "doc_id": filters.doc_ids, "type": filters.types}
    for field, values in named.items():
        if values:
            must += held_in(field, values)
    if filters.year_from is not None or filters.year_to is not None:
        between = models.Range(gte=filters.year_from, lte=filters.year_to)
        must.append(models.FieldCondition(key="year", range=between))
    without = held_in("doc_id", filters.exclude_doc_ids) if filters.exclude_doc_ids else []
    return models.Filter(must=must, must_not=without) if must or without else None


# Find the terms of a library that are a few edits from a word.

MOST_KNOWN_TERMS = 200_000
"""Terms that are kept, the most frequent first: 10 MB."""

KNOWN_TERMS_FRESH_S = 300.0
"""How long terms and their counts are used again, in seconds, while documents are added."""

GROWN = 0.1
"""By which share a library grows or shrinks at most before its terms are counted again."""

COUNTED_AT_ONCE = 5_000
"""Chunks up to which languages and terms are counted again at the first question after a write of
this process: some milliseconds. Of more it takes half a second (300,000), and no question waits."""

SHORTEST, LONGEST = 4, 24
"""Letters of a term that is kept; shorter ones are near to too many."""


class LetterCounts:
    """Terms with the number of each letter in them; immutable.

    An edit changes two of these numbers by one at most, so that few terms are compared by edits.
    """

    def __init__(self, terms: Iterable[str]) -> None:
        self._terms = [term for term in terms if _is_word(term)]
        signs = np.array(self._terms, dtype=f"S{LONGEST}").view(np.uint8).reshape(-1, LONGEST)
        letters = [(signs == ord(letter)).sum(axis=1) for letter in string.ascii_lowercase]
        self._counts = np.array(letters, dtype=np.int8)

    def near(self, word: str, edits: int) -> list[str]:
        """Return the terms within `edits` of a word, in the order of the list."""
        own = np.array([word.count(letter) for letter in string.ascii_lowercase], dtype=np.int8)
        far = np.abs(self._counts - own[:, None]).sum(axis=0, dtype=np.int16)
        alike = [self._terms[at] for at in np.flatnonzero(far <= 2 * edits)]
        return [term for term in alike if edit_distance(word, term) <= edits]


class Terms:
    """The terms of a library at one time, and how many chunks have each."""

    def __init__(self, bodies: Mapping[str, int], titles: Mapping[str, int], chunks: int) -> None:
        """Keep up to MOST_KNOWN_TERMS of each, the most frequent first."""
        self.bodies = dict(bodies)
        self.titles = titles
        self.chunks = chunks

    def are_of(self, chunks: int) -> bool:
        """Return whether they still tell of a library that has this many chunks now."""
        grown = GROWN * self.chunks if self.chunks > COUNTED_AT_ONCE else 0
        return abs(chunks - self.chunks) <= grown

    @property
    def whole(self) -> bool:
        """Return whether no body has another term."""
        return len(self.bodies) < MOST_KNOWN_TERMS

    @lazy
    def letters(self) -> LetterCounts:
        return LetterCounts(dict.fromkeys((*self.titles, *self.bodies)))

    def near(self, word: str, edits: int) -> list[str]:
        """Return terms within `edits` of a word; none for a number or an identifier."""
        return self.letters.near(word, edits) if _is_word(word) else []


class Counted(Generic[Found]):
    """What the engine counts of a library; thread-safe.

    No question waits for it but the first: it is made again in a thread, and the one before serves
    in the meantime.
    """

    def __init__(self, count: Callable[[], Found], name: str) -> None:
        """Count by `count`, which may raise StorageError; nothing is asked yet."""
        self._count = count
        self._name = name
        self._found: Found | None = None
        self._made_s = -math.inf
        self._counting = False
        self._lock = threading.Lock()

    def get(self, stale: Callable[[Found, float], bool]) -> Found:
        """Return the last count; have it made again if it is stale, told its age in seconds.

        Raises:
            StorageError: There is none yet, and the engine does not count.
        """
        with self._lock:
            if self._found is None:
                self._found, self._made_s = self._count(), time.monotonic()
            elif not self._counting and stale(self._found, time.monotonic() - self._made_s):
                self._counting = True
                before = (self._found,)
                threading.Thread(
                    target=self._again, args=before, name=self._name, daemon=True
                ).start()
            return self._found

    def _again(self, before: Found) -> None:
        try:
            found = self._count()
            with self._lock:
                if self._found is before:  # else it was forgotten since
                    self._found, self._made_s = found, time.monotonic()
        except StorageError as exc:
            log.warning("the %s could not be counted: %s", self._name, exc.message)
        finally:
            self._counting = False

    def forget(self, which: Callable[[Found], object] = lambda _: True) -> None:
        """Let the next question count, if the last count is such a one."""
        with self._lock:
            if self._found is not None and which(self._found):
                self._found = None


def _is_word(term: str) -> bool:
    return SHORTEST <= len(term) <= LONGEST and term.isascii() and term.isalpha()


# Search and write a collection: the WordIndex port.

PIECE = 512
"""Chunks a request, 2 MB: each costs every shard a write of its log."""

MOST_TERMS = 1024
"""Distinct terms of a question, as in tantivy's index."""

MOST_TIED = 1000
"""How far beyond k a tie for the last place is followed."""

OVERFETCH = 4
"""How many times the candidates are that a question for an author asks for in its next try."""

MOST_CANDIDATES = 10_000
"""Most candidates of such a question; an author of fewer than k of them has fewer hits."""

FRESH_S = 5.0
"""How old the counts of languages are before a question has them made again, in seconds."""


class QdrantWords(SharedWords):
    """The words of a library in one collection."""

    failed = True
    """A collection that the engine refuses to serve is made again."""

    def __init__(
        self,
        library: Library,
        engine: SearchEngine,
        options: IndexOptions,
        steps: Steps,
        name: str = "",
    ) -> None:
        """Use the collection `name` of `engine`; empty: that which the library is searched in.

        Nothing is sent yet.
        """
        self.name = name or f"{WORDS}_{library.value}"
        self._engine = engine
        self._steps = steps
        self._like_this = partial(QdrantWords, library, engine, options, steps)
        self._filled: QdrantWords | None = None
        """What is filled next to this one."""
        self.seen = self.lacking = False
        """Whether the collection was there: if it is gone, it was lost."""
        boosts = {BODY: 1.0, TITLE: options.title_boost, SECTION: options.section_boost}
        self._boosts = {field: boost for field, boost in boosts.items() if boost > 0}
        self._languages = Counted(self._count_languages, f"languages of {self.name}")
        self._terms = Counted(self._count_terms, f"terms of {self.name}")
        self._queued: list[models.PointStruct] = []
        self._written: set[int] = set()
        """Chunks that the group added, since their last removal."""
        self._written_in: set[str] = set()
        """Languages of the documents that the group added."""
        self._sent: deque[Future[None]] = deque()
        """Requests of the group that are under way, in order."""
        self._removed: set[int] = set()

    # --- read

    @property
    def count(self) -> int:
        return self._engine.count(self.name, timeout_s=WORK_S)

    @property
    def count_agreed(self) -> int:
        return self._engine.count(self.name, agreed=True, timeout_s=WORK_S)

    def search(self, text: str, k: int, filters: Filters | None) -> list[Scored]:
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
        found = self._found(query, limit, chosen=chosen)
        while len(found) == limit and found[k - 1][1] == found[-1][1] and limit < k + MOST_TIED:
            limit = min(4 * limit, k + MOST_TIED)
            found = self._found(query, limit, chosen=chosen)
        return found

    def _found(
        self, query: models.SparseVector, n: int, *, chosen: models.Filter | None
    ) -> list[tuple[int, float]]:
        """Return hits; none where the collection is not there, and note that it was lost."""
        try:
            found = self._engine.search(self.name, WORDS, query, n, chosen=chosen)
        except NoCollection:
            self.lacking |= self.seen
            return []
        self.seen = True
        return found

    def _by(
        self, author: str, query: models.SparseVector, k: int, filters: Filters | None
    ) -> list[tuple[int, float]]:
        """Return hits of an author: the engine compares whole names, and this asks for a part."""
        chosen, limit = conditions(filters), OVERFETCH * k
        while True:
            found = self._found(query, limit, chosen=chosen)
            names = self._engine.payload(self.name, [chunk_id for chunk_id, _ in found], "authors")
            kept = [hit for hit in found if any(author in name for name in names.get(hit[0], []))]
            if len(kept) > k or len(found) < limit or limit >= MOST_CANDIDATES:
                return kept
            limit = min(OVERFETCH * limit, MOST_CANDIDATES)

    def score(self, text: str, chunk_ids: Sequence[int]) -> dict[int, float]:
        scores = dict.fromkeys(chunk_ids, 0.0)
        query = self._query(text)
        if query is not None and scores:
            chosen = of_ids(scores)
            scores.update(self._found(query, len(scores), chosen=chosen))
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

        As of a few minutes ago, and about: no question counts. All shards are counted, so that a
        word weighs the same in each.
        """
        total, terms = sum(self._counted().values()), self._known()
        for token in () if terms.whole else dict.fromkeys(tokens):
            if token not in terms.bodies:  # rarer than those that are listed
                chosen = holds(BODY, [token])
                terms.bodies[token] = self._engine.count(self.name, chosen, exact=False)
        return total, {token: min(total, terms.bodies.get(token, 0)) for token in tokens}

    @property
    def languages(self) -> tuple[str, ...]:
        counted = self._counted()
        found = sorted((code for code in LANGUAGES if counted.get(code)), key=lambda c: -counted[c])
        return tuple(found) or (DEFAULT,)

    def _counted(self) -> dict[str, int]:
        """Return how many chunks there are of each language, as of a few seconds ago."""
        return self._languages.get(lambda _, age_s: age_s > FRESH_S)

    def _count_languages(self) -> dict[str, int]:
        return self._engine.facet(self.name, LANGUAGE, len(LANGUAGES))

    def _known(self) -> Terms:
        """Return the terms as of a few minutes ago."""
        chunks = sum(self._counted().values())
        return self._terms.get(
            lambda terms, age_s: age_s > KNOWN_TERMS_FRESH_S or not terms.are_of(chunks)
        )

    def _count_terms(self) -> Terms:
        bodies, titles = (
            self._engine.facet(self.name, field, MOST_KNOWN_TERMS) for field in (BODY, TITLE)
        )
        return Terms(bodies, titles, sum(self._counted().values()))

    def renew(self) -> None:
        """Count again, in threads, what other processes changed."""
        with suppress(StorageError):  # the next question counts
            self._languages.get(lambda *_: True)
            self._known()

    def near(self, token: str, edits: int, k: int) -> list[int]:
        """Return up to k chunks with a token within `edits` of this one, by id.

        In body or title. The engine compares whole tokens: those one edit away are listed, those
        further away are chosen from the library's most frequent terms.
        """
        near = {token} | (one_edit_away(token) if edits else set())
        if edits > 1:
            near.update(self._known().near(token, edits))
        return self._with_any(near, k)

    def beginning(self, start: str, k: int) -> list[int]:
        known = self._known()
        begun = [one for one in (*known.titles, *known.bodies) if one.startswith(start)]
        return self._with_any(set(begun[:MOST_TERMS]), k) if begun else []

    def _with_any(self, tokens: AbstractSet[str], k: int) -> list[int]:
        held = [
            condition for field in (BODY, TITLE) for condition in held_in(field, sorted(tokens))
        ]
        return self._engine.first_ids(self.name, models.Filter(should=held), k)

    def ids(self) -> list[int]:
        return sorted(self._engine.ids(self.name))

    def finds(self, chunk_id: int, text: str) -> bool:
        """Return whether a chunk's own words find it; True without words.

        They weigh alike: to count each in the library is a request a word.
        """
        counts = self._tokens(text)
        chosen, query = of_ids([chunk_id]), sparse(question_vector(counts, 1, {}, self._boosts))
        return not counts or bool(self._found(query, 1, chosen=chosen))

    # --- write

    def add(self, document: LexicalDocument) -> None:
        """Queue a document's chunks; full pieces are sent, up to WRITERS next to each other."""
        points = list(chunk_points(document))
        self._queued += points
        self._written.update(int(point.id) for point in points)
        self._written_in.add(document.language or DEFAULT)
        while len(self._queued) >= PIECE:
            self._send()

    def delete(self, doc: int, chunk_ids: Sequence[int]) -> None:  # noqa: ARG002  # ids suffice
        """Queue the removal of chunks.

        They are removed after what replaces them is there: a document is found at every moment.
        """
        self._removed.update(chunk_ids)
        self._written.difference_update(chunk_ids)

    def commit(self) -> None:
        """Make everything queued durable and searchable.

        Raises:
            SearchAway: The engine does not answer; the queue is dropped.
        """
        try:
            if self._queued:
                self._send()
            while self._sent:
                self._sent.popleft().result()
            if gone := sorted(self._removed - self._written):
                with self._steps.at("qdrant_words.delete"):
                    self._engine.delete(self.name, gone)
        finally:
            self.rollback()

    def _send(self) -> None:
        """Send a piece of what is queued; wait for it where the collection may have to be made."""
        some, self._queued = self._queued[:PIECE], self._queued[PIECE:]
        if len(self._sent) >= WRITERS:
            self._sent.popleft().result()
        if self.seen:
            self._sent.append(self._engine.writers.submit(self._put, some))
        else:
            self._put(some)

    def _put(self, points: Sequence[models.PointStruct]) -> None:
        with self._steps.at("qdrant_words.upsert"):
            try:
                self._engine.upsert(self.name, points)
            except NoCollection:
                self.lacking |= self.seen
                self._engine.create(self.name, sparse=[WORDS], fields=FIELDS)
                self._engine.upsert(self.name, points)
        self.seen = True

    def rollback(self) -> None:
        """Forget what is queued; what was sent is replaced by the replay of the changes.

        No request of it is under way afterwards.
        """
        wait(self._sent)
        self._sent.clear()
        self._queued, self._written, self._removed = [], set(), set()
        written_in, self._written_in = self._written_in, set()
        self._languages.forget(
            lambda counted: sum(counted.values()) <= COUNTED_AT_ONCE or written_in - counted.keys()
        )
        self._terms.forget(lambda terms: terms.chunks <= COUNTED_AT_ONCE)

    def _forget(self) -> None:
        self._languages.forget()
        self._terms.forget()

    def ids_after(self, after: int, most: int) -> list[int]:
        return self._engine.ids_after(self.name, after, most)

    def delete_chunks(self, chunk_ids: Sequence[int]) -> None:
        with self._steps.at("qdrant_words.delete_chunks"):
            self._engine.delete(self.name, chunk_ids)

    @property
    def epoch(self) -> str | None:
        return self._engine.epoch(self.name)

    def set_epoch(self, epoch: str) -> None:
        with self._steps.at("qdrant_words.epoch"):
            self._engine.set_epoch(self.name, epoch)

    def shadow(self) -> QdrantWords:
        self._filled = self._like_this(self._engine.shadow_collection(self.name))
        return self._filled

    def delete_unserved(self, filled: WordIndex | None = None) -> None:
        only = filled.name if isinstance(filled, QdrantWords) else ""
        with self._steps.at("qdrant_words.delete_unserved"):
            self._engine.delete_unserved(self.name, only)

    def promote(self) -> None:
        assert self._filled is not None  # noqa: S101  # `shadow` came before
        filled, self._filled = self._filled, None
        with self._steps.at("qdrant_words.switch"):
            self.seen = self._engine.promote(self.name, filled.name, empty=not filled.seen)
        self.lacking = False
        self.rollback()
        self._forget()

    def delete_all(self) -> None:
        self.rollback()
        self.seen = self.lacking = False
        with self._steps.at("qdrant_words.drop"):
            self._engine.drop(self.name)
        self._forget()

    def close(self) -> None:
        self.rollback()
