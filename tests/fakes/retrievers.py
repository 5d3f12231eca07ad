"""Passages as a search returns them."""

from __future__ import annotations

from app.core.ids import document_id
from app.core.types import (
    Chunk,
    Document,
    Library,
    Passage,
)

_AT = "2026-01-01T00:00:00Z"


def passage(
    text: str,
    *,
    key: str = "doc",
    library: Library = Library.PAPERS,
    ordinal: int = 0,
    chunk_id: int | None = None,
    title: str | None = None,
    section: str = "body",
    start: int = 0,
    revision: int = 1,
    flags: tuple[str, ...] = (),
) -> Passage:
    """Return a live chunk with its document; the chunk's text is the document's text from `start` on."""
    doc_id = document_id(library, key)
    chunk = Chunk(
        chunk_id=chunk_id if chunk_id is not None else int(doc_id[:6], 16) * 100 + ordinal,
        doc_id=doc_id,
        library=library,
        revision=revision,
        ordinal=ordinal,
        start=start,
        end=start + len(text),
        section=section,
        page=None,
        text=text,
    )
    document = Document(
        doc_id=doc_id,
        library=library,
        source_key=key,
        revision=revision,
        sha256="0" * 64,
        title=title or key.replace("-", " ").title(),
        authors=("A. Writer",),
        year=2024,
        type="text",
        state="live",
        characters=start + len(text),
        pages=0,
        chunks=1,
        embedded=1,
        duplicate_of=None,
        source_url=None,
        licence=None,
        added_at=_AT,
        updated_at=_AT,
        filename=f"{key}.txt",
        flags=flags,
    )
    return Passage(chunk, document)
