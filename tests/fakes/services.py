"""The composition for tests of the edge: all of it real, but for models and hosts."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager

from app.answer.models import ModelChoice
from app.bootstrap.models import EmbeddedModels, Models
from app.bootstrap.services import Services
from app.core.cancel import CancelToken
from app.core.errors import ProviderUnreachable
from app.core.ports import Embedder
from app.core.trace import SILENT, Spans
from app.core.types import (
    EmbeddingState,
    Fingerprint,
    HostStatus,
    Library,
    ModelOnDisk,
    ModelReport,
)
from app.generation.quote.quoting import ExtractiveGenerator
from app.ingest.embedding import fingerprint_of
from app.ingest.parsers import DirectParser
from app.models.arxiv import ArxivClient
from app.models.ollama import PullProgress
from app.models.selection import EmbedderChoice
from app.models.webpage import WebClient
from app.retrieval.request import RetrievalOptions
from app.retrieval.scoring import Calibration, Calibrations
from app.settings import Settings
from app.storage.store import IndexStore
from tests.fakes.embedders import HashEmbedder
from tests.fakes.generators import FixedModels
from tests.fakes.readers import WordReader

Pull = Callable[[str, CancelToken], Iterable[PullProgress]]


class HashModels(EmbeddedModels):
    """The embedded models without a model: hashed words."""

    extractive = ExtractiveGenerator()
    reader = WordReader()
    sentence_embedder = HashEmbedder(64)  # type: ignore[assignment]  # the same

    def __init__(self) -> None:
        """Load nothing."""


class LocalModels(Models):
    """Models without a host; `fixed` decides who answers (nobody: quotes)."""

    def __init__(
        self, settings: Settings, store: IndexStore, fixed: FixedModels, pull: Pull | None
    ) -> None:
        super().__init__(settings.providers(), settings.generation(), store.models)
        self.embedded = HashModels()
        self._fixed = fixed
        self._pull = pull

    def select(self, model: str | None = None) -> ModelChoice:
        return self._fixed.select(model)

    @property
    def generator_name(self) -> str:
        return (self._fixed.model or self.embedded.extractive).name

    def for_questions(self, embedder: Embedder) -> Embedder:
        return embedder

    def embedder_of(self, library: Library, fingerprint: Fingerprint | None) -> Embedder:
        return HashModels.sentence_embedder

    def embedder_named(self, library: Library, provider: str | None, model: str | None) -> Embedder:
        return HashModels.sentence_embedder

    def embedder_state(self, library: Library, fingerprint: Fingerprint | None) -> EmbeddingState:
        return EmbeddingState("fake:hash", reachable=True)

    def better_embedder(self, library: Library, fingerprint: Fingerprint) -> EmbedderChoice | None:
        return None

    def choose(self, model: str) -> None:
        assert self._store is not None
        self._store.choose(model)

    def hosts(self) -> tuple[HostStatus, ...]:
        return ()

    def report(self, embeds: str) -> ModelReport:
        return ModelReport(
            installed=(ModelOnDisk("llama3.2:latest", 2_000_000_000, chats=True),),
            loaded=("llama3.2:latest",),
            in_use={"answers": self.generator_name},
            decided_by="server",
            why="",
            fit=None,
        )

    def pull(self, model: str, cancel: CancelToken) -> Iterator[PullProgress]:
        if self._pull is None:
            raise ProviderUnreachable(f"no host to pull {model!r} into")
        yield from self._pull(model, cancel)


class _OnThisMachine:
    """Doubles of sites, whose ports are free ones."""

    def __contains__(self, netloc: object) -> bool:
        return str(netloc).startswith("127.0.0.1:")


@contextmanager
def local_services(
    settings: Settings,
    models: FixedModels | None = None,
    pull: Pull | None = None,
    spans: Spans = SILENT,
) -> Iterator[Services]:
    """Open everything in the settings' data directory and close it again."""
    settings = settings.model_copy(
        update={"late_interaction_max_chunks": 0, "documind_git_sha": "0123456789abcdef"}
    )
    with ExitStack() as stack:
        store = stack.enter_context(IndexStore(settings.index()))
        local = stack.enter_context(LocalModels(settings, store, models or FixedModels(), pull))
        made_with = fingerprint_of(local.embedded.sentence_embedder.identity, settings.ingest())
        for library in Library:
            store.writer.claim(library, made_with)
        usual = RetrievalOptions()
        names = Calibration.__dataclass_fields__
        Calibrations(store.calibrations).keep(
            made_with, Calibration(**{name: getattr(usual, name) for name in names})
        )
        named = "arxiv_base_url" in settings.model_fields_set
        arxiv = ArxivClient(
            settings.arxiv_base_url if named else "http://127.0.0.1:9", interval_s=0.0
        )
        parser = DirectParser(settings.ingest())
        pages = WebClient(max_bytes=settings.ingest().max_file_bytes, trusted=_OnThisMachine())
        services = Services(settings, store, local, parser, arxiv, pages, spans)
        services.jobs.start()
        stack.callback(services.jobs.close)
        yield services
