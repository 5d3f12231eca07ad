"""Readiness while the files under a running server go away."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.api.conftest import LIBRARY, Site


def catalog(data: Path) -> Path:
    return data / "catalog.sqlite3"


def segment(data: Path) -> Path:
    return next((data / "tantivy" / "papers").glob("*.store"))


def cut(path: Path, size: int) -> None:
    os.truncate(path, size)


def exchange(path: Path) -> None:
    shutil.copy(path, path.with_suffix(".copy"))
    path.with_suffix(".copy").replace(path)


GONE: dict[str, tuple[str, Callable[[Path], object]]] = {
    "catalog deleted": ("catalog", lambda data: catalog(data).unlink()),
    "catalog cut": ("catalog", lambda data: cut(catalog(data), 8192)),
    "catalog emptied": ("catalog", lambda data: cut(catalog(data), 0)),
    "another catalog in its place": ("catalog", lambda data: exchange(catalog(data))),
    "directory renamed": ("catalog", lambda data: data.rename(data.with_name("elsewhere"))),
    "lexical index deleted": (
        "lexical index of papers",
        lambda data: shutil.rmtree(data / "tantivy" / "papers"),
    ),
    "lexical index renamed": (
        "lexical index of public",
        lambda data: (data / "tantivy").rename(data / "other"),
    ),
    "its table cut": (
        "lexical index of papers",
        lambda data: cut(data / "tantivy" / "papers" / "meta.json", 10),
    ),
    "its words deleted": ("lexical index of papers", lambda data: segment(data).unlink()),
    "its words cut": (
        "lexical index of papers",
        lambda data: cut(segment(data), segment(data).stat().st_size - 5),
    ),
}


@pytest.mark.parametrize(("what", "damage"), GONE.values(), ids=GONE)
def test_a_server_whose_files_are_gone_is_not_ready(
    shop: Site, what: str, damage: Callable[[Path], object]
) -> None:
    assert shop.upload(*((name, text.encode()) for name, text in LIBRARY.items()))[0] == 201
    shop.services.store.database.checkpoint()
    assert shop.client.get("/health/ready").json() == {
        "status": "ready",
        "missing": [],
        "detail": "",
        "degraded": [],
    }
    damage(shop.settings.data_dir)
    reply = shop.client.get("/health/ready")
    assert reply.status_code == 503
    assert what in reply.json()["missing"]
    assert reply.json()["status"] == "failed"
    assert "start it again" in reply.json()["detail"]
    assert shop.client.get("/health/live").status_code == 200
