from __future__ import annotations

import pytest

from app.answer.models import MIN_TOKENS, QUICK_PASSAGES, ModelSpeeds, manner
from app.answer.options import MannerOptions
from app.core.types import ModelFindings, ModelProfile, ModelSpeed, Usage
from app.models.ollama import parameters_in_name, parameters_of
from app.storage.catalog.models import ModelStore
from tests.stores import catalog_database

AUTO = MannerOptions()
SMALL, LARGE = (
    ModelProfile("o:small", "host", parameters=0.5e9),
    ModelProfile("o:large", "host", parameters=8e9),
)


def test_a_small_model_gets_whole_passages_and_stands_below_the_quote() -> None:
    how = manner(SMALL, ModelSpeed(300), AUTO)
    assert (how.prompts, how.evidence, how.leads) == ("compact", "full", True)


def test_from_one_and_a_half_billion_parameters_the_words_lead() -> None:
    middle = ModelProfile("o:middle", "host", parameters=1.54e9)
    how = manner(middle, ModelSpeed(100), AUTO)
    assert (how.prompts, how.leads) == ("compact", False)


def test_a_large_model_on_a_quick_host_gets_whole_passages_and_speaks_alone() -> None:
    how = manner(LARGE, ModelSpeed(2000), AUTO)
    assert (how.prompts, how.evidence, how.leads) == ("full", "full", False)
    assert how.budget_tokens > 100_000
    assert how.passages == QUICK_PASSAGES


def test_a_model_of_unknown_size_counts_as_small_unless_a_provider_hosts_it() -> None:
    assert manner(ModelProfile("o:x", "host"), None, AUTO).leads
    assert not manner(ModelProfile("groq:x", "groq", hosted=True), None, AUTO).leads


@pytest.mark.parametrize(("speed", "budget"), [(10, MIN_TOKENS), (100, 2000), (900, 18_000)])
def test_the_budget_is_what_the_host_reads_in_twenty_seconds_and_not_too_little(
    speed: float, budget: int
) -> None:
    assert manner(SMALL, ModelSpeed(speed), AUTO).budget_tokens == budget
    assert manner(SMALL, ModelSpeed(speed), AUTO, mode="compare").budget_tokens == budget


def test_what_the_test_found_overrides_the_size_and_the_question_overrides_both() -> None:
    found = ModelFindings(
        "full", "full", as_good_as_quotes=True, advice="", at="2026-01-01T00:00:00Z"
    )
    tested = ModelProfile("o:small", "host", parameters=0.5e9, findings=found)
    how = manner(tested, ModelSpeed(300), AUTO)
    assert (how.prompts, how.evidence, how.leads) == ("full", "full", False)
    assert manner(tested, None, AUTO, asked="short").evidence == "short"
    assert (
        manner(tested, None, MannerOptions(prompts="compact", evidence="short")).prompts
        == "compact"
    )


def test_speeds_are_learned_kept_and_not_swept_away_by_a_cached_prompt() -> None:
    store = ModelStore(catalog_database())
    speeds = ModelSpeeds(store)
    assert speeds.of("host", "m") is None
    speeds.observe("host", "m", Usage(300, 20, prompt_seconds=1.0, completion_seconds=2.0))
    assert ModelSpeeds(store).of("host", "m") == ModelSpeed(300.0, 10.0)
    speeds.observe("host", "m", Usage(300, 20, prompt_seconds=0.001, completion_seconds=2.0))
    learned = speeds.of("host", "m")
    assert learned is not None
    assert 300 < learned.reading < 400


@pytest.mark.parametrize("seconds", [1e-9, 1e9])
def test_a_speed_that_no_host_has_is_not_believed(seconds: float) -> None:
    speeds = ModelSpeeds(ModelStore(catalog_database()))
    speeds.observe("host", "model", Usage(1_000_000, 100_000, seconds, seconds))
    speed = speeds.of("host", "model")
    assert speed is not None
    assert speed.writing is not None
    assert 0.1 <= speed.writing <= 1e5
    assert 0.1 <= speed.reading <= 1e5


def test_a_call_that_says_no_duration_or_is_short_teaches_nothing() -> None:
    speeds = ModelSpeeds(ModelStore(catalog_database()))
    speeds.observe("host", "m", Usage(300, 20))
    speeds.observe("host", "m", Usage(8, 2, prompt_seconds=0.5))
    assert speeds.of("host", "m") is None


@pytest.mark.parametrize(
    ("size", "parameters"),
    [("494.03M", 494.03e6), ("7.6B", 7.6e9), ("134.5M", 134.5e6), ("", None), ("large", None)],
)
def test_the_size_as_a_host_says_it(size: str, parameters: float | None) -> None:
    assert parameters_of(size) == (None if parameters is None else pytest.approx(parameters))


@pytest.mark.parametrize(
    ("name", "parameters"),
    [
        ("qwen2.5:0.5b", 0.5e9),
        ("smollm2:135m", 135e6),
        ("mixtral-8x7b-instruct", 56e9),
        ("llama3.2", None),
        ("gpt-4o", None),
    ],
)
def test_the_size_that_a_name_gives(name: str, parameters: float | None) -> None:
    assert parameters_in_name(name) == (None if parameters is None else pytest.approx(parameters))
