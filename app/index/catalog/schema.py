"""Declare the catalog's tables for SQLAlchemy Core; migrations create them.

Each table's comment says its rule. Internal keys: `doc` is a document's integer key, `chunk_id` is never used twice.
"""

from __future__ import annotations

from sqlalchemy import BLOB, Column, Float, ForeignKey, Index, Integer, MetaData, Table, Text, UniqueConstraint, text

SCHEMA_VERSION = "0004"
"""Head of migrations/; a store with a version unknown here was written by a newer release and is refused."""

BUILD_SHIFT = 40
"""vectors.key is `build << 40 | chunk_id`: one integer primary key, range-scannable by build, room for 10^12 chunks."""

metadata = MetaData()

# What wrote this store: app, chromadb and schema versions, and small flags.
meta = Table("meta", metadata, Column("key", Text, primary_key=True), Column("value", Text, nullable=False))

# One row per library: counters maintained by every write, so that counts are O(1), and the live build.
libraries = Table(
    "libraries",
    metadata,
    Column("library", Text, primary_key=True),
    Column("documents", Integer, nullable=False),
    Column("chunks", Integer, nullable=False),
    Column("embedded", Integer, nullable=False),
    Column("bytes", Integer, nullable=False),
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
    Column("library", Text, nullable=False),
    Column("doc_id", Text, nullable=False),
    Column("source_key", Text, nullable=False),
    Column("revision", Integer, nullable=False),
    Column("state", Text, nullable=False),
    Column("filename", Text, nullable=False),
    Column("type", Text, nullable=False),
    Column("sha256", Text, nullable=False),
    Column("title", Text, nullable=False),
    Column("authors", Text, nullable=False),
    Column("author_keys", Text, nullable=False),
    Column("year", Integer),
    Column("arxiv_id", Text),
    Column("source_url", Text),
    Column("licence", Text),
    Column("flags", Text, nullable=False),
    Column("has_original", Integer, nullable=False),
    Column("characters", Integer, nullable=False),
    Column("pages", Integer, nullable=False),
    Column("bytes", Integer, nullable=False),
    Column("chunks", Integer, nullable=False),
    Column("embedded", Integer, nullable=False),
    Column("duplicate_of", Text),
    Column("source_revision", Text),
    Column("corrected", Integer, nullable=False),
    Column("links", Integer, nullable=False),
    Column("search_key", Text, nullable=False),
    Column("added_at", Text, nullable=False),
    Column("updated_at", Text, nullable=False),
    Column("purge_at", Text),
    UniqueConstraint("library", "doc_id", name="uq_documents_doc_id"),
    UniqueConstraint("library", "source_key", name="uq_documents_source_key"),
    sqlite_autoincrement=True,
)
Index("ix_documents_sha256", documents.c.library, documents.c.sha256)
Index("ix_documents_purge", documents.c.purge_at, sqlite_where=text("purge_at IS NOT NULL"))
_PENDING = "state = 'live' AND embedded < chunks"
Index("ix_documents_pending", documents.c.library, documents.c.doc, sqlite_where=text(_PENDING))
Index("ix_documents_longest", documents.c.library, documents.c.characters, sqlite_where=text(_PENDING))
Index("ix_documents_linked", documents.c.library, documents.c.links, sqlite_where=text(_PENDING))

# Every text a document ever had, until it is purged: zstd frames with a checksum, and where pages begin (JSON).
revisions = Table(
    "revisions",
    metadata,
    Column("rev", Integer, primary_key=True),
    Column("doc", Integer, ForeignKey("documents.doc", ondelete="CASCADE"), nullable=False),
    Column("revision", Integer, nullable=False),
    Column("sha256", Text, nullable=False),
    Column("source_revision", Text),
    Column("has_original", Integer, nullable=False),
    Column("characters", Integer, nullable=False),
    Column("pages", Text, nullable=False),
    Column("text", BLOB, nullable=False),
    Column("created_at", Text, nullable=False),
    UniqueConstraint("doc", "revision", name="uq_revisions_revision"),
)
Index("ix_revisions_original", revisions.c.sha256, sqlite_where=text("has_original = 1"))

# Spans of a revision; the text is always revisions.text[start:end], never a copy.
chunks = Table(
    "chunks",
    metadata,
    Column("chunk_id", Integer, primary_key=True, autoincrement=True),
    Column("doc", Integer, ForeignKey("documents.doc", ondelete="CASCADE"), nullable=False),
    Column("revision", Integer, nullable=False),
    Column("ordinal", Integer, nullable=False),
    Column("start", Integer, nullable=False),
    Column("end", Integer, nullable=False),
    Column("section", Text, nullable=False),
    Column("page", Integer),
    sqlite_autoincrement=True,
)
Index("ix_chunks_doc", chunks.c.doc, chunks.c.revision, chunks.c.ordinal)

