"""Tags and own metadata of documents."""

from __future__ import annotations

from alembic import op

revision = "0009"
down_revision = "0008"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the columns and the table that filters ask; documents of before have none."""
    postgres = op.get_bind().dialect.name == "postgresql"
    text = 'TEXT COLLATE "C"' if postgres else "TEXT"
    op.execute(f"ALTER TABLE documents ADD COLUMN tags {text} NOT NULL DEFAULT '[]'")
    op.execute(f"ALTER TABLE documents ADD COLUMN metadata {text} NOT NULL DEFAULT '{{}}'")
    op.execute(
        f"""
        CREATE TABLE labels (
            doc {"BIGINT" if postgres else "INTEGER"} NOT NULL,
            key {text} NOT NULL,
            value {text} NOT NULL,
            library {text} NOT NULL,
            kind {text} NOT NULL,
            number FLOAT,
            PRIMARY KEY (doc, key, value),
            FOREIGN KEY(doc) REFERENCES documents (doc) ON DELETE CASCADE
        )
        """
    )
    op.execute("CREATE INDEX ix_labels_value ON labels (key, value, library, doc)")
    op.execute(
        "CREATE INDEX ix_labels_number ON labels (key, library, number, doc)"
        " WHERE number IS NOT NULL"
    )
