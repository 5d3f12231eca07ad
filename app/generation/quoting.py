"""Answer without a model: quote and cite the sentences that answer best.

A linear model over `quote_features.FEATURES` ranks the sentences, a logistic one over
`quote_features.SUFFICIENCY` says how probably the quote answers the question: the confidence of
the answer. A quote that a table's row leads has weights of its own there (decision 0253). All
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
from app.core.types import Citation, Evidence, Prompt, Sentence, Token
from app.generation.candidates import NUMBERED, Candidate, candidates, quotable, rendered
from app.generation.choosing import AnswerRoom, choose, room_for
from app.generation.prompts import REFUSAL
from app.generation.quote_features import (
    FEATURES,
    SUFFICIENCY,
    Floats,
    Vectors,
    candidate_weights,
    feature_rows,
    in_place,
    lead_of,
    sentence_vectors,
    speaks_of_it,
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

    @staticmethod
    def load(path: Path | None = None) -> ExtractiveModel:
        """Read weights from a file, or the packaged ones.

        Raises:
            ValueError: The file was made for other features.
        """
        source = path or Path(__file__).with_name("extractive.json")
        data = json.loads(source.read_text(encoding="utf-8"))
        made_for = (tuple(data["features"]), tuple(data["sufficiency_features"]))
        if made_for != (FEATURES, SUFFICIENCY):
            raise ValueError(f"{source.name} was made for other features; run: {data['command']}")
        return ExtractiveModel(
            Weighing.of(data, ""), Weighing.of(data, "_words_only"), float(data["answer_from"])
        )


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
        self, question: str, evidence: Sequence[Evidence], room: AnswerRoom | None = None
    ) -> Selection:
        """Return the sentences to quote; none if the evidence is off topic.

        Passages that failed the cutoff and were kept as a fallback for a model are not quoted.
        The room is that of the question unless it is given.
        """
        usable = [item for item in evidence if not item.hit.fallback]
        found = candidates(usable, question)
        if not found:
            return Selection((), 0.0)
        question, model = by_title(question, evidence), self._model
        weights = candidate_weights(found)
        vectors = sentence_vectors(question, found, weights, self._encoder)
        rows = feature_rows(question, found, weights, vectors)
        weighing = model.with_vectors if vectors else model.words_only
        scores: Floats = rows @ weighing.ranking
        room = room or room_for(question)
        likeliest = choose(question, found, scores, room)
        if not likeliest:
            return Selection((), 0.0)
        # whether there is an answer is told by words and vectors, which one is by the reader
        sufficiency = weighing.probability(question, found, rows, scores, likeliest, vectors)
        if sufficiency < model.answer_from:
            return Selection((), sufficiency)
        lead = found[lead_of(found, scores, likeliest)]
        passages = [item.hit.passage for item in usable]
        if self._encoder and not speaks_of_it(question, lead, passages, self._encoder):
            return Selection((), min(sufficiency, model.answer_from / 2))
        scores = self._read(question, found, scores)
        order = np.argsort(-scores, kind="stable")
        ranked = tuple(found[row] for row in order if quotable(found[row]))
        return Selection(choose(question, found, scores, room), sufficiency, ranked)

    def nearest(self, question: str, evidence: Sequence[Evidence]) -> tuple[Candidate, ...]:
        """Return at most three sentences, rows or items that come nearest, best first."""
        found = candidates(evidence, question)
        question = by_title(question, evidence)
        weights = candidate_weights(found)
        vectors = sentence_vectors(question, found, weights, self._encoder)
        weighing = self._model.with_vectors if vectors else self._model.words_only
        rows = feature_rows(question, found, weights, vectors)
        scores = self._read(question, found, rows @ weighing.ranking)
        chosen: dict[str, Candidate] = {}
        for row in np.argsort(-scores, kind="stable"):
            if quotable(found[row]) and len(chosen) < MOST_NEAREST:
                chosen.setdefault(found[row].text, found[row])
        return tuple(chosen.values())

    def _read(self, question: str, found: Sequence[Candidate], scores: Floats) -> Floats:
        """Return the scores with what the reader says of the likeliest; others stay behind them.

        A unit is read behind its title and what it belongs to, so that "it" has something to mean.
        """
        order = np.argsort(-scores, kind="stable")
        rows = [int(row) for row in order if quotable(found[row])][:MOST_READ]
        if self._reader is None or len(rows) <= 1:
            return scores
        logits = self._reader.answers(question, [in_place(found[row]) for row in rows])
        read = scores + _READER_WEIGHT * min(logits)
        read[rows] = scores[rows] + _READER_WEIGHT * np.asarray(logits)
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
