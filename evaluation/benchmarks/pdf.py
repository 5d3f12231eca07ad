"""Measure the PDF path against bare pypdfium2, in processor seconds.

    python -m evaluation.benchmarks.pdf [--data DIR] [--pages N]

Both sides read the same files in turn until N pages are done. The bare side opens the file and
takes each page's text. Ours is a parse as the server does it: the request to the child process,
normal form, joined words, flowing lines, headings, page map, and the answer read back; parent and
child are added up. The one-off start of the child (0.2 s, kept warm for 200 parses) is left out.
"""

from __future__ import annotations

import sys
import time
from collections import Counter
from importlib.metadata import version
from pathlib import Path

import psutil
import pypdfium2

from app.core.types import ParsedDocument
from app.ingest.names import IngestOptions
from app.ingest.sandbox import SandboxedParser
from evaluation.lib.served import Line, write
from evaluation.lib.workbench import arguments

LEAST_KEPT = 0.995
"""Share of the signs of a page by bare pypdfium2 that our text must hold."""


def bare_text(path: Path) -> list[str]:
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


def kept_share(bare: list[str], parsed: ParsedDocument) -> float:
    """Return the smallest share of a page's characters that our text holds."""
    shares = []
    for page, text in zip(parsed.pages, bare, strict=True):
        # U+0002 marks a broken word and other controls are glyphs without a character: neither can
        # be in a text.
        wanted = Counter(char for char in text if not char.isspace() and char.isprintable())
        found = Counter(parsed.text[page.start : page.end])
        if wanted:
            shares.append((wanted & found).total() / wanted.total())
    return min(shares)


def main() -> int:
    parser = arguments(__doc__ or "")
    parser.add_argument("--pages", type=int, default=1000, help="pages to read on each side")
    given = parser.parse_args()
    files = sorted((given.data / "pdf").glob("*.pdf"))
    if not files:
        raise SystemExit(f"no PDF in {given.data / 'pdf'}; give a folder with pdf/*.pdf by --data")
    bare_s = ours_s = 0.0
    pages = 0
    with SandboxedParser(IngestOptions(parse_processes=1)) as sandbox:
        kept = min(kept_share(bare_text(path), sandbox.parse(path, path.name)) for path in files)
        child = psutil.Process(sandbox.pids[0])

        def cpu_s() -> float:
            times = child.cpu_times()
            return time.process_time() + times.user + times.system

        while pages < given.pages:
            for path in files:
                started = time.process_time()
                pages += len(bare_text(path))
                bare_s += time.process_time() - started
                started = cpu_s()
                sandbox.parse(path, path.name)
                ours_s += cpu_s() - started
    figures = {
        "bare pypdfium2, pages a processor second": pages / bare_s,
        "ours, pages a processor second": pages / ours_s,
        "ours by bare": bare_s / ours_s,
    }
    remarks = [
        f"{pages} pages of {', '.join(path.name for path in files)}; pypdfium2"
        f" {version('pypdfium2')}. Processor seconds, parent and child added; without the one-off"
        " start of the child."
    ]
    lines = [Line("characters kept on the worst page", kept, LEAST_KEPT, "", at_most=False)]
    title = "PDF path against bare pypdfium2"
    return write("pdf", title, remarks, lines, figures, "make bench-pdf")


if __name__ == "__main__":
    sys.exit(main())
