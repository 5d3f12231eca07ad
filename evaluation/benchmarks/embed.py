"""Measure the embedded model against float32 and against Chroma's own class on the same weights.

    make bench-embed            # writes evaluation/reports/embed.json and embed.md, fails when a limit is not met

Every ratio is of one run: blocks of texts alternate between the two, and each block counts with its fastest of several rounds, so
that other work on the machine disturbs both alike. Nothing is cached: all texts are distinct within a round.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import random
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper

from app.core.types import FloatArray
from app.core.vectors import top_k_smallest
from app.providers.minilm import MAX_TOKENS, MiniLmEmbedder, minilm_graph, model_folder
from evaluation.lib.paths import ROOT
from evaluation.lib.served import instructions

FASTER_PER_QUESTION = 20.0
FASTER_PER_PASSAGE = {"squad": 3.5, "pubmedqa": 2.0}
LEAST_COSINE = 0.985
MOST_NDCG_LOSS = 0.005
_SPINNING_S = 0.05
"""Longer than ONNX Runtime's threads look for work after a run."""
QUESTIONS = 500
PASSAGES = {"squad": 646, "pubmedqa": 500}
RANKED_QUESTIONS = 1500
BLOCK = 32
"""Texts per block: the batch of Chroma's class. Smaller ones would time the other side's threads, which spin on after a run."""

Embed = Callable[[list[str]], FloatArray]


@dataclass(frozen=True)
class Collection:
    """Passages and questions with the passage each one is about."""

    passages: dict[str, str]
    questions: dict[str, str]
    relevant: dict[str, set[str]]


@dataclass(frozen=True)
class Line:
    """One measured value against its limit."""

    what: str
    value: float
    limit: float
    at_most: bool = False

    @property
    def met(self) -> bool:
        """True when the value is on the right side of its limit."""
        return self.value <= self.limit if self.at_most else self.value >= self.limit


def load(folder: Path) -> Collection:
    """Read a collection as `../shared/data/README.md` lays it out."""

    def rows(name: str) -> dict[str, str]:
        with (folder / name).open(encoding="utf-8") as file:
            return {row["_id"]: row["text"] for row in map(json.loads, file)}

    relevant: dict[str, set[str]] = {}
    for line in (folder / "qrels.tsv").read_text(encoding="utf-8").splitlines():
        question, passage, _ = line.split("\t")
        relevant.setdefault(question, set()).add(passage)
    return Collection(rows("corpus.jsonl"), rows("queries.jsonl"), relevant)


