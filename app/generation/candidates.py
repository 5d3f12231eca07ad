"""Sentences of the evidence as candidates for a quoted answer, and what speaks for each."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from app.core.ports import Embedder
from app.core.text import sentence_spans, tokenise
from app.core.types import Evidence, FloatArray
from app.generation.alignment import FUNCTION_WORDS, content_tokens, coverage, specifics
from app.generation.injection import findings_at

Floats = npt.NDArray[np.float64]

MAX_EMBEDDED = 24
"""Sentences that are embedded per question; with MiniLM int8 on two cores about 50 ms."""
_MIN_WORDS, _MAX_WORDS = 4, 90
_NATIVE_MARK = re.compile(r"[ \t]*\[\s*\d{1,4}(?:\s*[,;\u2013-]\s*\d{1,4})*\s*\]")
_HYPHENATED = re.compile(r"(?<=[a-z])-\n[ \t]*(?=[a-z])")

FEATURES = (
    "coverage",
    "coverage_around",
    "coverage_passage",
    "pairs",
    "similarity",
    "passage_score",
    "passage_first",
    "answer_type",
    "new_words",
    "length",
    "whole",
    "dangling",
)
"""Names of the columns of `feature_rows`, in order."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """One sentence of a passage: where it lies in the chunk, how it reads, and what was found in it."""

    item: Evidence
    ordinal: int
    """Place of the sentence in its passage, from 0."""
    start: int
    end: int
    text: str
    """The stored characters on one line, native reference marks gone."""
    tokens: frozenset[str]
    around: frozenset[str]
    """Stemmed tokens of the sentence and its two neighbours."""
    whole: bool
    """Begins like a sentence and ends with a full stop."""
    suspicious: bool
    """Reads like an instruction to a model."""


def candidates(evidence: Sequence[Evidence]) -> list[Candidate]:
    """Return the quotable sentences of the evidence, in rank and reading order; questions and headings are left out."""
    found: list[Candidate] = []
    for item in evidence:
        text = item.hit.passage.chunk.text
        spans = sentence_spans(text)
        sentences = [text[start:end] for start, end in spans]
        tokens = [frozenset(tokenise(sentence)) for sentence in sentences]
        for index, (start, end) in enumerate(spans):
            line = one_line(sentences[index])
            if not _MIN_WORDS <= len(line.split()) <= _MAX_WORDS or line.endswith("?"):
                continue
            around = frozenset().union(*tokens[max(0, index - 1) : index + 2])
            whole = (line[0].isupper() or not line[0].isalpha()) and line[-1] in ".!\"'\u201d)\u3002"
            suspicious = bool(findings_at(sentences, index))
            found.append(Candidate(item, index, start, end, line, tokens[index], around, whole, suspicious))
    return found


def one_line(text: str) -> str:
    """Return stored characters as they read: line breaks closed, hyphenation undone, the source's own `[12]` left out."""
    return " ".join(_NATIVE_MARK.sub("", _HYPHENATED.sub("", text)).split())


def feature_rows(question: str, found: Sequence[Candidate], weights: Mapping[str, float], similarity: Floats) -> Floats:
    """Return one row of FEATURES per candidate, float64 `[n, len(FEATURES)]`, each about in [0, 1].

    Args:
        question: What was asked.
        found: Candidates of one question.
        weights: Weight per stemmed token of the question.
        similarity: Sentence-question similarity scaled within the question, float64 `[n]`; 0 where unknown.
    """
    asked = content_tokens(question)
    pairs = set(pairwise(asked))
    kind = question_kind(question)
    best_score = max((candidate.item.hit.score for candidate in found), default=1.0) or 1.0
    passages: dict[int, frozenset[str]] = {}
    rows = []
    for candidate, closeness in zip(found, similarity, strict=True):
        passage = candidate.item.hit.passage
        if candidate.item.n not in passages:
            passages[candidate.item.n] = frozenset(tokenise(f"{passage.document.title}\n{passage.chunk.text}"))
        ordered = content_tokens(candidate.text)
        own_pairs = set(pairwise(ordered))
        new = [token for token in ordered if token not in asked]
        rows.append(
            [
                coverage(asked, candidate.tokens, weights),
                coverage(asked, candidate.around, weights),
                coverage(asked, passages[candidate.item.n], weights),
                len(pairs & own_pairs) / len(pairs) if pairs else 0.0,
                closeness,
                candidate.item.hit.score / best_score,
                1.0 / candidate.item.n,
                answers_kind(kind, candidate.text, question),
                min(1.0, len(new) / 10),
                min(1.0, len(ordered) / 40),
                float(candidate.whole),
                float(dangles(candidate.text)),
            ]
        )
    return np.asarray(rows, dtype=np.float64).reshape(len(found), len(FEATURES))


