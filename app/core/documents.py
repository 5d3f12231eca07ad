"""Documents on their way in: bytes, text, chunks, outcome."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, NamedTuple

from app.core.labels import NO_LABELS, Labels, Value
from app.core.links import WebLink
from app.core.normalisation import clean_name
from app.core.serialization import INTERNAL, PUBLIC
from app.core.vocabulary import FloatArray, Library


@dataclass(frozen=True, slots=True)
class Correction:
    """What was read at a place of a document, and what stands there instead."""

    start: int
    """In the reader's text: as it was read, before any correction."""
    before: str
    """What was read there."""
    text: str
    left: str
    """Some characters in front of it, as they were read; `right` are those behind it."""
    right: str
    author: str
    """Name of the key that wrote it."""
    created_at: str
    placed: bool = True
    """False: what was read last has no such place; the correction is kept and does nothing."""

    @property
    def end(self) -> int:
        return self.start + len(self.before)


@dataclass(frozen=True, slots=True)
class RawDocument:
    """One source before parsing: bytes in memory or on disk, and where they came from."""

    source_key: str
    """Identity within a library: file name, relative path, arXiv id without version, wiki page
    id, `sample_<stem>`."""
    filename: str
    """Display name; data, never a path."""
    content: bytes | Path
    source_url: str | None = None
    licence: str | None = None
    doc_id: str | None = None
    """Fixed id (samples only); None derives it from library and source key."""
    metadata: Metadata | None = None
    """What the source itself says (arXiv); None takes what the text shows."""
    job_id: str = ""
    """The job that accepted it; a deletion after that keeps it out."""
    labels: Labels = NO_LABELS
    """Tags and own metadata that it is given."""
    again: bool = False
    """Read even where the bytes are unchanged: more is known of what they show."""
    reread: bool = False
    """Bytes of a live document that are read once more, not bytes that someone sent."""
    corrections: tuple[Correction, ...] | None = None
    """In the place of those that the live revision of the same bytes has; None keeps these."""


@dataclass(frozen=True, slots=True)
class Listing:
    """The addresses that a feed or a sitemap lists."""

    addresses: tuple[str, ...] = ()
    of_sitemaps: bool = False
    """They are of sitemaps, not of pages."""


@dataclass(frozen=True, slots=True)
class PageSpan:
    """Characters `[start, end)` of the text stand on page `number` (from 1)."""

    number: int
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Heading:
    """A heading's characters `[start, end)`.

    Its section runs to the next heading of the same or a higher level.
    """

    start: int
    end: int
    level: int
    title: str


class BlockSpan(NamedTuple):
    """Characters `[start, end)` that are one row, item, field, line, code, quote or note."""

    kind: str
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Metadata:
    """Facts about a document besides its text; every field can be corrected."""

    title: str
    authors: tuple[str, ...] = ()
    year: int | None = None
    arxiv_id: str | None = None
    language: str = ""
    """ISO 639-1; empty: unknown, treated as English."""

    def __post_init__(self) -> None:
        """Clean title and authors, no matter who names them: the file, its source, a person."""
        object.__setattr__(self, "title", _one_line(self.title))
        object.__setattr__(self, "authors", tuple(map(_one_line, self.authors)))


def _one_line(name: str) -> str:
    return clean_name(name if name.isprintable() else " ".join(name.split()))


@dataclass(frozen=True, slots=True)
class ParsedDocument:
    """Plain text and its structure. NFC, lines end with newline, no NUL, no lone surrogates."""

    text: str
    media_type: str
    pages: tuple[PageSpan, ...] = ()
    headings: tuple[Heading, ...] = ()
    title: str | None = None
    authors: tuple[str, ...] = ()
    year: int | None = None
    warnings: tuple[str, ...] = ()
    stripped_characters: int = 0
    """Invisible and tag characters removed while parsing (hidden-instruction carriers)."""
    blocks: tuple[BlockSpan, ...] = ()
    """Other blocks than headings and paragraphs, in order."""
    labels: Labels = NO_LABELS
    """What the file itself says."""
    unread: tuple[int, ...] = ()
    """Numbers of pages whose text is a picture, or nonsense, and was not recognised yet."""
    recognised: int = 0
    """Pages whose text is what OCR recognised."""


class Word(NamedTuple):
    """A recognised word and its box in points, origin top left."""

    text: str
    left: float
    top: float
    right: float
    bottom: float


