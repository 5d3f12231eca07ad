"""Provide the places of evaluations: libraries as they are, or an index for the time of a run."""

from __future__ import annotations

import hashlib
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from app.answer.memory import ConversationMemory
from app.answer.models import ModelSelector, ModelSpeeds
from app.answer.options import AnswerOptions
from app.answer.records import AnswerJournal
from app.answer.research import Research
from app.answer.search import LibrarySearcher
from app.answer.service import RAGService
from app.answer.writing import AnswerWriter
from app.core.errors import InvalidInput
from app.core.ids import fingerprint8
from app.core.ports import Embedder, PassageEncoder, Reader
from app.core.types import EmbedderIdentity, FloatArray, Library
from app.evaluation.answers import Ask
from app.evaluation.arms import Arm, Chunking
from app.evaluation.collections import Collection
from app.generation.check.grounding import Grounder
from app.ingest.embedding import CodeBackfill, VectorBackfill, fingerprint_of
from app.ingest.options import IngestOptions
from app.ingest.parsers import DirectParser
from app.ingest.pipeline import IngestPipeline
from app.retrieval.pipeline import Retriever
from app.retrieval.request import RetrievalOptions
from app.retrieval.reranking import LateInteraction
from app.storage.options import IndexOptions
from app.storage.store import IndexStore

Watch = Callable[[int, int, str], None]
"""Told how many are done, of how many, of what; may raise Cancelled, after which the run can go on
later."""
PREFIX = "documind-bench-"
"""Of temporary directories."""


class CachedEmbedder:
    """Embedder that keeps vectors of whole batches of passages on disk, none of questions."""

    def __init__(self, embedder: Embedder, folder: Path) -> None:
        self._embedder = embedder
        self._folder = folder
        folder.mkdir(parents=True, exist_ok=True)

    @property
    def identity(self) -> EmbedderIdentity:
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
    encoder: PassageEncoder | None = None

    def retriever(self, options: RetrievalOptions) -> Retriever:
        """Return a retriever, with late interaction where the passages have codes."""
        late = LateInteraction(self.store.codes, self.encoder) if self.encoder else None
        store = self.store
        return Retriever(
            store.catalog, store.vectors, store.lexical, self.embedder, options, late=late
        )


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
    """Index a collection, one file per passage, in the public library; remove the index afterwards.

    The index is made in `parent`, by default where the system keeps temporary files. With
    `encoder`, passages get codes for late interaction. `watch` is told of each document and batch
    of vectors.

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
        yield Bench(store, embedder, passage_of, fingerprint8(fingerprint), encoder)


EmbedderOf = Callable[[Library], Embedder | None]


@dataclass(frozen=True, slots=True)
class SearchableIndex:
    """An index that can be searched under any options; nothing is stored in it."""

    workshop: Workshop
    store: IndexStore
    library: Library
    embedder_of: EmbedderOf
    fingerprint: str
    models: Mapping[str, str]
    """Digest by model name."""
    passage_of: Mapping[str, str] = field(default_factory=dict)
    """Collection id by doc_id; empty where documents are named by their own."""

    def retriever_of(self, arm: Arm) -> Retriever:
        return self._retriever(arm, self.embedder_of(self.library))

    def _retriever(self, arm: Arm, embedder: Embedder | None) -> Retriever:
        # without a writer: an evaluation leaves nothing behind
        store, reader = self.store, self.workshop.reader
        return Retriever(
            store.catalog, store.vectors, store.lexical, embedder, arm.options, reader=reader
        )

    def ask_of(self, arm: Arm) -> Ask:
        """Return the query use case under an arm; nothing that it answers is stored."""
        shop = self.workshop
        quiet = replace(shop.answer, store_answers="off")

        def searcher(library: Library) -> LibrarySearcher:
            embedder = self.embedder_of(library)
            return LibrarySearcher(self._retriever(arm, embedder), embedder)

        research = Research(
            self.store.catalog,
            searcher,
            shop.answer_writer,
            shop.grounder,
            ConversationMemory(shop.store.conversations, quiet),
            ModelSpeeds(shop.store.models),
            quiet,
            arm.options.top_k,
        )
        journal = AnswerJournal(shop.store.answers, quiet, dict)
        return RAGService(
            catalog=self.store.catalog, models=shop.models, research=research, journal=journal
        ).answer


@dataclass(frozen=True, slots=True)
class Workshop:
    """Makes places of evaluations over an open store."""

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
    reader: Reader | None
    folder: Path
    """Where vectors of collections are kept between runs, and indexes for the time of one."""

    def live(self, library: Library) -> SearchableIndex:
        """Return a library as it is; it is only read."""
        fingerprint = self.store.catalog.fingerprint(library)
        made = fingerprint8(fingerprint) if fingerprint else "empty"
        models = {fingerprint.embedding_model: fingerprint.model_digest} if fingerprint else {}
        return SearchableIndex(self, self.store, library, self.embedder_of, made, models)

    def made_with(self, chunking: Chunking) -> tuple[str, Mapping[str, str]]:
        """Return the fingerprint of an index cut like this, and digests by model name."""
        identity = self.bench_embedder().identity
        return fingerprint8(fingerprint_of(identity, chunking.options(self.ingest))), {
            identity.model: identity.digest
        }

    @contextmanager
    def indexed(
        self, collection: Collection, chunking: Chunking, watch: Watch, *, keep_vectors: bool
    ) -> Iterator[SearchableIndex]:
        """Index a collection for the time of the block; its vectors may be kept."""
        self.folder.mkdir(parents=True, exist_ok=True)
        embedder = self.bench_embedder()
        if keep_vectors:
            embedder = CachedEmbedder(embedder, self.folder / "vectors")
        ingest = chunking.options(self.ingest)
        with bench(collection, embedder, ingest=ingest, parent=self.folder, watch=watch) as open_:
            made, models = self.made_with(chunking)
            yield SearchableIndex(
                self,
                open_.store,
                Library.PUBLIC,
                lambda _: embedder,
                made,
                models,
                open_.passage_of,
            )
