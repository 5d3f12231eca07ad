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
from itertools import groupby, pairwise

from app.core.text import word_count
from app.core.types import Evidence
from app.generation.flags.injection import without_instructions
from app.generation.language.claims import MAX_QUOTE_CHARS, content_tokens
from app.generation.language.tokens import TokenEstimate
from app.generation.quote.candidates import Candidate, candidates, quotable
from app.generation.quote.quoting import QuotedText, Quoting

# Cut a document's passages into the parts that a summary or a checklist goes through.

LEFT_OUT = frozenset({"references", "contents", "acknowledgements", "appendix"})
"""Sections that say nothing of their own, or repeat in detail what stands in front."""
BODY = "body"
_MOST_HEADING_WORDS = 10
_HEADING = re.compile(r"\s*(?:#{1,6}\s+)?(?P<title>[^\n]{2,90})\n")
_MAIN = re.compile(r"\s*\d{1,2}\.?\s+[A-Z]")
_NUMBER = re.compile(r"\A(?:\d{1,2}(?:\.\d{1,2})*|[A-H]|[IVX]{1,5})[.):]?\s+")
_FIGURES = re.compile(r"\d\D+\d")
_ENDS = (".", "!", "?", ",", ";", ":")


@dataclass(frozen=True, slots=True)
class DocumentPart:
    """Consecutive passages of one document under one heading."""

    name: str
    """As a reader sees it; empty where the document has no headings."""
    section: str
    """The normalised section of its first passage."""
    evidence: tuple[Evidence, ...]

    @property
    def characters(self) -> int:
        """Length of the text; overlaps of passages count twice."""
        return sum(len(item.hit.passage.chunk.text) for item in self.evidence)


def document_parts(evidence: Sequence[Evidence]) -> tuple[DocumentPart, ...]:
    """Return a document's parts in order, those that say nothing left out.

    A part ends where the section changes or, in text without known sections, where a passage
    begins with a heading. The front matter of a paper, before its abstract, is no part.

    Args:
        evidence: All passages of one document, in order.
    """
    groups: list[list[Evidence]] = []
    for item in evidence:
        if not groups or _begins(groups[-1][-1], item):
            groups.append([])
        groups[-1].append(item)
    sections = {item.hit.passage.chunk.section for item in evidence}
    parts = [_part(group) for group in groups if group[0].hit.passage.chunk.section not in LEFT_OUT]
    if len(parts) > 1 and "abstract" in sections and parts[0].section == BODY:
        parts = parts[1:]
    return tuple(parts)


def joined_parts(parts: Sequence[DocumentPart], most: int) -> tuple[DocumentPart, ...]:
    """Return at most so many parts: the two shortest neighbours are joined, repeatedly."""
    found = list(parts)
    while len(found) > most:
        lengths = [one.characters + other.characters for one, other in pairwise(found)]
        at = lengths.index(min(lengths))
        one, other = found[at : at + 2]
        longer = one if one.characters >= other.characters else other
        found[at : at + 2] = [
            DocumentPart(longer.name, longer.section, one.evidence + other.evidence)
        ]
    return tuple(found)


def _begins(before: Evidence, item: Evidence) -> bool:
    """Return whether a passage begins another part than the one before it.

    Within a known section only a main heading does: "3 Data", not "3.1 Sources".
    """
    section = item.hit.passage.chunk.section
    if before.hit.passage.chunk.section != section:
        return True
    headed = heading_of(item) is not None
    return headed and (section == BODY or _MAIN.match(item.hit.passage.chunk.text) is not None)


def _part(group: Sequence[Evidence]) -> DocumentPart:
    section = group[0].hit.passage.chunk.section
    title = heading_of(group[0])
    if title is None or title == group[0].hit.passage.document.title:
        title = "" if section == BODY else section.capitalize()
    return DocumentPart(title.capitalize() if title.isupper() else title, section, tuple(group))


def text_below_heading(item: Evidence) -> str:
    """Return a passage's text without the heading that it begins with."""
    text = item.hit.passage.chunk.text
    match = _HEADING.match(text)
    return text[match.end() :] if match is not None and heading_of(item) is not None else text


def heading_of(item: Evidence) -> str | None:
    """Return the heading that a passage begins with, without its number; None if none."""
    match = _HEADING.match(item.hit.passage.chunk.text)
    if match is None:
        return None
    title = _NUMBER.sub("", match["title"].strip())
    if not title or title.endswith(_ENDS) or not title[0].isupper() or "|" in title:
        return None
    if _FIGURES.search(title):  # a row of a table that a page break left alone
        return None
    return title if word_count(title) <= _MOST_HEADING_WORDS else None


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


