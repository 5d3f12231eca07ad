"""Compound files ([MS-CFB]) and messages of Outlook in them ([MS-OXMSG]), made on the spot."""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import TypeAlias

Tree: TypeAlias = "Mapping[str, bytes | Tree]"
"""Streams and storages by name."""
Properties: TypeAlias = Mapping[int, "str | bytes | int | datetime"]
"""Values by tag: the number of a property and, in the lower half, its type."""

_SECTOR, _MINI, _CUTOFF = 512, 64, 4096
_FREE, _END, _TABLE, _NONE = 0xFFFFFFFF, 0xFFFFFFFE, 0xFFFFFFFD, 0xFFFFFFFF


def make_compound(tree: Tree) -> bytes:
    """Return a compound file of version 3 with what lies in the root."""
    return _Writer().file(tree)


class _Writer:
    def __init__(self) -> None:
        self._sectors = bytearray()
        self._fat: list[int] = []
        self._short = bytearray()
        self._short_fat: list[int] = []
        self._entries: list[bytes] = []

    def file(self, tree: Tree) -> bytes:
        self._entries.append(b"")
        child = self._storage(tree)
        short = self._chain(bytes(self._short))
        self._entries[0] = _entry("Root Entry", 5, child=child, start=short, size=len(self._short))
        table = b"".join(struct.pack("<I", one) for one in self._short_fat)
        short_table = self._chain(table, 0xFF)
        self._entries += [_entry("", 0)] * (-len(self._entries) % 4)
        directory = self._chain(b"".join(self._entries))
        tables = 1
        while tables * _SECTOR // 4 < len(self._fat) + tables:
            tables += 1
        assert tables <= 109, "a larger file needs more tables than the header lists"
        first = len(self._fat)
        self._fat += [_TABLE] * tables
        self._fat += [_FREE] * (-len(self._fat) % (_SECTOR // 4))
        listed = [*range(first, first + tables), *[_FREE] * (109 - tables)]
        header = struct.pack(
            "<8s16xHHHHH6x9I109I",
            *(b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", 0x3E, 3, 0xFFFE, 9, 6),
            *(0, tables, directory, 0, _CUTOFF),
            *(short_table, -(-len(table) // _SECTOR), _END, 0),
            *listed,
        )
        return header + self._sectors + b"".join(struct.pack("<I", one) for one in self._fat)

    def _storage(self, tree: Tree) -> int:
        """Write what lies in a storage; return the entry at the top of its balanced tree."""
        ids: list[int] = []
        for name, inside in sorted(tree.items(), key=lambda one: (len(one[0]), one[0].upper())):
            ids.append(len(self._entries))
            self._entries.append(b"")
            if isinstance(inside, bytes):
                start = self._short_chain(inside) if len(inside) < _CUTOFF else self._chain(inside)
                entry = _entry(name, 2, start=start, size=len(inside))
            else:
                entry = _entry(name, 1, child=self._storage(inside))
            self._entries[ids[-1]] = entry
        return self._balanced(ids)

    def _balanced(self, ids: Sequence[int]) -> int:
        if not ids:
            return _NONE
        middle = len(ids) // 2
        sides = self._balanced(ids[:middle]), self._balanced(ids[middle + 1 :])
        entry = self._entries[ids[middle]]
        self._entries[ids[middle]] = entry[:68] + struct.pack("<II", *sides) + entry[76:]
        return ids[middle]

    def _chain(self, content: bytes, fill: int = 0) -> int:
        return _append(content, self._sectors, self._fat, _SECTOR, fill)

    def _short_chain(self, content: bytes) -> int:
        return _append(content, self._short, self._short_fat, _MINI, 0)


def _append(content: bytes, sectors: bytearray, table: list[int], size: int, fill: int) -> int:
    if not content:
        return _END
    first = len(table)
    sectors += content + bytes([fill]) * (-len(content) % size)
    table += [*range(first + 1, len(sectors) // size), _END]
    return first


def _entry(name: str, kind: int, *, child: int = _NONE, start: int = 0, size: int = 0) -> bytes:
    wide = name.encode("utf-16-le")
    return struct.pack(
        "<64sHBBIII16xI16xIII",
        *(wide, len(wide) + 2 if name else 0, kind, 1, _NONE, _NONE, child, 0, start, size, 0),
    )


def make_msg(
    properties: Properties, recipients: Sequence[Properties] = (), attached: Sequence[Tree] = ()
) -> bytes:
    """Return a message of Outlook; `attached` are made by `attachment` and `attached_message`."""
    return make_compound(_message(properties, recipients, attached, bytes(32)))


def attachment(properties: Properties) -> Tree:
    return _storage(properties, bytes(8))


def attached_message(
    properties: Properties, recipients: Sequence[Properties] = (), attached: Sequence[Tree] = ()
) -> Tree:
    inside = _message(properties, recipients, attached, bytes(24))
    return {**attachment({0x37050003: 5}), "__substg1.0_3701000D": inside}


def _message(
    properties: Properties, recipients: Sequence[Properties], attached: Sequence[Tree], head: bytes
) -> Tree:
    people = (_storage(one, bytes(8)) for one in recipients)
    return {
        **_storage(properties, head),
        **{f"__recip_version1.0_#{at:08X}": one for at, one in enumerate(people)},
        **{f"__attach_version1.0_#{at:08X}": one for at, one in enumerate(attached)},
    }


def _storage(properties: Properties, head: bytes) -> Tree:
    streams: dict[str, bytes] = {}
    listed = [head]
    for tag, value in properties.items():
        fixed = 0
        if isinstance(value, datetime):
            fixed = (value - datetime(1601, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1) * 10
        elif isinstance(value, int):
            fixed = value
        else:
            stream = value.encode("utf-16-le") if isinstance(value, str) else value
            streams[f"__substg1.0_{tag:08X}"] = stream
            fixed = len(stream)
        listed.append(struct.pack("<IIQ", tag, 6, fixed))
    return {"__properties_version1.0": b"".join(listed), **streams}
