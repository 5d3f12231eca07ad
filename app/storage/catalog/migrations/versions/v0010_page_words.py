"""The words that OCR recognised on pages."""

from __future__ import annotations

from alembic import op

revision = "0010"
down_revision = "0009"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the table; no page was recognised before."""
    postgres = op.get_bind().dialect.name == "postgresql"
    op.execute(
        f"""
        CREATE TABLE page_words (
            sha256 {'TEXT COLLATE "C"' if postgres else "TEXT"} NOT NULL,
            page {"BIGINT" if postgres else "INTEGER"} NOT NULL,
            words {"BYTEA" if postgres else "BLOB"} NOT NULL,
            PRIMARY KEY (sha256, page)
        )
        """
    )
