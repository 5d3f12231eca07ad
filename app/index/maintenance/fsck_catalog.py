"""Check and repair the catalog: counters, duplicates, vectors, texts, originals."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from sqlalchemy import bindparam, delete, func, select, update

from app.core.errors import IndexDamaged
from app.core.types import Library
from app.index.catalog.bookkeeping import repoint_duplicates
from app.index.catalog.changes import ChangeLog
from app.index.catalog.database import Database
from app.index.catalog.schema import chunks, documents, revisions, vectors
from app.index.catalog.texts import TextCodec
from app.index.catalog.unlinks import ORIGINALS, Unlinks
from app.index.catalog.vector_check import VectorCheck
from app.index.files.originals import Originals
from app.index.maintenance.fsck_report import Fault, FaultCode
from app.index.maintenance.fsck_statements import (
    BAD_SPANS,
    ORPHAN_VECTORS,
    TEXTS,
    WRONG_COUNTERS,
    WRONG_DOCUMENTS,
    WRONG_DUPLICATES,
    recount,
)


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
                    self.log.set_mark(Library(library), projection, 0)  # type: ignore[arg-type]  # the table holds projections only
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
