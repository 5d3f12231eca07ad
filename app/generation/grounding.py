"""Support and verdict: every sentence of an answer held against the passages it cites.

Deterministic alignment comes first: how much of the sentence stands in one place of the passage. Figures, names and negations must
agree, because a sentence with one of them changed still shares nearly all its words. A citation that fails is dropped and its
sentence kept and marked.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from app.core.ports import Embedder
from app.core.text import sentence_spans, tokenise
from app.core.types import Citation, Evidence, Sentence, Verdict
from app.generation.alignment import Alignment, align, content_tokens, coverage, specifics, term_weights
from app.generation.citations import MARK, guard, mark_numbers, without_marks
from app.generation.options import GenerationOptions
from app.generation.prompts import REFUSAL

_LEADING_MARKS = re.compile(r"(?:\[\d{1,4}\])+[.,;:]?")
_MARKUP = re.compile(r"[*_`#>|]+|^\s*[-+]\s+(?:\[[ xX]\]\s+)?|^\s*\d+[.)]\s+", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Grounded:
    """A guarded answer with what holds each of its sentences."""

    text: str
    sentences: tuple[Sentence, ...]
    dropped: tuple[tuple[int, int], ...] = ()
    """Citations that failed: index of the sentence and evidence number."""


@dataclass(frozen=True, slots=True)
class Support:
    """How well a passage holds a claim: `score` in [0, 1], and where."""

    score: float
    alignment: Alignment
    contradicted: bool = False
    """A figure, a name or a negation differs."""


class Grounder:
    """Checks answers sentence by sentence. Thread-safe as far as its embedder is."""

    def __init__(self, embedder: Embedder | None, options: GenerationOptions) -> None:
        """Keep the sentence embedder, or None to compare words only."""
        self._embedder = embedder
        self._min_support = options.grounding_min_similarity

    def ground(self, text: str, evidence: Sequence[Evidence]) -> Grounded:
        """Return the answer with invalid and failing citations removed and each sentence's verdict.

        Args:
            text: What a generator wrote, marks in any shape.
            evidence: The passages it was shown.

        Returns:
            Text whose `sentences` lie at their offsets. `supported`: a kept citation holds the sentence. `weak`: it cites nothing
            that holds it, but some passage does or it claims nothing. `unsupported`: nothing holds it.
        """
        by_number = {item.n: item for item in evidence}
        guarded = guard(text, by_number.keys())
        if guarded == REFUSAL:
            return Grounded(guarded, (Sentence(guarded, 0, len(guarded), "supported"),))
        weights = term_weights(
            item.hit.passage.chunk.text[start:end]
            for item in evidence
            for start, end in sentence_spans(item.hit.passage.chunk.text)
        )
        out = _Rebuilt(guarded)
        dropped: list[tuple[int, int]] = []
        for start, end in answer_sentence_spans(guarded):
            original = guarded[start:end]
            claim = _claim(original)
            kept: list[Citation] = []
            best = 0.0
            for n in mark_numbers(original):
                support = self.support(claim, by_number[n], weights)
                best = max(best, support.score if support and not support.contradicted else 0.0)
                if support is None or support.contradicted or support.score < self._min_support:
                    dropped.append((len(out.sentences), n))
                    original = _without_mark(original, n)
                else:
                    kept.append(_citation(support, by_number[n]))
            verdict = self._verdict(claim, kept, best, evidence, weights)
            out.add(start, end, original, verdict, tuple(kept))
        return Grounded(out.finish(), tuple(out.sentences), tuple(dropped))

    def support(self, claim: str, item: Evidence, weights: dict[str, float]) -> Support | None:
        """Return how well one passage holds a claim, or None when they have nothing in common.

        Args:
            claim: One sentence without marks and markup.
            item: The passage.
            weights: From `term_weights` over the evidence.
        """
        chunk, document = item.hit.passage.chunk, item.hit.passage.document
        found = align(claim, chunk.text, weights)
        if found is None:
            return None
        wanted = content_tokens(claim)
        context = f"{document.title}\n{chunk.section}\n{chunk.text}"
        everywhere = coverage(wanted, set(tokenise(context)), weights)
        score = 0.7 * found.coverage + 0.3 * everywhere
        own, theirs = specifics(claim), specifics(context)
        quoted = specifics(chunk.text[found.start : found.end])
        contradicted = bool(own.numbers - theirs.numbers) or bool(own.names - set(tokenise(context)))
        contradicted = contradicted or (own.negations > 0) != (quoted.negations > 0)
        return Support(score, found, contradicted)

    def _verdict(
        self, claim: str, kept: Sequence[Citation], best: float, evidence: Sequence[Evidence], weights: dict[str, float]
    ) -> Verdict:
        if kept:
            return "supported"
        if not content_tokens(claim) or claim.endswith(":"):
            return "weak"
        for item in evidence:
            support = self.support(claim, item, weights)
            if support and not support.contradicted:
                best = max(best, support.score)
        return "weak" if best >= self._min_support else "unsupported"


class _Rebuilt:
    """The answer, written anew while sentences lose marks, so that offsets stay true."""

    def __init__(self, guarded: str) -> None:
        self._source = guarded
        self._at = 0
        self._length = 0
        self._pieces: list[str] = []
        self.sentences: list[Sentence] = []

    def add(self, start: int, end: int, text: str, verdict: Verdict, citations: tuple[Citation, ...]) -> None:
        """Write what lies before a sentence, then the sentence as it is now."""
        self._write(self._source[self._at : start])
        self.sentences.append(Sentence(text, self._length, self._length + len(text), verdict, citations))
        self._write(text)
        self._at = end

    def finish(self) -> str:
        """Write the rest and return the whole."""
        self._write(self._source[self._at :])
        return "".join(self._pieces)

    def _write(self, text: str) -> None:
        self._pieces.append(text)
        self._length += len(text)


def answer_sentence_spans(text: str) -> list[tuple[int, int]]:
    """Return the spans of an answer's sentences; marks after a full stop belong to the sentence before them."""
    spans: list[tuple[int, int]] = []
    for start, end in _split_after_marks(text):
        begin = start
        marks = _LEADING_MARKS.match(text, start, end)
        if marks and spans and "\n" not in text[spans[-1][1] : start]:
            spans[-1] = (spans[-1][0], marks.end())
            begin = marks.end()
            while begin < end and text[begin].isspace():
                begin += 1
        if any(char.isalnum() for char in text[begin:end]):
            spans.append((begin, end))
    return spans


def _split_after_marks(text: str) -> list[tuple[int, int]]:
    """Return sentence spans, also ended by `[n].` before a small letter."""
    spans: list[tuple[int, int]] = []
    for start, end in sentence_spans(text):
        begin = start
        for match in re.finditer(r"\](?:[.!?])\s+(?=[a-z])", text[start:end]):
            stop = start + match.start() + 2
            spans.append((begin, stop))
            begin = start + match.end()
        spans.append((begin, end))
    return spans


def _claim(sentence: str) -> str:
    return " ".join(_MARKUP.sub(" ", without_marks(sentence)).split())


def _without_mark(sentence: str, n: int) -> str:
    return re.sub(rf"[ \t]*\[{n}\]", "", sentence) if len(MARK.findall(sentence)) == 1 else sentence.replace(f"[{n}]", "")


def _citation(support: Support, item: Evidence) -> Citation:
    chunk = item.hit.passage.chunk
    quote = chunk.text[support.alignment.start : support.alignment.end]
    start = chunk.start + support.alignment.start
    return Citation(item.n, start, start + len(quote), quote, round(min(1.0, support.score), 4))
