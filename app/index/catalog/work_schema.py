"""Declare the tables of what people and jobs do: jobs, conversations, answers, ledgers, models."""

from __future__ import annotations

from sqlalchemy import Column, Float, ForeignKey, Index, Table

from app.index.catalog.columns import Big, Text, metadata, required

jobs = Table(
    "jobs",
    metadata,
    Column("n", Big, primary_key=True),
    Column("id", Text, nullable=False, unique=True),
    *required(Text, "kind", "state"),
    Column("done", Big, nullable=False),
    Column("total", Big),
    Column("unit", Text, nullable=False),
    Column("eta_s", Float),
    *required(Text, "errors", "files", "payload"),
    Column("result", Text),
    *required(Text, "created_at", "updated_at"),
)

conversations = Table(
    "conversations",
    metadata,
    Column("n", Big, primary_key=True),
    Column("id", Text, nullable=False, unique=True),
    Column("title", Text, nullable=False),
    Column("library", Text),
    Column("summary", Text, nullable=False),
    Column("folded", Big, nullable=False),
    *required(Text, "created_at", "updated_at"),
    # When a deleted one is forgotten for good; until then it can be restored.
    Column("forget_at", Text),
)
turns = Table(
    "turns",
    metadata,
    Column("n", Big, primary_key=True),
    Column("conversation", Big, ForeignKey("conversations.n", ondelete="CASCADE"), nullable=False),
    *required(Text, "role", "content"),
    Column("answer_id", Text),
    Column("at", Text, nullable=False),
)
Index("ix_turns_conversation", turns.c.conversation, turns.c.n)
Index("ix_turns_answer", turns.c.answer_id)

answers = Table(
    "answers",
    metadata,
    Column("n", Big, primary_key=True),
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
    Column("answer", Big, ForeignKey("answers.n", ondelete="CASCADE"), primary_key=True),
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
    *required(Text, "state", "reason"),
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
    *required(Text, "folder", "sha256"),
    sqlite_with_rowid=False,
)
Index("ix_sync_claims_folder", sync_claims.c.library, sync_claims.c.folder)

# Where a bulk run stands in its source, written with the batch it describes.
checkpoints = Table(
    "checkpoints",
    metadata,
    Column("library", Text, primary_key=True),
    Column("source", Text, primary_key=True),
    *required(Text, "position", "updated_at"),
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
    *required(Text, "model", "findings", "at"),
)
