"""The double against the list of requests and replies; `make live` holds the same list against a real server."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from app.models.ollama import OllamaHost
from tests.contract.ollama_pairs import PAIRS, Pair, ask, holds_at, wrong
from tests.contract.ollama_pairs.pair import Received
from tests.fakes.ollama_double import OllamaDouble

CHAT, EMBED = "llama3.2:latest", "nomic-embed-text:latest"
VERSIONS = ("0.24.0", "0.33.0", "0.35.1")
CASES = [(version, pair) for version in VERSIONS for pair in PAIRS if holds_at(pair, version)]


@pytest.fixture(scope="module")
def doubles() -> Iterator[dict[str, str]]:
    with ExitStack() as stack:
        yield {one: stack.enter_context(OllamaDouble(version=one)).url for one in VERSIONS}


@pytest.mark.parametrize(
    ("version", "pair"),
    CASES,
    ids=[f"{version}-{pair.path}-{pair.name}" for version, pair in CASES],
)
def test_the_double_replies_as_the_server_does(
    doubles: dict[str, str], version: str, pair: Pair
) -> None:
    assert (
        wrong(pair, ask(doubles[version], pair, chat=CHAT, embed=EMBED), chat=CHAT, embed=EMBED)
        == ""
    )


def send(
    double: OllamaDouble, path: str, body: dict[str, object], method: str = "POST"
) -> Received:
    return ask(double.url, Pair("", path, body, method=method), chat=CHAT, embed=EMBED)


def test_names_of_one_model_share_its_place_in_memory() -> None:
    with OllamaDouble() as double:
        host = OllamaHost(double.url)
        assert (
            send(double, "/api/copy", {"source": "llama3.2", "destination": "mine"}).status == 200
        )
        assert [row.name for row in host.models()] == ["mine:latest", CHAT, EMBED]
        assert len({row.digest for row in host.models()}) == 2
        send(double, "/api/generate", {"model": "mine"})
        send(double, "/api/generate", {"model": "llama3.2"})
        assert [row.name for row in host.loaded()] == ["mine:latest"]
        send(double, "/api/generate", {"model": "llama3.2", "keep_alive": 0})
        assert host.loaded() == []
        assert send(double, "/api/delete", {"model": "mine"}, "DELETE").status == 200
        assert [row.name for row in host.models()] == [CHAT, EMBED]


@pytest.mark.parametrize(("version", "reloads"), [("0.24.0", 1), ("0.33.0", 2)])
def test_what_loads_a_model_again(version: str, reloads: int) -> None:
    with OllamaDouble(version=version) as double:
        for options, shift in (
            ({"num_ctx": 8192}, True),
            ({"num_ctx": 4096}, True),
            ({"num_ctx": 4096}, False),
        ):
            send(
                double,
                "/api/generate",
                {"model": CHAT, "prompt": "x", "options": options, "shift": shift},
            )
        assert (
            double.reloads == reloads
        )  # windows are compared as they were asked for, not as the model has them
        assert [row.context_tokens for row in OllamaHost(double.url).loaded()] == [4096]


def test_what_a_model_cannot_do_is_refused() -> None:
    with OllamaDouble() as double:
        turn = {"model": CHAT, "messages": [{"role": "user", "content": "x"}]}
        assert (
            send(double, "/api/chat", {**turn, "think": True}).text("error")
            == f'"{CHAT}" does not support thinking'
        )
        tools = send(double, "/api/chat", {**turn, "tools": [{"type": "function"}]})
        assert tools.text("error") == f"registry.ollama.ai/library/{CHAT} does not support tools"


@pytest.mark.parametrize(("version", "says"), [("0.33.0", False), ("0.35.1", True)])
def test_tokens_of_the_cache_are_told_apart_in_later_releases(version: str, *, says: bool) -> None:
    with OllamaDouble(version=version) as double:
        body = {"model": CHAT, "messages": [{"role": "user", "content": "x"}], "stream": False}
        assert ("prompt_eval_cached_count" in send(double, "/api/chat", body).value) is says
