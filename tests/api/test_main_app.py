"""`uvicorn app.main:app`: the server as other programs start it."""

from __future__ import annotations

from pathlib import Path

import pytest
from fastapi import FastAPI
from uvicorn.importer import import_from_string


def test_uvicorn_finds_the_application(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DATA_DIR", str(tmp_path))
    assert isinstance(import_from_string("app.main:app"), FastAPI)
    with pytest.raises(Exception, match="no_such"):
        import_from_string("app.main:no_such")