def key_sentences(
    parts: Sequence[DocumentPart], most: int = MOST
) -> list[tuple[DocumentPart, list[Candidate]]]:
    """Return the key sentences of a document by part, in document order.

    Every part that has a sentence to quote gives one, a longer one more until there are five.

    Args:
        parts: From `document_parts`.
        most: Sentences wanted at most.

    Returns:
        Parts with their sentences in reading order; no sentence says what another one says.
    """
    parts = joined_parts(parts, most)
    read = [_that_may_stand(part.evidence) for part in parts]
    weights = _word_weights([one for found in read for one in found])
    chosen: list[list[Candidate]] = [[] for _ in read]
    for at in _turns(parts, list(map(len, read)), most):
        best = _best(read[at], weights, [one for found in chosen for one in found])
        if best is not None:
            chosen[at].append(best)
            for token in best.tokens:
                if token in weights:
                    weights[token] *= _USED
    return [
        (part, sorted(found, key=_place))
        for part, found in zip(parts, chosen, strict=True)
        if found
    ]


def telling_texts(evidence: Sequence[Evidence], most_characters: int) -> dict[int, str]:
    """Return the most telling sentences of passages, by evidence number, in reading order.

    Args:
        evidence: Consecutive passages of one document.
        most_characters: Of all texts together; the best sentence is returned in any case.
    """
    found = _that_may_stand(evidence)
    weights = _word_weights(found)
    left = most_characters
    chosen: list[Candidate] = []
    for one in sorted(found, key=lambda one: -_value(one, weights, len(found))):
        if len(one.text) <= left or not chosen:
            chosen.append(one)
            left -= len(one.text)
    return _by_passage(sorted(chosen, key=_place))


def _by_passage(sentences: Sequence[Candidate]) -> dict[int, str]:
    """Return the text of sentences by the number of their passage."""
    texts: dict[int, str] = {}
    for one in sentences:
        texts[one.item.n] = f"{texts[one.item.n]} {one.text}" if one.item.n in texts else one.text
    return texts


def _turns(parts: Sequence[DocumentPart], held: Sequence[int], most: int) -> list[int]:
    """Return whose turn it is to give a sentence: each part, then the longest ones again.

    `held` is how many sentences each part has to give.
    """
    filled = [at for at, count in enumerate(held) if count]
    turns = [*filled, *(at for at in filled if parts[at].section in _DEEP_PARTS)][:most]
    while filled and len(turns) < min(FEWEST, most):
        share = {at: parts[at].characters / (1 + turns.count(at)) for at in filled}
        turns.append(max(filled, key=lambda at: share[at]))
        if turns.count(turns[-1]) > held[turns[-1]]:
            filled.remove(turns[-1])
    return turns


def _best(
    found: Sequence[Candidate], weights: Mapping[str, float], taken: Sequence[Candidate]
) -> Candidate | None:
    """Return a part's best sentence that says something new; None if none is left."""
    fresh = [
        (_value(one, weights, place), -place, one)
        for place, one in enumerate(found)
        if not any(alike(one, other) for other in taken)
    ]
    return max(fresh, key=lambda row: row[:2])[2] if fresh else None


def _that_may_stand(evidence: Sequence[Evidence]) -> list[Candidate]:
    """Return the sentences that may stand for a part."""
    return [one for one in alone(evidence, _MIN_WORDS, _MAX_WORDS) if not one.entry]


def alone(evidence: Sequence[Evidence], fewest_words: int, most_words: int) -> list[Candidate]:
    """Return whole sentences that can be quoted without others; of two passages' overlap once."""
    found: dict[tuple[int, str], Candidate] = {}
    for one in candidates(evidence):
        if (
            one.whole
            and not (one.dangles or one.listed or one.announces)
            and fewest_words <= word_count(one.text) <= most_words
            and one.end - one.start <= MAX_QUOTE_CHARS
            and quotable(one)
        ):
            found.setdefault((one.item.hit.passage.chunk.start + one.start, one.text), one)
    return list(found.values())


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


# Cut documents into parts that a model reads one after another, whole where they fit.

MOST_PARTS = 24
"""Calls of a model for one summary. A longer document gives the most telling sentences of each
part."""
_FRAME_TOKENS = 40
"""What a passage's number, title and section take in a prompt."""


@dataclass(frozen=True, slots=True)
class SummaryPart:
    """Consecutive passages, and what is handed over of each, by evidence number."""

    evidence: tuple[Evidence, ...]
    texts: Mapping[int, str]


