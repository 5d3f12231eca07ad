"""The first schema."""

from __future__ import annotations

from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

STATEMENTS = (
    """
    CREATE TABLE answers (
        n INTEGER NOT NULL,
        answer_id TEXT NOT NULL,
        record TEXT NOT NULL,
        feedback TEXT,
        created_at TEXT NOT NULL,
        PRIMARY KEY (n),
        UNIQUE (answer_id)
    )
    """,
    "CREATE INDEX ix_answers_created_at ON answers (created_at)",
    """
    CREATE TABLE builds (
        build INTEGER NOT NULL,
        library TEXT NOT NULL,
        fingerprint TEXT NOT NULL,
        fingerprint8 TEXT NOT NULL,
        created_at TEXT NOT NULL,
        PRIMARY KEY (build)
    )
    """,
    """
    CREATE TABLE changes (
        seq INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
        library TEXT NOT NULL,
        kind TEXT NOT NULL,
        doc INTEGER NOT NULL,
        revision INTEGER NOT NULL,
        ids BLOB
    )
    """,
    "CREATE INDEX ix_changes_library ON changes (library, seq)",
    """
    CREATE TABLE checkpoints (
        library TEXT NOT NULL,
        source TEXT NOT NULL,
        position TEXT NOT NULL,
        updated_at TEXT NOT NULL,
        PRIMARY KEY (library, source)
    )
    """,
    """
    CREATE TABLE conversations (
        n INTEGER NOT NULL,
        id TEXT NOT NULL,
        title TEXT NOT NULL,
        library TEXT,
        summary TEXT NOT NULL,
        folded INTEGER NOT NULL,
        created_at TEXT NOT NULL,
        updated_at TEXT NOT NULL,
        PRIMARY KEY (n),
        UNIQUE (id)
    )
    """,
    """
    CREATE TABLE documents (
        doc INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
        library TEXT NOT NULL,
        doc_id TEXT NOT NULL,
        source_key TEXT NOT NULL,
        revision INTEGER NOT NULL,
        state TEXT NOT NULL,
        filename TEXT NOT NULL,
        type TEXT NOT NULL,
        sha256 TEXT NOT NULL,
        title TEXT NOT NULL,
        authors TEXT NOT NULL,
        author_keys TEXT NOT NULL,
        year INTEGER,
        arxiv_id TEXT,
        source_url TEXT,
        licence TEXT,
        flags TEXT NOT NULL,
        has_original INTEGER NOT NULL,
        characters INTEGER NOT NULL,
        pages INTEGER NOT NULL,
        bytes INTEGER NOT NULL,
        chunks INTEGER NOT NULL,
        embedded INTEGER NOT NULL,
        duplicate_of TEXT,
        source_revision TEXT,
        corrected INTEGER NOT NULL,
        links INTEGER NOT NULL,
        search_key TEXT NOT NULL,
        added_at TEXT NOT NULL,
        updated_at TEXT NOT NULL,
        purge_at TEXT,
        CONSTRAINT uq_documents_doc_id UNIQUE (library, doc_id),
        CONSTRAINT uq_documents_source_key UNIQUE (library, source_key)
    )
    """,
    "CREATE INDEX ix_documents_linked ON documents (library, links) WHERE state = 'live' AND embedded < chunks",
    "CREATE INDEX ix_documents_longest ON documents (library, characters) WHERE state = 'live' AND embedded < chunks",
    "CREATE INDEX ix_documents_pending ON documents (library, doc) WHERE state = 'live' AND embedded < chunks",
    "CREATE INDEX ix_documents_purge ON documents (purge_at) WHERE purge_at IS NOT NULL",
    "CREATE INDEX ix_documents_sha256 ON documents (library, sha256)",
    """
    CREATE TABLE jobs (
        n INTEGER NOT NULL,
        id TEXT NOT NULL,
        kind TEXT NOT NULL,
        state TEXT NOT NULL,
        done INTEGER NOT NULL,
        total INTEGER,
        unit TEXT NOT NULL,
        eta_s FLOAT,
        errors TEXT NOT NULL,
        files TEXT NOT NULL,
        payload TEXT NOT NULL,
        result TEXT,
        created_at TEXT NOT NULL,
        updated_at TEXT NOT NULL,
        PRIMARY KEY (n),
        UNIQUE (id)
    )
    """,
    """
    CREATE TABLE ledger (
        library TEXT NOT NULL,
        source TEXT NOT NULL,
        article TEXT NOT NULL,
        revision TEXT,
        state TEXT NOT NULL,
        reason TEXT NOT NULL,
        PRIMARY KEY (library, source, article)
    )
     WITHOUT ROWID
    """,
    "CREATE INDEX ix_ledger_state ON ledger (library, source, state, reason)",
    """
    CREATE TABLE libraries (
        library TEXT NOT NULL,
        documents INTEGER NOT NULL,
        chunks INTEGER NOT NULL,
        embedded INTEGER NOT NULL,
        bytes INTEGER NOT NULL,
        live_build INTEGER,
        previous_build INTEGER,
        PRIMARY KEY (library)
    )
    """,
    """
    CREATE TABLE meta (
        "key" TEXT NOT NULL,
        value TEXT NOT NULL,
        PRIMARY KEY ("key")
    )
    """,
    """
    CREATE TABLE type_counts (
        library TEXT NOT NULL,
        type TEXT NOT NULL,
        documents INTEGER NOT NULL,
        PRIMARY KEY (library, type)
    )
    """,
    """
    CREATE TABLE vectors (
        "key" INTEGER NOT NULL,
        vector BLOB NOT NULL,
        PRIMARY KEY ("key")
    )
    """,
    """
    CREATE TABLE watermarks (
        library TEXT NOT NULL,
        projection TEXT NOT NULL,
        seq INTEGER NOT NULL,
        PRIMARY KEY (library, projection)
    )
    """,
    """
    CREATE TABLE answer_documents (
        answer INTEGER NOT NULL,
        library TEXT NOT NULL,
        doc_id TEXT NOT NULL,
        PRIMARY KEY (answer, library, doc_id),
        FOREIGN KEY(answer) REFERENCES answers (n) ON DELETE CASCADE
    )
    """,
    "CREATE INDEX ix_answer_documents_doc ON answer_documents (library, doc_id)",
    """
    CREATE TABLE chunks (
        chunk_id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
        doc INTEGER NOT NULL,
        revision INTEGER NOT NULL,
        ordinal INTEGER NOT NULL,
        start INTEGER NOT NULL,
        "end" INTEGER NOT NULL,
        section TEXT NOT NULL,
        page INTEGER,
        FOREIGN KEY(doc) REFERENCES documents (doc) ON DELETE CASCADE
    )
    """,
    "CREATE INDEX ix_chunks_doc ON chunks (doc, revision, ordinal)",
    """
    CREATE TABLE revisions (
        rev INTEGER NOT NULL,
        doc INTEGER NOT NULL,
        revision INTEGER NOT NULL,
        sha256 TEXT NOT NULL,
        source_revision TEXT,
        has_original INTEGER NOT NULL,
        characters INTEGER NOT NULL,
        pages TEXT NOT NULL,
        text BLOB NOT NULL,
        created_at TEXT NOT NULL,
        PRIMARY KEY (rev),
        CONSTRAINT uq_revisions_revision UNIQUE (doc, revision),
        FOREIGN KEY(doc) REFERENCES documents (doc) ON DELETE CASCADE
    )
    """,
    "CREATE INDEX ix_revisions_original ON revisions (sha256) WHERE has_original = 1",
    """
    CREATE TABLE turns (
        n INTEGER NOT NULL,
        conversation INTEGER NOT NULL,
        role TEXT NOT NULL,
        content TEXT NOT NULL,
        answer_id TEXT,
        at TEXT NOT NULL,
        PRIMARY KEY (n),
        FOREIGN KEY(conversation) REFERENCES conversations (n) ON DELETE CASCADE
    )
    """,
    "CREATE INDEX ix_turns_answer ON turns (answer_id)",
    "CREATE INDEX ix_turns_conversation ON turns (conversation, n)",
)


def upgrade() -> None:
    """Create every table."""
    for statement in STATEMENTS:
        op.execute(statement)


def downgrade() -> None:
    """Refuse: there is nothing before the first schema."""
    raise NotImplementedError("0001 is the first schema")
