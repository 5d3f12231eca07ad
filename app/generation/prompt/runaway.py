"""Stop a model's stream if it repeats itself, what stands above it, or its instructions.

Small models fall into both. The guard reads the stream word by word: a sentence that comes again is
held back, its third time ends the stream; so do eight words in a row of the instructions, and eight
words from the beginning that stand in a quote above. What is held back at that moment never reaches
the reader.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Literal

Runaway = Literal["loop", "leak", "repeat"]

LEAK_WORDS = 8
"""So many words of the instructions in a row are no chance."""
_HOLD_WORDS = 4
"""From so many on a run is held back until it breaks off."""
_TIMES = 3
"""A sentence that comes so often is a loop."""
_LOOP_WORDS = 8
"""Words of a phrase that is looked for inside a sentence that does not end."""
_SHORT = 2
"""Words of a sentence that may come again: "Yes.", a cell of a table."""
_WORD = re.compile(r"[^\W_]+")
_END = re.compile(r"[.!?\u3002\uff01\uff1f][\"'\u201d\u2019)\]]*(?:[ \t]*\[[\d, ]+\])*(?=\s)|\n+")


class RunawayGuard:
    """Lets a stream through until it runs away; feed it the pieces in order."""

    def __init__(
        self, instructions: Iterable[str], allowed: Iterable[str] = (), above: Iterable[str] = ()
    ) -> None:
        """Read what must not be recited.

        Args:
            instructions: The prompt's own words, without passages and question.
            allowed: Texts that may be repeated though the instructions hold them: the passages,
                the question, the refusal.
            above: Texts that the reader sees already: a model that begins with their words says
                nothing new.
        """
        self._above = {gram: text for text in above for gram in _grams(text)}
        known = {gram for text in allowed for gram in _grams(text)}
        self._instructions = {gram for text in instructions for gram in _grams(text)} - known
        self._starts = {gram[:_HOLD_WORDS] for gram in self._instructions}
        self._seen: dict[tuple[str, ...], int] = {}
        self._kept: list[str] = []
        self._open = ""
        """The sentence that has not ended, as far as it has come."""
        self._shown = 0
        """How much of it was let through."""
        self.stopped: Runaway | None = None
        self.repeated = ""
        """What stood above and began to come again."""

    @property
    def text(self) -> str:
        """Everything that was let through."""
        return "".join(self._kept)

    def feed(self, piece: str) -> str:
        """Take the next piece of model output and return what can be shown now."""
        if self.stopped:
            return ""
        self._open += piece
        shown: list[str] = []
        while (end := _END.search(self._open)) and not self.stopped:
            shown.append(self._sentence(self._open[: end.end()]))
            self._open, self._shown = self._open[end.end() :], 0
        if not self.stopped:
            shown.append(self._part())
        return self._let("".join(shown))

    def close(self) -> str:
        """Return what was still held back, unless it repeats."""
        if self.stopped:
            return ""
        shown = self._sentence(self._open)
        self._open = ""
        return self._let(shown)

    def _let(self, text: str) -> str:
        self._kept.append(text)
        return text

    def _sentence(self, text: str) -> str:
        """Return what to show of an ended sentence; nothing if it came before."""
        words = _words(text)
        if self._recited(words):
            self.stopped = "leak"
            return ""
        if self._stands_above(words):
            self.stopped = "repeat"
            return ""
        count = self._seen.get(words, 0) + 1
        self._seen[words] = count
        if count > 1 and len(words) > _SHORT:
            if count >= _TIMES:
                self.stopped = "loop"
            return ""
        return text[self._shown :]

    def _part(self) -> str:
        """Return what can be shown of the sentence that goes on."""
        words = _words(self._open)
        if self._recited(words):
            self.stopped = "leak"
            return ""
        if self._stands_above(words):
            self.stopped = "repeat"
            return ""
        if self._turns_round(words):
            self.stopped = "loop"
            return ""
        if self._may_repeat(words) or self._may_recite(words) or self._may_stand_above(words):
            return ""
        end = len(self._open) if self._open[-1:].isspace() else self._last_word_start()
        fresh = self._open[self._shown : end] if end > self._shown else ""
        self._shown = max(self._shown, end)
        return fresh

    def _last_word_start(self) -> int:
        """Return where the last word begins: it may not have come whole."""
        return len(self._open) - len(re.split(r"\s", self._open)[-1])

    def _may_repeat(self, words: tuple[str, ...]) -> bool:
        return bool(words) and any(
            known[: len(words)] == words for known in self._seen if len(known) > _SHORT
        )

    def _may_recite(self, words: tuple[str, ...]) -> bool:
        """Return whether the last words begin eight words of the instructions."""
        lengths = range(_HOLD_WORDS, min(LEAK_WORDS, len(words) + 1))
        return any(
            words[-n:][:_HOLD_WORDS] in self._starts and self._runs(words[-n:]) for n in lengths
        )

    def _runs(self, run: tuple[str, ...]) -> bool:
        return any(gram[: len(run)] == run for gram in self._instructions)

    def _recited(self, words: tuple[str, ...]) -> bool:
        return any(gram in self._instructions for gram in _windows(words, LEAK_WORDS))

    def _stands_above(self, words: tuple[str, ...]) -> bool:
        """Return whether the text begins with eight words of what the reader sees already."""
        if self._seen or words[:LEAK_WORDS] not in self._above:
            return False
        self.repeated = self._above[words[:LEAK_WORDS]]
        return True

    def _may_stand_above(self, words: tuple[str, ...]) -> bool:
        """Return whether its first words, fewer than eight, may go on so."""
        return not self._seen and any(gram[: len(words)] == words for gram in self._above)

    def _turns_round(self, words: tuple[str, ...]) -> bool:
        counts: dict[tuple[str, ...], int] = {}
        for gram in _windows(words, _LOOP_WORDS):
            counts[gram] = counts.get(gram, 0) + 1
        return bool(counts) and max(counts.values()) >= _TIMES


def _words(text: str) -> tuple[str, ...]:
    return tuple(word.casefold() for word in _WORD.findall(re.sub(r"\[[\d, ]+\]", " ", text)))


def _windows(words: tuple[str, ...], size: int) -> list[tuple[str, ...]]:
    return [words[at : at + size] for at in range(len(words) - size + 1)]


def _grams(text: str) -> list[tuple[str, ...]]:
    return _windows(_words(text), LEAK_WORDS)
