"""Keep in the catalog what is no document: accepted uploads, ledgers, claims, models."""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, astuple, dataclass, field
from datetime import UTC, datetime, timedelta

from sqlalchemy import Connection, Select, and_, bindparam, delete, func, literal_column, select

from app.core.forms import AS_JSON
from app.core.types import (
    LedgerEntry,
    LedgerPage,
    LedgerSummary,
    Library,
    ModelFindings,
    ModelSpeed,
    PageWords,
)
from app.storage.catalog.database import Database, SinceCommit
from app.storage.catalog.schema import (
    deletions,
    documents,
    jobs,
    ledger,
    meta,
    meta_value,
    model_speeds,
    model_tests,
    page_words,
    pieces,
    put,
    put_meta,
    revisions,
    rows_of,
    sync_claims,
    unlinks,
)
from app.storage.catalog.texts import pack_texts, unpack_text
from app.storage.files.durable import utc_now, utc_text
from app.storage.files.originals import Originals

FINISHED = ("done", "failed", "cancelled")
"""States that a job does not leave."""

_UNFINISHED = jobs.c.state.not_in(FINISHED)
_PAYLOADS = select(jobs.c.payload).where(_UNFINISHED)
_NUMBER = select(jobs.c.n).where(jobs.c.id == bindparam("of"))
_LAST_NUMBER = select(func.max(jobs.c.n))

WHOLE_LIBRARY = ""
"""Source key of the deletion of everything."""
_ANY_DELETION = select(deletions.c.upto).limit(1)
_KEPT_OUT = select(deletions.c.source_key, deletions.c.upto).where(
    deletions.c.library == bindparam("of"),
    deletions.c.source_key.in_(bindparam("keys", expanding=True)),
)


def awaited_originals(database: Database) -> set[str]:
    """Return the SHA-256 of uploads that unfinished jobs need: they must stay."""
    return {name for (payload,) in database.rows(_PAYLOADS) for name in originals_in(payload)}


def originals_in(payload: str) -> set[str]:
    """Return the SHA-256 of every upload that a job's payload (JSON) names."""
    files = json.loads(payload).get("files", ())
    names = (file.get("sha256") for file in files if isinstance(file, dict))
    return {name for name in names if name}


def keep_out(sql: Connection, library: Library, source_keys: Collection[str] | None) -> None:
    """Log deletions: no job that was accepted before writes these documents again.

    Call it in the transaction of the deletion: what is accepted later is not affected.

    Args:
        sql: The deletion's transaction.
        library: Where documents are deleted.
        source_keys: Of these; None: of all documents of the library.
    """
    first = sql.execute(select(func.min(jobs.c.n)).where(_UNFINISHED)).scalar()
    answered = delete(deletions)
    sql.execute(answered if first is None else answered.where(deletions.c.upto < first))
    if first is not None:
        keys = (WHOLE_LIBRARY,) if source_keys is None else source_keys
        of = {"library": library.value, "upto": accepted_at(sql, "")}
        put(sql, deletions, [of | {"source_key": key} for key in keys])


def unfinished_before(accepted: int) -> Select[int]:
    """Return a query for jobs that may still write what was accepted before a job's number."""
    return select(jobs.c.n).where(_UNFINISHED, jobs.c.n < accepted).limit(1)


def accepted_at(sql: Connection, job_id: str) -> int:
    """Return the number of a job, which later ones exceed; without one that of the last job."""
    number = sql.execute(_NUMBER, {"of": job_id}).scalar() if job_id else None
    return number or sql.execute(_LAST_NUMBER).scalar() or 0


def deletions_of(
    sql: Connection, library: Library, source_keys: Sequence[str]
) -> Mapping[str, int]:
    """Return the number up to which jobs are kept out by source key, where a deletion does."""
    if sql.execute(_ANY_DELETION).first() is None:
        return {}
    keys = [WHOLE_LIBRARY, *source_keys]
    return {row.source_key: row.upto for row in rows_of(sql, _KEPT_OUT, "keys", keys, of=library)}


