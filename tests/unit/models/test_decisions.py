from __future__ import annotations

import pytest

from app.answer.judging import probability_of_yes
from app.core.cancel import CancelToken
from app.core.errors import DocuMindError, ModelNotInstalled, ProviderBadResponse
from app.core.types import Message, Prompt
from app.models.decisions import OllamaDecider
from app.models.ollama import OllamaHost, OllamaWatch
from app.models.options import ProviderOptions
from app.models.retries import CallSlots
from app.models.selection import decision_model
from tests.fakes.ollama_double import DoubleModel, Fault, OllamaDouble

CLAIM = Prompt((Message("system", "You check facts."), Message("user", "Statement: bees fly")))


def decider(double: OllamaDouble, model: DoubleModel) -> OllamaDecider:
    double.models, double.version = [model], "0.35.0"
    return OllamaDecider(OllamaHost(double.url), model.name, CallSlots(1, 1.0, "Ollama"))


@pytest.mark.parametrize("yes", [0.0, 0.1, 0.5, 0.97, 1.0])
def test_a_probability_is_read_as_it_was_given(double: OllamaDouble, yes: float) -> None:
    tokens = list(
        decider(double, DoubleModel("nimble", decides=True, yes=yes)).stream(CLAIM, CancelToken())
    )
    assert probability_of_yes(tokens) == pytest.approx(yes)
    assert tokens[-1].finish == "stop"
    (asked,) = double.bodies("/v1/systemone")
    assert asked["state"] == "You check facts.\n\nStatement: bees fly"
    questions = asked["questions"]
    assert isinstance(questions, dict)
    (question,) = questions.values()
    assert question["type"] == "noul"


def test_a_question_that_is_not_answered_is_neither_yes_nor_no(double: OllamaDouble) -> None:
    silent = decider(double, DoubleModel("nimble", decides=True, yes=None))
    assert probability_of_yes(silent.stream(CLAIM, CancelToken())) is None


def test_an_older_host_says_from_which_release_on(double: OllamaDouble) -> None:
    asked = decider(double, DoubleModel("nimble", decides=True))
    double.version = "0.34.9"
    with pytest.raises(ProviderBadResponse, match=r"from 0\.35 on"):
        list(asked.stream(CLAIM, CancelToken()))


@pytest.mark.parametrize(
    ("fault", "kind"),
    [
        (
            Fault("status", status=404, body='{"error":"model \'nimble\' not found"}'),
            ModelNotInstalled,
        ),
        (Fault("status", status=200, body="oops", content_type="text/plain"), ProviderBadResponse),
        (Fault("status", status=500, body='{"error":"it broke"}'), DocuMindError),
    ],
)
def test_what_fails_is_an_error_of_ours(
    double: OllamaDouble, fault: Fault, kind: type[DocuMindError]
) -> None:
    asked = decider(double, DoubleModel("nimble", decides=True))
    for _ in range(3):
        double.fail("/v1/systemone", fault)
    with pytest.raises(kind):
        list(asked.stream(CLAIM, CancelToken()))


def test_a_decision_model_of_the_host_judges_and_none_of_a_cloud_by_itself(
    double: OllamaDouble,
) -> None:
    watch = OllamaWatch(OllamaHost(double.url))
    double.models = [
        DoubleModel("clef:cloud", decides=True),
        DoubleModel("nimble:latest", decides=True),
        DoubleModel("small:1b"),
    ]
    own, hosted = ProviderOptions(), ProviderOptions(llm_provider="openai_compatible")
    assert decision_model(own, watch, None) == "nimble"
    assert decision_model(own, watch, "clef:cloud") == "clef:cloud"
    assert decision_model(own, watch, "small:1b") == ""
    assert decision_model(hosted, watch, None) == ""
