"""Ask questions of three collections over own and foreign libraries.

The evidence is read once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from app.core.ports import Embedder
from app.core.trace import Trace
from app.core.types import EmbedderIdentity, Evidence, FloatArray, Library
from app.evaluation.collections import Collection, TestQuestion, from_folder
from app.generation.candidates import Candidate, candidates
from app.generation.features import (
    SUFFICIENCY,
    Floats,
    candidate_weights,
    feature_rows,
    sentence_vectors,
    sufficiency_row,
)
from app.retrieval.options import RetrievalOptions
from app.retrieval.request import SearchRequest
from evaluation.lib.workbench import SEED, Bench, indexed

TOP_K = 5
_MOST = 300
"""Questions per pair of collections where only abstention is learned."""
Flags = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True, eq=False)
class Asked:
    """One question with its evidence, read once."""

    question: TestQuestion
    evidence: tuple[Evidence, ...]
    found: tuple[Candidate, ...]
    rows: Floats
    rows_words_only: Floats
    judged: Floats
    judged_words_only: Floats
    gold: Flags
    """Per candidate: it holds one of the answers."""
    fallback: bool

    @property
    def even(self) -> bool:
        """Return whether the question is for tuning."""
        return self.question.line % 2 == 0


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


def evidence_for(bench: Bench, library: Library, question: TestQuestion) -> tuple[Evidence, ...]:
    """Return numbered passages as the server would read them for a question."""
    hits = bench.retriever(RetrievalOptions()).retrieve(SearchRequest(question.text, library, top_k=TOP_K), Trace()).hits
    return tuple(Evidence(n, hit) for n, hit in enumerate(hits, start=1))


def ask(bench: Bench, library: Library, questions: Sequence[TestQuestion]) -> list[Asked]:
    """Return every question with its evidence, candidates and features."""
    embedder = RememberingEmbedder(bench.embedder)
    return [_read(question, evidence_for(bench, library, question), embedder) for question in questions]


def _read(question: TestQuestion, evidence: tuple[Evidence, ...], embedder: Embedder) -> Asked:
    found = tuple(candidates(evidence))
    weights = candidate_weights(found)
    vectors = sentence_vectors(question.text, found, weights, embedder)
    rows = feature_rows(question.text, found, weights, vectors)
    words_only = feature_rows(question.text, found, weights, None)
    none = np.zeros(len(SUFFICIENCY))
    gold = np.array([holds(candidate.text, question) for candidate in found], dtype=bool)
    return Asked(
        question,
        evidence,
        found,
        rows,
        words_only,
        sufficiency_row(question.text, found, rows, vectors) if found else none,
        sufficiency_row(question.text, found, words_only, None) if found else none,
        gold,
        all(item.hit.fallback for item in evidence),
    )


def holds(text: str, question: TestQuestion) -> bool:
    """Return whether a text contains one of the answers."""
    return any(answer.lower() in text.lower() for answer in question.answers)


@dataclass(frozen=True, slots=True)
class Material:
    """All questions by what they were asked of."""

    own: dict[str, list[Asked]]
    """The library holds their answers, by collection."""
    foreign: dict[str, list[Asked]]
    """It does not, by `questions > library`."""


def gather(data: Path, cache: Path, most: int | None) -> Material:
    """Ask each collection's questions of its own library and of the others.

    At most `most` of squad, drawn by the seed.
    """
    squad, pubmed, cranfield = (from_folder(data / name).judged() for name in ("squad", "pubmedqa", "cranfield"))
    own: dict[str, list[Asked]] = {}
    foreign: dict[str, list[Asked]] = {}

    def others(bench: Bench, library: Library, home: str, guests: Sequence[Collection]) -> None:
        for guest in guests:
            foreign[f"{guest.name} > {home}"] = ask(bench, library, guest.sample(_MOST, SEED).questions)

    with indexed({Library.PUBLIC: [squad], Library.PAPERS: [pubmed]}, cache) as bench:
        chosen = squad if most is None else squad.sample(most, SEED)
        with_answers = [question for question in chosen.questions if question.answers]
        own["squad"] = ask(bench, Library.PUBLIC, with_answers)
        others(bench, Library.PUBLIC, "squad", (pubmed, cranfield))
        own["pubmedqa"] = ask(bench, Library.PAPERS, pubmed.questions)
        others(bench, Library.PAPERS, "pubmedqa", (squad, cranfield))
    with indexed({Library.PAPERS: [cranfield]}, cache) as bench:
        own["cranfield"] = ask(bench, Library.PAPERS, cranfield.questions)
        others(bench, Library.PAPERS, "cranfield", (squad, pubmed))
    return Material(own, foreign)
