"""A capacity plan is arithmetic, and its measured figures are those of the reports."""

from __future__ import annotations

import json
from typing import Any

import pytest

from evaluation.benchmarks import scale_page
from evaluation.benchmarks.scale_page import Figure, plan, shown
from evaluation.lib.paths import REPORTS


def report(name: str) -> Any:  # noqa: ANN401  # of json
    return json.loads((REPORTS / f"{name}.json").read_text("utf-8"))


def carried(name: str, fit: str) -> float:
    (found,) = [one["at_wikipedia"] for one in report(name)["fits"] if one["name"] == fit]
    return float(found)


def value(mode: str, what: str, *given: int) -> float | None:
    (found,) = [row.value for row in plan(*given) if (row.mode, row.what) == (mode, what)]
    return found


def test_measured_figures_are_those_of_the_reports() -> None:
    expected = {
        "WORDS_P95_MS": carried("bulk", "bm25_p95_ms"),
        "TEXT_DISK_MB": carried("bulk", "disk_mb"),
        "FAISS_BYTES": report("ann")["steps"][-1]["bytes_each"],
        "SERVER_MB": report("start")["figures"]["memory after 100 questions MB"],
        "PASSAGES_PER_S": report("embed")["figures"]["squad passages/s"],
        "CATALOG_CHUNK_BYTES": report("load_shared")["figures"]["PostgreSQL, bytes a chunk"],
    }
    measured = {
        name: figure.value
        for name, figure in vars(scale_page).items()
        if isinstance(figure, Figure) and figure.mark == "measured"
    }
    assert measured == expected


def test_every_row_names_mark_and_source() -> None:
    marks = ("measured: ", "vendor: ", "assumed: ")
    for row in plan(10**9):
        assert all(part.startswith(marks) for part in row.source.split("; ")), row


def test_a_billion_by_hand() -> None:
    """4 bytes, 384 numbers, two copies and the vendor's half more are 4.6 TB."""
    assert value("shared", "memory of all nodes", 10**9) == pytest.approx(4608)
    assert value("shared", "search nodes of 128 GB, 1 TB", 10**9) == 45
    assert value("shared", "disk of all nodes", 10**9) == pytest.approx(4652)
    each = report("load_shared")["figures"]["PostgreSQL, bytes a chunk"]
    assert value("shared", "PostgreSQL, each server", 10**9) == pytest.approx(each)
    assert value("shared", "PostgreSQL, each server", 10**9, 768) == pytest.approx(each + 768)
    assert value("embedded", "memory", 10**9) is None


def test_a_small_library_needs_a_majority_of_nodes_and_fits_one_server() -> None:
    assert value("shared", "search nodes of 128 GB, 1 TB", 1_000_000, 384, 2) == 3
    assert value("shared", "search nodes of 128 GB, 1 TB", 1_000_000, 384, 1) == 1
    assert value("embedded", "memory", 1_000_000) == pytest.approx(0.52, abs=0.001)


def test_machines_share_the_embedding_and_another_dimension_has_no_speed() -> None:
    assert value("both", "embedding, 2 cores", 411_120) == pytest.approx(1)
    assert value("both", "embedding, 8 cores", 411_120, 384, 2, 4) == pytest.approx(0.25)
    assert value("both", "embedding, 2 cores", 411_120, 768) is None
    assert shown(plan(411_120, 768)[0]) == "not measured"
