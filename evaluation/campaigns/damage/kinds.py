"""Damage files of a Chroma store: bit flips, truncations, lost and torn files."""

from __future__ import annotations

import os
import pickle
import shutil
import sqlite3
import struct
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path

HEADER = struct.Struct("<iQQQQQQiIQQQdQ")
"""Of header.bin (hnswlib): version, level-0 offset, capacity, elements, bytes an element, label
offset, vector offset, ..."""

Spoil = Callable[[Path], None]
"""Damages the store in a directory."""

RUNAWAY_BYTES = 1 << 40
"""Sparse: it costs no disk, but a full read never ends (docs/facts/chroma.md)."""


def segment_of(chroma: Path) -> Path:
    """Return the directory of the store's persisted graph."""
    return next(chroma.glob("*/header.bin")).parent


def _flip(name: str, at: float | int) -> Spoil:
    """Flip one bit of a segment's file; a fraction counts from the file's end."""

    def spoil(chroma: Path) -> None:
        path = segment_of(chroma) / name
        content = bytearray(path.read_bytes())
        content[int(at * len(content)) if isinstance(at, float) else at] ^= 0x10
        path.write_bytes(content)

    return spoil


def _truncate(name: str, share: float) -> Spoil:
    def spoil(chroma: Path) -> None:
        path = segment_of(chroma) / name
        os.truncate(path, int(path.stat().st_size * share))

    return spoil


def _remove(name: str) -> Spoil:
    def spoil(chroma: Path) -> None:
        (segment_of(chroma) / name).unlink()

    return spoil


def _in_record(field: str) -> Spoil:
    """Change a field of the 500th element's record in data_level0.bin."""

    def spoil(chroma: Path) -> None:
        path = segment_of(chroma) / "data_level0.bin"
        fields = HEADER.unpack_from(path.with_name("header.bin").read_bytes())
        elements, element_bytes, label, vector, links = (
            fields[3],
            fields[4],
            fields[5],
            fields[6],
            fields[10],
        )
        content = bytearray(path.read_bytes())
        start = 500 * element_bytes
        if field == "sign":  # of the vector's first number: the norm stays 1
            content[start + vector + 3] ^= 0x80
        elif field == "low bit":
            content[start + vector] ^= 0x01
        elif field == "vector":  # another vector of norm 1, as sound as its own
            other = 700 * element_bytes + vector
            content[start + vector : start + label] = content[other : other + label - vector]
        elif field == "neighbour":
            struct.pack_into("<I", content, start + 4, elements + 5)
        elif field == "label":
            content[start + label] ^= 0x01
        elif field == "deleted":
            content[start + 2] ^= 0x01
        elif field == "links":  # to elements that exist, but are no neighbours
            for n in range(links):
                struct.pack_into("<I", content, start + 4 + 4 * n, n)
        path.write_bytes(content)

    return spoil


def _upper_links(chroma: Path) -> None:
    """Point the first upper-level link of the graph at another element that exists."""
    path = segment_of(chroma) / "link_lists.bin"
    content = bytearray(path.read_bytes())
    offset = 0
    while not (size := struct.unpack_from("<I", content, offset)[0]):
        offset += 4
    (first,) = struct.unpack_from("<I", content, offset + 8)
    struct.pack_into("<I", content, offset + 8, first + 1 if size else first)
    path.write_bytes(content)


def _runaway(chroma: Path) -> None:
    os.truncate(segment_of(chroma) / "link_lists.bin", RUNAWAY_BYTES)


class _Foreign:
    """A value that no pickle of Chroma's holds."""


def _foreign_pickle(chroma: Path) -> None:
    (segment_of(chroma) / "index_metadata.pickle").write_bytes(pickle.dumps(_Foreign()))


def _remove_segment(chroma: Path) -> None:
    shutil.rmtree(segment_of(chroma))


def _older_segment(chroma: Path) -> None:
    """Restore a segment's state before its last persist, kept by `stores.build`."""
    segment = segment_of(chroma)
    shutil.rmtree(segment)
    shutil.copytree(chroma.with_name("earlier") / segment.name, segment)


@contextmanager
def _sqlite(chroma: Path) -> Iterator[sqlite3.Connection]:
    with closing(sqlite3.connect(chroma / "chroma.sqlite3")) as connection, connection:
        yield connection


