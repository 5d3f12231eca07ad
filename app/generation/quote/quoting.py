"""Answer without a model: quote and cite the sentences that answer best.

A linear model over `quote_features.FEATURES` ranks the sentences, a logistic one over
`quote_features.SUFFICIENCY` says how probably the quote answers the question: the confidence of
the answer. A quote that a table's row leads has weights of its own there (decision 0230). All
weights lie in `extractive.json` with the commands that made them; `choosing` picks the sentences.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from app.core.cancel import CancelToken
from app.core.languages import DEFAULT
from app.core.ports import PassageEncoder, Reader
from app.core.text import function_words, tokenise
from app.core.types import REFUSAL, Citation, Evidence, Prompt, Sentence, Token
from app.generation.quote.candidates import NUMBERED, Candidate, candidates, quotable, rendered
from app.generation.quote.choosing import QuoteBudget, choose, lacks_its_cell, quote_budget
from app.generation.quote.quote_features import (
    FEATURES,
    SUFFICIENCY,
    Floats,
    Vectors,
    candidate_weights,
    feature_rows,
    in_place,
    lead_of,
    mentions_target,
    sentence_vectors,
    sufficiency_row,
)


@dataclass(frozen=True, slots=True, eq=False)
class Weighing:
    """Weights of one way of reading: with vectors, or by words alone."""

    ranking: Floats
    """Of `FEATURES`."""
    sufficiency: Floats
    """Of `SUFFICIENCY` for a quote that a sentence leads; the last entry is the bias."""
    sufficiency_row: Floats
    """The same for one that a table's row leads."""

    @staticmethod
    def of(data: Mapping[str, Sequence[float]], way: str) -> Weighing:
        """Return the weights of a way, by the ends of their names in `extractive.json`."""
        names = ("ranking", "sufficiency", "sufficiency_row")
        return Weighing(*(np.asarray(data[f"{name}{way}"], dtype=np.float64) for name in names))

    def probability(
        self,
        question: str,
        found: Sequence[Candidate],
        rows: Floats,
        scores: Floats,
        chosen: Sequence[Candidate],
        vectors: Vectors | None,
    ) -> float:
        """Return how probably the chosen sentences answer; arguments of `sufficiency_row`."""
        lead = found[lead_of(found, scores, chosen)]
        weights = self.sufficiency_row if lead.row else self.sufficiency
        return probability(sufficiency_row(question, found, rows, scores, chosen, vectors), weights)


@dataclass(frozen=True, slots=True, eq=False)
class ExtractiveModel:
    """Weights with and without vectors, and from where on there is a quote."""

    with_vectors: Weighing
    words_only: Weighing
    answer_from: float
    """Least probability that the quote is right for anything to be quoted."""
    read: Floats
    """Of `READ`; the last entry is the bias."""
    read_from: float
    """The same where the reader has read."""

    @staticmethod
    def load(path: Path | None = None) -> ExtractiveModel:
        """Read weights from a file, or the packaged ones.

        Raises:
            ValueError: The file was made for other features.
        """
        source = path or Path(__file__).with_name("extractive.json")
        data = json.loads(source.read_text(encoding="utf-8"))
        made_for = tuple(
            tuple(data[name]) for name in ("features", "sufficiency_features", "read_features")
        )
        if made_for != (FEATURES, SUFFICIENCY, READ):
            raise ValueError(f"{source.name} was made for other features; run: {data['command']}")
        return ExtractiveModel(
            Weighing.of(data, ""),
            Weighing.of(data, "_words_only"),
            float(data["answer_from"]),
            np.asarray(data["read"], dtype=np.float64),
            float(data["read_from"]),
        )

    def decided(self, reading: Reading) -> tuple[float, float]:
        """Return how probably a reading's sentences answer, and from where on that is enough."""
        if reading.row is None:
            return reading.by_words, self.answer_from
        return probability(reading.row, self.read), self.read_from


READ = (
    "by_words",  # log-odds of `Reading.by_words`
    "lead",  # logit of the sentence that leads
    "best",  # the highest logit of any
    "is_row",  # a table's row leads
)
"""Entries of `Reading.row`, in order."""
_LEAST_ODDS = 1e-4


