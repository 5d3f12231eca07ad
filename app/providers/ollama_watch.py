"""Knows whether Ollama runs and what it has, as things stand now."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from app.core.errors import ProviderError, ProviderTimeout, ProviderUnreachable
from app.providers.ollama import OllamaHost
from app.providers.ollama_listing import InstalledModel, same_model

_FRESH_S = 5.0
"""How long an answer about the host is believed, seconds."""
_FRESH_AFTER_TIMEOUT_S = 30.0
"""The same for a host that neither answers nor refuses, because asking it again costs a second."""
_ASK_S = 1.0


@dataclass(frozen=True, slots=True)
class OllamaStatus:
    """The host's last reply; `trouble` says, for people, why it is unreachable."""

    reachable: bool
    models: tuple[InstalledModel, ...] = ()
    trouble: str = ""

    def has(self, model: str) -> bool:
        """Return whether the model is installed."""
        return any(same_model(one.name, model) for one in self.models)


class OllamaWatch:
    """Knows whether Ollama runs; asks at most every five seconds; thread-safe.

    While one thread asks, others go on with the last answer, so a host that hangs delays one
    question by a second.
    """

    def __init__(
        self,
        host: OllamaHost,
        *,
        twin: Callable[[str], bool] = lambda _: False,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Prepare; nothing is sent.

        Args:
            host: The host to watch.
            twin: Tells whether a model of the host is the embedded one.
            clock: Seconds, for tests.
        """
        self.host = host
        self.twin = twin
        self._clock = clock
        self._asking = threading.Lock()
        self._status: OllamaStatus | None = None
        self._stale_at = 0.0
        self._seen: frozenset[str] = frozenset()
        self._had_a_chat_model = False
        self._capabilities: dict[tuple[str, str], tuple[str, ...]] = {}
        """By name and digest, of hosts that list models without them."""

    def status(self) -> OllamaStatus:
        """Return what the host has, at most five seconds old (thirty after a timeout)."""
        if self._status is not None and self._clock() < self._stale_at:
            return self._status
        if self._status is not None and self._asking.locked():
            return self._status
        with self._asking:
            if self._status is None or self._clock() >= self._stale_at:
                self._status = self._ask()
            return self._status

    def seen(self, model: str) -> bool:
        """Return whether the model was there at any time of this process."""
        return any(same_model(name, model) for name in self._seen)

    @property
    def had_a_chat_model(self) -> bool:
        """Whether a model that writes was there at any time of this process."""
        return self._had_a_chat_model

    def forget(self) -> None:
        """Ask again next time, for example after a pull."""
        self._stale_at = 0.0

    def _ask(self) -> OllamaStatus:
        fresh_s = _FRESH_S
        try:
            listed = self.host.models(timeout_s=_ASK_S)
            status = OllamaStatus(True, tuple(self._with_capabilities(listed)))
            self._seen |= frozenset(model.name for model in status.models)
            self._had_a_chat_model |= any(model.chats for model in status.models)
        except ProviderError as error:
            status = OllamaStatus(False, trouble=error.message)
            if isinstance(error, ProviderTimeout):
                fresh_s = _FRESH_AFTER_TIMEOUT_S
        self._stale_at = self._clock() + fresh_s
        return status

    def _with_capabilities(self, models: Sequence[InstalledModel]) -> Iterator[InstalledModel]:
        """Yield models with what each can do, asked once of those whose list does not say."""
        asks = True
        for model in models:
            key = (model.name, model.digest)
            if asks and not model.capabilities and key not in self._capabilities:
                try:
                    told = self.host.details(model.name, timeout_s=_ASK_S).capabilities
                    self._capabilities[key] = told
                except (ProviderTimeout, ProviderUnreachable):
                    asks = False  # the next look asks again
                except ProviderError:
                    self._capabilities[key] = ()  # a host that shows no single model
            known = model.capabilities or self._capabilities.get(key, ())
            yield replace(model, capabilities=known)
