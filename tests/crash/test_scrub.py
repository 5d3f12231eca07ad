"""What chromadb writes of memory it never used is zeroed before the store is searched."""

from __future__ import annotations

from pathlib import Path

import pytest

from app.index.dense.chroma.hnsw_files import HEADER
from app.index.options import IndexOptions
from app.index.store import IndexStore
from tests.unit.index.maintenance.test_reembedding import OLD, add, embed_live, own_rank_one


def tails(chroma: Path) -> list[bytes]:
    """What segment files hold beyond their elements."""
    found = []
    for header in chroma.rglob("header.bin"):
        _, _, _, elements, size, *_ = HEADER.unpack_from(header.read_bytes())
        found.append(header.with_name("data_level0.bin").read_bytes()[elements * size :])
        found.append(header.with_name("length.bin").read_bytes()[elements * 4 :])
    return found


@pytest.mark.timeout(120)
def test_unused_parts_are_zeroed_and_elements_stay(options: IndexOptions) -> None:
    with IndexStore(options, vector_store="foreground") as store:
        add(store, "walrus", "heron")
        embed_live(store)
    held = tails(options.chroma_dir)
    assert any(held)  # there is an unused part at all
    for level0 in options.chroma_dir.rglob("data_level0.bin"):  # as memory that was freed may look
        level0.write_bytes(b"secret" + bytes(level0.stat().st_size - 12) + b"secret")
    with IndexStore(options, vector_store="foreground") as store:
        assert not any(byte for tail in tails(options.chroma_dir) for byte in tail)
        own_rank_one(store, OLD)
        assert store.fsck.run().faults == ()
