"""The Protocols through which packages of one layer meet. Adapters name a vendor, fakes (tests/fakes) say how they fake.

All methods are synchronous and thread-safe. Errors are those of `app.core.errors`; nothing else leaves an adapter on purpose.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Protocol, runtime_checkable

from app.core.cancel import CancelToken
from app.core.types import (
    Answer,
    Chunk,
    DeleteResult,
    Document,
    DocumentDraft,
    EmbedderIdentity,
    Filters,
    FloatArray,
    Job,
    LedgerEntry,
    LedgerSummary,
    Library,
    LibraryCounts,
    Message,
    Metadata,
    PageBoxes,
    PageText,
    ParsedDocument,
    Passage,
    Prompt,
    RawDocument,
    Scored,
    TextSpan,
    Token,
    WriteResult,
)

# --- ingest -----------------------------------------------------------------------------------------------------------------------


@runtime_checkable
class Source(Protocol):
    """A stream of documents in constant memory."""

    def __iter__(self) -> Iterator[RawDocument]:
        """Yield documents in a stable order."""
        ...


@runtime_checkable
class Parser(Protocol):
    """Bytes to text with structure."""

    def parse(self, content: bytes | Path, filename: str) -> ParsedDocument:
        """Return the parsed document; the name is a hint, the content decides.

        Raises:
            UnsupportedType: No parser for this content.
            Encrypted, NoTextLayer, Unreadable, TooLarge: What is wrong with the file.
        """
        ...


@runtime_checkable
class PageLocator(Protocol):
    """Stored text back to places on the pages of the original."""

    def page_boxes(self, content: bytes | Path, pages: Sequence[PageText]) -> tuple[PageBoxes, ...]:
        """Return the rectangles of each span on its page, in the order given.

        Raises:
            UnsupportedType: The original has no pages (only PDFs have).
            Unreadable: The original cannot be opened any more.
        """
        ...


class VectorSink(Protocol):
    """Where vectors go: those of a library's live build, or of one build it was bound to."""

    def pending_vectors(self, library: Library, limit: int, order: str = "id", doc_ids: Sequence[str] | None = None) -> list[Chunk]:
        """Return up to `limit` live chunks without a vector; order `id`, `longest` or `linked`; `doc_ids` narrows it to some."""
        ...

    def write_vectors(self, library: Library, chunk_ids: Sequence[int], vectors: FloatArray) -> None:
        """Store L2-normalised rows `[n, dim]` durably (float16) and queue them for the dense projections.

        Raises:
            FingerprintMismatch: The rows do not fit the build, or the library was re-embedded meanwhile.
        """
        ...

    def apply(self, library: Library) -> None:
        """Bring every projection of the library up to the last change."""
        ...


class IndexWriter(VectorSink, Protocol):
    """The write side of the index, as ingest sees it. One process, many threads; writes are serialised inside."""

    def current(self, library: Library, source_key: str) -> Document | None:
        """Return the live document under a source key."""
        ...

    def store_original(self, content: bytes | Path) -> str:
        """Keep the bytes as `<sha256>.bin`, fsynced, and return the SHA-256 (64 hex digits); storing twice is once.

        Raises:
            DiskFull: No space; nothing half-written stays.
        """
        ...

    def write(self, drafts: Sequence[DocumentDraft]) -> list[WriteResult]:
        """Make drafts live, in order, atomically as one batch; on return they are durable and found lexically (acknowledged).

        A draft whose sha256 and source_revision equal the live revision's is `unchanged`.

        Raises:
            DiskFull: No space; the batch is not acknowledged.
        """
        ...

    def delete(self, library: Library, doc_id: str, grace_s: float = 0) -> DeleteResult:
        """Hide at once; purge when the grace (seconds) is over.

        Raises:
            NotFound: No such document in this library.
        """
        ...

    def correct(self, library: Library, doc_id: str, metadata: Metadata) -> Document:
        """Replace title, authors and year of a live document."""
        ...


