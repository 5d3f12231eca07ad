"""The log of deletions, by which job live bytes were accepted, on which documents a turn drew.

Until 0012 a deletion noted for each upload that waited which of its files it keeps out, as JSON in
the table `meta`; those notes are carried over.
"""

from __future__ import annotations

import json

from alembic import op
from sqlalchemy import text

revision = "0013"
down_revision = "0012"
branch_labels = None
depends_on = None

_NOTES = "SELECT key, value, n, payload FROM meta JOIN jobs ON key = 'superseded/' || id ORDER BY n"
_OF_KEPT_ANSWERS = """
    INSERT INTO turn_documents
    SELECT DISTINCT turns.n, answer_documents.library, answer_documents.doc_id FROM turns
    JOIN answers ON answers.answer_id = turns.answer_id
    JOIN answer_documents ON answer_documents.answer = answers.n
    WHERE turns.role = 'assistant'
"""


def upgrade() -> None:
    """Create tables and column; documents of before were accepted before every job.

    Turns whose answer was forgotten before do not say what they drew on.
    """
    sql = op.get_bind()
    postgresql = sql.dialect.name == "postgresql"
    text_, big = ('TEXT COLLATE "C"', "BIGINT") if postgresql else ("TEXT", "INTEGER")
    op.execute(f"ALTER TABLE documents ADD COLUMN accepted {big} DEFAULT '0' NOT NULL")
    op.execute(
        f"""
        CREATE TABLE deletions (
            library {text_} NOT NULL,
            source_key {text_} NOT NULL,
            upto {big} NOT NULL,
            PRIMARY KEY (library, source_key)
        ){"" if postgresql else " WITHOUT ROWID"}
        """
    )
    op.execute(
        f"""
        CREATE TABLE turn_documents (
            turn {big} NOT NULL,
            library {text_} NOT NULL,
            doc_id {text_} NOT NULL,
            PRIMARY KEY (turn, library, doc_id),
            FOREIGN KEY(turn) REFERENCES turns (n) ON DELETE CASCADE
        )
        """
    )
    op.execute("CREATE INDEX ix_turn_documents_doc ON turn_documents (library, doc_id)")
    op.execute(_OF_KEPT_ANSWERS)
    upto = {
        (json.loads(row.payload).get("library", "papers"), source_key): row.n
        for row in sql.execute(text(_NOTES))
        for source_key in json.loads(row.value)
    }
    for (library, source_key), n in upto.items():
        values = {"library": library, "source_key": source_key, "upto": n}
        sql.execute(text("INSERT INTO deletions VALUES (:library, :source_key, :upto)"), values)
    sql.execute(text("DELETE FROM meta WHERE key LIKE 'superseded/%'"))
