"""How fast files become vectors over HTTP, against the embedder alone on the same chunk texts, in one run.

    python -m evaluation.benchmarks.ingest [--data DIR] [--chunks N] [--rounds N]

Ours: from the first byte posted to the last vector searched (`wait=true`): parsing, chunking, catalog, tantivy and exact rows
included. Chroma follows when nobody writes (ADR 0152); what that takes is among the figures. The embedder alone runs in a process
of its own with the same threads; rounds alternate, the best of each counts.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from app.client import FileToSend
from evaluation.lib.mixed_corpus import batches, passages
from evaluation.lib.paths import ROOT
from evaluation.lib.served import Line, Served, write

LIMIT = 0.90
_FILES_PER_UPLOAD = 40
_PASSAGES_PER_FILE = 20
_ALONE = """
import json, sys, time
from pathlib import Path
from app.providers.minilm import MiniLmEmbedder
embedder = MiniLmEmbedder(Path(sys.argv[2]))
texts = json.load(open(sys.argv[1], encoding="utf-8"))
embedder.embed_passages(texts[:32])
wall, cpu = time.perf_counter(), time.process_time()
embedder.embed_passages(texts)
print(time.perf_counter() - wall, time.process_time() - cpu)
"""


def main() -> int:
    """Run the benchmark; the exit code says whether the limit holds."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--data", type=Path, default=ROOT.parent / "shared" / "data", help="folder of collections")
    parser.add_argument("--chunks", type=int, default=2000, help="about how many chunks to index")
    parser.add_argument("--rounds", type=int, default=5, help="how often each side runs")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="documind-ingest-") as name:
        folder = Path(name)
        files = write_files(folder / "files", passages(args.data)[: args.chunks])
        ours: list[tuple[float, float, float]] = []
        alone: list[tuple[float, float]] = []
        chunks = 0
        for number in range(args.rounds):
            wall, cpu, following, texts = upload(folder / f"data-{number}", files)
            ours.append((wall, cpu, following))
            chunks = len(texts)
            alone.append(embed_alone(folder, texts))
    wall_ours, cpu_ours, cpu_following = (min(row[i] for row in ours) for i in (0, 1, 2))
    wall_alone, cpu_alone = (min(pair[i] for pair in alone) for i in (0, 1))
    lines = [Line("embedder alone / whole ingest, wall time", wall_alone / wall_ours, LIMIT, "x", at_most=False)]
    figures = {
        "chunks": chunks, "chunks/s": chunks / wall_ours, "chunks/s embedder alone": chunks / wall_alone,
        "processor seconds, embedder alone / ingest": cpu_alone / cpu_ours,
        "processor seconds of Chroma afterwards, share of the ingest's": cpu_following / cpu_ours,
    }  # fmt: skip
    remarks = [
        f"{len(files)} text files, {chunks} chunks, posted {_FILES_PER_UPLOAD} at a time; best of {args.rounds} rounds in turn.",
        "The last vector is searched when the last upload ends; Chroma is written ten seconds later (ADR 0152).",
    ]
    return write("ingest", "Files to vectors against the embedder alone", remarks, lines, figures, "make bench-ingest")


def write_files(folder: Path, texts: list[str]) -> list[Path]:
    """Write files of twenty passages each."""
    folder.mkdir()
    paths = []
    for number, part in enumerate(batches(texts, _PASSAGES_PER_FILE)):
        path = folder / f"part-{number:04}.txt"
        path.write_text("\n\n".join(part), encoding="utf-8")
        paths.append(path)
    return paths


def upload(data_dir: Path, files: list[Path]) -> tuple[float, float, float, list[str]]:
    """Index everything on a fresh server; return wall and processor seconds, Chroma's afterwards, and the chunk texts."""
    with Served(data_dir) as server:
        cpu, begun = server.cpu_s(), time.perf_counter()
        for start in range(0, len(files), _FILES_PER_UPLOAD):
            server.client.ingest([FileToSend(path) for path in files[start : start + _FILES_PER_UPLOAD]], "public")
        wall, cpu = time.perf_counter() - begun, server.cpu_s() - cpu
        following = server.cpu_s()
        server.wait_followed("public")
        following = server.cpu_s() - following
        stats = server.client.stats("public")
        if stats["embedded"] != stats["chunks"]:
            raise SystemExit(f"not everything has a vector: {stats}")
        texts = [
            str(chunk["text"])
            for row in server.client.documents("public")
            for chunk in server.client.get(f"/api/v1/documents/{row['doc_id']}/chunks", {"library": "public"})["chunks"]  # type: ignore[attr-defined]
        ]
    return wall, cpu, following, texts


def embed_alone(folder: Path, texts: list[str]) -> tuple[float, float]:
    """Embed the same texts in a process of its own; return wall and processor seconds."""
    (folder / "texts.json").write_text(json.dumps(texts), encoding="utf-8")
    graph = Path(tempfile.gettempdir()) / "documind-vectors" / "graph"
    command = [sys.executable, "-c", _ALONE, str(folder / "texts.json"), str(graph)]
    wall, cpu = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.split()
    return float(wall), float(cpu)


if __name__ == "__main__":
    sys.exit(main())
