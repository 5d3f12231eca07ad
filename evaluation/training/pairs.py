"""Turn rows of openly licensed sets into pairs of a question or claim and a short passage.

The product reads sentences, rows and short windows, so that is what is trained: a passage is cut to
the window that matters, and what stands beside it in the same passage is what does not answer.
"""

from __future__ import annotations

import gzip
import json
import random
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NotRequired, TypedDict

from app.core.sentences import sentence_spans
from app.generation.language.windows import WINDOW_WORDS, overlap, window_for, words_of
from evaluation.training.exchanges import exchanges

SUPPORTED, CONTRADICTED, NOT_STATED, UNSUPPORTED = 0, 1, 2, 3
"""Labels of a claim; `UNSUPPORTED` is one of the two before it, unknown which."""
_LABELS = {
    "supported": SUPPORTED,
    "contradicted": CONTRADICTED,
    "not_stated": NOT_STATED,
    "unsupported": UNSUPPORTED,
}


@dataclass(frozen=True, slots=True)
class Pair:
    """One reading; what is None is not asked of it."""

    first: str
    """A question or a claim."""
    second: str
    """A window of a passage."""
    source: str
    claim: int | None = None
    answers: float | None = None
    """1: the window answers the question; 0: it does not."""
    span: tuple[int, int] | None = None
    """Where in the window, in characters."""


LEFT_OUT = (
    "scitab", "halueval_qa", "begin", "fever_symmetric", "equate", "evidence_inference",
)  # fmt: skip
"""Sources of which the packaged reader has seen no row: they judge it."""
EXCHANGED = ("wikisplit", "qamr", "squadshifts_new_wiki", "squadshifts_reddit")
"""Sources of whose sentences false ones are made."""
_DENIED_BY = frozenset({"number", "unit", "negation", "direction", "row", "plan_for_fact"})
"""Kinds of exchange after which the passage denies the sentence; after the others it may only not
say it."""
_RARE = frozenset({"role", "order", "modality", "quantifier", "attribution"})
"""Kinds that few sentences allow; what allows one is exchanged that way."""
_SENTENCE_WORDS = range(7, 31)


class Span(TypedDict):
    start: int
    text: str


class Row(TypedDict):
    """A row of a training set."""

    task: str
    src: str
    passage: str
    claim: NotRequired[str]
    q: NotRequired[str]
    label: NotRequired[str | int]
    answers: NotRequired[list[Span]]


def rows_of(path: Path) -> list[Row]:
    """Return the rows of a gzip file of JSON lines."""
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def pairs_of(
    folder: Path, caps: Mapping[str, int], seed: int, left_out: Sequence[str] = ()
) -> list[Pair]:
    """Return shuffled pairs.

    Args:
        folder: One `NAME.jsonl.gz` a source.
        caps: Most rows of a source by its file's name; a source without a cap is not read.
        seed: Of the draw and the order.
        left_out: Sources that are not read, and no row made from them.
    """
    pairs: list[Pair] = []
    for name, most in caps.items():
        if name in left_out:
            continue
        draw = random.Random(f"{seed} {name}")
        rows = rows_of(folder / f"{name}.jsonl.gz")
        rows = [row for row in rows if not any(one in row["src"] for one in left_out)]
        draw.shuffle(rows)
        pairs += [pair for row in rows[:most] for pair in made_of(row, draw)]
        pairs += not_stated(rows[:most], draw)
        if name in EXCHANGED:
            pairs += [pair for row in rows[:most] for pair in exchanged(row, draw)]
    random.Random(seed).shuffle(pairs)
    return pairs


def made_of(row: Row, draw: random.Random) -> Iterator[Pair]:
    """Yield what a row teaches."""
    passage = " ".join(row["passage"].split()) if "\n" not in row["passage"] else row["passage"]
    if row["task"] == "nli":
        claim, label = row.get("claim", ""), _LABELS[str(row.get("label"))]
        yield Pair(claim, window_for(claim, passage), row["src"], claim=label)
    elif row["task"] == "rank":
        question = row.get("q", "")
        window = window_for(question, passage)
        yield Pair(question, window, row["src"], answers=float(row.get("label") == 1))
    elif answers := row.get("answers", []):
        yield from _answered(row, answers, draw)
    else:
        question = row.get("q", "")
        yield Pair(question, window_for(question, passage), row["src"], answers=0.0)


