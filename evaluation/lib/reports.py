"""Share what every program has: folders, options, progress, and how a report is written."""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import platform
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, is_dataclass
from pathlib import Path
from typing import Any

import numpy as np

from app.core.ids import checkout_sha
from app.evaluation.metrics import bootstrap_interval
from app.evaluation.report import EvaluationReport, ReportProvenance, to_csv, to_json, to_markdown

ROOT = Path(__file__).resolve().parents[2]
REPORTS = ROOT / "evaluation" / "reports"
DATA = Path(os.environ.get("DATA") or ROOT / "data" / "collections")
"""Folder of the collections (docs/evaluation.md)."""
SEED = 7
_BEGUN_S = time.monotonic()
COLLECTIONS = {
    "data": (DATA, "folder of the collections"),
    "cache": (Path(tempfile.gettempdir()) / "documind-vectors", "vectors kept between runs"),
}
"""Options of programs that read collections."""
PARTS = {
    "dir": (None, "where it works; what was done there is kept", Path),
    "minutes": (0.0, "stop after so long, to go on later; 0: never"),
}
"""Options of programs that work in parts."""


def options(description: str | None, **named: Sequence[object]) -> argparse.Namespace:
    """Parse the command line.

    Args:
        description: The module's docstring, shown as it is written.
        named: Default and help of each option, then its choices, or its type where the default
            does not say it. `False` makes a flag, a tuple takes several values, `()` also in
            several options.
    """
    parser = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    for name, (default, said, *more) in named.items():
        how: dict[str, Any] = {"action": "store_true"}
        if default == ():
            how = {"action": "extend", "nargs": "+"}
        elif isinstance(default, tuple):
            how = {"type": type(default[0]), "nargs": "+"}
        elif default is not False:
            how = {"type": str if default is None else type(default)}
        if more:
            how |= {"type": more[0]} if isinstance(more[0], type) else {"choices": more[0]}
        how["default"] = list(default) if isinstance(default, tuple) else default
        parser.add_argument(f"--{name.replace('_', '-')}", help=str(said), **how)
    return parser.parse_args()


def say(line: str) -> None:
    """Tell the person at the terminal how far it is."""
    print(f"  {line}", file=sys.stderr, flush=True)


def hash_of(*settings: object) -> str:
    """Return 16 hex digits of settings: dataclasses, or anything that JSON can write."""

    def plain(one: object) -> object:
        return asdict(one) if is_dataclass(one) and not isinstance(one, type) else str(one)

    text = json.dumps(settings, sort_keys=True, default=plain)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def digest_of(path: Path) -> str:
    """Return the SHA-256 of a file, or of the names and contents of a folder's files."""
    digest = hashlib.sha256()
    for file in sorted(path.rglob("*")) if path.is_dir() else [path]:
        if file.is_file():
            digest.update(f"{file.relative_to(path) if path.is_dir() else ''}\0".encode())
            digest.update(hashlib.sha256(file.read_bytes()).digest())
    return digest.hexdigest()


@dataclass(frozen=True, slots=True)
class Line:
    """One figure and its limit."""

    what: str
    measured: float
    limit: float = 0
    unit: str = ""
    at_most: bool = True
    """False when the figure must reach the limit instead."""

    @property
    def holds(self) -> bool:
        return self.measured <= self.limit if self.at_most else self.measured >= self.limit


