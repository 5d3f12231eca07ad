"""What README.md, docs and the page measure is rendered from a report; other numbers are limits of the code."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from app.answer import models
from app.api import app
from app.core.documents import TOKEN_BITS
from app.core.errors import InvalidInput
from app.evaluation.metrics import LEVEL
from app.generation import context
from app.ingest import ocr
from app.ingest.parsers import pdf
from app.jobs.runner import CLOSE_S
from app.storage.maintenance.bundle_format import MAX_BLOCK_BYTES
from app.storage.maintenance.start import CATALOG_CHECKED_AT_START_BYTES
from app.storage.options import STORE_BYTES, stored_bytes
from app.storage.vectors.replica import FEW_SHARE
from app.storage.words.tantivy import CHECKED_AT_START_BYTES
from scripts.figures import FIGURE, PAGES, measured, rendered
from scripts.reports import ROOT

MEASURE = re.compile(
    r"(?<![\w.`/-])(?:\d[\d,]*(?:\.\d+)?|\.\d+)"
    r"(?: ?%| (?:percent|ms|s|h|seconds?|minutes?|hours?|[kMG]i?B|KB|bytes|times|dpi|megapixels)\b)"
    r"|(?:nDCG|recall|precision|accuracy|MRR|p50|p95)\b[^.|\n]{0,40}?\b0?\.\d+"
)
"""A number with a unit of time, size, speed or share, or one of quality."""
REPORTS = ROOT / "evaluation" / "reports"
OTHERS = {"scale.md", "formats.md"}
"""Made whole by programs of their own, with tests of their own."""
QDRANT = dict(
    re.findall(
        r"(?m)^(\w+) = ([\d.]+)$", (ROOT / "app" / "shared" / "qdrant.py").read_text("utf-8")
    )
)
"""Read, as its packages are an extra."""
LIMITS = {
    "64 MiB": MAX_BLOCK_BYTES / 2**20,
    "16 bytes": TOKEN_BITS / 8,
    "2,048 bytes": STORE_BYTES["chroma"],
    "1,836 bytes": stored_bytes("chroma", 384),
    "1 kB": app._GZIP_BYTES / 2**10,
    "256 MB": CHECKED_AT_START_BYTES / 2**20,
    "128 MB": CATALOG_CHECKED_AT_START_BYTES / 2**20,
    ".3 s": float(QDRANT["SECOND_S"]),
    "5 s": float(QDRANT["SEARCH_S"]),
    "5 %": FEW_SHARE * 100,
    "95 %": (1 - LEVEL) * 100,
    "25 %": pdf._LEAST_PICTURE * 100,
    "200 dpi": ocr.DPI,
    "12 megapixels": ocr.MOST_PIXELS / 10**6,
    "10 %": (context._MARGIN - 1) * 100,
    "4 times": models._SWING,
    "50 seconds": CLOSE_S,
}
"""Numbers that are no measurements, and where the code has them."""


def claims(text: str) -> list[str]:
    """Return the numbers with units of a page's prose, without those that a report renders."""
    prose = re.sub(r"```.*?```|^    .*?$", "", FIGURE.sub("", text), flags=re.DOTALL | re.MULTILINE)
    return [found[0] for found in MEASURE.finditer(prose)]


def test_figures_of_the_pages_are_those_of_the_reports() -> None:
    texts = {page: page.read_text("utf-8") for page in PAGES}
    assert sum(len(FIGURE.findall(text)) for text in texts.values()) >= 5
    for page, text in texts.items():
        assert text == rendered(page, text), f"{page.name}: run python -m scripts.figures"


@pytest.mark.parametrize("page", [p for p in PAGES if p.name not in OTHERS], ids=lambda p: p.name)
def test_a_number_with_a_unit_is_measured_or_a_limit(page: Path) -> None:
    if page.name == "CHANGELOG.md":
        return
    said = set(claims(page.read_text("utf-8")))
    assert said <= LIMITS.keys(), "link it to its report (scripts/figures.py), or name its limit"


@pytest.mark.parametrize("said", LIMITS)
def test_limits_are_those_of_the_code(said: str) -> None:
    assert float(said.split(maxsplit=1)[0].replace(",", "")) == pytest.approx(LIMITS[said])


def test_texts_of_the_page_claim_no_measurement() -> None:
    for path in (ROOT / "web" / "src" / "languages").glob("*.json"):
        texts = json.loads(path.read_text("utf-8"))
        assert {
            claim for text in texts for claim in claims(f"{text} {texts[text]}")
        } <= LIMITS.keys()


@pytest.mark.parametrize("report", sorted(REPORTS.glob("*.md")), ids=lambda path: path.name)
def test_a_report_names_the_command_that_makes_it_or_the_commit_that_has_it(report: Path) -> None:
    text = report.read_text("utf-8")
    modules = re.findall(r"python -m ((?:evaluation|scripts)[\w.]*\w)", text)
    targets = re.findall(r"`make ([a-z-]+)", text)
    makefile = (ROOT / "Makefile").read_text("utf-8")
    assert (
        re.search(r"commit [0-9a-f]{8}\b", text)
        or any((ROOT / f"{name.replace('.', '/')}.py").exists() for name in modules)
        or any(re.search(rf"(?m)^{name}:", makefile) for name in targets)
    )


def test_a_figure_is_rounded_as_it_is_written(tmp_path: Path) -> None:
    reports = tmp_path / "evaluation" / "reports"
    reports.mkdir(parents=True)
    (reports / "a.json").write_text(json.dumps({"figures": {"x": 1234.56, "y": -0.0044}}))
    page = tmp_path / "README.md"
    link = "(evaluation/reports/a.md "
    text = f'[9.9 MB]{link}"x") and [0.001]{link}"y"), [more]{link}"x")'
    assert (
        rendered(page, text) == f'[1,234.6 MB]{link}"x") and [-0.004]{link}"y"), [more]{link}"x")'
    )
    with pytest.raises(InvalidInput, match="no figure 'z'"):
        measured(reports / "a.md", "z")
