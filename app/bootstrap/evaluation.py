"""Compose evaluations: searches under any options over libraries or an own index."""

from __future__ import annotations

import hashlib
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from app.answer.conversation import ConversationMemory
from app.answer.models import ModelSelector, ModelSpeeds
from app.answer.options import AnswerOptions
from app.answer.records import AnswerJournal
from app.answer.research import Research
from app.answer.search import LibrarySearcher
from app.answer.service import RAGService
from app.answer.writing import AnswerWriter
from app.bootstrap.libraries import fingerprint_of
from app.core.errors import InvalidInput
from app.core.ids import checkout_sha, fingerprint8
from app.core.ports import Embedder, PassageEncoder, Reranker
from app.core.types import EmbedderIdentity, FloatArray, Library
from app.evaluation.answers import Ask, Judge
from app.evaluation.arms import Arm, Chunking
from app.evaluation.collections import Collection
from app.evaluation.report import ReportArchive
from app.evaluation.session import SearchableIndex, Session, Watch
from app.generation.grounding import Grounder
from app.generation.prompts import PromptLibrary
from app.ingest.embedding import CodeBackfill, VectorBackfill
from app.ingest.names import IngestOptions
from app.ingest.parsers import DirectParser
from app.ingest.pipeline import IngestPipeline
from app.jobs.maintenance import EvaluationService, register_evaluation
from app.jobs.runner import JobRunner
from app.retrieval.pipeline import Retriever
from app.retrieval.request import RetrievalOptions
from app.storage.options import IndexOptions
from app.storage.store import IndexStore

PREFIX = "documind-bench-"
"""Of temporary directories."""


class CachedEmbedder:
    """Embedder that caches vectors of whole batches of passages on disk.

    Questions are embedded each time.
    """

    def __init__(self, embedder: Embedder, folder: Path) -> None:
        self._embedder = embedder
        self._folder = folder
        folder.mkdir(parents=True, exist_ok=True)

    @property
    def identity(self) -> EmbedderIdentity:
        """The model's own."""
        return self._embedder.identity

    def embed_passages(self, texts: Sequence[str]) -> FloatArray:
        """Return the vectors from disk, or embed and keep them."""
        key = hashlib.sha256("\0".join([self.identity.digest, *texts]).encode()).hexdigest()[:32]
        path = self._folder / f"{key}.npy"
        if path.is_file():
            kept: FloatArray = np.load(path)
            return kept
        rows = self._embedder.embed_passages(texts)
        np.save(path, rows)
        return rows

    def embed_query(self, text: str) -> FloatArray:
        """Embed a question, uncached: its time is part of what is measured."""
        return self._embedder.embed_query(text)

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        return self._embedder.count_tokens(texts)


@dataclass(frozen=True, slots=True)
class Bench:
    """An open index with a collection in its public library."""

    store: IndexStore
    embedder: Embedder
    passage_of: dict[str, str]
    """Collection id by doc_id."""
    fingerprint: str


@contextmanager
def bench(
    collection: Collection,
    embedder: Embedder,
    *,
    ingest: IngestOptions,
    parent: Path | None = None,
    encoder: PassageEncoder | None = None,
    watch: Watch = lambda *_: None,
) -> Iterator[Bench]:
    """Index a collection, one file per passage; remove the index afterwards.

    Args:
        collection: Goes into the public library.
        embedder: Of passages and questions.
        ingest: Chunk sizes and chunker.
        parent: Where the temporary directory is made; the system's own place by default.
        encoder: Makes codes for late interaction; None makes none.
        watch: Told of each document and batch of vectors.

    Raises:
        InvalidInput: A passage cannot be indexed.
        Cancelled: The watch said so.
    """
    library = Library.PUBLIC
    fingerprint = fingerprint_of(embedder.identity, ingest)
    with (
        tempfile.TemporaryDirectory(prefix=PREFIX, dir=parent) as folder,
        IndexStore(IndexOptions(Path(folder), Path(folder) / "chroma")) as store,
    ):
        pipeline = IngestPipeline(DirectParser(ingest), store.writer, embedder, ingest)
        passages = collection.passages
        raw = (passage.raw(collection.name) for passage in passages)
        passage_of: dict[str, str] = {}
        for passage, outcome in zip(passages, pipeline.ingest(library, raw), strict=True):
            if outcome.doc_id is None:
                raise InvalidInput(
                    f"passage {passage.id!r} of {collection.name!r} cannot be indexed:"
                    f" {outcome.reason}"
                )
            passage_of[outcome.doc_id] = passage.id
            watch(len(passage_of), len(passages), "documents")
        store.writer.claim(library, fingerprint)
        chunks = store.catalog.counts(library).chunks
        VectorBackfill(store.writer, embedder, ingest).run(
            library, progress=lambda done: watch(done, chunks, "vectors")
        )
        if encoder is not None:
            CodeBackfill(
                store.codes, encoder, store.catalog, ingest.late_interaction_max_chunks
            ).run(library)
        yield Bench(store, embedder, passage_of, fingerprint8(fingerprint))


