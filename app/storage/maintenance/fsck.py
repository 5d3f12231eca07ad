"""Check the whole store against the catalog, and repair what can be repaired."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import Any, Literal, cast

from sqlalchemy import (
    Executable,
    Row,
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

from app.core.errors import IndexDamaged, StorageError
from app.core.types import Library
from app.storage.catalog.changes import Projection
from app.storage.catalog.rows import repoint_duplicates
from app.storage.catalog.schema import (
    BUILD_SHIFT,
    LAST_REVISION,
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
from app.storage.catalog.texts import unpack_text
from app.storage.catalog.uploads import ORIGINALS
from app.storage.catalog.vectors import delete_unusable, unusable_vectors
from app.storage.files.durable import BROKEN_MARK, utc_now
from app.storage.maintenance.parts import Parts
from app.storage.maintenance.start import note_change, seen_change

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
_WITHOUT_TEXT = select(documents.c.doc_id).where(~exists().where(LAST_REVISION))
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


Repair = Callable[[], object]
Found = Iterator[tuple[Fault, Repair | None]]
"""Faults, each with what repairs it, if anything does; faults of one repair name the same."""

Recover = Callable[[Sequence[str]], Mapping[str, str]]
"""Given the SHA-256 of originals in no document, makes an entry for each; returns the reason by
SHA-256 where it could not."""

CONTENT_SAMPLE = 200
"""Chunks per library that are asked for their own words."""


@dataclass(frozen=True)
class Fsck(Parts):
    """All checks of a store; a repair needs exclusive use."""

    heals: bool
    """Whether what a failed write left to the indexes is applied before they are checked."""

    def run(self, *, repair: bool = False, recover: Recover | None = None) -> FsckReport:
        """Check everything; with `repair`, fix projections and counters.

        Projections from the catalog, counters from the rows. A check is repaired before the next
        one looks; the catalog comes first, because what is wrong there would mislead the rest.

        Args:
            repair: Whether to repair.
            recover: Makes an entry for each original that the catalog does not know; without it
                they are reported only.
        """
        started, clock = utc_now(), time.monotonic()
        checked: dict[str, int] = {}
        faults: list[Fault] = []

        def check(found: Found) -> None:
            several = list(found)
            if repair:
                for mend in dict.fromkeys(mend for _, mend in several if mend):
                    mend()
            faults.extend(
                replace(fault, repaired=True) if repair and mend else fault
                for fault, mend in several
            )

        def report() -> FsckReport:
            seconds = round(time.monotonic() - clock, 3)
            return FsckReport(started, seconds, repair, tuple(faults), checked)

        with self.projector.writing():
            self.projector.wait_until_idle()
            check(self._pages())
            if faults:
                return report()
            for words in self.projector.words.values() if self.heals else ():
                with suppress(StorageError):  # what is missing is told below
                    words.catch_up()
            check(self._texts(checked))
            check(self._vectors(checked))
            # Documents first: the libraries' counters are made from them.
            check(self._document_counts())
            check(self._counters())
            check(self._originals(checked))
            check(self._orphans())
            check(self._foreign())
            texts_hold = not any(fault.code in BEYOND_REPAIR for fault in faults)
            for library in Library:
                if texts_hold:
                    check(self._lexical(library, checked))
                check(self._cache(library))
            check(self._stores())
        # Without the write lock: reading files takes its time.
        faults += self._unknown(recover if repair else None)
        return report()

    # --- the catalog

    def _pages(self) -> Found:
        if pages := self.database.check():
            detail = f"{pages[0]}; stop the server and run: documind restore BACKUP"
            yield Fault("catalog_pages", "", len(pages), detail), None

    def _texts(self, checked: dict[str, int]) -> Found:
        damaged: list[str] = []
        with self.database.read() as sql:
            for n, (doc_id, frame, characters) in enumerate(sql.execute(TEXTS), 1):
                checked["texts"] = n
                try:
                    if len(unpack_text(frame)) != characters:
                        damaged.append(doc_id)
                except IndexDamaged:
                    damaged.append(doc_id)
            spans = sql.execute(BAD_SPANS).all()
            checked["chunks"] = sql.execute(select(func.count()).select_from(chunks)).scalar_one()
        cure = "ingest it again or restore a backup"
        if damaged:
            detail = f"the text of document {damaged[0]}; {cure}"
            yield Fault("catalog_text", "", len(damaged), detail), None
        if spans:
            detail = f"a chunk of document {spans[0].doc_id}; {cure}"
            yield Fault("catalog_spans", "", len(spans), detail), None

    def _vectors(self, checked: dict[str, int]) -> Found:
        with self.database.read() as sql:
            checked["vectors"] = sql.execute(select(func.count()).select_from(vectors)).scalar_one()
            orphans = list(sql.execute(ORPHAN_VECTORS).scalars())
        unusable = unusable_vectors(self.database)
        if orphans:
            detail = "vectors of chunks that are not live"
            gone = delete(vectors).where(vectors.c.key == bindparam("of"))
            fault = Fault("catalog_orphan_vectors", "", len(orphans), detail)
            yield fault, lambda: self._execute(gone, [{"of": key} for key in orphans])
        if unusable:
            detail = "vectors of a wrong size or not finite; they are embedded again"
            fault = Fault("catalog_vectors", "", len(unusable), detail)
            yield fault, lambda: delete_unusable(self.database, unusable)
        log = self.projector.log
        marks, last = log.marks(), log.last()
        for mark, seq in marks.items():
            if seq > last:
                library, projection = mark.split("/")
                detail = f"{projection} claims change {seq} of {last}"
                forget = partial(log.set_mark, Library(library), cast("Projection", projection), 0)
                yield Fault("catalog_watermarks", library, 1, detail), forget

    def _execute(self, statement: Executable, rows: Sequence[Mapping[str, object]]) -> None:
        with self.database.write("fsck") as sql:
            sql.execute(statement, rows)

    def _document_counts(self) -> Found:
        if wrong := self.database.rows(WRONG_DOCUMENTS):
            right = update(documents).where(documents.c.doc == bindparam("of"))
            right = right.values(chunks=bindparam("found"), embedded=bindparam("with_vector"))
            rows = [
                {"of": row.doc, "found": row.found, "with_vector": row.with_vector} for row in wrong
            ]
            detail = f"document {wrong[0].doc}"
            fault = Fault("catalog_document_counts", wrong[0].library, len(wrong), detail)
            yield fault, lambda: self._execute(right, rows)

    def _counters(self) -> Found:
        counters = [row.library for row in self.database.rows(WRONG_COUNTERS)]
        duplicates = self.database.rows(WRONG_DUPLICATES)
        if counters:
            detail = "counts of documents, chunks or vectors"
            yield Fault("catalog_counters", counters[0], len(counters), detail), self._recount
        if duplicates:
            first = duplicates[0]
            detail = f"content {first.sha256[:12]}"
            fault = Fault("catalog_duplicates", first.library, len(duplicates), detail)
            yield fault, lambda: self._repoint(duplicates)

    def _recount(self) -> None:
        with self.database.write("fsck") as sql:
            sql.execute(update(libraries).values(dict.fromkeys(_COUNTERS, 0)))
            counted = {name: _COUNTED.c[name] for name in _COUNTERS}
            right = update(libraries).values(counted)
            sql.execute(right.where(_COUNTED.c.library == libraries.c.library))
            sql.execute(delete(type_counts))
            by_type = (
                select(documents.c.library, documents.c.type, func.count())
                .where(_LIVE)
                .group_by(documents.c.library, documents.c.type)
            )
            names = ["library", "type", "documents"]
            sql.execute(insert(type_counts).from_select(names, by_type))

    def _repoint(self, duplicates: Sequence[Row[Any]]) -> None:
        with self.database.write("fsck") as sql:
            for library in {row.library for row in duplicates}:
                contents = {row.sha256 for row in duplicates if row.library == library}
                repoint_duplicates(sql, Library(library), contents)

    def _originals(self, checked: dict[str, int]) -> Found:
        names = {row.sha256 for row in self.database.rows(ORIGINALS)}
        checked["originals"] = len(names)
        missing = [name for name in sorted(names) if not self.originals.exists(name)]
        if missing:  # their documents may have been deleted meanwhile
            names &= {row.sha256 for row in self.database.rows(ORIGINALS)}
            missing = [name for name in missing if name in names]
        damaged = [
            name for name in sorted(names) if name not in missing and self.originals.damaged(name)
        ]
        lost: dict[FaultCode, list[str]] = {
            "original_missing": missing,
            "original_damaged": damaged,
        }
        for code, files in lost.items():
            if files:
                detail = f"{files[0]}.bin; the text stays, upload the file again to have it"
                yield Fault(code, "", len(files), detail), partial(self._delete_originals, files)

    def _delete_originals(self, names: list[str]) -> None:
        with self.database.write("fsck") as sql:
            for table in (documents, revisions):
                named = update(table).where(table.c.sha256 == bindparam("name"))
                sql.execute(named.values(has_original=0), [{"name": name} for name in names])
        for name in names:
            self.originals.delete(name)

    def _orphans(self) -> Found:
        if orphans := sorted(self.unlinks.due()):
            detail = f"{orphans[0]}.bin was deleted or never accepted"
            fault = Fault("original_orphan", "", len(orphans), detail, at_start=True)
            yield fault, self.unlinks.unlink_due

    def _unknown(self, recover: Recover | None) -> Iterator[Fault]:
        unknown = self.unlinks.unknown()
        if not unknown:
            return
        if recover is None:
            detail = f"{unknown[0]}.bin is in no document; --repair makes an entry for it"
            yield Fault("original_unknown", "", len(unknown), detail)
            return
        refused = recover(unknown)
        if recovered := len(unknown) - len(refused):
            detail = "in no document; an entry was made for each"
            yield Fault("original_unknown", "", recovered, detail, repaired=True)
        if refused:
            name, reason = next(iter(refused.items()))
            detail = f"{name}.bin stays without an entry: {reason}"
            yield Fault("original_unknown", "", len(refused), detail)

    # --- the projections

    def _foreign(self) -> Found:
        """Find indexes of a newer catalog; a repair fills the vectors from this one."""
        last, seen = self.projector.log.last(), seen_change(self.options.data_dir)

        def repair() -> None:
            if self.options.stored:
                self.supervisor.refill("the indexes are of another catalog")
            note_change(self.options.data_dir, last, self.steps)

        if seen > last:
            detail = f"the indexes know change {seen} of {last}"
            yield Fault("catalog_older", "", seen - last, detail), repair

    def _lexical(self, library: Library, checked: dict[str, int]) -> Found:
        index, name = self.projector.indexes[library], library.value

        def rebuild() -> None:
            self.projector.words[library].rebuild(self.loader.documents(library))

        if damaged := index.damaged():  # asking such an index would say nothing
            yield Fault("lexical_files", name, len(damaged), damaged[0]), rebuild
            return
        held, wanted = index.ids(), self.loader.live_chunk_ids(library)
        checked["lexical"] = checked.get("lexical", 0) + len(held)
        missing, phantom = wanted - set(held), set(held) - wanted
        if missing or phantom:  # another process may have been about to bring or remove them
            self.projector.words[library].wait_until_idle()
            held, wanted = index.ids(), self.loader.live_chunk_ids(library)
            missing, phantom = missing & (wanted - set(held)), phantom & (set(held) - wanted)
        repeated = len(held) - len(set(held))
        awaited = self._awaited(library) if missing or phantom else set()
        if missing:
            detail, waits = f"chunk {min(missing)}", missing <= awaited
            fault = Fault("lexical_missing", name, len(missing), detail, at_start=waits)
            yield fault, rebuild
        if phantom or repeated:
            detail = f"chunk {min(phantom)}" if phantom else "chunks that are there twice"
            waits, count = not repeated and phantom <= awaited, len(phantom) + repeated
            yield Fault("lexical_phantom", name, count, detail, at_start=waits), rebuild
        sample = sorted(wanted.intersection(held))
        step = max(1, len(sample) // CONTENT_SAMPLE)
        wrong = [
            chunk_id
            for chunk_id, text in self.loader.chunk_texts(sample[::step])
            if not index.finds(chunk_id, text)
        ]
        if wrong:
            detail = f"chunk {wrong[0]} is not found by its words"
            yield Fault("lexical_content", name, len(wrong), detail), rebuild

    def _awaited(self, library: Library) -> set[int]:
        """Return the chunks of changes that the lexical index lacks; a start replays them."""
        awaited, log = set[int](), self.projector.log
        for changes in log.batches(library, log.mark(library, "lexical"), dense=False):
            for change in changes:
                awaited.update(change.ids)
            for document in self.loader.lexical_documents([change.doc for change in changes]):
                awaited.update(chunk_id for chunk_id, _, _ in document.chunks)
        return awaited

    def _cache(self, library: Library) -> Found:
        dense = self.projector.dense[library]
        if wrong := dense.compare_cache():
            yield Fault("vector_cache", library.value, len(wrong), wrong[0]), dense.refill_cache

    def _stores(self) -> Found:
        """Compare the stores of vectors; those that are being brought up are not looked at.

        No score depends on them, so that only ids are compared, and whether they find them.
        """
        with self.supervisor.locked() as at_rest:
            if not at_rest:
                return
            faults: list[Fault] = []
            try:
                for library in Library:
                    faults += self._store(library)
            except IndexDamaged as exc:
                faults = [Fault("vectors_store", "", 1, exc.message)]
            used = any(
                self.loader.live_build(library) and self.projector.dense[library].replica.applied
                for library in Library
            )
        if used and (broken := list(self.options.data_dir.rglob(f"*{BROKEN_MARK}*"))):
            detail = f"{broken[0].name} was moved aside; documind purge removes it"
            yield Fault("leftovers", "", len(broken), detail, repaired=True), None
        refill = partial(self.supervisor.refill, "; ".join(fault.detail for fault in faults[:3]))
        yield from ((fault, refill) for fault in faults)

    def _store(self, library: Library) -> Iterator[Fault]:
        replica, build = self.projector.dense[library].replica, self.loader.live_build(library)
        if build is None or not replica.applied:
            return
        wanted = self.loader.vector_ids(build.number)
        if not wanted - replica.uncertain() and not self.options.stored:
            # nothing is in it, so that it is not there is no fault: it is made when it is needed
            return
        held = replica.store.ids(replica.collection(build))
        uncertain = replica.uncertain()  # last: others write to the catalog
        wanted -= uncertain
        missing, phantom = wanted - held, held - wanted - uncertain
        if missing and len(held) < min(len(wanted), replica.limit):
            detail = f"chunk {min(missing)}"
            yield Fault("vectors_missing", library.value, len(missing), detail)
        elif phantom:
            detail = f"chunk {min(phantom)}"
            yield Fault("vectors_phantom", library.value, len(phantom), detail)
        elif problem := replica.problem():
            yield Fault("vectors_store", library.value, 1, problem)
