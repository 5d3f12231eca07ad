"""Check and repair the catalog: counters, duplicates, vectors, texts, originals."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from sqlalchemy import Connection

from app.core.errors import IndexDamaged
from app.core.types import Library
from app.index.catalog.bookkeeping import repoint_duplicates
from app.index.catalog.changes import ChangeLog
from app.index.catalog.database import Database
from app.index.catalog.schema import BUILD_SHIFT
from app.index.catalog.texts import TextCodec
from app.index.catalog.unlinks import Unlinks
from app.index.catalog.vector_check import VectorCheck
from app.index.files.originals import Originals
from app.index.maintenance.fsck_report import Fault, FaultCode

_LIVE_COUNTS = """
    SELECT library, count(*) AS documents, sum(chunks) AS chunks, sum(embedded) AS embedded, sum(bytes) AS bytes
    FROM documents WHERE state = 'live' GROUP BY library
"""
_WRONG_COUNTERS = f"""
    SELECT l.library FROM libraries l LEFT JOIN ({_LIVE_COUNTS}) t ON t.library = l.library
    WHERE (l.documents, l.chunks, l.embedded, l.bytes)
        != (coalesce(t.documents, 0), coalesce(t.chunks, 0), coalesce(t.embedded, 0), coalesce(t.bytes, 0))
    UNION SELECT c.library FROM type_counts c WHERE c.documents
        != (SELECT count(*) FROM documents d WHERE d.library = c.library AND d.type = c.type AND d.state = 'live')
"""  # noqa: S608  # constants
_COUNTED = f"""
    SELECT d.doc, d.library, d.chunks, d.embedded, count(c.chunk_id) AS found, count(v.key) AS vectors
    FROM documents d JOIN libraries l ON l.library = d.library
    LEFT JOIN chunks c ON c.doc = d.doc AND c.revision = d.revision
    LEFT JOIN vectors v ON v.key = (l.live_build << {BUILD_SHIFT}) | c.chunk_id
    GROUP BY d.doc HAVING d.chunks != count(c.chunk_id) OR d.embedded != count(v.key)
"""  # noqa: S608  # constants
_ORPHAN_VECTORS = f"""
    SELECT v.key FROM vectors v
    LEFT JOIN chunks c ON c.chunk_id = v.key & {(1 << BUILD_SHIFT) - 1}
    LEFT JOIN documents d ON d.doc = c.doc AND d.revision = c.revision
    LEFT JOIN builds b ON b.build = v.key >> {BUILD_SHIFT}
    WHERE d.doc IS NULL OR b.build IS NULL
"""  # noqa: S608  # constants
_BAD_SPANS = """
    SELECT c.chunk_id, d.doc_id FROM chunks c JOIN documents d ON d.doc = c.doc
    JOIN revisions r ON r.doc = c.doc AND r.revision = c.revision
    WHERE c.start < 0 OR c."end" <= c.start OR c."end" > r.characters
    UNION ALL SELECT 0, d.doc_id FROM documents d
    WHERE NOT EXISTS (SELECT 1 FROM revisions r WHERE r.doc = d.doc AND r.revision = d.revision)
"""
_WRONG_DUPLICATES = """
    SELECT d.library, d.sha256 FROM documents d
    JOIN (SELECT library, sha256, min(doc) AS first FROM documents WHERE state = 'live' GROUP BY library, sha256) f
        ON f.library = d.library AND f.sha256 = d.sha256
    JOIN documents o ON o.doc = f.first
    WHERE d.state = 'live' AND d.duplicate_of IS NOT CASE WHEN d.doc = f.first THEN NULL ELSE o.doc_id END
