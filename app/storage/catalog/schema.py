"""Declare the tables of documents and projections; a new store is created from them.

`work_schema` declares what people and jobs do; `migrations/` brings stores of earlier releases
here, and a test compares the two.

Each table's comment says its rule. Internal keys: `doc` is a document's integer key, `chunk_id` is
never used twice.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import Any, TypeVar

from sqlalchemy import (
    BigInteger,
    Column,
    ColumnElement,
    Connection,
    Executable,
    Float,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    Row,
    Table,
    UniqueConstraint,
    and_,
    bindparam,
    literal,
    select,
    text,
)
from sqlalchemy import Text as AnyText
from sqlalchemy.types import TypeEngine

# Share what every table of the catalog is declared with.

metadata = MetaData()

Big = BigInteger().with_variant(Integer(), "sqlite")
"""64 bits everywhere; SQLite's INTEGER is that wide already, and only it can be a rowid."""


Text = AnyText().with_variant(AnyText(collation="C"), "postgresql")
"""Text that sorts and compares by code points everywhere, as SQLite does."""


def required(kind: type[TypeEngine[Any]] | TypeEngine[Any], *names: str) -> list[Column[Any]]:
    """Return columns of one type that hold no NULL."""
    return [Column(name, kind, nullable=False) for name in names]


SCHEMA_VERSION = "0014"
"""Head of migrations/; a store with a version unknown here was written by a newer release and is
refused."""

BUILD_SHIFT = 40
"""vectors.key is `build << 40 | chunk_id`: one integer primary key, range-scannable by build,
room for 10^12 chunks."""


def _where(name: str, condition: str, *of: Column[Any], unique: bool = False) -> None:
    """Declare an index over the rows that meet a condition."""
    rows = text(condition)
    Index(name, *of, unique=unique, sqlite_where=rows, postgresql_where=rows)


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
    # Under which else it is known, one a line: what redirects to it in an encyclopedia.
    Column("other_titles", Text, nullable=False, server_default=""),
    # JSON: a list, and an object of values by key.
    Column("tags", Text, nullable=False, server_default="[]"),
    Column("metadata", Text, nullable=False, server_default="{}"),
    # The number of the job that accepted the live bytes; of no job: the last one then.
    Column("accepted", Big, nullable=False, server_default="0"),
    UniqueConstraint("library", "doc_id", name="uq_documents_doc_id"),
    UniqueConstraint("library", "source_key", name="uq_documents_source_key"),
    sqlite_autoincrement=True,
)
Index("ix_documents_sha256", documents.c.library, documents.c.sha256)
_where("ix_documents_purge", "purge_at IS NOT NULL", documents.c.purge_at)
_PENDING = "state = 'live' AND embedded < chunks"
for _name, _column in (("pending", "doc"), ("longest", "characters"), ("linked", "links")):
    _where(f"ix_documents_{_name}", _PENDING, documents.c.library, documents.c[_column])

# The log of deletions: a job up to this number does not write the document. An empty source key is
# the whole library. Kept while such a job is unfinished.
deletions = Table(
    "deletions",
    metadata,
    Column("library", Text, primary_key=True),
    Column("source_key", Text, primary_key=True),
    Column("upto", Big, nullable=False),
    sqlite_with_rowid=False,
)

# The tags (under the empty key) and own metadata of documents, as filters compare them. `kind` is
# that of all values under its key; `number` orders numbers and days.
labels = Table(
    "labels",
    metadata,
    Column("doc", Big, ForeignKey("documents.doc", ondelete="CASCADE"), primary_key=True),
    Column("key", Text, primary_key=True),
    Column("value", Text, primary_key=True),
    *required(Text, "library", "kind"),
    Column("number", Float),
)
Index("ix_labels_value", labels.c.key, labels.c.value, labels.c.library, labels.c.doc)
_where(
    "ix_labels_number",
    "number IS NOT NULL",
    labels.c.key,
    labels.c.library,
    labels.c.number,
    labels.c.doc,
)

# Every text a document ever had, until it is purged: zstd frames with a checksum, and where pages
# and headings stand (JSON; `outline` is NULL without headings). `corrections` (JSON; NULL without
# any) made the text of what was read.
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
    Column("outline", Text),
    Column("corrections", Text),
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
# (app/core/documents.py).
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


# Declare the tables of what people and jobs do: jobs, conversations, answers, ledgers, models.

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
    # Jobs with an equal key never run at once; empty for none.
    Column("mark", Text, key="exclusive_key", nullable=False, server_default=""),
    # The run that has the job, when it was last heard of, and what it is asked for: pause, cancel.
    Column("worker", Text),
    Column("heard_at", Float),
    Column("stop", Text),
    # Seconds since 1970: a job that is tried again waits until then. How often it was put back.
    Column("not_before", Float),
    Column("attempts", Big, nullable=False, server_default="0"),
)
Index("ix_jobs_state", jobs.c.state, jobs.c.n)
Index("ix_jobs_worker", jobs.c.worker)
_where("ux_jobs_mark", "state = 'running' AND mark <> ''", jobs.c.exclusive_key, unique=True)

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
    # The answer id of the last exchange of the branch that is shown; empty before the first one,
    # NULL: that of the last turn.
    Column("tip", Text),
)
turns = Table(
    "turns",
    metadata,
    Column("n", Big, primary_key=True),
    Column("conversation", Big, ForeignKey("conversations.n", ondelete="CASCADE"), nullable=False),
    *required(Text, "role", "content"),
    Column("answer_id", Text),
    Column("at", Text, nullable=False),
    # The answer id of the exchange that it follows; empty for a first one, NULL: the one before.
    Column("parent", Text),
)
Index("ix_turns_conversation", turns.c.conversation, turns.c.n)
Index("ix_turns_answer", turns.c.answer_id)