def summary_parts(
    whole: Sequence[Evidence], budget_tokens: int, estimate: TokenEstimate
) -> tuple[SummaryPart, ...]:
    """Return the parts of documents, each within a budget, in reading order.

    Args:
        whole: All passages of the documents, in reading order.
        budget_tokens: Most that one part may take.
        estimate: How many tokens a text may take.

    Returns:
        At most 24 parts and one more per document. A part ends with its document, and with its
        section where it is half full. Lists of references and the like, headings, and sentences
        that read like instructions are left out.
    """
    costs: list[list[tuple[Evidence, int]]] = []
    for _, group in groupby(whole, key=lambda item: item.hit.passage.document.doc_id):
        kept = [item for part in document_parts(tuple(group)) for item in part.evidence]
        costs.append(
            [(one, estimate.tokens(one.hit.passage.chunk.text) + _FRAME_TOKENS) for one in kept]
        )
    total = sum(cost for found in costs for _, cost in found)
    size = max(budget_tokens, math.ceil(total / MOST_PARTS))
    packed = [evidence for found in costs for evidence in _packed(found, size)]
    texts = [
        _whole_texts(one)
        if size <= budget_tokens
        else telling_texts(one, _characters(one, budget_tokens, size))
        for one in packed
    ]
    return tuple(
        SummaryPart(tuple(item for item in one if item.n in found), found)
        for one, found in zip(packed, texts, strict=True)
    )


OUTLINE = ("abstract", "conclusion", "introduction")
"""Sections that say what a document is about, the most telling first."""


def outline(whole: Sequence[Evidence], budget_tokens: int, estimate: TokenEstimate) -> SummaryPart:
    """Return what tells what documents are about, within a budget: one call instead of many.

    That is abstract, conclusion and introduction, each whole or by its most telling sentences, and
    the headings of the rest. A document without such sections gives its first and its last part.

    Args:
        whole: All passages of the documents, in reading order.
        budget_tokens: Most that it may take.
        estimate: How many tokens a text may take.
    """
    groups = [list(group) for _, group in groupby(whole, key=_document_of)]
    texts: dict[int, str] = {}
    for group in groups:
        parts = document_parts(group)
        told = [one for name in OUTLINE for one in parts if one.section == name]
        told = told or [*parts[:1], *parts[1:][-1:]]
        heads = {one.evidence[0].n: one.name for one in parts if one not in told and one.name}
        left = int(budget_tokens * estimate.chars_per_token / len(groups))
        left -= sum(len(name) + _FRAME_TOKENS for name in heads.values())
        for part in told:
            found = _whole_texts(part.evidence)
            if sum(map(len, found.values())) > left:
                found = telling_texts(part.evidence, left) if left > 0 else {}
            left -= sum(len(text) + _FRAME_TOKENS for text in found.values())
            texts |= found
        texts |= heads
    return SummaryPart(tuple(item for item in whole if item.n in texts), texts)


def _document_of(item: Evidence) -> str:
    return item.hit.passage.document.doc_id


def _whole_texts(evidence: Sequence[Evidence]) -> dict[int, str]:
    found = {item.n: without_instructions(text_below_heading(item)) for item in evidence}
    return {n: text for n, text in found.items() if text.strip()}


def key_texts(evidence: Sequence[Evidence]) -> dict[int, str]:
    """Return the two key sentences of a part, by evidence number."""
    found = key_sentences(document_parts(evidence), 2)
    return _by_passage([sentence for _, sentences in found for sentence in sentences])


def _packed(found: Sequence[tuple[Evidence, int]], size: int) -> list[tuple[Evidence, ...]]:
    groups: list[list[Evidence]] = []
    taken = size
    for item, cost in found:
        section = item.hit.passage.chunk.section
        turns = bool(groups) and groups[-1][-1].hit.passage.chunk.section != section
        if not groups or taken + cost > size or (turns and taken * 2 > size):
            groups.append([])
            taken = 0
        groups[-1].append(item)
        taken += cost
    return [tuple(group) for group in groups]


def _characters(evidence: Sequence[Evidence], budget_tokens: int, size_tokens: int) -> int:
    """Return how many characters of a part fit the budget, by its share of the whole size."""
    length = sum(len(item.hit.passage.chunk.text) for item in evidence)
    return int(length * budget_tokens / size_tokens)


# Write a summary out of quoted key sentences, part by part.

_FEWEST_OF_SEVERAL = 2
"""Sentences that each of several documents gives at least."""


def quoted_summary(evidence: Sequence[Evidence]) -> QuotedText:
    """Return the key sentences of one or several documents, under their headings.

    Args:
        evidence: All passages of the documents, in reading order.

    Returns:
        Five to twelve sentences of one document; fewer of each where there are several. Empty if
        nothing can be quoted.
    """
    groups = [
        tuple(group)
        for _, group in groupby(evidence, key=lambda item: item.hit.passage.document.doc_id)
    ]
    most = MOST if len(groups) == 1 else max(_FEWEST_OF_SEVERAL, MOST // len(groups))
    quoting = Quoting()
    for group in groups:
        found = key_sentences(document_parts(group), most)
        if not found:
            continue
        if len(groups) > 1:
            quoting.start_block(f"## {group[0].hit.passage.document.title}")
        shown = ""
        for part, sentences in found:
            if part.name not in (shown, ""):
                quoting.start_block(f"### {part.name}")
            shown = part.name
            quoting.start_block()
            for at, sentence in enumerate(sentences):
                quoting.say(" " if at else "")
                quoting.quote(sentence)
    return quoting.done()
