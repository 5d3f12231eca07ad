"""Which originals may be unlinked, and which documents a synced folder sent."""

from __future__ import annotations

from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None

STATEMENTS = (
    """
    CREATE TABLE unlinks (
        sha256 TEXT NOT NULL,
        recorded_at TEXT NOT NULL,
        PRIMARY KEY (sha256)
    )
    """,
    """
    CREATE TABLE sync_claims (
        library TEXT NOT NULL,
        source_key TEXT NOT NULL,
        folder TEXT NOT NULL,
        sha256 TEXT NOT NULL,
        PRIMARY KEY (library, source_key)
    ) WITHOUT ROWID
    """,
    "CREATE INDEX ix_sync_claims_folder ON sync_claims (library, folder)",
)


def upgrade() -> None:
    """Create the tables."""
    for statement in STATEMENTS:
        op.execute(statement)