def quantile(values: Sequence[float], share: float) -> float:
    """Return the value below which this share lies."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(len(ordered) * share))]


def share(flags: Sequence[bool | float]) -> str:
    """Return a mean with its 95 % bootstrap interval."""
    if not flags:
        return "-"
    found = bootstrap_interval(np.asarray(flags, dtype=np.float64), seed=SEED, resamples=2000)
    return f"{found.mean:.3f} ({found.low:.3f} to {found.high:.3f})"


def table(head: Sequence[str], rows: Sequence[Sequence[object]]) -> list[str]:
    """Return the lines of a table in Markdown; numbers have four digits."""
    lines = [f"| {' | '.join(head)} |", "|---" * len(head) + "|"]
    return lines + [f"| {' | '.join(map(_written, row))} |" for row in rows]


def _written(value: object) -> str:
    if not isinstance(value, int | float):
        return str(value)
    return f"{value:,.0f}" if value >= 1000 or float(value).is_integer() else f"{value:.4g}"


def instructions() -> str:
    """Return the processor's best int8 instructions as Linux names them, or empty.

    The embedder is three times as fast with VNNI, so any other work then costs more in comparison.
    """
    try:
        flags = Path("/proc/cpuinfo").read_text("utf-8").split()
    except OSError:
        return ""
    known = ("avx512_vnni", "avx_vnni", "i8mm", "asimddp", "avx2")
    return next((name for name in known if name in flags), "")


def report(name: str) -> dict[str, Any]:
    """Return a report as its program wrote it, empty when it was not made yet."""
    path = REPORTS / f"{name}.json"
    found: dict[str, Any] = json.loads(path.read_text("utf-8")) if path.exists() else {}
    return found


def publish(name: str, record: object, page: str) -> None:
    """Write `NAME.json` and `NAME.md` under evaluation/reports/, and print the page."""
    REPORTS.mkdir(parents=True, exist_ok=True)
    text = json.dumps(record, indent=1, ensure_ascii=False) + "\n"
    (REPORTS / f"{name}.json").write_text(text, encoding="utf-8")
    (REPORTS / f"{name}.md").write_text(page, encoding="utf-8")
    print(page)


def write(
    name: str,
    title: str,
    remarks: Sequence[str],
    lines: Sequence[Line],
    figures: Mapping[str, float],
    command: str,
    *,
    tables: Sequence[str] = (),
    aside: Mapping[str, float] | None = None,
    extra: Mapping[str, object] | None = None,
    made: ReportProvenance | None = None,
    sets: Sequence[Path] = (),
    earlier: Mapping[str, Any] | None = None,
) -> int:
    """Publish a report with its commit and seconds; return 0 if the limits hold, else 1.

    Args:
        name: Of both files.
        title: Of the page.
        remarks: Lines under the title.
        lines: Figures that have limits.
        figures: Those without.
        command: Makes it again.
        tables: Lines of Markdown below the limits.
        aside: Figures that stand in the JSON file alone, since tables show them or few ask.
        extra: Further keys of the JSON file.
        made: What it was made from, where a report depends on models and settings.
        sets: Files and folders with the questions and texts that it judges by.
        earlier: The record whose figures are written again: commit, seconds and sets are its own.
    """
    shown, hidden = (
        {key: float(f"{value:.4g}") for key, value in found.items()}
        for found in (figures, aside or {})
    )
    rows = [
        {**asdict(line), "measured": float(f"{line.measured:.4g}"), "holds": line.holds}
        for line in lines
    ]
    cores, fastest = os.cpu_count() or 0, instructions()
    page = [f"# {title}", "", *remarks]
    page += ["", "| | measured | limit | holds |", "|---|---|---|---|"] if lines else []
    page += [
        f"| {line.what} | {line.measured:.4g} {line.unit} | {'<=' if line.at_most else '>='}"
        f" {line.limit:.4g} | {'yes' if line.holds else 'no'} |"
        for line in lines
    ]
    page += ["", *tables] if tables else []
    page += ["", "| measured, without a limit | |", "|---|---|"] if shown else []
    page += [f"| {key} | {value:g} |" for key, value in shown.items()]
    origin = _origin(sets) if earlier is None else {key: earlier.get(key) for key in _ORIGIN}
    page += ["", f"Made by `{command}` on {cores} cores{', ' + fastest if fastest else ''}."]
    if origin["commit"]:
        page += [f"At commit {origin['commit'][:12]}, in {origin['seconds']} s."]
    if origin["sets"]:
        said = (f"{name} {digest[:12]}" for name, digest in origin["sets"].items())
        page += [f"Sets by SHA-256: {', '.join(said)}."]
    page += [f"Made from {made.in_words()}."] if made else []
    machine = {"python": platform.python_version(), "cores": cores, "instructions": fastest}
    record = {
        "title": title,
        "command": command,
        **origin,
        "lines": rows,
        "figures": shown | hidden,
        "machine": machine,
    }
    record |= {"provenance": asdict(made)} if made else {}
    publish(name, record | dict(extra or {}), "\n".join([*page, ""]))
    return 0 if all(line.holds for line in lines) else 1


_ORIGIN = ("commit", "seconds", "sets")


def _origin(sets: Sequence[Path]) -> dict[str, Any]:
    """Return of which commit the figures are, how long they took, and which sets judged."""
    found = {one.name: digest_of(one) for one in sets if one.exists()}
    return {"commit": checkout_sha(), "seconds": round(time.monotonic() - _BEGUN_S), "sets": found}


def write_arms(report: EvaluationReport, name: str) -> None:
    """Write the report of a study that compares arms as Markdown, CSV and JSON; print it."""
    page = f"{page_of_arms(report)}\nMade by `python -m evaluation.studies.{name}`.\n"
    for suffix, text in ((".md", page), (".csv", to_csv(report)), (".json", to_json(report))):
        (REPORTS / f"{name}{suffix}").write_text(text, encoding="utf-8")
    print(page)


def page_of_arms(report: EvaluationReport) -> str:
    """Return a report with all measures, or of several collections with a column for each.

    A column has an arm's mean and, where they differ by more than chance (Holm), how far it is
    from the baseline. The CSV beside it has intervals and the other measures.
    """
    first, *more = report.experiments
    if not more:
        return to_markdown(report)
    columns = []
    for experiment in report.experiments:
        apart = {one.arm: one for one in experiment.comparisons if one.significant}
        columns.append(
            [
                f"{arm.measures[experiment.measure].mean:.3f}"
                + (f" ({apart[arm.name].difference.mean:+.3f})" if arm.name in apart else "")
                for arm in experiment.arms
            ]
        )
    head = (first.measure, *(f"{one.collection} ({one.questions})" for one in report.experiments))
    lines = [f"# {report.title}", "", *report.remarks]
    lines += [
        f"In brackets the questions, and the difference to {first.baseline} where chance hardly"
        " explains it.",
        "",
        *table(head, [(arm.name, *of) for arm, *of in zip(first.arms, *columns, strict=True)]),
    ]
    if report.figures:
        lines += ["", *table(("figure", "value"), list(report.figures.items()))]
    return "\n".join([*lines, "", f"Made from {report.provenance.in_words()}.", ""])
