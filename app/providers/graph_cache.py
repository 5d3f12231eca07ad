"""Model graphs on disk, so that a start need not build them."""

from __future__ import annotations

import hashlib
import logging
import os
import tempfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import onnxruntime as ort

from app.providers.onnx_graph import BUILD, Precision

_SUFFIX = ".graph"

_log = logging.getLogger(__name__)


def cached_graph(
    folder: Path | None, key: str, precision: Precision, build: Callable[[], bytes]
) -> bytes:
    """Return a graph from the cache, or build and store it.

    A cache file is the SHA-256 of the graph (32 bytes) and the graph. It is written to a temporary
    name and moved, so a reader sees all of it or nothing. A damaged file is built again. Storing
    one deletes those of another build or ONNX Runtime.

    Args:
        folder: Where to keep graphs; None builds in memory each time.
        key: What the graph is made from, for example the hash of the weights.
        precision: Of the graph; float32 and int8 are kept side by side.
        build: Makes the graph.
    """
    maker = _short(f"{BUILD} {ort.__version__}")
    name = f"{maker}-{_short(key)}.{precision}{_SUFFIX}"
    if folder is not None and (graph := _load(folder / name)) is not None:
        return graph
    graph = build()
    if folder is not None:
        _store(folder / name, graph)
        _remove_of_others(folder, maker)
    return graph


def _short(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _load(path: Path) -> bytes | None:
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        return None
    except OSError:
        _log.warning(
            "the cached model graph %s cannot be read; building it again", path.name, exc_info=True
        )
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
        # the graph is in memory and works; a full or read-only disk only costs the next start two
        # seconds
        Path(temporary).unlink(missing_ok=True)
        _log.warning("the model graph could not be kept as %s", path.name, exc_info=True)


def _remove_of_others(folder: Path, maker: str) -> None:
    """Remove graphs of another maker; what cannot be removed only takes space."""
    for path in folder.glob(f"*{_SUFFIX}"):
        if not path.name.startswith(maker):
            with suppress(OSError):
                path.unlink()