@dataclass(frozen=True, slots=True)
class PageWords:
    """Words that OCR recognised on a page, in reading order; no lines where it found no text."""

    page: int
    """From 1."""
    width: float
    """In points, as `height`."""
    height: float
    lines: tuple[tuple[Word, ...], ...] = ()

    def to_json(self) -> tuple[object, ...]:
        return self.page, self.width, self.height, self.lines

    @classmethod
    def from_json(cls, values: Sequence[Any]) -> PageWords:
        number, width, height, lines = values
        words = (tuple(Word(str(text), *map(float, at)) for text, *at in line) for line in lines)
        return cls(int(number), float(width), float(height), tuple(words))


@dataclass(frozen=True, slots=True)
class PageText:
    """A page's stored text and a half-open span in it, to locate on the page."""

    number: int
    text: str
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Highlight:
    """A span to be marked in a copy of its PDF, page by page, and what the mark says."""

    pages: tuple[PageText, ...]
    note: str


@dataclass(frozen=True, slots=True)
class PageBoxes:
    """Rectangles of a span on a page: (x0, y0, x1, y1), one per line.

    PDF points, origin top left.
    """

    page: int
    width: float
    height: float
    rects: tuple[tuple[float, float, float, float], ...]


class ChunkSpan(NamedTuple):
    """The place of a chunk in its revision, before the chunk has an id.

    A bulk run makes one per 800 characters.
    """

    ordinal: int
    start: int
    end: int
    section: str
    """Normalised section name, `body` when none was found."""
    page: int | None = None


@dataclass(frozen=True, slots=True)
class Receipt:
    """Counts of a document's characters.

    `covered_characters` counts non-blank ones inside chunks.
    """

    pages: int
    characters: int
    covered_characters: int
    chunks: int
    vectors: int


@dataclass(frozen=True, slots=True)
class IngestOutcome:
    """The outcome of one file of an ingest."""

    filename: str
    doc_id: str | None
    status: Literal["indexed", "unchanged", "replaced", "failed"]
    reason: str | None = None
    code: str | None = None
    """The error code when failed (see core.errors)."""
    duplicate_of: str | None = None
    receipt: Receipt | None = None
    unplaced: int = 0
    """Corrections that do not fit what was read; they are kept, and do nothing."""


@dataclass(frozen=True, slots=True)
class DocumentDraft:
    """A parsed and chunked document, ready to be written as a revision."""

    library: Library
    doc_id: str
    source_key: str
    filename: str
    sha256: str
    """Of the original bytes; for bulk text, of the text."""
    type: str
    text: str
    metadata: Metadata
    chunks: tuple[ChunkSpan, ...]
    pages: tuple[PageSpan, ...] = ()
    headings: tuple[Heading, ...] = ()
    source_url: str | None = None
    licence: str | None = None
    flags: tuple[str, ...] = ()
    has_original: bool = False
    source_revision: str | None = None
    """Edition of the source, to skip what is unchanged: of an article its revision id in the
    wiki, of a file who has read it."""
    job_id: str = ""
    """The job that accepted it: a deletion or an upload after that keeps it out; empty: none
    does."""
    labels: Labels = NO_LABELS
    """Tags and own metadata that it is given; a value that its key does not take is left out."""
    again: bool = False
    """A revision even where bytes and edition are those of the last one."""
    reread: bool = False
    """It is taken only while the document is live with the same bytes."""
    corrections: tuple[Correction, ...] = ()
    """Those that made its text of what was read."""
    follows: int | None = None
    """The revision that its corrections are of: another live one of the same bytes keeps it out."""

    def __post_init__(self) -> None:
        """Clean the file name: a page, an archive or a bundle may have given it."""
        object.__setattr__(self, "filename", clean_name(self.filename))


@dataclass(frozen=True, slots=True)
class WriteResult:
    """The outcome of one draft in the catalog."""

    doc_id: str
    revision: int
    status: Literal["indexed", "unchanged", "replaced"]
    duplicate_of: str | None = None
    left_out: tuple[str, ...] = ()
    """Keys of own metadata whose values are of another kind than the key."""


OUT_OF_REACH = (
    "exports and backups made before",
    "copies of the data directory, and snapshots of the file system or the disk",
    "where DATABASE_URL is set: PostgreSQL's write-ahead log until it is recycled, and its dumps"
    " and standbys",
    "what a hosted provider was sent, where one was used",
    "names of files in the list of finished jobs, until those are forgotten",
)
"""What a purge cannot change; shown with every deletion and purge."""


