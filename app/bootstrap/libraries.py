"""Build each library's embedder, retriever, pipeline and backfill.

Its fingerprint decides which.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from app.answer.search import LibrarySearcher
from app.core.errors import FingerprintMismatch
from app.core.ports import Embedder, Parser, PassageEncoder, Reranker
from app.core.text import TOKENIZER_VERSION
from app.core.trace import Trace
from app.core.types import EmbedderIdentity, Fingerprint, Library, Notice
from app.generation.injection import inspect
from app.index.catalog.builds import HeldBuild
from app.index.store import IndexStore
from app.ingest.chunking import CHUNKER_VERSION
from app.ingest.codes import CodeBackfill
from app.ingest.embedding import VectorBackfill
from app.ingest.options import IngestOptions
from app.ingest.pipeline import IngestPipeline
from app.retrieval.calibration import Calibration, Calibrations
from app.retrieval.late import LateInteraction
from app.retrieval.options import RetrievalOptions
from app.retrieval.pipeline import Retriever
from app.retrieval.request import Retrieval, SearchRequest

EmbedderFor = Callable[[Library, Fingerprint | None], Embedder | None]
"""Returns the embedder that a library's fingerprint asks for (None: it is empty); None when it
cannot be had now."""


def chunker_name(options: IngestOptions) -> str:
    """Return a name of the chunking: version, sizes, and an unusual chunker."""
    usual = f"{CHUNKER_VERSION}:{options.chunk_size}:{options.chunk_overlap}"
    return usual if options.chunker == "headings" else f"{usual}:{options.chunker}"


def fingerprint_of(identity: EmbedderIdentity, options: IngestOptions) -> Fingerprint:
    """Return what vectors of this embedder over our chunks are made with."""
    return Fingerprint(
        embedding_model=identity.model,
        model_digest=identity.digest,
        dimension=identity.dimension,
        query_prefix=identity.query_prefix,
        passage_prefix=identity.passage_prefix,
        chunker=chunker_name(options),
        analyzer=TOKENIZER_VERSION,
    )


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


class Libraries:
    """Libraries of an open store, rebuilt when a fingerprint changes; thread-safe."""

    def __init__(
        self,
        store: IndexStore,
        embedder_for: EmbedderFor,
        parser: Parser,
        ingest: IngestOptions,
        retrieval: RetrievalOptions,
        reranker: Reranker | None,
        remarks: Callable[[Library], Sequence[Notice]] = lambda _: (),
        encoder_of: Callable[[], PassageEncoder] | None = None,
        for_questions: Callable[[Embedder], Embedder] = lambda embedder: embedder,
    ) -> None:
        """Keep what every library is wired from.

        `remarks` are said at every search of a library; `encoder_of` makes codes for late
        interaction, None makes none; `for_questions` returns what a question waits for.
        """
        self._for_questions = for_questions
        self._remarks = remarks
        self._encoder_of = encoder_of if ingest.late_interaction_max_chunks else None
        self._store = store
        self._calibrations = Calibrations(store.calibrations)
        self._embedder_for = embedder_for
        self._parser = parser
        self._ingest = ingest
        self._retrieval = retrieval
        self._reranker = reranker
        self._lock = threading.Lock()
        self._wired: dict[Library, Wired] = {}

    def wired(self, library: Library) -> Wired:
        """Return how a library is searched and filled now."""
        live = self._store.builds.of(library, "live")
        # A library without a vector takes the embedder available now; `claim` replaces its build.
        embedder = self._embedder_for(library, self._store.made_with(library))
        build = live.number if live else None
        row = self._calibrations.of(live.fingerprint) if live else None
        with self._lock:
            wired = self._wired.get(library)
            if wired is None or (wired.embedder, wired.build, wired.calibration) != (
                embedder,
                build,
                row,
            ):
                wired = self._wired[library] = self._wire(library, embedder, live, row)
        return wired

    def _wire(
        self,
        library: Library,
        embedder: Embedder | None,
        live: HeldBuild | None,
        row: Calibration | None,
    ) -> Wired:
        store = self._store
        build = live.number if live else None
        view = None if build is None else store.reembedding.view(build)
        questions = embedder and self._for_questions(embedder)
        retriever = Retriever(
            store.catalog,
            view or store.vectors,
            store.lexical,
            questions,
            row.applied(self._retrieval) if row else self._retrieval,
            writer=view or store.writer,
            reranker=self._reranker,
            late=LateInteraction(store.codes, self._encoder_of()) if self._encoder_of else None,
            remarks=lambda: self._remarks(library),
            asks_host=questions is not embedder,
        )

        def takes_vectors() -> bool:
            # What is read again gets new vectors: while the library refuses them (see `backfill`),
            # it keeps what it has.
            return live is None or (
                embedder is not None
                and live.fingerprint == fingerprint_of(embedder.identity, self._ingest)
            )

        pipeline = IngestPipeline(
            self._parser,
            store.writer,
            embedder,
            self._ingest,
            inspect=inspect,
            rereads=takes_vectors,
        )
        return Wired(embedder, questions, build, row, retriever, pipeline)

    def searcher(self, library: Library) -> LibrarySearcher:
        """Return what the query use case searches."""
        wired = self.wired(library)
        lexical = self._store.lexical
        return LibrarySearcher(
            wired.retriever,
            wired.questions,
            lambda words: lexical.document_frequencies(library, words)[1],
        )

    def retrieve(self, request: SearchRequest, trace: Trace) -> Retrieval:
        """Search one library."""
        return self.wired(request.library).retriever.retrieve(request, trace)

    def backfill(self, library: Library) -> VectorBackfill | None:
        """Return a library's backfill; None while its embedder is unavailable.

        Raises:
            FingerprintMismatch: The library holds vectors made otherwise.
        """
        embedder = self.wired(library).embedder
        if embedder is None:
            return None
        fingerprint = fingerprint_of(embedder.identity, self._ingest)
        self._store.writer.claim(library, fingerprint)
        live = self._store.builds.of(library, "live")
        if live is None or live.fingerprint != fingerprint:
            raise FingerprintMismatch(
                f"library {library.value!r} was re-embedded just now: ask again"
            )
        return VectorBackfill(
            self._store.reembedding.view(live.number), embedder, self._ingest, self.code_backfill()
        )

    def lacks_codes(self, library: Library) -> bool:
        """Return whether chunks of a library wait for codes."""
        codes = self.code_backfill()
        return codes is not None and codes.missing(library)

    def code_backfill(self) -> CodeBackfill | None:
        """Return what makes missing codes; None where late interaction is off."""
        if self._encoder_of is None:
            return None
        return CodeBackfill(
            self._store.codes,
            self._encoder_of(),
            self._store.catalog,
            self._ingest.late_interaction_max_chunks,
        )
