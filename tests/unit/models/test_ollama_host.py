from __future__ import annotations

import pytest

from app.core.cancel import CancelToken
from app.core.errors import (
    Cancelled,
    InvalidInput,
    ModelNotInstalled,
    ProviderBadResponse,
    ProviderTimeout,
    ProviderUnreachable,
)
from app.models.errors import error_text
from app.models.ollama import OllamaHost, same_model
from tests.fakes.ollama_double import DoubleModel, Fault, OllamaDouble


def test_what_the_host_has(double: OllamaDouble, host: OllamaHost) -> None:
    assert host.version() == "0.33.0"
    assert host.local
    chat, embed = host.models()
    assert (chat.name, chat.digest) == ("llama3.2:latest", double.models[0].digest)
    assert embed.capabilities == ("embedding",)
    details = host.details("nomic-embed-text")
    assert (details.context_tokens, details.dimension, details.configured_ctx, details.embeds) == (
        2048,
        768,
        8192,
        True,
    )
    assert host.details("llama3.2").embeds is False
    assert host.loaded() == []


def test_an_old_host_tells_less(double: OllamaDouble) -> None:
    double.models = [DoubleModel("old:latest", tells_capabilities=False)]
    double.version = "0.6.1"
    old = OllamaHost(double.url)
    assert old.models()[0].capabilities == ()
    assert old.details("old").embeds
    assert not old.gives_logprobs()


@pytest.mark.parametrize(
    ("version", "gives"),
    [("0.12.10", False), ("0.12.11", True), ("0.33.0-rc2", True), ("0.0.0", True)],
)
def test_log_probabilities_by_version(double: OllamaDouble, version: str, gives: bool) -> None:
    double.version = version
    assert OllamaHost(double.url).gives_logprobs() is gives


def test_a_pull_with_progress(double: OllamaDouble, host: OllamaHost) -> None:
    steps = list(host.pull("new", CancelToken()))
    assert steps[-1].status == "success"
    assert [(step.completed, step.total) for step in steps if step.completed] == [
        (1000, 4000),
        (2500, 4000),
        (4000, 4000),
    ]
    assert any(same_model(row.name, "new") for row in host.models())


def test_pulls_that_fail(double: OllamaDouble, host: OllamaHost) -> None:
    with pytest.raises(ModelNotInstalled, match="registry of Ollama has no model 'unknown-model'"):
        list(host.pull("unknown-model", CancelToken()))
    double.fail("/api/pull", Fault("no_done", after=2))
    with pytest.raises(ProviderBadResponse, match="it resumes"):
        list(host.pull("new", CancelToken()))
    cancel = CancelToken()
    double.fail("/api/pull", Fault("stall", after=1))
    steps = host.pull("new", cancel)
    next(steps)
    cancel.cancel()
    with pytest.raises(Cancelled):
        next(steps)


def test_what_is_no_ollama(double: OllamaDouble, host: OllamaHost) -> None:
    double.fail(
        "/api/tags",
        Fault("status", status=200, body="<html>a router</html>", content_type="text/html"),
    )
    with pytest.raises(ProviderBadResponse, match="right address"):
        host.models()
    double.fail("/api/tags", Fault("status", status=200, body="[1]"))
    with pytest.raises(ProviderBadResponse, match="right address"):
        host.models()
    double.fail("/api/tags", Fault("slow", delay_s=5))
    with pytest.raises(ProviderTimeout):
        host.models(timeout_s=0.1)
    with pytest.raises(ModelNotInstalled, match="ollama pull nope"):
        host.details("nope")


@pytest.mark.parametrize(
    "address", ["", "ftp://host", "http://", "http://host:eleven", "http://[::1"]
)
def test_addresses_that_cannot_be_read(address: str) -> None:
    with pytest.raises(InvalidInput, match="expected http://host:port"):
        OllamaHost(address)


def test_credentials_in_an_address_are_not_shown() -> None:
    host = OllamaHost("http://user:secret@127.0.0.1:9")
    with pytest.raises(Exception, match="cannot reach") as caught:
        host.models()
    shown: BaseException | None = caught.value
    assert "secret" not in str(shown)


@pytest.mark.parametrize(
    ("left", "right", "same"),
    [
        ("llama3.2", "Llama3.2:latest", True),
        ("a/b:1b", "a/b:1B", True),
        ("llama3.2:1b", "llama3.2", False),
        ("h:5000/m", "h:5000/m:latest", True),
    ],
)
def test_names_of_one_model(left: str, right: str, same: bool) -> None:
    assert same_model(left, right) is same


def test_error_texts_are_unwrapped() -> None:
    nested = (
        '{"error":"{\\"error\\":{\\"code\\":400,\\"message\\":\\"too'
        ' big\\",\\"type\\":\\"exceed_context_size_error\\"}}"}'
    )
    assert error_text(nested) == "exceed_context_size_error too big"
    assert error_text('{"error":"plain"}') == "plain"
    assert error_text("404 page not found") == "404 page not found"
    assert error_text('"quoted"') == "quoted"
    assert error_text("[1]") == "[1]"
    assert error_text("") == ""


def test_of_several_addresses_the_first_that_answers_is_used(double: OllamaDouble) -> None:
    nothing = "http://127.0.0.1:9"
    with OllamaDouble() as second:
        second.version = "0.6.1"
        second.models = [DoubleModel("second:latest")]
        host = OllamaHost(f"{nothing}, {second.url}")
        assert host.http.base_url == nothing
        assert [row.name for row in host.models()] == ["second:latest"]
        assert (host.http.base_url, host.version()) == (second.url, "0.6.1")
        both = OllamaHost(f"{double.url},{second.url}")
        assert (both.version(), both.http.base_url) == ("0.33.0", double.url)
    with pytest.raises(ProviderUnreachable):
        OllamaHost(f"{nothing},{second.url}").models()
    with pytest.raises(InvalidInput, match="the address of Ollama"):
        OllamaHost(f"{double.url},http://:x")
