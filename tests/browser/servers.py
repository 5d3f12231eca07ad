"""A real server in its own process, on a free port and an empty data directory."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from pathlib import Path
from types import TracebackType
from typing import Self, cast

import requests

ROOT = Path(__file__).resolve().parents[2]
READY_S = 300.0
"""Longest wait for a start, in seconds: the first one builds the embedder's graph."""

BULK_S = 300.0
"""Longest wait for a bulk source, in seconds."""


def free_port() -> int:
    """A port nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


class DocuMind:
    """`python -m app serve`; can be stopped and started again on the same port and data."""

    def __init__(self, data_dir: Path, **settings: str) -> None:
        self.port = free_port()
        self.base = f"http://127.0.0.1:{self.port}"
        self.key = settings.get("API_KEY", "")
        self._log = data_dir.with_suffix(".log")
        kept = {
            name: value
            for name, value in os.environ.items()
            if name in {"PATH", "HOME", "LANG", "TMPDIR", "SSL_CERT_FILE"}
        }
        nowhere = "http://127.0.0.1:9"  # discard: no model host, whatever runs on this machine
        defaults = {
            "SAMPLES": "0",
            "OCR": "off",  # an engine may be installed
            "OLLAMA_BASE_URL": nowhere,
            "ARXIV_BASE_URL": nowhere,
        }
        self.environment = {
            **kept,
            **defaults,
            **settings,
            "DATA_DIR": str(data_dir),
            "API_PORT": str(self.port),
        }
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> Self:
        """Start and wait until it is ready."""
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "app", "serve"],
                cwd=ROOT,
                env=self.environment,
                stdout=log,
                stderr=log,
            )
        deadline = time.monotonic() + READY_S
        while time.monotonic() < deadline:
            assert self._process.poll() is None, self._log.read_text(errors="replace")[-2000:]
            try:
                if requests.get(f"{self.base}/health/ready", timeout=2).status_code == 200:
                    return self
            except (requests.ConnectionError, requests.Timeout):
                pass
            time.sleep(0.1)
        self.stop()
        raise AssertionError(
            f"not ready after {READY_S} s: {self._log.read_text(errors='replace')[-2000:]}"
        )

    def stop(self) -> None:
        """Stop it the way Ctrl-C does."""
        if self._process is not None:
            self._process.terminate()
            self._process.wait(30)
            self._process = None

    def get(self, path: str, **query: str | int) -> dict[str, object]:
        """GET a JSON object."""
        reply = requests.get(
            f"{self.base}{path}", params=query, headers=self._headers(), timeout=30
        )
        assert reply.status_code == 200, reply.text[:500]
        body: dict[str, object] = reply.json()
        return body

    def upload(
        self, *files: tuple[str, bytes], library: str = "papers", wait: str = "true"
    ) -> list[str]:
        """Index files and return their doc_ids, in order."""
        reply = requests.post(
            f"{self.base}/api/v1/ingest",
            params={"wait": wait},
            data={"library": library},
            files=[("file", (name, content)) for name, content in files],
            headers=self._headers(),
            timeout=300,
        )
        assert reply.status_code in {200, 201}, reply.text[:500]
        return [str(document["doc_id"]) for document in reply.json()["documents"]]

    def bulk_index(self, source: Path, library: str = "papers") -> None:
        """Index a bulk source as text and wait for it."""
        body = {"action": "index", "library": library, "source": str(source)}
        reply = requests.post(
            f"{self.base}/api/v1/bulk", json=body, headers=self._headers(), timeout=30
        )
        assert reply.status_code == 202, reply.text[:500]
        job = f"/api/v1/jobs/{reply.json()['id']}"
        deadline = time.monotonic() + BULK_S
        while (state := self.get(job)["state"]) != "done":
            assert state in {"queued", "running"}, state
            assert time.monotonic() < deadline, f"not indexed after {BULK_S} s"
            time.sleep(0.1)

    def cancel_next(self, kind: str) -> None:
        """End the next job of a kind for good, once it is there, and wait until it has ended."""
        deadline = time.monotonic() + BULK_S
        while time.monotonic() < deadline:
            jobs = cast("list[dict[str, str]]", self.get("/api/v1/jobs")["jobs"])
            under_way = [
                job["id"]
                for job in jobs
                if job["kind"] == kind and job["state"] in {"queued", "running"}
            ]
            if under_way:
                requests.delete(
                    f"{self.base}/api/v1/jobs/{under_way[0]}", headers=self._headers(), timeout=30
                ).raise_for_status()
                while self.get(f"/api/v1/jobs/{under_way[0]}")["state"] in {"queued", "running"}:
                    time.sleep(0.1)
                return
            time.sleep(0.1)
        raise AssertionError(f"no {kind} after {BULK_S} s")

    def load_samples(self) -> None:
        """Index the bundled documents."""
        reply = requests.post(f"{self.base}/api/v1/samples", headers=self._headers(), timeout=300)
        assert reply.ok, reply.text[:500]

    def clear(self) -> None:
        """Empty both libraries and forget every conversation: as on a first start."""
        gone = requests.delete(
            f"{self.base}/api/v1/conversations", headers=self._headers(), timeout=60
        )
        assert gone.status_code == 200, gone.text[:500]
        for library in ("papers", "public"):
            url = f"{self.base}/api/v1/libraries/{library}/documents"
            reply = requests.delete(
                url, params={"confirm": library}, headers=self._headers(), timeout=60
            )
            assert reply.status_code == 200, reply.text[:500]

    def _headers(self) -> dict[str, str]:
        return {"X-API-Key": self.key} if self.key else {}

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()
