"""Declare the catalog's tables; a new store is created from them.

`migrations/` brings stores of earlier releases here; a test compares the two.

Each table's comment says its rule. Internal keys: `doc` is a document's integer key, `chunk_id` is
never used twice.
"""

from __future__ import annotations

from typing import Any

from sqlalchemy import (
    BigInteger,
    Column,
    Float,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    Table,
    Text,
    UniqueConstraint,
    text,
)
from sqlalchemy.types import TypeEngine

SCHEMA_VERSION = "0004"
"""Head of migrations/; a store with a version unknown here was written by a newer release and is refused."""

BUILD_SHIFT = 40
"""vectors.key is `build << 40 | chunk_id`: one integer primary key, range-scannable by build, room for 10^12 chunks."""

metadata = MetaData()

Big = BigInteger().with_variant(Integer(), "sqlite")
"""64 bits everywhere; SQLite's INTEGER is that wide already, and only it can be a rowid."""


def _required(kind: type[TypeEngine[Any]] | TypeEngine[Any], *names: str) -> list[Column[Any]]:
    return [Column(name, kind, nullable=False) for name in names]


# What wrote this store: app, chromadb and schema versions, and small flags.
meta = Table(
    "meta", metadata, Column("key", Text, primary_key=True), Column("value", Text, nullable=False)
)

# One row per library: counters maintained by every write, so that counts are O(1), and the live
# build.
libraries = Table(
    "libraries",
    metadata,
    Column("library", Text, primary_key=True),
    *_required(Integer, "documents", "chunks", "embedded"),
    Column("bytes", Big, nullable=False),
    Column("live_build", Integer),
    Column("previous_build", Integer),
)

# Counters by type.
type_counts = Table(
    "type_counts",
    metadata,
    Column("library", Text, primary_key=True),
    Column("type", Text, primary_key=True),
    Column("documents", Integer, nullable=False),
)

# The live revision's facts are denormalised here: lists and joins read one row.
documents = Table(
    "documents",
    metadata,
    Column("doc", Integer, primary_key=True, autoincrement=True),
    *_required(Text, "library", "doc_id", "source_key"),
    Column("revision", Integer, nullable=False),
    *_required(Text, "state", "filename", "type", "sha256", "title", "authors", "author_keys"),
    Column("year", Integer),
    Column("arxiv_id", Text),
    Column("source_url", Text),
    Column("licence", Text),
    Column("flags", Text, nullable=False),
    *_required(Integer, "has_original", "characters", "pages"),
    Column("bytes", Big, nullable=False),
    *_required(Integer, "chunks", "embedded"),
    Column("duplicate_of", Text),
    Column("source_revision", Text),
    *_required(Integer, "corrected", "links"),
    *_required(Text, "search_key", "added_at", "updated_at"),
    Column("purge_at", Text),
    UniqueConstraint("library", "doc_id", name="uq_documents_doc_id"),
    UniqueConstraint("library", "source_key", name="uq_documents_source_key"),
    sqlite_autoincrement=True,
)
Index("ix_documents_sha256", documents.c.library, documents.c.sha256)
Index("ix_documents_purge", documents.c.purge_at, sqlite_where=text("purge_at IS NOT NULL"))
_PENDING = "state = 'live' AND embedded < chunks"
Index("ix_documents_pending", documents.c.library, documents.c.doc, sqlite_where=text(_PENDING))
Index(
    "ix_documents_longest", documents.c.library, documents.c.characters, sqlite_where=text(_PENDING)
)
Index("ix_documents_linked", documents.c.library, documents.c.links, sqlite_where=text(_PENDING))

# Every text a document ever had, until it is purged: zstd frames with a checksum, and where pages
# begin (JSON).
revisions = Table(
    "revisions",
    metadata,
    Column("rev", Integer, primary_key=True),
    Column("doc", Integer, ForeignKey("documents.doc", ondelete="CASCADE"), nullable=False),
    Column("revision", Integer, nullable=False),
    Column("sha256", Text, nullable=False),
    Column("source_revision", Text),
    *_required(Integer, "has_original", "characters"),
    Column("pages", Text, nullable=False),
    Column("text", LargeBinary, nullable=False),
    Column("created_at", Text, nullable=False),
    UniqueConstraint("doc", "revision", name="uq_revisions_revision"),
)
Index("ix_revisions_original", revisions.c.sha256, sqlite_where=text("has_original = 1"))

# Spans of a revision; the text is always revisions.text[start:end], never a copy.
chunks = Table(
    "chunks",
    metadata,
    Column("chunk_id", Big, primary_key=True, autoincrement=True),
    Column("doc", Integer, ForeignKey("documents.doc", ondelete="CASCADE"), nullable=False),
    *_required(Integer, "revision", "ordinal", "start", "end"),
    Column("section", Text, nullable=False),
    Column("page", Integer),
    sqlite_autoincrement=True,
)
Index("ix_chunks_doc", chunks.c.doc, chunks.c.revision, chunks.c.ordinal)

# What vectors were made with. One live build per library; a re-embedding fills another, whose
# number is in meta under `staged_build/{library}` until it takes over.
builds = Table(
    "builds",
    metadata,
    Column("build", Integer, primary_key=True),
    *_required(Text, "library", "fingerprint", "fingerprint8", "created_at"),
)

