"""Parse PDF with pypdfium2: text by page, words re-joined, lines flowed."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import chain, islice, pairwise
from typing import Literal

import pypdfium2
import pypdfium2.raw as pdfium

from app.core.errors import NoTextLayer, TooLarge, Unreadable
from app.core.normalisation import normalise
from app.core.text import UNSPACED
from app.core.types import BlockSpan, Heading, PageSpan, PageWords, ParsedDocument
from app.ingest.ocr import INSTALL, text_layer
from app.ingest.options import IngestOptions
from app.ingest.parsers.blocks import resolved
from app.ingest.parsers.formats import FORMATS
from app.ingest.parsers.headings import OutlineEntry, find_headings, with_outline
from app.ingest.parsers.pdf_boxes import name_tex_codes
from app.ingest.parsers.pdf_layout import PageLayout, open_forms
from app.ingest.parsers.pdf_lines import KINDS, Heads
from app.ingest.parsers.sniffing import pdf_start, protected

# Judge whether a PDF's pages are readable: text, images, or unnamed glyphs.

MIN_CHARACTERS_PER_PAGE = 20
"""On average; with fewer, pages may be pictures of their text."""
_UNNAMED_FILE = 1 / 3
"""Share of a file's characters without a meaning from which it cannot be read."""
_UNNAMED_PAGE = 0.1
"""The same of a page that a warning names: formulas of a paper stay below a tenth, a figure with
a font of its own is above."""
_LEAST_WORDS = 4
"""Different words of a file whose pages are pictures: one stamp on each of them has fewer."""
_ANY_WORD = re.compile(r"[^\W\d_]{2,}")
_LEAST_PICTURE = 0.25
"""Share of a page that a picture of its text covers; a logo is smaller."""
_OCR = f"run OCR on pictures of the pages (ocrmypdf --force-ocr) and send the result, or, {INSTALL}"
_NO_OCR = IngestOptions()
_PRIVATE = re.compile("[\ue000-\uf8ff]")
"""Characters of the private use areas, which say nothing outside their font."""
_MOST_NAMED = 8
"""Ranges of pages that a warning lists."""


def pages_of_pictures(document: pypdfium2.PdfDocument, texts: Sequence[str]) -> list[int]:
    """Return the numbers, from 1, of pages that show a picture and hardly any text."""
    bare = (at for at, text in enumerate(texts) if len(text) < MIN_CHARACTERS_PER_PAGE)
    return [at + 1 for at in bare if _shows_picture(document, at)]


def _shows_picture(document: pypdfium2.PdfDocument, index: int) -> bool:
    page = document[index]
    try:
        least = _LEAST_PICTURE * page.get_width() * page.get_height()
        pictures = page.get_objects(filter=[pdfium.FPDF_PAGEOBJ_IMAGE], max_depth=3)
        sides = (picture.get_bounds() for picture in pictures)
        return any((right - left) * (top - bottom) >= least for left, bottom, right, top in sides)
    finally:
        page.close()


def lacks_text(texts: Sequence[str], scanned: Sequence[int]) -> bool:
    """Return whether a PDF shows pictures of its text (on the pages `scanned`), or nothing.

    It has no text at all; or fewer than 20 characters a page on average, half of the pages are
    pictures, and there is hardly a word on the others. A few words on each page, as slides and
    forms have them, are text.
    """
    length = sum(map(len, texts))
    if length >= MIN_CHARACTERS_PER_PAGE * len(texts):
        return False
    words = {word for text in texts for word in _ANY_WORD.findall(text)}
    few = len(words) < max(_LEAST_WORDS, len(texts) / 4)
    return not length or (few and 2 * len(scanned) >= len(texts))


def _unnamed_pages(parsed: ParsedDocument) -> list[int]:
    if not _unnamed(parsed.text):
        return []
    texts = [(page.number, parsed.text[page.start : page.end]) for page in parsed.pages]
    longer = [(number, text) for number, text in texts if len(text) >= MIN_CHARACTERS_PER_PAGE]
    return [number for number, text in longer if _unnamed(text) >= _UNNAMED_PAGE]