def _answered(row: Row, answers: Sequence[Span], draw: random.Random) -> Iterator[Pair]:
    """Yield the window that holds the answer, and one of the same passage that does not."""
    question, passage = row.get("q", ""), row["passage"]
    start = answers[0]["start"]
    end = start + len(answers[0]["text"])
    units = _units(passage)
    at = next((at for at, (a, b) in enumerate(units) if a <= start and end <= b), None)
    if at is None:
        return
    said = {answer["text"].lower() for answer in answers}
    first = max(0, at - draw.randrange(2))
    last = min(len(units), at + 1 + draw.randrange(2))
    if words_of(passage[units[first][0] : units[last - 1][1]]) > WINDOW_WORDS:
        first, last = at, at + 1
    begin, stop = units[first][0], units[last - 1][1]
    window, head = passage[begin:stop], _head(passage)
    before = f"{head}\n" if head and begin >= len(head) else ""
    by = len(before) - begin
    yield Pair(question, before + window, row["src"], answers=1.0, span=(start + by, end + by))
    others = [
        passage[a:b]
        for other, (a, b) in enumerate(units)
        if abs(other - at) > 0 and not any(one in passage[a:b].lower() for one in said)
    ]
    if others:
        other = draw.choice(sorted(others, key=lambda text: -overlap(question, text))[:3])
        yield Pair(question, before + other, row["src"], answers=0.0)


def _units(passage: str) -> list[tuple[int, int]]:
    """Return the sentences of a passage; the rows, where it is a table."""
    if " | " not in passage:
        return list(sentence_spans(passage)) or [(0, len(passage))]
    return [match.span() for match in re.finditer(r"[^\n]+", passage)][1:]


def _head(passage: str) -> str:
    """Return the head of a table."""
    return passage.split("\n", 1)[0] if " | " in passage else ""


def not_stated(rows: Sequence[Row], draw: random.Random, share: float = 0.15) -> list[Pair]:
    """Return supported claims beside the passage of another row that shares most words."""
    claims = [row for row in rows if row["task"] == "nli" and row.get("label") == "supported"]
    made = []
    for row in claims[: int(share * len(claims))]:
        others = list(draw.sample(rows, min(60, len(rows))))
        others = [one for one in others if one["passage"] != row["passage"]]
        if not others:
            continue
        claim = row.get("claim", "")
        other = max(others, key=lambda one: overlap(claim, one["passage"]))
        made.append(Pair(claim, window_for(claim, other["passage"]), row["src"], claim=NOT_STATED))
    return made


def exchanged(row: Row, draw: random.Random) -> Iterator[Pair]:
    """Yield a true sentence and its false twin, the exchange on either side of the pair."""
    passage = row["passage"]
    spans = sentence_spans(passage)
    if row["task"] == "nli":
        claim, window = row.get("claim", ""), passage
    else:
        fitting = [(a, b) for a, b in spans if len(passage[a:b].split()) in _SENTENCE_WORDS]
        if not fitting:
            return
        start, end = draw.choice(fitting)
        claim = " ".join(passage[start:end].split())
        near = [
            (a, b) for a, b in spans if abs(spans.index((a, b)) - spans.index((start, end))) <= 1
        ]
        window = " ".join(passage[near[0][0] : near[-1][1]].split())
    made = exchanges(claim, window, draw)
    if not made:
        return
    rare = [one for one in made if one[1] in _RARE]
    false, kind = draw.choice(rare or made)
    label = CONTRADICTED if kind in _DENIED_BY else UNSUPPORTED
    source = f"{row['src']}_exchanged"
    turned = row["task"] != "nli" and claim in window and draw.random() < _TURNED
    if turned:
        yield Pair(claim, window.replace(claim, false), source, claim=label)
    else:
        yield Pair(false, window_for(false, window), source, claim=label)
    if row["task"] != "nli" and draw.random() < _TURNED:
        first, second = (false, window.replace(claim, false)) if turned else (claim, window)
        yield Pair(first, window_for(first, second), source, claim=SUPPORTED)


_TURNED = 0.35
"""Share of exchanges that are made in the passage instead of the claim, and of true twins."""
