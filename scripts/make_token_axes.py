"""Make the axes that code token states: `python -m scripts.make_token_axes`.

Reads the texts of data/sample_docs (written for this project, Apache-2.0), runs the embedded model
over parts of 800 characters and writes the mean of the token states and their first 128 principal
axes to app/models/token_axes.npy (float16 `[129, 384]`). Afterwards raise CODES_VERSION in
app/core/documents.py: stored codes are then rebuilt.
"""

from __future__ import annotations

from argparse import ArgumentParser
from pathlib import Path

import numpy as np

from app.core.ids import bundle
from app.core.types import TOKEN_BITS, FloatArray
from app.models.bert import BertSession, BertTokenizer, cut, feed
from app.models.minilm import AXES_FILE, MAX_TOKENS

TEXTS = Path(__file__).parents[1] / "data" / "sample_docs"
_PART = 800


def main() -> None:
    ArgumentParser(description=__doc__).parse_args()
    files = sorted(path for path in TEXTS.rglob("*") if path.suffix in {".txt", ".md"})
    texts = [path.read_text("utf-8") for path in files]
    parts = [text[at : at + _PART] for text in texts for at in range(0, len(text), _PART)]
    ids = BertTokenizer(bundle("minilm") / "tokenizer.json").encode(parts)
    runs = BertSession((bundle("minilm") / "int8.graph").read_bytes()).with_states(
        [feed(cut(one, MAX_TOKENS)) for one in ids]
    )
    states = np.concatenate([found for _, found in runs])
    held, share = principal(states)
    np.save(AXES_FILE, held)
    print(
        f"{len(files)} files, {len(states):,} tokens: {TOKEN_BITS} axes hold {share:.3f} of the"
        " variance"
    )


def principal(
    states: FloatArray,
) -> tuple[np.ndarray[tuple[int, ...], np.dtype[np.float16]], float]:
    """Return mean and axes, float16 `[129, width]`, signs fixed, and their share of variance."""
    mean = states.mean(axis=0, dtype=np.float64)
    values, vectors = np.linalg.eigh(np.cov((states - mean).T))
    first = np.argsort(-values)[:TOKEN_BITS]
    axes = vectors[:, first].T
    axes *= np.sign(np.take_along_axis(axes, np.abs(axes).argmax(axis=1, keepdims=True), axis=1))
    return np.vstack([mean, axes]).astype(np.float16), float(values[first].sum() / values.sum())


if __name__ == "__main__":
    main()
