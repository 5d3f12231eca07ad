"""docs/scale.md holds what the reports hold."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from evaluation.benchmarks import scale_page
from evaluation.benchmarks.scale_page import plan
from evaluation.benchmarks.vectors import LAWS
from evaluation.lib.growth import fit
from evaluation.lib.reports import REPORTS

BULK = {
    "machine": {"cores": 2},
    "figures": {},
    "steps": [
        {"chunks": 1000, "text_mb": 0.5, "index_cpu_s": 1.2, "disk_mb": 3, "index_pss_mb": 150,
         "bm25_p50_ms": 0.4, "bm25_p95_ms": 0.5,
         "open_s": 0.01},
        {"chunks": 2000, "text_mb": 1.0, "index_cpu_s": 2.4, "disk_mb": 6, "index_pss_mb": 160,
         "bm25_p50_ms": 0.6, "bm25_p95_ms": 0.9,
         "open_s": 0.02, "full_p50_ms": 5.0, "full_p95_ms": 9.0},
    ],
    "fits": [
        {"name": name, "predicted": 11.0, "measured": 10.0, "at_wikipedia": at}
        for name, at in (("index_cpu_s", 7200.0), ("disk_mb", 20_000.0), ("bm25_p95_ms", 700.0), ("index_pss_mb", 480.0))
    ],
}  # fmt: skip


def test_the_page_holds_what_the_reports_hold() -> None:
    text = scale_page.PAGE.read_text("utf-8")
    assert text == scale_page.page(text), "run: python -m evaluation.benchmarks.scale_page"


def test_each_figure_of_the_playbook_names_its_report_or_is_marked_as_arithmetic() -> None:
    found = scale_page.rows()
    assert len(found) >= 15
    for what, _, source in found:
        names = re.findall(r"[a-z_]+\.md", source)
        assert names or source.startswith("arithmetic: "), what
        assert all((REPORTS / name).exists() for name in names), what


def test_the_error_budget_by_hand() -> None:
    """0.5 % of 30 days of 24 hours is 3.6 hours."""
    row = ("error budget at 99.5% of a month", "3.6 h", "arithmetic: 0.5% of 720 h")
    assert row in scale_page.rows()


def test_figures_come_from_the_reports(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("evaluation.lib.reports.REPORTS", tmp_path)
    assert "No report" in scale_page.tables()
    (tmp_path / "bulk.json").write_text(json.dumps(BULK))
    (tmp_path / "embed.json").write_text(json.dumps({"figures": {"squad passages/s": 100.0}}))
    tables = scale_page.tables()
    assert "| 2.0 processor hours, at least 1.0 h |" in tables
    assert "| vectors, built-in model | 3 days |" in tables
    assert "at most 10% off" in tables
    assert (
        "| 2,000 | 2 s | 0 min | 6 MB | 160 MB | 0.6 / 0.9 ms | 5.0 / 9.0 ms | 0.02 s |" in tables
    )


def test_the_faiss_store_is_carried_on_from_its_report(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By hand: 100 bytes are 2.5 GB; 2 ms and 0.6 ms a million are 17 ms at 25 million."""
    steps = [
        {"vectors": millions * 1e6, "bytes_each": 100.0, "dense recall@10": 0.98,
         "dense_p50_ms": 2 + 0.6 * millions, "dense_p95_ms": 9.0, "bm25_p95_ms": 4.0 * millions}
        for millions in (0.1, 0.3, 1.0)
    ]  # fmt: skip
    fits = fit(LAWS, steps, "vectors")
    assert [one.predicted for one in fits] == pytest.approx([100.0, 2.6, 4.0])
    assert [one.at_wikipedia for one in fits] == pytest.approx([100.0, 17.0, 100.0])
    kept = [
        {"name": one.name, "at_wikipedia": one.at_wikipedia, "predicted": 1.0, "measured": 1.0}
        for one in fits
    ]
    (tmp_path / "bulk.json").write_text(json.dumps(BULK))
    (tmp_path / "embed.json").write_text(json.dumps({"figures": {"squad passages/s": 100.0}}))
    (tmp_path / "ann.json").write_text(json.dumps({"fits": kept, "steps": steps}))
    monkeypatch.setattr("evaluation.lib.reports.REPORTS", tmp_path)
    tables = scale_page.tables()
    assert "| memory of all vectors | 2.5 GB | 100 bytes each at 1,000,000 |" in tables
    assert "| search by vectors, p50 | 17 ms | fit |" in tables
    assert "| search by words, questions, p95 | 100 ms | fit |" in tables


def test_links_of_the_page_lead_somewhere() -> None:
    text = scale_page.PAGE.read_text("utf-8")
    targets = [part.split(")", 1)[0] for part in text.split("](")[1:]]
    assert targets
    assert [target for target in targets if not (scale_page.PAGE.parent / target).exists()] == []


def value(mode: str, what: str, chunks: int) -> float | None:
    (found,) = [row[2] for row in plan(chunks) if row[:2] == (mode, what)]
    return found


def test_every_row_of_the_plan_names_mark_and_source() -> None:
    marks = ("measured: ", "vendor: ", "assumed: ")
    for *_, source in plan(10**9):
        assert all(part.startswith(marks) for part in source.split("; ")), source


def test_a_billion_by_hand() -> None:
    """4 bytes, 384 numbers, two copies and the vendor's half more are 4.6 TB; words are 4 TB.

    That is 84.1 nodes of which 102 GB are used.
    """
    assert value("shared", "memory of all nodes, vectors", 10**9) == pytest.approx(4608)
    assert value("shared", "memory of all nodes, words", 10**9) == pytest.approx(4000)
    assert value("shared", "search nodes of 128 GB, 1 TB", 10**9) == 85
    assert value("shared", "shards of a collection", 10**9) == 170
    assert value("shared", "shards of a collection", 10**6) == 6
    assert value("shared", "disk of all nodes", 10**9) == pytest.approx(4652)
    each = json.loads((REPORTS / "load_shared.json").read_text("utf-8"))["figures"]
    assert value("shared", "PostgreSQL, each server", 10**9) == pytest.approx(
        each["PostgreSQL, bytes a chunk"]
    )
    assert value("embedded", "memory", 10**9) is None


def test_a_small_library_needs_a_majority_of_nodes_and_fits_one_server() -> None:
    assert value("shared", "search nodes of 128 GB, 1 TB", 1_000_000) == 3
    start = json.loads((REPORTS / "start.json").read_text("utf-8"))["figures"]
    server = start["memory after 100 questions MB"] / 1000
    assert value("embedded", "memory", 1_000_000) == pytest.approx(server + 0.086, abs=0.001)
