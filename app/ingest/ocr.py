"""Recognise the words of pages that are pictures, and give these pages a text.

An engine reads a printed page. The words that it finds become a page of a PDF that shows nothing
else, so that lines, columns, rows of tables and boxes come from the code that reads every PDF.
"""

from __future__ import annotations

import csv
import importlib
import io
import os
import re
import subprocess
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from itertools import groupby
from typing import Any

import numpy as np
import numpy.typing as npt
import pypdfium2

from app.core.errors import Unreadable
from app.core.types import PageWords, Word
from app.ingest.options import IngestOptions

Picture = npt.NDArray[np.uint8]
"""`[height, width]`, gray."""
Recognise = Callable[[Picture, IngestOptions], list[list[Word]]]
"""Returns the lines of a picture; boxes in pixels, origin top left."""

DPI = 200
MOST_PIXELS = 12_000_000
"""Of a printed page: A3 at 240 dpi."""
POINTS = 72
INSTALL = (
    "to have it read here, install OCR (make setup EXTRAS=ocr, or pip install"
    " 'documind-server[ocr]', or the program tesseract) and send it again"
)

# The engines.


def recognise(picture: Picture, options: IngestOptions) -> list[list[Word]]:
    """Return the lines of a picture, by the engine of the options.

    Raises:
        Unreadable: The engine failed on it, or there is none any more.
    """
    if not options.ocr_engine:
        raise Unreadable(f"there is no OCR; {INSTALL}")
    if options.ocr_engine == "rapidocr":
        return _with_rapidocr(picture)
    return _with_tesseract(picture, options)


