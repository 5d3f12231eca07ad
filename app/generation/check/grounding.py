"""Ground an answer: check every sentence against the passages it may cite.

A citation of a passage that does not say the sentence is dropped. A sentence that is left without
one gets the mark of the passage that says it, if any does, else of one that is about it: small
models write true sentences and forget the marks or mix them up, and the engine knows which passage
says it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from app.core.ports import Reader
from app.core.sentences import sentence_spans
from app.core.types import REFUSAL, Citation, CitedBy, Evidence, Sentence, Verdict
from app.generation.check.citations import (
    MARK,
    ClaimReader,
    guard,
    mark_numbers,
    plain_claim,
    with_mark,
)
from app.generation.check.support import ClaimComparer, Comparison, longest_run, verdict_of
from app.generation.language.claims import Claim, ReadPassage, content_tokens, read_passage
from app.generation.prompt.prompts import PLACEHOLDER
from app.generation.quote.yes_no import asks_yes_or_no

# Find answer sentences that repeat the prompt instead of the passages.

_REPEATED = 0.8
"""Share of a sentence's content words in one run of an instruction from which it repeats it."""
_FEWEST = 3
"""Content words; what is shorter is said by chance."""


class PromptEcho:
    """Knows a prompt's sentences."""

    def __init__(self, prompts: Iterable[str]) -> None:
        """Read the prompts; what is filled in between their words is left out.

        Args:
            prompts: Texts with or without placeholders.
        """
        texts = [MARK.sub(" ", PLACEHOLDER.sub("\n\n", prompt)) for prompt in prompts]
        pieces = {text[start:end] for text in texts for start, end in sentence_spans(text)}
        self._told = [
            tokens for piece in sorted(pieces) if len(tokens := content_tokens(piece)) >= _FEWEST
        ]

    def repeats(self, claim: Claim) -> bool:
        """Return whether a claim is one of the prompt's sentences, or nearly."""
        said = claim.content
        least = max(_FEWEST, _REPEATED * len(said))
        return len(said) >= _FEWEST and any(
            longest_run(said, told) >= least
            for told in self._told
            if not claim.wanted.isdisjoint(told)
        )


_LEADING_MARKS = re.compile(r"(?:\[\d{1,4}\])+[.,;:]?")


@dataclass(frozen=True, slots=True)
class Grounded:
    """A guarded answer with what holds each of its sentences."""

    text: str
    sentences: tuple[Sentence, ...]
    dropped: tuple[tuple[int, int], ...] = ()
    """Citations that failed: index of the sentence and evidence number."""


class Grounder:
    """Checks answers sentence by sentence."""

    def __init__(self, reader: Reader | None = None, prompts: Iterable[str] = ()) -> None:
        """Keep what checking takes.

        Args:
            reader: Reads sentences next to passages; without one only copies are supported.
            prompts: What models are told; a sentence that repeats it is never supported.
        """
        self._echo = PromptEcho(prompts)
        self._reader = reader

    def ground(
        self, text: str, evidence: Sequence[Evidence], by: CitedBy = "model", question: str = ""
    ) -> Grounded:
        """Return the answer with citations checked and completed, and verdicts.

        Args:
            text: What a generator wrote, marks in any shape.
            evidence: The passages it may cite.
            by: Who wrote the text and its marks. The engine quotes: of its sentences it is asked
                where they stand, not whether they are true.
            question: What was asked; a sentence that adds nothing to it claims nothing, unless yes
                or no is asked. Empty: no sentence is taken for its echo.

        Returns:
            Text whose `sentences` lie at their offsets. A supported sentence has citations of what
            says it, an unsure one of what may say it: those that were written or, failing them, one
            that the engine added. A contradicted one has what denies it, others have none.
        """
        by_number = {item.n: item for item in evidence}
        guarded = guard(text, by_number.keys())
        if guarded == REFUSAL:
            return Grounded(guarded, (Sentence(guarded, 0, len(guarded), "supported"),))
        passages = {item.n: read_passage(item.hit.passage) for item in evidence}
        # of a quote is asked where it stands, which needs no reader
        comparer = ClaimComparer(passages.values(), self._reader if by == "model" else None)
        reader = ClaimReader.of(guarded)
        asked = _echoed_words(question)
        out = _Rebuilt(guarded)
        dropped: list[tuple[int, int]] = []
        for start, end in answer_sentence_spans(guarded):
            written = guarded[start:end]
            claim = Claim(plain_claim(written))
            cited = mark_numbers(written)
            says = reader.claims(start, end)
            near = passages if says else {n: passages[n] for n in cited}
            verdict, held = self._verdict(claim, cited, near, comparer, by)
            echoes = bool(claim.content) and asked.issuperset(claim.content)
            if self._echo.repeats(claim):
                verdict, held = "not_found", {}
            elif echoes or (verdict != "supported" and not says):
                verdict, held = "no_claim", {}
            for n in cited:
                if n not in held:
                    dropped.append((len(out.sentences), n))
                    written = _without_mark(written, n)
            for n in held:
                if n not in cited:
                    written = with_mark(written, n)
            citations = tuple(
                _citation(one, by_number[n], by if n in cited else "engine")
                for n, one in held.items()
            )
            out.add(start, end, written, verdict, citations)
        return Grounded(out.finish(), tuple(out.sentences), tuple(dropped))

    def _verdict(
        self,
        claim: Claim,
        cited: Sequence[int],
        passages: Mapping[int, ReadPassage],
        comparer: ClaimComparer,
        by: CitedBy,
    ) -> tuple[Verdict, dict[int, Comparison]]:
        own = _compared(claim, {n: passages[n] for n in cited}, comparer)
        if held := {n: one for n, one in own.items() if _supports(one, by)}:
            return "supported", held
        others = _compared(
            claim, {n: one for n, one in passages.items() if n not in cited}, comparer
        )
        if held := {n: one for n, one in others.items() if _supports(one, by)}:
            best = max(held, key=lambda n: held[n].score)
            return "supported", {best: held[best]}
        found = {**own, **others}
        verdict, deciding = verdict_of(found.values())
        near = {n: one for n, one in own.items() if one.verdict == verdict == "unsure"}
        return verdict, near or {n: one for n, one in found.items() if one is deciding}


def _supports(one: Comparison, by: CitedBy) -> bool:
    return one.verdict == "supported" or (
        by == "engine" and (one.verbatim or one.verdict == "unsure")
    )


def _compared(
    claim: Claim, passages: Mapping[int, ReadPassage], comparer: ClaimComparer
) -> dict[int, Comparison]:
    numbers = list(passages)
    found = comparer.compare(claim, list(passages.values()))
    return {numbers[at]: one for at, one in found.items()}


def _echoed_words(question: str) -> frozenset[str]:
    """Return the words of which an echo is made; none where they can be an answer."""
    if asks_yes_or_no(question) or re.search(r"\bor\b", question, re.IGNORECASE):
        return frozenset()
    return frozenset(content_tokens(question))


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
