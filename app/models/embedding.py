"""What embedders on hosts share: checks, prefixes, and wrappers that wait or remember."""

from __future__ import annotations

import hashlib
import re
import threading
from abc import ABC, abstractmethod
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from typing import NamedTuple, TypeVar

import numpy as np

from app.core.cancel import CancelToken
from app.core.errors import PassageTooLong, ProviderBadResponse, ProviderTimeout
from app.core.ports import Embedder, PassageEncoder
from app.core.types import EmbedderIdentity, FloatArray, PassageCode, QuestionCode
from app.core.vectors import l2_normalise
from app.models.retries import with_retries

T = TypeVar("T")

# Check passages before embedding and vectors after it, for every embedder.


def refuse_long(texts: Sequence[str], counts: Sequence[int], model: str, limit: int) -> None:
    """Let only passages through that the model reads whole; counts may be over-estimated.

    Raises:
        PassageTooLong: One has more than `limit`; the message names the first.
    """
    for position, (text, tokens) in enumerate(zip(texts, counts, strict=True)):
        if tokens > limit:
            raise PassageTooLong(
                f"passage {position} ({text[:40]!r}...) has {tokens} tokens, {model!r} reads"
                f" {limit}; split it"
            )


def checked_rows(
    value: object, count: int, dimension: int | None, *, host: str, model: str
) -> FloatArray:
    """Return what a host sent for `count` texts as float32 `[count, dim]`, rows of L2 norm 1.

    Raises:
        ProviderBadResponse: These are not so many finite vectors of that dimension (None: of any).
    """
    try:
        rows = l2_normalise(np.asarray(value, dtype=np.float32))
    except (TypeError, ValueError) as exc:
        raise ProviderBadResponse(
            f"{host} sent vectors of {model!r} that are no numbers ({exc}); look into its log"
        ) from exc
    if rows.ndim != 2 or len(rows) != count:
        raise ProviderBadResponse(
            f"{host} sent vectors of shape {rows.shape} for {count} texts; look into its log"
        )
    if dimension is not None and rows.shape[1] != dimension:
        raise ProviderBadResponse(
            f"{model!r} sent {rows.shape[1]} dimensions, expected {dimension}; restore the model"
            " or run: documind reembed"
        )
    return rows


SPECIALS = 2
"""Begin and end of text."""
_PIECE = re.compile(r"[A-Za-z]+|[^\sA-Za-z]")


def over_estimate(text: str) -> int:
    """Return a count that English prose seldom passes: sub-word tokens with specials.

    A run of letters counts one, and one more for each four letters after the third; a digit or sign
    counts one; any other character counts its UTF-8 bytes, what a byte-level tokenizer falls back
    to. Over the squad, pubmedqa and cranfield passages it is 1.25 times the true WordPiece count
    (median) and below it for 11 of 3,044, which the host then refuses rather than cuts.
    """
    count = SPECIALS
    for piece in _PIECE.findall(text):
        if piece.isascii():
            count += 1 + max(0, len(piece) - 3) // 4
        else:
            count += len(piece.encode("utf-8", "surrogatepass"))
    return count


@dataclass(frozen=True, slots=True)
class EmbeddingTraits:
    """Prefixes, and the longest input in tokens; None: the host's figure counts."""

    query_prefix: str = ""
    passage_prefix: str = ""
    max_tokens: int | None = None


