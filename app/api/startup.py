"""Answer probes while a thread builds the services."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack
from typing import TYPE_CHECKING

from app.core.cancel import patiently
from app.core.errors import Busy, DocuMindError, ProviderError, passes_by_itself, refusal

if TYPE_CHECKING:
    from app.bootstrap.services import Services

logger = logging.getLogger(__name__)

Build = Callable[[], AbstractContextManager["Services"]]


class Startup:
    """Builds the services off the event loop and knows what is still missing."""

    def __init__(
        self,
        build: Build,
        on_failure: Callable[[BaseException], None],
        on_ready: Callable[[], None] | None = None,
        patience_s: float = 0.0,
    ) -> None:
        """Store how to build, and what to call when ready and on failure, which ends a server.

        What settings name and does not answer is waited for up to `patience_s` seconds.
        """
        self._build = build
        self._patience_s = patience_s
        self._on_ready = on_ready
        self._on_failure = on_failure
        self.missing: tuple[str, ...] = ("index", "embedder")
        """What is not ready yet; empty when ready."""
        self.failure = ""
        """Why the services could not be built; empty unless they could not."""
        self._services: Services | None = None
        self.waiting = ""
        """For what the start waits that a setting names; empty when it does not."""
        self._closing = threading.Event()
        self._stack = ExitStack()
        self._thread = threading.Thread(target=self._run, name="startup", daemon=True)

    def services(self) -> Services:
        """Return the services.

        Raises:
            Busy: They are still being built; the message names what is missing.
        """
        if self._services is None:
            raise Busy(
                f"the server is starting; still missing: {', '.join(self.missing)}", retry_after_s=1
            )
        return self._services

    def begin(self) -> None:
        self._thread.start()

    def close(self) -> None:
        """Close what was built; blocks until the build has ended and everything is shut."""
        self._closing.set()
        if self._thread.ident is not None:
            self._thread.join()
        self._services = None
        self._stack.close()

    def wait(self, timeout_s: float) -> bool:
        """Wait for the build to end; return whether it has."""
        self._thread.join(timeout_s)
        return not self._thread.is_alive()

    def _passes(self, error: Exception) -> bool:
        """Return whether the build is tried again after an error, and say so."""
        if passes := passes_by_itself(error):
            self.waiting = str(error)
            logger.warning("the start waits: %s", error)
        return passes

    def _run(self) -> None:
        """Build, then warm the embedder. An edge: a failure is kept and reported."""
        try:
            services = patiently(
                lambda: self._stack.enter_context(self._build()),
                self._passes,
                self._closing,
                self._patience_s,
            )
        except Exception as error:
            ours = error if isinstance(error, DocuMindError) else refusal(error)
            self.failure = (
                ours.message if ours is not None else f"{type(error).__name__}: see the log"
            )
            if ours is not None:
                logger.critical("the server cannot start: %s", ours.message)
            else:
                logger.critical("the server cannot start", exc_info=True)
            if not self._closing.is_set():
                self._on_failure(error)
            return
        self._services, self.waiting = services, ""
        self.missing = ("embedder",)
        try:
            services.embedder.embed_query("warm up")
        except ProviderError as error:
            # Opening never fails for a missing embedder: the library serves lexical search and says
            # so.
            logger.warning(
                "the embedder does not answer yet; search is lexical until it does: %s",
                error.message,
            )
        self.missing = ()
        logger.info("ready")
        if self._on_ready is not None and not self._closing.is_set():
            self._on_ready()
