"""Closed sets exist once: what derives from them holds every name, and the docs tell each."""

from __future__ import annotations

from pathlib import Path
from typing import get_args

import pytest

from app.answer.strategies import STRATEGIES
from app.core.types import (
    DocumentType,
    FileType,
    Fusion,
    Library,
    LibraryName,
    Mode,
    NoticeCode,
    Reasoning,
    Rerank,
    Scope,
    Strategy,
)
from app.ingest.options import Chunker
from app.ingest.parsers.formats import FORMATS
from app.retrieval.candidates import slots

ROOT = Path(__file__).parents[2]
DOCS = "\n".join(
    path.read_text("utf-8") for path in [*(ROOT / "docs").glob("*.md"), ROOT / "README.md"]
)


def test_what_derives_from_a_set_holds_all_of_it() -> None:
    assert get_args(LibraryName) == tuple(Library)
    assert get_args(Scope) == (*Library, "all")
    assert tuple(FORMATS) == get_args(FileType)
    assert set(STRATEGIES) == set(get_args(Strategy))
    assert all(slots(mode) > 0 for mode in get_args(Mode))


@pytest.mark.parametrize(
    "names", [Mode, Strategy, Fusion, Rerank, Reasoning, Scope, NoticeCode, DocumentType]
)
def test_the_docs_tell_every_name(names: object) -> None:
    missing = [name for name in get_args(names) if f"`{name}`" not in DOCS]
    assert missing == []


@pytest.mark.parametrize(
    ("axis", "names"),
    [("fusion", Fusion), ("rerank", Rerank), ("strategy", Strategy), ("chunker", Chunker)],
)
def test_the_table_of_axes_tells_every_value(axis: str, names: object) -> None:
    (row,) = [line for line in DOCS.splitlines() if line.startswith(f"| `{axis}` |")]
    assert [name for name in get_args(names) if f"`{name}`" not in row] == []
