"""Define the verdict of a citation check on each sentence of a text."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import get_args

from app.core.types.vocabulary import SecondVerdict, Verdict


@dataclass(frozen=True, slots=True)
class Finding:
    """Characters `[start, end)` that bear on a sentence; `quote` equals them."""

    start: int
    end: int
    quote: str
    support: float
    """Probability in [0, 1] that they hold the sentence."""
    library: str | None = None
    """With `doc_id`, `title` and `revision` None when the text is none of a library."""
    doc_id: str | None = None
    title: str | None = None
    revision: int | None = None


@dataclass(frozen=True, slots=True)
class CheckedSentence:
    """A sentence at `text[start:end]` with its verdict; the best findings first."""

    text: str
    start: int
    end: int
    verdict: Verdict
    support: float = 0.0
    """Of the best finding, in [0, 1]; 0 without one."""
    findings: tuple[Finding, ...] = ()
    better: Finding | None = None
    """A place of a library that supports it, where the given source does not."""
    judged: SecondVerdict | None = None
    """The verdict of the model that was asked too; None where none was, or none was readable."""


@dataclass(frozen=True, slots=True)
class CheckReport:
    """A checked text, sentence by sentence, in order."""

    sentences: tuple[CheckedSentence, ...]
    judge: str | None = None
    """The model that was asked too."""
    judge_failed: str | None = None
    """Why it was asked no further; the sentences after that have no verdict of it."""

    @property
    def counts(self) -> Mapping[Verdict, int]:
        """Return the number of sentences by verdict; every verdict has an entry."""
        found = Counter(sentence.verdict for sentence in self.sentences)
        return {verdict: found[verdict] for verdict in get_args(Verdict)}
