"""Correct the text of a document: read its bytes once more, with what people mended in it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from app.core.corrections import Edit, with_edits
from app.core.errors import Conflict, NoOriginal, NotFound, Superseded, class_of
from app.core.types import Correction, Document, Job, Library
from app.jobs.ingest import OCR, Collecting, raw_again
from app.storage.files.durable import utc_now


@dataclass(frozen=True, slots=True)
class Corrections:
    """Makes another revision of the same bytes for each change; the original is only read."""

    parts: Collecting
    most_characters: int
    """Of a text."""

    def add(
        self, library: Library, doc_id: str, revision: int, edits: Sequence[Edit], author: str
    ) -> Document:
        """Change words of a revision's text, which is the live one.

        Returns:
            The document; its words are found, vectors follow.

        Raises:
            Conflict: The revision is not live any more, or the document is being read.
            InvalidInput, TooLarge: A span or text cannot be taken; see `with_edits`.
            NoOriginal: Its bytes were not kept.
            NotFound: No such document.
        """
        document = self._live(library, doc_id, revision)
        catalog = self.parts.catalog
        found = with_edits(
            catalog.text(library, doc_id, revision=revision).text,
            catalog.pages(library, doc_id, revision),
            catalog.corrections(library, doc_id, revision),
            edits,
            author,
            utc_now(),
            self.most_characters,
        )
        return self._write(document, found)

    def undo(self, library: Library, doc_id: str, revision: int, number: int) -> Document:
        """Take a correction back, so that what was read stands there again.

        Args:
            library: Whose document.
            doc_id: Its id.
            revision: The live one.
            number: Of the correction in the list of that revision, from 1.

        Raises:
            Conflict: The revision is not live any more, or the document is being read.
            NotFound: No such document or correction.
        """
        document = self._live(library, doc_id, revision)
        held = self.parts.catalog.corrections(library, doc_id, revision)
        if not 1 <= number <= len(held):
            raise NotFound(
                f"revision {revision} of {document.title!r} has no correction {number}; it has"
                f" {len(held)}"
            )
        return self._write(document, held[: number - 1] + held[number:])

    def _live(self, library: Library, doc_id: str, revision: int) -> Document:
        document = self.parts.catalog.document(library, doc_id)
        if document.revision != revision:
            raise _not_live(document, revision)
        if not document.has_original:
            raise NoOriginal(
                f"{document.title!r} was kept as text, without a file that could be read again;"
                " correct it where it comes from"
            )
        if any(job.payload.get("doc_id") == doc_id for job in self._recognising(library)):
            raise Conflict(
                f"{document.title!r} is being read by OCR: wait until that job is done, then"
                " correct what it has read"
            )
        return document

    def _recognising(self, library: Library) -> Sequence[Job]:
        return list(self.parts.runner.unfinished(OCR, library))

    def _write(self, document: Document, corrections: tuple[Correction, ...]) -> Document:
        library, doc_id = document.library, document.doc_id
        raw = raw_again(document, self.parts.original(document.sha256), job_id="")
        raw = replace(raw, corrections=corrections, again=True)
        (outcome,) = self.parts.pipeline_of(library).ingest(library, [raw])
        if outcome.code == Superseded.code:
            raise _not_live(self.parts.catalog.document(library, doc_id), document.revision)
        if outcome.code is not None:
            raise class_of(outcome.code)(outcome.reason or "it could not be read again")
        self.parts.later(library)
        return self.parts.catalog.document(library, doc_id)


def _not_live(document: Document, revision: int) -> Conflict:
    return Conflict(
        f"revision {revision} of {document.title!r} is not the live one, {document.revision} is:"
        " take its text and correct that"
    )
