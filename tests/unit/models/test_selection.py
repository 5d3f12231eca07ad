from __future__ import annotations

import threading
import time

import pytest

from app.core.errors import InvalidInput, ModelNotInstalled
from app.core.types import Fingerprint
from app.models.minilm import WEIGHTS_SHA256
from app.models.ollama import OllamaHost, OllamaWatch
from app.models.options import HostedOptions, ProviderOptions
from app.models.selection import (
    EmbedderChoice,
    GeneratorChoice,
    Preferences,
    choose_embedder,
    choose_generator,
)
from tests.fakes.ollama_double import DoubleModel, Fault, OllamaDouble

AUTO = ProviderOptions()
NOBODY = "http://127.0.0.1:9"  # the discard port, refused at once
MINILM = Fingerprint("all-MiniLM-L6-v2", f"{WEIGHTS_SHA256}-int8", 384, "", "", "c1", "a1")
NOMIC = Fingerprint(
    "nomic-embed-text", "abc123", 768, "search_query: ", "search_document: ", "c1", "a1"
)
HOSTED = Fingerprint("embed-1", "hosted:mistral:embed-1", 32, "", "", "c1", "a1")


class Clock:
    """Time that a test moves."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def watch(host: OllamaHost, clock: Clock) -> OllamaWatch:
    return OllamaWatch(host, clock=clock)


def test_auto_takes_ollama_when_it_has_the_model(watch: OllamaWatch) -> None:
    assert choose_generator(AUTO, watch) == GeneratorChoice("ollama", "llama3.2", "llama3.2")
    assert choose_embedder(AUTO, watch) == EmbedderChoice("ollama", "nomic-embed-text")


def test_the_best_tested_model_answers_where_none_is_chosen(
    double: OllamaDouble, watch: OllamaWatch
) -> None:
    small, large = DoubleModel("small:1b"), DoubleModel("large:8b", parameter_size="8.0B")
    double.models = [large, small, DoubleModel("vectors", "bert", dimension=8)]
    rated = {small.digest: 0.9, large.digest: 0.8}
    best = choose_generator(AUTO, watch, preferences=Preferences(right=rated.get))
    assert (best.model, best.why) == ("small:1b", "best in its test, 90% right")
    chosen = choose_generator(AUTO, watch, preferences=Preferences("LARGE:8b", rated.get))
    assert chosen.model == "large:8b"


def test_a_model_that_does_not_fit_memory_is_not_taken_by_itself(
    double: OllamaDouble, watch: OllamaWatch
) -> None:
    double.models = [
        DoubleModel("large:8b", parameter_size="8.0B", size=5_000_000_000),
        DoubleModel("middle:3b", parameter_size="3.2B", size=2_000_000_000),
        DoubleModel("small:1b", parameter_size="1.2B", size=1_000_000_000),
        DoubleModel("far:1t-cloud", parameter_size="1000B", size=300),
    ]
    for gigabytes, model in ((16, "large:8b"), (4, "middle:3b"), (1, "small:1b")):
        options = ProviderOptions(memory_bytes=gigabytes * 1_000_000_000)
        assert choose_generator(options, watch).model == model


def test_auto_quotes_when_nobody_answers() -> None:
    watch = OllamaWatch(OllamaHost(NOBODY))
    assert choose_generator(AUTO, watch) == GeneratorChoice("extractive")
    assert choose_embedder(AUTO, watch) == EmbedderChoice("minilm", "all-MiniLM-L6-v2")


def test_a_model_that_is_missing_is_named_with_the_cure(
    double: OllamaDouble, watch: OllamaWatch
) -> None:
    double.models = []
    choice = choose_generator(AUTO, watch)
    assert choice.provider == "extractive"
    assert choice.reason.endswith("run: ollama pull llama3.2")
    assert choose_embedder(AUTO, watch).provider == "minilm"


def test_a_running_server_notices_that_ollama_comes_and_goes(
    double: OllamaDouble, clock: Clock
) -> None:
    watch = OllamaWatch(OllamaHost(double.url), clock=clock)
    models, double.models = double.models, []
    assert choose_generator(AUTO, watch).provider == "extractive"
    double.models = models
    assert choose_generator(AUTO, watch).provider == "extractive"
    clock.now += 5.1
    assert choose_generator(AUTO, watch).provider == "ollama"
    requests = len(double.requests)
    for _ in range(50):
        assert choose_generator(AUTO, watch).provider == "ollama"
    assert len(double.requests) == requests
    double.fail("/api/tags", Fault("status", status=502, body="gone"))
    clock.now += 5.1
    gone = choose_generator(AUTO, watch)
    assert gone.provider == "extractive"
    assert "passages are quoted until it is back" in gone.reason


def test_a_pull_is_seen_at_once(double: OllamaDouble, watch: OllamaWatch) -> None:
    assert not watch.status().has("new")
    double.models.append(DoubleModel("new:latest"))
    watch.forget()
    assert watch.status().has("new")


def test_a_busy_host_is_not_away(double: OllamaDouble, watch: OllamaWatch, clock: Clock) -> None:
    known = watch.status()
    double.fail("/api/tags", *[Fault("slow", delay_s=30)] * 3)
    clock.now += 6
    busy = watch.status()
    assert (busy.reachable, busy.models) == (True, known.models)
    assert busy.trouble.endswith("is busy: no answer for 1 s")
    assert choose_generator(AUTO, watch).model == "llama3.2"
    clock.now += 5.1
    assert watch.status().reachable
    clock.now += 25.5
    away = watch.status()
    assert not away.reachable
    assert known.busy is False
    assert busy.busy is away.busy is True
    assert "is busy: no answer for 32 s" in choose_generator(AUTO, watch).reason
    clock.now += 29
    assert watch.status() is away, "asking costs a second"
    clock.now += 2
    assert watch.status().reachable


def test_a_host_that_is_busy_from_the_start_is_asked_again_soon(
    double: OllamaDouble, watch: OllamaWatch, clock: Clock
) -> None:
    double.fail("/api/tags", Fault("slow", delay_s=30))
    assert not watch.status().reachable
    clock.now += 5.1
    assert watch.status().reachable


def test_an_embedding_model_never_answers(double: OllamaDouble, watch: OllamaWatch) -> None:
    """Ollama lists a model that it converted itself as one that completes, and shows what it is."""
    own = DoubleModel("own-vectors:latest", "bert", dimension=8, listed=("completion",))
    named = DoubleModel("own", "llama", dimension=8, listed=("completion",))
    decides = DoubleModel("nimble", decides=True)
    double.models = [own, named, decides]
    assert choose_generator(AUTO, watch).provider == "extractive"
    double.models = [own, named, decides, DoubleModel("small:1b")]
    watch.forget()
    assert choose_generator(AUTO, watch).model == "small:1b"
    assert [one.chats for one in watch.status().models] == [False, False, False, True]
    assert len(double.bodies("/api/show")) == 4, "each is asked for once"


def test_a_model_that_was_not_shown_yet_goes_by_its_kind_and_name(
    double: OllamaDouble, watch: OllamaWatch
) -> None:
    double.models = [
        DoubleModel("own-vectors", "bert", dimension=8, listed=("completion",)),
        DoubleModel("small:1b"),
    ]
    double.fail("/api/show", Fault("slow", delay_s=30))
    assert [one.chats for one in watch.status().models] == [False, True]


def test_others_go_on_while_one_asks(
    double: OllamaDouble, watch: OllamaWatch, clock: Clock
) -> None:
    known = watch.status()
    clock.now += 6
    double.fail("/api/tags", Fault("slow", delay_s=3.0))
    asking = threading.Thread(target=watch.status)
    asking.start()
    while len(double.bodies("/api/tags")) < 2:
        time.sleep(0.005)
    assert watch.status() is known
    assert (
        len(double.bodies("/api/tags")) == 2
    )  # answered from what is known: only the thread asked
    asking.join()


def test_a_model_by_name_for_one_question(double: OllamaDouble, watch: OllamaWatch) -> None:
    double.models.append(DoubleModel("big:latest"))
    assert choose_generator(AUTO, watch, "big").model == "big"
    with pytest.raises(ModelNotInstalled, match="ollama pull nope"):
        choose_generator(AUTO, watch, "nope")
    away = choose_generator(AUTO, OllamaWatch(OllamaHost(NOBODY)), "big")
    assert away.provider == "extractive"
    assert "cannot reach Ollama" in away.reason


def test_a_helper_is_used_where_it_is_installed(double: OllamaDouble, watch: OllamaWatch) -> None:
    options = ProviderOptions(helper_model="small")
    assert choose_generator(options, watch).helper == "llama3.2"
    double.models.append(DoubleModel("small:latest"))
    watch.forget()
    assert choose_generator(options, watch).helper == "small"


def test_choices_by_name_are_kept() -> None:
    watch = OllamaWatch(OllamaHost(NOBODY))
    assert choose_generator(ProviderOptions(llm_provider="extractive"), watch) == GeneratorChoice(
        "extractive"
    )
    assert choose_generator(ProviderOptions(llm_provider="ollama"), watch).provider == "ollama"
    assert choose_embedder(ProviderOptions(embedding_provider="ollama"), watch).provider == "ollama"
    assert choose_embedder(ProviderOptions(embedding_provider="minilm"), watch).provider == "minilm"


def test_a_hosted_provider_is_chosen_by_name_only() -> None:
    watch = OllamaWatch(OllamaHost(NOBODY))
    keys = {
        "openai": HostedOptions(api_key="k", model="gpt"),
        "groq": HostedOptions(api_key="k", model="m"),
    }
    assert choose_generator(ProviderOptions(hosted=keys), watch).provider == "extractive"
    assert choose_embedder(ProviderOptions(hosted=keys), watch).provider == "minilm"
    assert choose_generator(
        ProviderOptions(llm_provider="groq", hosted=keys), watch
    ) == GeneratorChoice("groq", "m", "m", hosted=True)
    assert choose_embedder(ProviderOptions(embedding_provider="openai"), watch) == EmbedderChoice(
        "openai", "text-embedding-3-small", True
    )
    home = {"openai_compatible": HostedOptions("http://localhost:8000/v1", model="local")}
    assert (
        choose_generator(
            ProviderOptions(llm_provider="openai_compatible", hosted=home), watch
        ).hosted
        is False
    )
    with pytest.raises(InvalidInput, match="set HOSTED_MODEL"):
        choose_generator(ProviderOptions(llm_provider="mistral"), watch)
    with pytest.raises(InvalidInput, match="needs EMBEDDING_MODEL"):
        choose_embedder(ProviderOptions(embedding_provider="openai_compatible"), watch)


def test_cloud_models_of_ollama_count_as_hosted() -> None:
    watch = OllamaWatch(OllamaHost(NOBODY))
    assert choose_generator(
        ProviderOptions(llm_provider="ollama", llm_model="big:cloud"), watch
    ).hosted
    assert choose_generator(
        ProviderOptions(llm_provider="ollama", llm_model="big:120b-cloud"), watch
    ).hosted


@pytest.mark.parametrize(
    ("fingerprint", "provider", "hosted"),
    [(MINILM, "minilm", False), (NOMIC, "ollama", False), (HOSTED, "mistral", True)],
)
def test_the_fingerprint_decides_for_a_library_that_has_one(
    fingerprint: Fingerprint, provider: str, hosted: bool
) -> None:
    watch = OllamaWatch(OllamaHost(NOBODY))
    choice = choose_embedder(AUTO, watch, fingerprint)
    assert choice == EmbedderChoice(provider, fingerprint.embedding_model, hosted)


def test_another_choice_by_name_earns_a_notice_and_changes_nothing(watch: OllamaWatch) -> None:
    choice = choose_embedder(ProviderOptions(embedding_provider="ollama"), watch, MINILM)
    assert choice.provider == "minilm"
    assert "documind reembed" in choice.notice
    assert choose_embedder(ProviderOptions(embedding_provider="minilm"), watch, MINILM).notice == ""
    assert (
        choose_embedder(ProviderOptions(embedding_provider="minilm"), watch, NOMIC).provider
        == "ollama"
    )
