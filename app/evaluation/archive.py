"""Store finished reports, one folder each; purge quotes of purged documents."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, cast, get_args

from app.core.errors import NotFound
from app.evaluation.dashboard import page_of
from app.evaluation.report import ANSWER, SEPARATOR, Report, to_csv, to_json, to_markdown

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

    def save(
        self, report_id: str, report: Report, created_at: str, *, own_documents: bool
    ) -> ReportEntry:
        """Write a report; on return it is listed and its outcomes are gone.

        Args:
            report_id: Id of the job.
            report: What was found.
            created_at: UTC, ISO 8601.
            own_documents: Its passages are of the libraries, named by doc_id, so that `forget`
                looks at them.
        """
        folder = self._folder / report_id
        folder.mkdir(parents=True, exist_ok=True)
        texts: Mapping[Format, str] = {
            "md": to_markdown(report),
            "csv": to_csv(report),
            "json": to_json(report, passages=True),
        }
        for kind, text in texts.items():
            (folder / f"report.{kind}").write_text(text, encoding="utf-8")
        entry = ReportEntry(report_id, report.title, created_at)
        row = {"title": entry.title, "created_at": entry.created_at, "own_documents": own_documents}
        _replace(folder / "entry.json", json.dumps(row))
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
        if (
            not _ID.fullmatch(report_id)
            or kind not in get_args(Format)
            or not (folder / "entry.json").is_file()
        ):
            raise NotFound(
                f"no evaluation report {report_id!r}; a run has one when its job is done"
            )
        if kind == "html":
            return page_of(self.read(report_id))
        return (folder / f"report.{kind}").read_text(encoding="utf-8")

    def read(self, report_id: str) -> dict[str, object]:
        """Return a report as JSON values.

        Raises:
            NotFound: There is no finished report of this id.
        """
        return cast("dict[str, object]", json.loads(self.text(report_id, "json")))

    def forget(self, alive: Callable[[str], bool]) -> int:
        """Remove what reports quote of deleted documents; return the number of texts.

        Scores stay: they say nothing of a text. Outcomes of runs that have not ended go too; those
        are asked again.

        Args:
            alive: Whether a doc_id is still in a library.
        """
        for path in self._folder.glob(f"*/{_OUTCOMES}"):
            path.unlink(missing_ok=True)
        gone = 0
        for entry in self._folder.glob("*/entry.json"):
            if not json.loads(entry.read_text(encoding="utf-8"))["own_documents"]:
                continue
            path = entry.with_name("report.json")
            content = json.loads(path.read_text(encoding="utf-8"))
            removed = sum(_redact(experiment, alive) for experiment in content["experiments"])
            if removed:
                _replace(path, json.dumps(content, indent=1, ensure_ascii=False) + "\n")
            gone += removed
        return gone


def _redact(experiment: dict[str, Any], alive: Callable[[str], bool]) -> int:
    """Empty previews and questions of deleted documents; return how many had text."""
    previews, texts = experiment["previews"], experiment["question_texts"]
    dead = {name for name in previews if _document(name) != ANSWER and not alive(_document(name))}
    for by_question in experiment["found"].values():
        for names in by_question.values():
            if dead.intersection(names):
                dead.update(
                    name for name in names if _document(name) == ANSWER
                )  # an answer quotes what it was made of
    asked = {
        question
        for question, documents in experiment["relevant"].items()
        if not all(map(alive, documents))
    }
    removed: int = sum(previews[name] != "" for name in dead) + sum(
        texts[question] != "" for question in asked
    )
    previews.update(dict.fromkeys(dead, ""))
    texts.update(dict.fromkeys(asked, ""))
    return removed


def _document(name: str) -> str:
    """Return the doc_id of a preview's name."""
    return name.partition(SEPARATOR)[0]


def _replace(path: Path, text: str) -> None:
    """Write a file whole or not at all."""
    part = path.with_suffix(".part")
    part.write_text(text, encoding="utf-8")
    part.replace(path)
