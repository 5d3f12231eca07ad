"""A real model whose host fails on the way: slow reading, cut streams, a kill while the model is loaded."""

from __future__ import annotations

import threading
import time

import pytest

from app.core.cancel import CancelToken
from app.core.errors import DocuMindError, ProviderBadResponse, ProviderUnreachable
from app.core.types import Message, Prompt, Token
from app.models.ollama import OllamaHost
from app.models.ollama_adapters import OllamaGenerator
from app.models.retries import CallSlots, RunnerStopped
from tests.live.conftest import Live, double, fail, free_port

pytestmark = pytest.mark.live

QUESTION = Prompt(
    (Message("user", "Write one sentence about a river."),), temperature=0.0, max_tokens=24
)


def generator(live: Live) -> OllamaGenerator:
    return OllamaGenerator(
        OllamaHost(live.url), live.chat, slots=CallSlots(2, 60, "Ollama"), num_ctx=1024
    )


def answer(model: OllamaGenerator) -> tuple[str, Token]:
    *said, last = model.stream(QUESTION, CancelToken())
    return "".join(token.text for token in said), last


@pytest.mark.parametrize(
    ("fault", "error"),
    [
        ({"kind": "reset", "after": 3}, ProviderUnreachable),
        ({"kind": "close", "after": 3}, ProviderUnreachable),
        ({"kind": "no_done", "after": 3}, ProviderBadResponse),
        ({"kind": "garbage", "after": 3}, ProviderBadResponse),
        ({"kind": "error_line", "after": 3}, RunnerStopped),
    ],
    ids=["reset", "close", "no end", "no JSON", "error line"],
)
def test_a_stream_that_is_cut_says_so_and_the_next_one_is_whole(
    double_host: Live, fault: dict[str, object], error: type[DocuMindError]
) -> None:
    model = generator(double_host)
    whole, _ = answer(model)
    fail(double_host, **fault)
    said = list[str]()
    with pytest.raises(error) as caught:
        said.extend(token.text for token in model.stream(QUESTION, CancelToken()))
    assert type(caught.value) is error
    assert "".join(said).strip()
    assert whole.startswith("".join(said))
    assert (
        answer(model)[0] == whole
    )  # the same words: nothing of the broken answer is left in the model


def test_slow_reading_is_waited_for_and_told() -> None:
    with double("--read-tokens-per-s", "20") as (live, _):
        text, last = answer(generator(live))
    assert text.strip()
    assert last.usage is not None
    assert last.usage.prompt_seconds is not None
    assert last.usage.prompt_tokens is not None
    assert last.usage.prompt_tokens / last.usage.prompt_seconds <= 20


def test_a_host_that_is_killed_while_it_loads_is_told_and_found_again() -> None:
    port = free_port()
    with double("--load-s", "30", port=port) as (live, process):
        model = generator(live)
        assert model.context_tokens == 1024
        threading.Timer(0.5, process.kill).start()
        asked = time.monotonic()
        with pytest.raises(ProviderUnreachable, match="check"):
            answer(model)
        assert time.monotonic() - asked < 10
    with double(port=port):
        assert answer(model)[0].strip()
