"""Codes for late interaction."""

from __future__ import annotations

from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the table of codes; a job fills it."""
    op.execute(
        """
        CREATE TABLE passage_codes (
            chunk_id INTEGER NOT NULL,
            sentences BLOB NOT NULL,
            tokens BLOB NOT NULL,
            PRIMARY KEY (chunk_id),
            FOREIGN KEY(chunk_id) REFERENCES chunks (chunk_id) ON DELETE CASCADE
        )
        """
    )