_SEARCH = "Represent this sentence for searching relevant passages: "
_QWEN = (
    "Instruct: Given a web search query, retrieve relevant passages that answer the query\nQuery:"
)
_TRAITS: dict[str, EmbeddingTraits] = {
    # huggingface.co/nomic-ai/nomic-embed-text-v1.5; Ollama's file has context_length 2048
    # (ollama#7741)
    "nomic-embed-text": EmbeddingTraits("search_query: ", "search_document: ", 2048),
    "nomic-embed-text-v2-moe": EmbeddingTraits("search_query: ", "search_document: ", 512),
    # mixedbread.ai/docs/embeddings/mxbai-embed-large-v1
    "mxbai-embed-large": EmbeddingTraits(_SEARCH, max_tokens=512),
    # github.com/Snowflake-Labs/arctic-embed
    "snowflake-arctic-embed": EmbeddingTraits(_SEARCH, max_tokens=512),
    "snowflake-arctic-embed2": EmbeddingTraits("query: "),
    # huggingface.co/BAAI/bge-m3/discussions/35
    "bge-m3": EmbeddingTraits(),
    # huggingface.co/sentence-transformers/all-MiniLM-L6-v2, sentence_bert_config.json
    "all-minilm": EmbeddingTraits(max_tokens=256),
    # ai.google.dev/gemma/docs/embeddinggemma/model_card
    "embeddinggemma": EmbeddingTraits(
        "task: search result | query: ", "title: none | text: ", 2048
    ),
    # github.com/QwenLM/Qwen3-Embedding, no space after "Query:"
    "qwen3-embedding": EmbeddingTraits(_QWEN),
}


def embedding_traits(model: str) -> EmbeddingTraits:
    """Return a model's traits by the `NAME` of `host/namespace/NAME:tag`, empty if unknown."""
    return _TRAITS.get(model.rpartition("/")[2].partition(":")[0].lower(), EmbeddingTraits())


class HostEmbedder(ABC):
    """Embedder on a host; thread-safe. The first identity or vector contacts the host."""

    batch: int
    """Texts per call."""

    def __init__(self, model: str, dimension: int | None = None) -> None:
        """Prepare; nothing is sent.

        `dimension` is what vectors must have (a library's fingerprint); None takes what comes
        first.
        """
        self._model, self._dimension = model, dimension
        self._traits = embedding_traits(model)
        self._identity: EmbedderIdentity | None = None
        self._lock = threading.Lock()

    @property
    def identity(self) -> EmbedderIdentity:
        """Return what the host says of the model; asked once, confirmed by a vector."""
        with self._lock:
            if self._identity is None:
                provider, digest, window = self._described()
                # some models have dense layers after the pooling, so only a vector tells it
                dimension = self._embed(["dimension"], window, self._dimension).shape[1]
                traits = self._traits
                prefixes = traits.query_prefix, traits.passage_prefix
                self._identity = EmbedderIdentity(
                    provider, self._model, digest, dimension, window, *prefixes
                )
            return self._identity

    def embed_passages(self, texts: Sequence[str]) -> FloatArray:
        identity = self.identity
        refuse_long(texts, self.count_tokens(texts), self._model, identity.max_tokens)
        rows = np.empty((len(texts), identity.dimension), dtype=np.float32)
        for at in range(0, len(texts), self.batch):
            some = [self._traits.passage_prefix + text for text in texts[at : at + self.batch]]
            rows[at : at + self.batch] = self._embed(some, identity.max_tokens, identity.dimension)
        return rows

    def embed_query(self, text: str) -> FloatArray:
        """Return float32 `[dim]`; a long question is cut, by us where the host would refuse it."""
        identity = self.identity
        asked = self._cut(self._traits.query_prefix + text, identity.max_tokens)
        row: FloatArray = self._embed(
            [asked], identity.max_tokens, identity.dimension, truncate=True
        )[0]
        return row

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        return [over_estimate(self._traits.passage_prefix + text) for text in texts]

    @property
    @abstractmethod
    def _host_name(self) -> str:
        """The host with its address, for messages."""

    @abstractmethod
    def _described(self) -> tuple[str, str, int]:
        """Return provider, digest and window in tokens of the model."""

    @abstractmethod
    def _vectors(self, texts: list[str], window: int, *, truncate: bool) -> object:
        """Return what the host sends for texts: lists of numbers, in order."""

    def _cut(self, question: str, window: int) -> str:
        del window
        return question

    def _embed(
        self, texts: list[str], window: int, dimension: int | None, *, truncate: bool = False
    ) -> FloatArray:
        # tokenizers without specials refuse an empty text
        sent = [text if text.strip() else "." for text in texts]
        rows = with_retries(lambda: self._vectors(sent, window, truncate=truncate), CancelToken())
        return checked_rows(rows, len(texts), dimension, host=self._host_name, model=self._model)


