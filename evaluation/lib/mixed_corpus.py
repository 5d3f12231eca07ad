"""Make a library of any size: recombined real sentences, mixed vectors.

Words keep their real frequencies, vectors their real neighbourhoods; only the meaning of a whole
chunk is made up, which no timing depends on.
"""

from __future__ import annotations

import hashlib
import json
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from app.core.ids import document_id
from app.core.sentences import sentence_spans
from app.core.types import (
    ChunkSpan,
    DocumentDraft,
    EmbedderIdentity,
    Fingerprint,
    FloatArray,
    Library,
    Metadata,
)
from app.core.vectors import l2_normalise
from app.models.minilm import MiniLmEmbedder
from app.storage.store import IndexStore

COLLECTIONS = ("squad", "pubmedqa", "cranfield")
YEARS = 1000
"""Documents get a year in 1..1000, evenly: `year <= n` selects n tenths of a percent."""
_CHUNKS_PER_DOCUMENT = 4


def passages(data: Path) -> list[str]:
    found: list[str] = []
    for name in COLLECTIONS:
        with (data / name / "corpus.jsonl").open(encoding="utf-8") as file:
            found += [text for line in file if (text := json.loads(line)["text"].strip())]
    return found


def questions(data: Path, name: str, count: int) -> list[str]:
    """Return the first distinct questions of a collection."""
    with (data / name / "queries.jsonl").open(encoding="utf-8") as file:
        return list(dict.fromkeys(json.loads(line)["text"] for line in file))[:count]


def embedded(
    texts: Sequence[str], embedder: MiniLmEmbedder, limit: int
) -> tuple[list[str], FloatArray]:
    """Return texts the model reads whole and their vectors, kept on disk between runs."""
    fitting = [
        text
        for text, tokens in zip(texts, embedder.count_tokens(texts), strict=True)
        if tokens <= limit
    ]
    key = hashlib.sha256("\0".join(fitting).encode()).hexdigest()[:24]
    path = Path(tempfile.gettempdir()) / "documind-vectors" / f"mixed-{key}.npy"
    if path.is_file():
        kept: FloatArray = np.load(path)
        return fitting, kept
    path.parent.mkdir(parents=True, exist_ok=True)
    rows = embedder.embed_passages(fitting)
    np.save(path, rows)
    return fitting, rows


def fill(
    store: IndexStore, data: Path, chunks: int, embedder: MiniLmEmbedder, seed: int = 7
) -> None:
    """Write about `chunks` chunks with vectors into the public library."""
    texts, rows = embedded(passages(data), embedder, embedder.identity.max_tokens)
    rng = np.random.default_rng(seed)
    store.writer.claim(Library.PUBLIC, _fingerprint(embedder.identity))
    documents = max(1, chunks // _CHUNKS_PER_DOCUMENT)
    for start in range(0, documents, 500):
        batch = [
            _document(number, texts, rng) for number in range(start, min(documents, start + 500))
        ]
        store.writer.write([draft for draft, _ in batch])
        sources = {draft.doc_id: chosen for draft, chosen in batch}
        while pending := store.writer.pending_vectors(Library.PUBLIC, 4000):
            mixed = [_mix(rows, sources[chunk.doc_id][chunk.ordinal], rng) for chunk in pending]
            store.writer.write_vectors(
                Library.PUBLIC, [chunk.chunk_id for chunk in pending], np.stack(mixed)
            )
    store.writer.apply(Library.PUBLIC)


def _document(
    number: int, texts: Sequence[str], rng: np.random.Generator
) -> tuple[DocumentDraft, list[list[int]]]:
    """Return a document of four chunks, and which passages each chunk was made of."""
    parts: list[str] = []
    chosen: list[list[int]] = []
    spans: list[ChunkSpan] = []
    at = 0
    for ordinal in range(_CHUNKS_PER_DOCUMENT):
        picks = rng.integers(0, len(texts), 2).tolist()
        part = " ".join(_sentences(texts[pick], rng) for pick in picks)[:950].strip()
        spans.append(ChunkSpan(ordinal, at, at + len(part), "body"))
        parts.append(part)
        chosen.append(picks)
        at += len(part) + 2
    text = "\n\n".join(parts)
    key = f"mixed-{number}.txt"
    metadata = Metadata(f"Mixed {number}", year=1 + number * 7919 % YEARS)
    sha256 = hashlib.sha256(text.encode()).hexdigest()
    draft = DocumentDraft(
        Library.PUBLIC,
        document_id(Library.PUBLIC, key),
        key,
        key,
        sha256,
        "text",
        text,
        metadata,
        tuple(spans),
        flags=(),
    )
    return draft, chosen


def _sentences(text: str, rng: np.random.Generator) -> str:
    spans = sentence_spans(text)
    first = int(rng.integers(0, len(spans)))
    return " ".join(text[start:end] for start, end in spans[first : first + 3])


def _mix(rows: FloatArray, picks: Sequence[int], rng: np.random.Generator) -> FloatArray:
    noise = rng.standard_normal((rows.shape[1],), dtype=np.float32) * np.float32(0.01)
    return l2_normalise(rows[list(picks)].mean(axis=0) + noise)


def _fingerprint(identity: EmbedderIdentity) -> Fingerprint:
    from app.bootstrap.libraries import fingerprint_of  # noqa: PLC0415  # the composition, as the server will see it
    from app.settings import Settings  # noqa: PLC0415

    return fingerprint_of(identity, Settings(_env_file=None).ingest())


def years_for(share: float) -> int:
    """Return the last year of a filter `year <= n` that selects this share."""
    return max(1, round(share * YEARS))


def batches(items: Sequence[str], size: int) -> Iterator[Sequence[str]]:
    """Yield runs of at most `size` items."""
    for start in range(0, len(items), size):
        yield items[start : start + size]