def fit(texts: Sequence[str], embedder: MiniLmEmbedder) -> list[str]:
    """Cut texts to the window: Chroma's class does so by itself, ours refuses to."""
    fitted = []
    for text, tokens in zip(texts, embedder.count_tokens(texts), strict=True):
        words = text.split(" ")
        while tokens > MAX_TOKENS:
            words = words[: min(len(words) - 1, len(words) * MAX_TOKENS // tokens)]
            (tokens,) = embedder.count_tokens([" ".join(words)])  # noqa: PLW2901 - the loop's own condition
        fitted.append(" ".join(words))
    return fitted


def chroma_embedder(folder: Path) -> Embed:
    """Return Chroma's own class with our float32 weights in its cache folder, so that it downloads nothing."""
    from chromadb.utils.embedding_functions.onnx_mini_lm_l6_v2 import ONNXMiniLM_L6_V2  # noqa: PLC0415 - slow to import

    class Local(ONNXMiniLM_L6_V2):  # type: ignore[misc]  # chromadb is untyped here
        DOWNLOAD_PATH = folder

    extracted = folder / ONNXMiniLM_L6_V2.EXTRACTED_FOLDER_NAME
    extracted.mkdir(parents=True)
    source = model_folder()
    for name in ("config.json", "special_tokens_map.json", "tokenizer_config.json", "tokenizer.json", "vocab.txt"):
        (extracted / name).write_bytes((source / name).read_bytes())
    (extracted / "model.onnx").write_bytes(hidden_state_graph())
    function = Local()
    return lambda texts: np.asarray(function(texts), dtype=np.float32)


def hidden_state_graph() -> bytes:
    """Return our float32 graph with the inputs and output that Chroma's class expects: int64 in, last hidden states out."""
    model = onnx.load_from_string(minilm_graph())
    graph = model.graph
    pooling = {"mask_float", "mask_row", "total", "flat", "output"}
    kept = [node for node in graph.node if node.name not in pooling]
    inputs, casts = [], []
    for value in graph.input:
        inputs.append(helper.make_tensor_value_info(f"{value.name}", TensorProto.INT64, ["batch", "tokens"]))
        casts.append(helper.make_node("Cast", [value.name], [f"{value.name}_32"], to=TensorProto.INT32))
    names = {value.name for value in graph.input}
    for node in kept:
        node.input[:] = [f"{name}_32" if name in names else name for name in node.input]
    last = helper.make_tensor_value_info("hidden_6", TensorProto.FLOAT, ["batch", "tokens", 384])
    constants = [constant for constant in graph.initializer if constant.name != "axis_1"]
    built = helper.make_graph([*casts, *kept], "bert", inputs, [last], constants)
    served: bytes = helper.make_model(built, opset_imports=model.opset_import, ir_version=model.ir_version).SerializeToString()
    return served


def race(ours: Embed, theirs: Embed, texts: list[str], rounds: int) -> tuple[float, float]:
    """Return seconds per text of both, blocks alternating, the fastest of `rounds` for each block.

    A block begins when the other side's threads have stopped spinning for more work (ADR 0034), which would be measured with it.
    """
    ours(texts[:2])
    theirs(texts[:2])
    totals = [0.0, 0.0]
    for at in range(0, len(texts), BLOCK):
        block = texts[at : at + BLOCK]
        fastest = [float("inf"), float("inf")]
        for _ in range(rounds):
            for side, embed in enumerate((ours, theirs)):
                time.sleep(_SPINNING_S)
                start = time.perf_counter()
                embed(block)
                fastest[side] = min(fastest[side], time.perf_counter() - start)
        totals[0] += fastest[0]
        totals[1] += fastest[1]
    return totals[0] / len(texts), totals[1] / len(texts)


def ndcg_at_10(collection: Collection, embedder: MiniLmEmbedder, passages: FloatArray, questions: list[str]) -> float:
    """Return mean nDCG@10 with binary gains.

    References:
        Jaervelin and Kekaelaeinen: Cumulated gain-based evaluation of IR techniques, TOIS 2002.
    """
    ids = list(collection.passages)
    total = 0.0
    for question in questions:
        top = top_k_smallest(-(passages @ embedder.embed_query(collection.questions[question])), 10)
        relevant = collection.relevant[question]
        gain = sum(1 / np.log2(rank + 2) for rank, row in enumerate(top) if ids[row] in relevant)
        total += gain / sum(1 / np.log2(rank + 2) for rank in range(min(10, len(relevant))))
    return float(total / len(questions))


def measure(data: Path, rounds: int) -> tuple[list[Line], dict[str, float]]:
    """Run everything; returns the lines with limits and the bare figures."""
    ours = MiniLmEmbedder()  # one thread per core, which is what Chroma's class takes
    exact = MiniLmEmbedder(precision="fp32")
    lines: list[Line] = []
    figures: dict[str, float] = {}
    cosines: list[float] = []
    with tempfile.TemporaryDirectory() as folder:
        chroma = chroma_embedder(Path(folder, "cache"))
        for name, count in PASSAGES.items():
            collection = load(data / name)
            passages = fit(list(collection.passages.values())[:count], ours)
            our_s, their_s = race(ours.embed_passages, chroma, passages, rounds)
            lines.append(Line(f"{name} passages: times as fast", their_s / our_s, FASTER_PER_PASSAGE[name]))
            figures |= {f"{name} passages/s": 1 / our_s, f"{name} passages/s, Chroma's class": 1 / their_s}
            quantised, reference = ours.embed_passages(passages), exact.embed_passages(passages)
            cosines.append(float((quantised * reference).sum(axis=1).min()))
            agreement = (np.asarray(chroma(passages[:32])) * reference[:32]).sum(axis=1).min()
            figures[f"{name} smallest cosine, Chroma's class to float32"] = float(agreement)
            if name == "squad":
                asked = random.Random(7).sample([q for q in collection.questions if q in collection.relevant], RANKED_QUESTIONS)
                loss = ndcg_at_10(collection, exact, reference, asked)
                figures["squad nDCG@10, float32"] = loss
                figures["squad nDCG@10, int8"] = ndcg_at_10(collection, ours, quantised, asked)
                lines.append(Line("squad nDCG@10: float32 less int8", loss - figures["squad nDCG@10, int8"], MOST_NDCG_LOSS, True))
                texts = list(dict.fromkeys(collection.questions[question] for question in asked))[:QUESTIONS]
                our_s, their_s = race(one_by_one(ours), lambda block: np.concatenate([chroma([t]) for t in block]), texts, rounds)
                lines.append(Line("squad questions: times as fast", their_s / our_s, FASTER_PER_QUESTION))
                figures |= {"ms per question": our_s * 1000, "ms per question, Chroma's class": their_s * 1000}
                both = [(ours.embed_query(text), exact.embed_query(text)) for text in texts]
                cosines.append(min(float(left @ right) for left, right in both))
    lines.append(Line("smallest cosine of int8 to float32, passages and questions", min(cosines), LEAST_COSINE))
    return lines, figures


def one_by_one(embedder: MiniLmEmbedder) -> Embed:
    """Embed questions as they come, each in a call of its own."""
    return lambda texts: np.stack([embedder.embed_query(text) for text in texts])


def write(lines: list[Line], figures: dict[str, float], out: Path) -> None:
    """Write embed.json and embed.md."""
    machine = {"processor": platform.processor() or platform.machine(), "instructions": instructions()}
    machine |= {"threads": f"{os.cpu_count()} (both)", "onnxruntime": onnxruntime.__version__, "python": platform.python_version()}
    out.mkdir(parents=True, exist_ok=True)
    report = {"machine": machine, "limits": [{**asdict(line), "met": line.met} for line in lines], "figures": figures}
    (out / "embed.json").write_text(json.dumps(report, indent=2) + "\n", encoding="utf-8")
    text = [
        "# The embedded model",
        "",
        "`make bench-embed`: our int8 MiniLM against Chroma's own class on the same weights and threads.",
        "",
    ]
    text += ["| measured | value | limit | met |", "|---|---|---|---|"]
    text += [
        f"| {line.what} | {line.value:.4g} | {'<=' if line.at_most else '>='} {line.limit:g} | {'yes' if line.met else 'NO'} |"
        for line in lines
    ]
    text += ["", "| figure | value |", "|---|---|", *(f"| {name} | {value:.4g} |" for name, value in figures.items())]
    text += ["", "Machine: " + ", ".join(f"{name} {value}" for name, value in machine.items()) + ".", ""]
    (out / "embed.md").write_text("\n".join(text), encoding="utf-8")


def main() -> int:
    """Measure, write the report, and return 1 when a limit is not met."""
    parser = argparse.ArgumentParser(description="Benchmark the embedded model.")
    parser.add_argument("--data", type=Path, default=ROOT.parent / "shared" / "data", help="folder with squad and pubmedqa")
    parser.add_argument("--out", type=Path, default=ROOT / "evaluation" / "reports")
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args()
    lines, figures = measure(arguments.data, arguments.rounds)
    write(lines, figures, arguments.out)
    print((arguments.out / "embed.md").read_text(encoding="utf-8"))
    return 0 if all(line.met for line in lines) else 1


if __name__ == "__main__":
    sys.exit(main())
