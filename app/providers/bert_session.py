"""Runs a BERT graph over texts: one text a run, one thread a run, as many runs at once as there are cores."""

from __future__ import annotations

import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from app.core.types import FloatArray
from app.providers.bert_tokens import Feed
from app.providers.onnx_graph import open_session


class BertSession:
    """An open graph; thread-safe.

    Texts are not batched: a text's row then depends on that text alone (int8 activations are scaled per run), nothing is padded,
    and the working set stays in the cache. Threads within a run wait for each other by spinning, which under load doubles the work
    per text, so each run has one thread and texts run side by side (docs/decisions/0034-one-text-a-run.md).
    """

    def __init__(self, graph: bytes, threads: int = 0) -> None:
        """Open the graph for runs of one thread each.

        Args:
            graph: What `onnx_graph.build_graph` or `quantise` returned.
            threads: Cores to use; 0: all.
        """
        self._threads = threads or os.cpu_count() or 1
        self._session = open_session(graph, 1)

    def one(self, inputs: Feed) -> FloatArray:
        """Return the output row `[width]` of one text."""
        row: FloatArray = self._session.run(["output"], inputs)[0][0]
        return row

    def many(self, inputs: Sequence[Feed], width: int) -> FloatArray:
        """Return the output rows `[n, width]`, in order.

        Each call brings its own threads, so that a long call does not hold up a short one.

        Args:
            inputs: One text each.
            width: Columns of the output.
        """
        rows = np.empty((len(inputs), width), dtype=np.float32)

        def run(position: int) -> None:
            rows[position] = self.one(inputs[position])

        longest_first = sorted(range(len(inputs)), key=lambda position: -inputs[position]["input_ids"].size)
        workers = min(self._threads, len(inputs))
        if workers <= 1:
            for position in longest_first:
                run(position)
        else:
            with ThreadPoolExecutor(workers) as pool:
                list(pool.map(run, longest_first))
        return rows
