"""Compose evaluations: searches under any options over libraries or an own index."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from app.answer.journal import AnswerJournal
from app.answer.memory import ConversationMemory
from app.answer.models import ModelSelector
from app.answer.options import AnswerOptions
from app.answer.research import Research
from app.answer.search import LibrarySearcher
from app.answer.service import RAGService
from app.answer.speeds import ModelSpeeds
from app.answer.writing import AnswerWriter
from app.bootstrap.bench import PREFIX, CachedEmbedder, bench
from app.bootstrap.libraries import fingerprint_of
from app.core.ids import fingerprint8
from app.core.ports import Embedder, Reranker
from app.core.release import checkout_sha
from app.core.types import Library
from app.evaluation.archive import ReportArchive
from app.evaluation.arms import Arm, Chunking
from app.evaluation.collections import Collection
from app.evaluation.judge import Judge
from app.evaluation.session import Session
from app.evaluation.workshop import Ask, SearchableIndex, Step
from app.generation.grounding import Grounder
from app.generation.prompts import PromptLibrary
from app.index.store import IndexStore
from app.ingest.options import IngestOptions
from app.jobs.evaluation import EvaluationService, register_evaluation
from app.jobs.runner import JobRunner
from app.retrieval.options import RetrievalOptions
from app.retrieval.pipeline import Retriever

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
        """Return whether a cross-encoder is configured."""
        return self.reranker is not None

    def live(self, library: Library) -> SearchableIndex:
        """Return a library as it is; it is only read."""
        fingerprint = self.store.catalog.fingerprint(library)
        embedder = self.embedder_of(library)
        made = fingerprint8(fingerprint) if fingerprint else "empty"
        models = {fingerprint.embedding_model: fingerprint.model_digest} if fingerprint else {}
        return self._place(self.store, library, self.embedder_of, embedder, made, models, {})

    def made_with(self, chunking: Chunking) -> tuple[str, Mapping[str, str]]:
        """Return the fingerprint of an index cut like this, and digests by model name."""
        identity = self.bench_embedder().identity
        return fingerprint8(fingerprint_of(identity, chunking.options(self.ingest))), {
            identity.model: identity.digest
        }

    @contextmanager
    def indexed(
        self, collection: Collection, chunking: Chunking, step: Step, *, keep_vectors: bool
    ) -> Iterator[SearchableIndex]:
        """Index a collection apart from the libraries; remove the index afterwards.

        Its vectors may be kept for the next run.
        """
        self.folder.mkdir(parents=True, exist_ok=True)
        embedder = self.bench_embedder()
        if keep_vectors:
            embedder = CachedEmbedder(embedder, self.folder / "vectors")
        ingest = chunking.options(self.ingest)
        with bench(
            {Library.PUBLIC: [collection]}, embedder, ingest=ingest, parent=self.folder, step=step
        ) as open_:
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