def _unnamed(text: str) -> float:
    """Return the share of characters without a meaning, not counting blanks."""
    unnamed = text.count("\ufffd") + len(_PRIVATE.findall(text))
    return unnamed / (len(text) - text.count(" ") - text.count("\n")) if unnamed else 0.0


def _pages(numbers: Sequence[int], of: int) -> str:
    """Return a number of pages and which: `4 of 20 pages (3, 7-9)`."""
    ranges: list[list[int]] = []
    for number in numbers:
        if ranges and number == ranges[-1][-1] + 1:
            ranges[-1][1:] = [number]
        else:
            ranges.append([number])
    named = _listed(["-".join(map(str, span)) for span in ranges])
    return f"{len(numbers)} of {of} pages ({named})"


def _listed(names: Sequence[str]) -> str:
    return ", ".join([*names[:_MOST_NAMED], *(["..."] if len(names) > _MOST_NAMED else [])])


# Find running heads and feet: lines repeated on pages, such as page numbers.

_LEAST_PAGES = 3
_LEAST_SHARE = 0.2
"""Of all pages, that have the same line or a number which counts the pages; heads of left and of
right pages differ."""
_DEEPEST = 2
"""Lines at an edge of a page: a journal's name above the authors'."""
_LEAST_PAGES_OF_SECTIONS = 6
"""Of a document whose heads name its sections: in a short one, the same first line twice is more
often text."""
_LEAST_ALIKE = 4
"""Pages. A line that repeats, numbers aside, on so many pages and on that share of all is a running
line in any wording, such as a copyright notice."""
_DEEPEST_ALIKE = 6
_SHORTEST_ALIKE = 4
"""Words: fewer may be a figure's number, or the end of a sentence."""
_NUMBER = re.compile(r"(?P<first>\d{1,5})(?:\s+|\Z)|(?:\A|\s)(?P<last>\d{1,5})\Z")
_DIGITS = re.compile(r"\d+")
_ENDS_SENTENCE = re.compile(r"[.!?;,]\Z")

Edge = Literal["head", "foot"]
Span = tuple[int, int]


@dataclass(frozen=True, slots=True)
class _Line:
    """The next line at an edge of a page."""

    edge: Edge
    words: str
    """Without a number at either end."""
    counts: tuple[Edge, str, int] | None
    """For a number at one end: where, and how far it is from the page's own; the same on all
    pages that it counts."""
    shape: str
    """All of it with a sign for every number; slides count themselves between other words."""


@dataclass(frozen=True, slots=True)
class FramedPage:
    """A page's text with its running lines set apart."""

    text: str
    running: tuple[Span, ...]
    """Half-open spans of them in the text."""


def set_apart(pages: Sequence[str]) -> list[FramedPage]:
    """Return pages, texts without line ends at their edges, without running lines that repeat.

    The first of its wording stays, with a blank line between it and the text, so that a sentence
    does not begin with it; the others, which only count the pages, are left out. A line is a
    running one when its words, or a number that counts the pages, alone or next to words that come
    twice, stand at the same edge of a fifth of all pages, three at least; when it is the same,
    numbers aside, on as many, four at least; or when one of two pages before has the same head.
    """
    lines = [page.split("\n") for page in pages]
    heads, feet = [0] * len(pages), [0] * len(pages)
    for depth in range(_DEEPEST_ALIKE):
        edges = [_edge_lines(page, depth, heads[at], feet[at], at) for at, page in enumerate(lines)]
        for at, edge in _repeated(edges, depth):
            heads[at] += edge == "head"
            feet[at] += edge == "foot"
    last: dict[str, tuple[int, list[int]]] = {}
    return [_framed(page, heads[at], feet[at], at, last) for at, page in enumerate(lines)]


def _is_new(line: str, number: int, last: dict[str, tuple[int, list[int]]]) -> bool:
    """Return whether a running line says more than the last one of its wording.

    Its numbers are the same, or count the pages; one that is a number only is never new.
    """
    shape = _DIGITS.sub("#", line).strip()
    numbers = [int(found) for found in _DIGITS.findall(line)]
    before = last.get(shape)
    last[shape] = number, numbers
    if before is None:
        return any(map(str.isalpha, shape))
    return any(
        now - then not in (0, number - before[0])
        for then, now in zip(before[1], numbers, strict=True)
    )


