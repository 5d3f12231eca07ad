"""Declare what a check of the catalog asks and how counters are made again."""

from __future__ import annotations

from sqlalchemy import Connection, and_, case, delete, exists, func, insert, or_, select, update

from app.index.catalog.schema import (
    BUILD_SHIFT,
    builds,
    chunks,
    documents,
    libraries,
    revisions,
    type_counts,
    vectors,
)
from app.index.catalog.statements import OF_REVISION, key_of

_COUNTERS = ("documents", "chunks", "embedded", "bytes")
_LIVE = documents.c.state == "live"
_COUNTED = (
    select(documents.c.library, func.count().label("documents"))
    .add_columns(*(func.sum(documents.c[name]).label(name) for name in _COUNTERS[1:]))
    .where(_LIVE)
    .group_by(documents.c.library)
    .subquery()
)
_OF_TYPE = select(func.count()).where(
    _LIVE, documents.c.library == type_counts.c.library, documents.c.type == type_counts.c.type
)
WRONG_COUNTERS = (
    select(libraries.c.library)
    .outerjoin(_COUNTED, _COUNTED.c.library == libraries.c.library)
    .where(or_(*(libraries.c[name] != func.coalesce(_COUNTED.c[name], 0) for name in _COUNTERS)))
    .union(
        select(type_counts.c.library).where(type_counts.c.documents != _OF_TYPE.scalar_subquery())
    )
)
_FOUND, _EMBEDDED = func.count(chunks.c.chunk_id), func.count(vectors.c.key)
WRONG_DOCUMENTS = (
    select(
        documents.c.doc, documents.c.library, _FOUND.label("found"), _EMBEDDED.label("with_vector")
    )
    .join(libraries, libraries.c.library == documents.c.library)
    .outerjoin(chunks, OF_REVISION)
    .outerjoin(vectors, vectors.c.key == key_of(libraries.c.live_build))
    .group_by(documents.c.doc)
    .having(or_(documents.c.chunks != _FOUND, documents.c.embedded != _EMBEDDED))
)
ORPHAN_VECTORS = (
    select(vectors.c.key)
    .outerjoin(chunks, chunks.c.chunk_id == vectors.c.key.bitwise_and((1 << BUILD_SHIFT) - 1))
    .outerjoin(documents, OF_REVISION)
    .outerjoin(builds, builds.c.build == vectors.c.key // (1 << BUILD_SHIFT))
    .where(or_(documents.c.doc.is_(None), builds.c.build.is_(None)))
)
TEXTS = select(documents.c.doc_id, revisions.c.text, revisions.c.characters).join(documents)
_HAS_TEXT = exists().where(
    revisions.c.doc == documents.c.doc, revisions.c.revision == documents.c.revision
)
_WITHOUT_TEXT = select(documents.c.doc_id).where(~_HAS_TEXT)
BAD_SPANS = (
    select(documents.c.doc_id)
    .select_from(chunks)
    .join(documents, documents.c.doc == chunks.c.doc)
    .join(
        revisions, and_(revisions.c.doc == chunks.c.doc, revisions.c.revision == chunks.c.revision)
    )
    .where(
        or_(
            chunks.c.start < 0,
            chunks.c.end <= chunks.c.start,
            chunks.c.end > revisions.c.characters,
        )
    )
    .union_all(_WITHOUT_TEXT)
)
_FIRSTS = (
    select(documents.c.library, documents.c.sha256, func.min(documents.c.doc).label("first"))
    .where(_LIVE)
    .group_by(documents.c.library, documents.c.sha256)
    .subquery()
)
_ORIGINAL = documents.alias()
WRONG_DUPLICATES = (
    select(documents.c.library, documents.c.sha256)
    .join(
        _FIRSTS,
        and_(_FIRSTS.c.library == documents.c.library, _FIRSTS.c.sha256 == documents.c.sha256),
    )
    .join(_ORIGINAL, _ORIGINAL.c.doc == _FIRSTS.c.first)
    .where(
        _LIVE,
        documents.c.duplicate_of.is_distinct_from(
            case((documents.c.doc == _FIRSTS.c.first, None), else_=_ORIGINAL.c.doc_id)
        ),
    )
)


def recount(sql: Connection) -> None:
    """Make every counter from the documents."""
    sql.execute(update(libraries).values(dict.fromkeys(_COUNTERS, 0)))
    counted = {name: _COUNTED.c[name] for name in _COUNTERS}
    sql.execute(update(libraries).values(counted).where(_COUNTED.c.library == libraries.c.library))
    sql.execute(delete(type_counts))
    by_type = (
        select(documents.c.library, documents.c.type, func.count())
        .where(_LIVE)
        .group_by(documents.c.library, documents.c.type)
    )
    sql.execute(insert(type_counts).from_select(["library", "type", "documents"], by_type))
