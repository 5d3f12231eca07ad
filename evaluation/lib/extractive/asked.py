"""Questions put to libraries, with the evidence read once: right, weak or absent."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import numpy.typing as npt

from app.core.ports import Embedder
from app.core.trace import Trace
from app.core.types import EmbedderIdentity, Evidence, Filters, FloatArray, Library
from app.generation.candidates import Candidate, candidates
from app.generation.quote_features import (
    Floats,
    Vectors,
    candidate_weights,
    feature_rows,
    lead_of,
    sentence_vectors,
    sufficiency_row,
)
from app.generation.quoting import choose, quotable, room_for
from app.models.minilm import MiniLmEmbedder
from app.retrieval.request import RetrievalOptions, SearchRequest
from evaluation.lib.extractive.material import (
    Asking,
    chunking,
    clapnq,
    conversations,
    covidqa,
    judged,
    squad,
    tables,
)
from evaluation.lib.workbench import Bench, indexed, say

TOP_K = 5
TABLES, ABSENT_TABLES = "fetaqa", "fetaqa absent"
"""Questions about tables; the same where their own table gives nothing."""
Flags = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True, eq=False)
class ReadQuestion:
    """One question with its evidence, read once."""

    asking: Asking
    evidence: tuple[Evidence, ...]
    found: tuple[Candidate, ...]
    vectors: Vectors | None
    rows: Floats
    rows_words_only: Floats
    gold: Flags
    """Per candidate: it holds one of the answers."""
    sources: tuple[str, ...]
    """The passage of each piece of evidence."""

    @property
    def even(self) -> bool:
        """Return whether the question is for tuning."""
        return self.asking.question.line % 2 == 0

    @property
    def usable(self) -> bool:
        """Return whether a sentence can be quoted."""
        return any(quotable(candidate) for candidate in self.found)

    def judged(self, ranking: Floats, *, words_only: bool) -> tuple[Floats, bool]:
        """Return what speaks for the quote, by `SUFFICIENCY`; True if a table's row leads it."""
        rows = self.rows_words_only if words_only else self.rows
        scores = rows @ ranking
        chosen = self.chosen(ranking, words_only=words_only)
        lead = self.found[lead_of(self.found, scores, chosen)]
        text = self.asking.question.text
        return sufficiency_row(text, self.found, rows, scores, chosen), lead.row

    def chosen(self, ranking: Floats, *, words_only: bool) -> tuple[Candidate, ...]:
        """Return the sentences that would be quoted if any are."""
        if not self.usable:
            return ()
        scores = (self.rows_words_only if words_only else self.rows) @ ranking
        return choose(self.found, scores, room_for(self.asking.question.text))

    def right(self, quoted: Sequence[Candidate]) -> bool:
        """Return whether a quote answers the question."""
        passage = self.sources[quoted[0].item.n - 1] if quoted else None
        return self.asking.right(" ".join(one.text for one in quoted), passage)


class RememberingEmbedder:
    """An embedder that computes each text once: questions share sentences."""

    def __init__(self, inner: Embedder) -> None:
        self._inner = inner
        self._passages: dict[str, FloatArray] = {}

    @property
    def identity(self) -> EmbedderIdentity:
        """Of the embedder behind."""
        return self._inner.identity

    def embed_passages(self, texts: Sequence[str]) -> FloatArray:
        """Return float32 `[n, dim]`, rows of L2 norm 1, in order."""
        new = [text for text in dict.fromkeys(texts) if text not in self._passages]
        if new:
            self._passages.update(zip(new, self._inner.embed_passages(new), strict=True))
        return np.stack([self._passages[text] for text in texts])

    def embed_query(self, text: str) -> FloatArray:
        """Return float32 `[dim]` of L2 norm 1."""
        return self._inner.embed_query(text)

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        """Return the model's own counts."""
        return self._inner.count_tokens(texts)


def evidence_for(
    bench: Bench, library: Library, text: str, filters: Filters = Filters()
) -> tuple[Evidence, ...]:
    """Return numbered passages as the server would read them for a question."""
    request = SearchRequest(text, library, top_k=TOP_K, filters=filters)
    hits = bench.retriever(RetrievalOptions()).retrieve(request, Trace()).hits
    return tuple(Evidence(n, hit) for n, hit in enumerate(hits, start=1))


def ask(bench: Bench, library: Library, questions: Sequence[Asking]) -> list[ReadQuestion]:
    """Return every question with its evidence, candidates and features."""
    embedder = RememberingEmbedder(bench.embedder)
    documents = {passage: doc_id for doc_id, passage in bench.passage_of.items()}
    found = []
    for asking in questions:
        filters = Filters(doc_ids=(documents[asking.document],)) if asking.document else Filters()
        evidence = evidence_for(bench, library, asking.question.text, filters)
        sources = tuple(
            bench.passage_of.get(item.hit.passage.document.doc_id, "") for item in evidence
        )
        found.append(_read(asking, evidence, sources, embedder))
    return found


def _read(
    asking: Asking, evidence: tuple[Evidence, ...], sources: tuple[str, ...], embedder: Embedder
) -> ReadQuestion:
    text = asking.question.text
    found = tuple(candidates([item for item in evidence if not item.hit.fallback]))
    weights = candidate_weights(found)
    vectors = sentence_vectors(text, found, weights, embedder)
    gold = np.array([asking.right(candidate.text, None) for candidate in found], dtype=bool)
    rows, words_only = (feature_rows(text, found, weights, known) for known in (vectors, None))
    return ReadQuestion(asking, evidence, found, vectors, rows, words_only, gold, sources)


Groups = dict[str, list[ReadQuestion]]
"""Questions by set."""


def gather(data: Path, cache: Path, most: int, only: Sequence[str] = ()) -> Groups:
    """Ask each set of its own library, at most `most` questions of a set."""
    encoder = MiniLmEmbedder(cache / "graph").late_encoder()
    answerable, unanswerable = squad(data, most)
    homes = [
        (answerable, unanswerable),
        (judged(data, "pubmedqa", most // 3),),
        (judged(data, "cranfield", most // 3),),
        (clapnq(data),),
        (chunking(data),),
        (covidqa(data, 2 * most),),
        (tables(data),),
        (conversations(data)[0],),
    ]
    groups: Groups = {}
    for sets in homes:
        if only and sets[0].collection.name not in only:
            continue
        own = sets[0].collection
        with indexed({Library.PUBLIC: [own]}, cache, encoder=encoder) as bench:
            for one in sets:
                groups[one.collection.name] = ask(bench, Library.PUBLIC, one.questions)
            if own.name == TABLES:
                embedder = RememberingEmbedder(bench.embedder)
                left = (_without_own(one, embedder) for one in groups[TABLES])
                groups[ABSENT_TABLES] = [one for one in left if one.evidence]
        say(own.name)
    return groups


def _without_own(one: ReadQuestion, embedder: Embedder) -> ReadQuestion:
    """Return a question about a table without what that table gave: now it has no answer."""
    question = replace(one.asking.question, answerable=False)
    others = tuple(item for item in one.evidence if one.sources[item.n - 1] != question.id)
    return _read(replace(one.asking, question=question), others, one.sources, embedder)