def _repeated(edges: Sequence[Sequence[_Line]], depth: int) -> Iterator[tuple[int, Edge]]:
    """Yield page and edge of the running lines among those at one depth of all pages."""
    lines = list(chain(*edges))
    words = Counter((line.edge, line.words) for line in lines)
    counts = Counter(line.counts for line in lines)
    shapes = Counter((line.edge, line.shape) for line in lines)
    heads = [next((line.words for line in found if line.edge == "head"), "") for found in edges]
    has_sections = len(heads) >= _LEAST_PAGES_OF_SECTIONS
    least = max(_LEAST_PAGES, _LEAST_SHARE * len(edges))
    for at, line in ((at, line) for at, found in enumerate(edges) for line in found):
        same = words[line.edge, line.words]
        is_long = len(line.words.split()) >= _SHORTEST_ALIKE
        is_alike = is_long and shapes[line.edge, line.shape] >= max(_LEAST_ALIKE, least)
        may_count = line.counts is not None and (not line.words or same > 1)
        counts_pages = may_count and counts[line.counts] >= least
        may_name = has_sections and line.edge == "head" and " " in line.words
        names_section = may_name and line.words in heads[max(0, at - 2) : at]
        is_title = bool(line.words) and not _ENDS_SENTENCE.search(line.words)
        names_part = is_title and (same >= least or names_section)
        if is_alike or (depth < _DEEPEST and (counts_pages or names_part)):
            yield at, line.edge


def _edge_lines(page: list[str], depth: int, heads: int, feet: int, number: int) -> list[_Line]:
    """Return the next line at each edge, if all lines outside it are running ones."""
    if len(page) <= heads + feet + 1:  # what is left is the page's text
        return []
    found = [_line("head", page[heads].strip(), number)] if heads == depth else []
    return [*found, _line("foot", page[-1 - feet].strip(), number)] if feet == depth else found


def _line(edge: Edge, text: str, number: int) -> _Line:
    found = _NUMBER.match(text) or _NUMBER.search(text)
    shape = _DIGITS.sub("#", text)
    if found is None or found.lastgroup is None:
        return _Line(edge, text, None, shape)
    words = (text[: found.start()] + text[found.end() :]).strip()
    far = int(found[found.lastgroup]) - number
    return _Line(edge, words, (edge, found.lastgroup if words else "", far), shape)


def _framed(
    page: list[str], heads: int, feet: int, number: int, last: dict[str, tuple[int, list[int]]]
) -> FramedPage:
    end = len(page) - feet
    head = "\n".join(line for line in page[:heads] if _is_new(line, number, last))
    foot = "\n".join(line for line in page[end:] if _is_new(line, number, last))
    text = "\n".join(page[heads:end])
    text = f"{head}\n\n{text}" if head else text
    text = f"{text}\n\n{foot}" if foot else text
    spans = (0, len(head)), (len(text) - len(foot), len(text))
    return FramedPage(text, tuple(span for span in spans if span[0] < span[1]))


