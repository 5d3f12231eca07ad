"""A real small model as the judge of a check: its verdict stands next to ours and never changes it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from app.answer.judging import ClaimJudge
from app.check_report import as_markdown
from app.core.cancel import CancelToken
from app.core.ports import Generator
from app.core.serialization import json_values
from app.core.types import CheckReport
from app.models.ollama import OllamaHost
from app.models.ollama_adapters import OllamaGenerator
from app.models.retries import CallSlots
from tests.fakes.generators import FixedModels
from tests.live.conftest import Live, double, fail
from tests.unit.answer.bench import PROMPTS
from tests.unit.answer.test_checking import WARSAW, service

pytestmark = pytest.mark.live
TEXT = "Warsaw stands on the Vistula. Warsaw is 310 km from the Baltic Sea. Bananas ripen."


def _ours() -> CheckReport:
    return service().against(TEXT, WARSAW)


def _judge(live: Live) -> Generator:
    return OllamaGenerator(
        OllamaHost(live.url), live.chat, slots=CallSlots(2, 60, "Ollama"), num_ctx=2048
    )


def _judged(model: Generator) -> CheckReport:
    return ClaimJudge(FixedModels(model), PROMPTS).on_report(_ours(), CancelToken(), model="live")


def _without_judge(report: CheckReport) -> list[object]:
    return [replace(one, judged=None) for one in report.sentences]


def test_a_model_answers_next_to_ours(live: Live) -> None:
    """What it says is the model's affair; a reply that is no yes or no is no verdict."""
    model = _judge(live)
    judged = _judged(model)
    assert _without_judge(judged) == list(_ours().sentences)
    assert (judged.judge, judged.judge_failed) == (model.name, None)
    assert {one.judged for one in judged.sentences[:2]} <= {"supported", "not_supported", None}
    assert judged.sentences[2].judged == "not_supported"
    shown = as_markdown(json_values(judged))
    assert shown.count(f"({model.name}: ") == len(judged.sentences)


@pytest.mark.parametrize("kind", ["reset", "garbage", "error_line"])
def test_a_host_that_fails_gives_no_verdict(kind: str) -> None:
    with double() as (live, _):
        fail(live, kind=kind, after=0)
        judged = _judged(_judge(live))
    assert judged.judge_failed
    assert [one.judged for one in judged.sentences] == [None, None, None]
    assert _without_judge(judged) == list(_ours().sentences)


def test_a_host_that_ends_between_two_checks_gives_no_verdict() -> None:
    with double() as (live, process):
        model = _judge(live)
        assert _judged(model).judge_failed is None
        process.kill()
        process.wait()
        assert _judged(model).judge_failed
