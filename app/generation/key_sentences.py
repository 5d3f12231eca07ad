"""Choose the sentences that say most of what a document says, part by part.

A sentence counts by the document's frequent words in it, by what it announces ("we show", "in
conclusion") and by its place: the first sentences of a part say what it is about. Words of
sentences already chosen count less, so the next one adds something.

References:
    Nenkova, Vanderwende 2005, The Impact of Frequency on Summarization (SumBasic).
    Edmundson 1969, New Methods in Automatic Extracting (cue words, title and place).
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from app.core.text import word_count
from app.core.types import Evidence
from app.generation.candidates import Candidate, candidates
from app.generation.choice import quotable
from app.generation.document_parts import DocumentPart, joined_parts
from app.generation.reading import MAX_QUOTE_CHARS, content_tokens

FEWEST, MOST = 5, 12
"""Sentences of a summary."""
_MIN_WORDS, _MAX_WORDS = 6, 50
_CUE = re.compile(
    r"\b(?:we|this (?:paper|study|work|article|report|chapter|book|guide|document)|the authors?)\s"
    r"(?:\w+ ){0,2}?(?:propose|introduce|present|show|find|found|describe|report|develop|conclude"
    r"|demonstrate|recommend|argue|compare|study|studied|investigate|evaluate|examine|measure"
    r"|explain|cover)\w*"
    r"|\b(?:results?|findings|experiments|data|evidence) (?:\w+ )?(?:show|suggest|indicate"
    r"|demonstrate|reveal|confirm)\w*|\bin (?:conclusion|summary|short)\b|\boutperform\w*"
    r"|\b(?:main|key|most important) (?:contribution|finding|result|reason|idea|point)s?\b"
    r"|\b(?:is|are) (?:a|an|the) \w+",
    re.IGNORECASE,
)
_ASIDE = re.compile(
    r"\b(?:figures?|figs?\.?|tables?|sections?|appendix|equations?) \(?[A-Z\d]"
    r"|\bfor (?:example|instance)\b"
    r"|\bas follows\b|https?://|@|\b(?:et al|e\.g)\b|\borgani[sz]ed\b|\bsee (?:also|the)\b"
    r"|\b(?:license|copyright|all rights reserved|equal contribution)\b",
    re.IGNORECASE,
)
_CONNECTS = re.compile(
    r"(?:additionally|moreover|furthermore|also|however|concretely|specifically|consequently|thus"
    r"|therefore|hence|instead|finally|similarly|to this end|in particular|on the other hand)\b",
    re.IGNORECASE,
)
_SYMBOL = re.compile(r"[^\w\s.,;:'\"()\u2019\u201c\u201d%-]|\b\d")
_CUE_VALUE, _ASIDE_VALUE = 0.25, -0.5
_LINKED_VALUE = -0.2
"""Of a sentence that leans on the one before it."""
_PLACE_VALUE = 0.3
"""Of the first sentence of a part; it halves with each further one."""
_SYMBOLS_VALUE = -4.0
"""Times the share of characters that are symbols or begin a number."""
_USED = 0.4
"""Factor of a word's weight after a chosen sentence had it."""
_DEEP_PARTS = frozenset({"abstract"})
"""Parts that are summaries themselves: they give two sentences."""


@dataclass(frozen=True, slots=True)
class KeyPart:
    """A part and the sentences that stand for it, in reading order."""

    part: DocumentPart
    sentences: tuple[Candidate, ...]


def key_sentences(parts: Sequence[DocumentPart], most: int = MOST) -> tuple[KeyPart, ...]:
    """Return the key sentences of a document by part, in document order.

    Every part that has a sentence to quote gives one, a longer one more until there are five.

    Args:
        parts: From `document_parts`.
        most: Sentences wanted at most.

    Returns:
        Parts with sentences; no sentence says what another one says.
    """
    parts = joined_parts(parts, most)
    read = [_Sentences.of(part) for part in parts]
    weights = _word_weights([one for found in read for one in found.candidates])
    chosen: list[list[Candidate]] = [[] for _ in read]
    for at in _turns(read, most):
        best = read[at].best(weights, chosen)
        if best is not None:
            chosen[at].append(best)
            for token in best.tokens:
                if token in weights:
                    weights[token] *= _USED
    return tuple(
        KeyPart(part, tuple(sorted(found, key=_place)))
        for part, found in zip(parts, chosen, strict=True)
        if found
    )


