"""Build an answer out of quotes and plain words, each quote with its exact citation."""

from __future__ import annotations

from dataclasses import dataclass, replace

from app.core.types import Citation, Evidence, Sentence
from app.generation.candidates import Candidate
from app.generation.choice import rendered

EXACT = 1.0
"""Support of a sentence that stands in its document word for word."""


@dataclass(frozen=True, slots=True)
class QuotedText:
    """A text, its quoted sentences at their offsets, and the passages they stand in."""

    text: str
    sentences: tuple[Sentence, ...]
    evidence: tuple[Evidence, ...]
    """Numbered from 1 in the order of the text."""


class Quoting:
    """Collects plain words and quotes; only quotes are sentences of the answer."""

    def __init__(self) -> None:
        """Begin with an empty text."""
        self._text = ""
        self._sentences: list[Sentence] = []
        self._evidence: dict[int, Evidence] = {}

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
            candidate: The sentence; its passage gets the next number, or keeps the one it got.
            in_table: Escape what would end a cell.
        """
        old = candidate.item
        item = self._evidence.setdefault(old.n, replace(old, n=len(self._evidence) + 1))
        shown = rendered(replace(candidate, item=item))
        if in_table:
            shown = shown.replace("|", r"\|")
        start = len(self._text)
        self._text += shown
        citation = _citation(replace(candidate, item=item))
        self._sentences.append(Sentence(shown, start, len(self._text), "supported", (citation,)))

    def done(self) -> QuotedText:
        """Return what was collected."""
        evidence = tuple(self._evidence.values())
        return QuotedText(self._text, tuple(self._sentences), evidence)


def _citation(candidate: Candidate) -> Citation:
    """Return the citation of a sentence: its very characters in the document."""
    chunk = candidate.item.hit.passage.chunk
    start = chunk.start + candidate.start
    quote = chunk.text[candidate.start : candidate.end]
    return Citation(candidate.item.n, start, start + len(quote), quote, EXACT, "engine")
