"""Cache the vectors of sentences, which recur in questions about a document."""

from __future__ import annotations

import hashlib
import threading
from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from app.core.ports import Embedder
from app.core.types import EmbedderIdentity, FloatArray

MOST_REMEMBERED = 8192
"""Texts; with vectors of 384 numbers 15 MB."""


class _Known(NamedTuple):
    tokens: int | None = None
    vector: FloatArray | None = None


class RememberedEmbedder:
    """An embedder with an LRU cache of vectors by text; thread-safe.

    For embedders whose vector of a text does not depend on its company: rows are the same,
    remembered or computed. For sentences, which are short and come again; chunks of an upload do
    not, and would push them out. Texts are known by their digests: no word of a document that was
    deleted is held here.
    """

    def __init__(self, embedder: Embedder, most: int = MOST_REMEMBERED) -> None:
        self._embedder = embedder
        self._most = most
        self._known: OrderedDict[bytes, _Known] = OrderedDict()
        self._lock = threading.Lock()

    @property
    def identity(self) -> EmbedderIdentity:
        return self._embedder.identity

    def embed_passages(self, texts: Sequence[str]) -> FloatArray:
        if not texts:
            return self._embedder.embed_passages(texts)
        known = self._recall(texts)
        vectors = {text: one.vector for text, one in known.items() if one.vector is not None}
        if new := [text for text in known if text not in vectors]:
            # rows of their own: a view would keep all of the array while one of them is remembered
            made = dict(zip(new, map(np.copy, self._embedder.embed_passages(new)), strict=True))
            self._keep({text: known[text]._replace(vector=row) for text, row in made.items()})
            vectors |= made
        return np.stack([vectors[text] for text in texts])

    def embed_query(self, text: str) -> FloatArray:
        """Return float32 `[dim]` of L2 norm 1; questions are not remembered."""
        return self._embedder.embed_query(text)

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        known = self._recall(texts)
        counts = {text: one.tokens for text, one in known.items() if one.tokens is not None}
        if new := [text for text in known if text not in counts]:
            made = dict(zip(new, self._embedder.count_tokens(new), strict=True))
            self._keep({text: known[text]._replace(tokens=count) for text, count in made.items()})
            counts |= made
        return [counts[text] for text in texts]

    def _recall(self, texts: Iterable[str]) -> dict[str, _Known]:
        """Return what is known of each different text, nothing of a new one."""
        digests = {text: _digest(text) for text in texts}
        with self._lock:
            for digest in digests.values():
                if digest in self._known:
                    self._known.move_to_end(digest)
            return {text: self._known.get(digest, _NOTHING) for text, digest in digests.items()}

    def _keep(self, found: Mapping[str, _Known]) -> None:
        digests = {_digest(text): known for text, known in found.items()}
        with self._lock:
            self._known.update(digests)
            while len(self._known) > self._most:
                self._known.popitem(last=False)


_NOTHING = _Known()


def _digest(text: str) -> bytes:
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()
