"""A bundle as an earlier build wrote it: it is never written again, only taken in."""

from __future__ import annotations

import json
import time
from pathlib import Path

from tests.fence.server import FenceServer, fence_server

FILES = {
    "tides.md": "# Tides\n\nThe Bay of Fundy has the largest tidal range in the world.\n",
    "beds.html": "<table><tr><th>Bed</th><th>Tulips</th></tr><tr><td>East</td><td>120</td></tr></table>",
}


def write(target: Path) -> None:
    """Export two documents, and keep what a reader sees of them next to the bundle."""
    with fence_server() as server:
        files = [("file", (name, text.encode())) for name, text in FILES.items()]
        sent = server.client.post("/api/v1/ingest?library=papers", files=files)
        assert sent.status_code == 201, sent.text
        body = {"library": "papers", "path": str(target)}
        wait_for(server, server.client.post("/api/v1/export", json=body).json()["id"])
        target.with_name("bundle.json").write_text(
            json.dumps(bundled(server), indent=1, ensure_ascii=False) + "\n", "utf-8"
        )


def bundled(server: FenceServer) -> list[dict[str, object]]:
    """Return the documents of papers with their texts, by name."""
    listed = server.client.get("/api/v1/papers?library=papers").json()["documents"]
    names = ("filename", "title", "type", "sha256", "chunks", "embedded", "state")
    return [
        {name: document[name] for name in names}
        | {
            "text": server.client.get(
                f"/api/v1/documents/{document['doc_id']}/text?library=papers"
            ).json()["text"]
        }
        for document in sorted(listed, key=lambda one: str(one["filename"]))
    ]


def wait_for(server: FenceServer, job_id: str, most_s: float = 120) -> None:
    """Wait until a job is done."""
    end = time.monotonic() + most_s
    while (job := server.client.get(f"/api/v1/jobs/{job_id}").json())["state"] != "done":
        assert job["state"] in {"queued", "running"}, job
        assert time.monotonic() < end, job
        time.sleep(0.05)
