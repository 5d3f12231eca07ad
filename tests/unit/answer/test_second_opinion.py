from __future__ import annotations

from dataclasses import replace

import pytest

from app.answer.checking import MOST_JUDGED, SecondOpinion, read_verdict
from app.core.cancel import CancelToken
from app.core.errors import InvalidInput, ModelNotInstalled, ProviderTimeout
from app.core.types import CheckReport, SecondVerdict
from tests.fakes.generators import FixedModels, ScriptedGenerator
from tests.unit.answer.bench import PROMPTS
from tests.unit.answer.test_checking import WARSAW, service

TEXT = (
    "# Poland\n\nWarsaw stands on the Vistula. Warsaw is 310 km from the Baltic Sea. Bananas ripen."
)


def _report() -> CheckReport:
    return service().against(TEXT, WARSAW)


def test_a_model_is_asked_for_each_sentence_with_a_place_and_shown_next_to_ours() -> None:
    model = ScriptedGenerator("Yes.", "It says NO.")
    judged = SecondOpinion(FixedModels(model), PROMPTS).on(_report(), "tiny", CancelToken())
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


@pytest.mark.parametrize(
    ("reply", "verdict"),
    [
        ("yes", "supported"),
        ("No.", "not_supported"),
        ("**Yes**, the text says so", "supported"),
        ("I know nothing of it", None),
    ],
)
def test_replies_are_read(reply: str, verdict: SecondVerdict | None) -> None:
    assert read_verdict(reply) == verdict


def test_without_a_model_the_reason_is_told() -> None:
    models = FixedModels(reason="Ollama is not running; run: ollama serve")
    with pytest.raises(InvalidInput, match="ollama serve"):
        SecondOpinion(models, PROMPTS).on(_report(), "tiny", CancelToken())


def test_a_long_text_is_refused_before_the_first_call() -> None:
    model = ScriptedGenerator("yes")
    report = _report()
    long = replace(report, sentences=report.sentences[1:2] * (MOST_JUDGED + 1))
    with pytest.raises(InvalidInput, match="at most 100 sentences"):
        SecondOpinion(FixedModels(model), PROMPTS).on(long, "tiny", CancelToken())
    assert model.prompts == []


def test_a_model_that_fails_is_asked_no_further_and_changes_nothing() -> None:
    model = ScriptedGenerator("yes", ProviderTimeout("the model said nothing for 60 s"), "yes")
    ours = _report()
    judged = SecondOpinion(FixedModels(model), PROMPTS).on(ours, "tiny", CancelToken())
    assert [one.judged for one in judged.sentences] == [None, "supported", None, None]
    assert [replace(one, judged=None) for one in judged.sentences] == list(ours.sentences)
    assert judged.judge_failed == "the model said nothing for 60 s"
    assert model.left == 1


def test_a_model_that_is_missing_is_an_error() -> None:
    model = ScriptedGenerator(ModelNotInstalled("run: ollama pull tiny"))
    with pytest.raises(ModelNotInstalled, match="ollama pull"):
        SecondOpinion(FixedModels(model), PROMPTS).on(_report(), "tiny", CancelToken())
