"""Detect whether a host's embedding model equals the embedded one, and speeds."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

from app.core.errors import DocuMindError
from app.core.ports import Embedder
from app.providers.ollama import OllamaHost
from app.providers.ollama_embedder import OllamaEmbedder

logger = logging.getLogger(__name__)

TWIN_COSINE = 0.98
"""Every probe's cosine from which two models are one. The embedded int8 weights and their float
originals have .9939 or more on these probes, which rounding explains and other processors round
otherwise; another model has vectors of its own, near 0."""
PROBES = (
    "Rivers carry silt to the sea.",
    "A treaty was signed in Vienna in 1815.",
    "Copper melts at 1085 degrees Celsius.",
    "The lighthouse keeper lit the lamp at dusk.",
    "How do bees find their way back to the hive?",
    "Photosynthesis turns light into sugar.",
    "The committee adopted the budget by a narrow vote.",
    "Dropout reduces overfitting in neural networks.",
    "She plays the cello in the city orchestra.",
    "Interest rates rose by a quarter of a point.",
    "The patient was given antibiotics for ten days.",
    "What is the capital of Australia?",
    "def add(a, b): return a + b",
    "Der Zug nach München hat Verspätung.",
    "La biblioteca cierra a las ocho.",
    "The 100 m final was won in 9.81 s.",
    "Glaciers shape valleys over thousands of years.",
    "The contract ends on 31 March and may be renewed.",
    "Stir the onions until they are golden.",
    "Vectors of one model cannot be compared with those of another.",
)


@dataclass(frozen=True, slots=True)
class TwinComparison:
    """Two models on the probes.

    `lowest` is the smallest cosine, 0 where their dimensions differ; speeds in passages a second.
    """

    lowest: float
    embedded_per_s: float
    other_per_s: float

    @property
    def same(self) -> bool:
        """True when both give the same vectors but for rounding."""
        return self.lowest >= TWIN_COSINE

    @property
    def speeds(self) -> str:
        """Both speeds in words."""
        return (
            f"embedded {self.embedded_per_s:.0f} passages a second, on Ollama"
            f" {self.other_per_s:.0f}"
        )


def compare(embedded: Embedder, other: Embedder) -> TwinComparison:
    """Compare two models on the probes, both loaded first.

    Only embedding is timed.

    Raises:
        ProviderError: The other's host failed.
    """
    sides = []
    for model in (embedded, other):
        model.embed_query(PROBES[0])
        began = time.perf_counter()
        rows = model.embed_passages(PROBES)
        sides.append((rows, len(PROBES) / (time.perf_counter() - began)))
    (ours, our_speed), (theirs, their_speed) = sides
    lowest = float((ours * theirs).sum(axis=1).min()) if ours.shape == theirs.shape else 0.0
    return TwinComparison(lowest, our_speed, their_speed)


class Twins:
    """Knows which host models equal the embedded one; asks once a name; thread-safe."""

    def __init__(self, host: OllamaHost, embedded: Callable[[], Embedder]) -> None:
        """Prepare; nothing is sent or loaded.

        Args:
            host: Where the other models are.
            embedded: Returns the embedded model.
        """
        self._host, self._embedded = host, embedded
        self._lock = threading.Lock()
        self._known: dict[str, bool] = {}

    def __call__(self, model: str) -> bool:
        """Return whether a model gives the embedded one's vectors; False if unknown.

        Unknown while its host does not respond.
        """
        with self._lock:
            if model not in self._known:
                try:
                    self._known[model] = self._ask(model)
                except DocuMindError as error:
                    logger.info(
                        "whether %s is the embedded model is not known: %s", model, error.message
                    )
                    return False
            return self._known[model]

    def _ask(self, model: str) -> bool:
        embedded = self._embedded()
        if self._host.details(model).dimension != embedded.identity.dimension:
            return False  # known without loading it
        return compare(embedded, OllamaEmbedder(self._host, model)).same
