"""The re-embedding job, composed."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from app.bootstrap.libraries import fingerprint_of
from app.core.ports import Embedder
from app.core.trace import Trace
from app.core.types import Hit, Library
from app.evaluation.comparison import DEPTH, Search
from app.index.store import IndexStore
from app.jobs.kinds import request_backfill
from app.jobs.reembed import ReembedJob, Target
from app.jobs.reembed_request import REEMBED
from app.jobs.registry import per_library
from app.jobs.runner import JobRunner
from app.retrieval.options import RetrievalOptions
from app.retrieval.pipeline import Retriever
from app.retrieval.request import SearchRequest
from app.settings import Settings


def register_reembed(
    jobs: JobRunner,
    settings: Settings,
    store: IndexStore,
    *,
    live_embedder: Callable[[Library], Embedder | None],
    embedder_named: Callable[[Library, str | None, str | None], Embedder],
) -> None:
    """Register `reembed` over an open store."""
    ingest, retrieval = settings.ingest(), settings.retrieval()

    def target_of(library: Library, provider: str | None, model: str | None) -> Target:
        embedder = embedder_named(library, provider, model)
        return Target(embedder, fingerprint_of(embedder.identity, ingest))

    job = ReembedJob(
        reembedding=store.reembedding,
        catalog=store.catalog,
        options=ingest,
        target_of=target_of,
        live_embedder=live_embedder,
        searcher=lambda library, build, embedder, plain: build_search(
            store, retrieval, library, build, embedder, plain=plain
        ),
        later=lambda library: request_backfill(jobs, library),
    )
    jobs.register(REEMBED, job, lane="background", exclusive=per_library)


def build_search(
    store: IndexStore,
    options: RetrievalOptions,
    library: Library,
    build: int,
    embedder: Embedder,
    *,
    plain: bool,
) -> Search:
    """Return a search over one build that keeps nothing.

    Args:
        store: Open.
        options: Of the server's own searches.
        library: What is searched.
        build: Whose vectors.
        embedder: That made them.
        plain: The nearest neighbours alone, so that words do not hide what the vectors are worth.
    """
    view = store.reembedding.view(build)
    retriever = Retriever(store.catalog, view, store.lexical, embedder, options)

    def search(question: str) -> Sequence[Hit]:
        return retriever.retrieve(
            SearchRequest(question, library, top_k=DEPTH + 1, keep_weak=True), Trace()
        ).hits

    def neighbours(question: str) -> Sequence[Hit]:
        found = {
            hit.chunk_id: hit.score
            for hit in view.search(library, embedder.embed_query(question), DEPTH + 1)
        }
        passages = store.catalog.passages(library, list(found))
        return [Hit(passage, -found[chunk_id]) for chunk_id, passage in passages.items()]

    return neighbours if plain else search
