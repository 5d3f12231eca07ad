"""Measure what more cores and more hosts bring to embedding: passages a second.

    python -m evaluation.benchmarks.embed_hosts [--data DIR]

The embedded model runs on one core and on all. Hosts are doubles that take a fixed time for a
passage, one after the other as Ollama does, so the figures show how well the work is spread and
nothing of a model. Writes evaluation/reports/embed_hosts.{md,json}.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack

from app.core.release import checkout_sha
from app.core.types import FloatArray
from app.evaluation.collections import from_folder
from app.evaluation.report import Provenance
from app.providers.minilm import MiniLmEmbedder
from app.providers.ollama import OllamaHost
from app.providers.ollama_embedder import OllamaEmbedder
from app.providers.spread import SpreadEmbedder
from evaluation.lib.workbench import SEED, Figures, arguments, hash_of, write_figures
from tests.fakes.ollama_double import OllamaDouble

MODEL = "nomic-embed-text"
PASSAGE_MS = 25.0
"""Of a double: about what a small model takes for a passage on two cores."""

CALL = 128
"""Passages of a call, as of a bulk run that has several batches with the embedder at once."""

HOSTS = (1, 2, 3, 4)
ROUNDS = 3
Embed = Callable[[Sequence[str]], FloatArray]


def main() -> None:
    """Measure and write."""
    given = arguments(__doc__ or "").parse_args()
    passages = [p.text for p in from_folder(given.data / "squad").passages][:CALL]
    cores = os.cpu_count() or 1
    one, every = (
        MiniLmEmbedder(given.cache / "graph", threads=1),
        MiniLmEmbedder(given.cache / "graph"),
    )
    fitting = [
        text
        for text, tokens in zip(passages, one.count_tokens(passages), strict=True)
        if tokens <= one.identity.max_tokens
    ]
    figures = {
        "embedded model, one core": _speed(one.embed_passages, fitting),
        f"embedded model, all {cores} cores": _speed(every.embed_passages, fitting),
    }
    for count in HOSTS:
        with ExitStack() as stack:
            doubles = [stack.enter_context(OllamaDouble(embed_ms=PASSAGE_MS)) for _ in range(count)]
            first, *others = [OllamaEmbedder(OllamaHost(double.url), MODEL) for double in doubles]
            embedder = SpreadEmbedder(first, others) if others else first
            figures[f"{count} hosts of {1000 / PASSAGE_MS:.0f} passages/s each"] = _speed(
                embedder.embed_passages,
                [text[:12] for text in passages],  # a double's own work is little
            )
    identity = one.identity
    write_figures(
        Figures(
            "Embedding on more cores and more hosts, passages a second",
            Provenance(
                checkout_sha(),
                hash_of(HOSTS, PASSAGE_MS, CALL),
                "",
                {identity.model: identity.digest},
                SEED,
            ),
            {"passages of a call": CALL},
            figures,
            [
                "Passages of squad; the fastest of three rounds. Hosts are doubles: they show how"
                " the work is spread.",
                f"Others used the machine: load average {os.getloadavg()[0]:.1f}.",
            ],
        ),
        "embed_hosts",
    )


def _speed(embed: Embed, texts: Sequence[str]) -> float:
    embed(texts[:16])
    seconds = []
    for _ in range(ROUNDS):
        started = time.perf_counter()
        embed(texts)
        seconds.append(time.perf_counter() - started)
    return len(texts) / min(seconds)


if __name__ == "__main__":
    main()
