"""Model graphs on disk, so that a start need not build them, and sessions of them."""

from __future__ import annotations

import hashlib
import logging
import os
import tempfile
from collections.abc import Callable
from pathlib import Path

import onnxruntime as ort

from app.providers.onnx_graph import BUILD, Precision

_log = logging.getLogger(__name__)


def cached_graph(folder: Path | None, key: str, precision: Precision, build: Callable[[], bytes]) -> bytes:
    """Return a graph from the cache, or build and keep it.

    A cache file is the SHA-256 of the graph (32 bytes) and the graph, written beside its place and moved there, so a reader sees
    all of it or nothing. A damaged file is built again.

    Args:
        folder: Where to keep graphs; None builds in memory each time.
        key: What the graph is made from, for example the hash of the weights.
        precision: Of the graph; float32 and int8 are kept side by side.
        build: Makes the graph.
    """
    name = hashlib.sha256(f"{BUILD} {ort.__version__} {key}".encode()).hexdigest()[:16] + f".{precision}.graph"
    if folder is not None and (graph := _load(folder / name)) is not None:
        return graph
    graph = build()
    if folder is not None:
        _store(folder / name, graph)
    return graph


def _load(path: Path) -> bytes | None:
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        return None
    except OSError:
        _log.warning("the cached model graph %s cannot be read; building it again", path.name, exc_info=True)
        return None
    digest, graph = content[:32], content[32:]
    if hashlib.sha256(graph).digest() == digest:
        return graph
    _log.warning("the cached model graph %s is damaged; building it again", path.name)
    return None


def _store(path: Path, graph: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=path.name, suffix=".tmp")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(hashlib.sha256(graph).digest())
            file.write(graph)
            file.flush()
            os.fsync(file.fileno())
        Path(temporary).replace(path)
    except OSError:
        # the graph is in memory and works; a full or read-only disk only costs the next start two seconds
        Path(temporary).unlink(missing_ok=True)
        _log.warning("the model graph could not be kept as %s", path.name, exc_info=True)


def open_session(graph: bytes, threads: int = 0) -> ort.InferenceSession:
    """Return a CPU session of a graph; thread-safe.

    Args:
        graph: An ONNX model.
        threads: Threads within one run; 0: one per core. More than one wait for each other by spinning, until the run is over.
    """
    options = ort.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    # Between runs threads must leave their cores to others; they would go on for 4 to 13 ms of each (docs/decisions/0034).
    options.add_session_config_entry("session.force_spinning_stop", "1")
    options.log_severity_level = 3  # errors only; warnings about our shapes tell a user nothing
    # fused, sum and norm take longer than apart (docs/decisions/0030-onnx-graph.md)
    return ort.InferenceSession(graph, options, providers=["CPUExecutionProvider"], disabled_optimizers=["SkipLayerNormFusion"])