# The bulk ledger in the catalog: one row per article of every source.

_ENTRIES = select(ledger.c.article, ledger.c.revision, ledger.c.state, ledger.c.reason)
_SUMS = select(ledger.c.state, ledger.c.reason, func.count()).group_by(
    ledger.c.state, ledger.c.reason
)


class BulkLedger:
    """Records the outcome of every article of every bulk source.

    Sums are counted from rows, so they are exact.
    """

    def __init__(self, database: Database) -> None:
        self._database = database

    def entries(
        self, library: Library, source: str, articles: Sequence[str]
    ) -> dict[str, LedgerEntry]:
        asked = _ENTRIES.where(ledger.c.library == library.value, ledger.c.source == source)
        named = asked.where(ledger.c.article.in_(bindparam("articles", expanding=True)))
        with self._database.read() as sql:
            rows = rows_of(sql, named, "articles", articles)
            return {row.article: LedgerEntry(*row) for row in rows}

    def record(self, library: Library, source: str, entries: Sequence[LedgerEntry]) -> None:
        """Write entries durably, replacing what was known of the same articles.

        Raises:
            DiskFull: No space; none of the entries is kept.
        """
        with self._database.write("ledger") as sql:
            record_page(sql, LedgerPage(library, source, entries))

    def page(
        self, library: Library, source: str, after: str = "", limit: int = 10_000
    ) -> list[LedgerEntry]:
        """Return entries with an article key above `after`, ascending by key."""
        following = _ENTRIES.where(
            ledger.c.library == library.value, ledger.c.source == source, ledger.c.article > after
        )
        rows = self._database.rows(following.order_by(ledger.c.article).limit(limit))
        return [LedgerEntry(*row) for row in rows]

    def delete(self, library: Library, source: str, articles: Sequence[str]) -> None:
        """Drop entries of articles that the source no longer has."""
        if not articles:
            return
        gone = delete(ledger).where(ledger.c.library == library.value, ledger.c.source == source)
        with self._database.write("ledger_forget") as sql:
            for some in pieces(articles):
                sql.execute(gone.where(ledger.c.article.in_(some)))

    def summary(self, library: Library | None = None, source: str | None = None) -> LedgerSummary:
        """Return the account of one source, one library or everything."""
        sums = _SUMS.order_by(ledger.c.reason)
        if library is not None:
            sums = sums.where(ledger.c.library == library.value)
        if source is not None:
            sums = sums.where(ledger.c.source == source)
        rows = self._database.rows(sums)
        skipped = {reason: count for state, reason, count in rows if state == "skipped"}
        counts = {state: count for state, _, count in rows}
        indexed, redirects = counts.get("indexed", 0), counts.get("redirect", 0)
        articles = indexed + redirects + sum(skipped.values())
        return LedgerSummary(articles, indexed, redirects, skipped)


def delete_sources(sql: Connection, library: Library) -> None:
    """Drop what is known of every bulk source of a library."""
    sql.execute(delete(ledger).where(ledger.c.library == library.value))


def record_page(sql: Connection, page: LedgerPage) -> None:
    """Write entries in the caller's transaction, replacing those of the articles."""
    of = {"library": page.library.value, "source": page.source}
    put(sql, ledger, [of | asdict(entry) for entry in page.entries])


# Record which documents a synced folder sent: what a sync may remove.

_UNCHANGED = and_(
    documents.c.library == sync_claims.c.library,
    documents.c.source_key == sync_claims.c.source_key,
    documents.c.sha256 == sync_claims.c.sha256,
    documents.c.state == "live",
)
_HELD = select(sync_claims.c.source_key, documents.c.doc_id).join(documents, _UNCHANGED)
_COUNTED = (
    select(sync_claims.c.library, sync_claims.c.folder, func.count())
    .join(documents, _UNCHANGED)
    .group_by(sync_claims.c.library, sync_claims.c.folder)
)
_LOOK = "synced/"
"""With the digest of a library and a folder: what its last sync reported."""
_LOOKS = select(meta.c.value).where(meta.c.key.startswith(_LOOK, autoescape=True))

