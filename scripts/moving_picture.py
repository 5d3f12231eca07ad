"""Record a citation check as an animation: `python -m scripts.moving_picture`.

Starts a server of its own on the sample documents, types a question into the page, presses a
citation and opens the document, and puts the pictures that Chromium takes into
docs/images/citation-checked.webp. Needs the built page, the development dependencies and Chromium.
"""

from __future__ import annotations

import argparse
import io
import tempfile
from collections.abc import Iterator
from pathlib import Path

from PIL import Image
from playwright.sync_api import Page, expect, sync_playwright

from scripts.screenshots import load_samples
from tests.browser.conftest import CHROMIUM, FLAGS
from tests.browser.servers import ROOT, DocuMind
from tests.browser.views import choose

QUESTION = "What share of planted wrong citations did alignment catch?"
SIZE = {"width": 1280, "height": 720}
SHOWN = (800, 450)
Frame = tuple[bytes, int]
"""A picture, and how long it stands, in milliseconds."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--out", type=Path, default=ROOT / "docs" / "images" / "citation-checked.webp"
    )
    out: Path = parser.parse_args().out
    with (
        tempfile.TemporaryDirectory() as directory,
        DocuMind(Path(directory) / "data") as server,
        sync_playwright() as playwright,
    ):
        load_samples(server)
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        page = browser.new_page(viewport=SIZE, color_scheme="light", reduced_motion="reduce")  # type: ignore[arg-type]  # two ints
        page.goto(server.base, wait_until="load")
        frames = list(scenes(page))
        browser.close()
    write(frames, out)
    print(f"{out.name}: {len(frames)} pictures, {out.stat().st_size / 1e3:.0f} kB")


def scenes(page: Page) -> Iterator[Frame]:
    """Yield what a reader does: type, read, press a citation, open the document."""
    choose(page, "Papers")
    box = page.get_by_label("Question", exact=True)
    box.click()
    yield page.screenshot(), 900
    for end in (len(QUESTION) // 3, 2 * len(QUESTION) // 3, len(QUESTION)):
        box.fill(QUESTION[:end])
        yield page.screenshot(), 450
    box.press("Enter")
    expect(page.get_by_role("button", name="Good answer")).to_be_visible(timeout=60_000)
    yield page.screenshot(), 2600
    page.get_by_role("button", name="Citation 1", exact=True).first.click()
    expect(page.locator("[data-highlight]").first).to_be_visible()
    yield page.screenshot(), 2600
    page.locator("[aria-current='true']").get_by_role("button", name="Open document").click()
    reader = page.get_by_role("region", name="Document", exact=True)
    expect(reader.locator("[data-page] [data-highlight]").first).to_be_visible()
    page.wait_for_timeout(1000)  # the page of the PDF is drawn
    yield page.screenshot(), 4200


def write(frames: list[Frame], out: Path) -> None:
    """Write pictures one after the other into a file that begins again at its end."""
    pictures = [
        Image.open(io.BytesIO(content)).convert("RGB").resize(SHOWN, Image.Resampling.LANCZOS)
        for content, _ in frames
    ]
    first, *rest = pictures
    durations = [stands for _, stands in frames]
    first.save(
        out,
        format="WEBP",
        save_all=True,
        append_images=rest,
        duration=durations,
        loop=0,
        quality=30,
        method=6,
        minimize_size=True,
        allow_mixed=True,
    )


if __name__ == "__main__":
    main()