@cache
def _rapidocr() -> Any:  # a package that need not be installed
    threads = max(1, (os.cpu_count() or 1) // 2)
    return importlib.import_module("rapidocr").RapidOCR(
        params={
            "Global.log_level": "error",
            "EngineConfig.onnxruntime.intra_op_num_threads": threads,
        }
    )


def _with_rapidocr(picture: Picture) -> list[list[Word]]:
    found = _rapidocr()(np.stack([picture] * 3, axis=-1), return_word_box=True)
    return [
        [
            Word(text, *map(float, (*np.min(corners, axis=0), *np.max(corners, axis=0))))
            for text, _, corners in line
        ]
        for line in (found.word_results if found.txts else ())  # of no text it has a line of none
    ]


def _with_tesseract(picture: Picture, options: IngestOptions) -> list[list[Word]]:
    height, width = picture.shape
    languages = options.ocr_languages or _languages(options.ocr_engine)
    command = [options.ocr_engine, "stdin", "stdout", "-l", languages, "--dpi", str(DPI), "tsv"]
    told = _run(command, b"P5 %d %d 255\n" % (width, height) + picture.tobytes())
    rows = csv.DictReader(io.StringIO(told), delimiter="\t", quoting=csv.QUOTE_NONE)
    words = [row for row in rows if row["level"] == "5" and row["text"].strip()]
    places = groupby(words, lambda row: (row["block_num"], row["par_num"], row["line_num"]))
    return [[_word(row) for row in line] for _, line in places]


def _word(row: dict[str, str]) -> Word:
    left, top, width, height = (float(row[name]) for name in ("left", "top", "width", "height"))
    return Word(row["text"].strip(), left, top, left + width, top + height)


@cache
def _languages(program: str) -> str:
    """Return all installed languages, English first; not the models of script and direction."""
    names = sorted(_run([program, "--list-langs"]).splitlines()[1:], key=lambda name: name != "eng")
    return "+".join(name for name in names if name not in ("osd", "equ")) or "eng"


def _run(command: Sequence[str], given: bytes = b"") -> str:
    done = subprocess.run(  # noqa: S603  # a program that the operator installed
        command, input=given, capture_output=True, check=False, env={"OMP_THREAD_LIMIT": "1"}
    )
    if done.returncode:
        told = done.stderr.decode(errors="replace").strip().replace("\n", "; ")
        raise Unreadable(f"tesseract failed ({told:.300}); see OCR_ENGINE and OCR_LANGUAGES")
    return done.stdout.decode(errors="replace")


# A page to its words.


def words_of_page(
    content: bytes, number: int, options: IngestOptions, read: Recognise
) -> PageWords:
    """Return the words of a PDF's page, as it is shown, at 200 dpi or at most twelve megapixels.

    Raises:
        Unreadable: It cannot be printed.
    """
    try:
        document = pypdfium2.PdfDocument(content)
        try:
            page = document[number - 1]
            width, height = page.get_size()
            scale = min(DPI / POINTS, (MOST_PIXELS / max(width * height, 1)) ** 0.5)
            bitmap = page.render(scale=scale, grayscale=True)
            picture = np.array(bitmap.to_numpy(), dtype=np.uint8)
        finally:
            document.close()
    except (pypdfium2.PdfiumError, IndexError) as exc:
        raise Unreadable(f"page {number} cannot be printed ({exc})") from exc
    gray = picture.reshape(picture.shape[:2])
    return words_of_picture(gray, number, (width, height), options, read)


def words_of_picture(
    picture: Picture,
    number: int,
    size: tuple[float, float],
    options: IngestOptions,
    read: Recognise,
) -> PageWords:
    """Return the words of a picture that is a page of a width and height in points."""
    width, height = size
    across, down = width / picture.shape[1], height / picture.shape[0]
    lines = tuple(
        tuple(
            Word(
                text, *(round(side, 1) for side in (x0 * across, y0 * down, x1 * across, y1 * down))
            )
            for text, x0, y0, x1, y1 in line
            if text and x1 > x0 and y1 > y0
        )
        for line in read(picture, options)
    )
    return PageWords(number, round(width, 2), round(height, 2), tuple(filter(None, lines)))


# Words to a PDF.

_ASCENT, _DESCENT = 800, -200
_BEYOND = re.compile("[\x00-\x1f\ud800-\udfff\U00010000-\U0010ffff]")
_LOWEST = 0.1
"""Height of a word in points, which are rounded to tenths."""
_FLAT = 1.5
"""Heights of its tallest word, of a line that is not slanted."""
_CODES = "\n".join(f"<{high:02x}00> <{high:02x}ff> <{high:02x}00>" for high in range(256))
_UNICODE = f"""/CIDInit /ProcSet findresource begin 12 dict begin begincmap
/CMapName /Unicode def /CMapType 2 def
1 begincodespacerange <0000> <ffff> endcodespacerange
256 beginbfrange
{_CODES}
endbfrange endcmap end end"""
_FONT = (
    "<< /Type /Font /Subtype /Type0 /BaseFont /Words /Encoding /Identity-H"
    " /DescendantFonts [4 0 R] /ToUnicode 6 0 R >>",
    "<< /Type /Font /Subtype /CIDFontType2 /BaseFont /Words /DW 1000 /FontDescriptor 5 0 R"
    " /CIDSystemInfo << /Registry (Adobe) /Ordering (Identity) /Supplement 0 >> >>",
    f"<< /Type /FontDescriptor /FontName /Words /Flags 4 /Ascent {_ASCENT} /Descent {_DESCENT}"
    f" /FontBBox [0 {_DESCENT} 1000 {_ASCENT}] /ItalicAngle 0 /CapHeight {_ASCENT} /StemV 80 >>",
)
"""Every character has a code and a width of its own height; no glyph is ever drawn."""


@contextmanager
def text_layer(pages: Sequence[PageWords]) -> Iterator[pypdfium2.PdfDocument]:
    """Yield a PDF of the words of pages, of at least one, in the order given."""
    first = 7
    kids = " ".join(f"{first + 2 * at} 0 R" for at in range(len(pages)))
    objects = [
        "<< /Type /Catalog /Pages 2 0 R >>",
        f"<< /Type /Pages /Count {len(pages)} /Kids [{kids}] >>",
        *_FONT,
        _stream(_UNICODE),
    ]
    for at, page in enumerate(pages):
        objects += [
            f"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 {page.width} {page.height}]"
            " /Resources << /Font << /W 3 0 R >> >>"
            f" /Contents {first + 2 * at + 1} 0 R >>",
            _stream("\n".join(_shown(page))),
        ]
    data, places = "%PDF-1.7\n", []
    for number, written in enumerate(objects, start=1):
        places.append(len(data))
        data += f"{number} 0 obj\n{written}\nendobj\n"
    table = "".join(f"{place:010d} 00000 n \n" for place in places)
    size = len(objects) + 1
    data += f"xref\n0 {size}\n0000000000 65535 f \n{table}"
    data += f"trailer\n<< /Size {size} /Root 1 0 R >>\nstartxref\n{data.index('xref')}\n%%EOF"
    document = pypdfium2.PdfDocument(data.encode("ascii"))
    try:
        yield document
    finally:
        document.close()


def _stream(content: str) -> str:
    return f"<< /Length {len(content)} >>\nstream\n{content}\nendstream"


def _shown(page: PageWords) -> Iterator[str]:
    """Yield operators that show the words: those of a straight line on one base, as high."""
    yield "BT"
    for line in page.lines:
        tops, bottoms = [word.top for word in line], [word.bottom for word in line]
        tallest = max(_LOWEST, *(word.bottom - word.top for word in line))
        is_flat = max(bottoms) - min(tops) <= _FLAT * tallest
        size = max(_LOWEST, max(bottoms) - min(tops)) if is_flat else tallest
        for at, word in enumerate(line, start=1):
            text = _BEYOND.sub("\ufffd", word.text)
            width = (word.right - word.left) / (size * len(text))
            bottom = max(bottoms) if is_flat else word.bottom
            base = page.height - bottom - size * _DESCENT / 1000
            codes = (text if at == len(line) else f"{text} ").encode("utf-16-be").hex()
            yield (
                f"/W {size:.2f} Tf {100 * width:.2f} Tz 1 0 0 1 {word.left:.2f} {base:.2f} Tm"
                f" <{codes}> Tj"
            )
    yield "ET"