_FORGET = delete(sync_claims).where(
    sync_claims.c.library == bindparam("of"),
    sync_claims.c.source_key.in_(bindparam("keys", expanding=True)),
)


_SILENT = timedelta(minutes=11)
"""A watch that said nothing for so long has ended: it reports every five minutes."""


@dataclass(frozen=True, slots=True)
class FailedFile:
    """A file of a folder that is no document here, and why."""

    __pydantic_config__ = AS_JSON
    file: str = field(metadata={"max_length": 4096})
    reason: str = field(metadata={"max_length": 4096})


@dataclass(frozen=True, slots=True)
class SyncedFolder:
    """A folder that a library follows, as its last sync left it."""

    __pydantic_config__ = AS_JSON
    library: Library
    folder: str
    documents: int
    """That it sent, and that are still as it sent them."""
    looked_at: str
    """When its files were last compared with the library, UTC."""
    watched: bool
    """Changes are followed: the last look was in the last minutes."""
    failed: tuple[FailedFile, ...]


@dataclass(frozen=True, slots=True)
class SyncClaims:
    """The claims of every folder; the last one that sent a source key has it."""

    database: Database

    def record(self, library: Library, folder: str, sent: Mapping[str, str]) -> None:
        """Remember what a folder sends, durably and before it is accepted.

        Args:
            library: Where to.
            folder: Names the folder; the sender makes it up and always uses the same.
            sent: SHA-256 of the bytes by source key.
        """
        of = {"library": library.value, "folder": folder}
        rows = [of | {"source_key": key, "sha256": sha256} for key, sha256 in sent.items()]
        with self.database.write("claims") as sql:
            put(sql, sync_claims, rows)

    def held(self, library: Library, folder: str) -> dict[str, str]:
        mine = _HELD.where(sync_claims.c.library == library.value, sync_claims.c.folder == folder)
        return dict(self.database.rows(mine.order_by(sync_claims.c.source_key)))

    def look(
        self, library: Library, folder: str, *, watching: bool, failed: Sequence[FailedFile] | None
    ) -> None:
        """Remember that a folder was looked at now; `failed` None: what failed is as before."""
        key = _LOOK + hashlib.sha256(f"{library.value}/{folder}".encode()).hexdigest()
        with self.database.write_apart("look") as sql:
            before = json.loads(meta_value(sql, key) or "{}")
            told = before.get("failed", []) if failed is None else list(map(astuple, failed))
            of = {"library": library.value, "folder": folder}
            state = of | {"looked_at": utc_now(), "watching": watching, "failed": told}
            put_meta(sql, key, json.dumps(state))

    def folders(self) -> list[SyncedFolder]:
        """Return folders that sent documents or could not, by library and name."""
        looks = [json.loads(row.value) for row in self.database.rows(_LOOKS)]
        counts = {(library, folder): n for library, folder, n in self.database.rows(_COUNTED)}
        since = datetime.now(UTC) - _SILENT
        found = [
            SyncedFolder(
                Library(look["library"]),
                look["folder"],
                counts.get((look["library"], look["folder"]), 0),
                look["looked_at"],
                look["watching"] and datetime.fromisoformat(look["looked_at"]) > since,
                tuple(FailedFile(*one) for one in look["failed"]),
            )
            for look in looks
        ]
        found = [one for one in found if one.documents or one.failed]
        return sorted(found, key=lambda one: (one.library, one.folder))


def delete_claims(sql: Connection, library: Library, source_keys: Sequence[str]) -> None:
    """Remove claims on purged documents in the caller's transaction."""
    for some in pieces(source_keys):
        sql.execute(_FORGET, {"of": library.value, "keys": some})


# Record which originals may be unlinked; no other is ever removed.

log = logging.getLogger(__name__)

