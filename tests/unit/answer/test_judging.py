from __future__ import annotations

from dataclasses import replace
from math import log

import pytest

from app.answer.judging import (
    MOST_JUDGED,
    ClaimJudge,
    judged_answer,
    probability_of_yes,
    verdict_by,
)
from app.answer.models import ModelCalls
from app.core.cancel import CancelToken
from app.core.errors import InvalidInput, ModelNotInstalled, ProviderTimeout
from app.core.ports import Generator
from app.core.trace import Trace
from app.core.types import CheckBy, CheckReport, SecondVerdict, Token, Verdict
from app.generation.check.grounding import Grounder
from tests.fakes.generators import FixedModels, ScriptedGenerator, tokens_of, with_probabilities
from tests.unit.answer.bench import PROMPTS
from tests.unit.answer.test_checking import WARSAW, service
from tests.unit.generation.passages import evidence

TEXT = (
    "# Poland\n\nWarsaw stands on the Vistula. Warsaw is 310 km from the Baltic Sea. Bananas ripen."
)


def _report() -> CheckReport:
    return service().against(TEXT, WARSAW)


def _judged(model: Generator, by: CheckBy | None = None) -> CheckReport:
    judge = ClaimJudge(FixedModels(model), PROMPTS)
    return judge.on_report(_report(), CancelToken(), model="tiny", by=by)


def test_a_model_is_asked_for_each_sentence_with_a_place_and_shown_next_to_ours() -> None:
    model = ScriptedGenerator("Yes.", "It says NO.")
    judged = _judged(model)
    assert judged.judge == model.name
    assert [one.verdict for one in judged.sentences] == [one.verdict for one in _report().sentences]
    assert [one.judged for one in judged.sentences] == [
        None,
        "supported",
        "not_supported",
        "not_supported",
    ]
    first, second = model.prompts
    assert "Warsaw stands on the Vistula." in first.messages[-1].content
    assert "roughly 260 km" in "".join(message.content for message in second.messages)


def test_a_decision_model_judges_where_the_host_has_one() -> None:
    decides, chats = ScriptedGenerator("yes", "no", "no"), ScriptedGenerator()
    judge = ClaimJudge(FixedModels(chats, judge=decides), PROMPTS, "model")
    report = judge.on_report(_report(), CancelToken())
    assert report.judge == decides.name
    assert len(decides.prompts) == 2
    assert not chats.prompts


@pytest.mark.parametrize(
    ("reply", "yes"),
    [
        ("yes", 1.0),
        ("No.", 0.0),
        ("**Yes**, the text says so", 1.0),
        ("I know nothing of it", None),
        (with_probabilities(("yes", log(0.9)), (".", 0.0)), 0.9),
        (with_probabilities(("No", log(0.75))), 0.25),
    ],
)
def test_replies_are_read_with_their_probability(
    reply: str | list[Token], yes: float | None
) -> None:
    tokens = tokens_of(reply) if isinstance(reply, str) else reply
    assert probability_of_yes(tokens) == (None if yes is None else pytest.approx(yes))


@pytest.mark.parametrize(
    ("by", "own", "judged", "verdict"),
    [
        ("reader", "supported", "not_supported", "supported"),
        ("model", "unsure", "supported", "supported"),
        ("model", "contradicted", "supported", "supported"),
        ("model", "supported", "not_supported", "unsure"),
        ("model", "supported", None, "unsure"),
        ("model", "not_found", "not_supported", "not_found"),
        ("both", "unsure", "supported", "unsure"),
        ("both", "supported", "supported", "supported"),
        ("both", "supported", None, "unsure"),
        ("both", "no_claim", "supported", "no_claim"),
    ],
)
def test_whoever_decides_has_the_last_word_and_silence_supports_nothing(
    by: CheckBy, own: Verdict, judged: SecondVerdict | None, verdict: Verdict
) -> None:
    assert verdict_by(by, own, judged) == verdict


def test_where_a_model_decides_the_report_has_its_verdicts_and_ours_beside_them() -> None:
    model = ScriptedGenerator("no", "yes")
    report = _judged(model, by="model")
    assert report.check_by == "model"
    assert [one.verdict for one in report.sentences][1:3] == ["unsure", "supported"]
    assert [one.by_reader for one in report.sentences] == [
        one.verdict for one in _report().sentences
    ]
    assert report.counts.supported == 1


def test_what_stands_in_the_source_word_for_word_stays_supported() -> None:
    copied = service().against("Warsaw is the capital of Poland.", WARSAW)
    judge = ClaimJudge(FixedModels(ScriptedGenerator("no")), PROMPTS)
    (one,) = judge.on_report(copied, CancelToken(), model="tiny", by="both").sentences
    assert (one.verdict, one.judged) == ("supported", "not_supported")


def test_where_only_the_setting_asks_for_a_model_and_none_is_there_the_reader_decides() -> None:
    models = FixedModels(reason="Ollama is not running; run: ollama serve")
    report = ClaimJudge(models, PROMPTS, "model").on_report(_report(), CancelToken())
    assert (report.check_by, report.judge) == ("reader", None)
    assert "ollama serve" in str(report.judge_failed)
    assert report.sentences == _report().sentences


def test_sentences_of_an_answer_are_held_against_whole_passages_and_a_broken_host_says_no() -> None:
    passages = evidence("Warsaw stands on the Vistula. It has 1.8 million people.")
    grounded = Grounder().ground("It has 1.8 million people [1].", passages)
    citation = replace(grounded.sentences[0].citations[0], support=0.8)
    one = replace(grounded.sentences[0], verdict="unsure", citations=(citation,))
    two = replace(one, verdict="supported")
    answer = replace(grounded, sentences=(one, two))
    model = ScriptedGenerator("yes", ProviderTimeout("the model said nothing for 60 s"))
    calls = ModelCalls(Trace(), CancelToken(), PROMPTS)
    judged = judged_answer("model", answer, passages, model, calls)
    assert [sentence.verdict for sentence in judged.sentences] == ["supported", "unsure"]
    assert "stands on the Vistula" in model.prompts[0].messages[-1].content
    assert judged_answer("reader", answer, passages, model, calls) is answer


def test_without_a_model_the_reason_is_told() -> None:
    models = FixedModels(reason="Ollama is not running; run: ollama serve")
    with pytest.raises(InvalidInput, match="ollama serve"):
        ClaimJudge(models, PROMPTS).on_report(_report(), CancelToken(), model="tiny")


def test_a_long_text_is_refused_before_the_first_call() -> None:
    model = ScriptedGenerator("yes")
    report = _report()
    long = replace(report, sentences=report.sentences[1:2] * (MOST_JUDGED + 1))
    with pytest.raises(InvalidInput, match="at most 100 sentences"):
        ClaimJudge(FixedModels(model), PROMPTS).on_report(long, CancelToken(), model="tiny")
    assert model.prompts == []


def test_a_model_that_fails_is_asked_no_further_and_changes_nothing() -> None:
    model = ScriptedGenerator("yes", ProviderTimeout("the model said nothing for 60 s"), "yes")
    ours = _report()
    judged = _judged(model)
    assert [one.judged for one in judged.sentences] == [None, "supported", None, None]
    assert [replace(one, judged=None) for one in judged.sentences] == list(ours.sentences)
    assert judged.judge_failed == "the model said nothing for 60 s"
    assert model.left == 1


def test_a_model_that_is_missing_is_an_error() -> None:
    model = ScriptedGenerator(ModelNotInstalled("run: ollama pull tiny"))
    with pytest.raises(ModelNotInstalled, match="ollama pull"):
        _judged(model)
