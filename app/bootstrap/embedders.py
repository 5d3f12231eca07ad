"""What embeds each library, what would embed it better, and when it is calibrated."""

from __future__ import annotations

import logging
from dataclasses import replace

from app.bootstrap.models import Models
from app.core.errors import Conflict, InvalidInput, StorageError
from app.core.types import EmbeddingState, Fingerprint, Library, Notice
from app.jobs.bulk import BULK
from app.jobs.ingest import BACKFILL
from app.jobs.kinds import ARXIV, CALIBRATE, FETCH, IMPORT, INGEST, SAMPLES
from app.jobs.maintenance import LOOK_SHARED_S
from app.jobs.reembed import REEMBED
from app.jobs.runner import JobRunner
from app.models.ollama import same_model
from app.retrieval.scoring import Calibrations
from app.storage.store import IndexStore

logger = logging.getLogger(__name__)

CALIBRATION_CHECK_S = 30.0
"""How often it is looked whether an embedder is to be calibrated."""

_WRITERS = frozenset({INGEST, SAMPLES, ARXIV, FETCH, BACKFILL, BULK, IMPORT, REEMBED})
"""Kinds of jobs that put documents or vectors into a library."""


class LibraryEmbedders:
    """Knows what embeds each library and what would embed it better; thread-safe."""

    def __init__(self, store: IndexStore, models: Models) -> None:
        self._store = store
        self._models = models
        self.calibrations = Calibrations(store.calibrations)

    def state(self, library: Library) -> EmbeddingState:
        """Return what embeds a library; asks the model host, runs no model."""
        made_with = self._store.made_with(library)
        state = self._models.embedder_state(library, made_with)
        better = self._better(library, made_with) if made_with else ()
        return replace(state, notices=(*better, *self.notices(library)))

    def _better(self, library: Library, made_with: Fingerprint) -> tuple[Notice, ...]:
        """Return the notice that a better model is there, unless a person went back from it."""
        try:
            better = self._models.better_embedder(library, made_with)
        except InvalidInput as error:
            logger.warning("%s", error.message)
            return ()
        previous = self._store.builds.of(library, "previous")
        if better is None or (
            previous is not None and same_model(previous.fingerprint.embedding_model, better.model)
        ):
            return ()
        said = (
            f"the library {library.value!r} is embedded with {made_with.embedding_model!r}, and"
            f" {better.model!r} ({better.provider}) is there now; to use it, run: documind reembed"
            f" --library {library.value} (to keep the present model and hide this notice: set"
            " EMBEDDING_PROVIDER to it)"
        )
        return (Notice("better_embedder", said),)

    def notices(self, library: Library) -> tuple[Notice, ...]:
        """Return what every search of a library says; asks no host, so that no question waits."""
        fingerprint = self._store.made_with(library)
        if fingerprint is None or self.calibrations.of(fingerprint) is not None:
            return ()
        said = (
            f"similarities of {fingerprint.embedding_model!r} are not calibrated yet: bands,"
            f" cutoff and confidence of the library {library.value!r} are rough; they follow by"
            f" themselves, or run: documind calibrate --library {library.value}"
        )
        return (Notice("bands_not_calibrated", said),)


class Calibrator:
    """Has embedders calibrated that have no row, once their library has its vectors."""

    def __init__(self, calibrations: Calibrations, store: IndexStore, runner: JobRunner) -> None:
        self._calibrations = calibrations
        self._store = store
        self._runner = runner
        self._calibrated_at: dict[tuple[Library, str], int] = {}
        """Documents at the last calibration that was asked for; one that found too few is tried
        again at twice as many."""

    def look_at_all(self) -> float:
        try:
            with self._store.catalog.snapshot():
                for library in Library:
                    self._look(library)
        except (StorageError, Conflict) as error:
            logger.warning(
                "what embeds the libraries could not be looked at; trying again: %s",
                error.message,
                exc_info=None if error.retryable else error,
            )
        return LOOK_SHARED_S if self._store.options.shared else CALIBRATION_CHECK_S

    def _look(self, library: Library) -> None:
        counts, fingerprint = self._store.catalog.counts(library), self._store.made_with(library)
        if fingerprint is None or self._calibrations.of(fingerprint) is not None:
            return
        tried = (library, fingerprint.embedding_model)
        enough = counts.documents >= 2 * self._calibrated_at.get(tried, 0)
        if enough and counts.embedded == counts.chunks and not self._is_filled(library):
            self._calibrated_at[tried] = counts.documents
            self._runner.submit(
                CALIBRATE,
                {"library": library.value, "retry": True, "automatic": True},
                unit="pairs",
                coalesce=True,
            )

    def _is_filled(self, library: Library) -> bool:
        """Return whether a job writes to the library now; the next check comes soon."""
        return any(
            job.kind in _WRITERS
            and job.state in ("queued", "running")
            and job.payload.get("library", library) == library.value
            for job in self._runner.list(1000)
        )
