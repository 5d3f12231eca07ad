"""Catalog rows to domain objects and back."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, cast

import numpy as np
import numpy.typing as npt
from sqlalchemy import select

from app.core.types import Document, FloatArray, Library
from app.core.vectors import l2_normalise
from app.index.catalog.schema import BUILD_SHIFT, documents

_DOCUMENT = (
    "doc_id library source_key revision sha256 title authors year type state characters pages"
    " chunks embedded duplicate_of"
    " source_url licence added_at updated_at filename arxiv_id has_original flags language"
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
    *rest, has_original, flags, language = rest
    packed = strings_from(authors), *rest, bool(has_original), strings_from(flags), language
    return Document(doc_id, Library(library), source_key, revision, sha256, title, *packed)


def strings_from(packed: str) -> tuple[str, ...]:
    """Return a JSON list of strings as a tuple."""
    return () if packed == "[]" else tuple(json.loads(packed))


def pack_strings(values: Sequence[str]) -> str:
    """Return strings as a JSON list."""
    return json.dumps(list(values), ensure_ascii=False) if values else "[]"


def pack_ids(ids: Sequence[int] | IdArray) -> bytes:
    """Return chunk ids as little-endian int64."""
    return np.asarray(ids, dtype="<i8").tobytes()


def unpack_ids(packed: bytes | None) -> list[int]:
    """Return the chunk ids that `pack_ids` wrote."""
    return [] if not packed else cast("list[int]", np.frombuffer(packed, dtype="<i8").tolist())


def vector_key(build: int, chunk_id: int) -> int:
    """Return the primary key of a chunk's vector in a build."""
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
    if (
        len(whole) == len(blobs) and not endless.any()
    ):  # nearly always: asked first, because it is asked of every vector
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
