"""Other titles of a document, which a search by words finds."""

from __future__ import annotations

from alembic import op

revision = "0009"
down_revision = "0008"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the column; the next run of a source fills it."""
    text = 'TEXT COLLATE "C"' if op.get_bind().dialect.name == "postgresql" else "TEXT"
    op.execute(f"ALTER TABLE documents ADD COLUMN other_titles {text} NOT NULL DEFAULT ''")
