"""Search both legs, and complete each leg's scores for the other's hits."""

from __future__ import annotations

import logging
import re
import time
from collections import Counter
from collections.abc import Mapping, Set
from dataclasses import dataclass, replace

import numpy as np

from app.core.cancel import run_concurrently
from app.core.errors import Busy, Conflict, IndexDamaged, InputError, ProviderError, StorageError
from app.core.languages import LANGUAGES, language_of
from app.core.ports import Embedder
from app.core.text import edit_distance, function_words, tokenise, words
from app.core.types import (
    EmbedderIdentity,
    FloatArray,
    Hit,
    Library,
    Notice,
    NoticeCode,
    Passage,
    QuestionCode,
    Scored,
)
from app.core.vectors import cosine_distances
from app.retrieval.candidates import Candidates, QuestionWords, gather, question_words
from app.retrieval.request import Retrieval, SearchRequest
from app.storage.catalog.documents import Catalog
from app.storage.vectors.library import DenseVectorIndex
from app.storage.words.port import LibraryWords
from app.storage.writer import CatalogIndexWriter

_LOG = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Pool:
    """The candidates of one question with their signals, and why a leg is missing."""

    candidates: Candidates
    vector: FloatArray | None
    """The query vector `[dim]`; None when nothing could embed."""
    words: QuestionWords
    code: QuestionCode | None = None
    """What late interaction compares passages with; None where it is off."""
    without_vector: int = 0
    """Candidates that have no vector, after embedding on the fly."""
    trouble: NoticeCode | None = None
    """Why the dense leg could not be asked."""
    unknown_language: str = ""
    """The question's language where the embedder does not know it."""


