"""Take pictures of every view of the page: `python -m scripts.screenshots`.

In the light theme and two widths, into docs/images.

Starts a server of its own on the sample documents in a temporary directory, asks it a real
question, and looks at it with Chromium. Needs the built page (`make page`), the development
dependencies and Chromium.
"""

from __future__ import annotations

import argparse
import io
import tempfile
import time
from pathlib import Path

from PIL import Image
from playwright.sync_api import Browser, sync_playwright

from app.client import DocuMindClient
from tests.browser.conftest import CHROMIUM, FLAGS
from tests.browser.servers import ROOT, DocuMind
from tests.browser.views import View, views

QUESTION = "Why does rank fusion throw away information that scores carry?"
WIDTHS = {"wide": (1440, 900), "phone": (390, 844)}
MOST_BYTES = 60_000


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=ROOT / "docs" / "images")
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True, exist_ok=True)
    shown = views(QUESTION)
    with (
        tempfile.TemporaryDirectory() as directory,
        DocuMind(Path(directory) / "data") as server,
        sync_playwright() as playwright,
    ):
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        take(browser, server, arguments.out, {"first-run": shown.pop("first-run")})
        load_samples(server)
        tag(server)
        evaluate(server)
        take(browser, server, arguments.out, shown)
        browser.close()


def load_samples(server: DocuMind, timeout_s: float = 300) -> None:
    """Index the bundled documents and wait until all have vectors."""
    server.load_samples()
    deadline = time.monotonic() + timeout_s
    while time.monotonic() < deadline:
        stats = [
            server.get("/api/v1/collection/stats", library=library)
            for library in ("papers", "public")
        ]
        if all(found["chunks"] and found["chunks"] == found["embedded"] for found in stats):
            return
        time.sleep(0.5)
    raise TimeoutError(f"the samples were not embedded within {timeout_s} s")


def tag(server: DocuMind) -> None:
    """Give two documents a tag, so that tags can be shown."""
    with DocuMindClient(server.base) as client:
        listed = client.get("/api/v1/papers", {"library": "papers", "limit": 2})
        for document in listed["documents"]:
            client.correct("papers", document["doc_id"], tags=["to read"])


def evaluate(server: DocuMind) -> None:
    """Evaluate the public library's search, so that a report can be shown."""
    with DocuMindClient(server.base) as client:
        job = client.post("/api/v1/evaluations", {"kind": "retrieval", "library": "public"})
        ended = client.follow(str(job["id"]))
    if ended["state"] != "done":
        raise RuntimeError(f"the evaluation ended as {ended['state']}: {ended['errors']}")


def take(browser: Browser, server: DocuMind, out: Path, shown: dict[str, View]) -> None:
    """Take each view in every width."""
    for width, (x, y) in WIDTHS.items():
        for name, arrange in shown.items():
            context = browser.new_context(
                viewport={"width": x, "height": y}, color_scheme="light", reduced_motion="reduce"
            )
            page = context.new_page()
            page.goto(server.base, wait_until="load")
            arrange(page)
            page.wait_for_timeout(600)
            (out / f"{name}-{width}.webp").write_bytes(light(page.screenshot()))
            context.close()


def light(png: bytes) -> bytes:
    """Return a picture as WebP of at most MOST_BYTES, made smaller until it is."""
    picture = Image.open(io.BytesIO(png)).convert("RGB")
    size = picture.size
    while True:
        out = io.BytesIO()
        picture.resize(size, Image.Resampling.LANCZOS).save(out, "WEBP", quality=75, method=6)
        if out.tell() <= MOST_BYTES:
            return out.getvalue()
        size = size[0] * 9 // 10, size[1] * 9 // 10


if __name__ == "__main__":
    main()
