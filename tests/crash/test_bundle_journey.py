"""A library's journey in a file, on which the importing process is killed: nothing is lost, and both stores find the same."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from app.core.types import Library
from app.storage.options import IndexOptions
from app.storage.store import IndexStore
from evaluation.lib.reports import ROOT
from tests.unit.storage.drafts import FINGERPRINT, make_draft, unit_rows
from tests.unit.storage.test_writer import embed_all

PAPERS = Library.PAPERS
DOCUMENTS, QUESTIONS = 700, 100

IMPORT = """
import sys
from pathlib import Path
from app.core.types import Library
from app.storage.options import IndexOptions
from app.storage.store import IndexStore
data = Path(sys.argv[1])
with IndexStore(IndexOptions(data, data / "chroma"), vector_store="off") as store:
    told = lambda done, total: print(done, flush=True)
    store.bundler.load(Path(sys.argv[2]), Library.PAPERS, told)
"""


def options_at(data: Path) -> IndexOptions:
    return IndexOptions(data, data / "chroma", tantivy_threads=1)


def found(store: IndexStore) -> list[list[tuple[str, int]]]:
    """The chunks that questions find by exact vectors, by Chroma's graph and by words."""
    (collection,) = store.vector_stores[PAPERS].collections()
    ids: list[list[int]] = []
    for query in unit_rows(QUESTIONS, seed=3):
        ids.append([hit.chunk_id for hit in store.vectors.search(PAPERS, query, 10)])
        ids.append(list(store.vector_stores[PAPERS].search(collection, query, 1)))
    ids += [
        [hit.chunk_id for hit in store.lexical.search(PAPERS, f"walrus {i}", 1)]
        for i in range(QUESTIONS)
    ]
    return [
        [(chunk.doc_id, chunk.ordinal) for chunk in store.catalog.chunks_by_id(PAPERS, some)]
        for some in ids
    ]


def test_a_killed_import_goes_on_and_both_stores_find_the_same(tmp_path: Path) -> None:
    bundle = tmp_path / "library.documind"
    with IndexStore(options_at(tmp_path / "source"), vector_store="foreground") as source:
        source.writer.write(
            [
                make_draft(f"{i}.txt", f"walrus {i} whistles in wind {i % 3}")
                for i in range(DOCUMENTS)
            ]
        )
        embed_all(source)
        before, counts = found(source), source.catalog.counts(PAPERS)
        exported = source.bundler.export(PAPERS, bundle)
    command = [sys.executable, "-c", IMPORT, str(tmp_path / "target"), str(bundle)]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        process.stdout.readline()
        process.kill()
    with IndexStore(options_at(tmp_path / "target"), vector_store="foreground") as target:
        assert 0 < target.catalog.counts(PAPERS).documents < exported.documents
        target.bundler.load(bundle)
        assert target.catalog.counts(PAPERS) == counts
        assert target.catalog.fingerprint(PAPERS) == FINGERPRINT
        after = found(target)
        assert sum(one == two for one, two in zip(before, after, strict=True)) >= 0.99 * len(before)
        assert target.fsck.run().faults == ()
