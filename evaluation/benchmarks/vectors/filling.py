"""Fill a library by the bulk path: real sentences as text, prepared rows as vectors."""

from __future__ import annotations

import json
import time
from pathlib import Path

import numpy as np

from app.core.types import Fingerprint, Library
from app.core.vectors import l2_normalise
from app.ingest.bulk import BulkIndexer, BulkOptions, BulkTask
from app.ingest.names import IngestOptions
from app.storage.store import IndexStore
from evaluation.benchmarks.bulk.growth import Figures
from evaluation.benchmarks.vectors.corpus import RealText

LIBRARY = Library.PUBLIC
_PAGE = 2000


def fill_library(store: IndexStore, inputs: Path, chunks: int, fingerprint: Fingerprint) -> Figures:
    """Index about `chunks` chunks and give each a vector; return seconds and counts.

    Args:
        store: An empty index, embedded or shared.
        inputs: Folder that `make_inputs` wrote.
        chunks: How many, at least as many as there are vectors.
        fingerprint: What the vectors are said to be made with.
    """
    sentences = json.loads((inputs / "sentences.json").read_text("utf-8"))
    rows = np.load(inputs / "rows.npy", mmap_mode="r")
    started = time.perf_counter()
    task = BulkTask(LIBRARY, "bench", IngestOptions())
    text = RealText(sentences).chunks(chunks)
    BulkIndexer(store.writer, store.ledger).run(task, text, BulkOptions())
    indexed_s = time.perf_counter() - started
    store.writer.claim(LIBRARY, fingerprint)
    done = 0
    while done < len(rows) and (
        page := store.writer.pending_vectors(LIBRARY, min(_PAGE, len(rows) - done))
    ):
        some = l2_normalise(rows[done : done + len(page)].astype(np.float32))
        store.writer.write_vectors(LIBRARY, [chunk.chunk_id for chunk in page], some)
        done += len(page)
    store.writer.apply(LIBRARY)
    return {
        "index_s": indexed_s,
        "vectors_s": time.perf_counter() - started - indexed_s,
        "vectors": done,
    }
