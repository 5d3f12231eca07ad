"""Measure the embedded model's speed, and how close int8 is to float32.

    make bench-embed            # writes evaluation/reports/embed.json and embed.md; fails when a
    limit is not met

Nothing is cached: all texts are distinct within a round, and the fastest round of each block
counts.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnxruntime

from app.core.types import FloatArray
from app.core.vectors import top_k_smallest
from app.models.minilm import MAX_TOKENS, MiniLmEmbedder
from evaluation.lib.paths import DATA
from evaluation.lib.served import Line, write

LEAST_COSINE = 0.985
MOST_NDCG_LOSS = 0.005
QUESTIONS = 500
PASSAGES = {"squad": 646, "pubmedqa": 500}
RANKED_QUESTIONS = 1500
BLOCK = 32
"""Texts per block."""

Embed = Callable[[list[str]], FloatArray]


@dataclass(frozen=True)
class Collection:
    """Passages and questions with the passage each one is about."""

    passages: dict[str, str]
    questions: dict[str, str]
    relevant: dict[str, set[str]]


def load(folder: Path) -> Collection:
    """Read a collection in BEIR layout with `qrels.tsv`."""

    def rows(name: str) -> dict[str, str]:
        with (folder / name).open(encoding="utf-8") as file:
            return {row["_id"]: row["text"] for row in map(json.loads, file)}

    relevant: dict[str, set[str]] = {}
    for line in (folder / "qrels.tsv").read_text(encoding="utf-8").splitlines():
        question, passage, _ = line.split("\t")
        relevant.setdefault(question, set()).add(passage)
    return Collection(rows("corpus.jsonl"), rows("queries.jsonl"), relevant)


def fit(texts: Sequence[str], embedder: MiniLmEmbedder) -> list[str]:
    """Cut texts to the window: the embedder refuses longer ones."""
    fitted = []
    for text, tokens in zip(texts, embedder.count_tokens(texts), strict=True):
        words = text.split(" ")
        while tokens > MAX_TOKENS:
            words = words[: min(len(words) - 1, len(words) * MAX_TOKENS // tokens)]
            (tokens,) = embedder.count_tokens([" ".join(words)])  # noqa: PLW2901 - the loop's own condition
        fitted.append(" ".join(words))
    return fitted


def seconds_per_text(embed: Embed, texts: list[str], rounds: int) -> float:
    embed(texts[:2])
    total = 0.0
    for at in range(0, len(texts), BLOCK):
        fastest = float("inf")
        for _ in range(rounds):
            start = time.perf_counter()
            embed(texts[at : at + BLOCK])
            fastest = min(fastest, time.perf_counter() - start)
        total += fastest
    return total / len(texts)


def ndcg_at_10(
    collection: Collection, embedder: MiniLmEmbedder, passages: FloatArray, questions: list[str]
) -> float:
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
    """Run everything; return the lines with limits and the bare figures."""
    ours, exact = MiniLmEmbedder(), MiniLmEmbedder(precision="fp32")
    lines: list[Line] = []
    figures: dict[str, float] = {}
    cosines: list[float] = []
    for name, count in PASSAGES.items():
        collection = load(data / name)
        passages = fit(list(collection.passages.values())[:count], ours)
        figures[f"{name} passages/s"] = 1 / seconds_per_text(ours.embed_passages, passages, rounds)
        quantised, reference = ours.embed_passages(passages), exact.embed_passages(passages)
        cosines.append(float((quantised * reference).sum(axis=1).min()))
        if name == "squad":
            answered = [q for q in collection.questions if q in collection.relevant]
            asked = random.Random(7).sample(answered, RANKED_QUESTIONS)
            full = ndcg_at_10(collection, exact, reference, asked)
            small = ndcg_at_10(collection, ours, quantised, asked)
            figures |= {"squad nDCG@10, float32": full, "squad nDCG@10, int8": small}
            what = "squad nDCG@10: float32 less int8"
            lines.append(Line(what, full - small, MOST_NDCG_LOSS, ""))
            texts = list(dict.fromkeys(collection.questions[question] for question in asked))
            texts = texts[:QUESTIONS]
            figures["ms per question"] = 1000 * seconds_per_text(one_by_one(ours), texts, rounds)
            both = [(ours.embed_query(text), exact.embed_query(text)) for text in texts]
            cosines.append(min(float(left @ right) for left, right in both))
    what = "smallest cosine of int8 to float32, passages and questions"
    lines.append(Line(what, min(cosines), LEAST_COSINE, "", at_most=False))
    return lines, figures


def one_by_one(embedder: MiniLmEmbedder) -> Embed:
    """Embed questions as they come, each in a call of its own."""
    return lambda texts: np.stack([embedder.embed_query(text) for text in texts])


def main() -> int:
    """Measure, write the report, and return 1 when a limit is not met."""
    parser = argparse.ArgumentParser(description="Benchmark the embedded model.")
    parser.add_argument("--data", type=Path, default=DATA, help="folder with squad and pubmedqa")
    parser.add_argument("--rounds", type=int, default=3, help="rounds, the fastest of which counts")
    arguments = parser.parse_args()
    lines, figures = measure(arguments.data, arguments.rounds)
    remarks = [f"ONNX Runtime {onnxruntime.__version__}, a thread per core."]
    return write("embed", "The embedded model", remarks, lines, figures, "make bench-embed")


if __name__ == "__main__":
    sys.exit(main())
