"""Prepare a dump's articles, in worker processes when there are many."""

from __future__ import annotations

import multiprocessing
from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future, ProcessPoolExecutor, wait
from contextlib import ExitStack
from functools import partial
from itertools import islice

from app.core.cancel import CancelToken
from app.core.types import Article
from app.ingest.bulk_work import BulkTask, Prepared, prepare, start_worker

TASK_ARTICLES = 64
"""Articles a worker takes at once: small enough to spread evenly, large enough to hide the trip
between processes."""
_LOOK_S = 0.2
"""Seconds between two looks at whether a run is cancelled, while a worker is at its articles."""
_ALONE_CHARACTERS = 8_000_000
"""Parsed in the calling process before workers are started: a worker takes a second to import
what it needs, as long as this."""


def prepared_articles(
    task: BulkTask, articles: Iterator[Article], workers: int, token: CancelToken, stack: ExitStack
) -> Iterator[Prepared]:
    """Yield what becomes of each article, in the source's order.

    The first ones are prepared in the calling process; a longer source gets workers.

    Args:
        task: How articles become drafts.
        articles: Read a few groups ahead of what is yielded.
        workers: Processes; 0 prepares all in the calling one.
        token: Checked between articles, and while a worker is at some.
        stack: Its end stops the workers.

    Raises:
        Cancelled: Asked to stop.
    """
    work = partial(prepare, task)
    groups = iter(lambda: list(islice(articles, TASK_ARTICLES)), [])
    alone = 0
    for group in groups:
        token.raise_if_cancelled()
        for article in group:
            token.raise_if_cancelled()
            yield from work([article])
        alone += sum(len(article.source) for article in group)
        if workers and alone >= _ALONE_CHARACTERS:
            break
    else:
        return
    pool = _started_pool(workers, stack)
    window: deque[Future[list[Prepared]]] = deque()
    for group in groups:
        token.raise_if_cancelled()
        window.append(pool.submit(work, group))
        if len(window) > workers * 3:
            yield from _result(window.popleft(), token)
    while window:
        yield from _result(window.popleft(), token)


def _started_pool(workers: int, stack: ExitStack) -> ProcessPoolExecutor:
    spawn = multiprocessing.get_context(
        "spawn"
    )  # forking a process with threads and open databases is unsafe
    stopped = spawn.Event()
    pool = ProcessPoolExecutor(
        workers, mp_context=spawn, initializer=start_worker, initargs=(stopped,)
    )
    stack.callback(pool.shutdown, wait=True, cancel_futures=True)
    stack.callback(stopped.set)  # first: a worker then ends with the article that it is at
    return pool


def _result(future: Future[list[Prepared]], token: CancelToken) -> list[Prepared]:
    """Return what a worker made.

    Raises:
        Cancelled: Asked to stop while it worked.
    """
    while not future.done():
        token.raise_if_cancelled()
        wait([future], timeout=_LOOK_S)
    token.raise_if_cancelled()
    return future.result()
