"""Measure OCR on pages whose text is known; write evaluation/reports/ocr.{json,md}.

    python -m evaluation.benchmarks.ocr --engine tesseract --pages 10

Pages of the PDFs in `whole/` are printed at 200 dpi, as pages that are pictures are, and what an
engine reads on them is compared with their own text: words in lower case, as often as they stand on
the page. Figures are kept after each file, and a run goes on behind the pages that an engine has
read; `--anew` begins again. The data are in the folder DATA (docs/evaluation.md).
"""

from __future__ import annotations

import re
import resource
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import pypdfium2

from app.core.errors import Unreadable
from app.ingest.ocr import recognise, words_of_page
from app.ingest.options import IngestOptions, find_engine
from app.ingest.parsers.pdf import texts_of_words
from app.ingest.parsers.pdf_layout import PageLayout
from evaluation.lib.reports import COLLECTIONS, options, publish, report, table

AIM = 0.95
"""Share of the words of all pages that is asked for."""
_LEAST_CHARACTERS = 400
"""Of a page that is compared: others are titles and pictures."""
_WORD = re.compile(r"\w+")
_MARK = re.compile("[\ufdd0-\ufdef]")


@dataclass(frozen=True, slots=True)
class Read:
    file: str
    page: int
    words: int
    recovered: int
    read: int
    numbers: int
    numbers_recovered: int
    cpu_s: float
    wall_s: float


def words_in(text: str) -> Counter[str]:
    """Count the words of a page; those that are broken at a line end are joined."""
    return Counter(_WORD.findall(_MARK.sub("", text.replace("\x02", "")).lower()))


def read_pages(path: Path, pages: int, options: IngestOptions, done: set[int]) -> list[Read]:
    """Read pages of a PDF, evenly spread over those with text, that are not `done`."""
    document = pypdfium2.PdfDocument(path)
    texts = {}
    for at in range(len(document)):
        page = document[at]
        textpage = page.get_textpage()
        texts[at + 1] = PageLayout(page, textpage).text
        textpage.close()
        page.close()
    document.close()
    full = [number for number, text in texts.items() if len(text) >= _LEAST_CHARACTERS]
    chosen = [full[at * len(full) // pages] for at in range(pages)] if len(full) > pages else full
    return [
        _read(path, number, words_in(texts[number]), options)
        for number in chosen
        if number not in done
    ]


def _read(path: Path, number: int, known: Counter[str], options: IngestOptions) -> Read:
    content = path.read_bytes()
    cpu, began = _cpu_s(), time.perf_counter()
    words = words_of_page(content, number, options, recognise)
    took = _cpu_s() - cpu, time.perf_counter() - began
    read = words_in(texts_of_words([words]).get(number, ""))
    both = known & read
    numbers = Counter({word: n for word, n in known.items() if any(map(str.isdigit, word))})
    counts = known.total(), both.total(), read.total(), numbers.total(), (numbers & read).total()
    return Read(path.name, number, *counts, *took)


def _cpu_s() -> float:
    """Return the processor time of this process and of programs that it has run."""
    return sum(
        used.ru_utime + used.ru_stime
        for used in map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    )


def page_of(record: dict[str, list[dict[str, float | str]]]) -> str:
    lines = [
        "# Words that OCR recovers",
        "",
        "Written by `python -m evaluation.benchmarks.ocr`. Text pages of PDFs, printed at 200 dpi"
        " and read again, compared with their own text. Numbers are words with a digit;",
        "precision is the share of the words read that stand on the page. Seconds are of one"
        f" processor, on the machine at hand with other work on it. The aim is {AIM} of the words.",
    ]
    head = "engine|files|pages|words|recovered|worst file|precision|numbers|recovered|CPU s a page"
    rows = []
    for engine, pages in record.items():
        read = [Read(**page) for page in pages]  # type: ignore[arg-type]
        files = {page.file for page in read}
        worst = min(_recovered([page for page in read if page.file == name]) for name in files)
        numbers = sum(page.numbers for page in read)
        shares = (
            f"{_recovered(read):.3f}",
            f"{worst:.3f}",
            f"{sum(p.recovered for p in read) / sum(p.read for p in read):.3f}",
            f"{numbers:,}",
            f"{sum(p.numbers_recovered for p in read) / max(numbers, 1):.3f}",
            f"{sum(p.cpu_s for p in read) / len(read):.1f}",
        )
        words = sum(page.words for page in read)
        rows.append((engine, str(len(files)), str(len(read)), f"{words:,}", *shares))
    return "\n".join([*lines, "", *table(head.split("|"), rows), ""])


def _recovered(pages: Sequence[Read]) -> float:
    return sum(page.recovered for page in pages) / sum(page.words for page in pages)


def main() -> int:
    given = options(
        __doc__,
        data=COLLECTIONS["data"],
        engine=("rapidocr", "what reads", ("rapidocr", "tesseract")),
        pages=(10, "of each file"),
        anew=(False, "keep no figures of this engine"),
    )
    if not (engine := find_engine(given.engine)):
        raise Unreadable(f"{given.engine} is not installed; see docs/formats.md")
    reading = IngestOptions(ocr_engine=engine)
    read = [] if given.anew else [Read(**page) for page in report("ocr").get(given.engine, ())]
    for path in sorted((given.data / "whole").glob("*.pdf")):
        done = {page.page for page in read if page.file == path.name}
        read += read_pages(path, given.pages, reading, done)
        record = {**report("ocr"), given.engine: [asdict(page) for page in read]}
        publish("ocr", record, page_of(dict(sorted(record.items()))))
    return int(sum(page.recovered for page in read) < AIM * sum(page.words for page in read))


if __name__ == "__main__":
    raise SystemExit(main())
