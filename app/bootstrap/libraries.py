"""Each library's embedder, retriever, pipeline and backfill, as its fingerprint decides."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from app.answer.search import LibrarySearcher
from app.core.errors import FingerprintMismatch
from app.core.ports import Embedder, Parser, PassageEncoder, Reader
from app.core.trace import Trace
from app.core.types import Fingerprint, Library, Notice
from app.generation.flags.injection import inspect
from app.ingest.embedding import CodeBackfill, VectorBackfill, fingerprint_of
from app.ingest.options import IngestOptions
from app.ingest.pipeline import IngestPipeline
from app.retrieval.pipeline import Retriever
from app.retrieval.request import Retrieval, RetrievalOptions, SearchRequest
from app.retrieval.reranking import LateInteraction
from app.retrieval.scoring import Calibration, Calibrations
from app.storage.catalog.rows import Build
from app.storage.store import IndexStore

EmbedderFor = Callable[[Library, Fingerprint | None], Embedder | None]
"""Returns the embedder that a library's fingerprint asks for (None: it is empty); None when it
cannot be had now."""


@dataclass(frozen=True, slots=True)
class LibraryRuntime:
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
    _wired: dict[Library, LibraryRuntime] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not self.ingest.late_interaction_max_chunks:
            self.encoder_of = None

    def runtime(self, library: Library) -> LibraryRuntime:
        with self.store.catalog.snapshot():
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
    ) -> LibraryRuntime:
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
        return LibraryRuntime(embedder, questions, build, row, retriever, pipeline)

    def searcher(self, library: Library) -> LibrarySearcher:
        wired = self.runtime(library)
        return LibrarySearcher(wired.retriever, wired.questions)

    def retrieve(self, request: SearchRequest, trace: Trace) -> Retrieval:
        return self.runtime(request.library).retriever.retrieve(request, trace)

    def backfill(self, library: Library) -> VectorBackfill | None:
        """Return a library's backfill; None while its embedder is unavailable.

        Raises:
            FingerprintMismatch: The library holds vectors made otherwise.
        """
        embedder = self.runtime(library).embedder
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
