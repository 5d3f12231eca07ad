"""What chromadb 1.5.x's local vector segment looks like on disk, read without its native code, which trusts these files blindly.

A segment directory holds, once it was persisted: `header.bin` (100 bytes), `data_level0.bin` (one fixed-size record per
element: count and ids of neighbours, the vector, the label), `length.bin` (float32 per element), `link_lists.bin` (per element a
byte count and the upper levels' neighbours) and `index_metadata.pickle` (labels to ids).

References:
    hnswlib, hnswalg.h: saveIndex, persistDirty; chroma rust/segment/src/local_hnsw.rs at 1.5.9; facts/chroma.md sections 1.1 and A.
"""

from __future__ import annotations

import io
import pickle
import struct
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from app.core.types import FloatArray

HEADER = struct.Struct("<iQQQQQQiIQQQdQ")
_BLOCK = 20_000
"""Elements checked at a time: 34 MB of 384 dimensions."""

_MAX_LEVEL = 64
"""hnswlib draws levels with probability 1/M each; 64 is beyond any index that fits a disk."""


@dataclass(frozen=True, slots=True)
class SegmentHeader:
    """The fields of header.bin; sizes and offsets in bytes."""

    elements: int
    capacity: int
    element_bytes: int
    label_offset: int
    vector_offset: int
    max_level: int
    entry_point: int
    links_upper: int
    links_level0: int
    links_offset: int

    @property
    def dimension(self) -> int:
        """Numbers per vector."""
        return (self.label_offset - self.vector_offset) // 4


class SegmentDamage(Exception):  # not an error of the product: a finding
    """Why a segment cannot be trusted."""


@dataclass(frozen=True, slots=True)
class Segment:
    """A structurally sound segment: its elements' ids, and where its vectors are."""

    path: Path
    header: SegmentHeader
    ids: list[str]
    """Per element; empty for one that is marked deleted."""

    def vectors(self, start: int, stop: int) -> FloatArray:
        """Return the vectors of elements `[start, stop)`: float32 `[n, dim]`."""
        records = _records(self.path, self.header, start, stop)
        block = records[:, self.header.vector_offset : self.header.label_offset]
        return np.ascontiguousarray(block).view("<f4").astype(np.float32, copy=False)


def read_segment(path: Path) -> Segment | None:
    """Return a segment whose files agree with each other; None when it was never persisted.

    Raises:
        SegmentDamage: They do not; the message says how.
    """
    if not (path / "index_metadata.pickle").exists():
        return None
    try:
        header = _read_header(path)
        _check_sizes(path, header)
        _check_links(path, header)
        return Segment(path, header, _read_ids(path, header))
    except (OSError, ValueError, struct.error, MemoryError) as exc:
        raise SegmentDamage(f"{path.name}: {exc}") from exc


def _read_header(path: Path) -> SegmentHeader:
    raw = (path / "header.bin").read_bytes()
    if len(raw) < HEADER.size:
        raise SegmentDamage(f"header.bin has {len(raw)} bytes, not {HEADER.size}")
    version, links, capacity, elements, size, label, vector, level, entry, upper, level0, m, mult, _ = HEADER.unpack_from(raw)
    header = SegmentHeader(elements, capacity, size, label, vector, level, entry, upper, level0, links)
    sane = (
        version == 1
        and elements <= capacity
        and 0 <= level <= _MAX_LEVEL
        and (entry < elements or elements == 0)
        and 2 <= m <= 1024
        and upper == m
        and level0 == 2 * m
        and 0.0 < mult < 10.0
        and links == 0
        and vector == 4 + 4 * level0
        and vector < label
        and (label - vector) % 4 == 0
        and size == label + 8
    )
    if not sane:
        raise SegmentDamage(f"header.bin holds impossible values: {header}")
    return header


def _check_sizes(path: Path, header: SegmentHeader) -> None:
    level0 = (path / "data_level0.bin").stat().st_size
    lengths = (path / "length.bin").stat().st_size
    links = (path / "link_lists.bin").stat().st_size
    if level0 < header.elements * header.element_bytes:
        raise SegmentDamage(f"data_level0.bin has {level0} bytes, {header.elements} elements need more")
    if lengths < header.elements * 4:
        raise SegmentDamage(f"length.bin has {lengths} bytes, {header.elements} elements need more")
    if level0 // header.element_bytes != lengths // 4 and level0 != header.capacity * header.element_bytes:
        raise SegmentDamage(
            f"data_level0.bin and length.bin disagree: {level0 // header.element_bytes} and {lengths // 4} elements"
        )
    # A torn write can leave a sparse file of terabytes: never read it before this.
    bound = header.elements * (4 + _link_record(header) * max(header.max_level, 1))
    if links > bound:
        raise SegmentDamage(f"link_lists.bin has {links} bytes, {bound} are possible")
    blanks = np.fromfile(path / "length.bin", dtype="<f4", count=header.elements)
    if not np.isfinite(blanks).all():
        raise SegmentDamage("length.bin holds values that are not numbers")


