"""Measure what reading keeps of PDFs, against bare pypdfium2.

A row is at least three cells of numbers on one baseline, parted by gaps of 0.7 of the font's size;
the glyphs are asked for one by one, not as the parser does it.
"""

from __future__ import annotations

import ctypes
import re
import time
import unicodedata
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

import psutil
import pypdfium2
import pypdfium2.raw as pdfium

from app.core.types import ParsedDocument
from app.ingest.options import IngestOptions
from app.ingest.sandbox import SandboxedParser

_CELL_GAP = 0.7
_NUMBER = re.compile(r"[^\w\s]{0,3}\d[\d.,:/%\u00b1\u2212\u2013-]*[A-Za-z%]{0,2}[^\w\s]{0,3}\Z")
_DIGITS = re.compile(r"\d+")
_RUN = 5
_PAGES_FOR_SPEED = 400


def pdf(data: Path) -> dict[str, tuple[float, float]]:
    """Read `pdf/` and `whole/`; return each figure and at least what it should be.

    Characters and words are those of bare pypdfium2 without lines that stand on three pages; marks
    of footnotes are left out on purpose. Speeds are pages a processor second, parent and child
    added, without the one-off start of the child.
    """
    files = sorted([*(data / "pdf").glob("*.pdf"), *(data / "whole").glob("*.pdf")])
    kept, runs = [], []
    rows = lines = bare_lines = standing = named = 0
    with SandboxedParser(IngestOptions(parse_processes=1)) as sandbox:
        for path in files:
            parsed, bare = sandbox.parse(path, path.name), bare_texts(path)
            kept.append(kept_share(bare, parsed))
            runs.append(runs_share(bare, parsed))
            texts = [parsed.text[page.start : page.end] for page in parsed.pages]
            for index, cells in rows_of(path):
                rows += 1
                lines += stays_line(cells, texts[index])
                bare_lines += stays_line(cells, bare[index].replace("\r", ""))
            some, found = outline_shares(path, parsed)
            standing, named = standing + some, named + found
        bare_speed, our_speed = _speeds(files, _PAGES_FOR_SPEED, sandbox)
    return {
        "characters kept in the worst file": (min(kept), 0.97),
        "runs of five words kept, mean": (sum(runs) / len(runs), 0.95),
        "the same in the worst file": (min(runs), 0.9),
        f"rows of numbers that stay a line, of {rows}": (lines / rows, 0.75),
        "the same in the text of bare pypdfium2": (bare_lines / rows, 0.0),
        f"entries of outlines that are headings, of {standing} in the text": (
            named / standing,
            0.9,
        ),
        "speed by bare pypdfium2's": (our_speed / bare_speed, 0.35),
        "pages a processor second": (our_speed, 0.0),
    }


def bare_texts(path: Path) -> list[str]:
    """Return each page's text as pypdfium2 gives it."""
    document = pypdfium2.PdfDocument(path)
    texts = []
    for index in range(len(document)):
        page = document[index]
        textpage = page.get_textpage()
        texts.append(textpage.get_text_bounded())
        textpage.close()
        page.close()
    document.close()
    return texts


def without_repeats(pages: Sequence[str]) -> str:
    """Return the lines that do not stand on three pages, numbers aside."""
    lines = [[line.strip() for line in page.splitlines()] for page in pages]
    shapes = Counter(shape for page in lines for shape in {_DIGITS.sub("#", x) for x in page})
    kept = (x for page in lines for x in page if shapes[_DIGITS.sub("#", x)] < 3)
    return "\n".join(kept)


def kept_share(bare: Sequence[str], parsed: ParsedDocument) -> float:
    """Return the share of a document's visible characters that the stored text holds."""
    text = without_repeats(bare)
    wanted = Counter(char for char in text if not char.isspace() and char.isprintable())
    return (wanted & Counter(parsed.text)).total() / max(wanted.total(), 1)