# PDFium puts U+0002 where a word was broken by a hyphen at a line end, and drops the line end with
# it. Patterns start with a literal character where they can: those are found at memory speed.
_BREAK = re.compile(r"\x02(?=([^\W\d_]+|\d))")
_WORD = re.compile(r"[^\W\d_]+")
_BROKEN = re.compile(r"(?<![^\W\d_])[^\W\d_]*+\x02[^\W\d_]*")
_HYPHEN_AT_END = re.compile(r"\x02|-(?:\n|\Z)")
_ALWAYS_HYPHEN = re.compile(
    r"(?:self|well)-(?!ish|ness|ing)"
    r"|(?:twen|thir|for|fif|six|seven|eigh|nine)ty-(?:one|two|three|four|five|six|seven|eight|nine"
    r"|first|second|third|fourth|fifth|sixth|seventh|eighth|ninth)\Z"
)
"""Compounds, by their first parts, and numbers that English writes with a hyphen."""
_LONGEST_PART = 40
_GOES_ON_LATER = frozenset(("and", "or", "und", "oder"))
"""Behind a hyphen whose word is completed by a later one: pre- and post-war."""
_BROKEN_AT_END = re.compile(r"(?<![^\W\d_])([^\W\d_]{2,30})-\Z")
_FIRST_PART = re.compile(r"([a-z\u00df-\u00ff]+)\S{0,9}\s*")
_UNNAMED = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ufffe\uffff]")
_RTL_MARKS = "\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7\u0610-\u061a\u064b-\u065f\u0670"
_LEADING_MARK = re.compile(f"[{_RTL_MARKS}](?<![^\\s(].)")
_MARK_AND_LETTER = re.compile(f"([{_RTL_MARKS}]+)([^\\W\\d_])")
_LIST_OR_CAPTION = (
    r"(?![\u2022\u25aa\u25e6\u2023*\u2013\u2014-]|\(?\w{1,2}[.)] |(?:Figure|Fig\."
    r"|Table|Algorithm) ?\d)"
)
_ENTRY_OF_CONTENTS = re.compile(r"\.(?<!\.\.)(?<!\. \.)(?: ?\.){3,}+ *[\divx]{1,6} *(?=\n)")
"""Leaders and a page number."""
_LABEL = r"[^\W\d_][^:\n|.!?]{0,39}: \S"
_LABELLED_LINES = re.compile(rf"(?m)^{_LABEL}.*(?:\n{_LABEL}.*)+$")
"""Two and more lines `Label: value`."""
_FRONT_MATTER_LINES = 40
_LONGEST_OUTLINE = 5_000
"""Entries that are read."""
_MARKS = frozenset(KINDS.values())
_MARKED = re.compile(f"[{''.join(KINDS.values())}][^\n]*")
_AT_END = re.compile(f"(?:\n?[{KINDS['field']}{KINDS['footnote']}][^\n]*)+\\Z")
_NO_MARKS = re.compile("|".join(KINDS.values()))


def parse_pdf(
    content: bytes, filename: str, options: IngestOptions, words: Sequence[PageWords] = ()
) -> ParsedDocument:
    """Return the text of a PDF with its page map and headings.

    Every character that PDFium names is kept; ligatures of TeX fonts are named, other codes without
    a Unicode value become U+FFFD. Words broken at a line end are joined again, line ends within a
    paragraph become spaces, one for one, so that offsets stay, and a blank line parts running heads
    and feet from the text. A page of which `words` are known has these for its text.

    Raises:
        Encrypted: It wants a password (the empty one was tried).
        NoTextLayer: Pictures of text, or a third of all characters without a meaning, and no OCR.
        TooLarge: More pages than `options.max_pages`.
        Unreadable: PDFium cannot open it.
    """
    document = _open(content[max(pdf_start(content), 0) :], filename)
    try:
        if len(document) > options.max_pages:
            raise TooLarge(
                f"{filename!r} has {len(document)} pages; at most {options.max_pages} are read:"
                " split it and send the parts"
            )
        open_forms(document)
        read = _page_texts(document)
        information = document.get_metadata_dict()
        outline = _outline(document)
        files = map(document.get_attachment, range(document.count_attachments()))
        attached = [repr(file.get_name()) for file in files]
        if not read:
            raise Unreadable(f"{filename!r} has no pages; save it again and upload that")
        scanned = pages_of_pictures(document, [text for text, _ in read])
    except pypdfium2.PdfiumError as exc:
        raise _damaged(filename, exc) from exc
    finally:
        document.close()
    odd = [number for number, (_, is_odd) in enumerate(read, start=1) if is_odd]
    recognised = texts_of_words(words)
    raw = [recognised.get(number, text) for number, (text, _) in enumerate(read, start=1)]
    if lacks_text(raw, scanned) and not words:
        if not options.reads_pictures:
            pages = "1 page" if len(raw) == 1 else f"{len(raw)} pages"
            raise NoTextLayer(
                f"{filename!r} has {pages} but hardly any text (a scan?); run OCR on it and upload"
                f" the result, or, {INSTALL}"
            )
        bare = (at for at, text in enumerate(raw, start=1) if len(text) < MIN_CHARACTERS_PER_PAGE)
        scanned = sorted({*scanned, *bare})
    parsed = judge(filename, assemble(raw, information, outline), scanned, odd, words, options)
    if _unnamed(parsed.text) >= _UNNAMED_FILE:  # nonsense is left out until OCR has read it
        nonsense = _unnamed_pages(parsed)
        legible = ["" if at in nonsense else text for at, text in enumerate(raw, start=1)]
        told = {name: getattr(parsed, name) for name in ("warnings", "unread", "recognised")}
        parsed = replace(assemble(legible, information, outline), **told)
    if not attached:
        return parsed
    left_out = f"files attached to it are not read ({_listed(attached)}); send them by themselves"
    return replace(parsed, warnings=(*parsed.warnings, left_out))


