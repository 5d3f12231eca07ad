"""Define the Protocols through which packages of one layer meet.

Adapters name a vendor; fakes (tests/fakes) say how they fake. All methods are synchronous and
thread-safe. Errors are those of `app.core.errors`; nothing else leaves an adapter on purpose.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Protocol

from app.core.cancel import CancelToken
from app.core.types import (
    Chunk,
    Document,
    EmbedderIdentity,
    Filters,
    FloatArray,
    Heading,
    Library,
    LibraryCounts,
    PageBoxes,
    PageText,
    PageWords,
    ParsedDocument,
    Passage,
    PassageCode,
    Prompt,
    QuestionCode,
    Scored,
    TextSpan,
    Token,
)


class Catalog(Protocol):
    """The truth, read. Live documents only, unless a revision is named."""

    def moment(self) -> AbstractContextManager[None]:
        """Let this thread's reads in the block share one transaction, and counts one moment.

        Each read sees what was written before it. Nothing slow belongs into the block.
        """

    def passages(self, library: Library, chunk_ids: Sequence[int]) -> dict[int, Passage]:
        """Return live passages by chunk id; ids that are gone or superseded are absent."""

    def outlines(
        self, library: Library, named: Collection[tuple[str, int]]
    ) -> Mapping[tuple[str, int], tuple[Heading, ...]]:
        """Return the headings of revisions by `(doc_id, revision)`; without any it is absent."""

    def document(self, library: Library, doc_id: str) -> Document:
        """Return a live document.

        Raises:
            NotFound: Unknown in this library.
        """

    def documents(
        self, library: Library, query: str = "", cursor: str | None = None, limit: int = 50
    ) -> tuple[list[Document], str | None]:
        """Return a page of live documents and the next cursor.

        Title or file name contains `query`.
        """

    def chunks(self, library: Library, doc_id: str, revision: int | None = None) -> list[Chunk]:
        """Return a revision's chunks in order."""

    def text(
        self,
        library: Library,
        doc_id: str,
        start: int = 0,
        end: int | None = None,
        revision: int | None = None,
    ) -> TextSpan:
        """Return exactly those characters; superseded revisions answer too."""

    def counts(self, library: Library) -> LibraryCounts:
        """Return counts of live documents and chunks."""


class VectorIndex(Protocol):
    """Nearest neighbours of a library's live build."""

    def search(
        self, library: Library, query: FloatArray, k: int, filters: Filters | None = None
    ) -> list[Scored]:
        """Return up to k chunks by cosine distance, ascending.

        `query` is float32 `[dim]`, norm 1.

        Raises:
            IndexDamaged: The library has vectors, but they cannot be searched now: the index is
                being checked or rebuilt.
        """

    def fetch(self, library: Library, chunk_ids: Sequence[int]) -> dict[int, FloatArray]:
        """Return stored rows `[dim]`; ids without a vector are absent."""

    def count(self, library: Library) -> int:
        """Return how many vectors can be searched."""


class PassageCodes(Protocol):
    """Codes for late interaction, by chunk."""

    def codes(self, chunk_ids: Sequence[int]) -> dict[int, PassageCode]:
        """Return the codes of chunks; those without one are absent."""

    def write_codes(self, codes: Mapping[int, PassageCode]) -> None:
        """Keep codes of live chunks, durably.

        Raises:
            InvalidInput: A code has not whole rows.
        """

    def pending_codes(
        self, library: Library, limit: int, after: int = 0, doc_ids: Sequence[str] | None = None
    ) -> list[Chunk]:
        """Return up to `limit` live chunks without a code, by id, from over `after`.

        `doc_ids` limits the search to some documents.
        """


class LexicalIndex(Protocol):
    """BM25 over title, section and body."""

    def search(
        self, library: Library, text: str, k: int, filters: Filters | None = None
    ) -> list[Scored]:
        """Return up to k chunks by BM25, descending; any text is a valid query."""

    def score(self, library: Library, text: str, chunk_ids: Sequence[int]) -> dict[int, float]:
        """Return the BM25 of given chunks for a query; chunks sharing no term are 0.0."""

    def languages(self, library: Library) -> tuple[str, ...]:
        """Return the languages by whose rules words are stemmed, that of most chunks first.

        Never empty.
        """

    def document_frequencies(
        self, library: Library, tokens: Sequence[str]
    ) -> tuple[int, dict[str, int]]:
        """Return the number of indexed chunks, and of chunks that hold each token.

        Tokens are stemmed; only bodies count.
        """

    def near(self, library: Library, token: str, edits: int, k: int) -> list[int]:
        """Return up to k chunks with a token within `edits` of a stemmed one.

        0 to 2 edits, in body or title; swapping two neighbouring letters is one edit.
        """


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


class Reranker(Protocol):
    """Question and passage read together."""

    @property
    def name(self) -> str:
        """Model name for reports."""

    def score(self, question: str, texts: Sequence[str]) -> list[float]:
        """Return one raw logit per text, higher is better."""


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

    def page_boxes(
        self, content: bytes | Path, pages: Sequence[PageText], words: Sequence[PageWords] = ()
    ) -> tuple[PageBoxes, ...]:
        """Return where texts stand on pages of a PDF, by what OCR recognised where it was used."""

    def page_words(
        self, content: bytes | Path, number: int, cancel: CancelToken | None = None
    ) -> PageWords:
        """Return what OCR recognises on a page of a PDF or in an image.

        Raises:
            Cancelled: `cancel` was cancelled.
            Busy: No process for it could begin in time.
            Unreadable: The page cannot be printed, or broke a limit.
        """


class VectorSink(Protocol):
    """Accepts vectors for a library's live build, or for the build it is bound to."""

    def pending_vectors(
        self, library: Library, limit: int, order: str = "id", doc_ids: Sequence[str] | None = None
    ) -> list[Chunk]:
        """Return up to `limit` live chunks without a vector.

        `order` is `id`, `longest` or `linked`; `doc_ids` limits the search to some documents.
        """

    def write_vectors(
        self, library: Library, chunk_ids: Sequence[int], vectors: FloatArray, *, wait: bool = True
    ) -> None:
        """Store L2-normalised rows `[n, dim]` durably and queue them for dense search.

        They are stored as float16.

        Raises:
            Busy: Another one writes, and it is not to be waited for.
            FingerprintMismatch: The rows do not fit the build, or the library was re-embedded in
                between.
        """

    def apply(self, library: Library) -> None:
        """Bring every projection of the library up to the last change."""