@dataclass(frozen=True, slots=True)
class Retrievers:
    """Dense and lexical search over the ports."""

    catalog: Catalog
    vectors: DenseVectorIndex
    lexical: LibraryWords
    embedder: Embedder | None
    writer: CatalogIndexWriter | None
    embed_budget_ms: float
    asks_host: bool = False
    """The embedder asks a host, which a library without vectors leaves alone."""

    def identity(self, library: Library) -> EmbedderIdentity | None:
        """Return who embeds questions to a library; None where nothing does now."""
        if self.embedder is None or self._is_bare(library):
            return None
        try:
            return self.embedder.identity
        except ProviderError as exc:
            _LOG.warning("searching by words alone: the embedder failed: %s", exc)
            return None

    def query_vector(self, request: SearchRequest) -> FloatArray | None:
        """Return the request's vector, or embed its text; None if that fails."""
        if request.vector is not None:
            return request.vector
        if self.embedder is None or self._is_bare(request.library):
            return None
        try:
            return self.embedder.embed_query(request.text)
        except (ProviderError, InputError) as exc:
            _LOG.warning("searching by words alone: the embedder failed: %s", exc)
            return None

    def search(
        self,
        request: SearchRequest,
        vector: FloatArray | None,
        k: int,
        code: QuestionCode | None = None,
    ) -> Pool:
        """Ask both legs at once for k candidates each.

        With a damaged dense index only the lexical leg answers.
        """
        with run_concurrently(lambda: self._by_words(request, k)) as by_words:
            dense, vector, trouble = self._by_vector(request, vector, k)
            lexical, words = by_words()
        return Pool(gather(dense, lexical), vector, words, code, trouble=trouble)

    def _by_words(self, request: SearchRequest, k: int) -> tuple[list[Scored], QuestionWords]:
        """Return the lexical hits, and how telling each word of the question is."""
        found = self.lexical.search(request.library, request.text, k, request.filters or None)
        return found, question_words(self.lexical, request.library, request.text)

    def _by_vector(
        self, request: SearchRequest, vector: FloatArray | None, k: int
    ) -> tuple[list[Scored], FloatArray | None, NoticeCode | None]:
        """Return dense hits, the vector if it is comparable, and a notice code."""
        if vector is None:
            bare = self.embedder is not None and self._is_bare(request.library)
            return [], None, None if bare else "embedder_unavailable"
        try:
            return (
                self.vectors.search(request.library, vector, k, request.filters or None),
                vector,
                None,
            )
        except IndexDamaged as exc:
            # Single vectors still come from the catalog: what the words find is ranked by both
            # signals.
            _LOG.warning("searching by words alone: %s", exc)
            return [], vector, "index_rebuilding"
        except Conflict as exc:
            _LOG.warning("searching by words alone: the dense index failed: %s", exc)
            return [], None, "index_rebuilding"

    def complete(self, request: SearchRequest, pool: Pool) -> Pool:
        """Add distances of lexical hits and BM25 of dense hits.

        Embeds passages without a vector, within the budget.
        """
        candidates, missing = pool.candidates, 0
        unscored = candidates.without_bm25()
        if len(unscored):
            candidates = candidates.with_bm25(
                self.lexical.score(request.library, request.text, unscored.tolist())
            )
        if pool.vector is not None and len(unplaced := candidates.without_distance()):
            rows = self.vectors.fetch(request.library, unplaced.tolist())
            candidates = candidates.with_distances(_distances(pool.vector, rows))
            rest = candidates.without_distance()
            if len(rest) and self.embedder is not None:
                rows = self._embed(self.embedder, request.library, rest.tolist())
                candidates = candidates.with_distances(_distances(pool.vector, rows))
            missing = len(rest) - len(rows) if len(rest) else 0
        elif pool.vector is None and pool.trouble is None:
            missing = len(candidates)
        return replace(pool, candidates=candidates, without_vector=missing)

    def _is_bare(self, library: Library) -> bool:
        """Return whether a library has no vector that a host's would be compared with."""
        return self.asks_host and not self.catalog.counts(library).embedded

    def _embed(
        self, embedder: Embedder, library: Library, chunk_ids: list[int]
    ) -> dict[int, FloatArray]:
        """Embed chunks in order within the budget; cache the vectors.

        A passage that is longer than the embedder reads stays without a vector here: the backfill
        embeds it in parts.
        """
        if self.embed_budget_ms <= 0:
            return {}
        deadline = time.perf_counter() + self.embed_budget_ms / 1000
        passages = self.catalog.passages(library, chunk_ids[:_MOST_EMBEDDED])
        rows: dict[int, FloatArray] = {}
        longest_s = 0.0
        for chunk_id in chunk_ids[:_MOST_EMBEDDED]:
            start = time.perf_counter()
            if start + longest_s > deadline:
                break
            if chunk_id in passages:
                try:
                    rows[chunk_id] = embedder.embed_passages([passages[chunk_id].chunk.text])[0]
                except InputError as exc:
                    _LOG.warning("candidate %s stays without a vector: %s", chunk_id, exc)
                except ProviderError as exc:
                    _LOG.warning("could not embed a candidate: %s", exc)
                    break
                longest_s = max(longest_s, time.perf_counter() - start)
        self._keep(library, rows)
        return rows

    def _keep(self, library: Library, rows: dict[int, FloatArray]) -> None:
        if self.writer is None or not rows:
            return
        try:
            found = np.stack(list(rows.values()))
            self.writer.write_vectors(library, list(rows), found, self.vectors.build, wait=False)
        except Busy:
            _LOG.debug("vectors embedded for a question are not kept: others are writing")
        except (
            StorageError,
            Conflict,
        ) as exc:  # the question can be answered all the same; the backfill will try again
            _LOG.warning("could not keep vectors embedded for a question: %s", exc)


_MOST_EMBEDDED = 16
"""More passages than the budget ever allows on a CPU (about 50 a second,
docs/facts/libraries.md); bounds what is read for it."""


def _distances(query: FloatArray, rows: dict[int, FloatArray]) -> dict[int, float]:
    if not rows:
        return {}
    return dict(
        zip(rows, cosine_distances(query, np.stack(list(rows.values()))).tolist(), strict=True)
    )


# Two libraries in one answer: `library: all`.