def judge(
    filename: str,
    parsed: ParsedDocument,
    scanned: Sequence[int],
    odd: Sequence[int] = (),
    words: Sequence[PageWords] = (),
    options: IngestOptions = _NO_OCR,
) -> ParsedDocument:
    """Return a PDF with what `with_findings` tells of its pages.

    Args:
        filename: For messages.
        parsed: With U+FFFD for a glyph whose font does not say which character it is.
        scanned: The numbers, from 1, of pages that are pictures.
        odd: Of pages whose fonts name other characters than they show.
        words: What OCR has read.
        options: Say whether there is OCR.

    Raises:
        NoTextLayer: A third of all characters are without a meaning, and there is no OCR.
    """
    if _unnamed(parsed.text) >= _UNNAMED_FILE and not (words or options.reads_pictures):
        raise NoTextLayer(
            f"{filename!r} has fonts that do not say which characters they show; {_OCR}"
        )
    pictures = f"if they show text, run OCR on the file and send the result, or, {INSTALL}"
    unnamed = _unnamed_pages(parsed)
    findings = [
        (scanned, "pictures without text", pictures),
        (unnamed, "fonts that do not say which characters they show", _OCR),
        (odd, "fonts that name other characters than they show", _OCR),
    ]
    return with_findings(parsed, findings, words, options)


def with_findings(
    parsed: ParsedDocument,
    findings: Sequence[tuple[Sequence[int], str, str]],
    words: Sequence[PageWords],
    options: IngestOptions,
) -> ParsedDocument:
    """Return a document with warnings about pages that OCR has read, or should, and their numbers.

    `findings` are numbers of pages, from 1, what they have, and what to do about it without OCR; a
    page that OCR has read, with or without `words` on it, has none.
    """
    known = {page.page for page in words}
    recognised = sorted({page.page for page in words if page.lines})
    warnings, unread = [], set[int]()
    if recognised:
        shown = _pages(recognised, len(parsed.pages))
        warnings.append(f"the text is read by OCR on {shown}")
    for numbers, what, cure in findings:
        if left := [number for number in numbers if number not in known]:
            waits = "their text follows, OCR reads them in the background"
            todo = waits if options.reads_pictures else cure
            warnings.append(f"{what} on {_pages(left, len(parsed.pages))}; {todo}")
            unread.update(left)
    if options.ocr == "always":
        unread = {page.number for page in parsed.pages} - known
    return replace(
        parsed, warnings=tuple(warnings), unread=tuple(sorted(unread)), recognised=len(recognised)
    )


def texts_of_words(words: Sequence[PageWords]) -> dict[int, str]:
    """Return the text of each page on which OCR recognised some, by number."""
    found = [page for page in words if page.lines]
    if not found:
        return {}
    with text_layer(found) as layer:
        texts = _page_texts(layer, [page.page for page in found])
        return {page.page: text for page, (text, _) in zip(found, texts, strict=True)}


def _outline(document: pypdfium2.PdfDocument) -> list[OutlineEntry]:
    """Return the entries of the outline that lead to a page."""
    entries = []
    for mark in islice(document.get_toc(), _LONGEST_OUTLINE):
        target = mark.get_dest()
        page = target.get_index() if target is not None else None
        if page is not None and 0 <= page < len(document):
            entries.append(OutlineEntry(mark.level + 1, mark.get_title(), page))
    return entries


def _open(content: bytes, filename: str) -> pypdfium2.PdfDocument:
    try:
        return pypdfium2.PdfDocument(content)
    except pypdfium2.PdfiumError as exc:
        if exc.err_code == pdfium.FPDF_ERR_PASSWORD:
            raise protected(filename) from exc
        raise _damaged(filename, exc) from exc


