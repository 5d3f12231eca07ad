"""Catalog rows to domain objects and back."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
import numpy.typing as npt
from sqlalchemy import Connection, bindparam, delete, insert, select, update

from app.core.types import (
    SAMPLE_PREFIX,
    Document,
    DocumentDraft,
    Fingerprint,
    FloatArray,
    Library,
    Value,
)
from app.core.vectors import l2_normalise
from app.storage.catalog.schema import (
    BUILD_SHIFT,
    OF_REVISION,
    add,
    builds,
    changes,
    chunks,
    documents,
    key_of,
    libraries,
    passage_codes,
    rows_of,
    type_counts,
    vectors,
)

_DOCUMENT = (
    "doc_id library source_key revision sha256 title authors year type state characters pages"
    " chunks embedded duplicate_of source_url licence added_at updated_at filename arxiv_id"
    " has_original flags language other_titles tags metadata"
).split()
DOCUMENTS = select(*(documents.c[name] for name in _DOCUMENT))
DOCUMENT_COLUMNS = ", ".join(f"d.{name}" for name in _DOCUMENT)
"""In the order of `app.core.types.Document`'s fields, for `document_from`; as a query and as
SQL."""

CHUNK_COLUMNS = "c.chunk_id, c.revision, c.ordinal, c.start, c.end, c.section, c.page"

IdArray = npt.NDArray[np.int64]


def document_from(row: Sequence[Any]) -> Document:
    """Return the document of a row of DOCUMENT_COLUMNS."""
    doc_id, library, source_key, revision, sha256, title, authors, *rest = row
    *rest, has_original, flags, language, others, tags, metadata = rest
    packed = strings_from(authors), *rest, bool(has_original), strings_from(flags), language, others
    labels = strings_from(tags), values_from(metadata), doc_id.startswith(SAMPLE_PREFIX)
    facts = (doc_id, Library(library), source_key, revision, sha256, title, *packed, *labels)
    return Document(*facts)


def strings_from(packed: str) -> tuple[str, ...]:
    return () if packed == "[]" else tuple(json.loads(packed))


def values_from(packed: str) -> dict[str, Value]:
    return {} if packed == "{}" else json.loads(packed)


def pack_strings(values: Sequence[str]) -> str:
    return json.dumps(list(values), ensure_ascii=False) if values else "[]"


def pack_ids(ids: Sequence[int] | IdArray) -> bytes:
    """Return chunk ids as little-endian int64."""
    return np.asarray(ids, dtype="<i8").tobytes()


def unpack_ids(packed: bytes | None) -> list[int]:
    """Return the chunk ids that `pack_ids` wrote."""
    return [] if not packed else cast("list[int]", np.frombuffer(packed, dtype="<i8").tolist())


def vector_key(build: int, chunk_id: int) -> int:
    return build << BUILD_SHIFT | chunk_id


def pack_vector(row: FloatArray) -> bytes:
    """Return a row as little-endian float16."""
    return row.astype("<f2").tobytes()


_EXPONENT = 0x7C00
"""The exponent's bits of a float16; all of them set mean infinity or NaN (IEEE 754-2019, 3.4)."""


def usable(blobs: Sequence[bytes], dimension: int) -> list[bool]:
    """Return which blobs are rows of `dimension` finite float16 numbers.

    Any other counts as a missing vector.
    """
    whole = [blob for blob in blobs if len(blob) == 2 * dimension]
    endless = (np.frombuffer(b"".join(whole), dtype="<u2") & _EXPONENT) == _EXPONENT
    if len(whole) == len(blobs) and not endless.any():
        # Nearly always: asked first, because it is asked of every vector.
        return [True] * len(blobs)
    finite = iter((~endless.reshape(len(whole), dimension).any(axis=1)).tolist())
    return [len(blob) == 2 * dimension and next(finite) for blob in blobs]


def unpack_vectors(blobs: Sequence[bytes], dimension: int) -> FloatArray:
    """Return float16 blobs as float32 `[n, dimension]`, rows scaled back to norm 1.

    Every projection gets exactly these rows, so that a rebuilt or imported index ranks as the first
    one did.
    """
    if not blobs:
        return np.empty((0, dimension), dtype=np.float32)
    halves = np.frombuffer(b"".join(blobs), dtype="<f2").reshape(len(blobs), dimension)
    return l2_normalise(halves.astype(np.float32))


def author_key(name: str) -> str:
    """Return a name as filters compare it: case-folded, single spaces."""
    return " ".join(name.casefold().split())


def author_keys(names: Sequence[str]) -> str:
    """Return the keys of names, one per line."""
    return "\n".join(map(author_key, names))


# Define the facts given to projections: indexed fields, filter values.


@dataclass(frozen=True, slots=True)
class LexicalDocument:
    """A document's indexed fields and live chunks: (chunk_id, section, text)."""

    doc: int
    doc_id: str
    title: str
    """With its other titles and the name of its file."""
    authors: tuple[str, ...]
    year: int | None
    type: str
    chunks: Sequence[tuple[int, str, str]]
    language: str = ""
    """By whose rules the words are stemmed; empty: English."""