# Which documents a turn drew on: its stored answer may be forgotten before they are deleted.
turn_documents = Table(
    "turn_documents",
    metadata,
    Column("turn", Big, ForeignKey("turns.n", ondelete="CASCADE"), primary_key=True),
    Column("library", Text, primary_key=True),
    Column("doc_id", Text, primary_key=True),
)
Index("ix_turn_documents_doc", turn_documents.c.library, turn_documents.c.doc_id)

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

# What OCR recognised on pages of an original: JSON, in a zstd frame. It goes with the original.
page_words = Table(
    "page_words",
    metadata,
    Column("sha256", Text, primary_key=True),
    Column("page", Big, primary_key=True, autoincrement=False),
    Column("words", LargeBinary, nullable=False),
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

# API keys by name: SHA-256 of each, and JSON lists of its scopes and libraries.
keys = Table(
    "keys",
    metadata,
    Column("name", Text, primary_key=True),
    Column("digest", Text, nullable=False, unique=True),
    *required(Text, "scopes", "libraries", "created_at"),
    Column("used_at", Text),
)

# Copies of answers that a link opens, by the SHA-256 of its token.
shares = Table(
    "shares",
    metadata,
    Column("id", Text, primary_key=True),
    Column("digest", Text, nullable=False, unique=True),
    *required(Text, "answer_id", "record", "created_at"),
)


# Share conditions and writes between stores, in Core: for every database.

T = TypeVar("T")

PIECE = 500
"""Values of one `IN`: some hundred bound values are under the limit of every database."""

OF_REVISION = and_(documents.c.doc == chunks.c.doc, documents.c.revision == chunks.c.revision)
"""A chunk is of its document's last revision."""
IS_LIVE = and_(OF_REVISION, documents.c.state == "live")
"""The same, and the document is not deleted."""
LAST_REVISION = and_(
    revisions.c.doc == documents.c.doc, revisions.c.revision == documents.c.revision
)
"""A text is its document's last."""

_VALUE = select(meta.c.value).where(meta.c.key == bindparam("wanted"))


def pieces(values: Sequence[T], size: int = PIECE) -> Iterator[Sequence[T]]:
    """Yield values in order, at most `size` at a time."""
    for start in range(0, len(values), size):
        yield values[start : start + size]


def rows_of(
    sql: Connection, query: Executable, name: str, values: Sequence[object], **fixed: object
) -> Iterator[Row[*tuple[Any, ...]]]:
    """Yield a query's rows for any number of values of its parameter `name`."""
    for some in pieces(values):
        yield from sql.execute(query, {name: some, **fixed})


def key_of(build: int | ColumnElement[Any]) -> ColumnElement[int]:
    """Return the key of a chunk's vector in a build, as an expression on `chunks`."""
    if isinstance(build, int):
        return literal(build << BUILD_SHIFT, BigInteger) + chunks.c.chunk_id
    return build * literal(1 << BUILD_SHIFT, BigInteger) + chunks.c.chunk_id


def put(sql: Connection, table: Table, rows: Sequence[Mapping[str, object]]) -> None:
    """Insert rows, which have the same columns; one with the primary key of a row replaces it."""
    if rows:
        statement = _on_conflict(sql.dialect.name, table, frozenset(rows[0]), adds=False)
        sql.execute(statement, rows)


def add(sql: Connection, table: Table, row: Mapping[str, object]) -> None:
    """Add numbers to the row with the same primary key, or insert them."""
    sql.execute(_on_conflict(sql.dialect.name, table, frozenset(row), adds=True), row)


@cache
def _on_conflict(
    dialect: str, table: Table, columns: frozenset[str], *, adds: bool
) -> Any:  # each dialect has an Insert of its own
    insert = importlib.import_module(f"sqlalchemy.dialects.{dialect}").insert(table)
    changed = [c for c in table.c if not c.primary_key and c.name in columns]
    new = {
        c.name: c + insert.excluded[c.name] if adds else insert.excluded[c.name] for c in changed
    }
    return insert.on_conflict_do_update(index_elements=list(table.primary_key), set_=new)


def meta_value(sql: Connection, key: str) -> str | None:
    """Return a value of the table `meta`; None where it has none."""
    return sql.execute(_VALUE, {"wanted": key}).scalar()


def put_meta(sql: Connection, key: str, value: str) -> None:
    """Keep a value in the table `meta`, in the place of any before."""
    put(sql, meta, [{"key": key, "value": value}])
