"""Passages as JSON: a hit of a search, a numbered source of an answer."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextvars import ContextVar
from typing import Annotated, Any, Self, cast
from urllib.parse import quote_plus

from pydantic import BaseModel, BeforeValidator, ConfigDict

from app.core.links import web_link
from app.core.types import Band, Evidence, Hit, Library, Signals

PREVIEW_CHARACTERS = 1000
"""A chunk of the default size is shown whole: a client can judge it without a second request."""

WebLink = Annotated[str | None, BeforeValidator(web_link)]
"""The address that a document names, where a browser opens it on the web; null for anything
else."""

root_path: ContextVar[str] = ContextVar("root_path", default="")
"""The path under which a proxy serves the page of a request (ROOT_PATH)."""


class JsonRecord(BaseModel):
    """A JSON object; field docstrings become the descriptions of OpenAPI."""

    model_config = ConfigDict(
        frozen=True,
        use_attribute_docstrings=True,
        populate_by_name=True,
        serialize_by_alias=True,
        json_schema_serialization_defaults_required=True,
    )

    @classmethod
    def trusted(cls, values: Mapping[str, object]) -> Self:
        """Return an object of values that this program made, without checking them again."""
        make = cast("Callable[..., Self]", cls.model_construct)
        return make(**values)

    def json_values(self) -> dict[str, Any]:
        """Return the object as plain JSON values."""
        return self.model_dump(mode="json")


class PassageRecord(JsonRecord):
    """A passage of a stored revision; offsets are Unicode code points."""

    doc_id: str
    duplicate_of: str | None
    revision: int
    library: Library
    title: str
    sample: bool = False
    """The document came with the program."""
    authors: tuple[str, ...]
    year: int | None
    section: str
    page: int | None
    chunk_index: int
    start: int
    """First character."""
    end: int
    """One past the last character."""
    band: Band | None
    score: float
    """Order of this reply's passages; higher is better, not comparable between questions."""
    signals: Signals
    source_url: WebLink
    view_url: str
    """Where the page shows the passage highlighted, relative to the root of the server."""
    flags: tuple[str, ...] = ()
    """Findings at ingest a reader should see, of the whole document; absent from old answers."""

    @classmethod
    def of_hit(cls, hit: Hit, **more: object) -> Self:
        """Return the record of a hit; `more` holds the fields that a subclass adds."""
        chunk, document = hit.passage.chunk, hit.passage.document
        values: dict[str, object] = {
            "doc_id": document.doc_id,
            "duplicate_of": document.duplicate_of,
            "revision": chunk.revision,
            "library": chunk.library,
            "title": document.title,
            "sample": document.is_sample,
            "authors": document.authors,
            "year": document.year,
            "section": chunk.section,
            "page": chunk.page,
            "chunk_index": chunk.ordinal,
            "start": chunk.start,
            "end": chunk.end,
            "band": hit.band,
            "score": round(hit.score, 6),
            "signals": _rounded_signals(hit.signals),
            "source_url": web_link(document.source_url),
            "view_url": view_url(hit),
            "flags": document.flags,
        }
        values.update(more)
        return cls.trusted(values)


class Source(PassageRecord):
    """A numbered passage of an answer."""

    n: int
    distance: float | None
    """Cosine distance, 0 to 2."""
    similarity: float | None
    """1 - distance."""
    preview: str
    licence: str | None

    @classmethod
    def of(cls, evidence: Evidence) -> Self:
        """Return the record of numbered evidence."""
        distance = evidence.hit.signals.dense
        return cls.of_hit(
            evidence.hit,
            n=evidence.n,
            distance=_rounded(distance),
            similarity=None if distance is None else _rounded(1.0 - distance),
            preview=_preview(evidence.hit.passage.chunk.text),
            licence=evidence.hit.passage.document.licence,
        )


def view_url(hit: Hit) -> str:
    """Return our page's address of the highlighted passage, relative to the host."""
    chunk = hit.passage.chunk
    where = (
        f"library={chunk.library.value}&doc={quote_plus(chunk.doc_id)}&revision={chunk.revision}"
    )
    return f"{root_path.get()}/?{where}&start={chunk.start}&end={chunk.end}"


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(float(value), 6)


def _rounded_signals(signals: Signals) -> Signals:
    return Signals(
        _rounded(signals.dense),
        _rounded(signals.bm25),
        _rounded(signals.overlap),
        _rounded(signals.sentence),
        _rounded(signals.rerank),
    )


def _preview(text: str) -> str:
    """Return a passage's beginning, cut at a word, with an ellipsis if cut."""
    if len(text) <= PREVIEW_CHARACTERS:
        return text
    cut = text[:PREVIEW_CHARACTERS]
    head = (
        cut.rsplit(maxsplit=1)[0] if cut[-1:].strip() and text[PREVIEW_CHARACTERS].strip() else cut
    )
    return f"{head.rstrip()}\u2026"
