"""Measure what the reader adds to answers without a model: what is right, what is refused.

    python -m evaluation.studies.answers_by_reader [--data DIR] [--questions N] [--write]

Both read the five passages that pass the cutoff, as the product does. Before: ranked and judged by
words and vectors. After: ranked with the reader and judged with what it says (`quoting.READ`). Each
collection is judged by weights that were fitted without it; `everyday` and conversations take no
part in any fit. `--write` puts weights fitted on all others, and the threshold, into
app/generation/quote/extractive.json. Writes evaluation/reports/answers_by_reader.{md,json}.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from app.core.types import Evidence, Filters
from app.evaluation.workshop import Bench
from app.generation.quote.quote_features import Floats
from app.generation.quote.quoting import (
    READ,
    ExtractiveGenerator,
    ExtractiveModel,
    Reading,
    probability,
)
from app.models.minilm import MiniLmEmbedder
from app.models.reader import MiniLmReader
from evaluation.lib.fits import area_under_curve, logistic
from evaluation.lib.reports import COLLECTIONS, SEED, options, say, share, table, write
from evaluation.lib.workbench import indexed
from evaluation.studies.extractive import (
    ABSENT_TABLES,
    FOREIGN,
    TABLES,
    Asked,
    Asking,
    chunking,
    clapnq,
    conversations,
    covidqa,
    evidence_for,
    foreign,
    keep,
    remembering,
    squad,
    tables,
)
from evaluation.studies.reader import EVERYDAY, everyday

COMMAND = "python -m evaluation.studies.answers_by_reader --write"
SHARES: Mapping[str, float] = {
    "squad": 2.0,
    "squad unanswerable": 0.44,
    FOREIGN: 0.2,
    "clapnq": 1.0,
    "chunking": 0.5,
    "covidqa": 0.5,
    TABLES: 0.5,
    ABSENT_TABLES: 0.2,
}
"""Weight of a set in the fit, independent of its size (as in studies/confidence.py)."""
TOGETHER: Mapping[str, tuple[str, ...]] = {
    "squad": ("squad", "squad unanswerable", FOREIGN),
    "clapnq": ("clapnq",),
    "chunking": ("chunking",),
    "covidqa": ("covidqa",),
    "fetaqa": (TABLES, ABSENT_TABLES),
}
"""Sets of one collection: left out together."""
PAIRS = (
    ("squad", "squad unanswerable"),
    ("squad", FOREIGN),
    ("clapnq", "clapnq"),
    (TABLES, ABSENT_TABLES),
    ("mtragun", "mtragun"),
    ("everyday", "everyday"),
)
_SCALE, _RIDGE = 400.0, 0.5


@dataclass(frozen=True, slots=True)
class Outcome:
    """A question, and what is known of its quote before and after."""

    answerable: bool
    before: float
    """Probability by words and vectors; 0 without a quote."""
    before_right: bool
    row: Floats | None
    """Of `READ`; None without a quote."""
    right: bool


Outcomes = Mapping[str, Sequence[Outcome]]


def homes(data: Path, most: int) -> Iterator[tuple[Asked, ...]]:
    """Yield the sets of each collection, at most `most` questions of a set, drawn."""
    yield (everyday(),)
    yield (drawn(clapnq(data), most),)
    answerable, unanswerable = squad(data, most)
    yield answerable, unanswerable, foreign(data, most // 3)
    yield (drawn(chunking(data), most),)
    yield (covidqa(data, most),)
    yield (drawn(tables(data), most),)
    yield (drawn(conversations(data), most),)


def drawn(asked: Asked, most: int) -> Asked:
    """Return a set with at most so many questions."""
    draw = random.Random(SEED)
    questions = draw.sample(asked.questions, min(most, len(asked.questions)))
    return replace(asked, questions=tuple(questions))


def outcomes(data: Path, cache: Path, most: int) -> Outcomes:
    """Ask every set of its own library, with and without the reader."""
    encoder, reader = MiniLmEmbedder(), MiniLmReader()
    found: dict[str, list[Outcome]] = {}
    for sets in homes(data, most):
        with indexed(sets[0].collection, cache, encoder) as bench:
            known = remembering(bench)
            plain, reading = ExtractiveGenerator(known), ExtractiveGenerator(known, reader)
            for asked in sets:
                name = asked.collection.name
                found[name] = [_outcome(bench, one, plain, reading) for one in asked.questions]
                if name == TABLES:
                    found[ABSENT_TABLES] = [
                        _outcome(bench, one, plain, reading, without_own=True)
                        for one in asked.questions
                    ]
        say(sets[0].collection.name)
    return found


def _outcome(
    bench: Bench,
    asking: Asking,
    plain: ExtractiveGenerator,
    reading: ExtractiveGenerator,
    *,
    without_own: bool = False,
) -> Outcome:
    text = asking.question.text
    documents = {passage: doc_id for doc_id, passage in bench.passage_of.items()}
    filters = Filters(doc_ids=(documents[asking.document],)) if asking.document else Filters()
    passing = evidence_for(bench, text, filters)
    if without_own:
        own = documents[asking.question.id]
        passing = tuple(one for one in passing if one.hit.passage.document.doc_id != own)
        asking = replace(asking, question=replace(asking.question, answerable=False))
    before, after = plain.read(text, passing), reading.read(text, passing)
    return Outcome(
        asking.question.answerable,
        before.by_words if before else 0.0,
        _right(bench, asking, passing, before),
        after.row if after else None,
        _right(bench, asking, passing, after),
    )


def _right(
    bench: Bench, asking: Asking, evidence: Sequence[Evidence], found: Reading | None
) -> bool:
    if found is None:
        return False
    document = next(one.hit.passage.document for one in evidence if one.n == found.chosen[0].item.n)
    quoted = " ".join(one.text for one in found.chosen)
    return asking.right(quoted, bench.passage_of.get(document.doc_id, ""))


def fitted(found: Outcomes, names: Sequence[str]) -> Floats:
    """Return logistic weights of `READ`, bias last, fitted on the named sets."""
    rows, right, weights = [], [], []
    for name in names:
        usable = [one for one in found[name] if one.row is not None]
        rows += [one.row for one in usable]
        right += [float(one.right) for one in usable]
        weights += [_SCALE * SHARES[name] / max(1, len(found[name]))] * len(usable)
    matrix = np.c_[np.vstack([row for row in rows if row is not None]), np.ones(len(rows))]
    penalty = np.r_[np.full(len(READ), _RIDGE), 0.0]
    return logistic(matrix, np.asarray(right), np.asarray(weights), penalty)


def without(found: Outcomes, collection: str) -> Floats:
    """Return weights that saw no question of a collection."""
    left = TOGETHER.get(collection, ())
    return fitted(found, [name for name in SHARES if name not in left])


def confidence(one: Outcome, weights: Floats) -> float:
    return 0.0 if one.row is None else probability(one.row, weights)


def threshold(found: Outcomes, sure: Mapping[str, Sequence[float]], answer_from: float) -> float:
    """Return the least threshold with no more wrong answers than before, in the mean of the sets."""
    before = {name: [one.before for one in found[name]] for name in SHARES}
    was_right = {name: [one.before_right for one in found[name]] for name in SHARES}
    right = {name: [one.right for one in found[name]] for name in SHARES}
    most = _wrong_share(before, was_right, answer_from)
    limits = [float(limit) for limit in np.arange(0.05, 0.95, 0.01)]
    return round(next(one for one in limits if _wrong_share(sure, right, one) <= most), 2)


def _wrong_share(
    sure: Mapping[str, Sequence[float]], right: Mapping[str, Sequence[bool]], limit: float
) -> float:
    shares = [
        np.mean([at >= limit and not ok for at, ok in zip(sure[name], right[name], strict=True)])
        for name in SHARES
    ]
    return float(np.mean(shares))


def main() -> None:
    given = options(
        __doc__,
        **COLLECTIONS,
        questions=(120, "most questions of a set"),
        write=(False, "replace the weights in app/generation/quote/extractive.json"),
    )
    found = outcomes(given.data, given.cache, given.questions)
    answer_from = ExtractiveModel.load().answer_from
    of = {name: home for home, names in TOGETHER.items() for name in names}
    unseen = {name: without(found, of.get(name, "")) for name in found}
    sure = {name: [confidence(one, unseen[name]) for one in found[name]] for name in found}
    limit = threshold(found, sure, answer_from)
    lines = [
        *_told_apart(found, sure, answer_from, limit),
        "",
        *_right_rows(found, sure, answer_from, limit),
    ]
    areas = {
        f"AUC of {name} against {other}": _area(found, sure, name, other) for name, other in PAIRS
    }
    remarks = [
        "Each collection is judged by weights fitted without it; `everyday` and `mtragun` are in no"
        " fit. The threshold is the least with no more wrong answers than before, of questions with"
        " and without an answer, over the sets of the fit: chosen on these. Shares with 95 %"
        " intervals."
    ]
    write(
        "answers_by_reader", "Answers with the reader", remarks, [], {"threshold": limit}, COMMAND,
        tables=lines, aside=areas,
        sets=[EVERYDAY, *(given.data / name for name in ("squad", "cranfield", "foreign"))],
    )  # fmt: skip
    if given.write:
        keep(
            read_command=COMMAND,
            read_features=list(READ),
            read=fitted(found, list(SHARES)),
            read_from=limit,
        )


def _area(found: Outcomes, sure: Mapping[str, Sequence[float]], name: str, other: str) -> float:
    own = [at for one, at in zip(found[name], sure[name], strict=True) if one.answerable]
    others = [at for one, at in zip(found[other], sure[other], strict=True) if not one.answerable]
    return area_under_curve(own, others)


def _told_apart(
    found: Outcomes, sure: Mapping[str, Sequence[float]], answer_from: float, limit: float
) -> list[str]:
    rows = []
    for name, other in PAIRS:
        own = [one.before for one in found[name] if one.answerable]
        others = [one.before for one in found[other] if not one.answerable]
        absent = [
            at for one, at in zip(found[other], sure[other], strict=True) if not one.answerable
        ]
        rows.append(
            (
                name if name == other else f"{name}, {other}",
                str(len(own)),
                str(len(others)),
                f"{area_under_curve(own, others):.3f}",
                f"{_area(found, sure, name, other):.3f}",
                share([at < answer_from for at in others]),
                share([at < limit for at in absent]),
            )
        )
    head = "set|answerable|not|AUC before|AUC after|refused of these before|after"
    return table(head.split("|"), rows)


def _right_rows(
    found: Outcomes, sure: Mapping[str, Sequence[float]], answer_from: float, limit: float
) -> list[str]:
    rows = []
    for name, all_of_them in found.items():
        pairs = [
            (one, at) for one, at in zip(all_of_them, sure[name], strict=True) if one.answerable
        ]
        if not pairs:
            continue
        before = [one.before >= answer_from for one, _ in pairs]
        after = [at >= limit for _, at in pairs]
        rows.append(
            (
                name,
                str(len(pairs)),
                share([one.before_right for one, _ in pairs]),
                share([one.right for one, _ in pairs]),
                share(
                    [
                        said and one.before_right
                        for (one, _), said in zip(pairs, before, strict=True)
                    ]
                ),
                share([said and one.right for (one, _), said in zip(pairs, after, strict=True)]),
                share(
                    [
                        said and not one.before_right
                        for (one, _), said in zip(pairs, before, strict=True)
                    ]
                ),
                share(
                    [said and not one.right for (one, _), said in zip(pairs, after, strict=True)]
                ),
            )
        )
    head = (
        "set|questions|quote right before|after|answered and right before|after"
        "|answered and wrong before|after"
    )
    return table(head.split("|"), rows)


if __name__ == "__main__":
    main()