# --- index, read side -------------------------------------------------------------------------------------------------------------


class Catalog(Protocol):
    """The truth, read. Live documents only, unless a revision is named."""

    def passages(self, library: Library, chunk_ids: Sequence[int]) -> dict[int, Passage]:
        """Return live passages by chunk id; ids that are gone or superseded are absent."""
        ...

    def document(self, library: Library, doc_id: str) -> Document:
        """Return a live document.

        Raises:
            NotFound: Unknown here; the message says when the other library has it.
        """
        ...

    def documents(
        self, library: Library, query: str = "", cursor: str | None = None, limit: int = 50
    ) -> tuple[list[Document], str | None]:
        """Return one page of live documents whose title or file name contains `query`, and the next cursor."""
        ...

    def chunks(self, library: Library, doc_id: str, revision: int | None = None) -> list[Chunk]:
        """Return a revision's chunks in order."""
        ...

    def text(self, library: Library, doc_id: str, start: int = 0, end: int | None = None, revision: int | None = None) -> TextSpan:
        """Return exactly those characters; superseded revisions answer too."""
        ...

    def counts(self, library: Library) -> LibraryCounts:
        """Return counts of live documents and chunks."""
        ...


class VectorIndex(Protocol):
    """Nearest neighbours of a library's live build."""

    def search(self, library: Library, query: FloatArray, k: int, filters: Filters | None = None) -> list[Scored]:
        """Return up to k chunks by cosine distance, ascending. `query` is float32 `[dim]`, norm 1.

        Raises:
            IndexDamaged: The library has vectors, but they cannot be searched now: the index is checked or made again.
        """
        ...

    def fetch(self, library: Library, chunk_ids: Sequence[int]) -> dict[int, FloatArray]:
        """Return stored rows `[dim]`; ids without a vector are absent."""
        ...

    def count(self, library: Library) -> int:
        """Return how many vectors can be searched."""
        ...


class LexicalIndex(Protocol):
    """BM25 over title, section and body."""

    def search(self, library: Library, text: str, k: int, filters: Filters | None = None) -> list[Scored]:
        """Return up to k chunks by BM25, descending; any text is a valid query."""
        ...

    def score(self, library: Library, text: str, chunk_ids: Sequence[int]) -> dict[int, float]:
        """Return the BM25 of given chunks for a query; chunks sharing no term are 0.0."""
        ...

    def document_frequencies(self, library: Library, tokens: Sequence[str]) -> tuple[int, dict[str, int]]:
        """Return the number of indexed chunks and, per stemmed token, how many chunks' bodies hold it."""
        ...


class BulkLedger(Protocol):
    """What became of every article of every bulk source; counted from rows, so that sums are exact."""

    def entries(self, library: Library, source: str, articles: Sequence[str]) -> dict[str, LedgerEntry]:
        """Return what is known of these articles."""
        ...

    def record(self, library: Library, source: str, entries: Sequence[LedgerEntry]) -> None:
        """Write entries durably, replacing what was known of the same articles."""
        ...

    def page(self, library: Library, source: str, after: str = "", limit: int = 10_000) -> list[LedgerEntry]:
        """Return entries with an article key above `after`, ascending by key."""
        ...

    def forget(self, library: Library, source: str, articles: Sequence[str]) -> None:
        """Drop entries of articles that the source no longer has."""
        ...

    def summary(self, library: Library | None = None, source: str | None = None) -> LedgerSummary:
        """Return the account of one source, one library or everything."""
        ...


# --- models -----------------------------------------------------------------------------------------------------------------------


class Embedder(Protocol):
    """Texts to unit vectors. Texts over `identity.max_tokens` are refused, never cut."""

    @property
    def identity(self) -> EmbedderIdentity:
        """Who makes these vectors; stable for the life of the object."""
        ...

    def embed_passages(self, texts: Sequence[str]) -> FloatArray:
        """Return float32 `[n, dim]`, rows of L2 norm 1, in order."""
        ...

    def embed_query(self, text: str) -> FloatArray:
        """Return float32 `[dim]` of L2 norm 1; long questions are cut to the window."""
        ...

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        """Return the model's own token counts with specials, or a safe over-estimate where the tokenizer is remote."""
        ...