EmbedderOf = Callable[[Library], Embedder | None]


@dataclass(frozen=True, slots=True)
class EvaluationWorkshop:
    """A `Workshop` over an open store."""

    store: IndexStore
    embedder_of: EmbedderOf
    """Of a library as it is; None while it cannot be had: then words alone are searched."""
    bench_embedder: Callable[[], Embedder]
    """Embeds collections and their questions."""
    models: ModelSelector
    answer_writer: AnswerWriter
    grounder: Grounder
    answer: AnswerOptions
    ingest: IngestOptions
    options: RetrievalOptions
    reranker: Reranker | None
    folder: Path
    """Where vectors of collections are kept between runs, and indexes for the time of one."""

    @property
    def has_cross_encoder(self) -> bool:
        return self.reranker is not None

    def live(self, library: Library) -> SearchableIndex:
        fingerprint = self.store.catalog.fingerprint(library)
        embedder = self.embedder_of(library)
        made = fingerprint8(fingerprint) if fingerprint else "empty"
        models = {fingerprint.embedding_model: fingerprint.model_digest} if fingerprint else {}
        return self._place(self.store, library, self.embedder_of, embedder, made, models, {})

    def made_with(self, chunking: Chunking) -> tuple[str, Mapping[str, str]]:
        identity = self.bench_embedder().identity
        return fingerprint8(fingerprint_of(identity, chunking.options(self.ingest))), {
            identity.model: identity.digest
        }

    @contextmanager
    def indexed(
        self, collection: Collection, chunking: Chunking, watch: Watch, *, keep_vectors: bool
    ) -> Iterator[SearchableIndex]:
        self.folder.mkdir(parents=True, exist_ok=True)
        embedder = self.bench_embedder()
        if keep_vectors:
            embedder = CachedEmbedder(embedder, self.folder / "vectors")
        ingest = chunking.options(self.ingest)
        with bench(collection, embedder, ingest=ingest, parent=self.folder, watch=watch) as open_:
            made, models = self.made_with(chunking)
            yield self._place(
                open_.store,
                Library.PUBLIC,
                lambda _: embedder,
                embedder,
                made,
                models,
                open_.passage_of,
            )

    def _place(
        self,
        store: IndexStore,
        library: Library,
        embedder_of: EmbedderOf,
        embedder: Embedder | None,
        fingerprint: str,
        models: Mapping[str, str],
        passage_of: Mapping[str, str],
    ) -> SearchableIndex:
        def retriever(arm: Arm, by: Embedder | None) -> Retriever:
            # without a writer: an evaluation leaves nothing behind
            return Retriever(
                store.catalog, store.vectors, store.lexical, by, arm.options, reranker=self.reranker
            )

        def searcher(of: Library, arm: Arm) -> LibrarySearcher:
            by = embedder_of(of)
            return LibrarySearcher(retriever(arm, by), by)

        def ask_of(arm: Arm) -> Ask:
            quiet = replace(self.answer, store_answers="off")
            research = Research(
                store.catalog,
                lambda of: searcher(of, arm),
                self.answer_writer,
                self.grounder,
                ConversationMemory(self.store.conversations, quiet),
                ModelSpeeds(self.store.models),
                quiet,
                arm.options.top_k,
            )
            journal = AnswerJournal(self.store.answers, quiet, dict)
            return RAGService(
                catalog=store.catalog, models=self.models, research=research, journal=journal
            ).answer

        def retriever_of(arm: Arm) -> Retriever:
            return retriever(arm, embedder)

        return SearchableIndex(
            library,
            store.catalog,
            store.lexical,
            retriever_of,
            ask_of,
            fingerprint,
            models,
            passage_of,
        )


def compose_evaluation(
    workshop: EvaluationWorkshop, prompts: PromptLibrary, jobs: JobRunner, git_sha: str
) -> EvaluationService:
    """Register the evaluation job; the judge is the model in use when a run begins.

    What a run that was killed left of its index is removed.
    """
    for left in workshop.folder.glob(f"{PREFIX}*"):
        shutil.rmtree(left, ignore_errors=True)

    def session() -> Session:
        model = workshop.models.select().model
        return Session(
            workshop, git_sha or checkout_sha(), Judge(model, prompts) if model else None
        )

    return register_evaluation(jobs, session, ReportArchive(workshop.folder))
