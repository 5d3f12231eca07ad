"""Parse PDF with pypdfium2: text by page, words re-joined, lines flowed."""

from __future__ import annotations

import re
from bisect import bisect_left
from dataclasses import replace
from functools import lru_cache
from itertools import pairwise

import pypdfium2
import pypdfium2.raw as pdfium

from app.core.errors import Encrypted, TooLarge, Unreadable
from app.core.normalisation import normalise
from app.core.text import UNSPACED
from app.core.types import Heading, PageSpan, ParsedDocument
from app.ingest.options import IngestOptions
from app.ingest.parsers.formats import FORMATS
from app.ingest.parsers.headings import find_headings
from app.ingest.parsers.legible import judge, pages_of_pictures, require_text
from app.ingest.parsers.running_heads import set_apart
from app.ingest.parsers.tex_fonts import has_codes, name_tex_codes

# PDFium puts U+0002 where a word was broken by a hyphen at a line end, and drops the line end with
# it. All patterns of this module start with a literal character where they can: those are found at
# memory speed, others cost as much as PDFium itself.
_BREAK = re.compile(r"\x02(?=([^\W\d_]+|\d))")
_WORD = re.compile(r"[^\W\d_]+")
_LONGEST_PART = 40
_UNNAMED = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ufffe\uffff]")
_LIST_OR_CAPTION = (
    r"(?![\u2022\u25aa\u25e6\u2023*\u2013\u2014-]|\(?\w{1,2}[.)] |(?:Figure|Fig\."
    r"|Table|Algorithm) ?\d)"
)
_ENTRY_OF_CONTENTS = re.compile(r"\.(?<!\.\.)(?<!\. \.)(?: ?\.){3,}+ *[\divx]{1,6} *(?=\n)")
"""Leaders and a page number."""
_HAS_UNSPACED = re.compile(f"\n(?<=[{UNSPACED}]\n)[{UNSPACED}]")
_FRONT_MATTER_LINES = 40


def parse_pdf(content: bytes, filename: str, options: IngestOptions) -> ParsedDocument:
    """Return the text of a PDF with its page map and headings.

    Every character that PDFium names is kept; ligatures of TeX fonts are named, other codes without
    a Unicode value become U+FFFD. Words broken at a line end are joined again, line ends within a
    paragraph become spaces, one for one, so that offsets stay, and a blank line parts running heads
    and feet from the text.

    Raises:
        Encrypted: It wants a password (the empty one was tried).
        NoTextLayer: Fewer than 20 characters per page on average, or a third of them without a
            meaning.
        TooLarge: More pages than `options.max_pages`.
        Unreadable: PDFium cannot open it.
    """
    document = _open(content, filename)
    try:
        if len(document) > options.max_pages:
            raise TooLarge(
                f"{filename!r} has {len(document)} pages; at most {options.max_pages} are read:"
                " split it and send the parts"
            )
        raw = [_page_text(document, number) for number in range(len(document))]
        information = document.get_metadata_dict()
        if not raw:
            raise Unreadable(f"{filename!r} has no pages; save it again and upload that")
        require_text(filename, raw)
        scanned = pages_of_pictures(document, raw)
    except pypdfium2.PdfiumError as exc:
        raise Unreadable(
            f"{filename!r} is a damaged PDF ({exc}); save it again and upload that"
        ) from exc
    finally:
        document.close()
    parsed = _assemble(raw, information)
    return replace(parsed, warnings=judge(filename, parsed, scanned))


def _open(content: bytes, filename: str) -> pypdfium2.PdfDocument:
    try:
        return pypdfium2.PdfDocument(content)
    except pypdfium2.PdfiumError as exc:
        if exc.err_code == pdfium.FPDF_ERR_PASSWORD:
            raise Encrypted(
                f"{filename!r} is protected by a password; save a copy without one and send that"
            ) from exc
        raise Unreadable(
            f"{filename!r} is a damaged PDF ({exc}); save it again and upload that"
        ) from exc


def _page_text(document: pypdfium2.PdfDocument, index: int) -> str:
    page = document[index]
    textpage = page.get_textpage()
    text: str = textpage.get_text_bounded()
    textpage.close()
    page.close()
    return text


def _assemble(raw: list[str], information: dict[str, str]) -> ParsedDocument:
    raw = name_tex_codes(raw)
    compounds = _compounds(raw)
    clean = [normalise(_mark_unnamed(_join_words(page, compounds))) for page in raw]
    clean = [(_join_unspaced(text), removed) for text, removed in clean]
    framed = set_apart([text.strip("\n") for text, _ in clean])
    pages: list[PageSpan] = []
    running: list[tuple[int, int]] = []
    position = 0
    for number, page in enumerate(framed, start=1):
        pages.append(PageSpan(number, position, position + len(page.text)))
        running += ((position + start, position + end) for start, end in page.running)
        position += len(page.text) + 1
    text = "\n".join(page.text for page in framed)
    headings = find_headings(text, running)
    flowing = "\n".join(_flow_page(text, span, headings) for span in pages)
    return ParsedDocument(
        text=flowing,
        media_type=FORMATS["pdf"].media_type,
        pages=tuple(pages),
        headings=tuple(headings),
        title=information.get("Title") or None,
        authors=tuple(filter(None, [information.get("Author")])),
        stripped_characters=sum(removed for _, removed in clean),
    )