# float16 rows of norm 1, little-endian; only chunks of live revisions have one.
vectors = Table(
    "vectors",
    metadata,
    Column("key", Big, primary_key=True),
    Column("vector", LargeBinary, nullable=False),
)

# Codes for late interaction of live chunks: int8 sentence vectors and 128 bits a token
# (app/core/types/codes.py).
passage_codes = Table(
    "passage_codes",
    metadata,
    Column("chunk_id", Big, ForeignKey("chunks.chunk_id", ondelete="CASCADE"), primary_key=True),
    *_required(LargeBinary, "sentences", "tokens"),
)

# What projections have to apply, in seq order. `ids` are the chunk ids (int64, little-endian) that
# entered or left the dense ones.
changes = Table(
    "changes",
    metadata,
    Column("seq", Big, primary_key=True, autoincrement=True),
    *_required(Text, "library", "kind"),
    *_required(Integer, "doc", "revision"),
    Column("ids", LargeBinary),
    sqlite_autoincrement=True,
)
Index("ix_changes_library", changes.c.library, changes.c.seq)

# How far each projection got; written after the projection's own commit.
watermarks = Table(
    "watermarks",
    metadata,
    Column("library", Text, primary_key=True),
    Column("projection", Text, primary_key=True),
    Column("seq", Big, nullable=False),
)

jobs = Table(
    "jobs",
    metadata,
    Column("n", Integer, primary_key=True),
    Column("id", Text, nullable=False, unique=True),
    *_required(Text, "kind", "state"),
    Column("done", Integer, nullable=False),
    Column("total", Integer),
    Column("unit", Text, nullable=False),
    Column("eta_s", Float),
    *_required(Text, "errors", "files", "payload"),
    Column("result", Text),
    *_required(Text, "created_at", "updated_at"),
)

conversations = Table(
    "conversations",
    metadata,
    Column("n", Integer, primary_key=True),
    Column("id", Text, nullable=False, unique=True),
    Column("title", Text, nullable=False),
    Column("library", Text),
    Column("summary", Text, nullable=False),
    Column("folded", Integer, nullable=False),
    *_required(Text, "created_at", "updated_at"),
)
turns = Table(
    "turns",
    metadata,
    Column("n", Integer, primary_key=True),
    Column(
        "conversation", Integer, ForeignKey("conversations.n", ondelete="CASCADE"), nullable=False
    ),
    *_required(Text, "role", "content"),
    Column("answer_id", Text),
    Column("at", Text, nullable=False),
)
Index("ix_turns_conversation", turns.c.conversation, turns.c.n)
Index("ix_turns_answer", turns.c.answer_id)

answers = Table(
    "answers",
    metadata,
    Column("n", Integer, primary_key=True),
    Column("answer_id", Text, nullable=False, unique=True),
    Column("record", Text, nullable=False),
    Column("feedback", Text),
    Column("created_at", Text, nullable=False),
)
Index("ix_answers_created_at", answers.c.created_at)
# Which documents an answer drew on, so that a deletion finds the quotes it has to blank.
answer_documents = Table(
    "answer_documents",
    metadata,
    Column("answer", Integer, ForeignKey("answers.n", ondelete="CASCADE"), primary_key=True),
    Column("library", Text, primary_key=True),
    Column("doc_id", Text, primary_key=True),
)
Index("ix_answer_documents_doc", answer_documents.c.library, answer_documents.c.doc_id)

# Bulk sources: what became of every article of a dump.
ledger = Table(
    "ledger",
    metadata,
    Column("library", Text, primary_key=True),
    Column("source", Text, primary_key=True),
    Column("article", Text, primary_key=True),
    Column("revision", Text),
    *_required(Text, "state", "reason"),
    sqlite_with_rowid=False,
)
Index("ix_ledger_state", ledger.c.library, ledger.c.source, ledger.c.state, ledger.c.reason)
# Originals that may be unlinked where neither a revision nor an unfinished job refers to them.
# Written before bytes are kept and with the deletion of a document; settled by the next start. Any
# other original stays.
unlinks = Table(
    "unlinks",
    metadata,
    Column("sha256", Text, primary_key=True),
    Column("recorded_at", Text, nullable=False),
)

# Which folder's sync sent a source key, and with what bytes: only these documents does a sync
# remove.
sync_claims = Table(
    "sync_claims",
    metadata,
    Column("library", Text, primary_key=True),
    Column("source_key", Text, primary_key=True),
    *_required(Text, "folder", "sha256"),
    sqlite_with_rowid=False,
)
Index("ix_sync_claims_folder", sync_claims.c.library, sync_claims.c.folder)

# Where a bulk run stands in its source, written with the batch it describes.
checkpoints = Table(
    "checkpoints",
    metadata,
    Column("library", Text, primary_key=True),
    Column("source", Text, primary_key=True),
    *_required(Text, "position", "updated_at"),
)

# How fast each model reads and writes on its host, in tokens per second.
model_speeds = Table(
    "model_speeds",
    metadata,
    Column("host", Text, primary_key=True),
    Column("model", Text, primary_key=True),
    Column("reading", Float, nullable=False),
    Column("writing", Float),
    Column("updated_at", Text, nullable=False),
)

# What the built-in test of a model found; by digest, so that a pulled newer version is tested
# again.
model_tests = Table(
    "model_tests",
    metadata,
    Column("digest", Text, primary_key=True),
    *_required(Text, "model", "findings", "at"),
)