def _link_record(header: SegmentHeader) -> int:
    return 4 * header.links_upper + 4


def _check_links(path: Path, header: SegmentHeader) -> None:
    raw = (path / "link_lists.bin").read_bytes()
    record, offset, longest = _link_record(header), 0, _link_record(header) * max(header.max_level, 1)
    for element in range(header.elements):
        if offset + 4 > len(raw):
            raise SegmentDamage(f"link_lists.bin ends at element {element} of {header.elements}")
        (size,) = struct.unpack_from("<I", raw, offset)
        if size % record or size > longest or offset + 4 + size > len(raw):
            raise SegmentDamage(f"link_lists.bin: element {element} claims {size} bytes")
        for at in range(offset + 4, offset + 4 + size, record):
            count = struct.unpack_from("<H", raw, at)[0]
            neighbours = np.frombuffer(raw, dtype="<u4", count=min(count, header.links_upper), offset=at + 4)
            if count > header.links_upper or (count and int(neighbours.max()) >= header.elements):
                raise SegmentDamage(f"link_lists.bin: element {element} has an impossible neighbour")
        offset += 4 + size
    if offset != len(raw):
        raise SegmentDamage(f"link_lists.bin has {len(raw) - offset} bytes too many")


def _records(path: Path, header: SegmentHeader, start: int, stop: int) -> npt.NDArray[np.uint8]:
    with (path / "data_level0.bin").open("rb") as file:
        file.seek(start * header.element_bytes)
        raw = file.read((stop - start) * header.element_bytes)
    return np.frombuffer(raw, dtype=np.uint8).reshape(stop - start, header.element_bytes)


def _read_ids(path: Path, header: SegmentHeader) -> list[str]:
    names = _read_labels(path)
    labels: list[int] = []
    deleted: list[bool] = []
    for start in range(0, header.elements, _BLOCK):
        records = _records(path, header, start, min(start + _BLOCK, header.elements))
        _check_records(header, records, start)
        field = np.ascontiguousarray(records[:, header.label_offset : header.label_offset + 8])
        labels.extend(field.view("<u8").ravel().tolist())
        deleted.extend((records[:, header.links_offset + 2] & 1).astype(bool).tolist())
    live = {label for label, gone in zip(labels, deleted, strict=True) if not gone}
    if len(set(labels)) != len(labels):
        raise SegmentDamage("two elements have the same label")
    if live != set(names):
        raise SegmentDamage(f"{len(set(names) - live)} ids are not in the graph, {len(live - set(names))} elements have no id")
    return ["" if gone else names[label] for label, gone in zip(labels, deleted, strict=True)]


def _check_records(header: SegmentHeader, records: npt.NDArray[np.uint8], start: int) -> None:
    counts = np.ascontiguousarray(records[:, :2]).view("<u2").ravel()
    if counts.size and int(counts.max()) > header.links_level0:
        raise SegmentDamage(f"an element near {start} claims {int(counts.max())} neighbours")
    links = np.ascontiguousarray(records[:, 4 : 4 + 4 * header.links_level0]).view("<u4")
    used = np.arange(header.links_level0) < counts[:, None]
    if used.any() and int(links[used].max()) >= header.elements:
        raise SegmentDamage(f"an element near {start} has an impossible neighbour")
    vectors = np.ascontiguousarray(records[:, header.vector_offset : header.label_offset]).view("<f4")
    with np.errstate(all="ignore"):  # damaged floats may overflow
        norms = np.linalg.norm(vectors, axis=1)
    if not bool(np.all(np.abs(norms - 1.0) < 0.01)):  # cosine space: Chroma stores unit vectors; NaN fails too
        raise SegmentDamage(f"an element near {start} has a vector that is not of norm 1")


class _PlainUnpickler(pickle.Unpickler):
    """Reads dicts, lists, strings and numbers; a pickle that names any class is not one of Chroma's."""

    def find_class(self, module: str, name: str) -> object:
        raise SegmentDamage(f"index_metadata.pickle names {module}.{name}")


def _read_labels(path: Path) -> dict[int, str]:
    raw = (path / "index_metadata.pickle").read_bytes()
    try:
        content = _PlainUnpickler(io.BytesIO(raw)).load()  # plain values only, see _PlainUnpickler
        labels = content["label_to_id"]
        ids = content["id_to_label"]
        names = {int(label): str(name) for label, name in labels.items()}
        backwards = {int(label): str(name) for name, label in ids.items()}
    except (pickle.UnpicklingError, EOFError, KeyError, TypeError, AttributeError, IndexError, ValueError, OverflowError) as exc:
        raise SegmentDamage(f"index_metadata.pickle cannot be read: {exc!r}") from exc
    if names != backwards:
        raise SegmentDamage("index_metadata.pickle contradicts itself")
    return names
