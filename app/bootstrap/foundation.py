"""Open what everything else stands on: data, prompts, parser, models, libraries."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import asdict, dataclass

from app.bootstrap.acting import inert_settings
from app.bootstrap.adoption import LibraryEmbedders
from app.bootstrap.libraries import Libraries
from app.bootstrap.models import Models
from app.bootstrap.telemetry import open_spans
from app.core.ports import Embedder, Reranker
from app.core.release import package_version
from app.core.spans import Spans
from app.core.types import Library
from app.generation.prompts import PromptLibrary
from app.index.store import IndexStore
from app.ingest.sandbox import SandboxedParser
from app.settings import Settings

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
