"""A library moves between files and the engine, both ways; nothing is embedded and nothing changes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from app.core.types import Library, PassageCode
from app.storage.maintenance.bundle_format import (
    BATCH_DOCUMENTS,
    CodeSizes,
    Documents,
    code_bytes,
    read_blocks,
)
from app.storage.options import IndexOptions
from app.storage.store import IndexStore
from tests.unit.storage.drafts import make_draft, unit_rows
from tests.unit.storage.maintenance import test_bundle as suite
from tests.unit.storage.test_writer import embed_all

PAPERS = Library.PAPERS
test_codes_travel_with_their_chunks = suite.test_codes_travel_with_their_chunks
test_an_interrupted_import_goes_on = suite.test_an_interrupted_import_goes_on
test_another_model_is_refused = suite.test_another_model_is_refused
source = suite.source


def in_files(path: Path) -> IndexOptions:
    return IndexOptions(path, path / "chroma", tantivy_threads=1)


@pytest.fixture(autouse=True)
def fewer_documents(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make the suite's library two blocks long and no longer."""
    monkeypatch.setattr(suite, "N", BATCH_DOCUMENTS + 10)


@pytest.fixture
def target(tmp_path: Path, database_url: str, engine_url: str) -> Iterator[IndexStore]:
    """A store over PostgreSQL and the engine; the suite's `source` is one in files."""
    options = replace(in_files(tmp_path / "target"), database_url=database_url)
    with IndexStore(replace(options, search_url=engine_url), vector_store="foreground") as opened:
        yield opened


@pytest.fixture
def store(tmp_path: Path) -> Iterator[IndexStore]:
    """A store in files."""
    with IndexStore(in_files(tmp_path / "files"), vector_store="off") as opened:
        yield opened


def found(store: IndexStore) -> list[object]:
    """The chunks that questions find, by what they are."""
    vectors = [store.vectors.search(PAPERS, query, 10) for query in unit_rows(10, seed=3)]
    words = [store.lexical.search(PAPERS, text, 1) for text in ("whistle", "schwarz", "paint")]
    return [
        [(chunk.doc_id, chunk.ordinal) for chunk in store.catalog.chunks_by_id(PAPERS, ids)]
        for ids in ([hit.chunk_id for hit in hits] for hits in (*vectors, *words))
    ]


@dataclass(frozen=True, slots=True)
class Held:
    """What a bundle holds of a document."""

    text: str
    language: str
    vectors: Mapping[int, bytes]
    """By number of the chunk."""
    code_sizes: Sequence[CodeSizes]
    codes: bytes


def contents(bundle: Path) -> Mapping[str, Held]:
    """Return what a bundle holds of each document, by id."""
    found: dict[str, Held] = {}
    width = 0
    for block in read_blocks(bundle, 1 << 30):
        record = block.record
        if record.kind == "header" and record.fingerprint:
            width = 2 * record.fingerprint.dimension
        if not isinstance(record, Documents):
            continue
        at, code_at = 0, width * sum(len(one.vectors) for one in record.documents)
        for one in record.documents:
            end = at + width * len(one.vectors)
            code_end = code_at + sum(sum(code_bytes(sizes)) for sizes in one.codes)
            rows = [block.payload[row : row + width] for row in range(at, end, width or 1)]
            vectors = dict(zip(one.vectors, rows, strict=True))
            codes = block.payload[code_at:code_end]
            found[one.doc_id] = Held(one.text, one.language, vectors, one.codes, codes)
            at, code_at = end, code_end
    return found


def test_a_library_comes_back_as_it_went(
    store: IndexStore, target: IndexStore, tmp_path: Path
) -> None:
    texts = {
        "de": "Die Feder ist schwarz und die Tinte ist auch schwarz gewesen. " * 3,
        "painter": "the painter paints a wall " * 5,
        **{f"walrus {i}": f"walrus {i} whistles in the wind {i % 3}. " * 4 for i in range(9)},
    }
    for key, text in texts.items():
        draft = make_draft(key, text)
        language = "de" if key == "de" else "en"
        store.writer.write([replace(draft, metadata=replace(draft.metadata, language=language))])
    embed_all(store)
    store.codes.write_codes(
        {
            chunk.chunk_id: PassageCode(bytes([i]) * 384, bytes([i]) * 16)
            for i, chunk in enumerate(store.codes.pending_codes(PAPERS, 100))
        }
    )
    there, back, end = (tmp_path / name for name in ("there", "back", "end"))
    store.bundler.export(PAPERS, there)
    assert target.bundler.load(there).vectors == 22
    target.bundler.export(PAPERS, back)
    with IndexStore(in_files(tmp_path / "again"), vector_store="off") as again:
        again.bundler.load(back)
        again.bundler.export(PAPERS, end)
        assert found(store) == found(target) == found(again)
        assert target.lexical.languages(PAPERS) == again.lexical.languages(PAPERS) == ("en", "de")
        assert again.fsck.run().faults == target.fsck.run().faults == ()
    assert contents(there) == contents(back) == contents(end)
    assert sorted(one.language for one in contents(end).values()) == ["de"] + 10 * ["en"]
    assert sum(len(one.code_sizes) for one in contents(end).values()) == 20
