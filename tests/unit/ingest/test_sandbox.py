from __future__ import annotations

import os
import signal
import socket
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import psutil
import pytest

from app.core.cancel import CancelToken
from app.core.errors import Busy, Cancelled, DocuMindError, Unreadable
from app.core.types import ParsedDocument
from app.ingest.options import IngestOptions
from app.ingest.sandbox import SandboxedParser, unpack_document, unpack_error

OPTIONS = IngestOptions(parse_processes=1)
SLOW = b"<html>" + b"<p>a" * 990_000
"""Nearly as many elements as are read: they keep the HTML parser busy for many seconds."""


def in_thread(work: Callable[[], object]) -> tuple[threading.Thread, list[BaseException]]:
    caught: list[BaseException] = []

    def run() -> None:
        try:
            work()
        except DocuMindError as exc:
            caught.append(exc)

    thread = threading.Thread(target=run)
    thread.start()
    return thread, caught


def wait_busy(parser: SandboxedParser) -> int:
    """Return the child's pid once it has used some processor time on a request."""
    pause = CancelToken()
    for _ in range(500):
        pids = parser.pids
        if pids and psutil.Process(pids[0]).cpu_times().user > 0.6:
            return pids[0]
        pause.wait(0.02)
    raise AssertionError("the child never became busy")


def test_a_parse_over_the_wall_clock_is_ended_and_the_next_one_works() -> None:
    with SandboxedParser(replace(OPTIONS, parse_wall_s=0.5)) as parser:
        parser.parse(b"warm", "a.txt")
        [old] = parser.pids
        with pytest.raises(Unreadable, match=r"'deep.html' took longer than 0.5 s"):
            parser.parse(SLOW, "deep.html")
        assert parser.parse(b"still here", "b.txt").text == "still here"
        assert not psutil.pid_exists(old)


def test_a_parse_over_the_processor_limit_is_ended() -> None:
    with (
        SandboxedParser(replace(OPTIONS, parse_cpu_s=1)) as parser,
        pytest.raises(Unreadable, match="more than 1 s of processor time"),
    ):
        parser.parse(SLOW, "deep.html")


def test_a_parse_over_the_memory_limit_is_unreadable() -> None:
    options = replace(OPTIONS, parse_memory_bytes=300 * 1024**2, max_characters=10**9)
    with SandboxedParser(options) as parser, pytest.raises(Unreadable, match=r"memory|crashed"):
        parser.parse("\U0001f600a".encode() * 9_000_000, "wide.txt")


def test_an_answer_over_the_output_cap_is_refused() -> None:
    with SandboxedParser(replace(OPTIONS, parse_output_bytes=10_000)) as parser:
        with pytest.raises(Unreadable, match="more text than 10,000 bytes"):
            parser.parse(b"word " * 4_000, "long.txt")
        assert parser.parse(b"short", "b.txt").text == "short"


def test_a_child_that_crashes_costs_its_file_only() -> None:
    with SandboxedParser(OPTIONS) as parser:
        thread, caught = in_thread(lambda: parser.parse(SLOW, "deep.html"))
        os.kill(wait_busy(parser), signal.SIGSEGV)
        thread.join(20)
        assert isinstance(caught[0], Unreadable)
        assert "SIGSEGV" in str(caught[0])
        assert parser.parse(b"still here", "b.txt").text == "still here"


def test_a_child_killed_while_idle_is_replaced_without_a_trace() -> None:
    with SandboxedParser(OPTIONS) as parser:
        parser.parse(b"warm", "a.txt")
        [pid] = parser.pids
        os.kill(pid, signal.SIGKILL)
        psutil.wait_procs([psutil.Process(pid)] if psutil.pid_exists(pid) else [], timeout=5)
        assert parser.parse(b"again", "b.txt").text == "again"
        assert parser.pids != [pid]


def test_children_are_recycled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("app.ingest.sandbox.PARSES_PER_CHILD", 3)
    with SandboxedParser(OPTIONS) as parser:
        seen = {(parser.parse(b"x", "a.txt").text, parser.pids[0])[1] for _ in range(7)}
    assert len(seen) == 3


def test_many_threads_share_two_children() -> None:
    with (
        SandboxedParser(replace(OPTIONS, parse_processes=2)) as parser,
        ThreadPoolExecutor(8) as pool,
    ):
        parser.warm()
        texts = [f"text number {n}" for n in range(60)]
        assert [
            p.text for p in pool.map(lambda t: parser.parse(t.encode(), "a.txt"), texts)
        ] == texts
        assert len(parser.pids) == 2


def test_close_ends_children_and_cancels_what_they_do() -> None:
    parser = SandboxedParser(OPTIONS)
    thread, caught = in_thread(lambda: parser.parse(SLOW, "deep.html"))
    pid = wait_busy(parser)
    parser.close()
    thread.join(20)
    assert isinstance(caught[0], Cancelled)
    assert not psutil.pid_exists(pid)
    with pytest.raises(Cancelled):
        parser.parse(b"x", "a.txt")


def test_a_client_that_leaves_ends_its_parse_and_frees_the_child() -> None:
    with SandboxedParser(OPTIONS) as parser:
        parser.parse(b"warm", "a.txt")
        cancel = CancelToken()
        thread, caught = in_thread(lambda: parser.parse(SLOW, "slow.html", cancel))
        old = wait_busy(parser)
        left = CancelToken()
        waiting, also = in_thread(lambda: parser.parse(b"next", "next.txt", left))
        left.cancel()
        waiting.join(20)
        cancel.cancel()
        thread.join(20)
        assert [type(error) for error in also + caught] == [Cancelled, Cancelled]
        assert not psutil.pid_exists(old)
        assert parser.parse(b"still here", "b.txt").text == "still here"


def test_a_client_does_not_wait_for_ever_for_a_child(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("app.ingest.sandbox.SLOT_WAIT_S", 0.1)
    with SandboxedParser(OPTIONS) as parser:
        parser.parse(b"warm", "a.txt")
        cancel = CancelToken()
        thread, _ = in_thread(lambda: parser.parse(SLOW, "slow.html", cancel))
        wait_busy(parser)
        with pytest.raises(Busy, match="all parsers are at work"):
            parser.parse(b"next", "next.txt", CancelToken())
        cancel.cancel()
        thread.join(20)


def test_a_child_inherits_no_socket_and_no_secret(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("API_KEY", "canary")
    with socket.create_server(("127.0.0.1", 0)) as server, SandboxedParser(OPTIONS) as parser:
        server.set_inheritable(True)
        parser.parse(b"x", "a.txt")
        child = psutil.Process(parser.pids[0])
        assert child.net_connections(kind="inet") == []
        assert "canary" not in child.environ().values()
        assert child.num_fds() <= 8


DOCUMENT: dict[str, Any] = {"media_type": "text/plain", "labels": {"tags": None, "metadata": {}}}


def test_answers_are_checked_not_trusted() -> None:
    assert unpack_document({"document": DOCUMENT}, b"x") == ParsedDocument("x", "text/plain")
    with pytest.raises(ValueError, match="pages"):
        unpack_document({"document": {**DOCUMENT, "pages": [[1, 2]]}}, b"x")
    assert type(unpack_error({"error": "Unauthorized", "message": "m"})).__name__ == "InputError"
