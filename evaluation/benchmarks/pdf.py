"""Measure the PDF path against bare pypdfium2, in processor seconds.

    python -m evaluation.benchmarks.pdf [--data DIR] [--pages N] [--out DIR]

Both sides read the same files in turn until N pages are done. The bare side opens the file and
takes each page's text. Ours is a parse as the server does it: the request to the child process,
normal form, joined words, flowing lines, headings, page map, and the answer read back; parent and
child are added up. The one-off start of the child (0.2 s, kept warm for 200 parses) is left out.
"""

from __future__ import annotations

import argparse
import json
import platform
import sys
import time
from collections import Counter
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path

import psutil
import pypdfium2

from app.core.types import ParsedDocument
from app.ingest.names import IngestOptions
from app.ingest.sandbox import SandboxedParser
from evaluation.lib.paths import DATA, ROOT

LIMIT_KEPT = 0.995


@dataclass(frozen=True, slots=True)
class Report:
    """Pages per processor second; `kept_*` are shares of the signs of bare pypdfium2."""

    pages: int
    bare_pages_per_cpu_s: float
    ours_pages_per_cpu_s: float
    speed_ratio: float
    kept_worst_page: float
    kept_limit: float
    files: tuple[str, ...]
    pypdfium2: str
    python: str

    @property
    def holds(self) -> bool:
        """Return whether our text keeps the file's text."""
        return self.kept_worst_page >= self.kept_limit


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


def measure(files: list[Path], pages: int) -> Report:
    """Read the files in turn on both sides until `pages` pages are done."""
    bare_s = ours_s = 0.0
    done = 0
    with SandboxedParser(IngestOptions(parse_processes=1)) as parser:
        kept = min(kept_share(bare_text(path), parser.parse(path, path.name)) for path in files)
        child = psutil.Process(parser.pids[0])
        while done < pages:
            for path in files:
                started = time.process_time()
                texts = bare_text(path)
                bare_s += time.process_time() - started
                child_before, started = _cpu_s(child), time.process_time()
                parser.parse(path, path.name)
                ours_s += time.process_time() - started + _cpu_s(child) - child_before
                done += len(texts)
    return Report(
        pages=done,
        bare_pages_per_cpu_s=round(done / bare_s, 1),
        ours_pages_per_cpu_s=round(done / ours_s, 1),
        speed_ratio=round(bare_s / ours_s, 3),
        kept_worst_page=round(kept, 5),
        kept_limit=LIMIT_KEPT,
        files=tuple(path.name for path in files),
        pypdfium2=version("pypdfium2"),
        python=platform.python_version(),
    )


def _cpu_s(process: psutil.Process) -> float:
    times = process.cpu_times()
    return times.user + times.system


def write(report: Report, folder: Path) -> None:
    """Write `pdf.json` and `pdf.md`."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "pdf.json").write_text(
        json.dumps({**asdict(report), "holds": report.holds}, indent=2) + "\n", "utf-8"
    )
    lines = [
        "# PDF path against bare pypdfium2",
        "",
        f"{report.pages} pages of {', '.join(report.files)}; pypdfium2 {report.pypdfium2}, Python"
        f" {report.python}.",
        "Processor seconds, parent and child added; without the one-off start of the child.",
        "",
        "| | bare pypdfium2 | ours | ratio | limit |",
        "|---|---|---|---|---|",
        f"| pages per processor second | {report.bare_pages_per_cpu_s} |"
        f" {report.ours_pages_per_cpu_s} | {report.speed_ratio} | |",
        f"| characters kept on the worst page | 1 | {report.kept_worst_page} |"
        f" {report.kept_worst_page} | >= {report.kept_limit} |",
        "",
        "Made by `make bench-pdf` (`python -m evaluation.benchmarks.pdf`).",
        "",
    ]
    (folder / "pdf.md").write_text("\n".join(lines), "utf-8")


def main() -> int:
    """Run the benchmark; the exit code says whether the limits hold."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--data", type=Path, default=DATA, help="folder that holds pdf/*.pdf")
    parser.add_argument(
        "--pages", type=int, default=1000, help="pages to read on each side (default 1000)"
    )
    parser.add_argument(
        "--out",
        type=Path,
        default=ROOT / "evaluation" / "reports",
        help="where pdf.json and pdf.md go",
    )
    arguments = parser.parse_args()
    files = sorted((arguments.data / "pdf").glob("*.pdf"))
    if not files:
        print(
            f"no PDF in {arguments.data / 'pdf'}; give a folder with pdf/*.pdf by --data",
            file=sys.stderr,
        )
        return 2
    report = measure(files, arguments.pages)
    write(report, arguments.out)
    print(
        f"{report.pages} pages: bare {report.bare_pages_per_cpu_s}/s, ours"
        f" {report.ours_pages_per_cpu_s}/s,"
        f" ratio {report.speed_ratio}"
        f"; worst page keeps {report.kept_worst_page} (limit {report.kept_limit})"
    )
    return 0 if report.holds else 1


if __name__ == "__main__":
    raise SystemExit(main())