AT_REST_S = 3600.0
"""How old a record is that is settled where other servers store uploads, in seconds."""

UNLINKED_KEY = "originals_unlinked_at"
"""Key of `meta`: when originals were last unlinked. It stays when the records are settled and
removed."""

ORIGINALS = (
    select(revisions.c.sha256).where(revisions.c.has_original == literal_column("1")).distinct()
)
"""The SHA-256 of every original that a revision refers to. A literal, because SQLite takes the
partial index for no bound value."""
_ANSWERED = delete(unlinks).where(unlinks.c.sha256 == bindparam("name"))


def record_unlinks(sql: Connection, names: Iterable[str]) -> None:
    """Allow unlinking originals (SHA-256) without a reference, in the caller's transaction."""
    put(sql, unlinks, [{"sha256": name, "recorded_at": utc_now()} for name in names])


# What OCR recognised on the pages of originals.


def words_of(
    database: Database, sha256: str, pages: Collection[int] | None = None
) -> list[PageWords]:
    """Return the pages of an original that OCR has read, all or some, in order."""
    asked = select(page_words.c.words).where(page_words.c.sha256 == sha256)
    if pages is not None:
        asked = asked.where(page_words.c.page.in_(pages))
    frames = database.rows(asked.order_by(page_words.c.page))
    return [PageWords.from_json(json.loads(unpack_text(row.words))) for row in frames]


def keep_words(database: Database, sha256: str, pages: Sequence[PageWords]) -> None:
    """Keep what OCR read on pages while a revision holds their original."""
    if not pages:
        return
    frames = pack_texts([json.dumps(page.to_json(), ensure_ascii=False) for page in pages])
    rows = [
        {"sha256": sha256, "page": page.page, "words": frame}
        for page, frame in zip(pages, frames, strict=True)
    ]
    with database.write("words") as sql:
        if sql.execute(ORIGINALS.where(revisions.c.sha256 == sha256)).first() is not None:
            put(sql, page_words, rows)


def delete_words(sql: Connection, shas: Iterable[str]) -> None:
    """Forget what OCR read of originals that no revision holds any more."""
    for some in pieces(sorted(shas)):
        held = ORIGINALS.where(revisions.c.sha256.in_(some))
        gone = set(some) - set(sql.execute(held).scalars())
        sql.execute(delete(page_words).where(page_words.c.sha256.in_(gone)))


@dataclass(frozen=True, slots=True)
class Unlinks:
    """The records, and what they make of the directory of originals."""

    database: Database
    originals: Originals
    shared: bool = False
    """Whether other servers store originals as well: a young record may be of an upload that is
    under way."""

    def expect(self, names: Iterable[str]) -> None:
        """Record bytes before they are stored, so that those no revision takes can be unlinked."""
        with self.database.write("unlink") as sql:
            record_unlinks(sql, names)

    def named(self) -> set[str]:
        """Return every original that a revision or an unfinished upload refers to."""
        return {row.sha256 for row in self.database.rows(ORIGINALS)} | awaited_originals(
            self.database
        )

    def recorded(self) -> set[str]:
        """Return every original with a record."""
        return {row.sha256 for row in self.database.rows(select(unlinks.c.sha256))}

    def _at_rest(self) -> set[str]:
        """Return the recorded originals that no other server is just storing."""
        latest = utc_text(datetime.now(UTC) - timedelta(seconds=AT_REST_S if self.shared else 0))
        asked = select(unlinks.c.sha256).where(unlinks.c.recorded_at <= latest)
        return {row.sha256 for row in self.database.rows(asked)}

    def due(self) -> set[str]:
        """Return the originals on disk that are recorded and that nothing refers to."""
        return (self._at_rest() & self.originals.names()) - self.named()

    def unknown(self) -> list[str]:
        """Return originals on disk that the catalog does not know, sorted."""
        return sorted(self.originals.names() - self.named() - self.recorded())

    def settle_at_start(self) -> None:
        """Unlink recorded originals only; log files that no record names.

        The catalog recorded them as deleted or never accepted.
        """
        if not self.shared:
            self.originals.delete_parts()
        self.originals.delete_stale_copies()
        self.settle()
        if unknown := len(self.unknown()):
            log.warning(
                "%d uploaded files in 'originals' are in no document; they stay. To have an entry"
                " for each, stop the server and"
                " run: documind fsck --repair --library papers", unknown,
            )  # fmt: skip

    def settle(self) -> int:
        """Unlink what is due and remove settled records; return how many files went.

        Records of uploads that an unfinished job still waits for stay: the job may fail.
        """
        recorded = self._at_rest()
        removed = sum(self.originals.delete(sha256) for sha256 in sorted(self.due()))
        answered = recorded - awaited_originals(self.database)
        if answered:
            with self.database.write("unlink") as sql:
                sql.execute(_ANSWERED, [{"name": sha256} for sha256 in answered])
                if removed:
                    put_meta(sql, UNLINKED_KEY, utc_now())
        return removed


