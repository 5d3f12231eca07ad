"""A stop while uploads wait: each sender hears that its job is kept, the process is soon gone, and the next one has everything."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import requests

from evaluation.lib.reports import ROOT
from evaluation.lib.served import Served

UPLOADS = 12
EXIT_S = 120.0
PARAGRAPHS = 40
"""Of each document: enough that most uploads still wait when the last has been accepted."""


def document(number: int) -> bytes:
    words = " ".join(f"{'abcdefghij'[number % 10]}{n % 97}" for n in range(90))
    return "\n\n".join(
        f"The thing of shelf {n} of {number} is {words} {n}." for n in range(PARAGRAPHS)
    ).encode()


def test_uploads_that_wait_hear_that_they_are_kept(tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.mkdir()

    def upload(number: int) -> requests.Response:
        with requests.Session() as session:
            session.trust_env = False
            files = {"file": (f"stop{number}.txt", document(number))}
            return session.post(
                f"{server.url}/api/v1/ingest?library=papers", files=files, timeout=60
            )

    with Served(data) as server, ThreadPoolExecutor(UPLOADS) as clients:
        waiting = [clients.submit(upload, number) for number in range(UPLOADS)]
        while len(server.client.jobs(100)["jobs"]) < UPLOADS:
            time.sleep(0.02)
        server.process.send_signal(signal.SIGTERM)
        server.process.wait(EXIT_S)
        replies = [reply.result() for reply in waiting]
    jobs = set()
    for reply in replies:
        body = reply.json()
        if reply.status_code in {201, 202}:  # the first ones may have been done
            jobs.add(body["job_id"])
        else:
            assert reply.status_code == 503, reply.text
            assert reply.headers["content-type"] == "application/problem+json"
    assert sum(reply.status_code == 202 for reply in replies) > UPLOADS // 2
    with Served(data) as server:
        for job in jobs:
            assert server.client.follow(job)["state"] == "done"
        stats = server.client.get("/api/v1/collection/stats", {"library": "papers"})
        assert len(jobs) <= int(str(stats["documents"])) <= UPLOADS


HANGS = """
import asyncio, sys, time
from app.api.serving import StoppingServer
from app.core.cancel import CancelToken
import uvicorn

class Hasty(StoppingServer):
    exit_s = 0.5

async def app(scope, receive, send):
    while True:
        message = await receive()
        if message["type"] == "lifespan.shutdown":
            time.sleep(600)
        await send({"type": "lifespan.startup.complete"})
        print("started", flush=True)

Hasty(uvicorn.Config(app, port=0, log_config=None), CancelToken()).run()
"""


def test_a_stop_that_hangs_ends_all_the_same() -> None:
    with subprocess.Popen(
        [sys.executable, "-c", HANGS], cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        process.stdout.readline()
        process.send_signal(signal.SIGTERM)
        assert process.wait(EXIT_S) == 0


def test_a_start_that_fails_says_why_and_ends_with_1(tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.mkdir()
    (data / "catalog.sqlite3").write_bytes(b"no database" * 1000)
    server = Served(data)
    server.start()
    assert server.process.wait(60) == 1
    said = server.log.read_text("utf-8")
    assert "cannot start: the catalog" in said
    assert "Traceback" not in said
