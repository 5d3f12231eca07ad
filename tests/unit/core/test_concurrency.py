"""Work beside one's own ends with the block, brings its errors along, and is done in turn when no thread is free."""

from __future__ import annotations

import contextvars
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack

import pytest

from app.core.cancel import THREADS, in_order, patiently, run_concurrently
from app.core.errors import DatabaseAway, InvalidInput, passes_by_itself

SAID: contextvars.ContextVar[str] = contextvars.ContextVar("said", default="nothing")


def test_work_is_done_in_another_thread_while_the_block_goes_on() -> None:
    going_on = threading.Event()

    def work() -> int:
        assert going_on.wait(5), "the block waits for its work"
        return threading.get_ident()

    with run_concurrently(work) as result:
        going_on.set()
        assert result() != threading.get_ident()


def test_what_surrounds_the_caller_surrounds_the_work() -> None:
    token = SAID.set("something")
    try:
        with run_concurrently(SAID.get) as result:
            assert result() == "something"
    finally:
        SAID.reset(token)


def test_an_error_comes_where_the_result_is_asked_for() -> None:
    def fail() -> int:
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"), run_concurrently(fail) as result:
        result()
    with run_concurrently(fail):
        pass  # nobody asked


def test_the_work_has_ended_when_the_block_is_left_early() -> None:
    ended: list[bool] = []

    def work() -> None:
        time.sleep(0.05)
        ended.append(True)

    with pytest.raises(KeyError), run_concurrently(work):
        raise KeyError
    assert ended == [True]


def test_without_a_free_thread_work_is_done_when_it_is_asked_for_or_not_at_all() -> None:
    release = threading.Event()
    done: list[str] = []
    with ExitStack() as others:
        for _ in range(THREADS):
            others.enter_context(run_concurrently(lambda: release.wait(10)))
        with run_concurrently(lambda: done.append("asked")) as result:
            assert done == []
            result()
        with run_concurrently(lambda: done.append("never")):
            pass
        release.set()
    assert done == ["asked"]
    with run_concurrently(threading.get_ident) as result:  # threads are free again
        assert result() != threading.get_ident()


def test_work_in_order_takes_no_more_items_than_it_may_hold() -> None:
    taken: list[int] = []

    def items() -> Iterator[int]:
        for number in range(9):
            taken.append(number)
            yield number

    with ThreadPoolExecutor(2) as pool:
        futures = in_order(pool, lambda number: number * number, items(), 3)
        for number, future in enumerate(futures):
            assert len(taken) <= number + 3
            assert future.result() == number * number
    assert len(taken) == 9


@pytest.mark.parametrize(
    ("patience_s", "closed", "tries"), [(60.0, False, 3), (0.0, False, 1), (60.0, True, 1)]
)
def test_what_passes_by_itself_is_tried_again_until_patience_ends_or_one_is_stopped(
    patience_s: float, closed: bool, tries: int
) -> None:
    done: list[int] = []
    stopped = threading.Event()
    if closed:
        stopped.set()

    def work() -> int:
        done.append(1)
        if len(done) < 3:
            raise InvalidInput("DATABASE_URL: away") from DatabaseAway("away")
        return 7

    def start() -> int:
        return patiently(work, passes_by_itself, stopped, patience_s, look_s=0.01)

    if tries == 3:
        assert start() == 7
    else:
        with pytest.raises(InvalidInput):
            start()
    assert len(done) == tries


def test_a_wrong_setting_is_not_tried_again() -> None:
    done: list[int] = []

    def work() -> None:
        done.append(1)
        raise InvalidInput("DATABASE_URL is no address")

    with pytest.raises(InvalidInput):
        patiently(work, passes_by_itself, threading.Event(), 60.0)
    assert len(done) == 1
