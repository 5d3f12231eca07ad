"""Check and repair the catalog: counters, duplicates, vectors, texts, originals."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Literal

from sqlalchemy import (
    Connection,
    and_,
    bindparam,
    case,
    delete,
    exists,
    func,
    insert,
    or_,
    select,
    update,
)

from app.core.errors import IndexDamaged
from app.core.types import Library
from app.storage.catalog.changes import ChangeLog
from app.storage.catalog.database import Database
from app.storage.catalog.rows import repoint_duplicates
from app.storage.catalog.schema import (
    BUILD_SHIFT,
    OF_REVISION,
    builds,
    chunks,
    documents,
    key_of,
    libraries,
    revisions,
    type_counts,
    vectors,
)
from app.storage.catalog.state import ORIGINALS, Unlinks
from app.storage.catalog.texts import TextCodec
from app.storage.catalog.vectors import VectorCheck
from app.storage.files.originals import Originals

# Define what a check of the store finds.

FaultCode = Literal[
    "catalog_pages",
    "catalog_text",
    "catalog_spans",
    "catalog_counters",
    "catalog_document_counts",
    "catalog_duplicates",
    "catalog_vectors",
    "catalog_orphan_vectors",
    "catalog_watermarks",
    "catalog_older",
    "lexical_files",
    "lexical_missing",
    "lexical_phantom",
    "lexical_content",
    "vector_cache",
    "vectors_store",
    "vectors_missing",
    "vectors_phantom",
    "original_missing",
    "original_damaged",
    "original_orphan",
    "original_unknown",
    "leftovers",
]

BEYOND_REPAIR: frozenset[FaultCode] = frozenset({"catalog_pages", "catalog_text", "catalog_spans"})
"""Faults of the truth itself: a backup or the source document is needed."""


@dataclass(frozen=True, slots=True)
class Fault:
    """One kind of fault in one library (or in all, when `library` is empty)."""

    code: FaultCode
    library: str
    count: int
    detail: str
    """An example, and the cure where the repair cannot help."""
    repaired: bool = False
    at_start: bool = False
    """Whether the next start repairs it, as a process that was killed leaves it."""


@dataclass(frozen=True, slots=True)
class FsckReport:
    """The outcome of a check, JSON-able by `record`."""

    started_at: str
    seconds: float
    repair: bool
    faults: tuple[Fault, ...]
    checked: dict[str, int]
    """How many of each kind of thing were looked at."""

    @property
    def sound(self) -> bool:
        """Return whether no fault is left but those that the next start repairs."""
        return not self._left

    @property
    def exit_code(self) -> int:
        """Return 0 sound, 7 repairable faults, 8 faults that need a backup.

        No other failure of the command line has these codes.
        """
        if not self._left:
            return 0
        return 8 if any(fault.code in BEYOND_REPAIR for fault in self._left) else 7

    @property
    def _left(self) -> list[Fault]:
        return [fault for fault in self.faults if not fault.repaired and not fault.at_start]

    def record(self) -> dict[str, object]:
        """Return the report as JSON values."""
        return {
            **asdict(self),
            "faults": [asdict(fault) for fault in self.faults],
            "sound": self.sound,
            "exit_code": self.exit_code,
        }


# Declare what a check of the catalog asks and how counters are made again.

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


@dataclass(frozen=True, slots=True)
class CatalogCheck:
    """Checks catalog and originals; repairs what follows from the rest if asked."""

    database: Database
    originals: Originals
    unlinks: Unlinks
    vectors: VectorCheck
    log: ChangeLog

    def run(self, *, repair: bool, checked: dict[str, int]) -> Iterator[Fault]:
        """Yield faults; `checked` is filled with how many things were looked at."""
        pages = self.database.check()
        if pages:
            yield Fault(
                "catalog_pages",
                "",
                len(pages),
                f"{pages[0]}; stop the server and run: documind restore BACKUP",
            )
            return
        yield from self._texts(checked)
        yield from self._vectors(repair=repair, checked=checked)
        yield from self._counts(repair=repair)
        yield from self._originals(repair=repair, checked=checked)

    def _texts(self, checked: dict[str, int]) -> Iterator[Fault]:
        codec = TextCodec()
        damaged: list[str] = []
        with self.database.read() as sql:
            for n, (doc_id, frame, characters) in enumerate(sql.execute(TEXTS), 1):
                checked["texts"] = n
                try:
                    if len(codec.unpack(frame)) != characters:
                        damaged.append(doc_id)
                except IndexDamaged:
                    damaged.append(doc_id)
            spans = sql.execute(BAD_SPANS).all()
            checked["chunks"] = sql.execute(select(func.count()).select_from(chunks)).scalar_one()
        if damaged:
            yield Fault(
                "catalog_text",
                "",
                len(damaged),
                f"the text of document {damaged[0]}; ingest it again or restore a backup",
            )
        if spans:
            yield Fault(
                "catalog_spans",
                "",
                len(spans),
                f"a chunk of document {spans[0].doc_id}; ingest it again or restore a backup",
            )

    def _vectors(self, *, repair: bool, checked: dict[str, int]) -> Iterator[Fault]:
        with self.database.read() as sql:
            checked["vectors"] = sql.execute(select(func.count()).select_from(vectors)).scalar_one()
            orphans = list(sql.execute(ORPHAN_VECTORS).scalars())
            last = self.log.last()
        unusable = self.vectors.find()
        if orphans:
            yield self._delete_vectors(
                "catalog_orphan_vectors",
                orphans,
                "vectors of chunks that are not live",
                repair=repair,
            )
        if unusable:
            if repair:
                self.vectors.delete(unusable)
            detail = "vectors of a wrong size or not finite; they are embedded again"
            yield Fault("catalog_vectors", "", len(unusable), detail, repair)
        for mark, seq in self.log.marks().items():
            if seq > last:
                library, projection = mark.split("/")
                if repair:
                    # the table holds projections only
                    self.log.set_mark(Library(library), projection, 0)  # type: ignore[arg-type]
                yield Fault(
                    "catalog_watermarks",
                    library,
                    1,
                    f"{projection} claims change {seq} of {last}",
                    repair,
                )

    def _delete_vectors(
        self, code: FaultCode, keys: list[int], detail: str, *, repair: bool
    ) -> Fault:
        if repair:
            with self.database.write("fsck") as sql:
                sql.execute(
                    delete(vectors).where(vectors.c.key == bindparam("of")),
                    [{"of": key} for key in keys],
                )
        return Fault(code, "", len(keys), detail, repair)

    def _counts(self, *, repair: bool) -> Iterator[Fault]:
        # Documents first: the libraries' counters are made from them.
        wrong = self.database.rows(WRONG_DOCUMENTS)
        if wrong:
            if repair:
                right = update(documents).where(documents.c.doc == bindparam("of"))
                right = right.values(chunks=bindparam("found"), embedded=bindparam("with_vector"))
                with self.database.write("fsck") as sql:
                    sql.execute(
                        right,
                        [
                            {"of": row.doc, "found": row.found, "with_vector": row.with_vector}
                            for row in wrong
                        ],
                    )
            yield Fault(
                "catalog_document_counts",
                wrong[0].library,
                len(wrong),
                f"document {wrong[0].doc}",
                repair,
            )
        counters = [row.library for row in self.database.rows(WRONG_COUNTERS)]
        duplicates = self.database.rows(WRONG_DUPLICATES)
        if counters:
            if repair:
                with self.database.write("fsck") as sql:
                    recount(sql)
            yield Fault(
                "catalog_counters",
                counters[0],
                len(counters),
                "counts of documents, chunks or vectors",
                repair,
            )
        if duplicates:
            if repair:
                with self.database.write("fsck") as sql:
                    for library in {row[0] for row in duplicates}:
                        repoint_duplicates(
                            sql,
                            Library(library),
                            {row[1] for row in duplicates if row[0] == library},
                        )
            yield Fault(
                "catalog_duplicates",
                duplicates[0][0],
                len(duplicates),
                f"content {duplicates[0][1][:12]}",
                repair,
            )

    def _originals(self, *, repair: bool, checked: dict[str, int]) -> Iterator[Fault]:
        names = {row.sha256 for row in self.database.rows(ORIGINALS)}
        checked["originals"] = len(names)
        missing = [name for name in sorted(names) if not self.originals.exists(name)]
        damaged = [
            name for name in sorted(names) if name not in missing and self.originals.damaged(name)
        ]
        lost: dict[FaultCode, list[str]] = {
            "original_missing": missing,
            "original_damaged": damaged,
        }
        for code, files in lost.items():
            if files:
                if repair:
                    self._delete_originals(files)
                yield Fault(
                    code,
                    "",
                    len(files),
                    f"{files[0]}.bin; the text stays, upload the file again to have it",
                    repair,
                )
        orphans = sorted(self.unlinks.due())
        if orphans:
            if repair:
                self.unlinks.settle()
            yield Fault(
                "original_orphan",
                "",
                len(orphans),
                f"{orphans[0]}.bin was deleted or never accepted",
                repair,
                at_start=True,
            )

    def _delete_originals(self, names: list[str]) -> None:
        with self.database.write("fsck") as sql:
            for table in (documents, revisions):
                disowned = (
                    update(table).where(table.c.sha256 == bindparam("name")).values(has_original=0)
                )
                sql.execute(disowned, [{"name": name} for name in names])
        for name in names:
            self.originals.delete(name)