@dataclass(frozen=True, slots=True, eq=False)
class Reading:
    """What a question finds in its evidence, before it is decided whether that answers it."""

    chosen: tuple[Candidate, ...]
    """Sentences to quote."""
    ranked: tuple[Candidate, ...]
    """Every quotable sentence, best first."""
    by_words: float
    """Probability that what words and vectors choose answers."""
    lead: Candidate
    row: Floats | None
    """Of `READ`; None where no reader read."""


@dataclass(frozen=True, slots=True)
class Selection:
    """Sentences to quote, in order, and the probability that evidence is on topic."""

    chosen: tuple[Candidate, ...]
    sufficiency: float
    ranked: tuple[Candidate, ...] = ()
    """Every quotable sentence, best first; empty where nothing is quoted."""


_SHORT_NAME = 4
"""Characters; "us" is not US."""


def by_title(question: str, evidence: Sequence[Evidence]) -> str:
    """Return a question that calls a found document by another title with its own title.

    A title of common words, or a short one that is spelt differently, is not taken for a name.
    """
    common = function_words(DEFAULT)
    for document in dict.fromkeys(item.hit.passage.document for item in evidence):
        if document.title.casefold() in question.casefold():
            continue
        for other in reversed(document.other_titles.split("\n")):
            flags = re.NOFLAG if len(other) <= _SHORT_NAME else re.IGNORECASE
            name = re.compile(rf"(?<!\w){re.escape(other)}(?!\w)", flags)
            if other and name.search(question) and not common.issuperset(tokenise(other)):
                return name.sub(document.title.replace("\\", r"\\"), question, count=1)
    return question


_READER_WEIGHT = 1.0
"""Log-odds of the ranking for one logit of the reader."""
MOST_READ = 24
"""Candidates that the reader reads for one question, the likeliest by words and vectors."""
MOST_NEAREST = 3


class ExtractiveGenerator:
    """Answers with quoted sentences; an encoder of sentences and a reader of pairs help."""

    def __init__(
        self,
        encoder: PassageEncoder | None = None,
        reader: Reader | None = None,
        model: ExtractiveModel | None = None,
    ) -> None:
        self._encoder = encoder
        self._reader = reader
        self._model = model or ExtractiveModel.load()

    @property
    def name(self) -> str:
        return "extractive"

    @property
    def context_tokens(self) -> int | None:
        """None: passages are read, not sent."""
        return None

    def stream(self, prompt: Prompt, cancel: CancelToken) -> Iterator[Token]:
        """Yield the answer sentence by sentence, or the refusal, then the finish token.

        Raises:
            Cancelled: The token was cancelled.
        """
        cancel.raise_if_cancelled()
        chosen = self.select(prompt.question, prompt.evidence).chosen
        for at in range(len(chosen)):
            cancel.raise_if_cancelled()
            yield Token(quoted_text(chosen[: at + 1])[len(quoted_text(chosen[:at])) :])
        if not chosen:
            yield Token(REFUSAL)
        cancel.raise_if_cancelled()
        yield Token("", finish="stop")

    def select(
        self, question: str, evidence: Sequence[Evidence], room: QuoteBudget | None = None
    ) -> Selection:
        """Return the sentences to quote; none if the evidence is off topic.

        Passages that failed the cutoff and were kept as a fallback for a model are not quoted.
        The room is that of the question unless it is given.
        """
        usable = [item for item in evidence if not item.hit.fallback]
        reading = self.read(question, usable, room)
        if reading is None:
            return Selection((), 0.0)
        sufficiency, enough = self._model.decided(reading)
        if sufficiency < enough:
            return Selection((), sufficiency)
        if lacks_its_cell(question, reading.lead, reading.ranked):
            return Selection((), min(sufficiency, enough / 2))
        passages = [item.hit.passage for item in usable]
        if self._encoder and not mentions_target(question, reading.lead, passages, self._encoder):
            return Selection((), min(sufficiency, enough / 2))
        return Selection(reading.chosen, sufficiency, reading.ranked)

    def read(
        self, question: str, evidence: Sequence[Evidence], room: QuoteBudget | None = None
    ) -> Reading | None:
        """Return what a question finds in all of the evidence; None where nothing can be quoted."""
        found = candidates(evidence, question)
        if not found:
            return None
        question, room = by_title(question, evidence), room or quote_budget(question)
        weights = candidate_weights(found)
        vectors = sentence_vectors(question, found, weights, self._encoder)
        rows = feature_rows(question, found, weights, vectors)
        weighing = self._model.with_vectors if vectors else self._model.words_only
        scores: Floats = rows @ weighing.ranking
        chosen = choose(question, found, scores, room)
        if not chosen:
            return None
        by_words = weighing.probability(question, found, rows, scores, chosen, vectors)
        lead, row = lead_of(found, scores, chosen), None
        if logits := self._logits(question, found, scores):
            scores = _with(logits, scores)
            chosen = choose(question, found, scores, room)
            lead = lead_of(found, scores, chosen)
            least = min(logits.values())
            odds = math.log(max(by_words, _LEAST_ODDS) / max(1 - by_words, _LEAST_ODDS))
            told = odds, logits.get(lead, least), max(logits.values()), float(found[lead].row)
            row = np.asarray(told, dtype=np.float64)
        order = np.argsort(-scores, kind="stable")
        ranked = tuple(found[at] for at in order if quotable(found[at]))
        return Reading(chosen, ranked, by_words, found[lead], row)

    def nearest(self, question: str, evidence: Sequence[Evidence]) -> tuple[Candidate, ...]:
        """Return at most three sentences, rows or items that come nearest, best first."""
        reading = self.read(question, evidence)
        chosen: dict[str, Candidate] = {}
        for one in reading.ranked if reading else ():
            if len(chosen) < MOST_NEAREST:
                chosen.setdefault(one.text, one)
        return tuple(chosen.values())

    def _logits(
        self, question: str, found: Sequence[Candidate], scores: Floats
    ) -> dict[int, float]:
        """Return what the reader says of the likeliest candidates, by place; empty without one.

        A unit is read behind its title and what it belongs to, so that "it" has something to mean.
        """
        order = np.argsort(-scores, kind="stable")
        rows = [int(row) for row in order if quotable(found[row])][:MOST_READ]
        if self._reader is None or not rows:
            return {}
        said = self._reader.answers(question, [in_place(found[row]) for row in rows])
        return dict(zip(rows, map(float, said), strict=True))


