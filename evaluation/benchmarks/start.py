"""Measure time to ready at 10,000 chunks, and memory then and at rest after 500 uploaded ones.

    python -m evaluation.benchmarks.start [--data DIR] [--chunks N] [--rounds N]

The fastest of several starts counts. Memory is the proportional set size of the server and its
children: after a hundred questions, and half a minute after uploads are embedded and in the store.
"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path

import psutil

from app.client import FileToSend
from app.evaluation.collections import from_folder
from evaluation.benchmarks.query import filled
from evaluation.lib.reports import COLLECTIONS, Line, options, table, write
from evaluation.lib.served import Served

RESTING = 500
"""Chunks: passages of squad, each a document of its own."""
REST_S = 30.0
MOST_MB = 450
"""Of a server at rest with so many chunks."""
_TOGETHER = 50
"""Documents in one request."""
NAMES = {
    "chroma_child": "the store of vectors, Chroma in a process of its own",
    "serve": "the server: index, embedded model, web server",
}


def at_rest(folder: Path, data: Path) -> tuple[float, dict[str, float]]:
    """Return megabytes of a server that has just started, and of each process at rest."""
    texts = [passage.document for passage in from_folder(data / "squad").passages[:RESTING]]
    files = [folder / f"{number}.txt" for number in range(len(texts))]
    for path, text in zip(files, texts, strict=True):
        path.write_text(text, encoding="utf-8")
    with Served(folder / "rest") as server:
        begun = server.pss_bytes() / 1e6
        for at in range(0, len(files), _TOGETHER):
            sent = [FileToSend(path) for path in files[at : at + _TOGETHER]]
            server.client.ingest(sent, "papers")
        server.wait_followed("papers")
        time.sleep(REST_S)
        root = psutil.Process(server.process.pid)
        held: dict[str, float] = {}
        for process in (root, *root.children(recursive=True)):
            command = " ".join(process.cmdline())
            name = next((said for part, said in NAMES.items() if part in command), "parsers")
            held[name] = held.get(name, 0) + process.memory_full_info().pss / 1e6
    return begun, held


def main() -> int:
    args = options(
        __doc__,
        **COLLECTIONS,
        chunks=(10_000, "size of the library"),
        rounds=(3, "number of starts"),
    )
    starts: list[float] = []
    pss = 0
    with tempfile.TemporaryDirectory(prefix="documind-start-") as name:
        folder = Path(name)
        begun, held = at_rest(folder, args.data)
        live = folder / "live"
        asked = filled(live, args.data, args.cache, args.chunks, folder / "inputs")
        for _ in range(args.rounds):
            with Served(live) as server:
                starts.append(server.start_s)
                for text in asked[:100]:
                    server.client.query(text, library="public")
                pss = max(pss, server.pss_bytes())
    figures = {
        "start-up s": min(starts),
        "memory after 100 questions MB": pss / 1e6,
        "chunks": float(args.chunks),
        "memory of an empty server that has just started MB": begun,
    }
    line = Line(f"memory at rest after {RESTING} chunks", sum(held.values()), MOST_MB, "MB")
    remarks = [
        "From the start of the process until `/health/ready` says so: index open, vector store"
        " checked, embedder warm."
    ]
    rows = sorted(held.items(), key=lambda one: -one[1])
    tables = table(("at rest, in", "MB"), rows)
    title, command = "Start-up and memory", "make bench-start"
    return write("start", title, remarks, [line], figures, command, tables=tables)


if __name__ == "__main__":
    sys.exit(main())
