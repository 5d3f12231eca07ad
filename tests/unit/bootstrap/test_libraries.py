"""A library that refuses vectors keeps what it has."""

from __future__ import annotations

from pathlib import Path

import pytest

from app.bootstrap.libraries import Libraries
from app.core.types import Library, RawDocument
from app.ingest.names import IngestOptions
from app.ingest.parsers import DirectParser
from app.retrieval.request import RetrievalOptions
from app.storage.options import IndexOptions
from app.storage.store import IndexStore
from tests.fakes.embedders import HashEmbedder

PAPERS = Library.PAPERS
COPPER = RawDocument(
    "copper.txt", "copper.txt", b"Copper is a soft red metal. It melts at 1085 degrees Celsius."
)


def test_what_an_older_release_read_waits_until_the_library_takes_vectors(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    embedder, usual = HashEmbedder(), IngestOptions()
    with IndexStore(IndexOptions(tmp_path, tmp_path / "chroma"), vector_store="off") as store:

        def wired(options: IngestOptions) -> Libraries:
            return Libraries(
                store, lambda *_: embedder, DirectParser(options), options, RetrievalOptions(), None
            )

        def send(libraries: Libraries) -> str:
            (outcome,) = libraries.wired(PAPERS).pipeline.ingest(PAPERS, [COPPER])
            return outcome.status

        libraries = wired(usual)
        assert send(libraries) == "indexed"
        backfill = libraries.backfill(PAPERS)
        assert backfill is not None
        backfill.run(PAPERS)
        monkeypatch.setattr("app.ingest.pipeline.READ_AS", "reader of tomorrow")
        assert send(wired(IngestOptions(chunk_size=300))) == "unchanged"
        assert store.catalog.counts(PAPERS).embedded == 1
        assert send(libraries) == "replaced"
