"""Measure an installation: make, a wheel in an empty environment, the image.

    python -m evaluation.benchmarks.install [--without-image]

Each way starts from a fresh clone of what is committed, with the package registries that this
machine is set up for. The wheel is installed into an empty environment, started in an empty folder
without DATA_DIR, and asked a question about the samples.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
import venv
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from app.client import DocuMindClient
from app.core.errors import DocuMindError
from evaluation.lib.paths import ROOT
from evaluation.lib.served import Line, write
from tests.browser.servers import free_port

QUESTION = "What share of planted wrong citations did alignment catch?"
READY_S = 300.0
"""Longest wait for a start, in seconds."""

Figures = dict[str, float]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument(
        "--without-image", action="store_true", help="leave the steps of the Dockerfile out"
    )
    arguments = parser.parse_args()
    figures: Figures = {}
    with tempfile.TemporaryDirectory(prefix="documind-install-") as name:
        clone = Path(name) / "documind"
        run("git", "clone", "--quiet", str(ROOT), str(clone), cwd=Path(name))
        by_make(clone, figures)
        by_wheel(clone, Path(name), figures)
        if not arguments.without_image:
            figures["image: minutes"] = (
                timed(".venv/bin/python", "-m", "scripts.run_dockerfile_steps", cwd=clone) / 60
            )
    lines = [
        Line("installed by pip from the wheel", figures.pop("wheel: MB installed"), 800, "MB"),
        Line(
            "installed by make, without Node's packages",
            figures.pop("make: MB in .venv"),
            650,
            "MB",
        ),
        Line(
            "files in the folder where the wheel was started",
            figures.pop("wheel: files left"),
            0,
            "files",
        ),
        Line(
            "passages cited in the first answer",
            figures.pop("wheel: citations"),
            1,
            "citations",
            at_most=False,
        ),
    ]
    load = os.getloadavg()[2]
    remarks = [
        "From a fresh clone; the packages come from a registry nearby. Times depend on what else"
        " the machine does:"
        f" its load over the last 15 minutes was {load:.1f} on {os.cpu_count()} cores."
    ]
    return write("install", "Installation", remarks, lines, figures, "make bench-install")


def by_make(clone: Path, figures: Figures) -> None:
    """Install as `make run` does, and measure time, size and packages."""
    figures["make: minutes for packages and page"] = (
        timed("make", "-s", "setup", "page", cwd=clone) / 60
    )
    figures["make: MB in .venv"] = megabytes(clone / ".venv")
    figures["make: MB in web/node_modules"] = megabytes(clone / "web" / "node_modules")
    figures["make: packages"] = packages(clone / ".venv")


def by_wheel(clone: Path, folder: Path, figures: Figures) -> None:
    """Build the wheel, install it, and ask it a question from an empty folder."""
    figures["wheel: minutes to build"] = timed("make", "-s", "wheel", cwd=clone) / 60
    (wheel,) = (clone / "dist").glob("*.whl")
    figures["wheel: MB"] = wheel.stat().st_size / 1e6
    environment, empty = folder / "environment", folder / "empty"
    venv.create(environment, with_pip=True)
    empty.mkdir()
    figures["wheel: minutes to install"] = (
        timed(str(environment / "bin" / "pip"), "install", "-q", str(wheel), cwd=folder) / 60
    )
    figures["wheel: MB installed"] = megabytes(environment)
    figures["wheel: packages"] = packages(environment)
    with started(environment, empty, folder, figures) as client:
        client.post("/api/v1/samples", {})
        answer = client.query(QUESTION, library="papers")
        sentences = answer["sentences"]
        assert isinstance(sentences, list)
        figures["wheel: citations"] = sum(len(sentence["citations"]) for sentence in sentences)
    figures["wheel: files left"] = len(list(empty.iterdir()))


@contextmanager
def started(
    environment: Path, empty: Path, home: Path, figures: Figures
) -> Iterator[DocuMindClient]:
    """Yield a client of a server that was started without a word about its data."""
    port = free_port()
    kept = {
        name: value for name, value in os.environ.items() if name not in {"DATA_DIR", "PYTHONPATH"}
    }
    process = subprocess.Popen(
        [str(environment / "bin" / "documind"), "serve", "--port", str(port)],
        cwd=empty,
        env={**kept, "HOME": str(home), "OLLAMA_BASE_URL": "http://127.0.0.1:9"},
        stdout=subprocess.DEVNULL,
    )
    begin = time.monotonic()
    try:
        client = DocuMindClient(f"http://127.0.0.1:{port}")
        wait_ready(client, process)
        figures["wheel: seconds to the first start"] = time.monotonic() - begin
        yield client
    finally:
        process.terminate()
        process.wait(60)


def wait_ready(client: DocuMindClient, process: subprocess.Popen[bytes]) -> None:
    """Wait until the server answers requests."""
    deadline = time.monotonic() + READY_S
    while process.poll() is None and time.monotonic() < deadline:
        with suppress(DocuMindError):
            if client.ready().get("status") == "ready":
                return
        time.sleep(0.1)
    raise SystemExit("the installed server did not become ready")


def run(*command: str, cwd: Path) -> None:
    """Run a command that must succeed; its words go to standard error."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if name not in {"DATA_DIR", "PYTHONPATH", "VIRTUAL_ENV"}
    }
    subprocess.run(command, cwd=cwd, env=kept, check=True, stdout=sys.stderr)


def timed(*command: str, cwd: Path) -> float:
    """Run a command and return the seconds it took."""
    begin = time.monotonic()
    run(*command, cwd=cwd)
    return time.monotonic() - begin


def megabytes(folder: Path) -> float:
    """Return what a folder takes on disk, in 2^20 bytes, as du counts it."""
    return float(subprocess.check_output(["du", "-sm", str(folder)], text=True).split()[0])


def packages(environment: Path) -> int:
    listed = subprocess.check_output(
        [str(environment / "bin" / "python"), "-m", "pip", "list", "--format", "json"], text=True
    )
    return len(json.loads(listed))


if __name__ == "__main__":
    sys.exit(main())
