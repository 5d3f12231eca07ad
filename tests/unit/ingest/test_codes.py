"""Codes: with the vectors in one run, afterwards where another model embeds, and none in a library that is too large."""

from __future__ import annotations

import pytest

from app.core.cancel import CancelToken
from app.core.errors import Cancelled
from app.core.types import Library
from app.ingest.embedding import CodeBackfill, VectorBackfill
from app.ingest.options import IngestOptions
from tests.fakes.embedders import HashEmbedder
from tests.fakes.encoders import HashEncoder
from tests.stores import OpenWriter
from tests.unit.ingest.test_embedding import filled

PUBLIC = Library.PUBLIC
TEXTS = [f"text about topic {n}. It has a second sentence." for n in range(9)]


def _backfill(writer: OpenWriter, encoder: HashEncoder, most: int = 100) -> CodeBackfill:
    return CodeBackfill(writer.opened.codes, encoder, writer.opened.catalog, most)


def test_one_run_makes_vectors_and_codes() -> None:
    writer, embedder = filled(TEXTS, 384), HashEmbedder(384)
    codes = _backfill(writer, encoder := HashEncoder(embedder))
    VectorBackfill(writer, embedder, IngestOptions(embed_batch=4), codes).run(PUBLIC)
    assert len(codes.store.codes(range(100))) == len(TEXTS)
    assert encoder.encoded == []


def test_another_models_vectors_get_their_codes_afterwards() -> None:
    writer, encoder = filled(TEXTS), HashEncoder(HashEmbedder(384))
    codes = _backfill(writer, encoder)
    told: list[tuple[int, int]] = []
    VectorBackfill(writer, HashEmbedder(64), IngestOptions(embed_batch=4), codes).run(
        PUBLIC, code_progress=lambda done, of: told.append((done, of))
    )
    assert sorted(encoder.encoded) == sorted(TEXTS)
    assert told == [(9, 9)]
    assert not codes.missing(PUBLIC)
    assert codes.run(PUBLIC) == 0


@pytest.mark.parametrize("most", [0, 8])
def test_a_library_that_is_too_large_has_none(most: int) -> None:
    writer, embedder = filled(TEXTS, 384), HashEmbedder(384)
    codes = _backfill(writer, HashEncoder(embedder), most)
    VectorBackfill(writer, embedder, IngestOptions(), codes).run(PUBLIC)
    assert codes.store.codes(range(100)) == {}
    assert not codes.missing(PUBLIC)


def test_codes_can_be_cancelled() -> None:
    writer, encoder = filled(TEXTS), HashEncoder(HashEmbedder(384))
    cancel = CancelToken()
    cancel.cancel()
    with pytest.raises(Cancelled):
        _backfill(writer, encoder).run(PUBLIC, cancel=cancel)
