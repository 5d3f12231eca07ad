"""The models in use: who answers, as hosts come and go, and what the hosts have."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Final, Literal, Self, TypeVar, cast

from app.answer.model_test import right_share
from app.answer.models import ModelChoice
from app.core.cancel import CancelToken
from app.core.errors import (
    Conflict,
    InvalidInput,
    ModelNotInstalled,
    ProviderError,
    ProviderUnreachable,
)
from app.core.ports import Embedder, Generator, Reader
from app.core.types import (
    EmbeddingState,
    Fingerprint,
    HostStatus,
    Library,
    ModelFindings,
    ModelOnDisk,
    ModelProfile,
    ModelReport,
    WaitsFor,
)
from app.generation.prompt.prompts import GenerationOptions
from app.generation.quote.quoting import ExtractiveGenerator
from app.models.chosen_host import ChosenHost
from app.models.decisions import OllamaDecider
from app.models.embedding import RememberedEncoder, TimelyEmbedder
from app.models.minilm import MiniLmEmbedder
from app.models.multilingual import CURE, MultilingualEmbedder, is_installed
from app.models.ollama import (
    InstalledModel,
    MemoryWatch,
    OllamaHost,
    OllamaWatch,
    PullProgress,
    parameters_in_name,
    parameters_of,
    same_model,
)
from app.models.ollama_adapters import OllamaEmbedder, OllamaGenerator
from app.models.openai import HostedEndpoint, OpenAICompatibleEmbedder, OpenAICompatibleGenerator
from app.models.options import (
    SUGGESTED_MODEL,
    EmbeddingProviderName,
    HostedOptions,
    ProviderOptions,
)
from app.models.reader import MiniLmReader
from app.models.retries import CallSlots
from app.models.selection import (
    NO_PREFERENCES,
    EmbedderChoice,
    GeneratorChoice,
    Preferences,
    TwinComparison,
    Twins,
    automatic_model,
    better_embedder,
    choose_embedder,
    choose_generator,
    compare,
    decision_model,
)
from app.settings import Settings
from app.storage.catalog.models import ModelStore

T = TypeVar("T")


class EmbeddedModels:
    """Loads each model once, at its first use; thread-safe."""

    def __init__(self, options: ProviderOptions) -> None:
        self._options = options
        self._lock = threading.RLock()
        self._made: dict[type, object] = {}

    def _once(self, kind: type[T], make: Callable[[], T]) -> T:
        with self._lock:
            made = self._made.get(kind)
            if not isinstance(made, kind):
                made = self._made[kind] = make()
            return made

    @property
    def extractive(self) -> ExtractiveGenerator:
        """Quotes the best supporting sentences; always there."""
        return self._once(
            ExtractiveGenerator,
            lambda: ExtractiveGenerator(RememberedEncoder(self.sentence_embedder), self.reader),
        )

    @property
    def reader(self) -> Reader | None:
        """Reads sentences next to a question; None where READER is false."""
        if not self._options.reader:
            return None
        threads = self._options.model_threads
        return self._once(MiniLmReader, lambda: MiniLmReader(threads=threads))

    @property
    def sentence_embedder(self) -> MiniLmEmbedder:
        """The embedded model, which always serves quoting and grounding: measured with it."""
        threads = self._options.model_threads
        return self._once(MiniLmEmbedder, lambda: MiniLmEmbedder(threads=threads))

    @property
    def multilingual(self) -> MultilingualEmbedder:
        """The embedded model of fifteen languages.

        Raises:
            ModelNotInstalled: The extra `multilingual` is not installed.
        """
        return self._once(MultilingualEmbedder, MultilingualEmbedder)


logger = logging.getLogger(__name__)

_CHOSEN: Final = "openai_compatible"
"""Provider of a host that was chosen on the page."""
_ASK_S = 1.0
"""Longest wait for what a host has in memory, seconds."""
BUSY_AFTER_S = 30.0
"""Longest wait for a model slot before a question is refused as busy, seconds."""


class Models:
    """Makes each adapter that `app.models.selection` chooses once; thread-safe. A ModelSelector."""

    def __init__(
        self,
        options: ProviderOptions,
        generation: GenerationOptions,
        store: ModelStore | None = None,
    ) -> None:
        """Prepare; nothing is asked. Without a store no test and no chosen model is known."""
        self.embedded = EmbeddedModels(options)
        self._store = store
        self._options = options
        self._generation = generation
        self.ollama = ollama_host(options)
        self.watch = OllamaWatch(
            self.ollama, twin=Twins(self.ollama, lambda: self.embedded.sentence_embedder)
        )
        self._memory = MemoryWatch()
        self._slots = CallSlots(options.max_model_calls, BUSY_AFTER_S, self.ollama.name)
        self._lock = threading.Lock()
        self._generators: dict[tuple[str, str], Generator] = {}
        self._endpoints: dict[str, HostedEndpoint] = {}
        self._retired: list[HostedEndpoint] = []
        """Of hosts that were chosen before: a call may be under way."""
        self._host = ChosenHost(options.chosen_host_file)
        self._embedders: dict[tuple[str, str, int | None], Embedder] = {}
        self._timely: dict[int, Embedder] = {}
        """By the identity of the embedder that asks a host."""
        self._told: set[str] = set()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.ollama.http.close()
        for endpoint in (*self._endpoints.values(), *self._retired):
            endpoint.http.close()

    def _endpoint(self, provider: str) -> HostedEndpoint:
        """Return the endpoint of a hosted provider, with one connection pool each."""
        if provider not in self._endpoints:
            self._endpoints[provider] = HostedEndpoint(
                provider,
                self._in_force.hosted.get(provider, HostedOptions()),
                timeout_s=self._options.ollama_timeout_s,
            )
        return self._endpoints[provider]

    def select(self, model: str | None = None) -> ModelChoice:
        options = self._in_force
        if options is not self._options and model is not None and self.watch.status().has(model):
            options = self._options
        choice = choose_generator(options, self.watch, model, self._preferences())
        if options is not self._options:
            choice = replace(choice, why="it was chosen in the settings of the page")
        decides = decision_model(options, self.watch, model)
        judge = self._decider(decides) if decides else None
        if choice.provider == "extractive":
            return ModelChoice(
                None, reason=choice.reason, once=choice.once, why=choice.why, judge=judge
            )
        helper = self._generator(choice.provider, choice.helper) if choice.helper else None
        generator = self._generator(choice.provider, choice.model)
        return ModelChoice(
            generator,
            helper,
            choice.hosted,
            choice.reason,
            self._profile(choice, generator.name),
            why=choice.why,
            watch=lambda: self._waiting(choice),
            judge=judge,
        )

    def _decider(self, model: str) -> Generator:
        with self._lock:
            key = ("decides", model)
            if key not in self._generators:
                self._generators[key] = OllamaDecider(self.ollama, model, self._slots)
            return self._generators[key]

    def _waiting(self, choice: GeneratorChoice) -> Callable[[], WaitsFor]:
        """Return what says why a call that begins now has no first word yet."""
        before = self._slots.under_way()

        def waits_for() -> WaitsFor:
            if before & self._slots.under_way():
                return "queue"
            if choice.provider != "ollama":
                return "reading"
            try:
                loaded = self.ollama.loaded(timeout_s=_ASK_S)
            except ProviderError:
                return "silent"
            digests = {
                one.digest
                for one in self.watch.status().models
                if same_model(one.name, choice.model)
            }
            return "reading" if any(one.digest in digests for one in loaded) else "loading"

        return waits_for

    @property
    def _in_force(self) -> ProviderOptions:
        """The options, with the host that was chosen where the environment names no model."""
        host = self._host.options
        if host is None or self._host_decided_by_environment:
            return self._options
        hosted = {**self._options.hosted, _CHOSEN: host}
        return replace(self._options, llm_provider=_CHOSEN, hosted=hosted)

    @property
    def _host_decided_by_environment(self) -> str:
        """Return the setting that leaves no choice of a host; empty where none does."""
        options = self._options
        if options.llm_provider == "ollama" or options.embedding_provider == _CHOSEN:
            provider = options.llm_provider == "ollama"
            return "LLM_PROVIDER=ollama" if provider else f"EMBEDDING_PROVIDER={_CHOSEN}"
        if options.hosted.get(_CHOSEN, HostedOptions()) != HostedOptions():
            return "HOSTED_URL, HOSTED_KEY or HOSTED_MODEL"
        return self._decided_by_environment

    def host(self) -> tuple[HostedOptions | None, str]:
        """Return the chosen host, and the setting of the environment that overrules it, if one."""
        return self._host.options, self._host_decided_by_environment

    def choose_host(self, base_url: str, model: str, api_key: str | None) -> None:
        """Let a model of an OpenAI-compatible host answer from now on.

        Without a key that of before stays, as long as the address does.

        Raises:
            Conflict: The environment decides.
            InvalidInput: The address cannot be read.
        """
        _refuse_choice(self._host_decided_by_environment)
        before = self._host.options
        if api_key is None:
            api_key = before.api_key if before and before.base_url == base_url else ""
        options = HostedOptions(base_url, api_key, model)
        HostedEndpoint(_CHOSEN, options).http.close()  # refuses what is no address
        self._take_host(options)

    def _take_host(self, options: HostedOptions | None) -> None:
        self._host.keep(options)
        with self._lock:
            if endpoint := self._endpoints.pop(_CHOSEN, None):
                self._retired.append(endpoint)
            for key in [key for key in self._generators if key[0] == _CHOSEN]:
                del self._generators[key]

    def choose(self, model: str) -> None:
        """Keep which of Ollama's models answers from now on; empty: the server decides.

        A host that was chosen is forgotten.

        Raises:
            Conflict: The environment decides.
            InvalidInput: The model cannot chat.
            ModelNotInstalled: The host does not have it.
            ProviderUnreachable: The host does not answer, so nothing is known of the model.
            ProviderTimeout: The host is busy, the same.
        """
        _refuse_choice(self._decided_by_environment)
        if model:
            status = self.watch.status()
            found = next((one for one in status.models if same_model(one.name, model)), None)
            if not status.reachable:
                raise ProviderUnreachable(f"{status.trouble}; start it: documind up")
            if found is None:
                raise ModelNotInstalled(
                    f"model {model!r} is not installed; run: ollama pull {model}"
                )
            if not (found.chats and self.ollama.details(model).chats):
                raise InvalidInput(f"model {model!r} embeds and cannot chat; choose another one")
        if self._host.options is not None:
            self._take_host(None)
        if self._store is not None:
            self._store.choose(model)

    @property
    def _decided_by_environment(self) -> str:
        """Return the setting that names the model; empty where none does."""
        if self._options.llm_provider not in {"auto", "ollama"}:
            return f"LLM_PROVIDER={self._options.llm_provider}"
        return f"LLM_MODEL={self._options.llm_model}" if self._options.llm_model else ""

    def _preferences(self) -> Preferences:
        if self._store is None or self._decided_by_environment:
            return NO_PREFERENCES

        def right(digest: str) -> float | None:
            found = self._findings(digest)
            return None if found is None else right_share(found)

        return Preferences(self._store.chosen(), right)

    def _findings(self, digest: str) -> ModelFindings | None:
        return None if self._store is None else self._store.findings(digest)

    def _profile(self, choice: GeneratorChoice, name: str) -> ModelProfile:
        """Return a model's profile from its host, or guess it from the name."""
        found, hosted = InstalledModel(), choice.hosted
        if choice.provider == "ollama":
            host, installed = self.ollama.shown_url, self.watch.status().models
            found = next((one for one in installed if same_model(one.name, choice.model)), found)
        else:
            host = self._endpoint(choice.provider).http.shown_url
            hosted = choice.hosted and choice.provider != "openai_compatible"
        parameters = parameters_of(found.parameters) or parameters_in_name(choice.model)
        digest = found.digest or f"{name}@{host}"
        return ModelProfile(name, host, digest, parameters, hosted, self._findings(digest))

    @property
    def generator_name(self) -> str:
        model = self.select().model
        return model.name if model else self.embedded.extractive.name

    def _generator(self, provider: str, model: str) -> Generator:
        options, generation = self._options, self._generation
        with self._lock:
            key = (provider, model)
            if key not in self._generators:
                self._generators[key] = (
                    OllamaGenerator(
                        self.ollama,
                        model,
                        slots=self._slots,
                        num_ctx=options.num_ctx,
                        keep_alive=options.ollama_keep_alive,
                        temperature=generation.temperature,
                        max_tokens=generation.max_tokens,
                    )
                    if provider == "ollama"
                    else OpenAICompatibleGenerator(
                        self._endpoint(provider),
                        model,
                        slots=self._slots,
                        context_tokens=options.num_ctx,
                        temperature=generation.temperature,
                        max_tokens=generation.max_tokens,
                    )
                )
            return self._generators[key]

    # The embedder of each library, while hosts come and go.

    def for_questions(self, embedder: Embedder) -> Embedder:
        """Return an embedder that a question can wait for: QUERY_EMBED_TIMEOUT_S at most."""
        with self._lock:
            return self._timely.get(id(embedder), embedder)

    def embedder_of(self, library: Library, fingerprint: Fingerprint | None) -> Embedder | None:
        """Return a library's embedder by fingerprint; None while host, model or package is away."""
        choice = choose_embedder(self._options, self.watch, fingerprint, library)
        if choice.notice and choice.notice not in self._told:
            self._told.add(choice.notice)
            logger.warning("%s", choice.notice)
        if choice.provider == "minilm":
            return self.embedded.sentence_embedder
        if choice.provider == "multilingual":
            return self.embedded.multilingual if is_installed() else None
        if choice.provider == "ollama" and not self.watch.status().has(choice.model):
            return None
        dimension = fingerprint.dimension if fingerprint else None
        with self._lock:
            key = (choice.provider, choice.model, dimension)
            if key not in self._embedders:
                made = self._embedders[key] = self._make_embedder(choice, dimension)
                timeout_s = self._options.query_embed_timeout_s
                self._timely[id(made)] = TimelyEmbedder(made, timeout_s, self.watch.forget)
            return self._embedders[key]

    def embedder_state(self, library: Library, fingerprint: Fingerprint | None) -> EmbeddingState:
        """Return a library's embedder and whether it responds; runs no model."""
        choice = choose_embedder(self._options, self.watch, fingerprint, library)
        name = f"{choice.provider}:{choice.model}"
        trouble = ""
        if choice.provider == "multilingual" and not is_installed():
            trouble = f"the model is not installed; {CURE}"
        elif choice.provider == "ollama" and not (status := self.watch.status()).reachable:
            trouble = f"{status.trouble}; start it: documind up, or: ollama serve"
        elif choice.provider == "ollama" and not status.has(choice.model):
            trouble = f"Ollama does not have the model; run: ollama pull {choice.model}"
        return EmbeddingState(name, reachable=not trouble, detail=trouble)

    def better_embedder(self, library: Library, fingerprint: Fingerprint) -> EmbedderChoice | None:
        return better_embedder(self._options, self.watch, fingerprint, library)

    def embedder_named(self, library: Library, provider: str | None, model: str | None) -> Embedder:
        """Return an embedder by name for a re-embedding; defaults are as configured.

        Raises:
            ModelNotInstalled: Ollama does not have the model, or its package is not installed.
            ProviderError: Its host is away.
            InvalidInput: A hosted provider without a model.
        """
        options = self._options
        if provider is not None:
            options = replace(options, embedding_provider=cast("EmbeddingProviderName", provider))
        elif model is not None and options.embedding_provider == "auto":
            # the only one of the automatic two that has models to name
            options = replace(options, embedding_provider="ollama")
        if model is not None:
            options = replace(options, embedding_model=model)
        choice = choose_embedder(options, self.watch, None, library)
        if choice.provider == "minilm":
            return self.embedded.sentence_embedder
        if choice.provider == "multilingual":
            return self.embedded.multilingual
        return self._make_embedder(choice, None)

    def _make_embedder(self, choice: EmbedderChoice, dimension: int | None) -> Embedder:
        if choice.provider == "ollama":
            return OllamaEmbedder(
                self.ollama,
                choice.model,
                keep_alive=self._options.ollama_keep_alive,
                dimension=dimension,
            )
        return OpenAICompatibleEmbedder(
            self._endpoint(choice.provider), choice.model, dimension=dimension
        )

    def hosts(self) -> tuple[HostStatus, ...]:
        status = self.watch.status()
        url = self.ollama.shown_url
        return (HostStatus("ollama", url, status.reachable, status.trouble, busy=status.busy),)

    def report(self, embeds: str) -> ModelReport:
        """Return the models of Ollama and what is in use; asks the host, runs nothing."""
        choice = self.select()
        answers = choice.model or self.embedded.extractive
        in_use = {"answers": answers.name, "embeds": embeds}
        if choice.helper is not None:
            in_use["helper"] = choice.helper.name
        decided_by: Literal["environment", "choice", "server"] = "server"
        chosen = self._preferences().chosen
        if self._decided_by_environment:
            decided_by = "environment"
        elif self._in_force is not self._options or (
            chosen and same_model(answers.name.removeprefix("ollama:"), chosen)
        ):
            decided_by = "choice"
        rows = self.watch.status().models
        try:
            loaded = self.ollama.loaded(timeout_s=_ASK_S) if rows else []
        except ProviderError:
            loaded = []
        used = {
            name.removeprefix("ollama:")
            for name in (answers.name, embeds)
            if name.startswith("ollama:")
        }
        digests = {row.digest for row in rows if any(same_model(row.name, name) for name in used)}
        return ModelReport(
            installed=tuple(
                ModelOnDisk(one.name, one.size_bytes or None, one.chats) for one in rows
            ),
            loaded=tuple(model.name for model in loaded),
            in_use=in_use,
            decided_by=decided_by,
            why=choice.why,
            fit=self._memory.together(digests, loaded) if rows else None,
        )

    def pull(self, model: str, cancel: CancelToken) -> Iterator[PullProgress]:
        """Fetch a model into Ollama and yield progress; then it can be chosen."""
        yield from self.ollama.pull(model, cancel)
        self.watch.forget()


