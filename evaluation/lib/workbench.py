"""Share the arguments, indexed collections and reports of the studies."""

from __future__ import annotations

import argparse
import hashlib
import json
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, is_dataclass
from pathlib import Path

from app.bootstrap.evaluation import Bench as IndexedBench
from app.bootstrap.evaluation import CachedEmbedder, bench
from app.core.ids import checkout_sha
from app.core.ports import PassageEncoder
from app.core.types import Library
from app.evaluation.arms import Arm
from app.evaluation.collections import Collection
from app.evaluation.report import EvaluationReport, ReportProvenance, to_csv, to_json, to_markdown
from app.evaluation.runner import RetrieverSearch
from app.ingest.names import IngestOptions
from app.models.minilm import MiniLmEmbedder
from app.retrieval.pipeline import Retriever
from app.retrieval.request import RetrievalOptions
from app.retrieval.reranking import LateInteraction
from evaluation.lib.paths import DATA, REPORTS, publish

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


@dataclass(frozen=True, slots=True)
class Figures:
    """A report of named numbers; equal provenance means equal but for `timings`."""

    title: str
    provenance: ReportProvenance
    figures: Mapping[str, float]
    timings: Mapping[str, float] = field(default_factory=dict)
    remarks: Sequence[str] = ()
    tables: Sequence[str] = ()
    """Markdown before the figures."""


def write_figures(report: Figures, name: str) -> None:
    """Write figures as Markdown and JSON under evaluation/reports/; print them."""
    made = report.provenance
    content = {
        "title": report.title,
        "provenance": asdict(made),
        "remarks": list(report.remarks),
        "figures": dict(report.figures),
        "timings": dict(report.timings),
    }
    lines = [
        f"# {report.title}",
        "",
        *(line for remark in report.remarks for line in (remark, "")),
        *report.tables,
    ]
    lines += ["| figure | value |", "|---|---|"]
    lines += [
        f"| {key} | {_written(value)} |"
        for key, value in (*report.figures.items(), *report.timings.items())
    ]
    lines += ["", f"Made from {made.in_words()}."]
    publish(name, content, "\n".join(lines) + "\n")


def _written(value: float) -> str:
    """Return counts in full and measures to four digits."""
    return f"{int(value):,}" if value >= 1000 and float(value).is_integer() else f"{value:.4g}"


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
        return Retriever(
            self.store.catalog,
            self.store.vectors,
            self.store.lexical,
            self.embedder,
            options,
            late=late,
        )

    def search(self, library: Library) -> RetrieverSearch:
        def of(arm: Arm) -> Retriever:
            return self.retriever(arm.options)

        return RetrieverSearch(of, library, self.passage_of)

    def provenance(self) -> ReportProvenance:
        """Return the provenance of a bench; the report adds its settings' hash."""
        identity = self.embedder.identity
        return ReportProvenance(
            checkout_sha(), "", self.fingerprint, {identity.model: identity.digest}, SEED
        )


@contextmanager
def indexed(
    collections: Mapping[Library, Sequence[Collection]],
    cache: Path,
    *,
    ingest: IngestOptions | None = None,
    boost: float | None = None,
    embedded: float = 1.0,
    encoder: PassageEncoder | None = None,
) -> Iterator[Bench]:
    """Index collections, one file per passage; remove the index afterwards.

    Args:
        collections: By library.
        cache: Where vectors are kept between runs.
        ingest: Chunk sizes; default as the server.
        boost: Weight of the title in BM25; default as the server.
        embedded: Share of the chunks that get a vector, [0, 1], in the order of their documents.
        encoder: Makes codes for late interaction; None makes none, and nothing is ordered by them.
    """
    embedder = CachedEmbedder(MiniLmEmbedder(cache / "graph"), cache / "passages")
    with bench(
        collections,
        embedder,
        ingest=ingest or IngestOptions(),
        boost=boost,
        embedded=embedded,
        encoder=encoder,
    ) as opened:
        yield Bench(
            opened.store,
            opened.embedder,
            opened.passage_of,
            opened.fingerprint,
            opened.index_s,
            opened.embed_s,
            encoder,
        )


def write(report: EvaluationReport, name: str) -> None:
    """Write a report as Markdown, CSV and JSON under evaluation/reports/; print it."""
    REPORTS.mkdir(parents=True, exist_ok=True)
    for suffix, text in (
        (".md", to_markdown(report)),
        (".csv", to_csv(report)),
        (".json", to_json(report)),
    ):
        (REPORTS / f"{name}{suffix}").write_text(text, encoding="utf-8")
    print(to_markdown(report))


def say(line: str) -> None:
    """Report progress to the person at the terminal."""
    print(f"  {line}", flush=True)
