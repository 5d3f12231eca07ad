"""The corrections of each revision."""

from __future__ import annotations

from alembic import op

revision = "0014"
down_revision = "0013"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the column; nothing was corrected before."""
    text = 'TEXT COLLATE "C"' if op.get_bind().dialect.name == "postgresql" else "TEXT"
    op.execute(f"ALTER TABLE revisions ADD COLUMN corrections {text}")
