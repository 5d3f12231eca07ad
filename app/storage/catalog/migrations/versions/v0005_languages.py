"""The language of each document."""

from __future__ import annotations

from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the column; documents of before are treated as English until they are read again."""
    op.execute("ALTER TABLE documents ADD COLUMN language TEXT DEFAULT '' NOT NULL")