class TimelyEmbedder:
    """Waits for its host at most `timeout_s` seconds; thread-safe.

    A call that takes longer goes on in the background, since a host stops loading a model when its
    caller leaves. Until that call has ended the host is asked nothing more.
    """

    def __init__(
        self, embedder: Embedder, timeout_s: float, ended: Callable[[], None] = lambda: None
    ) -> None:
        """Wait for `embedder`; `ended` is called when a call that took longer has ended."""
        self._embedder = embedder
        self._timeout_s = timeout_s
        self._ended = ended
        self._identity: EmbedderIdentity | None = None
        self._overdue: Future[object] | None = None

    @property
    def identity(self) -> EmbedderIdentity:
        if self._identity is None:
            self._identity = self._within(lambda: self._embedder.identity)
        return self._identity

    def embed_query(self, text: str) -> FloatArray:
        return self._within(lambda: self._embedder.embed_query(text))

    def embed_passages(self, texts: Sequence[str]) -> FloatArray:
        return self._within(lambda: self._embedder.embed_passages(texts))

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
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


MOST_REMEMBERED = 8192
"""Texts; with vectors of 384 numbers and codes of 30 tokens 20 MB."""


class _Known(NamedTuple):
    tokens: int | None = None
    made: tuple[FloatArray, PassageCode] | None = None


class RememberedEncoder:
    """An encoder with an LRU cache of vectors and codes by text; thread-safe.

    For encoders whose vector of a text does not depend on its company: rows are the same,
    remembered or computed. For sentences, which are short and come again; chunks of an upload do
    not, and would push them out. Texts are known by their digests: no word of a document that was
    deleted is held here.
    """

    def __init__(self, encoder: PassageEncoder, most: int = MOST_REMEMBERED) -> None:
        self._encoder = encoder
        self._most = most
        self._known: OrderedDict[bytes, _Known] = OrderedDict()
        self._lock = threading.Lock()

    @property
    def identity(self) -> EmbedderIdentity:
        return self._encoder.identity

    def embed_and_encode(self, texts: Sequence[str]) -> tuple[FloatArray, list[PassageCode]]:
        """Return vectors, float32 `[n, dim]`, and codes, in order.

        Raises:
            PassageTooLong: A text is over `identity.max_tokens`.
        """
        if not texts:
            return self._encoder.embed_and_encode(texts)
        known = self._recall(texts)
        held = {text: one.made for text, one in known.items() if one.made is not None}
        if new := [text for text in known if text not in held]:
            rows, codes = self._encoder.embed_and_encode(new)
            # rows of their own: a view would keep all of the array while one of them is remembered
            made = dict(zip(new, zip(map(np.copy, rows), codes, strict=True), strict=True))
            self._keep({text: known[text]._replace(made=one) for text, one in made.items()})
            held |= made
        return np.stack([held[text][0] for text in texts]), [held[text][1] for text in texts]

    def encode(self, texts: Sequence[str]) -> list[PassageCode]:
        """Return codes of texts of any length; they are not remembered."""
        return self._encoder.encode(texts)

    def encode_question(self, text: str) -> QuestionCode:
        """Return a question's code; questions are not remembered."""
        return self._encoder.encode_question(text)

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        known = self._recall(texts)
        counts = {text: one.tokens for text, one in known.items() if one.tokens is not None}
        if new := [text for text in known if text not in counts]:
            made = dict(zip(new, self._encoder.count_tokens(new), strict=True))
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
