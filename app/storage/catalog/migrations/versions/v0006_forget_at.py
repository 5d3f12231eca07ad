"""When a deleted conversation is forgotten for good."""

from __future__ import annotations

from alembic import op

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the column; conversations of before are not deleted."""
    op.execute("ALTER TABLE conversations ADD COLUMN forget_at TEXT")
