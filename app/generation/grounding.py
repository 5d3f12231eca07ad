"""Support and verdict: every sentence of an answer held against the passages it cites.

A citation whose support is under the threshold is dropped; its sentence is kept and marked. Sentences without a citation gain none:
a mark that nobody wrote would be an invention too.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from app.core.ports import Embedder
from app.core.sentences import sentence_spans
from app.core.types import Citation, Evidence, Sentence, Verdict
from app.generation.alignment import content_tokens
from app.generation.citations import MARK, guard, mark_numbers, without_marks
from app.generation.options import GenerationOptions
from app.generation.prompts import REFUSAL
from app.generation.support import Support, SupportJudge, evidence_weights

_LEADING_MARKS = re.compile(r"(?:\[\d{1,4}\])+[.,;:]?")
_MARKUP = re.compile(r"[*_`#>|]+|^\s*[-+]\s+(?:\[[ xX]\]\s+)?|^\s*\d+[.)]\s+", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Grounded:
    """A guarded answer with what holds each of its sentences."""

    text: str
    sentences: tuple[Sentence, ...]
    dropped: tuple[tuple[int, int], ...] = ()
    """Citations that failed: index of the sentence and evidence number."""


class Grounder:
    """Checks answers sentence by sentence. Thread-safe as far as its embedder is."""

    def __init__(self, embedder: Embedder | None, options: GenerationOptions) -> None:
        """Keep the sentence embedder, or None to compare words only."""
        self._judge = SupportJudge(embedder)
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
        weights = evidence_weights([item.hit.passage for item in evidence])
        out = _Rebuilt(guarded)
        dropped: list[tuple[int, int]] = []
        for start, end in answer_sentence_spans(guarded):
            written = guarded[start:end]
            claim = _claim(written)
            kept: list[Citation] = []
            for n in mark_numbers(written):
                support = self._judge.judge(claim, by_number[n].hit.passage, weights)
                if support is None or support.score < self._min_support:
                    dropped.append((len(out.sentences), n))
                    written = _without_mark(written, n)
                else:
                    kept.append(_citation(support, by_number[n]))
            verdict: Verdict = "supported" if kept else self._verdict_without_citation(claim, evidence, weights)
            out.add(start, end, written, verdict, tuple(kept))
        return Grounded(out.finish(), tuple(out.sentences), tuple(dropped))

    def _verdict_without_citation(self, claim: str, evidence: Sequence[Evidence], weights: dict[str, float]) -> Verdict:
        if not content_tokens(claim) or claim.endswith(":"):  # an introduction or a heading claims nothing
            return "weak"
        supports = (self._judge.judge(claim, item.hit.passage, weights) for item in evidence)
        return "weak" if any(support and support.score >= self._min_support for support in supports) else "unsupported"


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
    return Citation(item.n, start, start + len(quote), quote, round(support.score, 4))
