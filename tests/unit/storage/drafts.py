"""Documents for storage tests."""

from __future__ import annotations

import hashlib
from itertools import pairwise

import numpy as np

from app.core.ids import document_id
from app.core.labels import NO_LABELS
from app.core.types import (
    ChunkSpan,
    DocumentDraft,
    Fingerprint,
    FloatArray,
    Heading,
    Labels,
    Library,
    Metadata,
    PageSpan,
)
from app.core.vectors import l2_normalise
from app.storage.vectors.port import Stamps

DIMENSION = 16

FINGERPRINT = Fingerprint("test-model", "digest", DIMENSION, "", "", "chunker-1", "analyzer-1")


def make_draft(
    key: str,
    text: str,
    *,
    library: Library = Library.PAPERS,
    chunks: int = 2,
    title: str | None = None,
    authors: tuple[str, ...] = (),
    year: int | None = None,
    kind: str = "text",
    sections: tuple[str, ...] = ("body",),
    has_original: bool = False,
    source_revision: str | None = None,
    sha256: str | None = None,
    headings: tuple[Heading, ...] = (),
    labels: Labels = NO_LABELS,
) -> DocumentDraft:
    """A draft of `text` cut into equal chunks, one page over all of it."""
    bounds = [i * len(text) // chunks for i in range(chunks + 1)]
    spans = tuple(
        ChunkSpan(i, start, end, sections[i % len(sections)], 1)
        for i, (start, end) in enumerate(pairwise(bounds))
    )
    return DocumentDraft(
        library=library,
        doc_id=document_id(library, key),
        source_key=key,
        filename=key,
        sha256=sha256 or hashlib.sha256(text.encode()).hexdigest(),
        type=kind,
        text=text,
        metadata=Metadata(title if title is not None else f"Title of {key}", authors, year),
        chunks=spans,
        pages=(PageSpan(1, 0, len(text)),),
        headings=headings,
        has_original=has_original,
        source_revision=source_revision,
        labels=labels,
    )


def unit_rows(n: int, seed: int = 0, dimension: int = DIMENSION) -> FloatArray:
    """n random rows of norm 1."""
    return l2_normalise(np.random.default_rng(seed).normal(size=(n, dimension)))


def stamped(doc_id: str = "a") -> Stamps:
    """Return stamps that name one document."""
    return Stamps("test", lambda ids: [{"doc_id": doc_id, "section": "body"} for _ in ids])
