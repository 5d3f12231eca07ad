"""Ask servers questions and send them files, with several clients at once."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import TypeVar, cast

from app.client import DocuMindClient, FileToSend, Json
from evaluation.benchmarks.bulk.growth import Figures
from evaluation.lib.served import quantile

TOP_K = 10
CLIENTS = 8
UPLOADS = 40

Item = TypeVar("Item")
Ranking = list[tuple[str, str]]
"""Document and passage of each hit, best first."""


def asked(urls: Sequence[str], questions: Sequence[str]) -> tuple[Figures, list[Ranking]]:
    """Return times of one client and of several, and the rankings of the first."""
    alone, rankings, wall_s = _spread(urls[:1], questions, 1, _search)
    figures = _times("one client", alone, wall_s)
    together, _, wall_s = _spread(urls, questions, CLIENTS, _search)
    return figures | _times(f"{CLIENTS} clients", together, wall_s), rankings


def uploaded(urls: Sequence[str], folder: Path, texts: Sequence[str]) -> Figures:
    """Send files, each until it is found; return files a second."""
    folder.mkdir()
    paths = []
    for number, text in enumerate(texts[:UPLOADS]):
        path = folder / f"upload-{number}.txt"
        path.write_text(f"File {number}.\n\n{text}\n", "utf-8")
        paths.append(path)
    times, _, wall_s = _spread(urls, paths, CLIENTS, _send)
    return {"uploads files/s": len(times) / wall_s, "upload p50 s": quantile(times, 0.5)}


def overlap(first: Sequence[Ranking], second: Sequence[Ranking]) -> float:
    """Return the mean share of the first's hits that the second has too, [0, 1]."""
    shares = [
        len(set(one) & set(two)) / max(1, len(one)) for one, two in zip(first, second, strict=True)
    ]
    return sum(shares) / len(shares)


def _search(client: DocuMindClient, text: str) -> Ranking:
    hits = cast("Sequence[Json]", client.search(text, "public", limit=TOP_K)["hits"])
    return [(str(hit["doc_id"]), str(hit["text"])) for hit in hits]


def _send(client: DocuMindClient, path: Path) -> Ranking:
    client.ingest([FileToSend(path)], "public")
    return []


def _spread(
    urls: Sequence[str],
    items: Sequence[Item],
    clients: int,
    work: Callable[[DocuMindClient, Item], Ranking],
) -> tuple[list[float], list[Ranking], float]:
    """Do the items with several clients; return seconds, replies and wall."""
    with ExitStack() as stack:
        opened = [DocuMindClient(urls[number % len(urls)]) for number in range(clients)]
        for client in opened:
            stack.callback(client.close)

        def share(number: int) -> list[tuple[int, float, Ranking]]:
            found = []
            for position in range(number, len(items), clients):
                begun = time.perf_counter()
                reply = work(opened[number], items[position])
                found.append((position, time.perf_counter() - begun, reply))
            return found

        begun = time.perf_counter()
        with ThreadPoolExecutor(clients) as pool:
            done = sorted(
                (one for part in pool.map(share, range(clients)) for one in part),
                key=lambda one: one[0],
            )
        wall_s = time.perf_counter() - begun
    return [seconds for _, seconds, _ in done], [reply for _, _, reply in done], wall_s


def _times(who: str, seconds: Sequence[float], wall_s: float) -> Figures:
    return {
        f"{who}, questions/s": len(seconds) / wall_s,
        f"{who}, p50 ms": 1000 * quantile(seconds, 0.5),
        f"{who}, p95 ms": 1000 * quantile(seconds, 0.95),
    }
