"""Write new revisions of a batch of drafts in one transaction."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from operator import attrgetter
from typing import Any, NamedTuple

from sqlalchemy import Connection, bindparam, select, update
from sqlalchemy import Row as Found

from app.core.errors import Conflict, Superseded
from app.core.types import DocumentDraft, Library, Metadata, WriteResult
from app.storage.catalog import statements
from app.storage.catalog.changes import Claim
from app.storage.catalog.labels import UNLABELLED, Held, LabelWriter, held_by, pack_values
from app.storage.catalog.rows import (
    author_keys,
    count_document,
    count_inserted,
    delete_chunk_vectors,
    pack_ids,
    pack_strings,
    repoint_duplicates,
    search_key,
    strings_from,
)
from app.storage.catalog.schema import (
    LAST_REVISION,
    OF_REVISION,
    chunks,
    documents,
    key_of,
    libraries,
    passage_codes,
    put,
    revisions,
    rows_of,
    vectors,
)
from app.storage.catalog.statements import RowValues as Row
from app.storage.catalog.statements import SqlDialect
from app.storage.catalog.texts import (
    pack_corrections,
    pack_outline,
    pack_pages,
    pack_texts,
    unpack_text,
)
from app.storage.catalog.uploads import WHOLE_LIBRARY, accepted_at, deletions_of
from app.storage.catalog.vectors import store_vectors
from app.storage.files.durable import utc_now


@dataclass(frozen=True, slots=True)
class _Stored:
    """A draft that became a revision."""

    doc: int
    draft: DocumentDraft
    first_chunk_id: int
    facts: Metadata
    """Those of the draft, or those that a person or its sender corrected."""
    revision: int
    superseded: int | None
    """The revision that was live before, if any."""
    accepted: int
    """The number of the job that accepted its bytes."""
    labels: Held
    left_out: tuple[str, ...]
    """Keys of own metadata whose values were of another kind than the key."""


@dataclass(slots=True)
class Written:
    """The result of a batch."""

    results: list[WriteResult] = field(default_factory=list)
    gone: dict[Library, list[int]] = field(default_factory=dict)
    """Chunk ids that left the projections."""
    claims: dict[Library, Claim | None] = field(default_factory=dict)
    """Libraries that have a change; with its claim where several processes bring words."""
    kept: set[Library] = field(default_factory=set)
    """Libraries of which chunks have the vectors of the revision before."""


class _Made(NamedTuple):
    """What the model has made of a text; the code is missing where none is wanted."""

    vector: bytes
    sentences: bytes | None
    tokens: bytes | None


def distinct_runs(drafts: Sequence[DocumentDraft]) -> Iterator[list[int]]:
    """Yield positions in order, in runs without a repeated document."""
    run: list[int] = []
    seen: set[tuple[Library, str]] = set()
    for i, draft in enumerate(drafts):
        key = (draft.library, draft.source_key)
        if key in seen:
            yield run
            run, seen = [], set()
        run.append(i)
        seen.add(key)
    if run:
        yield run


_FIELDS = (
    "source_key doc_id doc revision state sha256 source_revision corrected title authors"
    " year language duplicate_of tags metadata accepted"
).split()
_CURRENT = select(*(documents.c[name] for name in _FIELDS)).where(
    documents.c.library == bindparam("of"),
    documents.c.source_key.in_(bindparam("keys", expanding=True)),
)

_MADE = (
    select(
        chunks.c.start,
        chunks.c.end,
        vectors.c.vector,
        passage_codes.c.sentences,
        passage_codes.c.tokens,
    )
    .join(documents, OF_REVISION)
    .join(libraries, libraries.c.library == documents.c.library)
    .join(vectors, vectors.c.key == key_of(libraries.c.live_build))
    .outerjoin(passage_codes, passage_codes.c.chunk_id == chunks.c.chunk_id)
    .where(documents.c.doc == bindparam("of"))
)
_TEXT = (
    select(revisions.c.text)
    .join(documents, LAST_REVISION)
    .where(documents.c.doc == bindparam("of"))
)
_OF_DRAFT = attrgetter(*statements.OF_DRAFT)

Current = Mapping[tuple[Library, str], Found[*tuple[Any, ...]]]
"""The documents that are there, live or deleted, by library and id."""


def _is_same(draft: DocumentDraft, live: Found[*tuple[Any, ...]]) -> bool:
    """Return whether the live revision is of the same bytes and edition, and will do."""
    known = (live.sha256, live.source_revision) == (draft.sha256, draft.source_revision)
    return known and not draft.again


class RevisionBatch:
    """Writes drafts in one open transaction; used once."""

    def __init__(
        self, connection: Connection, dialect: SqlDialect, *, leave_out: bool = False
    ) -> None:
        """Work on `connection`, whose transaction the caller commits.

        `leave_out`: drafts of documents that were deleted or replaced since are left out; else they
        are refused.
        """
        self._sql = connection
        self._dialect = dialect
        self._leave_out = leave_out
        self._accepted: dict[str, int] = {}
        """The number of each job."""
        self._now = utc_now()
        self._written = Written()
        self._labels = LabelWriter(connection, dialect)

    def write(self, drafts: Sequence[DocumentDraft]) -> Written:
        """Insert revisions for drafts that differ from the live one.

        Args:
            drafts: In order; a document may come twice, the last one wins.

        Raises:
            Conflict: A source key belongs to another doc_id.
            Superseded: A document was deleted or replaced after its job was accepted and is not to
                be left out, or its library was cleared.
        """
        for job_id in {draft.job_id for draft in drafts}:
            self._accepted[job_id] = accepted_at(self._sql, job_id)
        self._next_doc = self._dialect.last_id(self._sql, documents) + 1
        self._next_chunk = self._dialect.last_id(self._sql, chunks) + 1
        for run in distinct_runs(drafts):
            self._write_run([drafts[i] for i in run])
        self._dialect.keep_last_id(self._sql, documents, self._next_doc - 1)
        self._dialect.keep_last_id(self._sql, chunks, self._next_chunk - 1)
        return self._written

    def _write_run(self, drafts: list[DocumentDraft]) -> None:
        current = self._current(drafts)
        stored: list[_Stored] = []
        results: list[tuple[DocumentDraft, WriteResult]] = []
        for draft in self._wanted(drafts, current):
            old = current.get((draft.library, draft.doc_id))
            live = old if old and old.state == "live" else None
            same = live is not None and _is_same(draft, live)
            before = held_by(live) if live else UNLABELLED
            labels, left_out = self._labels.merge(before, draft.labels)
            accepted = self._accepted_of(draft, live)
            if live and same:
                if labels != before:
                    self._labels.update(draft.library, {live.doc: labels})
                result = WriteResult(
                    draft.doc_id, live.revision, "unchanged", live.duplicate_of, left_out
                )
                results.append((draft, result))
                continue
            facts = draft.metadata
            if old and old.corrected:
                authors = strings_from(old.authors)
                facts = replace(
                    facts, title=old.title, authors=authors, year=old.year, language=old.language
                )
                facts = replace(facts, **draft.labels.facts)
            item = _Stored(
                old.doc if old else self._next_doc,
                draft,
                self._next_chunk,
                facts,
                old.revision + 1 if old else 1,
                live.revision if live else None,
                accepted,
                labels,
                left_out,
            )
            stored.append(item)
            self._next_doc += old is None
            self._next_chunk += len(draft.chunks)
            result = WriteResult(
                draft.doc_id, item.revision, "replaced" if live else "indexed", left_out=left_out
            )
            results.append((draft, result))
        removed: dict[int, list[int]] = {}
        made: dict[int, Mapping[str, _Made]] = {}
        for item in stored:
            if item.superseded is not None:
                made[item.doc] = self._made_of(item.doc)
                removed[item.doc] = gone = delete_chunk_vectors(self._sql, item.doc)
                self._written.gone.setdefault(item.draft.library, []).extend(gone)
                count_document(self._sql, item.doc, -1)
        written = {item.doc for item in stored}
        for old in current.values():
            if old.state != "live" and old.doc in written:
                # Deleted within its grace: it left the counters and the projections then, its
                # vectors leave the catalog now.
                delete_chunk_vectors(self._sql, old.doc)
        self._insert(stored, removed)
        self._keep_vectors(stored, made)
        for library in {item.draft.library for item in stored}:
            before_of = {old.doc: held_by(old) for (of, _), old in current.items() if of is library}
            changed = {
                item.doc: item.labels
                for item in stored
                if item.draft.library is library
                and item.labels != before_of.get(item.doc, UNLABELLED)
            }
            self._labels.put_rows(library, changed)
        self._finish(results, stored, current)

    def _made_of(self, doc: int) -> Mapping[str, _Made]:
        """Return what the live build has of a document's live revision, by the text of chunks."""
        rows = self._sql.execute(_MADE, {"of": doc}).all()
        if not rows:
            return {}
        text = unpack_text(self._sql.execute(_TEXT, {"of": doc}).scalar_one())
        return {text[start:end]: _Made(*of) for start, end, *of in rows}

    def _keep_vectors(
        self, stored: Sequence[_Stored], made: Mapping[int, Mapping[str, _Made]]
    ) -> None:
        """Give chunks whose text the revision before had its vectors and codes.

        Both are made of the text alone: not of the heading that it stands under.
        """
        for library in {item.draft.library for item in stored}:
            found = {
                item.first_chunk_id + at: held
                for item in stored
                if item.draft.library is library and (of := made.get(item.doc))
                for at, span in enumerate(item.draft.chunks)
                if (held := of.get(item.draft.text[span.start : span.end]))
            }
            if not found:
                continue
            store_vectors(self._sql, library, {at: held.vector for at, held in found.items()})
            codes = [
                {"chunk_id": at, "sentences": held.sentences, "tokens": held.tokens}
                for at, held in found.items()
                if held.sentences is not None
            ]
            put(self._sql, passage_codes, codes)
            self._written.kept.add(library)

    def _wanted(self, drafts: list[DocumentDraft], current: Current) -> Iterator[DocumentDraft]:
        """Yield drafts that no later deletion and no later upload of their document keeps out."""
        deleted = {
            library: deletions_of(
                self._sql, library, [one.source_key for one in drafts if one.library is library]
            )
            for library in {draft.library for draft in drafts}
        }
        for draft in drafts:
            old = current.get((draft.library, draft.doc_id))
            live = old if old and old.state == "live" else None
            accepted, upto = self._accepted[draft.job_id], deleted[draft.library]
            wanted, cleared = True, False
            if draft.reread:
                wanted = live is not None and live.sha256 == draft.sha256
            elif draft.job_id:
                cleared = accepted <= upto.get(WHOLE_LIBRARY, -1)
                wanted = accepted > upto.get(draft.source_key, -1) and not cleared
                wanted &= live is None or accepted >= live.accepted
            if live is not None and draft.follows is not None and live.sha256 == draft.sha256:
                wanted &= live.revision == draft.follows or _is_same(draft, live)
            if wanted:
                yield draft
            elif cleared or not self._leave_out:
                raise Superseded(
                    f"{draft.source_key!r} was deleted or replaced after it was accepted; send it"
                    " again"
                )

    def _accepted_of(self, draft: DocumentDraft, live: Found[*tuple[Any, ...]] | None) -> int:
        """Return the number of the job that accepted a draft's bytes, noted where they are live."""
        accepted = self._accepted[draft.job_id]
        if live is None or live.sha256 != draft.sha256:
            return accepted
        if draft.reread or accepted <= live.accepted:
            return int(live.accepted)
        taken = update(documents).where(documents.c.doc == live.doc)
        self._sql.execute(taken.values(accepted=accepted))
        return accepted

    def _current(self, drafts: list[DocumentDraft]) -> Current:
        found: dict[tuple[Library, str], Found[*tuple[Any, ...]]] = {}
        for library in {draft.library for draft in drafts}:
            keys = {draft.source_key: draft.doc_id for draft in drafts if draft.library is library}
            rows = rows_of(self._sql, _CURRENT, "keys", list(keys), of=library.value)
            for row in rows:
                if keys[row.source_key] != row.doc_id:
                    raise Conflict(
                        f"source key {row.source_key!r} belongs to document {row.doc_id!r}, not"
                        f" {keys[row.source_key]!r}: delete that first"
                    )
                found[library, row.doc_id] = row
        return found

    def _insert(self, stored: list[_Stored], removed: dict[int, list[int]]) -> None:
        document_rows: list[Row] = []
        revision_rows: list[Row] = []
        chunk_rows: list[Row] = []
        change_rows: list[Row] = []
        frames = pack_texts([item.draft.text for item in stored])
        for item, frame in zip(stored, frames, strict=True):
            draft, doc, revision, size = item.draft, item.doc, item.revision, len(item.draft.text)
            document_rows.append(self._document_row(item))
            revision_rows.append(
                (
                    doc,
                    revision,
                    draft.sha256,
                    draft.source_revision,
                    int(draft.has_original),
                    size,
                    pack_pages(draft.pages),
                    frame,
                    self._now,
                    pack_outline(draft.headings),
                    pack_corrections(draft.corrections),
                )
            )
            chunk_rows.extend(
                (item.first_chunk_id + i, doc, revision, *span)
                for i, span in enumerate(draft.chunks)
            )
            gone = removed.get(doc)
            change_rows.append(
                (draft.library.value, "write", doc, revision, pack_ids(gone) if gone else None)
            )
        insert = self._dialect.insert_rows
        insert(self._sql, statements.INSERT_DOCUMENT, document_rows, statements.REPLACING)
        insert(self._sql, statements.INSERT_REVISION, revision_rows)
        insert(self._sql, statements.INSERT_CHANGE, change_rows)
        insert(self._sql, statements.INSERT_CHUNK, chunk_rows)

    def _document_row(self, item: _Stored) -> tuple[object, ...]:
        """Return the values of INSERT_DOCUMENT, in its order."""
        draft, facts, (tags, metadata) = item.draft, item.facts, item.labels
        own = item.doc, draft.library.value, item.revision, "live", *_OF_DRAFT(draft)
        authors = pack_strings(facts.authors), author_keys(facts.authors)
        about = facts.title, *authors, facts.year, facts.language, draft.metadata.arxiv_id
        sizes = len(draft.text), len(draft.pages), len(draft.text.encode()), len(draft.chunks)
        labels = pack_strings(tags), pack_values(metadata)
        flags = pack_strings(draft.flags), int(draft.has_original)
        other_titles = ""  # its source names them anew, and so its words are written with them
        key, at = search_key(facts.title, draft.filename), (self._now, self._now)
        return (
            *own,
            *about,
            key,
            *sizes,
            0,
            int(bool(draft.labels.facts)),
            0,
            *flags,
            *labels,
            other_titles,
            item.accepted,
            *at,
        )

    def _finish(
        self,
        results: list[tuple[DocumentDraft, WriteResult]],
        stored: list[_Stored],
        current: Current,
    ) -> None:
        count_inserted(self._sql, [item.draft for item in stored])
        duplicates: dict[tuple[Library, str], str] = {}
        for library in {item.draft.library for item in stored}:
            shas = {item.draft.sha256 for item in stored if item.draft.library is library}
            shas |= {old.sha256 for (of, _), old in current.items() if of is library}
            duplicates.update(
                ((library, doc_id), first)
                for doc_id, first in repoint_duplicates(self._sql, library, shas).items()
            )
            self._written.claims[library] = None
        for draft, result in results:
            first = duplicates.get((draft.library, draft.doc_id), result.duplicate_of)
            self._written.results.append(replace(result, duplicate_of=first))
