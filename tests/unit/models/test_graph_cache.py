"""Graphs on disk: built once, whole or not at all, and not kept for ever."""

from __future__ import annotations

from pathlib import Path

import pytest

from app.models import graph
from app.models.graph import cached_graph


def test_cache_builds_once_and_again_when_damaged(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    built: list[int] = []

    def build() -> bytes:
        built.append(1)
        return b"a graph"

    assert cached_graph(tmp_path / "models", "key", "fp32", build) == b"a graph"
    assert cached_graph(tmp_path / "models", "key", "fp32", build) == b"a graph"
    assert len(built) == 1
    (kept,) = (tmp_path / "models").iterdir()
    content = bytearray(kept.read_bytes())
    content[-1] ^= 1
    kept.write_bytes(content)
    assert cached_graph(tmp_path / "models", "key", "fp32", build) == b"a graph"
    assert "damaged" in caplog.text
    assert len(built) == 2
    assert cached_graph(tmp_path / "models", "other", "fp32", build) == b"a graph"
    assert len(list((tmp_path / "models").iterdir())) == 2


def test_a_cache_that_cannot_be_written_only_costs_time(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "models").mkdir()
    target = tmp_path / "models"
    first = cached_graph(target, "key", "fp32", lambda: b"graph")
    (kept,) = target.iterdir()
    kept.unlink()
    kept.mkdir()
    (kept / "in the way").touch()
    assert cached_graph(target, "key", "fp32", lambda: b"graph") == first
    assert "could not be kept" in caplog.text
    assert [path.name for path in target.iterdir()] == [kept.name]


def test_graphs_of_another_build_go_when_one_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "0123456789abcdef.int8.graph").write_bytes(b"as versions before this named them")
    (tmp_path / "notes.txt").touch()
    cached_graph(tmp_path, "one", "int8", lambda: b"a graph")
    cached_graph(tmp_path, "two", "int8", lambda: b"another graph")
    of_this_build = {path.name for path in tmp_path.glob("*.graph")}
    assert len(of_this_build) == 2
    monkeypatch.setattr(graph, "BUILD", "of the next version")
    cached_graph(tmp_path, "one", "int8", lambda: b"a new graph")
    assert len(list(tmp_path.glob("*.graph"))) == 1
    assert of_this_build.isdisjoint(path.name for path in tmp_path.iterdir())
    assert (tmp_path / "notes.txt").exists()
