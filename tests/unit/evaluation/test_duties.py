"""Made texts about duties: what a claim is labelled follows from who must do what."""

from __future__ import annotations

from collections import Counter

from evaluation.training.duties import duties
from evaluation.training.pairs import CONTRADICTED, NOT_STATED, SUPPORTED, UNSUPPORTED


def test_equal_seeds_give_equal_pairs() -> None:
    assert list(duties(20, 3)) == list(duties(20, 3))
    assert list(duties(20, 3)) != list(duties(20, 4))


def test_a_claim_of_another_person_is_not_supported() -> None:
    for pair in duties(300, 1):
        if pair.claim == UNSUPPORTED and " by the " not in pair.first:
            assert pair.first not in pair.second


def test_an_answer_stands_beside_what_does_not_answer() -> None:
    pairs = [pair for pair in duties(200, 2) if pair.answers is not None]
    by_question: dict[str, set[float]] = {}
    for pair in pairs:
        by_question.setdefault(pair.first, set()).add(pair.answers or 0.0)
    both = sum(found == {0.0, 1.0} for found in by_question.values())
    assert both > 0.8 * len(by_question)


def test_every_label_is_made() -> None:
    labels = Counter(pair.claim for pair in duties(400, 5) if pair.claim is not None)
    assert set(labels) == {SUPPORTED, CONTRADICTED, NOT_STATED, UNSUPPORTED}
    assert min(labels.values()) > 30
