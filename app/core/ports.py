"""Define the Protocols through which packages of one layer meet.

Adapters name a vendor; fakes (tests/fakes) say how they fake. All methods are synchronous and
thread-safe. Errors are those of `app.core.errors`; nothing else leaves an adapter on purpose.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Protocol

from app.core.cancel import CancelToken
from app.core.types import (
    EmbedderIdentity,
    FloatArray,
    Highlight,
    Listing,
    PageBoxes,
    PageText,
    PageWords,
    ParsedDocument,
    PassageCode,
    Prompt,
    QuestionCode,
    Stance,
    Token,
)


class Embedder(Protocol):
    """Texts to unit vectors. Texts over `identity.max_tokens` are refused, never cut."""

    @property
    def identity(self) -> EmbedderIdentity:
        """Return the identity of the embedder; constant for the life of the object."""

    def embed_passages(self, texts: Sequence[str]) -> FloatArray:
        """Return float32 `[n, dim]`, rows of L2 norm 1, in order."""

    def embed_query(self, text: str) -> FloatArray:
        """Return float32 `[dim]` of L2 norm 1; long questions are cut to the window."""

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        """Return token counts by the model's tokenizer, special tokens included.

        A safe over-estimate if the tokenizer is remote.
        """


class PassageEncoder(Protocol):
    """Encodes passages and questions for late interaction.

    The embedded model does it, also where another model embeds the library.
    """

    @property
    def identity(self) -> EmbedderIdentity:
        """Whose vectors `embed_and_encode` returns."""

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        """Return token counts, special tokens included."""

    def embed_and_encode(self, texts: Sequence[str]) -> tuple[FloatArray, list[PassageCode]]:
        """Return vectors and codes from one run of the model.

        Vectors are float32 `[n, dim]`, as `embed_passages` returns them.

        Raises:
            PassageTooLong: A text is over `identity.max_tokens`.
        """

    def encode(self, texts: Sequence[str]) -> list[PassageCode]:
        """Return codes of texts of any length."""

    def encode_question(self, text: str) -> QuestionCode:
        """Return a question's code and vector; a long question is cut to the window."""


class Generator(Protocol):
    """Prompt to text."""

    @property
    def name(self) -> str:
        """`provider:model` as answers report it."""

    @property
    def context_tokens(self) -> int | None:
        """Window in tokens; None where there is none (extractive)."""

    def stream(self, prompt: Prompt, cancel: CancelToken) -> Iterator[Token]:
        """Yield tokens; the last has `finish` set.

        Raises:
            ProviderError: The host failed; ModelNotInstalled, ProviderUnreachable, ProviderTimeout,
                ProviderBadResponse.
            Cancelled: The token was cancelled; the socket is shut at once.
        """


class Reader(Protocol):
    """A question and a unit of a document read together: a sentence, a row, an item of a list."""

    @property
    def name(self) -> str:
        """Model name for reports."""

    def answers(self, question: str, units: Sequence[str]) -> list[float]:
        """Return one logit per unit: the higher, the likelier it answers."""

    def stances(self, pairs: Sequence[tuple[str, str]]) -> list[Stance]:
        """Return how the second text of each pair stands to the claim before it."""


class Parser(Protocol):
    """Bytes to text with structure."""

    def parse(
        self,
        content: bytes | Path,
        filename: str,
        cancel: CancelToken | None = None,
        words: Sequence[PageWords] = (),
    ) -> ParsedDocument:
        """Return the parsed document; the name is a hint, the content decides.

        Args:
            content: The bytes, or the file that holds them.
            filename: What people call it.
            cancel: Of a client that waits for the text.
            words: What OCR recognised on pages of it.

        Raises:
            Cancelled: `cancel` was cancelled.
            Busy: A parse could not begin in time.
            UnsupportedType: No parser for this content.
            Encrypted, NoTextLayer, Unreadable, TooLarge: What is wrong with the file.
        """

    def addresses(self, content: bytes, base: str) -> Listing:
        """Return what a feed or sitemap lists; `base` is its own address.

        Raises:
            Unreadable: Its parse broke a limit.
        """

    def page_boxes(
        self, content: bytes | Path, pages: Sequence[PageText], words: Sequence[PageWords] = ()
    ) -> tuple[PageBoxes, ...]:
        """Return where texts stand on pages of a PDF, by what OCR recognised where it was used."""

    def highlighted(
        self,
        content: bytes | Path,
        highlights: Sequence[Highlight],
        words: Sequence[PageWords] = (),
    ) -> bytes:
        """Return a copy of a PDF in which spans are marked; see `page_boxes`.

        Raises:
            InvalidInput: The PDF is encrypted or signed.
            UnsupportedType, Unreadable: It is no PDF, or cannot be read.
        """

    def page_words(
        self, content: bytes | Path, number: int, cancel: CancelToken | None = None
    ) -> PageWords:
        """Return what OCR recognises on a page of a PDF or in an image.

        Raises:
            Cancelled: `cancel` was cancelled.
            Busy: No process for it could begin in time.
            Unreadable: The page cannot be printed, or broke a limit.
        """