class Generator(Protocol):
    """Prompt to text."""

    @property
    def name(self) -> str:
        """`provider:model` as answers report it."""
        ...

    @property
    def context_tokens(self) -> int | None:
        """Window in tokens; None where there is none (extractive)."""
        ...

    def stream(self, prompt: Prompt, cancel: CancelToken) -> Iterator[Token]:
        """Yield tokens; the last has `finish` set.

        Raises:
            ProviderError: The host failed; ModelNotInstalled, ProviderUnreachable, ProviderTimeout, ProviderBadResponse.
            Cancelled: The token was cancelled; the socket is shut at once.
        """
        ...


class Reranker(Protocol):
    """Question and passage read together."""

    @property
    def name(self) -> str:
        """Model name for reports."""
        ...

    def score(self, question: str, texts: Sequence[str]) -> list[float]:
        """Return one raw logit per text, higher is better."""
        ...


# --- state ------------------------------------------------------------------------------------------------------------------------


class JobStore(Protocol):
    """Jobs that survive a restart."""

    def create(self, kind: str, payload: Mapping[str, object], *, total: int | None = None, unit: str = "items") -> Job:
        """Store a queued job durably and return it."""
        ...

    def get(self, job_id: str) -> Job:
        """Return a job, or raise NotFound."""
        ...

    def list(self, limit: int = 100) -> Sequence[Job]:
        """Return jobs, newest first."""
        ...

    def unfinished(self) -> Sequence[Job]:
        """Return every queued, running or paused job, oldest first, for the start of a process."""
        ...

    def prune(self, keep_finished: int) -> int:
        """Forget finished jobs beyond the newest `keep_finished`; return how many."""
        ...

    def save(self, job: Job) -> None:
        """Replace a job's state durably."""
        ...


class AnswerStore(Protocol):
    """Answers with their traces, by id, within retention."""

    def save(self, answer: Answer, record: Mapping[str, object]) -> None:
        """Keep an answer; `record` is its full JSON form."""
        ...

    def get(self, answer_id: str) -> Mapping[str, object]:
        """Return the record, or raise NotFound."""
        ...

    def add_feedback(self, answer_id: str, feedback: Mapping[str, object]) -> None:
        """Attach thumbs and the right passage, or raise NotFound."""
        ...

    def list(self, limit: int = 100, with_feedback: bool = False) -> Sequence[Mapping[str, object]]:
        """Return records, newest first."""
        ...

    def wipe(self, older_than: str | None = None) -> int:
        """Forget all answers, or those before a UTC time; return how many."""
        ...


class ConversationStore(Protocol):
    """Conversations on the server: id, title, turns, running summary."""

    def create(self, title: str = "", library: str | None = None) -> str:
        """Return the id of a new conversation."""
        ...

    def get(self, conversation_id: str) -> Mapping[str, object]:
        """Return one with its turns, or raise NotFound.

        Keys: id, title, library, summary, folded, created_at, updated_at, turns [{role, content, answer_id, at}].
        """
        ...

    def list(self, limit: int = 100) -> Sequence[Mapping[str, object]]:
        """Return conversations without turns, newest first."""
        ...

    def append(self, conversation_id: str, turns: Sequence[Message], answer_id: str | None = None) -> None:
        """Add a finished exchange atomically."""
        ...

    def set_summary(self, conversation_id: str, summary: str, folded: int) -> None:
        """Keep the summary of the first `folded` messages."""
        ...

    def rename(self, conversation_id: str, title: str) -> None:
        """Change the title, or raise NotFound."""
        ...

    def delete(self, conversation_id: str | None = None) -> int:
        """Forget one or all; return how many."""
        ...
