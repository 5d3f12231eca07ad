from __future__ import annotations

import json
import socket
import threading
from collections.abc import Iterator

import pytest

from app.core.cancel import CancelToken
from app.core.errors import Cancelled, ProviderBadResponse, ProviderTimeout, ProviderUnreachable
from app.models.http import HttpClient
from app.models.retries import with_retries
from tests.fakes.http_double import Asked, Canned, HttpDouble
from tests.fakes.ollama_double import OllamaDouble


class Echo(HttpDouble):
    """Says ok, and wants a cookie kept."""

    def default(self, asked: Asked) -> Canned:
        return Canned(b'{"ok":true}', headers={"Set-Cookie": "session=1"})


@pytest.fixture
def echo() -> Iterator[Echo]:
    with Echo() as running:
        yield running


def test_a_reply(echo: Echo) -> None:
    client = HttpClient(f"{echo.url}/base/", "Echo", headers={"X-Key": "k"})
    reply = client.call("POST", "/path?x=1", {"a": "ä"})
    assert (reply.status, json.loads(reply.body)) == (200, {"ok": True})
    client.call("GET", "/again")
    assert [(asked.method, asked.path, asked.body) for asked in echo.asked] == [
        ("POST", "/base/path?x=1", {"a": "ä"}),
        ("GET", "/base/again", {}),
    ]
    assert echo.asked[0].headers["X-Key"] == "k"
    assert "Cookie" not in echo.asked[1].headers


def test_proxies_of_the_environment_are_not_used(
    echo: Echo, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    assert HttpClient(echo.url, "Echo").call("GET", "/").status == 200


def test_long_replies_and_lines_are_cut_off(echo: Echo) -> None:
    client = HttpClient(echo.url, "Echo")
    echo.queue(Canned(b"x" * 5000), Canned(b"x" * 5000 + b"\n"), Canned(b"one\ntwo"))
    with (
        client.stream("GET", "/") as reply,
        pytest.raises(ProviderBadResponse, match="more than 4999 bytes"),
    ):
        reply.read(4999)
    with (
        client.stream("GET", "/") as reply,
        pytest.raises(ProviderBadResponse, match="a line of more than 100 bytes"),
    ):
        list(reply.lines(100))
    with client.stream("GET", "/") as reply:
        assert list(reply.lines(100)) == [b"one", b"two"]


def test_a_host_that_dribbles_meets_the_deadline() -> None:
    with OllamaDouble(tokens_per_s=20) as double:
        double.say("word " * 200)
        client = HttpClient(double.url, "Ollama")
        body = {"model": "llama3.2", "messages": [{"role": "user", "content": "x"}]}
        with pytest.raises(ProviderTimeout):
            client.call("POST", "/api/chat", body, timeout_s=0.3)


@pytest.mark.parametrize(
    ("frame", "begin"),
    [
        (b"Transfer-Encoding: chunked", b"5\r\nbegin\r\n"),
        (b"Content-Length: 100", b"begin"),
        (b"Connection: close", b"begin"),
    ],
    ids=["chunks", "a length", "until it closes"],
)
def test_a_host_that_falls_silent_has_not_ended_its_reply(frame: bytes, begin: bytes) -> None:
    silent = threading.Event()

    def host(listening: socket.socket) -> None:
        connection, _ = listening.accept()
        with connection:
            connection.recv(65536)
            connection.sendall(b"HTTP/1.1 200 OK\r\n" + frame + b"\r\n\r\n" + begin)
            silent.wait(60.0)

    with socket.create_server(("127.0.0.1", 0)) as listening:
        thread = threading.Thread(target=host, args=(listening,))
        thread.start()
        client = HttpClient(
            f"http://127.0.0.1:{listening.getsockname()[1]}", "Host", read_timeout_s=0.3
        )
        with client.stream("GET", "/") as reply:
            blocks = reply.blocks()
            assert next(blocks) == b"begin"
            with pytest.raises(ProviderTimeout, match="silent"):
                next(blocks)
        silent.set()
        thread.join()


def test_a_connection_is_used_again(echo: Echo) -> None:
    client = HttpClient(echo.url, "Echo")
    before = threading.active_count()
    for _ in range(5):
        client.call("GET", "/")
    assert threading.active_count() <= before + 1  # the double has a thread per connection
    client.close()


def test_a_broken_kept_connection_is_an_error_that_may_be_tried_again(echo: Echo) -> None:
    client = HttpClient(echo.url, "Echo")
    echo.queue(Canned(b"{}", declared=100))
    with pytest.raises(ProviderUnreachable, match="broke the connection"):
        client.call("GET", "/")
    assert with_retries(lambda: client.call("GET", "/"), CancelToken()).status == 200


def test_a_cancel_before_the_call_sends_nothing(echo: Echo) -> None:
    cancel = CancelToken()
    cancel.cancel()
    with pytest.raises(Cancelled):
        HttpClient(echo.url, "Echo").call("GET", "/", cancel=cancel)
    assert echo.asked == []


def test_many_calls_cancelled_at_any_moment_hit_only_themselves() -> None:
    with OllamaDouble(tokens_per_s=200) as double:
        client = HttpClient(double.url, "Ollama")
        body = {
            "model": "llama3.2",
            "messages": [{"role": "user", "content": "[1] A\nRivers carry silt to the sea."}],
        }
        outcomes: list[str] = []

        def call(number: int) -> None:
            cancel = CancelToken()
            if number % 2:
                threading.Timer(0.002 * number, cancel.cancel).start()
            try:
                outcomes.append(
                    "done"
                    if client.call("POST", "/api/chat", body, cancel=cancel).text.count(
                        '"done": true'
                    )
                    else "cut"
                )
            except Cancelled:
                outcomes.append("cancelled" if number % 2 else "hit")

        threads = [threading.Thread(target=call, args=(number,)) for number in range(40)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert set(outcomes) <= {"done", "cancelled"}
    assert outcomes.count("done") >= 20


def test_waits_between_attempts_end_with_the_token() -> None:
    cancel, calls = CancelToken(), list[int]()

    def call() -> None:
        calls.append(1)
        cancel.cancel()
        raise ProviderUnreachable("away")

    with pytest.raises(Cancelled):
        with_retries(call, cancel)
    assert len(calls) == 1
