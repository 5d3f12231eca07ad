"""The models in use: who answers, as hosts come and go, and what the hosts have."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from types import TracebackType
from typing import Literal, Self

from app.answer.model_advice import right_share
from app.answer.models import ModelChoice
from app.bootstrap.embedded import EmbeddedModels
from app.bootstrap.embedders import Embedders
from app.bootstrap.endpoints import Endpoints
from app.core.cancel import CancelToken
from app.core.errors import (
    Conflict,
    InvalidInput,
    ModelNotInstalled,
    ProviderError,
    ProviderUnreachable,
)
from app.core.ports import Generator, ModelStore
from app.core.types import HostStatus, ModelFindings, ModelProfile, ModelReport, WaitsFor
from app.generation.options import GenerationOptions
from app.providers.model_size import parameters_in_name, parameters_of
from app.providers.ollama import OllamaHost
from app.providers.ollama_generator import OllamaGenerator
from app.providers.ollama_listing import PullProgress, same_model
from app.providers.ollama_memory import MemoryWatch
from app.providers.ollama_watch import OllamaWatch
from app.providers.openai_compatible import OpenAICompatibleGenerator
from app.providers.options import ProviderOptions
from app.providers.selection import (
    NO_PREFERENCES,
    GeneratorChoice,
    Preferences,
    choose_generator,
)
from app.providers.slots import CallSlots
from app.providers.twin import Twins

_ASK_S = 1.0
"""Longest wait for what a host has in memory, seconds."""
BUSY_AFTER_S = 30.0
"""Longest wait for a model slot before a question is refused as busy, seconds."""


class Models:
    """Makes each adapter that `app.providers.selection` chooses once; thread-safe.

    A ModelSelector.
    """

    def __init__(
        self,
        options: ProviderOptions,
        generation: GenerationOptions,
        store: ModelStore | None = None,
    ) -> None:
        """Prepare; no model is loaded and no host asked before it is needed.

        Args:
            options: Hosts and names.
            generation: Defaults of writing.
            store: Keeps what tests found and which model was chosen; None: nothing is known.
        """
        self.embedded = EmbeddedModels(options)
        self._store = store
        self._options = options
        self._generation = generation
        self.ollama = OllamaHost(
            options.ollama_base_url,
            connect_timeout_s=options.ollama_connect_timeout_s,
            read_timeout_s=options.ollama_timeout_s,
        )
        self.watch = OllamaWatch(
            self.ollama, twin=Twins(self.ollama, lambda: self.embedded.sentence_embedder)
        )
        self._endpoints = Endpoints(options)
        self.embedders = Embedders(options, self.ollama, self.watch, self._endpoints, self.embedded)
        self._memory = MemoryWatch()
        self._slots = CallSlots(options.max_model_calls, BUSY_AFTER_S, self.ollama.name)
        self._lock = threading.Lock()
        self._generators: dict[tuple[str, str], Generator] = {}

    def __enter__(self) -> Self:
        """Return the models."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Close the connections."""
        self.ollama.http.close()
        self._endpoints.close()

    def select(self, model: str | None = None) -> ModelChoice:
        """Return who writes for the next question.

        Raises:
            ModelNotInstalled: Ollama answers but lacks the model that was asked for by name.
            InvalidInput: A hosted provider is configured without a model.
        """
        choice = choose_generator(self._options, self.watch, model, self._preferences())
        if choice.provider == "extractive":
            return ModelChoice(None, reason=choice.reason, once=choice.once, why=choice.why)
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
        )

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

    def choose(self, model: str) -> None:
        """Keep which of Ollama's models answers from now on; empty: the server decides.

        Raises:
            Conflict: The environment decides.
            InvalidInput: The model cannot chat.
            ModelNotInstalled: The host does not have it.
            ProviderUnreachable: The host does not answer, so nothing is known of the model.
        """
        if decided := self._decided_by_environment:
            raise Conflict(
                f"{decided} decides which model answers; take it out of the environment (or"
                " .env) and start the server again to choose here"
            )
        if model:
            status = self.watch.status()
            found = next((one for one in status.models if same_model(one.name, model)), None)
            if not status.reachable:
                raise ProviderUnreachable(f"{status.trouble}; start it: documind up")
            if found is None:
                raise ModelNotInstalled(
                    f"model {model!r} is not installed; run: ollama pull {model}"
                )
            if not found.chats:
                raise InvalidInput(f"model {model!r} embeds and cannot chat; choose another one")
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
        return Preferences(self._store.chosen(), self._right)

    def _right(self, digest: str) -> float | None:
        found = self._findings(digest)
        return None if found is None else right_share(found)

    def _findings(self, digest: str) -> ModelFindings | None:
        return None if self._store is None else self._store.findings(digest)

    def _profile(self, choice: GeneratorChoice, name: str) -> ModelProfile:
        """Return a model's profile from its host, or guess it from the name."""
        if choice.provider == "ollama":
            installed = next(
                (one for one in self.watch.status().models if same_model(one.name, choice.model)),
                None,
            )
            parameters = parameters_of(
                installed.parameters if installed else ""
            ) or parameters_in_name(choice.model)
            digest = (
                installed.digest
                if installed and installed.digest
                else f"{name}@{self.ollama.shown_url}"
            )
            return ModelProfile(
                name,
                self.ollama.shown_url,
                digest,
                parameters,
                choice.hosted,
                self._findings(digest),
            )
        host = self._endpoints.of(choice.provider).http.shown_url
        digest = f"{name}@{host}"
        hosted = choice.hosted and choice.provider != "openai_compatible"
        return ModelProfile(
            name, host, digest, parameters_in_name(choice.model), hosted, self._findings(digest)
        )

    @property
    def generator_name(self) -> str:
        """Return the generator in use, as answers report it."""
        model = self.select().model
        return model.name if model else self.embedded.extractive.name

    def _generator(self, provider: str, model: str) -> Generator:
        with self._lock:
            key = (provider, model)
            if key not in self._generators:
                self._generators[key] = self._make_generator(provider, model)
            return self._generators[key]

    def _make_generator(self, provider: str, model: str) -> Generator:
        options, generation = self._options, self._generation
        if provider == "ollama":
            return OllamaGenerator(
                self.ollama,
                model,
                slots=self._slots,
                num_ctx=options.num_ctx,
                keep_alive=options.ollama_keep_alive,
                temperature=generation.temperature,
                max_tokens=generation.max_tokens,
            )
        return OpenAICompatibleGenerator(
            self._endpoints.of(provider),
            model,
            slots=self._slots,
            context_tokens=options.num_ctx,
            temperature=generation.temperature,
            max_tokens=generation.max_tokens,
        )

    def hosts(self) -> tuple[HostStatus, ...]:
        """Return the model hosts and whether they answer."""
        status = self.watch.status()
        return (HostStatus("ollama", self.ollama.shown_url, status.reachable, status.trouble),)

    def report(self, embeds: str) -> ModelReport:
        """Return the models of Ollama and what is in use; asks the host, runs nothing.

        Args:
            embeds: Name of the embedder in use, `provider:model`.
        """
        choice = self.select()
        answers = choice.model or self.embedded.extractive
        in_use = {"answers": answers.name, "embeds": embeds}
        if choice.helper is not None:
            in_use["helper"] = choice.helper.name
        decided_by: Literal["environment", "choice", "server"] = "server"
        chosen = self._preferences().chosen
        if self._decided_by_environment:
            decided_by = "environment"
        elif chosen and same_model(answers.name.removeprefix("ollama:"), chosen):
            decided_by = "choice"
        rows = self.watch.status().models
        try:
            loaded = self.ollama.loaded(timeout_s=_ASK_S) if rows else []
        except ProviderError:
            loaded = []
        used = [
            name.removeprefix("ollama:")
            for name in (in_use["answers"], in_use["embeds"])
            if name.startswith("ollama:")
        ]
        digests = {row.digest for row in rows if any(same_model(row.name, name) for name in used)}
        return ModelReport(
            tuple((row.name, row.size_bytes or None) for row in rows),
            tuple(row.name for row in rows if row.chats),
            decided_by,
            choice.why,
            tuple(model.name for model in loaded),
            in_use,
            self._memory.together(digests, loaded) if rows else None,
        )

    def pull(self, model: str, cancel: CancelToken) -> Iterator[PullProgress]:
        """Fetch a model into Ollama and yield progress; then it can be chosen.

        Raises:
            ModelNotInstalled: The registry has no such model.
            ProviderError: The host failed.
            Cancelled: The token was cancelled; the next pull goes on from there.
        """
        yield from self.ollama.pull(model, cancel)
        self.watch.forget()
