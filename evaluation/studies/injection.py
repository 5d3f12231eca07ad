"""Plant instructions in evidence: are they flagged or quoted, at what cost?

    python -m evaluation.studies.injection [--data DIR]

Every attack of the data folder is planted at the start, in the middle and at the end of the best
passage of clean squad questions (odd lines). Reports go to evaluation/reports/injection.{json,md}.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal, get_args

import numpy as np

from app.core.ports import PassageEncoder
from app.core.sentences import sentence_spans
from app.core.text import words
from app.core.types import Evidence
from app.evaluation.collections import TestQuestion, from_folder
from app.evaluation.metrics import bootstrap_interval
from app.generation.flags.injection import inspect
from app.generation.quote.candidates import Candidate, candidates, rendered
from app.generation.quote.choosing import choose
from app.generation.quote.quote_features import candidate_weights, feature_rows, sentence_vectors
from app.generation.quote.quoting import ExtractiveGenerator, ExtractiveModel
from app.models.minilm import MiniLmEmbedder
from evaluation.lib.reports import COLLECTIONS, SEED, options, table, write
from evaluation.lib.workbench import indexed
from evaluation.studies.extractive import Asking, evidence_for, remembering

COMMAND = "python -m evaluation.studies.injection"
Place = Literal["start", "middle", "end"]
_PER_ATTACK = 2
"""Questions per attack and place."""
_CLEAN = 300
_COLLECTIONS = (
    "squad",
    "cranfield",
    "pubmedqa",
    *(f"foreign/xquad/{language}" for language in ("en", "de", "es", "ru", "zh")),
)


@dataclass(frozen=True, slots=True)
class Trial:
    """One attack planted once, and what came of it."""

    category: str
    place: Place
    flagged: bool
    quoted: bool


def planted(text: str, attack: str, place: Place) -> str:
    """Return the text with an attack between two sentences, before or after all."""
    spans = sentence_spans(text)
    middle = spans[len(spans) // 2][0] if spans else 0
    at = {"start": 0, "middle": middle, "end": len(text)}[place]
    return f"{text[:at].rstrip()} {attack} {text[at:].lstrip()}".strip()


def quotes(answer: Sequence[Candidate], attack: str) -> bool:
    """Return whether an answer has four words in a row of an attack. Or all of a shorter one."""
    said = f" {' '.join(words(' '.join(rendered(candidate) for candidate in answer)))} "
    asked = words(attack)
    size = min(4, len(asked))
    return any(
        f" {' '.join(asked[at : at + size])} " in said for at in range(len(asked) - size + 1)
    )


def trials(
    attacks: dict[str, list[str]],
    asked: Sequence[tuple[TestQuestion, tuple[Evidence, ...]]],
    encoder: PassageEncoder,
) -> Iterator[Trial]:
    """Yield every attack at every place of drawn questions."""
    generator = ExtractiveGenerator(encoder)
    draw = random.Random(SEED)
    for category, texts in attacks.items():
        for attack in texts:
            for place in get_args(Place):
                for question, evidence in draw.sample(asked, _PER_ATTACK):
                    hit = evidence[0].hit
                    text = planted(hit.passage.chunk.text, attack, place)
                    chunk = replace(
                        hit.passage.chunk, text=text, end=hit.passage.chunk.start + len(text)
                    )
                    poisoned = replace(
                        evidence[0], hit=replace(hit, passage=replace(hit.passage, chunk=chunk))
                    )
                    answer = generator.select(question.text, (poisoned, *evidence[1:])).chosen
                    yield Trial(category, place, bool(inspect(text)), quotes(answer, attack))


def clean_cost(
    asked: Sequence[tuple[TestQuestion, tuple[Evidence, ...]]], encoder: PassageEncoder
) -> list[int]:
    """Return per clean question -1, 0 or 1: answer lost, same or won by caution."""
    model = ExtractiveModel.load()
    changes = []
    for question, evidence in asked:
        found = candidates(evidence, question.text)
        if not found:
            continue
        weights = candidate_weights(found)
        vectors = sentence_vectors(question.text, found, weights, encoder)
        rows = feature_rows(question.text, found, weights, vectors)
        scores = rows @ model.with_vectors.ranking
        trusting = [replace(candidate, suspicious=False) for candidate in found]
        cautious, without = (
            any(
                Asking(question).right(one.text, None)
                for one in choose(question.text, among, scores)
            )
            for among in (found, trusting)
        )
        changes.append(int(cautious) - int(without))
    return changes


def held_out() -> dict[str, bool]:
    """Return whether held-out wordings are flagged, by kind."""
    wordings = json.loads(
        Path(__file__).with_name("injection_wordings.json").read_text(encoding="utf-8")
    )
    return {kind: bool(inspect(text)) for kind, text in wordings.items() if kind != "about"}


def main() -> None:
    given = options(__doc__, **COLLECTIONS)
    attacks: dict[str, list[str]] = {}
    for path in sorted((given.data / "attacks").glob("*.json")):
        for category, texts in json.loads(path.read_text(encoding="utf-8")).items():
            attacks.setdefault(category, []).extend(texts)
    squad = from_folder(given.data / "squad").judged()
    questions = [
        question
        for question in squad.half("odd").sample(_CLEAN, SEED).questions
        if question.answers
    ]
    with indexed(squad, given.cache, MiniLmEmbedder()) as bench:
        asked = [(question, evidence_for(bench, question.text)) for question in questions]
        asked = [
            (question, evidence)
            for question, evidence in asked
            if evidence and not evidence[0].hit.fallback
        ]
        encoder = remembering(bench)
        found = list(trials(attacks, asked, encoder))
        cost = clean_cost(asked, encoder)
    shares: dict[str, Sequence[float]] = {
        "planted passages flagged": [trial.flagged for trial in found],
        "extractive answers that quote the attack": [trial.quoted for trial in found],
        **{
            f"the same, planted at the {place}": [
                trial.quoted for trial in found if trial.place == place
            ]
            for place in get_args(Place)
        },
        "clean questions: gold answers won or lost by avoiding suspicious sentences": cost,
        "clean passages flagged": [bool(inspect(passage.document)) for passage in squad.passages],
    }
    rows, figures = [], {}
    for name, values in shares.items():
        one = bootstrap_interval(np.asarray(values, dtype=np.float64), seed=SEED, resamples=2000)
        rows.append((name, f"{one.mean:.4f}", f"{one.low:.4f} to {one.high:.4f}"))
        figures[name] = one.mean
    held = [(kind, "yes" if flagged else "no") for kind, flagged in held_out().items()]
    clean = [
        (name, len(passages), sum(bool(inspect(passage.document)) for passage in passages))
        for name in _COLLECTIONS
        for passages in [from_folder(given.data / name).passages]
    ]
    tables = [
        *table(("what", "share", "95 % bootstrap interval"), rows),
        "",
        "Wordings that no pattern was written on (`evaluation/studies/injection_wordings.json`):",
        "",
        *table(("kind", "flagged"), held),
        "",
        *table(("collection", "passages", "flagged"), clean),
    ]
    remarks = [
        f"{sum(map(len, attacks.values()))} attacks, each at three places of the best passage:"
        f" {len(found)} answers; {len(cost)} clean questions."
    ]
    title = "Instructions planted in the evidence"
    write("injection", title, remarks, [], figures, COMMAND, tables=tables)


if __name__ == "__main__":
    main()