def telling_texts(evidence: Sequence[Evidence], most_characters: int) -> dict[int, str]:
    """Return the most telling sentences of passages, by evidence number, in reading order.

    Args:
        evidence: Consecutive passages of one document.
        most_characters: Of all texts together; the best sentence is returned in any case.
    """
    found = _Sentences.of(DocumentPart("", "", tuple(evidence))).candidates
    weights = _word_weights(found)
    left = most_characters
    chosen: list[Candidate] = []
    for one in sorted(found, key=lambda one: -_value(one, weights, len(found))):
        if len(one.text) <= left or not chosen:
            chosen.append(one)
            left -= len(one.text)
    texts: dict[int, str] = {}
    for one in sorted(chosen, key=_place):
        texts[one.item.n] = f"{texts[one.item.n]} {one.text}" if one.item.n in texts else one.text
    return texts


def _turns(read: Sequence[_Sentences], most: int) -> list[int]:
    """Return whose turn it is to give a sentence: each part, then the longest ones again."""
    filled = [at for at, one in enumerate(read) if one.candidates]
    turns = [*filled, *(at for at in filled if read[at].part.section in _DEEP_PARTS)][:most]
    while filled and len(turns) < min(FEWEST, most):
        share = {at: read[at].part.characters / (1 + turns.count(at)) for at in filled}
        turns.append(max(filled, key=lambda at: share[at]))
        if turns.count(turns[-1]) > len(read[turns[-1]].candidates):
            filled.remove(turns[-1])
    return turns


@dataclass(frozen=True, slots=True)
class _Sentences:
    """The sentences of a part that may stand for it."""

    part: DocumentPart
    candidates: tuple[Candidate, ...]

    @staticmethod
    def of(part: DocumentPart) -> _Sentences:
        """Read a part; what stands in two overlapping passages counts once."""
        seen: set[tuple[int, str]] = set()
        found: list[Candidate] = []
        for one in candidates(part.evidence):
            key = (one.item.hit.passage.chunk.start + one.start, one.text)
            if key not in seen and _may_stand_alone(one):
                seen.add(key)
                found.append(one)
        return _Sentences(part, tuple(found))

    def best(
        self, weights: Mapping[str, float], chosen: Sequence[Sequence[Candidate]]
    ) -> Candidate | None:
        """Return the part's best sentence that says something new; None if none is left."""
        taken = [one for found in chosen for one in found]
        fresh = [
            (_value(one, weights, place), -place, one)
            for place, one in enumerate(self.candidates)
            if not any(alike(one, other) for other in taken)
        ]
        return max(fresh, key=lambda row: row[:2])[2] if fresh else None


def _may_stand_alone(one: Candidate) -> bool:
    return (
        one.whole
        and not (one.dangles or one.listed or one.entry or one.announces)
        and _MIN_WORDS <= word_count(one.text) <= _MAX_WORDS
        and one.end - one.start <= MAX_QUOTE_CHARS
        and quotable(one)
    )


def _word_weights(sentences: Sequence[Candidate]) -> dict[str, float]:
    """Return a weight per content word: the logarithm of how many sentences have it."""
    counts = Counter(token for one in sentences for token in set(content_tokens(one.text)))
    heaviest = math.log1p(max(counts.values(), default=1))
    return {token: math.log1p(count) / heaviest for token, count in counts.items()}


def _value(one: Candidate, weights: Mapping[str, float], place: int) -> float:
    tokens = set(content_tokens(one.text))
    mean = sum(weights.get(token, 0.0) for token in tokens) / max(4, len(tokens))
    symbols = len(_SYMBOL.findall(one.text)) / len(one.text)
    return (
        mean
        + _CUE_VALUE * bool(_CUE.search(one.text))
        + _ASIDE_VALUE * bool(_ASIDE.search(one.text))
        + _PLACE_VALUE * 0.5**place
        + _SYMBOLS_VALUE * symbols
        + _LINKED_VALUE * (one.points_back or bool(_CONNECTS.match(one.text)))
    )


def alike(one: Candidate, other: Candidate) -> bool:
    """Return whether two sentences say nearly the same: one has most words of the other."""
    return len(one.tokens & other.tokens) >= 0.6 * min(len(one.tokens), len(other.tokens))


def _place(one: Candidate) -> tuple[int, int]:
    return one.item.n, one.ordinal
