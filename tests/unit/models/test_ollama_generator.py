from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator

import pytest

from app.core.cancel import CancelToken
from app.core.errors import (
    Busy,
    Cancelled,
    DocuMindError,
    InvalidInput,
    ModelNotInstalled,
    ProviderBadResponse,
    ProviderTimeout,
    ProviderUnreachable,
)
from app.core.types import Message, Prompt, Token, Usage
from app.models.ollama import OllamaHost
from app.models.ollama_adapters import OllamaGenerator, spread
from app.models.retries import CallSlots, RunnerStopped
from tests.fakes.ollama_double import DoubleModel, Fault, OllamaDouble, Script

PROMPT = Prompt(
    (
        Message("system", "Answer from the passages."),
        Message("user", "[1] Paris\nParis is the capital of France. More.\n\nWhat is it?"),
    )
)
CHAT = "/api/chat"


def generator(
    host: OllamaHost,
    model: str = "llama3.2",
    *,
    size: int = 4,
    wait_s: float = 1.0,
    num_ctx: int = 8192,
) -> OllamaGenerator:
    return OllamaGenerator(host, model, slots=CallSlots(size, wait_s, "Ollama"), num_ctx=num_ctx)


def text(tokens: Iterator[Token]) -> str:
    return "".join(token.text for token in tokens)


def test_an_answer_with_what_the_host_was_asked(double: OllamaDouble, host: OllamaHost) -> None:
    tokens = list(generator(host).stream(PROMPT, CancelToken()))
    assert text(iter(tokens)) == "Paris is the capital of France. [1]"
    assert tokens[-1].finish == "stop"
    assert tokens[-1].usage == Usage(
        30, 8, prompt_seconds=0.003, completion_seconds=0.0016, load_seconds=0.001
    )
    (body,) = double.bodies(CHAT)
    assert {key: body[key] for key in ("think", "truncate", "shift", "stream", "keep_alive")} == {
        "think": False,
        "truncate": False,
        "shift": False,
        "stream": True,
        "keep_alive": "30m",
    }
    assert body["options"] == {
        "num_ctx": 4096,
        "num_predict": 1024,
        "temperature": 0.2,
        "repeat_penalty": 1.1,
    }
    assert double.truncations == 0


def test_the_window_is_asked_once_and_stays_the_same(
    double: OllamaDouble, host: OllamaHost
) -> None:
    model = generator(host)
    assert model.context_tokens == 4096
    for _ in range(3):
        text(model.stream(PROMPT, CancelToken()))
    assert double.reloads == 0
    assert len(double.bodies("/api/show")) == 1
    assert host.loaded()[0].context_tokens == 4096
    assert generator(host, num_ctx=2048).context_tokens == 2048


def test_log_probabilities_from_hosts_that_have_them(
    double: OllamaDouble, host: OllamaHost
) -> None:
    asked = Prompt(PROMPT.messages, logprobs=True)
    double.say(Script(("It", " is", " Paris"), (-0.1, -2.5, -0.3)))
    assert [token.logprob for token in generator(host).stream(asked, CancelToken())] == [
        -0.1,
        -2.5,
        -0.3,
        None,
    ]
    double.version = "0.12.10"
    old = OllamaHost(double.url)
    assert {token.logprob for token in generator(old).stream(asked, CancelToken())} == {None}
    assert "logprobs" not in double.bodies(CHAT)[-1]


def test_log_probabilities_that_do_not_spell_the_text_count_for_all_of_it() -> None:
    assert list(spread("naïve", [("na", -0.1), ("\ufffd", -3.0)])) == [Token("naïve", -3.0)]
    assert list(spread("a b", [("a", -0.1), (" b", -3.0)])) == [Token("a", -0.1), Token(" b", -3.0)]
    assert list(spread("a", [])) == [Token("a")]


@pytest.mark.parametrize("kind", ["split", "joined"])
def test_odd_line_ends_and_emoji_survive_any_cutting(
    double: OllamaDouble, host: OllamaHost, kind: str
) -> None:
    said = "Line\u0085one\u2028two 🙂 <b> & naïve"
    double.say(said)
    double.fail(CHAT, Fault(kind))  # type: ignore[arg-type]  # of the parameters
    assert text(generator(host).stream(PROMPT, CancelToken())) == said


def test_thinking_is_switched_off(double: OllamaDouble, host: OllamaHost) -> None:
    double.models.append(DoubleModel("thinker", thinks=True))
    double.say(Script(("Yes",)))
    assert text(generator(host, "thinker").stream(PROMPT, CancelToken())) == "Yes"


def test_the_length_limit_is_told(double: OllamaDouble, host: OllamaHost) -> None:
    tokens = list(generator(host).stream(Prompt(PROMPT.messages, max_tokens=2), CancelToken()))
    assert tokens[-1].finish == "length"
    assert len(tokens) == 3


