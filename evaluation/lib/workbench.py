"""Index collections as the studies need them, and say what a report was made from."""

from __future__ import annotations

from contextlib import AbstractContextManager
from pathlib import Path

from app.core.ids import checkout_sha, fingerprint8
from app.core.ports import PassageEncoder
from app.evaluation.collections import Collection
from app.evaluation.report import ReportProvenance
from app.evaluation.workshop import Bench, CachedEmbedder, bench
from app.ingest.embedding import fingerprint_of
from app.ingest.options import IngestOptions
from app.models.minilm import MiniLmEmbedder
from evaluation.lib.reports import SEED


def indexed(
    collection: Collection, cache: Path, encoder: PassageEncoder | None = None
) -> AbstractContextManager[Bench]:
    """Index a collection in the public library, one file per passage, for the time of the block.

    Vectors are kept in `cache` between runs; without `encoder` nothing is ordered by late
    interaction.
    """
    embedder = CachedEmbedder(MiniLmEmbedder(), cache / "passages")
    return bench(collection, embedder, ingest=IngestOptions(), encoder=encoder)


def made_with(settings: str) -> ReportProvenance:
    """Return what a report over the embedded model's index was made from."""
    model = MiniLmEmbedder().identity
    index = fingerprint8(fingerprint_of(model, IngestOptions()))
    return ReportProvenance(checkout_sha(), settings, index, {model.model: model.digest}, SEED)