def runs_share(bare: Sequence[str], parsed: ParsedDocument) -> float:
    """Return the share of runs of five words, in bare pypdfium2's order, that are stored so."""

    def runs(text: str) -> Counter[tuple[str, ...]]:
        words = re.findall(r"[^\W\d_]{2,}", text.replace("\x02", ""))
        return Counter(zip(*(words[at:] for at in range(_RUN)), strict=False))

    wanted = runs(without_repeats(bare))
    return (wanted & runs(parsed.text)).total() / max(wanted.total(), 1)


def rows_of(path: Path) -> Iterator[tuple[int, list[str]]]:
    """Yield page index and cells of each row of at least three numbers, glyph by glyph."""
    document = pypdfium2.PdfDocument(path)
    for index in range(len(document)):
        page = document[index]
        textpage = page.get_textpage()
        box, x, y = pdfium.FS_RECTF(), ctypes.c_double(), ctypes.c_double()
        cells: list[str] = []
        last: tuple[float, float, float] | None = None
        for at in range(textpage.count_chars()):
            char = chr(pdfium.FPDFText_GetUnicode(textpage.raw, at))
            if char.isspace() or not pdfium.FPDFText_GetLooseCharBox(textpage.raw, at, box):
                continue
            pdfium.FPDFText_GetCharOrigin(textpage.raw, at, x, y)
            size = max(box.top - box.bottom, 0.1)
            same = last is not None and abs(y.value - last[1]) < 0.5 * last[2]
            if not same or last is None or box.left < last[0] - size:
                yield from _row(index, cells)
                cells = [char]
            elif box.left - last[0] > _CELL_GAP * size:
                cells.append(char)
            else:
                cells[-1] += char
            last = box.right, y.value, size
        yield from _row(index, cells)
        textpage.close()
        page.close()
    document.close()


def _row(index: int, cells: list[str]) -> Iterator[tuple[int, list[str]]]:
    numbers = [cell for cell in cells if _NUMBER.match(cell)]
    if len(numbers) >= 3:
        yield index, numbers


def stays_line(cells: Sequence[str], page: str) -> bool:
    """Return whether one line of a page has the cells in order and little else."""
    wanted = [_plain(cell) for cell in cells]
    for line in page.split("\n"):
        plain, at = _plain(line), 0
        for cell in wanted:
            at = plain.find(cell, at)
            if at < 0:
                break
            at += len(cell)
        else:
            if len(_DIGITS.findall(line)) < 3 * sum(len(_DIGITS.findall(cell)) for cell in cells):
                return True
    return False


def _plain(text: str) -> str:
    return re.sub(r"[^\w.]", "", text)


def outline_shares(path: Path, parsed: ParsedDocument) -> tuple[int, int]:
    """Return how many entries of an outline stand in the text, and how many are headings."""
    document = pypdfium2.PdfDocument(path)
    titles = [_key(mark.get_title()) for mark in document.get_toc()]
    document.close()
    text = _key(parsed.text)
    standing = [title for title in titles if title and title in text]
    headings = {_key(heading.title) for heading in parsed.headings}
    return len(standing), sum(title in headings for title in standing)


def _key(text: str) -> str:
    plain = re.sub(r"\A\s*(?:(?:chapter|appendix) )?[\dA-Z]{1,3}(?:\.\d+)*[.:]?\s+", "", text)
    return re.sub(r"[\W_]+", "", unicodedata.normalize("NFKC", plain)).casefold()


def _speeds(files: Sequence[Path], pages: int, sandbox: SandboxedParser) -> tuple[float, float]:
    """Return pages a processor second: bare, and as the server does it, parent and child."""
    child = psutil.Process(sandbox.pids[0])

    def cpu_s() -> float:
        times = child.cpu_times()
        return time.process_time() + times.user + times.system

    bare_s = ours_s = 0.0
    done = 0
    while done < pages:
        for path in files:
            started = time.process_time()
            done += len(bare_texts(path))
            bare_s += time.process_time() - started
            started = cpu_s()
            sandbox.parse(path, path.name)
            ours_s += cpu_s() - started
    return done / bare_s, done / ours_s
