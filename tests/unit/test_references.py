"""Pages, files and decisions that texts cite are in the repository."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
DECISIONS = ROOT / "docs" / "decisions"
INDEX = (DECISIONS / "README.md").read_text(encoding="utf-8")
TEXTS = (
    "*.md",
    "Makefile",
    "app/**/*.py",
    "docs/**/*.md",
    "evaluation/**/*.py",
    "scripts/**/*.py",
    "tests/**/*.py",
    "web/src/**/*.ts*",
)

NOT_READ = (ROOT / "CHANGELOG.md",)
"""History, and texts written for a test."""

ELSEWHERE = re.compile(
    r"\bDESIGN(?: \d|\b(?=[:.,)]))|\bREQUIREMENTS\b|\b(?:API|TREE)\.md\b|\bPart \d"
    r"|(?<!docs/)\bfacts/\w"
    r"|shared/(?:data|facts|design)|\w \(m\)[.,;]"
)
"""Pages that are in no checkout, by the names under which texts have cited them."""
CITED = re.compile(
    r"(?<![\w/.-])((?:docs|app|evaluation|scripts|tests|web/src)/[\w./-]+\.(?:md|py|tsx?|json"
    r"|ya?ml|csv))\b"
)
DECISION = re.compile(r"(?:\bADRs? |decisions/|\]\((?=\d{4}-))(\d{4})\b")
MADE = (
    "data/collections/", "app/api/static/", "web/src/api/schema.d.ts", "evaluation/reports/",
    "app/ingest/parsers/lyrics.py", "app/models/literal_reader.py",
    "app/api/routes/words.py", "app/storage/vectors/memory.py",
)  # fmt: skip
"""Files that a command makes, or that a recipe of docs/extending.md adds."""


def _texts() -> list[tuple[Path, str]]:
    files = {path for pattern in TEXTS for path in ROOT.glob(pattern)} - {Path(__file__), *NOT_READ}
    return [
        (path.relative_to(ROOT), path.read_text(encoding="utf-8"))
        for path in sorted(files)
        if path.is_file()
    ]


def _found(pattern: re.Pattern[str]) -> list[tuple[str, str]]:
    return [
        (str(path), match[match.lastindex or 0])
        for path, text in _texts()
        for match in pattern.finditer(text)
    ]


def test_no_text_cites_a_page_that_is_not_here() -> None:
    assert _found(ELSEWHERE) == []


def test_files_that_texts_name_exist() -> None:
    cited = [(path, name) for path, name in _found(CITED) if not name.startswith(MADE)]
    assert len(cited) > 100
    assert [(path, name) for path, name in cited if not (ROOT / name).exists()] == []


def test_decisions_that_texts_cite_exist() -> None:
    there = {path.name[:4] for path in DECISIONS.glob("[0-9]*.md")} | set(
        re.findall(r"\b\d{4}\b", INDEX)
    )
    cited = _found(DECISION)
    assert len(cited) > 30
    assert [(path, number) for path, number in cited if number not in there] == []


@pytest.mark.parametrize("path", sorted(DECISIONS.glob("[0-9]*.md")), ids=lambda path: path.name)
def test_a_decision_says_its_status_and_date_and_is_in_the_index(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert text.startswith(f"# {path.name[:4]}: ")
    assert re.search(r"^Status: \w", text, re.MULTILINE)
    assert re.search(r"\bDate: 20\d\d-\d\d-\d\d\b", text)
    assert f"]({path.name})" in INDEX


def test_the_index_names_no_page_that_is_gone() -> None:
    assert [
        name
        for name in re.findall(r"\]\((\d{4}-[a-z0-9-]+\.md)\)", INDEX)
        if not (DECISIONS / name).exists()
    ] == []
