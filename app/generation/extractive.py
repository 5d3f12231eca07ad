"""Answer without a model: quote and cite the sentences that answer best.

A linear model over `features.FEATURES` ranks the sentences, a logistic one over
`features.SUFFICIENCY` says how probably the quote answers the question: that is the confidence of
the answer. Their weights lie in `extractive.json` with the command that made them. An answer leads
with the best sentence; others follow in reading order, as many as the kind of question has room
for.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from app.core.cancel import CancelToken
from app.core.ports import Embedder
from app.core.sentences import sentence_spans
from app.core.text import word_count
from app.core.types import Evidence, Prompt, Token
from app.generation.answer_room import PLAIN, SEVERAL, AnswerRoom, room_for
from app.generation.candidates import Candidate, candidates
from app.generation.features import (
    FEATURES,
    SUFFICIENCY,
    Floats,
    candidate_weights,
    feature_rows,
    sentence_vectors,
    sufficiency_row,
)
from app.generation.prompts import REFUSAL

_MOST_ENTRIES = 12
"""Of one list."""
_MIN_WORDS_ENTRY = 4
"""Words from which an entry of a list may be quoted without its list."""
_NEAR_DUPLICATE = 0.7
"""Jaccard similarity of words from which two sentences say the same."""
_CONTINUATION = 0.5
"""Score (log-odds) that the sentence after the best one may be worse and still be quoted: two in a row read as a text."""
_FULL_STOPS = (".", "\u3002", "\uff01")
_CLOSED = re.compile(r"[.!?\u2026][\"'\u201d\u2019)\]]*\Z")
_PREFERENCE = 0.5
"""Score (log-odds) that a whole sentence which does not dangle may be worse and still open the answer."""
_LISTED = 4.0
"""Score (log-odds) by which a title in a list of references or a table of contents must be better: it repeats the question and
answers little."""


@dataclass(frozen=True, slots=True, eq=False)
class ExtractiveModel:
    """Weights for sentences with and without vectors, and for sufficiency."""

    ranking: Floats
    ranking_words_only: Floats
    sufficiency: Floats
    """The last entry is the bias."""
    sufficiency_words_only: Floats
    embedding_model: str
    """The sufficiency weights with vectors are for this model's cosines; others are judged by words alone."""
    answer_from: float
    """Least probability that the evidence bears on the question for anything to be quoted."""

    @staticmethod
    def load(path: Path | None = None) -> ExtractiveModel:
        """Read weights from a file, or the packaged ones.

        Raises:
            ValueError: The file was made for other features.
        """
        source = path or Path(__file__).with_name("extractive.json")
        data = json.loads(source.read_text(encoding="utf-8"))
        if (
            tuple(data["features"]) != FEATURES
            or tuple(data["sufficiency_features"]) != SUFFICIENCY
        ):
            raise ValueError(f"{source.name} was made for other features; run: {data['command']}")
        return ExtractiveModel(
            np.asarray(data["ranking"], dtype=np.float64),
            np.asarray(data["ranking_words_only"], dtype=np.float64),
            np.asarray(data["sufficiency"], dtype=np.float64),
            np.asarray(data["sufficiency_words_only"], dtype=np.float64),
            str(data["embedding_model"]),
            float(data["answer_from"]),
        )


@dataclass(frozen=True, slots=True)
class Selection:
    """Sentences to quote, in order, and the probability that evidence is on topic."""

    chosen: tuple[Candidate, ...]
    sufficiency: float
    ranked: tuple[Candidate, ...] = ()
    """Every quotable sentence, best first; empty where nothing is quoted."""


class ExtractiveGenerator:
    """Answers with quoted sentences; needs no model, a sentence embedder helps."""

    def __init__(
        self, embedder: Embedder | None = None, model: ExtractiveModel | None = None
    ) -> None:
        """Keep the embedder, or None to go by words alone."""
        self._embedder = embedder
        self._model = model or ExtractiveModel.load()

    @property
    def name(self) -> str:
        """`extractive`."""
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
        found = candidates([item for item in evidence if not item.hit.fallback])
        if not found:
            return Selection((), 0.0)
        model = self._model
        weights = candidate_weights(found)
        vectors = sentence_vectors(question, found, weights, self._embedder)
        rows = feature_rows(question, found, weights, vectors)
        scores = ranking_scores(found, rows, model.ranking if vectors else model.ranking_words_only)
        calibrated = (
            vectors
            if self._embedder and self._embedder.identity.model == model.embedding_model
            else None
        )
        judged = sufficiency_row(question, found, rows, scores, calibrated)
        sufficiency = probability(
            judged, model.sufficiency if calibrated else model.sufficiency_words_only
        )
        if sufficiency < model.answer_from:
            return Selection((), sufficiency)
        order = np.argsort(-scores, kind="stable")
        ranked = tuple(found[row] for row in order if quotable(found[row]))
        return Selection(choose(found, scores, room or room_for(question)), sufficiency, ranked)


