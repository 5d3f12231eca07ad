"""Finished reports on disk: one folder each, as Markdown, CSV, JSON and a page that needs nothing from outside."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, cast, get_args

from app.core.errors import NotFound
from app.evaluation.dashboard import to_html
from app.evaluation.report import Report, to_csv, to_json, to_markdown

Format = Literal["json", "md", "csv", "html"]
_ID = re.compile(r"[A-Za-z0-9_-]{1,64}")
_OUTCOMES = "outcomes.jsonl"


@dataclass(frozen=True, slots=True)
class ReportEntry:
    """A finished report in a list."""

    id: str
    """Of the job that made it."""
    title: str
    created_at: str


class ReportArchive:
    """Reports under one folder; each is written whole before it is listed."""

    def __init__(self, folder: Path) -> None:
        """Keep reports under `folder`, which need not exist yet."""
        self._folder = folder

    def outcomes(self, report_id: str) -> Path:
        """Return where the outcomes of a run are kept until its report is made."""
        folder = self._folder / report_id
        folder.mkdir(parents=True, exist_ok=True)
        return folder / _OUTCOMES

    def save(self, report_id: str, report: Report, created_at: str) -> ReportEntry:
        """Write a report in every format; on return it is listed and its outcomes are gone."""
        folder = self._folder / report_id
        folder.mkdir(parents=True, exist_ok=True)
        texts: Mapping[Format, str] = {
            "md": to_markdown(report), "csv": to_csv(report), "html": to_html(report), "json": to_json(report, passages=True)
        }  # fmt: skip
        for kind, text in texts.items():
            (folder / f"report.{kind}").write_text(text, encoding="utf-8")
        entry = ReportEntry(report_id, report.title, created_at)
        part = folder / "entry.part"
        part.write_text(json.dumps({"title": entry.title, "created_at": entry.created_at}), encoding="utf-8")
        part.replace(folder / "entry.json")
        (folder / _OUTCOMES).unlink(missing_ok=True)
        return entry

    def list(self) -> list[ReportEntry]:
        """Return finished reports, newest first."""
        found = []
        for path in self._folder.glob("*/entry.json"):
            row = json.loads(path.read_text(encoding="utf-8"))
            found.append(ReportEntry(path.parent.name, str(row["title"]), str(row["created_at"])))
        return sorted(found, key=lambda entry: (entry.created_at, entry.id), reverse=True)

    def text(self, report_id: str, kind: Format) -> str:
        """Return a report in one format.

        Raises:
            NotFound: There is no finished report of this id.
        """
        folder = self._folder / report_id
        if not _ID.fullmatch(report_id) or kind not in get_args(Format) or not (folder / "entry.json").is_file():
            raise NotFound(f"no evaluation report {report_id!r}; a run has one when its job is done")
        return (folder / f"report.{kind}").read_text(encoding="utf-8")

    def read(self, report_id: str) -> dict[str, object]:
        """Return a report as JSON values.

        Raises:
            NotFound: There is no finished report of this id.
        """
        return cast("dict[str, object]", json.loads(self.text(report_id, "json")))