def _sql(*statements: str) -> Spoil:
    def spoil(chroma: Path) -> None:
        with _sqlite(chroma) as connection:
            for statement in statements:
                connection.execute(statement)

    return spoil


def _queued_vector(chroma: Path) -> None:
    """Overwrite a vector that is only in the write-ahead log so far."""
    with _sqlite(chroma) as connection:
        rows = connection.execute(
            "SELECT seq_id, vector FROM embeddings_queue ORDER BY seq_id DESC LIMIT 40"
        ).fetchall()
        connection.execute(
            "UPDATE embeddings_queue SET vector = ? WHERE seq_id = ?", (rows[30][1], rows[13][0])
        )


def _database_bytes(change: Callable[[bytearray], bytearray]) -> Spoil:
    def spoil(chroma: Path) -> None:
        path = chroma / "chroma.sqlite3"
        path.write_bytes(change(bytearray(path.read_bytes())))

    return spoil


def _twenty_flips(content: bytearray) -> bytearray:
    for n in range(20):
        content[4096 + (len(content) - 4096) * n // 20 + 9] ^= 0x40
    return content


def _zero_header(content: bytearray) -> bytearray:
    content[:100] = bytes(100)
    return content


def _half(content: bytearray) -> bytearray:
    return content[: len(content) // 8192 * 4096]


def _no_database(chroma: Path) -> None:
    (chroma / "chroma.sqlite3").unlink()


def _no_directory(chroma: Path) -> None:
    shutil.rmtree(chroma)


def _a_file_instead(chroma: Path) -> None:
    shutil.rmtree(chroma)
    chroma.write_bytes(b"not a directory")


KINDS: Mapping[str, Spoil] = {
    "header.bin: one bit of a count": _flip("header.bin", 20),
    "header.bin: cut in half": _truncate("header.bin", 0.5),
    "header.bin: removed": _remove("header.bin"),
    "data_level0.bin: the sign bit of a number": _in_record("sign"),
    "data_level0.bin: the lowest bit of a number": _in_record("low bit"),
    "data_level0.bin: a vector is another's": _in_record("vector"),
    "data_level0.bin: a link to nowhere": _in_record("neighbour"),
    "data_level0.bin: links to wrong neighbours": _in_record("links"),
    "data_level0.bin: a label": _in_record("label"),
    "data_level0.bin: marked deleted": _in_record("deleted"),
    "data_level0.bin: cut in half": _truncate("data_level0.bin", 0.5),
    "data_level0.bin: emptied": _truncate("data_level0.bin", 0.0),
    "length.bin: emptied": _truncate("length.bin", 0.0),
    "link_lists.bin: one bit": _flip("link_lists.bin", 0),
    "link_lists.bin: cut in half": _truncate("link_lists.bin", 0.5),
    "link_lists.bin: emptied": _truncate("link_lists.bin", 0.0),
    "link_lists.bin: runaway, a terabyte": _runaway,
    "link_lists.bin: an upper link to a wrong element": _upper_links,
    "index_metadata.pickle: removed": _remove("index_metadata.pickle"),
    "index_metadata.pickle: torn": _truncate("index_metadata.pickle", 0.6),
    "index_metadata.pickle: names a class": _foreign_pickle,
    "segment: directory removed": _remove_segment,
    "segment: files of an earlier state": _older_segment,
    "chroma.sqlite3: twenty bits": _database_bytes(_twenty_flips),
    "chroma.sqlite3: header zeroed": _database_bytes(_zero_header),
    "chroma.sqlite3: cut in half": _database_bytes(_half),
    "chroma.sqlite3: removed": _no_database,
    "chroma.sqlite3: collection row lost": _sql("DELETE FROM collections"),
    "chroma.sqlite3: a listed id lost": _sql(
        "DELETE FROM embeddings WHERE id = (SELECT max(id) - 7 FROM embeddings)"
    ),
    "chroma.sqlite3: log lost": _sql("DELETE FROM embeddings_queue"),
    "chroma.sqlite3: a vector in the log is another's": _queued_vector,
    "store: directory removed": _no_directory,
    "store: a file in its place": _a_file_instead,
}
"""What is done to the store, by name."""
