"""What people and tools read in Chroma's rows."""

from pathlib import Path
from typing import Any

import chromadb
import pytest
from chromadb.config import Settings

from app.core.ids import fingerprint8
from app.core.types import Library, Metadata
from app.storage.options import IndexOptions
from app.storage.store import IndexStore
from tests.unit.storage.drafts import FINGERPRINT, make_draft, unit_rows

PAPERS = Library.PAPERS
COLLECTION = f"papers__{fingerprint8(FINGERPRINT)}"


def indexed(options: IndexOptions) -> None:
    """A document of three chunks with vectors; afterwards its title is corrected."""
    with IndexStore(options, vector_store="foreground") as store:
        draft = make_draft("report.txt", "Gates close at six. " * 30, chunks=3, title="The gates")
        store.writer.write([draft])
        store.writer.apply(PAPERS)
        store.writer.claim(PAPERS, FINGERPRINT)
        ids = [chunk.chunk_id for chunk in store.writer.pending_vectors(PAPERS, 10)]
        store.writer.write_vectors(PAPERS, ids, unit_rows(3))
        store.writer.apply(PAPERS)
        store.supervisor.initialise()
        store.writer.correct(PAPERS, draft.doc_id, Metadata("The gates of the park", (), 2026))
        store.writer.apply(PAPERS)
        store.supervisor.initialise()


def rows(path: Path) -> tuple[dict[str, Any], list[dict[str, Any]], list[str | None]]:
    """The collection's metadata, its rows' metadata and their texts."""
    client = chromadb.PersistentClient(str(path), settings=Settings(anonymized_telemetry=False))
    collection = client.get_collection(COLLECTION, embedding_function=None)
    found = collection.get(include=["metadatas", "documents"])
    return collection.metadata, [dict(row) for row in found["metadatas"] or []], found["documents"]


def test_rows_say_where_they_are_from(tmp_path: Path) -> None:
    indexed(IndexOptions(tmp_path, tmp_path / "chroma"))
    about, found, texts = rows(tmp_path / "chroma")
    assert about == {"embedding_model": FINGERPRINT.embedding_model}
    assert texts == [None] * 3
    for number, row in enumerate(found):
        assert row.pop("doc_id")
        assert row.pop("indexed_at")
        assert row == {
            "filename": "report.txt",
            "section": "body",
            "page": 1,
            "chunk_index": number,
        }


def test_with_their_text_they_have_a_title_which_follows_its_correction(tmp_path: Path) -> None:
    indexed(IndexOptions(tmp_path, tmp_path / "chroma", chroma_store_text=True))
    _, found, texts = rows(tmp_path / "chroma")
    assert [row["title"] for row in found] == ["The gates of the park"] * 3
    assert "".join(text or "" for text in texts) == "Gates close at six. " * 30


def test_rows_without_them_get_them_by_the_next_fill(tmp_path: Path) -> None:
    indexed(IndexOptions(tmp_path, tmp_path / "chroma"))
    options = IndexOptions(tmp_path, tmp_path / "chroma", chroma_store_text=True)
    with IndexStore(options, vector_store="foreground") as store:
        store.supervisor.refill("asked to rebuild")
    _, found, texts = rows(tmp_path / "chroma")
    assert [row["title"] for row in found] == ["The gates of the park"] * 3
    assert all(texts)


@pytest.mark.parametrize("with_text", [False, True])
def test_a_chunk_that_is_gone_has_no_stamp(tmp_path: Path, with_text: bool) -> None:
    options = IndexOptions(tmp_path, tmp_path / "chroma", chroma_store_text=with_text)
    indexed(options)
    with IndexStore(options, vector_store="foreground") as store:
        stamps = store.loader.stamps([10_000], with_text=with_text)
    assert stamps == [{"text": ""} if with_text else {}]
