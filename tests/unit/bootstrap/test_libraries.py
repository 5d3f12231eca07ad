"""A library that refuses vectors keeps what it has."""

from __future__ import annotations

from pathlib import Path

import pytest

from app.bootstrap.libraries import Libraries
from app.core.trace import Trace
from app.core.types import Library, RawDocument
from app.ingest.options import IngestOptions
from app.ingest.parsers import DirectParser
from app.retrieval.request import RetrievalOptions, SearchRequest
from app.storage.catalog.changes import BuildState
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
            (outcome,) = libraries.runtime(PAPERS).pipeline.ingest(PAPERS, [COPPER])
            return outcome.status

        libraries = wired(usual)
        assert send(libraries) == "indexed"
        backfill = libraries.backfill(PAPERS)
        assert backfill is not None
        backfill.run(PAPERS)
        monkeypatch.setattr("app.ingest.pipeline.PARSER_EDITION", "reader of tomorrow")
        assert send(wired(IngestOptions(chunk_size=300))) == "unchanged"
        assert store.catalog.counts(PAPERS).embedded == 1
        assert send(libraries) == "replaced"


def test_a_library_whose_words_are_filled_again_says_so_at_every_search(tmp_path: Path) -> None:
    with IndexStore(IndexOptions(tmp_path, tmp_path / "chroma"), vector_store="off") as store:
        libraries = Libraries(
            store,
            lambda *_: None,
            DirectParser(IngestOptions()),
            IngestOptions(),
            RetrievalOptions(),
            None,
        )
        words = store.projector.words[PAPERS]

        def codes() -> list[str]:
            found = libraries.retrieve(SearchRequest("walrus?", PAPERS), Trace())
            return [notice.code for notice in found.notices]

        assert "search_degraded" not in codes()
        words.rebuilding = BuildState("rebuilding", 1, 3)
        assert "search_degraded" in codes()