@dataclass(frozen=True, slots=True)
class DeleteResult:
    """Counts of what a deletion removed."""

    __pydantic_config__ = PUBLIC
    doc_id: str
    chunks: int
    vectors: int
    originals: int
    quotes_blanked: int
    """Number of its quotes removed from stored answers."""
    purged: bool
    """False while the grace period runs."""
    out_of_reach: tuple[str, ...] = OUT_OF_REACH
    """Copies that no deletion and no purge can remove."""


_WORD = re.compile(r"[^\W_]+")


def searched_names(titles: str, filename: str) -> str:
    """Return titles, and below them the name of a file that says more than they do."""
    said = set(_WORD.findall((filename.rpartition(".")[0] or filename).casefold()))
    said.difference_update(_WORD.findall(titles.casefold()))
    return f"{titles}\n{filename}" if said else titles


@dataclass(frozen=True, slots=True)
class Document:
    """A live document."""

    __pydantic_config__ = PUBLIC
    doc_id: str
    library: Library
    source_key: str
    revision: int
    sha256: str
    title: str
    authors: tuple[str, ...]
    year: int | None
    type: str
    state: Literal["live", "deleted"]
    characters: int
    pages: int
    chunks: int
    embedded: int
    """Chunks that have a vector."""
    duplicate_of: str | None
    source_url: WebLink
    licence: str | None
    added_at: str
    updated_at: str
    filename: str = ""
    arxiv_id: str | None = None
    has_original: bool = False
    flags: tuple[str, ...] = ()
    """Findings at ingest that a reader should see, for example `override`, `stripped:12`."""
    language: str = ""
    """ISO 639-1; empty: unknown, its words are stemmed as English ones."""
    other_titles: str = field(default="", metadata=INTERNAL)
    """Under which else it is known, one a line."""
    tags: tuple[str, ...] = ()
    metadata: Mapping[str, Value] = field(default_factory=dict, hash=False)
    """Own metadata by key: a text, a number, or a date as YYYY-MM-DD."""
    sample: bool = False
    """The document came with the program."""

    @property
    def titles(self) -> str:
        """Return everything that the document is called, as a question may call it."""
        return f"{self.title}\n{self.other_titles}" if self.other_titles else self.title

    @property
    def names(self) -> str:
        """Return its titles and the name of its file, as a search may name it."""
        return searched_names(self.titles, self.filename)


@dataclass(frozen=True, slots=True)
class Chunk:
    """A unit of the index: always text[start:end] of the document."""

    __pydantic_config__ = PUBLIC
    chunk_id: int = field(metadata=INTERNAL)
    doc_id: str = field(metadata=INTERNAL)
    library: Library = field(metadata=INTERNAL)
    revision: int = field(metadata=INTERNAL)
    ordinal: int = field(metadata={"alias": "index"})
    start: int
    end: int
    section: str
    page: int | None
    text: str

    @property
    def key(self) -> tuple[Library, int]:
        """What tells it from the chunks of all libraries."""
        return self.library, self.chunk_id


@dataclass(frozen=True, slots=True)
class Passage:
    """A live chunk joined with its document."""

    chunk: Chunk
    document: Document


@dataclass(frozen=True, slots=True)
class TextSpan:
    """Characters `[start, end)` of a revision, and the length of the whole text."""

    text: str
    start: int
    end: int
    length: int
    revision: int


@dataclass(frozen=True, slots=True)
class LibraryCounts:
    """Counts from the catalog; `embedded` chunks have a stored vector."""

    documents: int
    chunks: int
    embedded: int
    bytes: int
    by_type: Mapping[str, int] = field(default_factory=dict)
    samples: int = 0
    """Documents that came with the program."""

    @property
    def is_disposable(self) -> bool:
        """Return whether no document is a person's own: empty, or samples only."""
        return self.documents == self.samples


@dataclass(frozen=True, slots=True)
class Fingerprint:
    """Versions that made a library's vectors and lexical index.

    Indexes with equal fingerprints are interchangeable.
    """

    embedding_model: str
    model_digest: str
    dimension: int
    query_prefix: str
    passage_prefix: str
    chunker: str
    analyzer: str


