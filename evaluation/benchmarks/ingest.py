"""Measure how fast files become vectors over HTTP.

    python -m evaluation.benchmarks.ingest [--data DIR] [--chunks N] [--rounds N]

Time runs from the first byte posted to the last vector searched (`wait=true`): parsing, chunking,
catalog, lexical index and vectors included. The fastest round counts. What a chunk costs beyond its
vector is measured with notes of one passage each, which are stored and left without vectors.
"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path

from app.bootstrap import build_services
from app.client import FileToSend
from app.core.types import Library, RawDocument
from app.evaluation.collections import from_folder
from app.settings import Settings
from evaluation.lib.reports import COLLECTIONS, options, write
from evaluation.lib.served import Served

_FILES_PER_UPLOAD = 40
_PASSAGES_PER_FILE = 20


def main() -> int:
    args = options(
        __doc__,
        **COLLECTIONS,
        chunks=(2000, "about how many chunks to index"),
        notes=(5000, "number of notes without vectors"),
        rounds=(5, "number of rounds"),
    )
    with tempfile.TemporaryDirectory(prefix="documind-ingest-") as name:
        folder = Path(name)
        sets = [from_folder(args.data / name) for name in ("squad", "pubmedqa", "cranfield")]
        texts = [passage.text for one in sets for passage in one.passages][: args.chunks]
        files = write_files(folder / "files", texts)
        notes = [f"Note {n}\n\n{text} {n}" for n, text in enumerate((texts * 5)[: args.notes])]
        noted = store_text(folder / "notes", notes)
        rounds = [upload(folder / f"data-{number}", files) for number in range(args.rounds)]
    wall, cpu, following = (min(row[i] for row in rounds) for i in (0, 1, 2))
    chunks = rounds[0][3]
    figures = {
        "chunks": chunks,
        "chunks/s": chunks / wall,
        "processor ms per chunk": 1000 * cpu / chunks,
        "processor ms per chunk of notes, without vectors": noted,
        "processor seconds of Chroma afterwards, share of the ingest's": following / cpu,
    }
    remarks = [
        f"{len(files)} text files, {chunks} chunks, posted {_FILES_PER_UPLOAD} at a time; best of"
        f" {args.rounds} rounds. {len(notes)} notes, each a file."
    ]
    return write("ingest", "Files to vectors", remarks, [], figures, "make bench-ingest")


def write_files(folder: Path, texts: list[str]) -> list[Path]:
    folder.mkdir()
    paths = []
    for start in range(0, len(texts), _PASSAGES_PER_FILE):
        path = folder / f"part-{start:05}.txt"
        path.write_text("\n\n".join(texts[start : start + _PASSAGES_PER_FILE]), "utf-8")
        paths.append(path)
    return paths


def store_text(data_dir: Path, notes: list[str]) -> float:
    """Store notes in this process, without vectors; return processor milliseconds a chunk."""
    settings = Settings(
        _env_file=None, data_dir=data_dir, embedding_provider="minilm", samples="off", ocr="off"
    )
    documents = [
        RawDocument(f"note-{n}.txt", f"note-{n}.txt", text.encode()) for n, text in enumerate(notes)
    ]
    with build_services(settings) as services:
        pipeline = services.libraries.runtime(Library.PAPERS).pipeline
        pipeline.ingest(Library.PAPERS, documents[:1])  # what is loaded once
        begun_s = time.process_time()
        pipeline.ingest(Library.PAPERS, documents[1:])
        spent_s = time.process_time() - begun_s
        return 1000 * spent_s / services.catalog.counts(Library.PAPERS).chunks


def upload(data_dir: Path, files: list[Path]) -> tuple[float, float, float, int]:
    """Index everything on a fresh server.

    Returns:
        Wall seconds, processor seconds, processor seconds of Chroma afterwards, number of chunks.

    Raises:
        SystemExit: A chunk got no vector.
    """
    with Served(data_dir) as server:
        cpu, begun = server.cpu_s(), time.perf_counter()
        for start in range(0, len(files), _FILES_PER_UPLOAD):
            part = files[start : start + _FILES_PER_UPLOAD]
            server.client.ingest([FileToSend(path) for path in part], "public")
        wall, cpu = time.perf_counter() - begun, server.cpu_s() - cpu
        following = server.cpu_s()
        server.wait_followed("public")
        following = server.cpu_s() - following
        stats = server.client.stats("public")
        if stats["embedded"] != stats["chunks"]:
            raise SystemExit(f"not everything has a vector: {stats}")
    return wall, cpu, following, int(str(stats["chunks"]))


if __name__ == "__main__":
    sys.exit(main())
