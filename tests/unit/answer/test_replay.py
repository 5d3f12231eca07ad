from __future__ import annotations

from dataclasses import asdict, replace
from json import dumps

import pytest

from app.answer.options import AnswerOptions
from app.answer.replay import Replay, Replayer
from app.core.errors import Conflict, NotFound
from app.core.types import Passage
from tests.fakes.generators import FixedModels, ScriptedGenerator
from tests.fakes.retrievers import PassageCatalog, passage
from tests.unit.answer.bench import PROMPTS, Bench, papers

QUESTION = "Hello, what is the melting point of copper?"
LATER = "2999-01-01T00:00:00Z"


def _passages() -> list[Passage]:
    return [
        passage("The melting point of copper is 1085 degrees.", key="copper", title="Copper"),
        passage("Copper has a melting point; so has brass.", key="brass", title="Brass"),
    ]


def _replayer(bench: Bench, **settings: str) -> Replayer:
    return Replayer(
        store=bench.answers,
        catalog=PassageCatalog(bench.passages),
        searcher_for=bench.searcher_for,
        models=bench.models,
        prompts=PROMPTS,
        options=bench.options,
        settings=lambda: {"FUSION": "relative_score", **settings},
        top_k=5,
    )


def _summary(replay: Replay) -> list[tuple[str, str, int | None, int | None, str]]:
    return [
        (change.kind, change.title, change.n_before, change.n_now, change.reason)
        for change in replay.passages
    ]


def test_nothing_changed() -> None:
    bench = Bench(passages=_passages())
    answer = bench.ask(papers(QUESTION))
    replay = _replayer(bench).replay(answer.answer_id)
    assert replay.same
    assert (replay.passages, replay.settings, replay.remarks) == ((), (), ())
    assert replay.query == "what is the melting point of copper?"
    assert bench.retriever.queries[0] == bench.retriever.queries[1]
    assert bench.retriever.requests[0] == bench.retriever.requests[1]


def test_added_removed_and_moved_passages_are_told_with_their_reason() -> None:
    bench = Bench(passages=_passages())
    answer = bench.ask(papers(QUESTION))
    new = passage(
        "What is the melting point of copper? It is the 1085 degree point.", key="new", title="New"
    )
    new = replace(new, document=replace(new.document, added_at=LATER))
    copper = bench.passages.pop(0)
    bench.passages.insert(0, new)
    replay = _replayer(bench).replay(answer.answer_id)
    assert not replay.same
    assert _summary(replay) == [
        ("added", "New", None, 1, "the document was added after the answer"),
        ("removed", "Copper", 1, None, "the document was deleted"),
    ]
    bench.passages.append(copper)
    assert _summary(_replayer(bench).replay(answer.answer_id)) == [
        ("added", "New", None, 1, "the document was added after the answer"),
        ("moved", "Copper", 1, 3, "ranked 1 then, 3 now"),
    ]


def test_a_revised_document_is_told() -> None:
    bench = Bench(passages=_passages())
    answer = bench.ask(papers(QUESTION))
    bench.passages[0] = passage(
        "The melting point of pure copper is 1084.6 degrees.",
        key="copper",
        title="Copper",
        revision=2,
    )
    reason = "the document was revised: revision 1 then, 2 now"
    assert _summary(_replayer(bench).replay(answer.answer_id)) == [
        ("revised", "Copper", 1, 1, reason),
        ("removed", "Copper", 1, None, reason),
    ]


def test_a_passage_that_only_fell_back_is_told() -> None:
    bench = Bench(passages=_passages())
    answer = bench.ask(papers(QUESTION))
    bench.passages[1] = passage("Brass has none.", key="brass", title="Brass", ordinal=1)
    assert ("removed", "Brass", 2, None, "ranks lower now") in _summary(
        _replayer(bench).replay(answer.answer_id)
    )


def test_settings_and_models_that_differ_are_told() -> None:
    bench = Bench(passages=_passages())
    answer = bench.ask(papers(QUESTION))
    bench.embedder = None
    replay = _replayer(bench, FUSION="rrf", LLM_MODEL="qwen3").replay(answer.answer_id)
    assert [asdict(change) for change in replay.settings] == [
        {"name": "FUSION", "before": "relative_score", "now": "rrf"},
        {"name": "LLM_MODEL", "before": "", "now": "qwen3"},
        {"name": "embedder", "before": "fake:hash", "now": "none"},
    ]
    dumps(asdict(replay))


def test_a_strategy_that_is_gone_is_told() -> None:
    helper = ScriptedGenerator("copper melting point")
    bench = Bench(
        passages=_passages(),
        models=FixedModels(ScriptedGenerator("Copper melts at 1085 degrees [1]."), helper),
    )
    answer = bench.ask(papers(QUESTION, strategy="multi_query"))
    bench.models.model = bench.models.helper = None
    remarks = _replayer(bench).replay(answer.answer_id).remarks
    assert "asks a model" in remarks[0]
    assert "was not possible now" in remarks[1]


def test_only_what_was_kept_can_be_replayed() -> None:
    bench = Bench(passages=_passages(), options=AnswerOptions(store_answers="hash"))
    answer = bench.ask(papers(QUESTION))
    with pytest.raises(Conflict, match="STORE_ANSWERS"):
        _replayer(bench).replay(answer.answer_id)
    with pytest.raises(NotFound):
        _replayer(bench).replay("nope")


def test_an_abstention_says_that_it_kept_no_sources() -> None:
    bench = Bench(passages=_passages())
    answer = bench.ask(papers("Who won the regatta on the river?"))
    assert answer.status == "abstained"
    assert "abstention" in _replayer(bench).replay(answer.answer_id).remarks[0]
