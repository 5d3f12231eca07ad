"""Open what everything else stands on: data, prompts, parser, models, libraries."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass

from app.answer.checking import CheckService, SecondOpinion
from app.answer.conversation import ConversationMemory
from app.answer.models import ModelSpeeds
from app.answer.records import AnswerJournal
from app.answer.research import Research
from app.answer.service import RAGService
from app.answer.suggestions import Suggester
from app.answer.writing import AnswerWriter
from app.bootstrap.libraries import Libraries, LibraryEmbedders, inert_settings
from app.bootstrap.models import Models
from app.core.errors import InvalidInput
from app.core.ids import package_version, without_credentials
from app.core.ports import Embedder, Reranker
from app.core.trace import SILENT, Spans
from app.core.types import Library
from app.generation.context import TokenCalibrator
from app.generation.grounding import Grounder
from app.generation.prompts import PromptLibrary
from app.generation.support import SupportJudge
from app.ingest.sandbox import SandboxedParser
from app.jobs.runner import JobRunner
from app.jobs.shared import SharedRunner
from app.jobs.worker import LocalRunner
from app.settings import Settings
from app.storage.opening import open_shared_jobs
from app.storage.store import IndexStore

# Create spans for a configured collector; otherwise none.


@contextmanager
def open_spans(settings: Settings, release: str) -> Iterator[Spans]:
    """Yield where spans begin; on leaving, what is left is sent.

    A collector that cannot be used is told in the log and costs the spans, never the server.
    """
    endpoint = settings.otel_exporter_otlp_endpoint
    if not endpoint:
        yield SILENT
        return
    from app.models.telemetry import OtelSpans, otlp_exporter  # noqa: PLC0415  # loaded only when asked for

    try:
        exporter = otlp_exporter(endpoint)
    except InvalidInput as error:
        logger.warning("%s; the server goes on without traces", error.message)
        yield SILENT
        return
    logger.info("traces go to %s", without_credentials(endpoint))
    with OtelSpans(exporter, release) as spans:
        yield spans


logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Foundation:
    """The open parts of a server, before anything answers or works."""

    settings: Settings
    spans: Spans
    prompts: PromptLibrary
    parser: SandboxedParser
    store: IndexStore
    models: Models
    reranker: Reranker | None
    embedders: LibraryEmbedders
    libraries: Libraries

    def embedder_of(self, library: Library) -> Embedder | None:
        """Return a library's embedder as it is now; None while it cannot be had."""
        return self.libraries.wired(library).embedder

    def default_embedder(self) -> Embedder:
        """Return the default library's embedder; the embedded one while it is away."""
        return self.embedder_of(self.settings.library) or self.models.embedded.sentence_embedder

    def influences(self) -> Mapping[str, str]:
        """Return what can change an answer besides the documents, as text."""
        chosen = {**asdict(self.settings.retrieval()), **asdict(self.settings.generation())}
        del chosen["explicit"]  # what an option is counts, not who set it
        return {
            **{name: str(value) for name, value in chosen.items()},
            "generator": self.models.generator_name,
        }


def open_foundation(settings: Settings, stack: ExitStack) -> Foundation:
    """Open the parts in order; `stack` closes them in reverse.

    Raises:
        IndexDamaged: The catalog is damaged; the message names the cure.
        InvalidInput: A setting or a prompt file is wrong.
    """
    spans = stack.enter_context(open_spans(settings, package_version()))
    for line in inert_settings(settings):
        logger.warning("%s", line)
    prompts = PromptLibrary.load(settings.prompts_dir)
    parser = stack.enter_context(SandboxedParser(settings.ingest()))
    store = stack.enter_context(
        IndexStore(settings.index(), crash_at=settings.documind_crash_at or None)
    )
    models = stack.enter_context(Models(settings.providers(), settings.generation(), store.models))
    reranker = models.embedded.reranker()
    embedders = LibraryEmbedders(store, models.embedders)
    libraries = Libraries(
        store,
        models.embedders.of,
        parser,
        settings.ingest(),
        settings.retrieval(),
        reranker,
        embedders.notices,
        lambda: models.embedded.late_encoder,
        models.embedders.for_questions,
    )
    return Foundation(
        settings, spans, prompts, parser, store, models, reranker, embedders, libraries
    )


# Compose what answers questions: the query use case, checks, suggestions.


@dataclass(frozen=True, slots=True)
class AnswerParts:
    """The query use case with its parts."""

    rag: RAGService
    checker: CheckService
    second_opinion: SecondOpinion
    memory: ConversationMemory
    journal: AnswerJournal
    answer_writer: AnswerWriter
    grounder: Grounder
    speeds: ModelSpeeds
    suggester: Suggester


def compose_answering(base: Foundation) -> AnswerParts:
    """Compose what answers over open libraries; nothing is started."""
    settings, store, models = base.settings, base.store, base.models
    memory = ConversationMemory(store.conversations, settings.answer())
    journal = AnswerJournal(store.answers, settings.answer(), base.influences)
    writer = AnswerWriter(
        models.embedded.extractive, base.prompts, TokenCalibrator(), settings.generation()
    )
    grounder = Grounder(settings.generation(), base.prompts.instructions())
    speeds = ModelSpeeds(store.models)
    research = Research(
        store.catalog,
        base.libraries.searcher,
        writer,
        grounder,
        memory,
        speeds,
        settings.answer(),
        settings.retrieval().top_k,
        settings.fusion,
    )
    return AnswerParts(
        rag=RAGService(
            catalog=store.catalog,
            models=models,
            research=research,
            journal=journal,
            spans=base.spans,
        ),
        checker=CheckService(
            searcher_for=base.libraries.searcher,
            judge=SupportJudge(),
            options=settings.generation(),
            prompts=base.prompts.instructions(),
        ),
        second_opinion=SecondOpinion(models, base.prompts),
        memory=memory,
        journal=journal,
        answer_writer=writer,
        grounder=grounder,
        speeds=speeds,
        suggester=Suggester(
            catalog=store.catalog,
            searcher_for=base.libraries.searcher,
            extractive=models.embedded.extractive,
        ),
    )


# Choose what runs the jobs: this process alone, or several on one database.


def open_runner(base: Foundation, stack: ExitStack) -> JobRunner:
    """Return the runner of the settings; `stack` closes its connections.

    Raises:
        InvalidInput: A process that is alone would leave lanes without work.
    """
    options, store = base.settings.jobs(), base.store.jobs
    if not base.settings.is_shared:
        return LocalRunner(store, options, spans=base.spans)
    shared = stack.enter_context(open_shared_jobs(base.settings.database_url))
    return SharedRunner(shared, store, options, spans=base.spans)