@dataclass(frozen=True, slots=True)
class EmbedderIdentity:
    """The embedder that made a vector.

    `max_tokens` is the longest passage the model reads whole.
    """

    provider: str
    model: str
    digest: str
    dimension: int
    max_tokens: int
    query_prefix: str = ""
    passage_prefix: str = ""
    languages: frozenset[str] = frozenset()
    """That the model knows, ISO 639-1; empty: it is not known which."""

    def knows(self, language: str) -> bool:
        """Return whether vectors of a language mean anything, as far as is known."""
        return not self.languages or not language or language in self.languages


@dataclass(frozen=True, slots=True)
class Article:
    """One page of an encyclopedia dump, before its markup is parsed."""

    key: str
    """The page's own id in the source; stable across dumps."""
    revision: str
    """The source's revision id or a content hash; changes whenever the text does."""
    title: str
    markup: Literal["wikitext", "html", "text"]
    source: str
    url: str | None = None
    licence: str | None = None
    redirect_to: str | None = None
    """Target title of a redirect; its source holds no prose."""
    namespace: int = 0
    """MediaWiki namespace number; 0 holds articles."""
    fault: str | None = None
    """Why this part of the source is no article; it is counted as skipped."""
    labels: Labels = NO_LABELS


ArticleState = Literal["indexed", "redirect", "skipped"]


@dataclass(frozen=True, slots=True)
class LedgerEntry:
    """The outcome of one article of a bulk source."""

    article: str
    revision: str
    state: ArticleState
    reason: str = ""
    """Why it was skipped; empty otherwise."""


@dataclass(frozen=True, slots=True)
class LedgerPage:
    """Entries of one source, to be recorded together."""

    library: Library
    source: str
    entries: Sequence[LedgerEntry]


@dataclass(frozen=True, slots=True)
class LedgerSummary:
    """The account: `articles` is the sum of the others."""

    __pydantic_config__ = PUBLIC
    articles: int
    indexed: int
    redirects: int
    skipped: Mapping[str, int]
    """Counts by reason."""


STATE_DIMENSION = 384
"""Of a token state of the embedded model."""
TOKEN_BITS = 128
"""Of a token's code."""
MAX_SENTENCES = 32
"""Sentence vectors of one passage."""
MAX_TOKENS = 65_536
"""Token codes of one passage; bulk text that is not cut has fewer."""
CODES_VERSION = "minilm-128-1"
"""Raise it when model, axes or layout change: codes of another version are rebuilt."""


@dataclass(frozen=True, slots=True)
class PassageCode:
    """One chunk: a vector a sentence and 128 bits a token."""

    sentences: bytes
    """int8 `[s, 384]`, 1 to 32 rows: the mean of a sentence's token states, scaled to norm 127."""
    tokens: bytes
    """uint8 `[t, 16]`, at least one row: signs of the centred state on 128 axes, first axis in
    the highest bit."""

    def fits(self) -> bool:
        """Return whether both have whole rows, and as many as a passage may have."""
        sentences, rest = divmod(len(self.sentences), STATE_DIMENSION)
        return (
            rest == 0
            and 0 < sentences <= MAX_SENTENCES
            and 0 < len(self.tokens) <= 16 * MAX_TOKENS
            and len(self.tokens) % 16 == 0
        )


@dataclass(frozen=True, slots=True, eq=False)
class QuestionCode:
    """One question, from one run of the embedded model."""

    vector: FloatArray
    """float32 `[384]`, norm 1: the same as `embed_query` gives."""
    directions: FloatArray
    """float32 `[n, 128]`, rows of norm 1: centred token states on the axes, without the model's
    own tokens."""
    stems: tuple[str, ...]
    """The stemmed word that each token belongs to, `n` of them; empty where it is none."""
    pieces: tuple[int, ...]
    """How many tokens that word has."""

    @property
    def common_stems(self) -> frozenset[str]:
        """Return stems of words that are one token of the model.

        The model has 30,000 whole words; a misspelt word is seldom among them.
        """
        return frozenset(stem for stem, n in zip(self.stems, self.pieces, strict=True) if n == 1)


def page_texts(
    pages: Sequence[PageSpan], start: int, end: int, read: Callable[[int, int], str]
) -> tuple[PageText, ...]:
    """Return each page of a span, its text, and the part of the span on it, for `page_boxes`.

    `pages` is the page map of a revision, `start` and `end` are a span of its text, of which `read`
    returns the characters `[start, end)`.
    """
    return tuple(
        PageText(
            page.number,
            read(page.start, page.end),
            max(start, page.start) - page.start,
            min(end, page.end) - page.start,
        )
        for page in pages
        if page.start < end and start < page.end
    )