def _damaged(filename: str, exc: pypdfium2.PdfiumError) -> Unreadable:
    return Unreadable(f"{filename!r} is a damaged PDF ({exc}); save it again and upload that")


def _page_texts(
    document: pypdfium2.PdfDocument, numbers: Sequence[int] = ()
) -> list[tuple[str, bool]]:
    """Return each page's text, and whether its fonts name other characters than they show.

    `numbers` are those of the pages where they are not all; a table that goes on on the next page
    keeps its heads.
    """
    found: list[tuple[str, bool]] = []
    heads: Heads | None = None
    for at, number in enumerate(numbers or range(1, len(document) + 1)):
        page = document[at]
        textpage = page.get_textpage()
        layout = PageLayout(page, textpage, is_first=number == 1, heads=heads)
        found.append((layout.text, layout.names_other_characters()))
        heads = layout.heads
        textpage.close()
        page.close()
    return found


def assemble(
    raw: list[str], information: dict[str, str], outline: Sequence[OutlineEntry] = ()
) -> ParsedDocument:
    raw = name_tex_codes(raw)
    vocabulary = _vocabulary(raw)
    clean = [
        normalise(resolved(_UNNAMED.sub("\ufffd", _join_words(_marks_behind(page), vocabulary))))
        for page in raw
    ]
    bodies: list[str] = []
    ends: list[str] = []
    for found, _ in clean:
        text = _join_unspaced(found).strip("\n")
        end = _AT_END.search(text)
        bodies.append(text[: end.start()] if end else text)
        ends.append(end[0] if end else "")  # filled in or noted, behind the text of the page
    pages: list[PageSpan] = []
    running: list[tuple[int, int]] = []
    texts: list[str] = []
    position = 0
    framed = _joined_over_pages(set_apart(bodies), vocabulary)
    for number, (page, behind) in enumerate(zip(framed, ends, strict=True), start=1):
        texts.append(page.text + behind)
        pages.append(PageSpan(number, position, position + len(texts[-1])))
        running += ((position + start, position + stop) for start, stop in page.running)
        position += len(texts[-1]) + 1
    text = "\n".join(texts)
    headings = find_headings(text, running)
    if outline:
        headings = with_outline(text, pages, outline, headings, running)
    flowing = "\n".join(_flow_page(text, span, headings) for span in pages)
    marked = list(_MARKED.finditer(flowing))
    marks = [found.start() for found in marked]

    def at(place: int) -> int:
        """Return where a place of the text with marks before rows is without them."""
        return place - bisect_left(marks, place)

    kinds = {mark: kind for kind, mark in KINDS.items()}
    return ParsedDocument(
        text=_NO_MARKS.sub("", flowing),
        media_type=FORMATS["pdf"].media_type,
        pages=tuple(PageSpan(page.number, at(page.start), at(page.end)) for page in pages),
        headings=tuple(replace(h, start=at(h.start), end=at(h.end)) for h in headings),
        blocks=tuple(
            BlockSpan(kinds[one.group()[0]], at(one.start()), at(one.end())) for one in marked
        ),
        title=information.get("Title") or None,
        authors=tuple(filter(None, [information.get("Author")])),
        stripped_characters=sum(removed for _, removed in clean),
    )


def _marks_behind(text: str) -> str:
    """Return a page whose Hebrew and Arabic marks stand behind their letters.

    Where a file draws a letter before its marks, PDFium, which turns the line round, has them the
    other way; a word then begins with one.
    """
    return _MARK_AND_LETTER.sub(r"\2\1", text) if _LEADING_MARK.search(text) else text


@dataclass(frozen=True, slots=True)
class _Vocabulary:
    """How often a document has words, and compounds with a hyphen, in lower case."""

    words: Counter[str]
    compounds: Counter[str]

    def link(self, before: str, left: str, right: str) -> str:
        """Return what stands between the parts of a word that was broken behind a hyphen."""
        joined, compound = f"{left}{right}".lower(), f"{left}-{right}".lower()
        is_shouted = len(left) > 1 and f"{left}{right}".isupper()
        if before == "-" or not (right[0].islower() or is_shouted):
            return "-"
        whole, parted = self.words[joined], self.compounds[compound]
        if whole or parted:
            return "-" if parted >= whole else ""
        if right in _GOES_ON_LATER and (len(right) > 2 or self.words[left.lower()]):
            return "- "
        return "-" if is_shouted or _ALWAYS_HYPHEN.match(compound) else ""


