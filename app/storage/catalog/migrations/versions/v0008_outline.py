"""The headings of each revision; the table of checkpoints, which nothing wrote, goes."""

from __future__ import annotations

from alembic import op

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the column; documents of before have no headings until they are read again."""
    text = 'TEXT COLLATE "C"' if op.get_bind().dialect.name == "postgresql" else "TEXT"
    op.execute(f"ALTER TABLE revisions ADD COLUMN outline {text}")
    op.execute("DROP TABLE IF EXISTS checkpoints")
