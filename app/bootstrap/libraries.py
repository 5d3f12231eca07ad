"""Each library's embedder, retriever, pipeline and backfill, as its fingerprint decides.

Also which constants act in it, and what would embed it better.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import get_args

from app.answer.search import LibrarySearcher
from app.bootstrap.models import Models
from app.core.errors import Conflict, FingerprintMismatch, InvalidInput, StorageError
from app.core.ports import Embedder, Parser, PassageEncoder, Reader
from app.core.trace import Trace
from app.core.types import EmbeddingState, Fingerprint, Library, Notice
from app.generation.flags.injection import inspect
from app.generation.prompt.prompts import AnswerMode
from app.ingest.embedding import CodeBackfill, VectorBackfill, fingerprint_of
from app.ingest.names import IngestOptions
from app.ingest.pipeline import IngestPipeline
from app.jobs.bulk import BULK
from app.jobs.ingest import BACKFILL
from app.jobs.kinds import ARXIV, CALIBRATE, FETCH, IMPORT, INGEST, SAMPLES
from app.jobs.maintenance import LOOK_SHARED_S
from app.jobs.reembed import REEMBED
from app.jobs.runner import JobRunner
from app.models.ollama import same_model
from app.retrieval.pipeline import Retriever
from app.retrieval.reading import Calibration, Calibrations
from app.retrieval.request import Retrieval, RetrievalOptions, SearchRequest
from app.retrieval.reranking import LateInteraction
from app.settings import Settings
from app.storage.catalog.rows import Build
from app.storage.store import IndexStore

EmbedderFor = Callable[[Library, Fingerprint | None], Embedder | None]
"""Returns the embedder that a library's fingerprint asks for (None: it is empty); None when it
cannot be had now."""


@dataclass(frozen=True, slots=True)
class Wired:
    """One library with one embedder."""

    embedder: Embedder | None
    """Of passages."""
    questions: Embedder | None
    """The same, for questions, which wait less."""
    build: int | None
    """The build it is wired to; None before the first vector."""
    calibration: Calibration | None
    """What its bands, cutoff and confidence go by; None where the embedder has no row: those of
    MiniLM."""
    retriever: Retriever
    pipeline: IngestPipeline


@dataclass(slots=True)
class Libraries:
    """Libraries of an open store, rebuilt when a fingerprint changes; thread-safe."""

    store: IndexStore
    embedder_for: EmbedderFor
    parser: Parser
    ingest: IngestOptions
    retrieval: RetrievalOptions
    reader: Reader | None
    remarks: Callable[[Library], Sequence[Notice]] = lambda _: ()
    """Said at every search of a library."""
    encoder_of: Callable[[], PassageEncoder] | None = None
    """Makes codes for late interaction; None makes none."""
    for_questions: Callable[[Embedder], Embedder] = lambda embedder: embedder
    """Returns what a question waits for."""
    ask_for_ocr: Callable[[Library, str, str], object] | None = None
    """See `IngestPipeline`; None where pictures are not read."""
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _wired: dict[Library, Wired] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not self.ingest.late_interaction_max_chunks:
            self.encoder_of = None

    def wired(self, library: Library) -> Wired:
        with self.store.catalog.moment():
            live = self.store.builds.of(library, "live")
            made_with = self.store.made_with(library)
            row = Calibrations(self.store.calibrations).of(live.fingerprint) if live else None
        # A library without a vector takes the embedder available now; `claim` replaces its build.
        embedder = self.embedder_for(library, made_with)
        build = live.number if live else None
        now = (embedder, build, row)
        with self._lock:
            wired = self._wired.get(library)
            if wired is None or (wired.embedder, wired.build, wired.calibration) != now:
                wired = self._wired[library] = self._wire(library, embedder, live, row)
        return wired

    def _lacking(self, library: Library) -> tuple[Notice, ...]:
        """Return the notice that searches by words miss documents, while they do."""
        if not self.store.projector.words[library].lacking:
            return ()
        said = (
            f"the words of library {library.value!r} are being filled again from the catalog:"
            " until then searches miss documents; nothing needs to be done"
        )
        return (Notice("search_degraded", said),)

    def _wire(
        self,
        library: Library,
        embedder: Embedder | None,
        live: Build | None,
        row: Calibration | None,
    ) -> Wired:
        store = self.store
        build = live.number if live else None
        questions = embedder and self.for_questions(embedder)
        retriever = Retriever(
            store.catalog,
            store.reembedding.view(build),
            store.lexical,
            questions,
            row.applied(self.retrieval) if row else self.retrieval,
            writer=store.writer,
            reader=self.reader,
            late=LateInteraction(store.codes, self.encoder_of()) if self.encoder_of else None,
            remarks=lambda: (*self.remarks(library), *self._lacking(library)),
            asks_host=questions is not embedder,
        )

        def takes_vectors() -> bool:
            # What is read again gets new vectors: while the library refuses them (see `backfill`),
            # it keeps what it has.
            return live is None or (
                embedder is not None
                and live.fingerprint == fingerprint_of(embedder.identity, self.ingest)
            )

        pipeline = IngestPipeline(
            self.parser,
            store.writer,
            embedder,
            self.ingest,
            inspect=inspect,
            rereads=takes_vectors,
            ask_for_ocr=self.ask_for_ocr if self.ingest.reads_pictures else None,
        )
        return Wired(embedder, questions, build, row, retriever, pipeline)

    def searcher(self, library: Library) -> LibrarySearcher:
        wired = self.wired(library)
        return LibrarySearcher(wired.retriever, wired.questions)

    def retrieve(self, request: SearchRequest, trace: Trace) -> Retrieval:
        return self.wired(request.library).retriever.retrieve(request, trace)

    def backfill(self, library: Library) -> VectorBackfill | None:
        """Return a library's backfill; None while its embedder is unavailable.

        Raises:
            FingerprintMismatch: The library holds vectors made otherwise.
        """
        embedder = self.wired(library).embedder
        if embedder is None:
            return None
        fingerprint = fingerprint_of(embedder.identity, self.ingest)
        self.store.writer.claim(library, fingerprint)
        live = self.store.builds.of(library, "live")
        if live is None or live.fingerprint != fingerprint:
            raise FingerprintMismatch(
                f"library {library.value!r} was re-embedded just now: ask again"
            )
        return VectorBackfill(
            self.store.writer, embedder, self.ingest, self.code_backfill(), live.number
        )

    def lacks_codes(self, library: Library) -> bool:
        codes = self.code_backfill()
        return codes is not None and codes.missing(library)

    def code_backfill(self) -> CodeBackfill | None:
        """Return what makes missing codes; None where late interaction is off."""
        if self.encoder_of is None:
            return None
        return CodeBackfill(
            self.store.codes,
            self.encoder_of(),
            self.store.catalog,
            self.ingest.late_interaction_max_chunks,
        )


_OF_MODELS = (
    "llm_model helper_model llm_temperature llm_max_tokens llm_num_ctx reasoning model_prompts"
    " evidence prompts_dir"
).split()
"""Settings that act where a model is asked."""


def inert_settings(settings: Settings) -> list[str]:
    """Return a line for each changed setting without effect, naming what acts."""
    return [*_without_fusion(settings), *_without_model(settings), *_unused_prompts(settings)]


def _without_fusion(settings: Settings) -> list[str]:
    if settings.fusion == "dense":
        return []
    options = settings.retrieval()
    weight = options.keyword_fusion_weight if settings.fusion == "relative_score" else 0.0
    closeness = (
        "the closeness of the embedder's calibration decides (documind calibrate;"
        " diagnostics shows it)"
    )
    instead = {
        "relevance_threshold": closeness,
        "public_relevance_threshold": closeness,
        "keyword_rerank_weight": f"keyword overlap weighs {weight:g}",
        "public_keyword_rerank_weight": f"keyword overlap weighs {weight:g}",
    }
    return [
        f"{name.upper()} acts under FUSION=dense only; under FUSION={settings.fusion} {acts}"
        for name, acts in instead.items()
        if getattr(settings, name) != Settings.model_fields[name].default
    ]


def _without_model(settings: Settings) -> list[str]:
    provider = settings.llm_provider
    if provider == "extractive":
        return [
            f"{name.upper()} does not act under LLM_PROVIDER=extractive: no model is asked"
            for name in _OF_MODELS
            if name in settings.model_fields_set
        ]
    if provider in {"auto", "ollama"} or not settings.llm_model:
        return []
    return [
        f"LLM_MODEL names a model of Ollama; under LLM_PROVIDER={provider} HOSTED_MODEL decides"
    ]


def _unused_prompts(settings: Settings) -> list[str]:
    """Return a line for each prompt of PROMPTS_DIR that MODEL_PROMPTS leaves out."""
    folder = settings.prompts_dir
    if folder is None or settings.model_prompts == "auto" or not folder.is_dir():
        return []
    own = {path.stem for path in folder.glob("*.yml")}
    left_out = (
        own & {"contract", *get_args(AnswerMode)}
        if settings.model_prompts == "compact"
        else own & {"compact"}
    )
    return [
        f"{name}.yml of PROMPTS_DIR does not act under MODEL_PROMPTS={settings.model_prompts}"
        for name in sorted(left_out)
    ]


def acting_constants(
    options: RetrievalOptions, library: Library, row: Calibration | None
) -> dict[str, float]:
    """Return the constants that decide in a library, by fusion and calibration (None: MiniLM's)."""
    acting = row.applied(options) if row else options

    def taken(names: str) -> dict[str, float]:
        return {name: float(getattr(acting, name)) for name in names.split()}

    constants = taken("band_strong band_partial similarity_offset similarity_scale")
    if options.fusion == "dense":
        prefix = "" if library is Library.PAPERS else "public_"
        return {
            **constants,
            "distance_threshold": getattr(options, f"{prefix}relevance_threshold"),
            "keyword_weight": getattr(options, f"{prefix}keyword_rerank_weight"),
        }
    weighs = options.fusion == "relative_score"
    return {
        **constants,
        **taken("closeness_threshold coverage_threshold confidence_midpoint confidence_slope"),
        "keyword_weight": options.keyword_fusion_weight if weighs else 0.0,
        "phrase_weight": options.phrase_fusion_weight if weighs else 0.0,
    }


logger = logging.getLogger(__name__)

LOOK_SELDOM_S = 30.0
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
            with self._store.catalog.moment():
                for library in Library:
                    self._look(library)
        except (StorageError, Conflict) as error:
            logger.warning(
                "what embeds the libraries could not be looked at; trying again: %s",
                error.message,
                exc_info=None if error.retryable else error,
            )
        return LOOK_SHARED_S if self._store.options.shared else LOOK_SELDOM_S

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
