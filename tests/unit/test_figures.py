"""What README.md and docs measure is rendered from a report."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from app.core.errors import InvalidInput
from scripts.figures import FIGURE, PAGES, measured, rendered
from scripts.reports import ROOT

REPORTS = ROOT / "evaluation" / "reports"


def test_figures_of_the_pages_are_those_of_the_reports() -> None:
    texts = {page: page.read_text("utf-8") for page in PAGES}
    assert sum(len(FIGURE.findall(text)) for text in texts.values()) >= 5
    for page, text in texts.items():
        assert text == rendered(page, text), f"{page.name}: run python -m scripts.figures"


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
