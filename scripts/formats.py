"""Write docs/formats.md from the table of formats and what their parsers say of themselves.

python -m scripts.formats
"""

from __future__ import annotations

import argparse
import inspect
import re
from importlib import import_module
from pathlib import Path

from app.core.types import FileType
from app.ingest.ocr import MOST_PIXELS
from app.ingest.options import IngestOptions
from app.ingest.parsers.formats import FORMATS, FileFormat
from app.ingest.parsers.images import MOST_IMAGE_PIXELS
from app.ingest.parsers.office import MAX_ENTRIES, MAX_RATIO, MAX_UNPACKED_BYTES
from app.ingest.parsers.tables import MOST_CELLS

PAGE = Path(__file__).parent.parent / "docs" / "formats.md"
_SHEETS = "hidden sheets, rows and columns, formulas without a stored value, errors, pictures"
_LONGEST = 240
NOT_READ: dict[FileType, tuple[str, str]] = {
    "pdf": ("pages that are pictures, where there is no OCR; attached files", "PDFium"),
    "docx": ("deleted, struck-through and hidden text, embedded files", "lxml"),
    "odt": ("deleted, struck-through and hidden text, pictures without a description", "lxml"),
    "pptx": ("hidden slides and shapes, pictures without a description, embedded files", "lxml"),
    "xlsx": (_SHEETS, "lxml"),
    "xls": ("hidden sheets, sheets of charts", "python-calamine"),
    "ods": (_SHEETS, "lxml"),
    **dict.fromkeys(("odp", "odg"), ("hidden pages, pictures without a description", "lxml")),
    "csv": ("rows behind too many cells", "csv"),
    "html": ("menus, scripts, hidden elements, struck-through text", "selectolax"),
    "markdown": ("comments, blocks nested too deeply", "markdown-it-py"),
    "rtf": ("hidden parts, pictures", "striprtf"),
    "epub": ("what the reading order leaves out", "lxml, selectolax"),
    "email": ("attached files of other formats", "email"),
    "mbox": ("attached files of other formats", "email"),
    "msg": ("attached files of other formats", "olefile"),
    "mhtml": ("as in HTML", "email, selectolax"),
    "cards": ("alarms, time zones, pictures", ""),
    "ipynb": ("pictures and HTML among the outputs", "json"),
    "subtitles": ("numbers and settings of cues", ""),
    "json": ("long lists of numbers, lines that are no JSON", "json"),
    "yaml": ("long lists of numbers", "PyYAML"),
    "xml": ("comments, processing instructions, long lists of numbers", "lxml"),
    "rst": ("included files, pictures", "docutils"),
    "asciidoc": ("comments, included files", ""),
    "org": ("comments, settings", ""),
    "latex": ("the preamble, comments, numbers of labels", "pylatexenc"),
    "code": ("", ""),
    **dict.fromkeys(("png", "jpeg", "tiff", "webp"), ("", "Pillow, OCR")),
    "text": ("terminal codes", ""),
}
"""What a receipt names or counts instead, and the library that reads the file."""


def what_is_read(one: FileFormat) -> str:
    """Return the first paragraphs of a parser's docstring, as a phrase."""
    module, _, function = one.parser.partition(":")
    parser = getattr(import_module(f"app.ingest.parsers.{module}"), function)
    said = re.split(r"\n\n(?:Raises|Args):", inspect.getdoc(parser) or "")[0]
    if len(said) > _LONGEST:
        said = said.partition("\n\n")[0]
    text = " ".join(said.split()).removeprefix("Return ").replace("|", "\\|")
    return text[:1].upper() + text[1:]


def page() -> str:
    options = IngestOptions()
    rows = [
        f"| {one.label} | {' '.join(one.suffixes)} | {what_is_read(one)}"
        f" | {NOT_READ.get(name, ('', ''))[0]} | {NOT_READ.get(name, ('', ''))[1]} |"
        for name, one in FORMATS.items()
    ]
    return "\n".join(
        [
            "# Formats",
            "",
            "<!-- made by `python -m scripts.formats` -->",
            "",
            "A file is recognised by its content; the extension only tells kinds of text apart."
            " What is none of these is refused with the way out.",
            "Each row of a table is one line with the names of its columns, and a chunk never ends"
            " within one. Base64, hexadecimal and binary data within",
            "a text are left out, and the receipt says so. [extending.md](extending.md) adds a"
            " format.",
            "",
            "| format | extensions | what is read | named in the receipt or left out | library |",
            "|---|---|---|---|---|",
            *rows,
            "",
            f"Limits: a file has at most {options.max_file_bytes // 1024**2} MB (MAX_FILE_SIZE_MB),"
            f" {options.max_pages:,} pages and {options.max_characters:,} characters of text, a"
            f" table file {MOST_CELLS:,} cells",
            f"(what is behind is named), an archive {MAX_ENTRIES:,} parts,"
            f" {MAX_UNPACKED_BYTES // 1024**2} MB unpacked and {MAX_RATIO} times its packed size."
            f" Each parse has {options.parse_cpu_s} s of processor",
            f"time and {options.parse_memory_bytes // 1024**2:,} MB of memory in a process of its"
            " own.",
            "",
            "Text of pictures is read where there is OCR: `make setup EXTRAS=ocr` or `pip install"
            " 'documind-server[ocr]'` (rapidocr with its models), or the",
            "program tesseract (OCR_ENGINE, OCR_LANGUAGES). With OCR=auto these are scans, pages"
            " whose fonts do not name the characters they show, and images. A file is",
            "accepted at once with the text it has; the job `ocr` prints a page at 200 dpi, at most"
            f" {MOST_PIXELS // 10**6} megapixels, and goes on behind the pages it has read when",
            "it is interrupted. Then the document has a new revision; the receipt and the flag"
            " `ocr:N` say how many pages are by OCR, `unread:N` how many wait for it.",
            f"An image has at most {MOST_IMAGE_PIXELS // 10**6} megapixels. Sending a file again"
            " asks for what was cancelled. Backups and bundles carry where the words stand."
            " [evaluation/reports/ocr.md](../evaluation/reports/ocr.md) has figures.",
            "",
        ]
    )


def main() -> None:
    argparse.ArgumentParser(description=__doc__).parse_args()
    PAGE.write_text(page(), encoding="utf-8")


if __name__ == "__main__":
    main()
