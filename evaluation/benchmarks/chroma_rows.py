"""Measure what a row's stamps cost in Chroma's database.

`python -m evaluation.benchmarks.chroma_rows [--rows N]`

Each line is a store of its own with N vectors of 8 numbers, so that the database holds little but
stamps. Writes evaluation/reports/chroma_rows.md and .json. Over 200 bytes a row the title stays
out.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from app.core.ids import checkout_sha
from app.core.vectors import l2_normalise
from app.evaluation.report import ReportProvenance
from app.storage.files.durable import Steps
from app.storage.vectors.chroma import ChromaStore
from app.storage.vectors.chroma_child import DATABASE
from app.storage.vectors.port import Stamp, Stamps
from evaluation.lib.workbench import Figures, hash_of, write_figures

KEPT = ("doc_id", "filename", "section", "page", "chunk_index")
SHAPES = {
    "doc_id and section": ("doc_id", "section"),
    "what rows keep": KEPT,
    "the title too": (*KEPT, "title"),
    "title and text (CHROMA_STORE_TEXT)": (*KEPT, "title", "text"),
}
CHUNKS = 20
"""Chunks of a document."""
TEXT = "The north gate of the park closes at six in winter. " * 16


def stamp(chunk_id: int) -> dict[str, str | int]:
    """Return everything that a row may say of a chunk."""
    document, number = divmod(chunk_id, CHUNKS)
    return {
        "doc_id": f"{document:032x}",
        "filename": f"report-{document:05d}-on-the-park.pdf",
        "section": "results",
        "page": number // 2 + 1,
        "chunk_index": number,
        "title": f"The park and its gates, report number {document}",
        "text": TEXT,
    }


def bytes_a_row(names: tuple[str, ...], rows: int) -> float:
    """Return the size of the database of a store whose rows have these stamps, per row."""

    def of(ids: Sequence[int]) -> list[Stamp]:
        return [{name: stamp(chunk_id)[name] for name in names} for chunk_id in ids]

    with tempfile.TemporaryDirectory() as folder:
        store = ChromaStore(Path(folder) / "chroma", Steps(), ef_search=100)
        vectors = l2_normalise(np.random.default_rng(0).normal(size=(rows, 8)))
        store.upsert("papers__1", list(range(1, rows + 1)), vectors, Stamps("none", of))
        store.close()
        return (Path(folder) / "chroma" / DATABASE).stat().st_size / rows


def main() -> int:
    """Measure and write the report."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=4000)
    rows = parser.parse_args().rows
    sizes = {shape: round(bytes_a_row(names, rows)) for shape, names in SHAPES.items()}
    least = sizes["doc_id and section"]
    remark = "More than with doc_id and section alone: " + ", ".join(
        f"{shape} {size - least}" for shape, size in sizes.items() if size > least
    )
    made = ReportProvenance(checkout_sha(), hash_of(rows, *SHAPES), "", {}, 0)
    write_figures(
        Figures(f"Bytes a row in Chroma's database, {rows} rows", made, sizes, {}, (remark,)),
        "chroma_rows",
    )
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
