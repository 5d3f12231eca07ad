"""Passages without an index, and a retriever that ranks them by shared words."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace

from app.core.errors import NotFound
from app.core.ids import document_id
from app.core.text import tokenise
from app.core.trace import Trace
from app.core.types import (
    Chunk,
    Document,
    Heading,
    Hit,
    Library,
    LibraryCounts,
    Notice,
    Passage,
    Signals,
    TextSpan,
)
from app.retrieval.request import Retrieval, SearchRequest

_AT = "2026-01-01T00:00:00Z"
_STOP = frozenset(
    tokenise(
        "a an and are as at be by did do does for from had has have how in is it its of on or that"
        " the this to was what when where"
        " which who whom why will with we you your i me my"
    )
)


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


class WordRetriever:
    """Ranks given passages by the share of the query's content words they hold; records every request."""

    def __init__(
        self,
        passages: Sequence[Passage] = (),
        *,
        notices: tuple[Notice, ...] = (),
        fallback: bool = True,
    ) -> None:
        self.passages = list(passages)
        self.notices = notices
        self.fallback = fallback
        """Whether the best of the rest is returned, marked, when nothing shares half of the
        query's words."""
        self.requests: list[SearchRequest] = []

    @property
    def queries(self) -> list[str]:
        """The texts that reached the index, in order."""
        return [request.text for request in self.requests]

    def retrieve(self, request: SearchRequest, trace: Trace) -> Retrieval:
        self.requests.append(request)
        with trace.stage("search", len(self.passages)) as stage:
            hits = self._ranked(request)
            passed = [hit for hit in hits if hit.score >= 0.5]
            stage.n_out = len(passed)
        limit = request.top_k or 5
        if request.keep_weak:
            return Retrieval(tuple(hits[:limit]), self.notices, hits[0].score if hits else 0.0)
        if passed:
            return Retrieval(tuple(passed[:limit]), self.notices, passed[0].score)
        if not self.fallback or not hits:
            return Retrieval((), self.notices)
        weak = tuple(replace(hit, fallback=True, band="weak") for hit in hits[:3])
        return Retrieval(
            weak,
            (*self.notices, Notice("fallback_used", "Nothing passed the relevance cutoff.")),
            0.1,
            fallback=True,
        )

    def _ranked(self, request: SearchRequest) -> list[Hit]:
        asked = set(tokenise(request.text)) - _STOP
        doc_ids = request.filters.doc_ids
        hits = []
        for found in self.passages:
            if found.chunk.library is not request.library or (
                doc_ids and found.chunk.doc_id not in doc_ids
            ):
                continue
            share = len(asked & set(tokenise(found.chunk.text))) / len(asked) if asked else 0.0
            signals = Signals(dense=1.0 - share, bm25=share * 10, overlap=share)
            hits.append(Hit(found, share, signals, "strong" if share >= 0.5 else "weak"))
        return sorted(hits, key=lambda hit: -hit.score)


class PassageCatalog:
    """A Catalog over given passages; changes of the list are seen at once."""

    def moment(self) -> AbstractContextManager[None]:
        return nullcontext()

    def outlines(
        self, library: Library, named: Collection[tuple[str, int]]
    ) -> Mapping[tuple[str, int], tuple[Heading, ...]]:
        return {}

    def __init__(self, passages: list[Passage]) -> None:
        self._passages = passages

    def _of(self, library: Library) -> list[Passage]:
        return [found for found in self._passages if found.chunk.library is library]

    def passages(self, library: Library, chunk_ids: Sequence[int]) -> dict[int, Passage]:
        return {
            found.chunk.chunk_id: found
            for found in self._of(library)
            if found.chunk.chunk_id in set(chunk_ids)
        }

    def document(self, library: Library, doc_id: str) -> Document:
        for found in self._of(library):
            if found.document.doc_id == doc_id:
                return found.document
        raise NotFound(f"no document {doc_id!r}")

    def documents(
        self, library: Library, query: str = "", cursor: str | None = None, limit: int = 50
    ) -> tuple[list[Document], str | None]:
        distinct = {
            found.document.doc_id: found.document
            for found in self._of(library)
            if query.lower() in found.document.title.lower()
        }
        start = int(cursor or 0)
        page = list(distinct.values())[start : start + limit]
        return page, str(start + limit) if start + limit < len(distinct) else None

    def chunks(self, library: Library, doc_id: str, revision: int | None = None) -> list[Chunk]:
        return [found.chunk for found in self._of(library) if found.chunk.doc_id == doc_id]

    def text(
        self,
        library: Library,
        doc_id: str,
        start: int = 0,
        end: int | None = None,
        revision: int | None = None,
    ) -> TextSpan:
        chunks = self.chunks(library, doc_id)
        whole = [" "] * max(chunk.end for chunk in chunks)
        for chunk in chunks:
            whole[chunk.start : chunk.end] = chunk.text
        stop = len(whole) if end is None else end
        return TextSpan("".join(whole[start:stop]), start, stop, len(whole), revision or 1)

    def counts(self, library: Library) -> LibraryCounts:
        found = self._of(library)
        return LibraryCounts(len({one.chunk.doc_id for one in found}), len(found), len(found), 0)
