"""Jobs in the catalog: they survive a restart."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from sqlalchemy import Connection, Row, bindparam, delete, insert, select, update

from app.core.errors import NotFound, Superseded
from app.core.ids import new_id
from app.core.types import DocumentDraft, Job, JobFile, Library
from app.index.catalog.database import Database
from app.index.catalog.schema import meta
from app.index.catalog.statements import meta_value, put_meta
from app.index.catalog.work_schema import jobs
from app.index.files.durable import utc_now

FINISHED = ("done", "failed", "cancelled")
"""States that a job does not leave."""

JOBS = select(*(column for column in jobs.c if column is not jobs.c.n))
_MINE = jobs.c.id == bindparam("of")
_JOB = JOBS.where(_MINE)
_SAVE = update(jobs).where(_MINE)
_UNFINISHED = jobs.c.state.not_in(FINISHED)
_SUPERSEDED = "superseded/"
"""With the id of a job: source keys that a deletion keeps out."""
_PAYLOADS = select(jobs.c.payload).where(_UNFINISHED)


class SqliteJobStore:
    """The JobStore port on the catalog."""

    def __init__(self, database: Database) -> None:
        """Keep jobs in `database`."""
        self._database = database

    def create(
        self,
        kind: str,
        payload: Mapping[str, object],
        *,
        total: int | None = None,
        unit: str = "items",
    ) -> Job:
        """Store a queued job durably and return it."""
        job = new_job(kind, payload, total=total, unit=unit)
        with self._database.write("job") as sql:
            sql.execute(insert(jobs), job_values(job))
        return job

    def get(self, job_id: str) -> Job:
        """Return a job.

        Raises:
            NotFound: No such job.
        """
        found = self._database.rows(_JOB, {"of": job_id})
        if not found:
            raise NotFound(f"no job {job_id!r}; finished jobs are forgotten after a while")
        return job_of(found[0])

    def list(self, limit: int = 100) -> Sequence[Job]:
        """Return jobs, newest first."""
        return [
            job_of(row) for row in self._database.rows(JOBS.order_by(jobs.c.n.desc()).limit(limit))
        ]

    def unfinished(self) -> Sequence[Job]:
        """Return every queued, running or paused job, oldest first."""
        return [
            job_of(row) for row in self._database.rows(JOBS.where(_UNFINISHED).order_by(jobs.c.n))
        ]

    def delete_finished(self, keep_finished: int) -> int:
        """Forget finished jobs beyond the newest `keep_finished`; return how many."""
        finished = select(jobs.c.n).where(jobs.c.state.in_(FINISHED)).order_by(jobs.c.n.desc())
        with self._database.write("job") as sql:
            newest = finished.limit(keep_finished)
            return sql.execute(
                delete(jobs).where(jobs.c.state.in_(FINISHED), jobs.c.n.not_in(newest))
            ).rowcount

    def save(self, job: Job) -> None:
        """Replace a job's state durably.

        Raises:
            NotFound: The job was forgotten.
        """
        with self._database.write("job") as sql:
            changed = sql.execute(
                _SAVE, job_values(job) | {"of": job.id, "updated_at": utc_now()}
            ).rowcount
        if not changed:
            raise NotFound(f"no job {job.id!r} to save")


def new_job(
    kind: str,
    payload: Mapping[str, object],
    *,
    files: Sequence[JobFile] = (),
    total: int | None = None,
    unit: str = "items",
) -> Job:
    """Return a queued job with an id of its own; nothing is stored."""
    now = utc_now()
    errors: tuple[str, ...] = ()
    return Job(
        new_id(), kind, "queued", 0, total, unit, None, errors, tuple(files), dict(payload), None,
        now, now,
    )  # fmt: skip


def awaited_originals(database: Database) -> set[str]:
    """Return the SHA-256 of uploads that unfinished jobs need: they must stay."""
    return {name for (payload,) in database.rows(_PAYLOADS) for name in originals_in(payload)}


def originals_in(payload: str) -> set[str]:
    """Return the SHA-256 of every upload that a job's payload (JSON) names."""
    files = json.loads(payload).get("files", ())
    names = (file.get("sha256") for file in files if isinstance(file, dict))
    return {name for name in names if name}


def supersede(sql: Connection, library: Library, source_keys: Collection[str] | None) -> None:
    """Keep documents out that unfinished jobs have accepted and not written yet.

    Call it in the transaction of the deletion: what is accepted later is not affected.

    Args:
        sql: The deletion's transaction.
        library: Where documents are deleted.
        source_keys: Of these; None: of all documents of the library.
    """
    waiting = sql.execute(select(jobs.c.id, jobs.c.payload).where(_UNFINISHED)).all()
    for job_id, payload in waiting:
        accepted = _accepted(json.loads(payload), library)
        if kept_out := accepted if source_keys is None else accepted & set(source_keys):
            kept_out |= _superseded(sql, job_id)
            put_meta(sql, _SUPERSEDED + job_id, json.dumps(sorted(kept_out)))
    left = [_SUPERSEDED + job_id for job_id, _ in waiting]
    sql.execute(
        delete(meta)
        .where(meta.c.key.startswith(_SUPERSEDED, autoescape=True))
        .where(meta.c.key.not_in(left))
    )


def refuse_superseded(sql: Connection, drafts: Sequence[DocumentDraft]) -> None:
    """Refuse drafts of documents that were deleted after their job was accepted.

    Raises:
        Superseded: One is; the message names it.
    """
    for job_id in {draft.job_id for draft in drafts if draft.job_id}:
        kept_out = _superseded(sql, job_id)
        for draft in drafts:
            if draft.job_id == job_id and draft.source_key in kept_out:
                raise Superseded(
                    f"{draft.source_key!r} was deleted after it was accepted; send it again"
                )


def _accepted(payload: Mapping[str, Any], library: Library) -> set[str]:
    """Return the source keys of documents that a job brings into a library."""
    if "arxiv_id" in payload:
        paper = str(payload["arxiv_id"]).rsplit("v", 1)[0]
        return {paper} if library is Library.PAPERS else set()
    if payload.get("library") != library.value:
        return set()
    files = payload.get("files", ())
    return {file["source_key"] for file in files if isinstance(file, dict) and "source_key" in file}


def _superseded(sql: Connection, job_id: str) -> set[str]:
    return set(json.loads(meta_value(sql, _SUPERSEDED + job_id) or "[]"))


def job_values(job: Job) -> dict[str, object]:
    """Return a job as its row's columns."""
    return {
        "id": job.id,
        "kind": job.kind,
        "state": job.state,
        "done": job.done,
        "total": job.total,
        "unit": job.unit,
        "eta_s": job.eta_s,
        "errors": json.dumps(job.errors),
        "files": json.dumps([asdict(file) for file in job.files]),
        "payload": json.dumps(dict(job.payload)),
        "result": None if job.result is None else json.dumps(dict(job.result)),
        "created_at": job.created_at,
        "updated_at": job.updated_at,
    }


def job_of(row: Row[*tuple[Any, ...]]) -> Job:
    """Return the job of a row that has exactly its columns."""
    packed = dict(row._mapping)
    return Job(
        **packed
        | {
            "errors": tuple(json.loads(packed["errors"])),
            "files": tuple(JobFile(**file) for file in json.loads(packed["files"])),
            "payload": json.loads(packed["payload"]),
            "result": packed["result"] and json.loads(packed["result"]),
        }
    )
