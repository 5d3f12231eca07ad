"""Build an answer out of quotes and plain words, each quote with its exact citation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from app.core.types import Citation, Evidence, Sentence
from app.generation.candidates import Candidate
from app.generation.choice import rendered

EXACT = 1.0
"""Support of a sentence that stands in its document word for word."""


@dataclass(frozen=True, slots=True)
class QuotedText:
    """A text, its quoted sentences at their offsets, and the passages known to it."""

    text: str
    sentences: tuple[Sentence, ...]
    evidence: tuple[Evidence, ...]
    """What was sent before, numbers kept, then what else is quoted, in the order of the text."""


class Quoting:
    """Collects plain words and quotes; only quotes are sentences of the answer."""

    def __init__(self, sent: Sequence[Evidence] = ()) -> None:
        """Begin with an empty text; passages that were sent keep their numbers."""
        self._text = ""
        self._sentences: list[Sentence] = []
        self._evidence = {_chunk(item): item for item in sent}
        self._free = max((item.n for item in sent), default=0) + 1

    def say(self, words: str) -> None:
        """Add words that claim nothing: a label, the frame of a table."""
        self._text += words

    def start_block(self, words: str = "") -> None:
        """Begin a block of its own, with a heading or nothing."""
        gap = "\n\n" if self._text and not self._text.endswith("\n\n") else ""
        self._text += gap + words

    def quote(self, candidate: Candidate, *, in_table: bool = False) -> None:
        """Add a sentence of a document with its mark.

        Args:
            candidate: The sentence; its passage keeps its number, or gets the next one.
            in_table: Escape what would end a cell.
        """
        item = self._numbered(candidate.item)
        shown = rendered(replace(candidate, item=item))
        if in_table:
            shown = shown.replace("|", r"\|")
        start = len(self._text)
        self._text += shown
        citation = _citation(replace(candidate, item=item))
        self._sentences.append(Sentence(shown, start, len(self._text), "supported", (citation,)))

    def _numbered(self, item: Evidence) -> Evidence:
        known = self._evidence.get(_chunk(item))
        if known is None:
            known = self._evidence[_chunk(item)] = replace(item, n=self._free)
            self._free += 1
        elif known.hit.fallback:  # what is quoted is no fallback any more
            known = self._evidence[_chunk(item)] = replace(item, n=known.n)
        return known

    def done(self) -> QuotedText:
        """Return what was collected."""
        evidence = tuple(self._evidence.values())
        return QuotedText(self._text, tuple(self._sentences), evidence)


def behind(
    words: str, text: str, sentences: Sequence[Sentence]
) -> tuple[str, tuple[Sentence, ...]]:
    """Return a text behind words that claim nothing, its sentences moved along."""
    by = len(words)
    moved = tuple(
        replace(one, answer_start=one.answer_start + by, answer_end=one.answer_end + by)
        for one in sentences
    )
    return words + text, moved


def _chunk(item: Evidence) -> tuple[str, int]:
    return item.hit.passage.chunk.library.value, item.hit.passage.chunk.chunk_id


def _citation(candidate: Candidate) -> Citation:
    """Return the citation of a sentence: its very characters in the document."""
    chunk = candidate.item.hit.passage.chunk
    start = chunk.start + candidate.start
    quote = chunk.text[candidate.start : candidate.end]
    return Citation(candidate.item.n, start, start + len(quote), quote, EXACT, "engine")
