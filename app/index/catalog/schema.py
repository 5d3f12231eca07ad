"""Declare the tables of documents and projections; a new store is created from them.

`work_schema` declares what people and jobs do; `migrations/` brings stores of earlier releases
here, and a test compares the two.

Each table's comment says its rule. Internal keys: `doc` is a document's integer key, `chunk_id` is
never used twice.
"""

from __future__ import annotations

from typing import Any

from sqlalchemy import (
    Column,
    ForeignKey,
    Index,
    LargeBinary,
    Table,
    UniqueConstraint,
    text,
)

from app.index.catalog.columns import Big, Text, metadata, required

SCHEMA_VERSION = "0006"
"""Head of migrations/; a store with a version unknown here was written by a newer release and is
refused."""

BUILD_SHIFT = 40
"""vectors.key is `build << 40 | chunk_id`: one integer primary key, range-scannable by build,
room for 10^12 chunks."""


def _where(name: str, condition: str, *of: Column[Any]) -> None:
    """Declare an index over the rows that meet a condition."""
    Index(name, *of, sqlite_where=text(condition), postgresql_where=text(condition))


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
    *required(Big, "documents", "chunks", "embedded"),
    Column("bytes", Big, nullable=False),
    Column("live_build", Big),
    Column("previous_build", Big),
)

# Counters by type.
type_counts = Table(
    "type_counts",
    metadata,
    Column("library", Text, primary_key=True),
    Column("type", Text, primary_key=True),
    Column("documents", Big, nullable=False),
)

# The live revision's facts are denormalised here: lists and joins read one row.
documents = Table(
    "documents",
    metadata,
    Column("doc", Big, primary_key=True, autoincrement=True),
    *required(Text, "library", "doc_id", "source_key"),
    Column("revision", Big, nullable=False),
    *required(Text, "state", "filename", "type", "sha256", "title", "authors", "author_keys"),
    Column("year", Big),
    Column("arxiv_id", Text),
    Column("source_url", Text),
    Column("licence", Text),
    Column("flags", Text, nullable=False),
    *required(Big, "has_original", "characters", "pages"),
    Column("bytes", Big, nullable=False),
    *required(Big, "chunks", "embedded"),
    Column("duplicate_of", Text),
    Column("source_revision", Text),
    *required(Big, "corrected", "links"),
    *required(Text, "search_key", "added_at", "updated_at"),
    Column("purge_at", Text),
    Column("language", Text, nullable=False, server_default=""),
    UniqueConstraint("library", "doc_id", name="uq_documents_doc_id"),
    UniqueConstraint("library", "source_key", name="uq_documents_source_key"),
    sqlite_autoincrement=True,
)
Index("ix_documents_sha256", documents.c.library, documents.c.sha256)
_where("ix_documents_purge", "purge_at IS NOT NULL", documents.c.purge_at)
_PENDING = "state = 'live' AND embedded < chunks"
for _name, _column in (("pending", "doc"), ("longest", "characters"), ("linked", "links")):
    _where(f"ix_documents_{_name}", _PENDING, documents.c.library, documents.c[_column])

# Every text a document ever had, until it is purged: zstd frames with a checksum, and where pages
# begin (JSON).
revisions = Table(
    "revisions",
    metadata,
    Column("rev", Big, primary_key=True),
    Column("doc", Big, ForeignKey("documents.doc", ondelete="CASCADE"), nullable=False),
    Column("revision", Big, nullable=False),
    Column("sha256", Text, nullable=False),
    Column("source_revision", Text),
    *required(Big, "has_original", "characters"),
    Column("pages", Text, nullable=False),
    Column("text", LargeBinary, nullable=False),
    Column("created_at", Text, nullable=False),
    UniqueConstraint("doc", "revision", name="uq_revisions_revision"),
)
_where("ix_revisions_original", "has_original = 1", revisions.c.sha256)

# Spans of a revision; the text is always revisions.text[start:end], never a copy.
chunks = Table(
    "chunks",
    metadata,
    Column("chunk_id", Big, primary_key=True, autoincrement=True),
    Column("doc", Big, ForeignKey("documents.doc", ondelete="CASCADE"), nullable=False),
    *required(Big, "revision", "ordinal", "start", "end"),
    Column("section", Text, nullable=False),
    Column("page", Big),
    sqlite_autoincrement=True,
)
Index("ix_chunks_doc", chunks.c.doc, chunks.c.revision, chunks.c.ordinal)

# What vectors were made with. One live build per library; a re-embedding fills another, whose
# number is in meta under `staged_build/{library}` until it takes over.
builds = Table(
    "builds",
    metadata,
    Column("build", Big, primary_key=True),
    *required(Text, "library", "fingerprint", "fingerprint8", "created_at"),
)

# float16 rows of norm 1, little-endian; only chunks of live revisions have one.
vectors = Table(
    "vectors",
    metadata,
    Column("key", Big, primary_key=True, autoincrement=False),
    Column("vector", LargeBinary, nullable=False),
)

# Codes for late interaction of live chunks: int8 sentence vectors and 128 bits a token
# (app/core/types/codes.py).
passage_codes = Table(
    "passage_codes",
    metadata,
    Column("chunk_id", Big, ForeignKey("chunks.chunk_id", ondelete="CASCADE"), primary_key=True),
    *required(LargeBinary, "sentences", "tokens"),
)

# What projections have to apply, in seq order. `ids` are the chunk ids (int64, little-endian) that
# entered or left the dense ones.
changes = Table(
    "changes",
    metadata,
    Column("seq", Big, primary_key=True, autoincrement=True),
    *required(Text, "library", "kind"),
    *required(Big, "doc", "revision"),
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