def question_kind(question: str) -> str:
    """Return what kind of answer is asked for: person, time, number, place or other."""
    lowered = question.lower()
    for kind, pattern in _KINDS.items():
        if pattern.search(lowered):
            return kind
    return "other"


_KINDS = {
    "time": re.compile(
        r"\bwhen\b|\b(?:what|which|in what|in which) (?:year|date|day|month|century|decade|period|era|time)\b|\bhow long\b"
    ),
    "number": re.compile(
        r"\bhow (?:many|much|often|old|far|large|big|tall|high|deep|fast)\b"
        r"|\b(?:what|which) (?:percentage|percent|number|amount|fraction|proportion|share)\b"
        r"|\bby how much\b"
    ),
    "person": re.compile(
        r"\bwho(?:m|se)?\b|\bwhat (?:was|is) the name of\b|\b(?:what|which) (?:person|king|president|author|leader|scientist)\b"
    ),
    "place": re.compile(r"\bwhere\b|\b(?:what|which) (?:country|city|state|place|region|location|continent|county|town)\b"),
}
_TIME = re.compile(
    r"\b(?:1\d{3}|20\d{2}|\d{1,2}(?:st|nd|rd|th)|century|centuries|decade|january|february|march|april|june|july|august|september|october"
    r"|november|december|years?|months?|days?|weeks?|hours?|\d+ ?(?:bc|ad|bce|ce|ma))\b",
    re.IGNORECASE,
)
_FIGURE = re.compile(
    r"\d|\b(?:two|three|four|five|six|seven|eight|nine|ten|dozen|hundred|thousand|million|billion|half|percent|per cent)\b", re.I
)


def answers_kind(kind: str, sentence: str, question: str) -> float:
    """Return 1.0 when the sentence holds something of the asked kind that the question does not name itself, else 0.0."""
    if kind == "time":
        return float(any(match.lower() not in question.lower() for match in _TIME.findall(sentence)))
    if kind == "number":
        return float(any(match.lower() not in question.lower() for match in _FIGURE.findall(sentence)))
    if kind in {"person", "place"}:
        return float(bool(specifics(sentence).names - set(tokenise(question))))
    return 0.5


_PRONOUN_START = re.compile(
    r"(?:(?:and|but|however|thus|therefore|then|also|so|yet|nevertheless|moreover|furthermore|instead|in addition|for example"
    r"|in contrast),?\s+)?"
    r"(?:he|she|it|they|his|her|its|their|this|these|those|that|such|both|here|there(?! (?:is|are|was|were)))\b",
    re.IGNORECASE,
)


def dangles(sentence: str) -> bool:
    """Whether the sentence opens with a word that points back to one before it."""
    return bool(_PRONOUN_START.match(sentence))


def similarities(question: str, found: Sequence[Candidate], weights: Mapping[str, float], embedder: Embedder | None) -> Floats:
    """Return sentence-question cosines, float64 `[n]` in [-1, 1], NaN where not computed.

    Only the lexically best MAX_EMBEDDED candidates are embedded, and none that the embedder would have to cut.
    """
    values = np.full(len(found), np.nan)
    if embedder is None or not found:
        return values
    asked = [token for token in tokenise(question) if token not in FUNCTION_WORDS]
    promise = [coverage(asked, c.tokens, weights) + 0.5 * coverage(asked, c.around, weights) + 0.5 / c.item.n for c in found]
    chosen = np.argsort(-np.asarray(promise), kind="stable")[:MAX_EMBEDDED]
    limit = embedder.identity.max_tokens
    counts = embedder.count_tokens([found[row].text for row in chosen])
    rows = [int(row) for row, count in zip(chosen, counts, strict=True) if count <= limit]
    if rows:
        vectors: FloatArray = embedder.embed_passages([found[row].text for row in rows])
        values[rows] = vectors @ embedder.embed_query(question)
    return values
