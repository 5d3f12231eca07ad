"""Probes and query cases: the files, the measures, and the cases over a ranking fake and quotes."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from app.core.errors import InvalidInput, NotFound
from app.core.sentences import sentence_spans
from app.core.types import Answer, AnswerStatus, Evidence, Hit, Library, Notice, Passage, Question
from app.evaluation.arms import Arm
from app.evaluation.report import ReportProvenance, report_of, to_json, to_markdown
from app.evaluation.runner import DOCUMENTS, RankedPassages
from app.models.minilm import MiniLmEmbedder
from scripts.probes import (
    GROUNDED,
    NDCG,
    Probe,
    QueryCase,
    ServiceAsk,
    failures,
    load_cases,
    load_probes,
    run_probes,
    strategy_arms,
    with_articles,
)
from tests.stores import passage
from tests.unit.answer.bench import Bench

ROOT = Path(__file__).parents[3]
EVALUATION = ROOT / "evaluation"


def test_the_ablation_probes_can_be_answered_from_the_samples() -> None:
    probes = load_probes(EVALUATION / "retrieval_ablation.json")
    assert len({probe.id for probe in probes}) == len(probes) == 70
    assert sum(probe.absent for probe in probes) == 12
    assert sum(probe.every for probe in probes) >= 6
    public = " ".join(
        " ".join(path.read_text(encoding="utf-8").split())
        for path in (ROOT / "data" / "sample_docs" / "public").glob("*.txt")
    ).lower()
    for probe in probes:
        if probe.library == "public" and not probe.absent:
            held = [part.lower() in public for part in probe.expected_substrings]
            assert all(held) if probe.every else any(held), probe.question


def test_the_probes_tell_the_arms_apart() -> None:
    """Each plain arm misses more of them than the default, by more than chance."""
    report = EVALUATION / "reports" / "retrieval_ablation_summary.json"
    (experiment,) = json.loads(report.read_text("utf-8"))["experiments"]
    assert experiment["questions"] == len(load_probes(EVALUATION / "retrieval_ablation.json"))
    compared = {one["arm"]: one for one in experiment["comparisons"]}
    for name in ("rrf", "dense", "lexical"):
        plain = compared[f"fusion {name}"]
        assert plain["difference"]["high"] < 0
        assert plain["p_holm"] <= 0.05


def test_where_nothing_answers_a_refusal_is_right() -> None:
    probe = Probe("absent", "?", "public", ())
    assert (probe.ndcg([]), probe.grounded([])) == (1.0, True)
    assert (probe.ndcg(["a text"]), probe.grounded(["a text"])) == (0.0, False)


def test_a_probe_of_two_documents_wants_both_and_early() -> None:
    one = Probe("one", "?", "public", ("reef", "atoll"))
    both = Probe("both", "?", "public", ("reef", "atoll"), every=True)
    assert one.ndcg(["an atoll", "a reef"]) == 1.0
    assert both.ndcg(["an atoll", "a reef"]) == 1.0
    assert both.ndcg(["a reef", "nothing"]) == pytest.approx(1 / (1 + 1 / 1.584963), abs=1e-5)
    assert one.ndcg(["nothing", "a reef"]) == pytest.approx(1 / 1.584963, abs=1e-5)
    assert one.ndcg(["nothing"]) == 0.0


def test_the_encyclopedia_is_asked_about_articles_that_are_no_samples() -> None:
    probes = load_probes(EVALUATION / "wiki_public_bench.json")
    assert len({probe.id for probe in probes}) == len(probes) == 64
    assert len({probe.article for probe in probes}) == 32
    for probe in probes:
        named = probe.article.casefold() in probe.question.casefold()
        assert named == (not probe.id.endswith("-other-words")), probe.question
    titles = {
        path.read_text(encoding="utf-8").splitlines()[0]
        for path in (ROOT / "data/sample_docs/public").glob("*.txt")
    }
    assert not titles & {probe.article for probe in probes}


def test_probes_whose_article_is_not_indexed_are_named() -> None:
    named = [
        Probe(title, "?", "public", ("x",), article=title)
        for title in ("Aspirin", "Black Death", "DNA")
    ]
    free = Probe("free", "?", "public", ("x",))

    def titles_like(probe: Probe) -> list[str]:
        return [
            title
            for title in ("aspirin", "DNA sequencing")
            if probe.article.lower() in title.lower()
        ]

    asked, skipped = with_articles([*named, free], titles_like)
    assert (asked, skipped) == ((named[0], free), ("Black Death", "DNA"))
    with pytest.raises(NotFound, match="documind bulk index"):
        with_articles(named[1:], titles_like)


def test_what_is_wrong_with_probes_is_named(tmp_path: Path) -> None:
    path = tmp_path / "probes.json"
    path.write_text('{"probes": [{"id": "a"}]}')
    with pytest.raises(InvalidInput, match=r"not a file of probes: 0\.question: Field required"):
        load_probes(path)
    path.write_text(
        json.dumps(
            {"probes": [{"id": "a", "question": "?", "library": "x", "expected_substrings": ["y"]}]}
        )
    )
    with pytest.raises(InvalidInput, match=r"0\.library: Input should be"):
        load_probes(path)


def _found(*texts: str) -> RankedPassages:
    return RankedPassages(tuple(f"d{text}" for text in texts), texts, 2.0, {"search": 1.0})


def test_probes_are_scored_by_the_strings_they_expect() -> None:
    probes = [
        Probe("p1", "Who?", "public", ("Rollo",)),
        Probe("p2", "Where?", "public", ("Rouen",)),
    ]
    arms = strategy_arms()[:2]
    replies = {
        ("baseline", "p1"): _found("Rollo was there", "other"),
        ("baseline", "p2"): _found("nothing"),
        ("hyde", "p1"): _found("rollo", "other"),
        ("hyde", "p2"): _found("in Rouen"),
    }
    experiment = run_probes(
        "toy",
        probes,
        arms,
        lambda arm, probe, _: replies[arm.name, probe.id],
        seed=1,
        resamples=100,
    )
    baseline, hyde = experiment.shown.arms
    assert baseline.measures[GROUNDED].mean == 0.5
    assert hyde.measures[GROUNDED].mean == 1.0
    assert baseline.measures[DOCUMENTS].mean == 1.5
    assert hyde.overlap_with_baseline == pytest.approx((1 / 3 + 0) / 2)
    assert experiment.shown.comparisons[0].verdict == "cannot tell it from baseline at n = 2"
    report = report_of("Toy", ReportProvenance("s", "h", "f", {}, 1), (experiment,))
    assert "| hyde | 1.0000 |" in to_markdown(report)
    assert "Made from git s, settings h, index f, seed 1." in to_markdown(report)
    assert "Made from settings h, models m 0123, seed 1." in to_markdown(
        report_of("Toy", ReportProvenance("", "h", "", {"m": "0123"}, 1), (experiment,))
    )
    assert json.loads(to_json(report))["experiments"][0]["measure"] == NDCG
    with pytest.raises(InvalidInput, match="no probe"):
        run_probes("toy", [], arms, lambda *_: _found(), seed=1)


def test_a_service_is_asked_for_passages_under_the_arm() -> None:
    asked: list[Question] = []

    def answer(question: Question) -> Answer:
        asked.append(question)
        evidence = (Evidence(1, Hit(passage("Rollo", key="rollo"), 1.0)),)
        notices = (Notice("strategy_degraded", "no passage was written"),)
        return Answer("a", "", "retrieved", question, "g", "e", evidence=evidence, notices=notices)

    ask = ServiceAsk(answer)
    arm = next(arm for arm in strategy_arms() if arm.name == "hyde")
    found = ask(arm, Probe("p", "Who?", "papers", ("Rollo",), "compare"), 3)
    assert found.texts == ("Rollo",)
    assert ask.degraded.remarks() == ["hyde: in 1 of 1 questions no passage was written."]
    (question,) = asked
    assert (question.strategy, question.mode, question.top_k, question.retrieve_only) == (
        "hyde",
        "compare",
        3,
        True,
    )


def test_strategies_and_fusions_are_arms() -> None:
    arms: tuple[Arm, ...] = strategy_arms()
    assert {arm.strategy for arm in arms} == {"baseline", "multi_query", "hyde", "flare"}
    assert {arm.fusion for arm in arms} == {"relative_score", "rrf", "dense", "lexical"}


# --- query cases


def _samples() -> Iterator[Passage]:
    for library, pattern in ((Library.PUBLIC, "public/*.txt"), (Library.PAPERS, "papers/*.md")):
        for path in sorted((ROOT / "data" / "sample_docs").glob(pattern)):
            text = path.read_text(encoding="utf-8")
            title = text.splitlines()[0].lstrip("# ")
            spans = sentence_spans(text)
            for number in range(0, len(spans), 4):
                part = spans[number : number + 4]
                start, end = part[0][0], part[-1][1]
                yield passage(
                    text[start:end],
                    key=path.stem,
                    library=library,
                    ordinal=number,
                    title=title,
                    start=start,
                )


@pytest.fixture(scope="module")
def bench(minilm: MiniLmEmbedder) -> Bench:
    return Bench(passages=list(_samples()), embedder=minilm)


@pytest.mark.parametrize(
    "case", load_cases(EVALUATION / "query_cases.json"), ids=lambda case: str(case.id)
)
def test_query_cases_hold_over_the_samples(bench: Bench, case: QueryCase) -> None:
    question = Question(
        case.question,
        case.library,
        mode=case.mode,
        strategy=case.strategy,
        retrieve_only=case.retrieve_only,
        top_k=5,
    )
    answer = bench.ask(question)
    titles = {e.hit.passage.document.title.lower() for e in answer.evidence}
    assert failures(case, answer.status, answer.text, titles) == []


def test_there_are_twenty_cases() -> None:
    cases = load_cases(EVALUATION / "query_cases.json")
    assert len({case.id for case in cases}) == 20
    statuses: set[AnswerStatus] = {status for case in cases for status in case.statuses}
    assert statuses == {"answered", "retrieved", "abstained", "chitchat"}


def test_failures_say_what_does_not_hold(tmp_path: Path) -> None:
    case = QueryCase(
        "c",
        "?",
        "public",
        ("answered",),
        expected_docs=("Chess",),
        expected_substrings=("Deep Blue",),
    )
    assert failures(case, "answered", "It was deep blue.", {"chess"}) == []
    assert len(failures(case, "abstained", "", set())) == 3
    path = tmp_path / "cases.json"
    path.write_text('{"cases": [{"id": "a"}]}')
    with pytest.raises(InvalidInput, match="not a file of cases"):
        load_cases(path)
    path.write_text(
        json.dumps(
            {"cases": [{"id": "a", "question": "?", "library": "x", "statuses": ["answered"]}]}
        )
    )
    with pytest.raises(InvalidInput, match=r"0\.library: Input should be"):
        load_cases(path)
