"""PDFs: loops, bombs, lies about counts and offsets, locks."""

from __future__ import annotations

import zlib
from collections.abc import Iterable

from tests.fakes.files import make_pdf, make_scan
from tests.fakes.hostile.model import WORDS, HostileFile, hostile

MEGABYTE = 2**20
_FONT = b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>"


def stream(content: bytes, extra: bytes = b"") -> bytes:
    """Return a stream object's body."""
    return b"<< /Length %d %s >>\nstream\n%s\nendstream" % (len(content), extra, content)


def document(
    objects: Iterable[bytes], *, root: int = 1, trailer: bytes = b"", startxref: int | None = None
) -> bytes:
    """Return a PDF of objects numbered from 1, with a cross-reference table that is right unless told otherwise."""
    body, offsets = bytearray(b"%PDF-1.7\n%\xe2\xe3\xcf\xd3\n"), []
    for number, content in enumerate(objects, start=1):
        offsets.append(len(body))
        body += b"%d 0 obj\n%s\nendobj\n" % (number, content)
    table = len(body)
    body += b"xref\n0 %d\n0000000000 65535 f \n" % (len(offsets) + 1)
    body += b"".join(b"%010d 00000 n \n" % offset for offset in offsets)
    at = table if startxref is None else startxref
    body += b"trailer\n<< /Size %d /Root %d 0 R %s >>\nstartxref\n%d\n%%%%EOF\n" % (
        len(offsets) + 1,
        root,
        trailer,
        at,
    )
    return bytes(body)


def text_operators(lines: int = 30) -> bytes:
    """Return page content that shows prose."""
    shown = b"".join(b"(%s) Tj 0 -14 Td\n" % WORDS.encode() for _ in range(lines))
    return b"BT /F1 10 Tf 50 750 Td\n" + shown + b"ET\n"


def page(
    content: bytes,
    *,
    catalog: bytes = b"",
    pages: bytes = b"",
    one: bytes = b"",
    resources: bytes = b"",
    more: Iterable[bytes] = (),
) -> bytes:
    """Return a document of one page whose parts can be spoilt; further objects count from 6."""
    return document(
        [
            b"<< /Type /Catalog /Pages 2 0 R %s >>" % catalog,
            b"<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
            b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents 4 0 R /Resources <<"
            b" /Font << /F1 5 0 R >> %s >> %s >>" % (resources, one),
            content,
            _FONT,
            *more,
        ]
    )


def _deflated(content: bytes, times: int = 1) -> bytes:
    for _ in range(times):
        content = zlib.compress(content, 9)
    return stream(content, b"/Filter [%s]" % b" ".join([b"/FlateDecode"] * times))


