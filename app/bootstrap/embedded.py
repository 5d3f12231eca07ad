"""The models that come with the program or lie in a folder: they need no host."""

from __future__ import annotations

import threading

from app.core.errors import InvalidInput, Unreadable
from app.core.ports import Reranker
from app.generation.extractive import ExtractiveGenerator
from app.providers.cross_encoder import CrossEncoder
from app.providers.late import LateEncoder
from app.providers.minilm import MiniLmEmbedder
from app.providers.multilingual import MultilingualEmbedder
from app.providers.options import ProviderOptions
from app.providers.remembered import RememberedEmbedder


class EmbeddedModels:
    """Loads each model once, at its first use; thread-safe."""

    def __init__(self, options: ProviderOptions) -> None:
        """Prepare; nothing is loaded yet.

        Args:
            options: Threads, and where graphs and a cross-encoder lie.
        """
        self._options = options
        self._lock = threading.RLock()
        self._extractive: ExtractiveGenerator | None = None
        self._minilm: MiniLmEmbedder | None = None
        self._multilingual: MultilingualEmbedder | None = None
        self._late: LateEncoder | None = None

    @property
    def extractive(self) -> ExtractiveGenerator:
        """Quotes the best supporting sentences; always there."""
        with self._lock:
            if self._extractive is None:
                self._extractive = ExtractiveGenerator(RememberedEmbedder(self.sentence_embedder))
            return self._extractive

    @property
    def sentence_embedder(self) -> MiniLmEmbedder:
        """Return the embedded model, which always serves quoting and grounding.

        Their thresholds were measured with it.
        """
        with self._lock:
            if self._minilm is None:
                self._minilm = MiniLmEmbedder(
                    self._options.model_cache_dir, threads=self._options.model_threads
                )
            return self._minilm

    @property
    def multilingual(self) -> MultilingualEmbedder:
        """Return the embedded model of fifteen languages.

        Raises:
            ModelNotInstalled: The extra `multilingual` is not installed.
        """
        with self._lock:
            if self._multilingual is None:
                self._multilingual = MultilingualEmbedder()
            return self._multilingual

    @property
    def late_encoder(self) -> LateEncoder:
        """Return the encoder of late-interaction codes, which uses the embedded model."""
        with self._lock:
            if self._late is None:
                self._late = self.sentence_embedder.late_encoder()
            return self._late

    def reranker(self) -> Reranker | None:
        """Return the cross-encoder of CROSS_ENCODER_DIR, opened; None without one.

        Raises:
            InvalidInput: The directory holds no such model; the message names the setting and the
                file.
        """
        folder = self._options.cross_encoder_dir
        if folder is None:
            return None
        try:
            return CrossEncoder(
                folder, self._options.model_cache_dir, threads=self._options.model_threads
            )
        except Unreadable as error:
            raise InvalidInput(
                f"CROSS_ENCODER_DIR {str(folder)!r} cannot be used: {error.message}"
            ) from error
