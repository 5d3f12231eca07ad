"""The hosted providers, each with one connection pool."""

from __future__ import annotations

import threading

from app.providers.openai_compatible import HostedEndpoint
from app.providers.options import HostedOptions, ProviderOptions


class Endpoints:
    """Makes the endpoint of a hosted provider once; thread-safe."""

    def __init__(self, options: ProviderOptions) -> None:
        """Prepare; nothing is sent."""
        self._options = options
        self._lock = threading.Lock()
        self._made: dict[str, HostedEndpoint] = {}

    def of(self, provider: str) -> HostedEndpoint:
        """Return the endpoint of a provider.

        Raises:
            InvalidInput: Its address cannot be read.
        """
        with self._lock:
            if provider not in self._made:
                hosted = self._options.hosted.get(provider, HostedOptions())
                self._made[provider] = HostedEndpoint(
                    provider, hosted, timeout_s=self._options.ollama_timeout_s
                )
            return self._made[provider]

    def close(self) -> None:
        """Close the connections."""
        for endpoint in self._made.values():
            endpoint.http.close()