"""


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
            yield Fault("catalog_pages", "", len(pages), f"{pages[0]}; stop the server and run: documind restore BACKUP")
            return
        yield from self._texts(checked)
        yield from self._vectors(repair=repair, checked=checked)
        yield from self._counts(repair=repair)
        yield from self._originals(repair=repair, checked=checked)

    def _texts(self, checked: dict[str, int]) -> Iterator[Fault]:
        codec = TextCodec()
        damaged: list[str] = []
        with self.database.read_raw() as cursor:
            rows = cursor.execute("SELECT d.doc_id, r.text, r.characters FROM revisions r JOIN documents d ON d.doc = r.doc")
            for n, (doc_id, frame, characters) in enumerate(rows, 1):
                checked["texts"] = n
                try:
                    if len(codec.unpack(frame)) != characters:
                        damaged.append(doc_id)
                except IndexDamaged:
                    damaged.append(doc_id)
            spans = cursor.execute(_BAD_SPANS).fetchall()
            checked["chunks"] = cursor.execute("SELECT count(*) FROM chunks").fetchone()[0]
        if damaged:
            yield Fault("catalog_text", "", len(damaged), f"the text of document {damaged[0]}; ingest it again or restore a backup")
        if spans:
            yield Fault("catalog_spans", "", len(spans), f"a chunk of document {spans[0][1]}; ingest it again or restore a backup")

    def _vectors(self, *, repair: bool, checked: dict[str, int]) -> Iterator[Fault]:
        with self.database.read_raw() as cursor:
            checked["vectors"] = cursor.execute("SELECT count(*) FROM vectors").fetchone()[0]
            orphans = [row[0] for row in cursor.execute(_ORPHAN_VECTORS)]
            last = self.log.last()
        unusable = self.vectors.find()
        if orphans:
            yield self._drop_vectors("catalog_orphan_vectors", orphans, "vectors of chunks that are not live", repair=repair)
        if unusable:
            if repair:
                self.vectors.drop(unusable)
            detail = "vectors of a wrong size or not finite; they are embedded again"
            yield Fault("catalog_vectors", "", len(unusable), detail, repair)
        for mark, seq in self.log.marks().items():
            if seq > last:
                library, projection = mark.split("/")
                if repair:
                    self.log.set_mark(Library(library), projection, 0)  # type: ignore[arg-type]  # the table holds projections only
                yield Fault("catalog_watermarks", library, 1, f"{projection} claims change {seq} of {last}", repair)

    def _drop_vectors(self, code: FaultCode, keys: list[int], detail: str, *, repair: bool) -> Fault:
        if repair:
            with self.database.write("fsck") as sql:
                sql.exec_driver_sql("DELETE FROM vectors WHERE key = ?", [(key,) for key in keys])
        return Fault(code, "", len(keys), detail, repair)

    def _counts(self, *, repair: bool) -> Iterator[Fault]:
        # Documents first: the libraries' counters are made from them.
        with self.database.read_raw() as cursor:
            documents = cursor.execute(_COUNTED).fetchall()
        if documents:
            if repair:
                with self.database.write("fsck") as sql:
                    sql.exec_driver_sql(
                        "UPDATE documents SET chunks = ?, embedded = ? WHERE doc = ?",
                        [(row[4], row[5], row[0]) for row in documents],
                    )
            yield Fault("catalog_document_counts", documents[0][1], len(documents), f"document {documents[0][0]}", repair)
        with self.database.read_raw() as cursor:
            counters = [row[0] for row in cursor.execute(_WRONG_COUNTERS)]
            duplicates = cursor.execute(_WRONG_DUPLICATES).fetchall()
        if counters:
            if repair:
                with self.database.write("fsck") as sql:
                    recount(sql)
            yield Fault("catalog_counters", counters[0], len(counters), "counts of documents, chunks or vectors", repair)
        if duplicates:
            if repair:
                with self.database.write("fsck") as sql:
                    for library in {row[0] for row in duplicates}:
                        repoint_duplicates(sql, Library(library), {row[1] for row in duplicates if row[0] == library})
            yield Fault("catalog_duplicates", duplicates[0][0], len(duplicates), f"content {duplicates[0][1][:12]}", repair)

    def _originals(self, *, repair: bool, checked: dict[str, int]) -> Iterator[Fault]:
        with self.database.read_raw() as cursor:
            names = {row[0] for row in cursor.execute("SELECT DISTINCT sha256 FROM revisions WHERE has_original = 1")}
        checked["originals"] = len(names)
        missing = [name for name in sorted(names) if not self.originals.exists(name)]
        damaged = [name for name in sorted(names) if name not in missing and self.originals.damaged(name)]
        lost: dict[FaultCode, list[str]] = {"original_missing": missing, "original_damaged": damaged}
        for code, files in lost.items():
            if files:
                if repair:
                    self._disown(files)
                yield Fault(code, "", len(files), f"{files[0]}.bin; the text stays, upload the file again to have it", repair)
        orphans = sorted(self.unlinks.due())
        if orphans:
            if repair:
                self.unlinks.settle()
            yield Fault("original_orphan", "", len(orphans), f"{orphans[0]}.bin was deleted or never accepted", repair)

    def _disown(self, names: list[str]) -> None:
        with self.database.write("fsck") as sql:
            rows = [(name,) for name in names]
            sql.exec_driver_sql("UPDATE documents SET has_original = 0 WHERE sha256 = ?", rows)
            sql.exec_driver_sql("UPDATE revisions SET has_original = 0 WHERE sha256 = ?", rows)
        for name in names:
            self.originals.remove(name)


def recount(sql: Connection) -> None:
    """Make every counter from the documents."""
    sql.exec_driver_sql("UPDATE libraries SET documents = 0, chunks = 0, embedded = 0, bytes = 0")
    sql.exec_driver_sql(
        f"UPDATE libraries SET documents = t.documents, chunks = t.chunks, embedded = t.embedded, bytes = t.bytes"  # noqa: S608
        f" FROM ({_LIVE_COUNTS}) t WHERE t.library = libraries.library"
    )
    sql.exec_driver_sql("DELETE FROM type_counts")
    sql.exec_driver_sql(
        "INSERT INTO type_counts (library, type, documents)"
        " SELECT library, type, count(*) FROM documents WHERE state = 'live' GROUP BY library, type"
    )