def _with(logits: Mapping[int, float], scores: Floats) -> Floats:
    """Return the scores with what the reader says; what it has not read stays behind."""
    read = scores + _READER_WEIGHT * min(logits.values())
    for row, logit in logits.items():
        read[row] = scores[row] + _READER_WEIGHT * logit
    return read


def probability(row: Floats, weights: Floats) -> float:
    """Return the logistic function of `row @ weights[:-1] + weights[-1]`."""
    return 1.0 / (1.0 + math.exp(-float(row @ weights[:-1] + weights[-1])))


# Build an answer out of quotes and plain words, each quote with its exact citation.

EXACT = 1.0
"""Support of a sentence that stands in its document word for word."""


def quoted_text(chosen: Sequence[Candidate]) -> str:
    """Return chosen candidates as an answer's text; entries and rows on own lines."""
    text, listed, several = "", False, len(chosen) > 1
    for one in chosen:
        item = one.entry or (one.row and several)
        gap = ("\n" if listed else "\n\n") if item else "\n\n" if listed else " "
        sign = "- " if item and not NUMBERED.match(one.text) else ""
        text += f"{gap if text else ''}{sign}{rendered(one)}"
        listed = item
    return text


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
        self._text = ""
        self._sentences: list[Sentence] = []
        self._evidence = {item.hit.passage.chunk.key: item for item in sent}
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
        known = self._evidence.get(item.hit.passage.chunk.key)
        if known is None:
            known = self._evidence[item.hit.passage.chunk.key] = replace(item, n=self._free)
            self._free += 1
        elif known.hit.fallback:  # what is quoted is no fallback any more
            known = self._evidence[item.hit.passage.chunk.key] = replace(item, n=known.n)
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


def _citation(candidate: Candidate) -> Citation:
    """Return the citation of a sentence: its very characters in the document."""
    chunk = candidate.item.hit.passage.chunk
    start = chunk.start + candidate.start
    quote = chunk.text[candidate.start : candidate.end]
    return Citation(candidate.item.n, start, start + len(quote), quote, EXACT, "engine")