def _status(status: int, message: str) -> Fault:
    return Fault("status", status=status, body=f'{{"error":"{message}"}}')


STOPPED = "model runner has unexpectedly stopped, this may be due to resource limitations"
MATRIX: list[tuple[str, list[Fault], type[DocuMindError], str, int]] = [
    (
        "missing model",
        [_status(404, "model 'llama3.2' not found")],
        ModelNotInstalled,
        "ollama pull llama3.2",
        1,
    ),
    (
        "wrong kind",
        [_status(400, "'llama3.2' does not support chat")],
        ProviderBadResponse,
        "cannot chat",
        1,
    ),
    (
        "bad option",
        [_status(500, "option 'num_ctx' must be of type integer")],
        ProviderBadResponse,
        "answered 500",
        1,
    ),
    (
        "queue full",
        [_status(503, "server busy, please try again.  maximum pending requests exceeded")] * 3,
        Busy,
        "busy",
        3,
    ),
    ("runner died twice", [_status(500, STOPPED)] * 2, RunnerStopped, "more memory", 2),
    (
        "cannot load",
        [_status(500, "llama-server reported out-of-memory during startup: x")] * 2,
        RunnerStopped,
        "too large",
        2,
    ),
    ("forbidden", [Fault("status", status=403, body="")], ProviderBadResponse, "refuses", 1),
    (
        "proxy page",
        [Fault("status", status=502, body="<html>Bad</html>", content_type="text/html")],
        ProviderBadResponse,
        "<html>",
        1,
    ),
    ("redirect", [Fault("redirect")], ProviderBadResponse, "redirects", 1),
    ("error at once", [Fault("error_line")], RunnerStopped, "CUDA error", 1),
    ("error midway", [Fault("error_line", after=2)], RunnerStopped, "CUDA error", 1),
    ("no done", [Fault("no_done", after=2)], ProviderBadResponse, "ended the answer", 1),
    ("nothing", [Fault("no_done", after=0)], ProviderBadResponse, "ended the answer", 1),
    ("reset", [Fault("reset", after=2)], ProviderUnreachable, "broke the connection", 1),
    ("closed", [Fault("close", after=2)], ProviderUnreachable, "broke the connection", 1),
    ("no JSON", [Fault("garbage", after=1)], ProviderBadResponse, "expected JSON", 1),
    ("silent", [Fault("stall", after=2)], ProviderTimeout, "silent", 1),
    ("silent from the start", [Fault("stall")], ProviderTimeout, "silent", 1),
    ("slow first byte", [Fault("slow", delay_s=5)], ProviderTimeout, "silent", 1),
]


@pytest.mark.parametrize(
    ("faults", "error", "message", "calls"),
    [row[1:] for row in MATRIX],
    ids=[row[0] for row in MATRIX],
)
def test_every_fault_ends_in_its_error(
    double: OllamaDouble, faults: list[Fault], error: type[DocuMindError], message: str, calls: int
) -> None:
    double.fail(CHAT, *faults)
    model = generator(OllamaHost(double.url, read_timeout_s=0.4))
    with pytest.raises(error, match=message) as caught:
        text(model.stream(PROMPT, CancelToken()))
    assert type(caught.value) is error
    assert "http://127.0.0.1" in caught.value.message or error in {
        ModelNotInstalled,
        ProviderBadResponse,
    }
    assert len(double.bodies(CHAT)) == calls


@pytest.mark.parametrize(
    "faults", [[_status(503, "server busy")] * 2, [_status(500, STOPPED)]], ids=["busy", "stopped"]
)
def test_a_busy_or_stopped_host_gets_another_chance(
    double: OllamaDouble, host: OllamaHost, faults: list[Fault]
) -> None:
    double.fail(CHAT, *faults)
    assert "Paris" in text(generator(host).stream(PROMPT, CancelToken()))
    assert len(double.bodies(CHAT)) == len(faults) + 1


def test_a_cold_model_may_take_its_time(double: OllamaDouble, host: OllamaHost) -> None:
    double.fail(CHAT, Fault("slow", delay_s=0.3))
    assert "Paris" in text(generator(host).stream(PROMPT, CancelToken()))


def test_a_host_that_is_not_there() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    model = generator(OllamaHost(f"127.0.0.1:{port}"))
    assert model.context_tokens == 8192
    with pytest.raises(
        ProviderUnreachable, match=f"cannot reach Ollama at http://127.0.0.1:{port}"
    ):
        text(model.stream(PROMPT, CancelToken()))


