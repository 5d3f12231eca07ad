"""The job that makes a library equal Zotero, and what Zotero holds for any sync of it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from app.core.cancel import CancelToken
from app.core.errors import InputError, TooLarge, Unreadable
from app.core.labels import labels_from
from app.core.types import IngestOutcome, Job, Labels, Library, RawDocument, json_values
from app.ingest.pipeline import failed_outcome
from app.ingest.sources.folders import (
    FolderFile,
    Holdings,
    Manifest,
    ManifestEntry,
    SyncOutcome,
    held_in,
    manifest_path,
    mirror,
)
from app.jobs.ingest import Collecting, Embedding, remove_claimed
from app.jobs.runner import JobContext, JobRunner
from app.models.zotero import Progress, Zotero
from app.storage.catalog.folders import FailedFile, SyncClaims

if TYPE_CHECKING:
    from app.storage.catalog.labels import LabelStore

ZOTERO = "zotero"
_AT_ONCE = 16
"""Files that are copied before they are read."""
_MOST_TOLD = 100
"""Failures that a report names; it counts all."""


def held_by_zotero(
    zotero: Zotero,
    into: Path,
    known: Mapping[str, ManifestEntry],
    version: str,
    progress: Progress = lambda *_: None,
) -> Holdings:
    """Return what Zotero holds, read now; what it has no file of here is written below `into`."""

    def is_known(key: str, labels: Labels, md5: str) -> bool:
        entry = known.get(key)
        return entry is not None and (entry.md5, entry.labels) == (md5, labels.as_json())

    read = zotero.read(progress, is_known=is_known, since=version)
    if read.is_unchanged:
        return Holdings({key: _as_before(key, known[key]) for key in known}, version=version)
    held = held_in(read.documents, read.failed, read.waiting, known, into)
    found = {
        key: replace(file, entry=replace(file.entry, md5=read.md5s.get(key, "")))
        for key, file in held.found.items()
    }
    found |= {key: _as_before(key, known[key]) for key in read.known}
    return replace(held, found=found, version=read.version)


def _as_before(key: str, entry: ManifestEntry) -> FolderFile:
    """Return a file that is not here, whose document is as it was."""
    return FolderFile(key, Path(), entry)


@dataclass(frozen=True, slots=True)
class ZoteroReport:
    """How many documents a sync changed; what failed is named."""

    added: int
    replaced: int
    removed: int
    unchanged: int
    kept: int
    """Gone from Zotero, and kept: so many at once are removed only where that is asked for."""
    failures: int
    failed: tuple[FailedFile, ...]


def request_zotero(runner: JobRunner, library: Library, *, allow_empty: bool) -> Job:
    """Ask for a sync; the same request again joins or resumes the one that is there."""
    payload: dict[str, object] = {"library": library.value, "allow_empty": allow_empty}
    for job in runner.unfinished(ZOTERO, library):
        if job.payload == payload:
            return runner.resume(job.id) if job.state == "paused" else job
    return runner.submit(ZOTERO, payload, unit="items")


@dataclass(frozen=True, slots=True)
class ZoteroJob:
    """Handler of `zotero`, safe to repeat: what is done is found unchanged."""

    parts: Collecting
    claims: SyncClaims
    labels: LabelStore
    open: Callable[[Path, CancelToken], Zotero]
    data_dir: Path
    """Where manifests are."""

    def __call__(self, context: JobContext) -> Mapping[str, object]:
        """Read Zotero, then add, replace and remove documents.

        Raises:
            ProviderError: Zotero is away or refuses; nothing was changed.
            Cancelled: Paused, cancelled or shutting down; what was written stays.
        """
        library = Library(str(context.payload["library"]))
        with (
            TemporaryDirectory(prefix="documind-") as into,
            closing(self.open(Path(into), context.cancel)) as zotero,
        ):

            def look(known: Mapping[str, ManifestEntry], version: str) -> Holdings:
                return held_by_zotero(zotero, Path(into), known, version, context.step)

            there = _InServer(self, context, library, zotero.folder)
            manifest = Manifest(manifest_path(self.data_dir, zotero.folder), library)
            allow_empty = context.payload["allow_empty"] is True
            return _report(mirror(there, look, library, manifest, allow_empty=allow_empty))


def _report(outcome: SyncOutcome) -> Mapping[str, object]:
    report = ZoteroReport(
        added=len(outcome.added),
        replaced=len(outcome.replaced),
        removed=len(outcome.removed),
        unchanged=outcome.unchanged,
        kept=len(outcome.kept),
        failures=len(outcome.failed),
        failed=tuple(FailedFile(*one) for one in outcome.failed[:_MOST_TOLD]),
    )
    return json_values(report)


@dataclass(frozen=True, slots=True)
class _InServer:
    """A library of this server that is to equal a folder, by the job that runs."""

    job: ZoteroJob
    context: JobContext
    library: Library
    folder: str

    def live(self) -> Mapping[str, str]:
        return {
            one.doc_id: one.sha256 for one in self.job.parts.catalog.every_document(self.library)
        }

    def claimed(self) -> Collection[str]:
        return self.job.claims.held(self.library, self.folder)

    def send(self, files: Sequence[FolderFile]) -> Sequence[IngestOutcome]:
        outcomes: list[IngestOutcome] = []
        for at in range(0, len(files), _AT_ONCE):
            self.context.step(at, len(files), "files")
            outcomes += self._ingested(files[at : at + _AT_ONCE])
        changed = [one.doc_id for one in outcomes if one.doc_id and one.status != "unchanged"]
        if changed:
            Embedding(self.job.parts, self.context, self.library).run(changed)
        self.context.progress(len(files), len(files), "files")
        return outcomes

    def _ingested(self, files: Sequence[FolderFile]) -> list[IngestOutcome]:
        """Copy files, then read the copies: the bytes that are claimed are those that are read."""
        parts, pipeline = self.job.parts, self.job.parts.pipeline_of(self.library)
        refused: dict[str, IngestOutcome] = {}
        copies: list[RawDocument] = []
        shas: dict[str, str] = {}
        for file in files:
            try:
                labels = labels_from(file.labels)
                self.job.labels.check([labels])
                sha256 = self._copied(file, pipeline.options.max_file_bytes)
            except InputError as error:
                refused[file.source_key] = failed_outcome(file.path.name, error)
                continue
            shas[file.source_key] = sha256
            copy = replace(file.raw(), content=parts.original(sha256), labels=labels)
            copies.append(replace(copy, job_id=self.context.job_id))
        try:
            self.job.claims.record(self.library, self.folder, shas)
            outcomes = iter(pipeline.ingest(self.library, copies, cancel=self.context.cancel))
        finally:
            parts.writer.delete_unaccepted(shas.values())
        return [refused.get(file.source_key) or next(outcomes) for file in files]

    def _copied(self, file: FolderFile, most_bytes: int) -> str:
        """Keep a file's bytes and return their SHA-256.

        Raises:
            TooLarge: It has more than `most_bytes`.
            Unreadable: It is gone, or may not be read.
        """
        if file.entry.size > most_bytes:
            raise TooLarge(
                f"{file.path.name!r} is larger than {most_bytes:,} bytes; raise MAX_FILE_SIZE_MB"
            )
        try:
            return self.job.parts.writer.store_original(file.path)
        except OSError as exc:
            raise Unreadable(
                f"{file.path.name!r} cannot be read ({exc.strerror}); check that it is there"
            ) from exc

    def remove(self, source_keys: Sequence[str]) -> Sequence[str]:
        parts = self.job.parts
        return remove_claimed(self.job.claims, parts.writer, self.library, self.folder, source_keys)

    def report(self, failed: Sequence[tuple[str, str]]) -> None:
        told = [FailedFile(*one) for one in failed[:1000]]
        self.job.claims.look(self.library, self.folder, watching=False, failed=told)
