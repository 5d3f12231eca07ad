"""Run a BERT graph: many texts side by side on one thread each, one on all.

Each run has one text.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import numpy as np
import onnxruntime as ort

from app.core.types import FloatArray
from app.providers.bert_tokens import Feed


class BertSession:
    """An open graph; thread-safe.

    Texts are not batched: a text's row then depends on that text alone (int8 activations are scaled
    per run), nothing is padded, and the working set stays in the cache. Threads within a run wait
    for each other by spinning, which under load doubles the work per text, so each run has one
    thread and texts run side by side (docs/decisions/0030-onnx-graph.md).
    """

    def __init__(self, graph: bytes, threads: int = 0) -> None:
        """Open the graph for runs of one thread and, with more cores, of all cores.

        Args:
            graph: What `onnx_graph.build_graph` returned.
            threads: Cores to use; 0: all.
        """
        self._threads = threads or os.cpu_count() or 1
        self._session = open_session(graph, 1)
        self._wide = self._session if self._threads == 1 else open_session(graph, self._threads)
        self._callers = _Callers()

    def one(self, inputs: Feed) -> FloatArray:
        """Return the output row `[width]` of one text, on all cores if idle.

        Else on one core, with the same result.
        """
        with self._callers.counted() as alone:
            row: FloatArray = (self._wide if alone else self._session).run(["output"], inputs)[0][0]
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
            rows[position] = self._session.run(["output"], inputs[position])[0][0]

        self._each(inputs, run)
        return rows

    def with_states(self, inputs: Sequence[Feed]) -> list[tuple[FloatArray, FloatArray]]:
        """Return each text's output row `[width]` and token states `[tokens, hidden]`.

        In order; the row equals that of `many`.
        """
        names = [output.name for output in self._session.get_outputs()]
        found: list[tuple[FloatArray, FloatArray] | None] = [None] * len(inputs)

        def run(position: int) -> None:
            row, states = self._session.run(names, inputs[position])
            found[position] = row[0], states[0]

        self._each(inputs, run)
        return [pair for pair in found if pair is not None]

    def _each(self, inputs: Sequence[Feed], run: Callable[[int], None]) -> None:
        """Run every text, the longest first, on as many cores as this session has."""
        longest_first = sorted(
            range(len(inputs)), key=lambda position: -inputs[position]["input_ids"].size
        )
        workers = min(self._threads, len(inputs))
        with self._callers.counted():
            if workers <= 1:
                for position in longest_first:
                    run(position)
            else:
                with ThreadPoolExecutor(workers) as pool:
                    list(pool.map(run, longest_first))


class _Callers:
    """Counts the calls that embed now."""

    def __init__(self) -> None:
        self._running = 0
        self._lock = threading.Lock()

    @contextmanager
    def counted(self) -> Iterator[bool]:
        """Count the block, and yield whether nothing else runs."""
        with self._lock:
            self._running += 1
            alone = self._running == 1
        try:
            yield alone
        finally:
            with self._lock:
                self._running -= 1


def open_session(graph: bytes, threads: int = 0) -> ort.InferenceSession:
    """Return a CPU session of a graph; thread-safe.

    Args:
        graph: An ONNX model.
        threads: Threads within one run; 0: one per core. More than one wait for each other by
            spinning, until the run is over.
    """
    options = ort.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    # Between runs threads must leave their cores to others; they would go on for 4 to 13 ms of each
    # (docs/decisions/0030).
    options.add_session_config_entry("session.force_spinning_stop", "1")
    options.log_severity_level = 3  # errors only; warnings about our shapes tell a user nothing
    # fused, sum and norm take longer than apart (docs/decisions/0030-onnx-graph.md)
    return ort.InferenceSession(
        graph,
        options,
        providers=["CPUExecutionProvider"],
        disabled_optimizers=["SkipLayerNormFusion"],
    )