@dataclass(frozen=True, slots=True)
class DocumentFacts:
    """A document's values for filters."""

    doc: int
    doc_id: str
    type: str
    year: int | None
    author_keys: str
    """One a line."""


@dataclass(frozen=True, slots=True)
class Build:
    """A build of a library's vectors, and what they were made with."""

    number: int
    library: Library
    fingerprint8: str
    fingerprint: Fingerprint

    @property
    def dimension(self) -> int:
        return self.fingerprint.dimension


@dataclass(frozen=True, slots=True)
class VectorRows:
    """Stored vectors of live chunks with what filters ask of them, in chunk order."""

    chunk_ids: list[int]
    rows: FloatArray
    """float32 `[n, dim]`, norm 1."""
    facts: list[tuple[int, str]]
    """The key of each row's document, and its section."""
    documents: list[DocumentFacts]


# Keep counters, duplicates and changes true in every catalog transaction.

_OF = documents.c.doc == bindparam("of")
_CHUNKS = select(chunks.c.chunk_id).join(documents, OF_REVISION).where(_OF)
_REMOVE_CODES = delete(passage_codes).where(passage_codes.c.chunk_id.in_(_CHUNKS))
_KEYS = (
    select(key_of(builds.c.build))
    .select_from(chunks)
    .join(documents, OF_REVISION)
    .join(builds, builds.c.library == documents.c.library)
)
_REMOVE_VECTORS = delete(vectors).where(vectors.c.key.in_(_KEYS.where(_OF)))
_COUNTED = select(
    documents.c.library,
    documents.c.type,
    documents.c.chunks,
    documents.c.embedded,
    documents.c.bytes,
).where(_OF)
_ADD_CHANGE = insert(changes)
_SAME_CONTENT = (
    select(documents.c.sha256, documents.c.doc, documents.c.doc_id, documents.c.duplicate_of)
    .where(
        documents.c.library == bindparam("of"),
        documents.c.state == "live",
        documents.c.sha256.in_(bindparam("shas", expanding=True)),
    )
    .order_by(documents.c.doc)
)
_REPOINT = update(documents).where(_OF).values(duplicate_of=bindparam("target"))


def search_key(title: str, filename: str) -> str:
    """Return what `Catalog.documents` looks for a query in."""
    return f"{title}\n{filename}".casefold()


def live_chunk_ids(sql: Connection, doc: int) -> list[int]:
    return list(sql.execute(_CHUNKS, {"of": doc}).scalars())


def delete_chunk_vectors(sql: Connection, doc: int) -> list[int]:
    """Remove vectors and codes of a live revision in every build; return chunk ids."""
    ids = live_chunk_ids(sql, doc)
    sql.execute(_REMOVE_CODES, {"of": doc})
    sql.execute(_REMOVE_VECTORS, {"of": doc})
    return ids


def count_document(sql: Connection, doc: int, sign: int) -> None:
    """Add (1) or take (-1) a document as it stands to or from its library's counters."""
    library, kind, chunks, embedded, size = sql.execute(_COUNTED, {"of": doc}).one()
    add_counts(sql, Library(library), sign, sign * chunks, sign * embedded, sign * size)
    add_type(sql, Library(library), kind, sign)


def count_inserted(sql: Connection, written: Sequence[DocumentDraft]) -> None:
    for library in {draft.library for draft in written}:
        drafts = [draft for draft in written if draft.library is library]
        size = sum(len(draft.text.encode()) for draft in drafts)
        add_counts(sql, library, len(drafts), sum(len(draft.chunks) for draft in drafts), 0, size)
        for kind, n in Counter(draft.type for draft in drafts).items():
            add_type(sql, library, kind, n)


def add_counts(
    sql: Connection, library: Library, documents: int, chunks: int, embedded: int, size_bytes: int
) -> None:
    numbers = {"documents": documents, "chunks": chunks, "embedded": embedded, "bytes": size_bytes}
    add(sql, libraries, {"library": library.value, **numbers})


def add_type(sql: Connection, library: Library, kind: str, documents: int) -> None:
    add(sql, type_counts, {"library": library.value, "type": kind, "documents": documents})


def add_change(
    sql: Connection, library: Library, kind: str, doc: int, revision: int, ids: Sequence[int] | None
) -> None:
    of = {"library": library.value, "kind": kind, "doc": doc, "revision": revision}
    sql.execute(_ADD_CHANGE, of | {"ids": pack_ids(ids) if ids else None})


def repoint_duplicates(sql: Connection, library: Library, shas: set[str]) -> dict[str, str]:
    """Make each content's first live document the original, the others duplicates.

    Return the duplicates' originals.
    """
    rows = list(rows_of(sql, _SAME_CONTENT, "shas", sorted(shas), of=library.value))
    firsts: dict[str, str] = {}
    duplicates: dict[str, str] = {}
    for sha256, doc, doc_id, duplicate_of in rows:
        first = firsts.setdefault(sha256, doc_id)
        target = None if first == doc_id else first
        if target is not None:
            duplicates[doc_id] = target
        if target != duplicate_of:
            sql.execute(_REPOINT, {"of": doc, "target": target})
    return duplicates
