"""API keys."""

from __future__ import annotations

from alembic import op

revision = "0011"
down_revision = "0010"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Create the table; without a key everything is as before."""
    text = 'TEXT COLLATE "C"' if op.get_bind().dialect.name == "postgresql" else "TEXT"
    op.execute(
        f"""
        CREATE TABLE keys (
            name {text} NOT NULL,
            digest {text} NOT NULL,
            scopes {text} NOT NULL,
            libraries {text} NOT NULL,
            created_at {text} NOT NULL,
            used_at {text},
            PRIMARY KEY (name),
            UNIQUE (digest)
        )
        """
    )
