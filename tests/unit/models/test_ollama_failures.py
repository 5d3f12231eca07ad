"""What a real host says when it fails, each with the error and the cure that a person gets."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta

import pytest

from app.core.cancel import CancelToken
from app.core.errors import (
    DocuMindError,
    InvalidInput,
    ModelNotInstalled,
    PassageTooLong,
    ProviderBadResponse,
)
from app.core.types import Message, Prompt
from app.models.ollama import LoadedModel, MemoryWatch, OllamaHost
from app.models.ollama_adapters import OllamaEmbedder, OllamaGenerator
from app.models.retries import CallSlots, RunnerStopped
from tests.fakes.ollama_double import DoubleModel, Fault, OllamaDouble

CHAT = "/api/chat"
PROMPT = Prompt(
    (Message("user", "[1] Paris\nParis is the capital of France. More.\n\nWhat is it?"),)
)


def ask(host: OllamaHost, model: str = "llama3.2", prompt: Prompt = PROMPT) -> str:
    generator = OllamaGenerator(host, model, slots=CallSlots(2, 1, "Ollama"))
    return "".join(token.text for token in generator.stream(prompt, CancelToken()))


def said(message: str, status: int = 500) -> Fault:
    return Fault("status", status=status, body=json.dumps({"error": message}))


FAILURES_TO_LOAD = [
    "llama runner process has terminated: exit status 2",
    "llama runner process no longer running: -1",
    "timed out waiting for llama runner to start - progress 0.00 - ",
    "model failed to load, this may be due to resource limitations or an internal error",
    "model requires more system memory (7.1 GiB) than is available (2.3 GiB)",
    "llama-server process has terminated: exit status 1: error loading model /blobs/x",
    "llama-server reported out-of-memory during startup: x",
]


@pytest.mark.parametrize("message", FAILURES_TO_LOAD)
def test_a_model_that_does_not_load_is_tried_again_and_then_said(
    double: OllamaDouble, host: OllamaHost, message: str
) -> None:
    double.fail(CHAT, said(message))
    assert "Paris" in ask(host)
    double.fail(CHAT, said(message), said(message))
    with pytest.raises(RunnerStopped, match="smaller model"):
        ask(host)
    assert len(double.bodies(CHAT)) == 4


def test_a_model_over_the_memory_is_told_as_such(double: OllamaDouble, host: OllamaHost) -> None:
    double.fail(
        CHAT, *[said("model requires more system memory (7.1 GiB) than is available (2.3 GiB)")] * 2
    )
    with pytest.raises(
        RunnerStopped, match=r"too large for the memory of Ollama.*7\.1 GiB.*lower LLM_NUM_CTX"
    ):
        ask(host)


def test_a_crash_while_embedding_is_tried_again(double: OllamaDouble, host: OllamaHost) -> None:
    embedder = OllamaEmbedder(host, "nomic-embed-text")
    crash = said('do embedding request: Post "http://127.0.0.1:41235/embedding": EOF', 400)
    double.fail("/api/embed", crash)
    assert embedder.embed_query("Paris").shape == (768,)
    double.fail("/api/embed", crash, crash)
    with pytest.raises(RunnerStopped, match="could not run 'nomic-embed-text'"):
        embedder.embed_query("Paris")
    double.fail("/api/embed", said("the input length exceeds the context length", 400))
    with pytest.raises(PassageTooLong):
        embedder.embed_query("Paris")


@pytest.mark.parametrize(
    ("message", "error", "cure"),
    [
        ("pull model manifest: file does not exist", ModelNotInstalled, "ollama.com/library"),
        (
            "pull model manifest: Get"
            ' "https://registry.ollama.ai/v2/library/new/manifests/latest": dial tcp: lookup'
            " registry.ollama.ai on 127.0.0.53:53: server misbehaving",
            ProviderBadResponse,
            "cannot reach the registry to fetch 'new'.*check its network.*it resumes",
        ),
        (
            "write /blobs/sha256-1: no space left on device",
            ProviderBadResponse,
            "disk of Ollama at .* is full",
        ),
        (
            "digest mismatch, file must be downloaded again",
            ProviderBadResponse,
            "could not fetch 'new'.*pull it again",
        ),
    ],
)
def test_a_pull_that_fails_says_why(
    double: OllamaDouble, host: OllamaHost, message: str, error: type[DocuMindError], cure: str
) -> None:
    double.fail("/api/pull", Fault("error_line", after=1, message=message))
    with pytest.raises(error, match=cure) as caught:
        list(host.pull("new", CancelToken()))
    assert "answered 404" not in str(caught.value)
    assert "see its log" not in str(caught.value)


def test_names_and_schemas_that_a_host_refuses_are_wrong_input(
    double: OllamaDouble, host: OllamaHost
) -> None:
    for name, message, status in [
        ("a b", "invalid model name", 400),
        ("", "model is required", 400),
    ]:
        double.fail("/api/show", said(message, status))
        with pytest.raises(InvalidInput, match="is no name of a model; expected"):
            ask(host, name)
        double.fail("/api/pull", said("invalid model name", 400))
        with pytest.raises(InvalidInput, match="is no name of a model; expected"):
            list(host.pull(name, CancelToken()))
    double.fail("/api/show", said("model '' not found", 404))
    with pytest.raises(InvalidInput, match="is no name of a model; expected"):
        host.details("")
    for message in (
        "invalid JSON schema in format",
        r'invalid format: "\\"x\\""; expected "json" or a valid JSON Schema object',
        json.dumps({"error": {"code": 400, "message": "JSON schema conversion failed:\n..."}}),
    ):
        double.fail(CHAT, said(message))
        with pytest.raises(InvalidInput, match="cannot use the JSON schema"):
            ask(host, prompt=Prompt(PROMPT.messages, json_schema={"type": "nonsense"}))


def test_a_model_without_a_chat_template_is_refused_with_the_cure(double: OllamaDouble) -> None:
    double.models.append(DoubleModel("base:latest", template="{{ .Prompt }}"))
    double.version = "0.24.0"
    with pytest.raises(
        ProviderBadResponse, match=r"'base' has no chat template.*choose an instruct model"
    ):
        ask(OllamaHost(double.url), "base")
    double.version = (
        "0.33.0"  # it reads the template inside the weights, or says that there is none
    )
    assert "Paris" in ask(OllamaHost(double.url), "base")
    double.fail(CHAT, said("this custom template is not supported, try using --jinja", 400))
    with pytest.raises(ProviderBadResponse, match="'base' has no chat template"):
        ask(OllamaHost(double.url), "base")


def test_an_embedding_model_cannot_answer(double: OllamaDouble, host: OllamaHost) -> None:
    with pytest.raises(
        ProviderBadResponse, match="'nomic-embed-text' cannot chat; choose another LLM_MODEL"
    ):
        ask(host, "nomic-embed-text")
    # as a host before 0.30 shows it: the capabilities speak before the bare template does
    bare = DoubleModel("vectors:latest", "bert", dimension=8, template="{{ .Prompt }}")
    with (
        OllamaDouble([bare], version="0.24.0") as old,
        pytest.raises(ProviderBadResponse, match="'vectors' cannot chat; choose another LLM_MODEL"),
    ):
        ask(OllamaHost(old.url), "vectors")


def test_the_repeat_penalty_of_the_model_file_stays(double: OllamaDouble, host: OllamaHost) -> None:
    double.models.append(
        DoubleModel("tuned:latest", parameters="repeat_penalty                 1.05")
    )
    ask(host, "tuned")
    ask(host)
    tuned, plain = double.bodies(CHAT)
    assert "repeat_penalty" not in tuned["options"]  # type: ignore[operator]  # a dict
    assert plain["options"]["repeat_penalty"] == 1.1  # type: ignore[index]  # a dict


NOW = datetime(2026, 8, 1, 12, tzinfo=UTC)


def in_memory(digest: str, minutes: float) -> LoadedModel:
    # nine digits and a local offset, as a host writes them
    until = (
        (NOW + timedelta(minutes=minutes))
        .astimezone(UTC)
        .strftime("%Y-%m-%dT%H:%M:%S.123456789+00:00")
    )
    return LoadedModel(name=f"name-of-{digest}", digest=digest, expires_at=until)


def test_models_push_each_other_out_only_where_that_was_seen() -> None:
    now = [NOW]
    watch = MemoryWatch(lambda: now[0])
    chat, embed = in_memory("chat", 30), in_memory("embed", 30)
    assert watch.together({"chat"}, [chat]) is None
    watch = MemoryWatch(lambda: now[0])
    assert watch.together({"chat", "embed"}, [embed]) is None, "the other is not loaded yet"
    assert watch.together({"chat", "embed"}, [embed, chat]) is True
    assert watch.together({"chat", "embed"}, [chat]) is False
    now[0] += timedelta(minutes=31)
    assert watch.together({"chat", "embed"}, [in_memory("chat", 60)]) is None, (
        "the other has expired"
    )
    assert watch.together({"chat", "embed"}, []) is None


def test_a_host_that_was_started_again_has_pushed_nothing_out() -> None:
    watch = MemoryWatch(lambda: NOW)
    assert (
        watch.together({"chat", "embed"}, [in_memory("chat", 30), in_memory("embed", 30)]) is True
    )
    assert watch.together({"chat", "embed"}, []) is None
    assert watch.together({"chat", "embed"}, [in_memory("chat", 30)]) is None


def test_a_time_that_cannot_be_read_proves_nothing() -> None:
    watch = MemoryWatch(lambda: NOW)
    odd = LoadedModel(name="chat", digest="chat", expires_at="soon")
    assert watch.together({"chat", "embed"}, [odd]) is None
    assert watch.together({"chat", "embed"}, [in_memory("embed", 5)]) is None
