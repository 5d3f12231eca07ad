"""A report says of which commit and sets its figures are."""

import json
from pathlib import Path

import pytest

from app.core.ids import checkout_sha
from evaluation.lib import reports


def test_a_report_names_its_commit_and_sets(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reports, "REPORTS", tmp_path)
    questions = tmp_path / "questions.jsonl"
    questions.write_text("{}\n", encoding="utf-8")

    reports.write("quality", "Quality", [], [], {}, "make quality", sets=[questions])

    record = json.loads((tmp_path / "quality.json").read_text("utf-8"))
    page = (tmp_path / "quality.md").read_text("utf-8")
    assert record["commit"] == checkout_sha()
    assert record["sets"] == {"questions.jsonl": reports.digest_of(questions)}
    assert f"Sets by SHA-256: questions.jsonl {reports.digest_of(questions)[:12]}." in page


def test_a_page_that_is_written_again_keeps_its_origin(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reports, "REPORTS", tmp_path)
    earlier = {"commit": "0123456789abcdef", "seconds": 7, "sets": {"squad": "f" * 64}}

    reports.write("quality", "Quality", [], [], {}, "make quality", earlier=earlier)

    page = (tmp_path / "quality.md").read_text("utf-8")
    assert "At commit 0123456789ab, in 7 s." in page
    assert "squad ffffffffffff" in page


def test_the_digest_of_a_folder_follows_names_and_contents(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("one", encoding="utf-8")
    first = reports.digest_of(tmp_path)
    (tmp_path / "a.txt").rename(tmp_path / "b.txt")
    renamed = reports.digest_of(tmp_path)
    (tmp_path / "b.txt").write_text("two", encoding="utf-8")

    assert len({first, renamed, reports.digest_of(tmp_path)}) == 3