def _mark_unnamed(text: str) -> str:
    return (
        _UNNAMED.sub("\ufffd", text)
        if has_codes(text) or any(code in text for code in "\x02\ufffe\uffff")
        else text
    )


def _compounds(raw: list[str]) -> set[str]:
    """Return words the document writes with a hyphen, lower-case.

    Empty if no word is broken.
    """
    if not any("\x02" in text for text in raw):
        return set()
    found: set[str] = set()
    for text in raw:
        parts = text.split("-")
        for left, right in pairwise(parts):
            before, after = _last_word(left), _WORD.match(right)
            if before and after:
                found.add(f"{before}-{after.group()}".lower())
    return found


def _last_word(text: str) -> str:
    """Return the letters at the end of a text.

    Matched backwards; a search would try every start.
    """
    found = _WORD.match(text[: -_LONGEST_PART - 1 : -1])
    return found.group()[::-1] if found else ""


def _join_words(text: str, compounds: set[str]) -> str:
    """Join words broken at line ends; keep a compound's hyphen if used elsewhere."""
    if "\x02" not in text:
        return text

    def joined(match: re.Match[str]) -> str:
        at = match.start()
        left = _last_word(text[max(0, at - _LONGEST_PART) : at])
        if not left:
            return "\ufffd"  # a glyph without a Unicode value, not a hyphen
        right = match[1]
        before = text[at - len(left) - 1 : at - len(left)]
        keeps = not right[0].islower() or before == "-" or f"{left}-{right}".lower() in compounds
        return "-" if keeps else ""

    return _BREAK.sub(joined, text)


def _join_unspaced(text: str) -> str:
    """Return a page without line ends inside Han and kana paragraphs.

    These have no spaces between words.
    """
    if not _HAS_UNSPACED.search(text):
        return text
    full = max(8, _usual_length(text) * 4 // 5)
    return re.sub(f"(?<=[^\n]{{{full}}}[{UNSPACED}\uff0c\u3001\uff1b])\n(?=[{UNSPACED}])", "", text)


def _flow_page(text: str, page: PageSpan, headings: list[Heading]) -> str:
    """Return a page with paragraphs on one line; headings keep their lines."""
    first = bisect_left(headings, page.start, key=lambda h: h.start)
    parts: list[str] = []
    position = page.start
    for heading in headings[first:]:
        if heading.start >= page.end:
            break
        block = text[position : heading.start]
        # Title, authors and affiliations of a first page stay on lines of their own for the
        # metadata.
        front = page.number == 1 and position == 0 and block.count("\n") <= _FRONT_MATTER_LINES
        parts += (block if front else _flow(block), text[heading.start : heading.end])
        position = heading.end
    # The lines of a title page are short, none of them runs on: only the whole document tells how
    # long a full line is.
    is_title_page = page.number == 1 and position == page.start
    parts.append(_flow(text[position : page.end], text if is_title_page else None))
    return "".join(parts)


def _flow(block: str, of: str | None = None) -> str:
    """Return a block with the line ends inside paragraphs replaced by spaces.

    `of` has lines of the usual length; by default the block itself.
    """
    usual = _usual_length(of or block)
    if block.count("\n") < 2:
        return block
    wrapped = _wrapped(max(20, usual * 4 // 50 * 10))
    leaders = "...." in block or ". . . ." in block
    entries = {match.end() for match in _ENTRY_OF_CONTENTS.finditer(block)} if leaders else set()
    return (
        wrapped.sub(lambda end: "\n" if end.start() in entries else " ", block)
        if entries
        else wrapped.sub(" ", block)
    )


def _usual_length(text: str) -> int:
    """Return how many characters a line that is not the last of its paragraph has."""
    lengths = sorted(map(len, text.split("\n")))
    return lengths[int(0.7 * (len(lengths) - 1))]


@lru_cache(maxsize=64)
def _wrapped(full: int) -> re.Pattern[str]:
    """Return the pattern of a line end inside a paragraph.

    It follows a line of about full length, or stands between lower-case letters.
    """
    after_full_line = rf"(?<=[^\n]{{{full}}}\n)(?=\S){_LIST_OR_CAPTION}"
    return re.compile(rf"\n(?:{after_full_line}|(?<=[a-z,;\u2019-]\n)(?=[a-z(]))")