def _vocabulary(raw: Sequence[str]) -> _Vocabulary:
    """Return the vocabulary of pages without their broken words; empty if there are none."""
    words, compounds = Counter[str](), Counter[str]()
    if any(map(_HYPHEN_AT_END.search, raw)):
        for text in raw:
            words.update(map(str.lower, _WORD.findall(_BROKEN.sub(" ", text))))
            for left, right in pairwise(text.split("-")):
                before, after = _last_word(left), _WORD.match(right)
                if before and after:
                    compounds[f"{before}-{after.group()}".lower()] += 1
    return _Vocabulary(words, compounds)


def _last_word(text: str) -> str:
    """Return the letters at the end of a text, matched backwards to stay linear."""
    found = _WORD.match(text[: -_LONGEST_PART - 1 : -1])
    return found.group()[::-1] if found else ""


def _join_words(text: str, vocabulary: _Vocabulary) -> str:
    """Join words broken at line ends; a compound keeps its hyphen."""
    if "\x02" not in text:
        return text

    def joined(match: re.Match[str]) -> str:
        at = match.start()
        left = _last_word(text[max(0, at - _LONGEST_PART) : at])
        if not left:
            return "\ufffd"  # a glyph without a Unicode value, not a hyphen
        return vocabulary.link(text[at - len(left) - 1 : at - len(left)], left, match[1])

    return _BREAK.sub(joined, text)


def _joined_over_pages(pages: Sequence[FramedPage], vocabulary: _Vocabulary) -> list[FramedPage]:
    """Return pages whose last word is whole: what stood of it on the next page is on this one."""
    found = list(pages)
    for at, (page, next_) in enumerate(pairwise(pages)):
        first, last = (
            _BROKEN_AT_END.search(page.text[-_LONGEST_PART:]),
            _FIRST_PART.match(next_.text),
        )
        is_framed = page.running[-1:] and page.running[-1][1] == len(page.text)
        if first is None or last is None or is_framed or next_.running:
            continue
        left, whole = first[1], found[at].text
        link = vocabulary.link(whole[-len(left) - 2 : -len(left) - 1], left, last[1])
        found[at] = replace(found[at], text=f"{whole[:-1]}{link}{last[0].strip()}")
        found[at + 1] = FramedPage(next_.text[last.end() :], ())
    return found


def _join_unspaced(text: str) -> str:
    """Return a page without line ends inside Han and kana paragraphs, which have no spaces."""
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
    """Return a block, lines as long as usual in `of`, with its paragraphs' line ends as spaces."""
    usual = _usual_length(of or block)
    if block.count("\n") < 2:
        return block
    wrapped = _wrapped(max(20, usual * 4 // 50 * 10))
    ends = {match.end() for match in _ENTRY_OF_CONTENTS.finditer(block)}
    for marked in _MARKED.finditer(block):
        ends |= {marked.start() - 1, marked.end()}
    for run in _LABELLED_LINES.finditer(block):
        ends |= {run.start() - 1}
        ends |= {run.start() + at for at, sign in enumerate(run.group()) if sign == "\n"}
    return wrapped.sub(lambda end: "\n" if end.start() in ends else " ", block)


def _usual_length(text: str) -> int:
    """Return how many characters a line of prose that does not end its paragraph has."""
    lengths = sorted(len(line) for line in text.split("\n") if line[:1] not in _MARKS)
    return lengths[int(0.7 * (len(lengths) - 1))] if lengths else 0


@lru_cache(maxsize=64)
def _wrapped(full: int) -> re.Pattern[str]:
    """Return the pattern of a line end in a paragraph: after a full line, or in lower case."""
    after_full_line = rf"(?<=[^\n]{{{full}}}\n)(?=\S){_LIST_OR_CAPTION}"
    return re.compile(rf"\n(?:{after_full_line}|(?<=[a-z,;\u2019-]\n)(?=[a-z(]))")
