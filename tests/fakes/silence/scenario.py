"""The main job from start to end without a network: `python -m tests.fakes.silence.scenario DATA_DIR [--namespace]`.

With `--namespace` it expects to run in a network namespace of its own, brings up its loopback, and
prints how many packets the kernel had no way out for: what tried to leave without asking Python is
counted there.
"""

from __future__ import annotations

import fcntl
import json
import socket
import struct
import sys
import time
from pathlib import Path

import requests

from tests.browser.servers import DocuMind
from tests.fakes.files import HTML, MARKDOWN, make_docx, make_pdf

_SIOCSIFFLAGS = 0x8914
_UP_AND_RUNNING = 0x1 | 0x40
NATIVE_S = 4.0
QUESTION = "How long did the relaxation of quartz take?"


def loopback_up() -> None:
    """Bring up `lo`, which a new namespace has, but down."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
        fcntl.ioctl(control, _SIOCSIFFLAGS, struct.pack("16sH14s", b"lo", _UP_AND_RUNNING, b""))


def packets_without_a_way() -> int:
    """Return the kernel's count of packets that had no route, of both protocols."""
    names, values = (
        line.split()[1:]
        for line in Path("/proc/net/snmp").read_text().splitlines()
        if line.startswith("Ip:")
    )
    four = int(dict(zip(names, values, strict=True))["OutNoRoutes"])
    six = Path("/proc/net/snmp6")
    rows = dict(line.split() for line in six.read_text().splitlines()) if six.exists() else {}
    return four + int(rows.get("Ip6OutNoRoutes", "0"))


def knock_outside() -> None:
    """Try to leave, in the way that only the kernel sees: the count must tell."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as outside:
        try:
            outside.connect(("192.0.2.1", 9))
        except OSError:
            return


def main_job(server: DocuMind) -> dict[str, object]:
    """Do once what people do; returns what they saw."""
    files = [
        ("paper.pdf", make_pdf()),
        ("tides.docx", make_docx()),
        ("peat.html", HTML),
        ("bees.md", MARKDOWN),
    ]
    documents = server.upload(*files)
    server.load_samples()
    asked = {"question": QUESTION, "library": "papers"}
    answer = requests.post(f"{server.base}/api/v1/query", json=asked, timeout=60).json()
    streamed = requests.post(
        f"{server.base}/api/v1/query", json={**asked, "stream": True}, timeout=60
    )
    chat = requests.post(
        f"{server.base}/api/v1/chat", json={"message": QUESTION, "library": "papers"}, timeout=60
    )
    openai = requests.post(
        f"{server.base}/v1/chat/completions",
        json={"model": "documind-papers", "messages": [{"role": "user", "content": QUESTION}]},
        timeout=60,
    )
    search = server.get("/api/v1/search", q="harbour tides", library="papers")
    paths = ("/", "/docs", "/openapi.json", "/metrics", "/health")
    pages = [requests.get(f"{server.base}{path}", timeout=30).status_code for path in paths]
    server.get("/api/v1/diagnostics")
    gone = requests.delete(
        f"{server.base}/api/v1/papers/{documents[0]}", params={"library": "papers"}, timeout=60
    )
    statuses = [
        streamed.status_code,
        chat.status_code,
        openai.status_code,
        gone.status_code,
        *pages,
    ]
    return {
        "documents": len(documents),
        "status": answer["status"],
        "statuses": statuses,
        "hits": bool(search["hits"]),
    }


def main() -> None:
    """Run it, and print one JSON object."""
    apart = "--namespace" in sys.argv
    if apart:
        loopback_up()
    before = packets_without_a_way() if apart else 0
    data_dir = Path(sys.argv[1])
    with DocuMind(
        data_dir,
        PYTHONPATH=str(Path(__file__).parent),
        SILENCE_LOG=str(data_dir.with_suffix(".attempts")),
    ) as server:
        seen = main_job(server)
        if apart:
            time.sleep(NATIVE_S)  # what native libraries send of their own, they send late
    lost = packets_without_a_way() - before if apart else 0
    knock_outside()
    seen |= {"lost": lost, "control": packets_without_a_way() - before - lost if apart else None}
    print(json.dumps(seen))


if __name__ == "__main__":
    main()
