"""The headings of each revision and other titles of a document; `checkpoints`, unused, goes."""

from __future__ import annotations

from alembic import op

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add both columns; reading again fills the first, the next run of a source the second."""
    text = 'TEXT COLLATE "C"' if op.get_bind().dialect.name == "postgresql" else "TEXT"
    op.execute(f"ALTER TABLE revisions ADD COLUMN outline {text}")
    op.execute(f"ALTER TABLE documents ADD COLUMN other_titles {text} NOT NULL DEFAULT ''")
    op.execute("DROP TABLE IF EXISTS checkpoints")