def _refuse_choice(decided: str) -> None:
    if decided:
        raise Conflict(
            f"{decided} decides which model answers; take it out of the environment (or .env) and"
            " start the server again to choose here"
        )


def ollama_host(options: ProviderOptions) -> OllamaHost:
    """Return the configured Ollama host; nothing is sent yet.

    Raises:
        InvalidInput: OLLAMA_BASE_URL cannot be read.
    """
    return OllamaHost(
        options.ollama_base_url,
        connect_timeout_s=options.ollama_connect_timeout_s,
        read_timeout_s=options.ollama_timeout_s,
    )


def needs_ollama(settings: Settings) -> bool:
    return not {"auto", "ollama"}.isdisjoint({settings.llm_provider, settings.embedding_provider})


def wanted_models(settings: Settings, host: OllamaHost) -> tuple[str, ...]:
    """Return the wanted Ollama models, each once; without LLM_MODEL one it has, or to fetch."""
    options = settings.providers()
    wanted: list[str] = []
    if options.llm_provider in {"auto", "ollama"}:
        found = options.llm_model or automatic_model(options, OllamaWatch(host), NO_PREFERENCES)[0]
        wanted += [found or SUGGESTED_MODEL, options.helper_model]
    if options.embedding_provider in {"auto", "ollama"}:
        wanted.append(options.embedding_model)
    return tuple(dict.fromkeys(name for name in wanted if name))


def delete_graphs(folder: Path) -> None:
    """Remove built graphs that nothing reads: earlier releases kept models there."""
    with suppress(OSError):
        for path in folder.glob("*.graph"):
            path.unlink()
        folder.rmdir()


def embedders_compared(settings: Settings, host: OllamaHost) -> TwinComparison:
    """Compare the embedded model with Ollama's configured one: vectors and speed.

    Raises:
        ProviderError: The host failed, or its model cannot embed.
    """
    options = settings.providers()
    embedded = MiniLmEmbedder(threads=options.model_threads)
    return compare(embedded, OllamaEmbedder(host, options.embedding_model))