def _huge(unit: bytes, megabytes: int) -> bytes:
    """Deflate far more than one wants to hold at once."""
    packer, block = zlib.compressobj(9), unit * (MEGABYTE // len(unit))
    packed = b"".join(packer.compress(block) for _ in range(megabytes)) + packer.flush()
    again = zlib.compress(packed, 9)
    return stream(again, b"/Filter [/FlateDecode /FlateDecode]")


def _many_pages(count: int) -> bytes:
    kids = b" ".join(b"%d 0 R" % (number + 5) for number in range(count))
    one = (
        b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents 3 0 R /Resources <<"
        b" /Font << /F1 4 0 R >> >> >>"
    )
    head = [
        b"<< /Type /Catalog /Pages 2 0 R >>",
        b"<< /Type /Pages /Kids [%s] /Count %d >>" % (kids, count),
    ]
    return document([*head, stream(text_operators(1)), _FONT, *([one] * count)])


def _pages_loop() -> bytes:
    return document(
        [
            b"<< /Type /Catalog /Pages 2 0 R >>",
            b"<< /Type /Pages /Kids [2 0 R 2 0 R] /Count 2 /Parent 2 0 R >>",
        ]
    )


def _prev_loop() -> bytes:
    good = page(stream(text_operators()))
    table = good.rindex(b"xref\n0 ")
    return good.replace(b"/Root", b"/Prev %d /Root" % table)


def _form_loop() -> bytes:
    form = stream(
        b"/X Do " * 20,
        b"/Type /XObject /Subtype /Form /BBox [0 0 9 9] /Resources << /XObject << /X 6 0 R >> >>",
    )
    return page(
        stream(b"/X Do\n" + text_operators()), resources=b"/XObject << /X 6 0 R >>", more=[form]
    )


def _picture(kind: bytes, width: int) -> bytes:
    image = stream(
        b"\x00\x01\x02garbage" * 50,
        b"/Type /XObject /Subtype /Image /Width %d /Height %d /ColorSpace /DeviceGray"
        b" /BitsPerComponent 1 /Filter /%s" % (width, width, kind),
    )
    return page(
        stream(b"612 0 0 792 0 0 cm /X Do\n"), resources=b"/XObject << /X 6 0 R >>", more=[image]
    )


def _to_unicode() -> bytes:
    ranges = b"1 beginbfrange\n<0000> <FFFF> <0041>\nendbfrange\n" * 20_000
    font = (
        b"<< /Type /Font /Subtype /Type0 /BaseFont /A /Encoding /Identity-H /DescendantFonts [8"
        b" 0 R] /ToUnicode 7 0 R >>"
    )
    descendant = (
        b"<< /Type /Font /Subtype /CIDFontType2 /BaseFont /A /CIDSystemInfo << /Registry"
        b" (A) /Ordering (B) /Supplement 0 >> >>"
    )
    return page(
        stream(b"BT /F2 9 Tf 50 700 Td <00410042> Tj ET\n" + text_operators()),
        resources=b"/Font << /F1 5 0 R /F2 6 0 R >>",
        more=[font, _deflated(b"/CIDInit /ProcSet findresource begin\n" + ranges), descendant],
    )


def _object_stream_loop() -> bytes:
    inner = stream(b"7 0 << /Length 6 0 R >>", b"/Type /ObjStm /N 1 /First 4 /Extends 6 0 R")
    return page(stream(text_operators()), catalog=b"/Names 7 0 R", more=[inner])


def _outline_loop() -> bytes:
    items = [
        b"<< /Type /Outlines /First 7 0 R /Last 8 0 R /Count 2 >>",
        b"<< /Title (a) /Parent 6 0 R /Next 8 0 R /First 7 0 R /Last 7 0 R >>",
        b"<< /Title (b) /Parent 6 0 R /Next 7 0 R /Prev 7 0 R >>",
    ]
    return page(stream(text_operators()), catalog=b"/Outlines 6 0 R", more=items)


def _xmp_bomb() -> bytes:
    entities = b"".join(b'<!ENTITY e%d "%s">' % (n, b"&e%d;" % (n - 1) * 10) for n in range(1, 12))
    xmp = b'<?xml version="1.0"?><!DOCTYPE x [<!ENTITY e0 "boom">%s]><x>&e11;</x>' % entities
    return page(
        stream(text_operators()),
        catalog=b"/Metadata 6 0 R",
        more=[stream(xmp, b"/Type /Metadata /Subtype /XML")],
    )


def _good() -> bytes:
    return page(stream(text_operators()))


PDFS: tuple[HostileFile, ...] = (
    hostile("pages-loop.pdf", _pages_loop, "unreadable", "no_text_layer"),
    hostile(
        "count-of-a-billion.pdf",
        lambda: _good().replace(b"/Count 1 ", b"/Count 999999999 "),
        "too_large",
        "unreadable",
        "indexed",
    ),
    hostile(
        "negative-count.pdf",
        lambda: _good().replace(b"/Count 1 ", b"/Count -5 "),
        "unreadable",
        "indexed",
    ),
    hostile("six-thousand-pages.pdf", lambda: _many_pages(6000), "too_large"),
    hostile(
        "flate-bomb.pdf",
        lambda: page(_huge(b"\0" * 1024, 1024)),
        "unreadable",
        "no_text_layer",
        "too_large",
        slow=True,
    ),
    hostile(
        "operator-bomb.pdf",
        lambda: page(_huge(b"(ab) Tj ", 60)),
        "unreadable",
        "no_text_layer",
        "too_large",
        "indexed",
        slow=True,
    ),
    hostile(
        "path-bomb.pdf",
        lambda: page(_huge(b"0 0 m 9 9 l S ", 40)),
        "unreadable",
        "no_text_layer",
        "too_large",
        slow=True,
    ),
    hostile(
        "quadruple-flate.pdf",
        lambda: page(_deflated(text_operators(), 4)),
        "indexed",
        "no_text_layer",
        "unreadable",
    ),
    hostile("prev-loop.pdf", _prev_loop, "unreadable", "indexed"),
    hostile(
        "xref-nowhere.pdf",
        lambda: _good().replace(b"startxref\n", b"startxref\n9"),
        "unreadable",
        "indexed",
    ),
    hostile(
        "offsets-into-the-void.pdf",
        lambda: _good().replace(b"00000 n", b"00009 n").replace(b"000000", b"999999"),
        "unreadable",
        "indexed",
    ),
    hostile("no-root.pdf", lambda: _good().replace(b"/Root 1 0 R", b""), "unreadable", "indexed"),
    hostile(
        "size-of-two-billion.pdf",
        lambda: _good().replace(b"/Size 6", b"/Size 2147483647"),
        "unreadable",
        "indexed",
    ),
    hostile(
        "length-lies.pdf",
        lambda: _good().replace(b"/Length ", b"/Length 99999"),
        "unreadable",
        "indexed",
        "no_text_layer",
    ),
    hostile(
        "half.pdf",
        lambda: make_pdf()[: len(make_pdf()) // 2],
        "unreadable",
        "indexed",
        "no_text_layer",
    ),
    hostile("header-only.pdf", lambda: b"%PDF-1.7\n", "unreadable"),
    hostile("locked.pdf", lambda: make_pdf(password="secret"), "encrypted"),
    hostile(
        "unknown-lock.pdf",
        lambda: _good().replace(
            b"/Root 1 0 R",
            b"/Root 1 0 R /Encrypt << /Filter /Nobody /V 99 /R 99 /O (x) /U (x) /P -1 >>",
        ),
        "encrypted",
        "unreadable",
        "indexed",
    ),
    hostile("scan.pdf", make_scan, "no_text_layer"),
    hostile("form-loop.pdf", _form_loop, "indexed", "unreadable", "no_text_layer"),
    hostile("jbig2.pdf", lambda: _picture(b"JBIG2Decode", 64), "no_text_layer", "unreadable"),
    hostile(
        "jbig2-giant.pdf",
        lambda: _picture(b"JBIG2Decode", 2**31 - 1),
        "no_text_layer",
        "unreadable",
    ),
    hostile("jpx-giant.pdf", lambda: _picture(b"JPXDecode", 10**6), "no_text_layer", "unreadable"),
    hostile("dct-giant.pdf", lambda: _picture(b"DCTDecode", 65535), "no_text_layer", "unreadable"),
    hostile("to-unicode-bomb.pdf", _to_unicode, "indexed", "unreadable", slow=True),
    hostile("object-stream-loop.pdf", _object_stream_loop, "indexed", "unreadable"),
    hostile("outline-loop.pdf", _outline_loop, "indexed", "unreadable"),
    hostile("metadata-entities.pdf", _xmp_bomb, "indexed", "unreadable"),
    hostile(
        "deep-arrays.pdf",
        lambda: page(stream(text_operators()), catalog=b"/X " + b"[" * 200_000 + b"]" * 200_000),
        "indexed",
        "unreadable",
    ),
    hostile(
        "deep-dictionaries.pdf",
        lambda: page(stream(text_operators()), catalog=b"/X " + b"<< /A " * 100_000),
        "indexed",
        "unreadable",
    ),
    hostile(
        "page-of-a-mile.pdf",
        lambda: page(stream(text_operators()), one=b"/MediaBox [0 0 1e38 1e38]"),
        "indexed",
        "unreadable",
        "no_text_layer",
    ),
    hostile(
        "runs-a-script.pdf",
        lambda: page(
            stream(text_operators()), catalog=b"/OpenAction << /S /JavaScript /JS (app.alert) >>"
        ),
        "indexed",
    ),
    hostile(
        "starts-a-program.pdf",
        lambda: page(
            stream(text_operators()), catalog=b"/OpenAction << /S /Launch /F (/bin/sh) >>"
        ),
        "indexed",
    ),
)
