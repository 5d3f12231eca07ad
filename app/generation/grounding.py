"""Ground an answer: check every sentence against the passages it may cite.

A citation whose support is under the threshold is dropped. A sentence that is left without one gets
the mark of the passage that supports it best, if any does: small models write true sentences and
forget the marks or mix them up, and the engine knows which passage says it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from app.core.ports import Embedder
from app.core.sentences import sentence_spans
from app.core.types import Citation, CitedBy, Evidence, Sentence, Verdict
from app.generation.citations import MARK, guard, mark_numbers, with_mark
from app.generation.claims import ClaimReader, plain_claim
from app.generation.echoes import PromptEcho
from app.generation.options import GenerationOptions
from app.generation.prompts import REFUSAL
from app.generation.reading import Claim, ReadPassage
from app.generation.support import Comparison, Examination, SupportJudge

_LEADING_MARKS = re.compile(r"(?:\[\d{1,4}\])+[.,;:]?")


@dataclass(frozen=True, slots=True)
class Grounded:
    """A guarded answer with what holds each of its sentences."""

    text: str
    sentences: tuple[Sentence, ...]
    dropped: tuple[tuple[int, int], ...] = ()
    """Citations that failed: index of the sentence and evidence number."""


class Grounder:
    """Checks answers sentence by sentence. Thread-safe as far as its embedder is."""

    def __init__(
        self, embedder: Embedder | None, options: GenerationOptions, prompts: Iterable[str] = ()
    ) -> None:
        """Keep what checking takes.

        Args:
            embedder: For vectors of sentences; None to compare words only.
            options: The least support of a citation that is kept.
            prompts: What models are told; a sentence that repeats it is never supported.
        """
        self._echo = PromptEcho(prompts)
        self._judge = SupportJudge(embedder)
        self._min_support = options.grounding_min_similarity

    def ground(self, text: str, evidence: Sequence[Evidence], by: CitedBy = "model") -> Grounded:
        """Return the answer with citations checked and completed, and verdicts.

        Args:
            text: What a generator wrote, marks in any shape.
            evidence: The passages it may cite.
            by: Who wrote the marks in the text.

        Returns:
            Text whose `sentences` lie at their offsets. `supported`: a citation holds the sentence,
            one that was written or, failing that, one that the engine added. `unsupported`: no
            passage holds it. `no_claim`: it is a heading, a table's head, code, a question or a
            lead-in, which claims nothing, and no citation of it holds.
        """
        by_number = {item.n: item for item in evidence}
        guarded = guard(text, by_number.keys())
        if guarded == REFUSAL:
            return Grounded(guarded, (Sentence(guarded, 0, len(guarded), "supported"),))
        passages = {item.n: ReadPassage(item.hit.passage) for item in evidence}
        examination = self._judge.examine(passages.values(), self._min_support)
        spans = answer_sentence_spans(guarded)
        reader = ClaimReader.of(guarded)
        claims = [Claim(plain_claim(guarded[start:end])) for start, end in spans]
        says = [reader.claims(start, end) for start, end in spans]
        cited = [
            {n: examination.compare(claim, passages[n]) for n in mark_numbers(guarded[start:end])}
            for claim, (start, end) in zip(claims, spans, strict=True)
        ]
        examination.settle(one for found in cited for one in found.values() if one)
        echoed = {claim for claim in claims if self._echo.repeats(claim)}
        held = [
            {n: one for n, one in found.items() if one and self._holds(one) and claim not in echoed}
            for claim, found in zip(claims, cited, strict=True)
        ]
        open_claims = [
            claim
            for claim, kept, true in zip(claims, held, says, strict=True)
            if true and not kept and claim not in echoed
        ]
        elsewhere = self._held_elsewhere(open_claims, passages, examination)
        out = _Rebuilt(guarded)
        dropped: list[tuple[int, int]] = []
        for (start, end), claim, found, kept, true in zip(
            spans, claims, cited, held, says, strict=True
        ):
            written = guarded[start:end]
            for n in found:
                if n not in kept:
                    dropped.append((len(out.sentences), n))
                    written = _without_mark(written, n)
            citations = tuple(_citation(one, by_number[n], by) for n, one in kept.items())
            if not kept and (best := elsewhere.get(claim)):
                written = with_mark(written, best[0])
                citations = (_citation(best[1], by_number[best[0]], "engine"),)
            verdict: Verdict = "supported" if citations else "unsupported" if true else "no_claim"
            out.add(start, end, written, verdict, citations)
        return Grounded(out.finish(), tuple(out.sentences), tuple(dropped))

    def _holds(self, one: Comparison | None) -> bool:
        return one is not None and one.settled and one.score >= self._min_support

    def _held_elsewhere(
        self, claims: Sequence[Claim], passages: Mapping[int, ReadPassage], examination: Examination
    ) -> Mapping[Claim, tuple[int, Comparison]]:
        """Return, for each claim that a passage supports, the best passage and match."""
        compared = {
            claim: {n: examination.compare(claim, one) for n, one in passages.items()}
            for claim in claims
        }
        examination.settle(
            one
            for found in compared.values()
            for one in found.values()
            if one and not any(map(self._holds, found.values()))
        )
        best: dict[Claim, tuple[int, Comparison]] = {}
        for claim, found in compared.items():
            holding = [(n, one) for n, one in found.items() if one and self._holds(one)]
            if holding:
                best[claim] = max(holding, key=lambda pair: pair[1].score)
        return best


class _Rebuilt:
    """The answer while sentences lose and gain marks, with correct offsets."""

    def __init__(self, guarded: str) -> None:
        self._source = guarded
        self._at = 0
        self._length = 0
        self._pieces: list[str] = []
        self.sentences: list[Sentence] = []

    def add(
        self, start: int, end: int, text: str, verdict: Verdict, citations: tuple[Citation, ...]
    ) -> None:
        """Write what lies before a sentence, then the sentence as it is now."""
        self._write(self._source[self._at : start])
        self.sentences.append(
            Sentence(text, self._length, self._length + len(text), verdict, citations)
        )
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
    """Return sentence spans of an answer; marks after a stop belong before it."""
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


def _without_mark(sentence: str, n: int) -> str:
    return (
        re.sub(rf"[ \t]*\[{n}\]", "", sentence)
        if len(MARK.findall(sentence)) == 1
        else sentence.replace(f"[{n}]", "")
    )


def _citation(held: Comparison, item: Evidence, by: CitedBy) -> Citation:
    chunk = item.hit.passage.chunk
    quote = chunk.text[held.alignment.start : held.alignment.end]
    start = chunk.start + held.alignment.start
    return Citation(item.n, start, start + len(quote), quote, round(held.score, 4), by)