# What vectors were made with. One live build per library; a re-embedding fills another, whose number is in meta under
# `staged_build/{library}` until it takes over.
builds = Table(
    "builds",
    metadata,
    Column("build", Integer, primary_key=True),
    Column("library", Text, nullable=False),
    Column("fingerprint", Text, nullable=False),
    Column("fingerprint8", Text, nullable=False),
    Column("created_at", Text, nullable=False),
)

# float16 rows of norm 1, little-endian; only chunks of live revisions have one.
vectors = Table(
    "vectors",
    metadata,
    Column("key", Integer, primary_key=True),
    Column("vector", BLOB, nullable=False),
)

# Codes for late interaction of live chunks: int8 sentence vectors and 128 bits a token (app/core/types/codes.py).
passage_codes = Table(
    "passage_codes",
    metadata,
    Column("chunk_id", Integer, ForeignKey("chunks.chunk_id", ondelete="CASCADE"), primary_key=True),
    Column("sentences", BLOB, nullable=False),
    Column("tokens", BLOB, nullable=False),
)

# What projections have to apply, in seq order. `ids` are the chunk ids (int64, little-endian) that entered or left the dense ones.
changes = Table(
    "changes",
    metadata,
    Column("seq", Integer, primary_key=True, autoincrement=True),
    Column("library", Text, nullable=False),
    Column("kind", Text, nullable=False),
    Column("doc", Integer, nullable=False),
    Column("revision", Integer, nullable=False),
    Column("ids", BLOB),
    sqlite_autoincrement=True,
)
Index("ix_changes_library", changes.c.library, changes.c.seq)

# How far each projection got; written after the projection's own commit.
watermarks = Table(
    "watermarks",
    metadata,
    Column("library", Text, primary_key=True),
    Column("projection", Text, primary_key=True),
    Column("seq", Integer, nullable=False),
)

jobs = Table(
    "jobs",
    metadata,
    Column("n", Integer, primary_key=True),
    Column("id", Text, nullable=False, unique=True),
    Column("kind", Text, nullable=False),
    Column("state", Text, nullable=False),
    Column("done", Integer, nullable=False),
    Column("total", Integer),
    Column("unit", Text, nullable=False),
    Column("eta_s", Float),
    Column("errors", Text, nullable=False),
    Column("files", Text, nullable=False),
    Column("payload", Text, nullable=False),
    Column("result", Text),
    Column("created_at", Text, nullable=False),
    Column("updated_at", Text, nullable=False),
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
    Column("created_at", Text, nullable=False),
    Column("updated_at", Text, nullable=False),
)
turns = Table(
    "turns",
    metadata,
    Column("n", Integer, primary_key=True),
    Column("conversation", Integer, ForeignKey("conversations.n", ondelete="CASCADE"), nullable=False),
    Column("role", Text, nullable=False),
    Column("content", Text, nullable=False),
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
    Column("state", Text, nullable=False),
    Column("reason", Text, nullable=False),
    sqlite_with_rowid=False,
)
Index("ix_ledger_state", ledger.c.library, ledger.c.source, ledger.c.state, ledger.c.reason)
# Originals that may be unlinked where neither a revision nor an unfinished job refers to them. Written before bytes are kept
# and with the deletion of a document; settled by the next start. Any other original stays.
unlinks = Table(
    "unlinks",
    metadata,
    Column("sha256", Text, primary_key=True),
    Column("recorded_at", Text, nullable=False),
)

# Which folder's sync sent a source key, and with what bytes: only these documents does a sync remove.
sync_claims = Table(
    "sync_claims",
    metadata,
    Column("library", Text, primary_key=True),
    Column("source_key", Text, primary_key=True),
    Column("folder", Text, nullable=False),
    Column("sha256", Text, nullable=False),
    sqlite_with_rowid=False,
)
Index("ix_sync_claims_folder", sync_claims.c.library, sync_claims.c.folder)

# Where a bulk run stands in its source, written with the batch it describes.
checkpoints = Table(
    "checkpoints",
    metadata,
    Column("library", Text, primary_key=True),
    Column("source", Text, primary_key=True),
    Column("position", Text, nullable=False),
    Column("updated_at", Text, nullable=False),
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

# What the built-in test of a model found; by digest, so that a pulled newer version is tested again.
model_tests = Table(
    "model_tests",
    metadata,
    Column("digest", Text, primary_key=True),
    Column("model", Text, nullable=False),
    Column("findings", Text, nullable=False),
    Column("at", Text, nullable=False),
)
