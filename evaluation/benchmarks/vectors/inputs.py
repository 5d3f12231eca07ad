"""Write what a library of real sentences and noisy copies is made of into a folder."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

from app.core.types import FloatArray
from app.evaluation.collections import from_folder
from app.models.minilm import MiniLmEmbedder
from evaluation.benchmarks.vectors.corpus import save_rows
from evaluation.lib.windows import collected, vectors
from evaluation.lib.workbench import SEED, say

WINDOWS = 100_000
"""Sentences and runs of sentences that texts and vectors are drawn from."""
QUESTIONS = 500


def make_inputs(
    data: Path, cache: Path, embedder: MiniLmEmbedder, most: int, inputs: Path, real: int = WINDOWS
) -> int:
    """Write vectors, sentences and questions; return how many vectors are real.

    Args:
        data: Folder of the collections and of the dump.
        cache: Where vectors of windows are kept between runs.
        embedder: Makes the real vectors and those of the questions.
        most: Vectors to write.
        inputs: Folder that gets the files.
        real: How many windows are embedded; the other vectors are copies of theirs.
    """
    windows = collected(data, WINDOWS)
    rows: FloatArray = np.concatenate(
        vectors([window.text for window in windows[:real]], embedder, cache / "windows")
    )
    save_rows(rows, most, inputs / "rows.npy")
    sentences = [window.text for window in windows if window.text.count(". ") == 0]
    (inputs / "sentences.json").write_text(json.dumps(sentences), "utf-8")
    questions = [q.text for q in from_folder(data / "squad").sample(QUESTIONS, SEED).questions]
    questions = list(dict.fromkeys(questions))
    (inputs / "questions.json").write_text(json.dumps(questions), "utf-8")
    np.save(inputs / "queries.npy", np.stack([embedder.embed_query(text) for text in questions]))
    say(f"{len(rows)} real vectors, {len(sentences)} sentences, {len(questions)} questions")
    return len(rows)