def merge(retrievals: Mapping[Library, Retrieval], top_k: int) -> Retrieval:
    """Return up to `top_k` passages of several libraries; each hit names its own.

    Every library keeps its own order and is sure of an equal share of the places (rounded down), so
    that millions of encyclopedia chunks never drown twenty papers; the other places go to the
    closest. Fallback hits only fill in where no library has anything better. Scores are re-based to
    fall with the merged order. What one library returns stays as it is.
    """
    if len(retrievals) == 1:
        return next(iter(retrievals.values()))
    real = {
        library: found for library, found in retrievals.items() if found.hits and not found.fallback
    }
    used = real or {library: found for library, found in retrievals.items() if found.hits}
    lists = {library: found.hits for library, found in used.items()}
    sizes = {library: min(len(hits), top_k // len(lists)) for library, hits in lists.items()}
    while sum(sizes.values()) < top_k:
        unused = {
            library: hits[sizes[library]]
            for library, hits in lists.items()
            if sizes[library] < len(hits)
        }
        if not unused:
            break
        sizes[max(unused, key=lambda library: _closeness(unused[library]))] += 1
    merged = _interleave([hits[: sizes[library]] for library, hits in lists.items()])
    return Retrieval(
        tuple(replace(hit, score=1.0 / rank) for rank, hit in enumerate(merged, start=1)),
        _notices(retrievals, used),
        max((found.confidence for found in used.values()), default=0.0),
        bool(used) and not real,
        next((found.text for found in (used or retrievals).values()), ""),
    )


def _closeness(hit: Hit) -> float:
    """Return a score comparable between libraries; fused scores are not."""
    return -1.0 if hit.closeness is None else hit.closeness


def _interleave(lists: list[tuple[Hit, ...]]) -> list[Hit]:
    """Merge lists without reordering any, the closer head first."""
    queues = [list(reversed(hits)) for hits in lists if hits]
    merged: list[Hit] = []
    while queues:
        best = max(queues, key=lambda queue: _closeness(queue[-1]))
        merged.append(best.pop())
        queues = [queue for queue in queues if queue]
    return merged


def _notices(
    retrievals: Mapping[Library, Retrieval], used: Mapping[Library, Retrieval]
) -> tuple[Notice, ...]:
    """Return every notice, named by library.

    A fallback is left out if its hits were not used.
    """
    said: dict[tuple[str, str], Notice] = {}
    for library, found in retrievals.items():
        for notice in found.notices:
            if notice.code == "fallback_used" and library not in used:
                continue
            message = f"{library.value}: {notice.message}"
            said[notice.code, message] = Notice(notice.code, message)
    if used:  # one empty library is no news while the other answers
        return tuple(notice for notice in said.values() if notice.code != "library_empty")
    return tuple(said.values())


# Words of a question that no document holds, matched to near ones that some do.

_SHORTEST = 4
"""Letters of a word that is matched to one with content: shorter ones are near to too many."""
_SHORTEST_SWAPPED = 3
_ASCII_WORD = re.compile(r"[A-Za-z]+")
_CAPITALISED = re.compile(r"\b[A-Z]\w+")
_INSIDE = re.compile(r"(?<=[\w,;] )[A-Z][a-z]+")
"""A word with a capital that begins no sentence."""
_LONG = 8
"""Letters from which two edits are allowed."""
_MOST_READ = 30
"""Passages read for near words."""
_MOST_WORDS = 8
"""Unknown words looked up; a question with more is in a language that the library does not hold."""


def matched_text(
    text: str,
    library: Library,
    lexical: LibraryWords,
    catalog: Catalog,
    spelt_right: Set[str] = frozenset(),
) -> str:
    """Return a text with each unknown word replaced by a near known one.

    Unknown means that no passage holds it. The text itself if no word changes, or if it is in
    another language than most documents: its words are not misspelt. Near is one edit
    (insert, delete, change, swap neighbours), or two from eight letters on. Numbers, identifiers,
    words with capitals of their own (PaSa) and words of other scripts stay; a name becomes only
    what passages write as one. Of several near words the nearest is taken, then one with the
    same first letter, then the most frequent. A function word with two letters swapped is that one.
    Stems that are `spelt_right` stay, whether a passage holds them or not.
    """
    language = lexical.languages(library)[0]
    if language_of(text) not in {"", language}:
        return text
    spoken = words(text)
    own = frozenset() if text.isupper() else _capitals(text)
    stems = {
        word: (tokenise(word, language) or [""])[0]
        for word in dict.fromkeys(spoken)
        if word not in own and _may_be_misspelt(word, language, _SHORTEST_SWAPPED)
    }
    _, held = lexical.document_frequencies(library, list(stems.values()))
    unknown = [
        word
        for word, stem in stems.items()
        if stem
        and stem not in spelt_right
        and not held.get(stem, 0)
        and not lexical.near(library, stem, 0, 1)
    ]
    if not unknown or len(unknown) > _MOST_WORDS:
        return text
    near: dict[str, str] = {}
    names = _names(text, language)
    for word in unknown:
        if swapped := _swapped(word, language, spelt_right):
            near[word] = swapped
        if swapped or len(word) < _SHORTEST:
            continue
        edits = 2 if len(word) >= _LONG else 1
        # A misspelt ending is stemmed otherwise: "vally" and "valley" are one edit apart, their
        # stems two.
        found = (
            _nearest(
                word,
                edits,
                catalog.passages(library, lexical.near(library, stems[word], n, _MOST_READ)),
                language,
                named=word in names,
            )
            for n in range(edits, 3)
        )
        if nearest := next(filter(None, found), None):
            near[word] = nearest
    return _ASCII_WORD.sub(lambda word: near.get(word[0].lower(), word[0]), text)


def _capitals(text: str) -> frozenset[str]:
    """Return the words of a text that have a capital behind their first letter, in lower case."""
    found = _ASCII_WORD.findall(text)
    return frozenset(word.lower() for word in found if not word[1:].islower() and len(word) > 1)


def _names(text: str, language: str) -> frozenset[str]:
    """Return the words inside a text that begin with a capital where that means a name."""
    if language in LANGUAGES and LANGUAGES[language].nouns_are_capitalised:
        return frozenset()
    return frozenset(word[0].lower() for word in _INSIDE.finditer(text))


def _swapped(word: str, language: str, spelt_right: Set[str]) -> str:
    """Return the function word of which two neighbouring letters were swapped, else nothing.

    Where the model does not say which words there are, none is taken for misspelt.
    """
    if language not in LANGUAGES or not spelt_right:
        return ""
    swaps = {word[:at] + word[at : at + 2][::-1] + word[at + 2 :] for at in range(len(word) - 1)}
    return next((one for one in LANGUAGES[language].function_words.split() if one in swaps), "")


def _may_be_misspelt(word: str, language: str, shortest: int = _SHORTEST) -> bool:
    return (
        len(word) >= shortest
        and word.isascii()
        and word.isalpha()
        and not function_words(language).intersection(tokenise(word, language))
    )


def _nearest(
    word: str, edits: int, passages: Mapping[int, Passage], language: str, *, named: bool
) -> str | None:
    """Return the word of these passages that is nearest, of those near enough.

    Args:
        word: Which no passage has.
        edits: How many make one near enough.
        passages: Which may have one.
        language: Whose function words are none.
        named: Only a word that a passage writes as a name, with a capital.
    """
    counts = Counter(
        other
        for passage in passages.values()
        for text in (f"{passage.document.title} {passage.chunk.text}",)
        for other in words(" ".join(_CAPITALISED.findall(text)) if named else text)
    )
    far = {
        other: edit_distance(word, other)
        for other in counts
        if abs(len(other) - len(word)) <= edits and _may_be_misspelt(other, language)
    }
    near = [other for other, distance in far.items() if distance <= edits]
    return min(
        near,
        key=lambda other: (far[other], other[0] != word[0], -counts[other], other),
        default=None,
    )
