"""Count what a library holds, from counters that every write keeps."""

from __future__ import annotations

from sqlalchemy import func, select

from app.core.types import SAMPLE_PREFIX, Library, LibraryCounts
from app.index.catalog.database import Database
from app.index.catalog.live_documents import live
from app.index.catalog.schema import documents, libraries, type_counts

_COUNTERS = (libraries.c.documents, libraries.c.chunks, libraries.c.embedded, libraries.c.bytes)


def count(database: Database, library: Library) -> LibraryCounts:
    """Return counts of live documents and chunks, kept by every write."""
    of = libraries.c.library == library.value
    kinds = (type_counts.c.library == library.value) & (type_counts.c.documents > 0)
    types = (
        select(type_counts.c.type, type_counts.c.documents)
        .where(kinds)
        .order_by(type_counts.c.type)
    )
    samples = live(library, func.count()).where(
        documents.c.doc_id >= SAMPLE_PREFIX, documents.c.doc_id <= f"{SAMPLE_PREFIX}\U0010ffff"
    )
    with database.read() as sql:
        row = sql.execute(select(*_COUNTERS).where(of)).first()
        by_type = dict(sql.execute(types).all())
        n_samples = sql.execute(samples).scalar_one()
    held, chunk_count, embedded, size = row or (0, 0, 0, 0)
    return LibraryCounts(held, chunk_count, embedded, size, by_type, n_samples)