def test_a_prompt_over_the_window_is_refused_not_cut(
    double: OllamaDouble, host: OllamaHost
) -> None:
    long = Prompt((Message("user", "word " * 5000),))
    with pytest.raises(InvalidInput, match=r"exceeds the available context size.*LLM_NUM_CTX"):
        text(generator(host).stream(long, CancelToken()))
    assert double.truncations == 0


def test_another_model_by_name(double: OllamaDouble, host: OllamaHost) -> None:
    with pytest.raises(ModelNotInstalled, match="ollama pull big"):
        text(generator(host).stream(Prompt(PROMPT.messages, model="big"), CancelToken()))
    double.models.append(DoubleModel("big:latest"))
    assert "Paris" in text(
        generator(host).stream(Prompt(PROMPT.messages, model="big"), CancelToken())
    )


def _cancel_soon(cancel: CancelToken, delay_s: float, times: list[float]) -> threading.Timer:
    def act() -> None:
        times.append(time.monotonic())
        cancel.cancel()

    timer = threading.Timer(delay_s, act)
    timer.start()
    return timer


@pytest.mark.parametrize(
    "fault",
    [Fault("slow", delay_s=30), Fault("stall"), Fault("stall", after=2)],
    ids=["headers", "first", "third"],
)
def test_cancel_wakes_a_blocked_reader_at_once(
    double: OllamaDouble, host: OllamaHost, fault: Fault
) -> None:
    double.fail(CHAT, fault)
    model, cancel, times = generator(host), CancelToken(), list[float]()
    timer = _cancel_soon(cancel, 0.2, times)
    with pytest.raises(Cancelled):
        text(model.stream(PROMPT, cancel))
    assert time.monotonic() - times[0] < 20.0
    assert double.wait_for_abort()
    timer.join()
    assert "Paris" in text(model.stream(PROMPT, CancelToken()))


def test_leaving_the_stream_stops_the_model(double: OllamaDouble, host: OllamaHost) -> None:
    double.tokens_per_s = 20
    double.say("word " * 200)
    tokens = generator(host).stream(PROMPT, CancelToken())
    next(tokens)
    tokens.close()  # type: ignore[attr-defined]  # it is a generator
    assert double.wait_for_abort(timeout_s=1)


def test_a_late_cancel_does_not_touch_the_next_call(double: OllamaDouble, host: OllamaHost) -> None:
    model, first = generator(host), CancelToken()
    text(model.stream(PROMPT, first))
    double.tokens_per_s = 50
    tokens = model.stream(PROMPT, CancelToken())
    head = next(tokens).text
    first.cancel()
    assert head + text(tokens) == "Paris is the capital of France. [1]"


def test_callers_wait_for_a_slot_then_are_told(double: OllamaDouble, host: OllamaHost) -> None:
    double.fail(CHAT, Fault("stall", after=1))
    model, cancel = generator(host, size=1, wait_s=0.1), CancelToken()
    held = model.stream(PROMPT, cancel)
    next(held)
    with pytest.raises(Busy, match="MAX_MODEL_CALLS") as caught:
        text(model.stream(PROMPT, CancelToken()))
    assert caught.value.retry_after_s == 0.1
    cancel.cancel()
    with pytest.raises(Cancelled):
        next(held)
    assert "Paris" in text(model.stream(PROMPT, CancelToken()))


def test_a_cancel_ends_the_wait_for_a_slot() -> None:
    slots, cancel, times = CallSlots(1, 60.0, "Ollama"), CancelToken(), list[float]()
    with slots.hold(CancelToken()):
        timer = _cancel_soon(cancel, 0.05, times)
        with pytest.raises(Cancelled), slots.hold(cancel):
            pytest.fail("two held the only slot")
        assert time.monotonic() - times[0] < 20.0
    timer.join()
    with slots.hold(CancelToken()):
        pass


def test_no_more_than_the_cap_run_at_once(double: OllamaDouble, host: OllamaHost) -> None:
    double.tokens_per_s = 100
    model = generator(host, size=3, wait_s=10)
    threads = [
        threading.Thread(target=lambda: text(model.stream(PROMPT, CancelToken()))) for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert double.most_running == 3


@pytest.mark.parametrize("claim", [-5, 10**30, "many", True, 1e300])
def test_a_figure_that_no_host_can_have_is_not_taken(
    double: OllamaDouble, host: OllamaHost, claim: object
) -> None:
    figures = ("prompt_eval_count", "eval_count", "prompt_eval_duration", "eval_duration")
    double.claims = dict.fromkeys(figures, claim)
    usage = list(generator(host).stream(PROMPT, CancelToken()))[-1].usage
    assert usage is not None
    assert (usage.prompt_tokens, usage.completion_tokens) == (None, None)
    assert (usage.prompt_seconds, usage.completion_seconds) == (None, None)
