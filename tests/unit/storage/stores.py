"""A store as each release left it, as SQL: `python -m tests.unit.storage.stores` writes the one of this schema.

Run it once when a schema is new, before the release; never again for an old one, which is what
people have on their disks.
"""

from __future__ import annotations

import sqlite3
import tempfile
from contextlib import closing
from pathlib import Path

from app.core.types import Heading, Labels, Library, Message
from app.storage.catalog.schema import SCHEMA_VERSION
from app.storage.options import IndexOptions
from app.storage.store import IndexStore
from tests.unit.storage.drafts import make_draft
from tests.unit.storage.test_state_stores import an_answer
from tests.unit.storage.test_writer import embed_all

FOLDER = Path(__file__).parent / "stores_sql"
TEXTS = {
    "a.txt": "Walruses whistle in the wind.",
    "b.txt": "Penguins parade past the pole.",
    "wiki:7": "Lions sleep at noon.",
}
AT = "2026-11-26T07:00:00Z"
HEADINGS = (Heading(0, 8, 1, ""),)
"""Of a.txt and b.txt from schema 0008 on; a heading's title is its text."""

LABELS = Labels(("Sea",), {"rating": 5, "due": "2026-02-01", "project": "Apollo"})
"""Of the same from schema 0009 on."""


def fill(store: IndexStore) -> None:
    """Write one of everything that a release must be able to read later."""
    for key in ("a.txt", "b.txt"):
        sha256 = store.writer.store_original(TEXTS[key].encode())
        store.writer.write(
            [make_draft(key, "An older revision.", authors=("Ann", "Bo"), year=2020)]
        )
        store.writer.write(
            [
                make_draft(
                    key,
                    TEXTS[key],
                    authors=("Ann", "Bo"),
                    year=2021,
                    has_original=True,
                    sha256=sha256,
                    headings=HEADINGS,
                    labels=LABELS,
                )
            ]
        )
    store.writer.write([make_draft("wiki:7", TEXTS["wiki:7"], library=Library.PUBLIC)])
    embed_all(store)
    embed_all(store, Library.PUBLIC)
    store.writer.write([make_draft("gone.txt", "Deleted.")])
    store.writer.delete(Library.PAPERS, make_draft("gone.txt", "").doc_id)
    job = store.jobs.create("ingest", {"files": ["a"]}, total=3, unit="chunks")
    assert job.state == "queued"
    store.answers.save(an_answer("kept"), {"answer_id": "kept", "answer": "Zürich", "at": AT})
    store.answers.add_feedback("kept", {"thumb": "up"})
    conversation = store.conversations.create("A talk", Library.PAPERS.value)
    store.conversations.append(
        conversation,
        [Message("user", "Who whistles?"), Message("assistant", "Walruses. [1]")],
        "kept",
    )


def dump(target: Path) -> None:
    """Write the catalog of a filled store as SQL."""
    with tempfile.TemporaryDirectory() as folder:
        options = IndexOptions(
            Path(folder), Path(folder) / "chroma", tantivy_threads=1, tantivy_heap_bytes=15_000_000
        )
        with IndexStore(options, vector_store="off") as store:
            fill(store)
        with closing(sqlite3.connect(Path(folder) / "catalog.sqlite3")) as connection:
            target.parent.mkdir(exist_ok=True)
            target.write_text("\n".join(connection.iterdump()) + "\n", encoding="utf-8")


if __name__ == "__main__":
    dump(FOLDER / f"{SCHEMA_VERSION}.sql")
