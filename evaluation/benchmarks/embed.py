"""Measure the embedded model's speed, and how close int8 is to float32.

    make bench-embed            # fails when a limit is not met

Nothing is cached: all texts are distinct within a round, and the fastest round of each block
counts. Writes evaluation/reports/embed.{json,md}.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import onnxruntime

from app.core.types import FloatArray
from app.evaluation.collections import Collection, from_folder
from app.evaluation.metrics import per_question
from app.models.minilm import MiniLmEmbedder
from evaluation.lib.corpus import fitting
from evaluation.lib.reports import COLLECTIONS, SEED, Line, options, write
from scripts import build_model

LEAST_COSINE = 0.985
MOST_NDCG_LOSS = 0.005
QUESTIONS, RANKED_QUESTIONS = 500, 1500
PASSAGES = {"squad": 646, "pubmedqa": 500}
BLOCK = 32
"""Texts per block."""


def seconds_per_text(
    embed: Callable[[Sequence[str]], object], texts: list[str], rounds: int
) -> float:
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


def ndcg_at_10(collection: Collection, passages: FloatArray, questions: FloatArray) -> float:
    rankings = {
        question.id: [
            collection.passages[row].id
            for row in np.argsort(-(passages @ vector), kind="stable")[:10]
        ]
        for question, vector in zip(collection.questions, questions, strict=True)
    }
    values = per_question(rankings, collection.relevance, ["nDCG@10"])["nDCG@10"]
    return float(np.mean(list(values.values())))


def embedded_one_by_one(embedder: MiniLmEmbedder, texts: Sequence[str]) -> FloatArray:
    """Embed questions as they come, each in a call of its own."""
    return np.stack([embedder.embed_query(text) for text in texts])


def main() -> int:
    given = options(__doc__, **COLLECTIONS, rounds=(3, "rounds, the fastest of which counts"))
    with TemporaryDirectory() as folder:
        build_model.build(Path(folder), "fp32")
        ours, exact = MiniLmEmbedder(), MiniLmEmbedder(Path(folder), precision="fp32")
    lines: list[Line] = []
    figures: dict[str, float] = {}
    cosines: list[float] = []
    for name, count in PASSAGES.items():
        whole = from_folder(given.data / name).judged()
        collection = replace(whole, passages=whole.passages[:count])
        texts = [fitting(passage.text, ours) for passage in collection.passages]
        speed = seconds_per_text(ours.embed_passages, texts, given.rounds)
        figures[f"{name} passages/s"] = 1 / speed
        quantised, reference = ours.embed_passages(texts), exact.embed_passages(texts)
        cosines.append(float((quantised * reference).sum(axis=1).min()))
        if name != "squad":
            continue
        asked = collection.sample(RANKED_QUESTIONS, SEED)
        questions = [question.text for question in asked.questions]
        small, full = (embedded_one_by_one(one, questions) for one in (ours, exact))
        cosines.append(float((small * full).sum(axis=1).min()))
        with_int8, with_fp32 = (
            ndcg_at_10(asked, quantised, small),
            ndcg_at_10(asked, reference, full),
        )
        figures |= {"squad nDCG@10, float32": with_fp32, "squad nDCG@10, int8": with_int8}
        what = "squad nDCG@10: float32 less int8"
        lines.append(Line(what, with_fp32 - with_int8, MOST_NDCG_LOSS, ""))
        some = list(dict.fromkeys(questions))[:QUESTIONS]
        one_by_one = partial(embedded_one_by_one, ours)
        figures["ms per question"] = 1000 * seconds_per_text(one_by_one, some, given.rounds)
    what = "smallest cosine of int8 to float32, passages and questions"
    lines.append(Line(what, min(cosines), LEAST_COSINE, at_most=False))
    remarks = [f"ONNX Runtime {onnxruntime.__version__}, a thread per core."]
    return write("embed", "The embedded model", remarks, lines, figures, "make bench-embed")


if __name__ == "__main__":
    sys.exit(main())
