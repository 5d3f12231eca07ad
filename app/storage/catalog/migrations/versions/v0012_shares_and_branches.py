"""Shared answers; branches of conversations."""

from __future__ import annotations

from alembic import op

revision = "0012"
down_revision = "0011"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Create the table, and the columns; a conversation of before is one line of turns."""
    text = 'TEXT COLLATE "C"' if op.get_bind().dialect.name == "postgresql" else "TEXT"
    op.execute(
        f"""
        CREATE TABLE shares (
            id {text} NOT NULL,
            digest {text} NOT NULL,
            answer_id {text} NOT NULL,
            record {text} NOT NULL,
            created_at {text} NOT NULL,
            PRIMARY KEY (id),
            UNIQUE (digest)
        )
        """
    )
    op.execute(f"ALTER TABLE turns ADD COLUMN parent {text}")
    op.execute(f"ALTER TABLE conversations ADD COLUMN tip {text}")
