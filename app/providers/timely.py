"""An embedder for questions: a host that is slow or silent holds none of them."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import TypeVar

from app.core.errors import ProviderTimeout
from app.core.ports import Embedder
from app.core.types import EmbedderIdentity, FloatArray

T = TypeVar("T")


class TimelyEmbedder:
    """Waits for its host at most `timeout_s` seconds; thread-safe.

    A call that takes longer goes on in the background, since a host stops loading a model when its
    caller leaves. Until that call has ended the host is asked nothing more.
    """

    def __init__(
        self, embedder: Embedder, timeout_s: float, ended: Callable[[], None] = lambda: None
    ) -> None:
        """Wait for `embedder`; nothing is sent yet.

        Args:
            embedder: Asks the host, for as long as that takes.
            timeout_s: Longest wait, seconds.
            ended: Called when a call that took longer has ended.
        """
        self._embedder = embedder
        self._timeout_s = timeout_s
        self._ended = ended
        self._identity: EmbedderIdentity | None = None
        self._overdue: Future[object] | None = None

    @property
    def identity(self) -> EmbedderIdentity:
        """Return the host's own.

        Raises:
            ProviderTimeout: The host is slow.
            ProviderError: The host failed.
        """
        if self._identity is None:
            self._identity = self._within(lambda: self._embedder.identity)
        return self._identity

    def embed_query(self, text: str) -> FloatArray:
        """Return float32 `[dim]` of L2 norm 1.

        Raises:
            ProviderTimeout: The host is slow.
            ProviderError: The host failed.
        """
        return self._within(lambda: self._embedder.embed_query(text))

    def embed_passages(self, texts: Sequence[str]) -> FloatArray:
        """Return float32 `[n, dim]`, rows of L2 norm 1, in order.

        Raises:
            PassageTooLong: A text may be longer than the window.
            ProviderTimeout: The host is slow.
            ProviderError: The host failed.
        """
        return self._within(lambda: self._embedder.embed_passages(texts))

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        """Return token counts; no host is asked."""
        return self._embedder.count_tokens(texts)

    def _within(self, ask: Callable[[], T]) -> T:
        if self._overdue is not None and not self._overdue.done():
            raise ProviderTimeout(
                "the embedding model is still being loaded, or its host is silent"
            )
        asked: Future[T] = Future()

        def run() -> None:
            try:
                asked.set_result(ask())
            except BaseException as error:  # noqa: BLE001  # handed to the thread that asked
                asked.set_exception(error)

        threading.Thread(target=run, name="embed-question", daemon=True).start()
        try:
            return asked.result(self._timeout_s)
        except TimeoutError:
            self._overdue = asked  # type: ignore[assignment]  # only whether it has ended counts
            asked.add_done_callback(lambda _: self._ended())
            raise ProviderTimeout(
                f"the embedding model gave nothing in {self._timeout_s:g} s; it is being loaded in"
                " the background"
            ) from None
