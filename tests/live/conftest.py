"""Real models: SmolLM2-135M behind the Ollama double and behind llama.cpp's own server, and a real Ollama where one is named.

`make live` makes .venv-live, which these fixtures start their servers from. OLLAMA_BASE_URL adds
that server; LIVE_CHAT_MODEL and LIVE_EMBEDDING_MODEL name its models, else the first of each kind
that it has.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.error import URLError

import pytest

from app.models.ollama import OllamaHost

ROOT = Path(__file__).resolve().parents[2]
PYTHON = ROOT / ".venv-live" / "bin" / "python"
MODEL = ROOT / ".venv-live" / "SmolLM2-135M-Instruct.Q4_1.gguf"
CHAT = "smollm2:135m"
REAL = os.environ.get("OLLAMA_BASE_URL", "")
THREADS = "1"
"""llama.cpp's threads wait for each other by spinning, which on a busy machine takes twenty
times as long."""
START_S = 60.0


@dataclass(frozen=True)
class Live:
    """A server with a model that answers and one that embeds; `double` can be told to fail."""

    url: str
    chat: str
    embed: str
    double: bool


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextmanager
def running(*arguments: str, url: str) -> Iterator[subprocess.Popen[bytes]]:
    """A server of .venv-live that answers at an address; it ends with the block."""
    if not PYTHON.exists() or not MODEL.exists():
        pytest.fail("tests/live needs .venv-live with a model; run: make live")
    process = subprocess.Popen(
        [str(PYTHON), "-m", *arguments], cwd=ROOT, stdout=subprocess.DEVNULL, stderr=sys.stderr
    )
    try:
        deadline = time.monotonic() + START_S
        while not _answers(url):
            assert process.poll() is None, f"{arguments[0]} ended with {process.returncode}"
            assert time.monotonic() < deadline, f"{arguments[0]} does not answer"
            time.sleep(0.1)
        yield process
    finally:
        process.kill()
        process.wait()


def _answers(url: str) -> bool:
    try:
        with urllib.request.urlopen(url, timeout=2) as reply:
            return bool(reply.status == 200)
    except (URLError, OSError):
        return False


@contextmanager
def double(*options: str, port: int = 0) -> Iterator[tuple[Live, subprocess.Popen[bytes]]]:
    """The Ollama double with the model behind it, in a process of its own."""
    port = port or free_port()
    url = f"http://127.0.0.1:{port}"
    command = (
        "tests.fakes.ollama_double",
        "--model",
        str(MODEL),
        "--name",
        CHAT,
        "--port",
        str(port),
        "--threads",
        THREADS,
    )
    with running(*command, *options, url=url) as process:
        yield Live(url, CHAT, "smollm2-vectors:latest", double=True), process


def fail(live: Live, **fault: object) -> None:
    """Tell the double to fail the next answer."""
    content = json.dumps({"path": "/api/chat", "fault": fault}).encode()
    urllib.request.urlopen(
        urllib.request.Request(f"{live.url}/double/fail", content), timeout=5
    ).close()


@pytest.fixture(scope="session")
def double_host() -> Iterator[Live]:
    with double() as (live, _):
        yield live


@pytest.fixture(scope="session", params=["double", *(["ollama"] if REAL else [])])
def live(request: pytest.FixtureRequest) -> Live:
    if request.param == "double":
        found: Live = request.getfixturevalue("double_host")
        return found
    host = OllamaHost(REAL)
    chat, embed = os.environ.get("LIVE_CHAT_MODEL", ""), os.environ.get("LIVE_EMBEDDING_MODEL", "")
    for row in host.models():
        kinds = host.details(row.name).capabilities
        embed = embed or (row.name if "embedding" in kinds else "")
        chat = chat or (row.name if "completion" in kinds else "")
    if not chat or not embed:
        pytest.fail(
            f"{REAL} needs a model that answers and one that embeds; run: ollama pull smollm2:135m"
            " all-minilm"
        )
    return Live(REAL, chat, embed, double=False)


@pytest.fixture(scope="session")
def llama_url() -> Iterator[str]:
    """llama.cpp's own server, which speaks OpenAI's protocol; the address ends with /v1."""
    port = free_port()
    url = f"http://127.0.0.1:{port}/v1"
    options = [
        "--model",
        str(MODEL),
        "--n_ctx",
        "2048",
        "--port",
        str(port),
        "--interrupt_requests",
        "false",
    ]
    options += ["--n_threads", THREADS, "--n_threads_batch", THREADS]
    with running("llama_cpp.server", *options, url=f"{url}/models"):
        yield url
