"""A server that may open no more files refuses with a problem, keeps what it acknowledged, leaves nothing of what it refused."""

from __future__ import annotations

import resource
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import psutil
import pytest
import requests

from evaluation.lib.served import Served

CLIENTS, UPLOADS = 24, 96


@pytest.mark.parametrize("spare", [4, 12])
def test_refused_with_a_problem_and_nothing_left_behind(tmp_path: Path, spare: int) -> None:
    data = tmp_path / "data"
    data.mkdir()
    statuses: Counter[int] = Counter()
    odd: list[str] = []
    kept: list[str] = []

    def upload(number: int) -> None:
        with (
            suppress(requests.ConnectionError),
            requests.Session() as session,
        ):  # no file for the connection itself
            session.trust_env = False
            reply = session.post(
                f"{server.url}/api/v1/ingest?library=papers&wait=text",
                files={
                    "file": (
                        f"open{number}.txt",
                        f"Number {number} of many files that cannot all be open.".encode(),
                    )
                },
                timeout=60,
            )
            statuses[reply.status_code] += 1
            if reply.status_code not in {201, 503}:
                odd.append(reply.text)
            if reply.status_code == 201:
                kept.append(f"open{number}.txt")
            else:
                assert reply.headers["content-type"] == "application/problem+json", reply.text
                assert reply.json()["status"] == reply.status_code

    with Served(data) as server:
        process = psutil.Process(server.process.pid)
        _, hard = resource.prlimit(process.pid, resource.RLIMIT_NOFILE)
        resource.prlimit(process.pid, resource.RLIMIT_NOFILE, (process.num_fds() + spare, hard))
        with ThreadPoolExecutor(CLIENTS) as clients:
            for result in [clients.submit(upload, number) for number in range(UPLOADS)]:
                result.result()
        resource.prlimit(process.pid, resource.RLIMIT_NOFILE, (hard, hard))
        assert odd == []
        assert statuses[503] > 0 or spare < 12
        listed = server.client.get("/api/v1/papers", {"library": "papers", "limit": UPLOADS})
        names = {str(row["filename"]) for row in listed["documents"]}
        assert names >= set(kept)
        job = server.client.follow(str(server.client.post("/api/v1/fsck")["id"]))
        assert job["result"]["faults"] == []
