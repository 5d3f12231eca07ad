"""Offer each library the configured model when it becomes available later.

An empty library takes the model by itself; any other library is offered it, because embedding a
person's documents again takes time and changes what is found.
"""

from __future__ import annotations

import logging
import threading
from dataclasses import replace

from app.bootstrap.embedders import Embedders
from app.core.errors import Conflict, InvalidInput, StorageError
from app.core.languages import DEFAULT, language_name
from app.core.types import EmbeddingState, Fingerprint, Library, Notice
from app.index.store import IndexStore
from app.jobs.bulk import BULK
from app.jobs.kinds import ARXIV, BACKFILL, CALIBRATE, IMPORT, INGEST, SAMPLES
from app.jobs.reembed_request import REEMBED, ReembedPayload, request_reembed
from app.jobs.runner import JobRunner
from app.providers.minilm import MODEL as MINILM
from app.providers.multilingual import CURE, is_installed
from app.providers.ollama_listing import same_model
from app.providers.selection import EmbedderChoice
from app.retrieval.calibration import Calibrations

logger = logging.getLogger(__name__)

LOOK_EVERY_S = 5.0
"""How often the model host is asked while a library would take its model; the answer is as old
as `OllamaWatch` keeps one."""

LOOK_SELDOM_S = 30.0
"""The same where a model is only offered."""

_WRITERS = frozenset({INGEST, SAMPLES, ARXIV, BACKFILL, BULK, IMPORT, REEMBED})
"""Kinds of jobs that put documents or vectors into a library."""


class LibraryEmbedders:
    """Knows what embeds each library and what is offered to it; thread-safe."""

    def __init__(self, store: IndexStore, embedders: Embedders) -> None:
        """Look at the builds of `store` and the hosts of `embedders`."""
        self._store = store
        self._embedders = embedders
        self.calibrations = Calibrations(store.calibrations)
        self._offers: dict[Library, str] = {}

    def state(self, library: Library) -> EmbeddingState:
        """Return what embeds a library; asks the model host, runs no model."""
        state = self._embedders.state(library, self._store.made_with(library))
        self.look(library)
        return replace(state, notices=(*self.notices(library), *self._remarks(library)))

    def _remarks(self, library: Library) -> tuple[Notice, ...]:
        """Return the notice that the vectors which serve find less than those before."""
        live = self._store.builds.of(library, "live")
        remark = "" if live is None else self._store.builds.remark_of(live.number)
        if live is None or not remark:
            return ()
        said = (
            f"{live.fingerprint.embedding_model!r} embeds the library {library.value!r} now:"
            f" {remark}; to go back, run: documind reembed --library {library.value} --rollback"
        )
        return (Notice("vectors_worse", said),)

    def better(self, library: Library) -> EmbedderChoice | None:
        """Return a better available, configured model for a library, or None.

        A model that the library went back from does not count: that was a person's choice.
        """
        fingerprint = self._store.made_with(library)
        better = None if fingerprint is None else self._embedders.better(library, fingerprint)
        previous = self._store.builds.of(library, "previous")
        if better is None or (
            previous is not None and same_model(previous.fingerprint.embedding_model, better.model)
        ):
            return None
        return better

    def look(self, library: Library) -> str:
        """Check and return the offer to a library as text; empty for none.

        `notices` repeat it until the next check.
        """
        try:
            better = self.better(library)
        except InvalidInput as error:
            logger.warning("%s", error.message)
            better = None
        offer = ""
        fingerprint = self._store.made_with(library)
        if (
            better is not None
            and fingerprint is not None
            and not self._store.catalog.counts(library).is_disposable
        ):
            offer = (
                f"the library {library.value!r} is embedded with {fingerprint.embedding_model!r},"
                f" and {better.model!r}"
                f" ({better.provider}) is there now; to use it, run: documind reembed --library"
                f" {library.value}"
                " (to keep the present model and hide this notice: set EMBEDDING_PROVIDER to it)"
            )
        self._offers[library] = offer or self._language_offer(library, fingerprint)
        return self._offers[library]

    def _language_offer(self, library: Library, fingerprint: Fingerprint | None) -> str:
        """Return the offer of the multilingual model to a library it suits; else nothing."""
        language = self._store.lexical.languages(library)[0]
        if fingerprint is None or fingerprint.embedding_model != MINILM or language == DEFAULT:
            return ""
        first = "" if is_installed() else f" (first {CURE})"
        return (
            f"most of the library {library.value!r} is in {language_name(language)}, which"
            f" {MINILM!r} does not know; for a"
            " model of many languages, run: documind models use multilingual --library"
            f" {library.value}{first}"
        )

    def notices(self, library: Library) -> tuple[Notice, ...]:
        """Return notices of a library; asks no host, so that no question waits."""
        offer = self._offers.get(library)
        offers = (Notice("reembed_offered", offer),) if offer else ()
        fingerprint = self._store.made_with(library)
        if fingerprint is None or self.calibrations.of(fingerprint) is not None:
            return offers
        said = (
            f"similarities of {fingerprint.embedding_model!r} are not calibrated yet: bands,"
            " cutoff and confidence of the library"
            f" {library.value!r} are rough; they follow by themselves, or run: documind calibrate"
            f" --library {library.value}"
        )
        return (*offers, Notice("bands_not_calibrated", said))


class Adopter:
    """Thread that checks for a new model, and re-embeds libraries without own data.

    Own data are a person's documents.
    """

    def __init__(self, embedders: LibraryEmbedders, store: IndexStore, runner: JobRunner) -> None:
        """Watch the libraries of `store`; jobs of `runner` embed them."""
        self._embedders = embedders
        self._store = store
        self._runner = runner
        self._asked: set[tuple[Library, str]] = set()
        """What was begun already: one that failed or was cancelled is not tried without end."""
        self._calibrated_at: dict[tuple[Library, str], int] = {}
        """Documents at the last calibration that was asked for; one that found too few is tried
        again at twice as many."""
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="adopter", daemon=True)

    def start(self) -> None:
        """Start a chat."""
        self._thread.start()

    def close(self) -> None:
        """End; waits for the look that is under way."""
        self._stop.set()
        self._thread.join()

    def _run(self) -> None:
        wait_s = 0.0
        while not self._stop.wait(wait_s):
            try:
                eager = [self.look(library) for library in Library]
            except (StorageError, Conflict, InvalidInput):
                logger.exception("what embeds the libraries could not be looked at; trying again")
                eager = []
            wait_s = LOOK_EVERY_S if any(eager) else LOOK_SELDOM_S

    def look(self, library: Library) -> bool:
        """Re-embed a library with the new model if allowed; return whether it would."""
        self._embedders.look(library)
        if not self._store.catalog.counts(library).is_disposable:
            self._calibrate(library)
            return False
        better = self._embedders.better(library)
        if better is None:
            self._calibrate(library)
            return True
        if (library, better.model) in self._asked or self._is_filled(library):
            return True
        self._asked.add((library, better.model))
        logger.info(
            "library %s takes %s (%s), which has come", library.value, better.model, better.provider
        )
        request_reembed(
            self._runner,
            ReembedPayload(library, provider=better.provider, model=better.model, force=True),
        )
        return True

    def _calibrate(self, library: Library) -> None:
        """Ask for the row of an embedder that has none, once the library has its vectors."""
        counts, fingerprint = self._store.catalog.counts(library), self._store.made_with(library)
        if fingerprint is None or self._embedders.calibrations.of(fingerprint) is not None:
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
