"""Compare how well a library is found with other vectors, question by question."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

import numpy as np

from app.core.errors import NotFound
from app.core.sentences import sentence_spans
from app.core.text import words
from app.core.types import Chunk, Document, Hit, Library
from app.evaluation.cases import CaseBody
from app.evaluation.collections import MOST_DOCUMENTS
from app.evaluation.metrics import LEVEL, permutation_p
from app.storage.catalog.documents import Catalog

DEPTH = 10
"""Passages looked at; a right one below counts as not found."""

QUESTIONS = 200
"""Questions of an automatic set: a difference of 0.05 in the mean reciprocal rank is then seen
more often than not."""

FEWEST = 6
"""Below, no permutation of signs can be significant at 0.05 (2 / 2^n), so any worse mean counts
as worse."""

_PER_DOCUMENT = 8
_SENTENCE_WORDS = range(6, 41)


@dataclass(frozen=True, slots=True)
class RankingCase:
    """A question and what makes a passage the right one."""

    question: str
    doc_ids: frozenset[str] = frozenset()
    """doc_ids, file names or source keys."""
    substrings: tuple[str, ...] = ()
    """Any of them in the passage."""
    not_chunk: int | None = None
    """A passage that is passed over, because the question was taken from it."""


@dataclass(frozen=True, slots=True)
class Judgement:
    """The new vectors' result against the old ones."""

    questions: int
    before: float
    """Mean reciprocal rank at 10 of the old vectors, 0..1."""
    after: float
    p: float
    """Two-sided, paired permutation test."""
    worse: bool
    reason: str
    """One sentence that says what may be concluded."""


Search = Callable[[str], Sequence[Hit]]


def from_answer_set(cases: Sequence[CaseBody], library: Library) -> list[RankingCase]:
    """Return an answer set's questions about a library that name their answer."""
    return [
        RankingCase(case.question, frozenset(case.expected_docs), case.expected_substrings)
        for case in cases
        if case.library in {library.value, "all"}
        and case.intent == "question"
        and not case.oos
        and (case.expected_docs or case.expected_substrings)
    ]


def automatic_set(
    catalog: Catalog, library: Library, *, seed: int, limit: int = QUESTIONS
) -> list[RankingCase]:
    """Return about `limit` questions from a library's sentences and titles, with their document.

    A sentence has to lead to another passage of its document, because to find the passage that
    holds it word for word is no task; a document of one passage is asked for by that. The same
    library and seed give the same questions.

    References:
        The inverse cloze task: Lee, Chang, Toutanova: Latent retrieval for weakly supervised open
            domain question answering, ACL
        2019, section 4.
    """
    rng = np.random.default_rng(seed)
    documents = list(listed_documents(catalog, library))
    if not documents:
        return []
    chosen = rng.permutation(len(documents))[:limit]
    share = min(_PER_DOCUMENT, -(-limit // len(chosen)))
    found: list[RankingCase] = []
    for at in sorted(chosen.tolist()):
        document = documents[at]
        try:
            chunks = catalog.chunks(library, document.doc_id)
        except NotFound:  # deleted since
            continue
        if len(words(document.title)) in _SENTENCE_WORDS and at % 4 == 0:
            found.append(RankingCase(document.title, frozenset({document.doc_id})))
        sentences = list(telling_sentences(chunks))
        for pick in rng.permutation(len(sentences))[:share].tolist():
            text, chunk_id = sentences[pick]
            found.append(
                RankingCase(
                    text,
                    frozenset({document.doc_id}),
                    not_chunk=chunk_id if len(chunks) > 1 else None,
                )
            )
    return found


def listed_documents(catalog: Catalog, library: Library) -> Iterator[Document]:
    """Yield documents of a library that are no copies, up to a bound that keeps it quick."""
    for document in islice(catalog.every_document(library), MOST_DOCUMENTS):
        if document.duplicate_of is None:
            yield document


def telling_sentences(chunks: Sequence[Chunk]) -> Iterator[tuple[str, int]]:
    """Yield sentences long enough to ask something, with the index of their chunk."""
    for chunk in chunks:
        for start, end in sentence_spans(chunk.text):
            text = " ".join(chunk.text[start:end].split())
            if len(words(text)) in _SENTENCE_WORDS:
                yield text, chunk.chunk_id


def reciprocal_rank(case: RankingCase, hits: Sequence[Hit]) -> float:
    """Return the reciprocal rank of the first right passage in the top ten, else 0."""
    rank = 0
    for hit in hits:
        if hit.passage.chunk.chunk_id == case.not_chunk:
            continue
        rank += 1
        if rank > DEPTH:
            break
        document, text = hit.passage.document, hit.passage.chunk.text.casefold()
        if case.doc_ids & {document.doc_id, document.filename, document.source_key} or any(
            part.casefold() in text for part in case.substrings
        ):
            return 1.0 / rank
    return 0.0


def judge(
    cases: Sequence[RankingCase],
    before: Search,
    after: Search,
    *,
    seed: int,
    progress: Callable[[int], None] | None = None,
) -> Judgement:
    """Ask both, which return at least eleven passages or all, and say whether `after` is worse."""
    pairs: list[tuple[float, ...]] = []
    for case in cases:
        pairs.append(
            tuple(reciprocal_rank(case, search(case.question)) for search in (before, after))
        )
        if progress is not None:
            progress(len(pairs))
    if not pairs:
        nothing = "there is nothing to ask: no question says where its answer is"
        return Judgement(0, 0.0, 0.0, 1.0, worse=False, reason=nothing)
    values = np.array(pairs, dtype=np.float64)
    old, new = float(values[:, 0].mean()), float(values[:, 1].mean())
    p = permutation_p(values[:, 1] - values[:, 0], seed=seed)
    few = len(pairs) < FEWEST
    worse = new < old and (few or p <= LEVEL)
    sizes = (
        f"mean reciprocal rank {old:.3f} before, {new:.3f} after, {len(pairs)} questions, p ="
        f" {p:.3f}"
    )
    if worse:
        reason = (
            f"the new vectors find less{' (too few questions for a test)' if few else ''}: {sizes}"
        )
    elif new > old and not few and p <= LEVEL:
        reason = f"the new vectors find more: {sizes}"
    else:
        reason = f"no difference can be shown: {sizes}"
    return Judgement(len(pairs), round(old, 4), round(new, 4), round(p, 4), worse, reason)
