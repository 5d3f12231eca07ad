"""Add the table of facts about models."""

from __future__ import annotations

from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None

STATEMENTS = (
    """
    CREATE TABLE model_speeds (
        host TEXT NOT NULL,
        model TEXT NOT NULL,
        reading FLOAT NOT NULL,
        writing FLOAT,
        updated_at TEXT NOT NULL,
        PRIMARY KEY (host, model)
    )
    """,
    """
    CREATE TABLE model_tests (
        digest TEXT NOT NULL,
        model TEXT NOT NULL,
        findings TEXT NOT NULL,
        at TEXT NOT NULL,
        PRIMARY KEY (digest)
    )
    """,
)


def upgrade() -> None:
    """Create the two tables."""
    for statement in STATEMENTS:
        op.execute(statement)