def ranking_scores(found: Sequence[Candidate], rows: Floats, ranking: Floats) -> Floats:
    """Return log-odds that rank sentences, float64 `[n]`; lists of titles last."""
    scores: Floats = rows @ ranking - _LISTED * np.array([one.listed for one in found])
    return scores


def probability(row: Floats, weights: Floats) -> float:
    """Return the logistic function of `row @ weights[:-1] + weights[-1]`."""
    return 1.0 / (1.0 + math.exp(-float(row @ weights[:-1] + weights[-1])))


def choose(
    found: Sequence[Candidate], scores: Floats, room: AnswerRoom = PLAIN
) -> tuple[Candidate, ...]:
    """Return distinct sentences to quote: the best, then in reading order.

    Sentences that read like instructions are never chosen. One that is cut off or begins with a
    pronoun that means nothing alone opens the answer only when nothing comes near it, and then
    behind the sentence before it, where that can be quoted. One that announces a list gives way to
    the list.
    """
    order = [int(row) for row in np.argsort(-scores, kind="stable") if _answers(found[int(row)])]
    if not order:
        return ()
    lead = next(
        (
            row
            for row in order
            if _stands_alone(found[row]) and scores[row] >= scores[order[0]] - _PREFERENCE
        ),
        order[0],
    )
    if items := _items_of(found, lead):
        return items
    opening = _opening(found, order, lead, room)
    chosen = list(opening)
    left = room.words - sum(word_count(candidate.text) for candidate in chosen)
    after = (chosen[-1].item.n, chosen[-1].ordinal + 1)
    for row in sorted(
        order, key=lambda row: scores[row] + _CONTINUATION * (found[row].key == after), reverse=True
    ):
        candidate = found[row]
        length = word_count(candidate.text)
        if length > left or any(_alike(candidate, other) for other in chosen):
            continue
        chosen.append(candidate)
        left -= length
        if len(chosen) == room.sentences:
            break
    if room.in_order:
        return tuple(sorted(chosen, key=lambda candidate: candidate.key))
    return (*opening, *sorted(chosen[len(opening) :], key=lambda candidate: candidate.key))


def _items_of(found: Sequence[Candidate], lead: int) -> tuple[Candidate, ...]:
    """Return the list that a sentence announces, within the room; else none."""
    opening = found[lead]
    if not opening.announces:
        return ()
    items: list[Candidate] = []
    left = SEVERAL.words
    for candidate in found[lead + 1 :]:
        left -= word_count(candidate.text)
        follows = candidate.key == (opening.item.n, opening.ordinal + 1 + len(items))
        if (
            not (follows and candidate.entry and quotable(candidate))
            or left < 0
            or len(items) == _MOST_ENTRIES
        ):
            break
        items.append(candidate)
    return tuple(items)


def _opening(
    found: Sequence[Candidate], order: Sequence[int], lead: int, room: AnswerRoom
) -> list[Candidate]:
    """Return the opening: the best sentence, after the one it refers to if any."""
    best = found[lead]
    if best.dangles:
        before = (best.item.n, best.ordinal - 1)
        for row in order:
            candidate = found[row]
            if (
                candidate.key == before
                and word_count(candidate.text) + word_count(best.text) <= room.words
            ):
                return [candidate, best]
    return [best]


def _answers(candidate: Candidate) -> bool:
    """Return whether a candidate stands alone: no list entry too short for that."""
    return quotable(candidate) and (
        not candidate.entry or word_count(candidate.text) >= _MIN_WORDS_ENTRY
    )


def quoted_text(chosen: Sequence[Candidate]) -> str:
    """Return chosen candidates as an answer's text; list entries on own lines."""
    text, listed = "", False
    for one in chosen:
        gap = ("\n" if listed else "\n\n") if one.entry else "\n\n" if listed else " "
        text += f"{gap if text else ''}{'- ' if one.entry else ''}{rendered(one)}"
        listed = one.entry
    return text


def quotable(candidate: Candidate) -> bool:
    """Return whether a candidate can be quoted.

    No instruction to a model, and one sentence also when split again.
    """
    return not candidate.suspicious and len(sentence_spans(rendered(candidate))) == 1


def rendered(candidate: Candidate) -> str:
    """Return a candidate as shown: its words and its mark.

    The mark stands before the full stop, or behind a closing quotation mark.
    """
    text, mark = candidate.text, f"[{candidate.item.n}]"
    if text.endswith(_FULL_STOPS) and not text.endswith(".."):
        return f"{text[:-1].rstrip()} {mark}{text[-1]}"
    return f"{text}{mark}" if _CLOSED.search(text) else f"{text} {mark}."


def _stands_alone(candidate: Candidate) -> bool:
    return candidate.whole and not candidate.dangles


def _alike(one: Candidate, other: Candidate) -> bool:
    return len(one.tokens & other.tokens) >= _NEAR_DUPLICATE * max(
        1, len(one.tokens | other.tokens)
    )
