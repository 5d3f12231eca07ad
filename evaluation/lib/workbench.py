"""Share the arguments, indexed collections and reports of the studies."""

from __future__ import annotations

import argparse
import hashlib
import json
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, is_dataclass
from pathlib import Path

from app.core.ids import checkout_sha
from app.core.ports import PassageEncoder
from app.core.types import Library
from app.evaluation.collections import Collection
from app.evaluation.report import EvaluationReport, ReportProvenance, to_csv, to_json, to_markdown
from app.evaluation.runner import RetrieverSearch
from app.evaluation.workshop import Bench as IndexedBench
from app.evaluation.workshop import CachedEmbedder, bench
from app.ingest.names import IngestOptions
from app.models.minilm import MiniLmEmbedder
from app.retrieval.pipeline import Retriever
from app.retrieval.request import RetrievalOptions
from app.retrieval.reranking import LateInteraction
from evaluation.lib.paths import DATA, REPORTS

SEED = 7


def arguments(description: str) -> argparse.ArgumentParser:
    """Return a parser with the options that every program here has."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument(
        "--data", type=Path, default=DATA, help="folder of collections in BEIR layout"
    )
    parser.add_argument(
        "--cache",
        type=Path,
        default=Path(tempfile.gettempdir()) / "documind-vectors",
        help="where vectors are kept between runs",
    )
    return parser


def hash_of(*settings: object) -> str:
    """Return 16 hex digits of settings: dataclasses, or anything that JSON can write."""
    plain = [
        asdict(one) if is_dataclass(one) and not isinstance(one, type) else one for one in settings
    ]
    return hashlib.sha256(json.dumps(plain, sort_keys=True, default=str).encode()).hexdigest()[:16]


@dataclass(frozen=True, slots=True)
class Bench(IndexedBench):
    """An open index with collections in it, and what a report needs of it."""

    encoder: PassageEncoder | None = None

    def retriever(self, options: RetrievalOptions) -> Retriever:
        late = LateInteraction(self.store.codes, self.encoder) if self.encoder else None
        store = self.store
        return Retriever(
            store.catalog, store.vectors, store.lexical, self.embedder, options, late=late
        )

    def search(self) -> RetrieverSearch:
        return RetrieverSearch(
            lambda arm: self.retriever(arm.options), Library.PUBLIC, self.passage_of
        )

    def provenance(self, settings_hash: str = "") -> ReportProvenance:
        identity = self.embedder.identity
        models = {identity.model: identity.digest}
        return ReportProvenance(checkout_sha(), settings_hash, self.fingerprint, models, SEED)


@contextmanager
def indexed(
    collection: Collection, cache: Path, encoder: PassageEncoder | None = None
) -> Iterator[Bench]:
    """Index a collection in the public library, one file per passage; remove the index afterwards.

    Args:
        collection: What is indexed.
        cache: Where vectors are kept between runs.
        encoder: Makes codes for late interaction; None makes none, and nothing is ordered by them.
    """
    embedder = CachedEmbedder(MiniLmEmbedder(), cache / "passages")
    with bench(collection, embedder, ingest=IngestOptions(), encoder=encoder) as opened:
        yield Bench(opened.store, opened.embedder, opened.passage_of, opened.fingerprint, encoder)


def write(report: EvaluationReport, name: str) -> None:
    """Write the report of a study as Markdown, CSV and JSON under evaluation/reports/; print it."""
    REPORTS.mkdir(parents=True, exist_ok=True)
    page = f"{to_markdown(report)}\nMade by `python -m evaluation.studies.{name}`.\n"
    for suffix, text in (
        (".md", page),
        (".csv", to_csv(report)),
        (".json", to_json(report)),
    ):
        (REPORTS / f"{name}{suffix}").write_text(text, encoding="utf-8")
    print(page)


def say(line: str) -> None:
    """Report progress to the person at the terminal."""
    print(f"  {line}", flush=True)