# Calibrations of embedders, kept in the catalog by the embedder's key.

_PREFIX = "calibration:"
"""Of the keys in the table `meta`."""


class CalibrationRows:
    """Reads and writes rows; thread-safe."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._held = SinceCommit(database, self._read)

    def get(self, key: str) -> Mapping[str, float] | None:
        """Return the row of an embedder, None when there is none."""
        return self._held(key)

    def put(self, key: str, row: Mapping[str, float]) -> None:
        """Store a row durably, replacing any earlier one.

        Raises:
            DiskFull: No space; the row before stays.
        """
        with self._database.write("meta") as sql:
            put_meta(sql, _PREFIX + key, json.dumps(dict(row)))

    def _read(self, key: str) -> Mapping[str, float] | None:
        found = self._database.meta(_PREFIX + key)
        return json.loads(found) if found else None


# Store facts about models in the catalog.

_CHOSEN_KEY = "chosen_model"
"""Of the table `meta`."""


class ModelStore:
    """Keeps measurements and findings about models across restarts."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def speed(self, host: str, model: str) -> ModelSpeed | None:
        """Return how fast a model works on a host, None before it was measured."""
        found = select(model_speeds.c.reading, model_speeds.c.writing).where(
            model_speeds.c.host == host, model_speeds.c.model == model
        )
        rows = self._database.rows(found)
        return ModelSpeed(*rows[0]) if rows else None

    def keep_speed(self, host: str, model: str, speed: ModelSpeed) -> None:
        row = {"host": host, "model": model, "updated_at": utc_now(), **asdict(speed)}
        with self._database.write_apart("model") as sql:
            put(sql, model_speeds, [row])

    def findings(self, digest: str) -> ModelFindings | None:
        """Return what the test of a model found, None before it was tested."""
        kept = select(model_tests.c.findings).where(model_tests.c.digest == digest)
        rows = self._database.rows(kept)
        return ModelFindings(**json.loads(rows[0].findings)) if rows else None

    def keep_findings(self, digest: str, model: str, findings: ModelFindings) -> None:
        row = {"digest": digest, "model": model, "at": findings.at}
        with self._database.write_apart("model") as sql:
            put(sql, model_tests, [row | {"findings": json.dumps(asdict(findings))}])

    def tested(self) -> Sequence[tuple[str, ModelFindings]]:
        """Return names and findings of all tested models, newest first."""
        kept = select(model_tests.c.model, model_tests.c.findings)
        rows = self._database.rows(kept.order_by(model_tests.c.at.desc(), model_tests.c.model))
        return [(row.model, ModelFindings(**json.loads(row.findings))) for row in rows]

    def chosen(self) -> str:
        """Return the model that was chosen to answer; empty for none."""
        return self._database.meta(_CHOSEN_KEY) or ""

    def choose(self, model: str) -> None:
        """Keep which model answers from now on; empty: none is chosen."""
        with self._database.write_apart("model") as sql:
            put_meta(sql, _CHOSEN_KEY, model)
