"""Cut a text into chunks; a chunk's text is always `text[start:end]`.

A segment (the part of one section that stands on one page) is cut at paragraphs, lines, sentences
and words, in this order, into cores without overlap by LangChain's
`RecursiveCharacterTextSplitter`; one too short to say much alone, a title or the head of a page,
joins its neighbour (ADR 0010). Each core but the first of its segment then reaches back into the
one before, to the start of a sentence or word. Cores partition the text, so every non-blank
character is in a chunk, and a chunk never crosses a heading or a page: the page and section of a
citation are those of every character in it. The chunker `recursive`, an arm of the evaluation, cuts
at pages alone; a chunk then has the section in which its core begins.
"""

from __future__ import annotations

import math
import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from app.core.errors import InvalidInput
from app.core.sentences import sentence_spans
from app.core.types import ChunkSpan, Heading, ParsedDocument
from app.ingest.options import Chunker, IngestOptions

# Sections: spans between headings under the names that filters and prompts know.

BODY = "body"
CONTENTS = "contents"

# First match wins; titles are lower-case without their number.
_NAMES = tuple((name, re.compile(rf"(?:{pattern})")) for name, pattern in (
    ("abstract", r"abstract\b|summary\Z"),
    (CONTENTS, r"(?:table of )?contents\Z"),
    ("introduction", r"introduction\b|motivation\Z"),
    ("related work", r"related works?\b|background\b|prior work\b|literature review\b|preliminar"),
    ("references", r"references\b|bibliography\b|works cited\b|literature cited\b"),
    ("acknowledgements", r"acknowledge?ments?\b|funding\Z|author contributions\b"),
    ("appendix", r"appendi(?:x|ces)\b|supplementa"),
    ("conclusion", r"(?:.* and )?(?:conclusions?|future work)\b|concluding\b"),
    ("limitations", r"limitations?\b|threats to validity\b"),
    ("discussion", r"discussions?\b"),
    ("results", r"(?:(?:main|experimental|empirical|our|key) )?(?:results?|findings)\b"
                r"|.*\bresults(?: and \w+)?\Z"),
    ("experiments", r"experiment|evaluation\b|empirical\b|ablation|baselines?\b"
                    r"|.*\b(?:experiments?|evaluation|ablations?)\Z"),
    ("methodology", r"methods?\b|methodolog|materials and methods|approach|(?:the )?proposed\b"
                    r"|model\Z|model architecture\b"),
    ("methodology", r"our (?:method|approach|model)\b|.*\b(?:methods?|methodology|approach)\Z"),
))  # fmt: skip
_NUMBER = re.compile(
    r"\A(?:\d{1,2}(?:\.\d{1,2})*|[A-H](?:\.\d{1,2})*|[IVX]{1,5}(?:\.[A-H](?:\.\d{1,2})?)?"
    r"|(?i:chapter|kapitel|chapitre) \d{1,2})"
    r"[.):]?\s+"
)
_LETTER = re.compile(r"\A[A-H](?:\.\d{1,2})*[.)]?\s+\S")
_AFTER_METHOD = frozenset(
    {"experiments", "results", "discussion", "conclusion", "references", "limitations", "appendix"}
)
_ONLY_IN_PAPERS = frozenset(
    {"related work", "methodology", "experiments", "results", "discussion", "limitations"}
)
_PAPER_MARKS = frozenset({"abstract", "introduction", "conclusion", "references"})


@dataclass(frozen=True, slots=True)
class SectionSpan:
    """Characters `[start, end)` of section `name`, its heading included."""

    start: int
    end: int
    name: str


def section_name(title: str) -> str | None:
    """Return the normalised name of a heading, None when it is none of the known ones."""
    plain = _NUMBER.sub("", title).lower().strip(" :.\u2014-")
    return next((name for name, pattern in _NAMES if pattern.match(plain)), None)


def sections(parsed: ParsedDocument) -> tuple[SectionSpan, ...]:
    """Return consecutive spans that cover the text, one per heading, with names.

    A heading directly followed by another one is no span of its own but opens the span of the next.
    A heading without a known name belongs to the section it stands in. In a paper (three of
    abstract, introduction, conclusion, references, or the first and the last), an unknown main
    heading between the introduction and the experiments is the method, which papers call by its
    own name, and lettered ones behind the references are the appendix. A text with none of
    the first three has no sections that only papers have. Everything else is `body`.
    """
    names = _name_headings(parsed.headings)
    spans: list[SectionSpan] = []
    position, body, name = 0, 0, BODY
    for heading, own in zip(parsed.headings, names, strict=True):
        if heading.start > position and parsed.text[body : heading.start].strip():
            spans.append(SectionSpan(position, heading.start, name))
            position = heading.start
        name, body = own, heading.end
    if position < len(parsed.text):
        spans.append(SectionSpan(position, len(parsed.text), name))
    return tuple(spans)


def _name_headings(headings: tuple[Heading, ...]) -> list[str]:
    known = [section_name(heading.title) for heading in headings]
    marks = _PAPER_MARKS.intersection(name for name in known if name)
    is_paper = len(marks) > 2 or {"abstract", "references"} <= marks
    if not marks - {"references"}:
        known = [None if name in _ONLY_IN_PAPERS else name for name in known]
    names: list[str] = []
    path: list[tuple[int, str]] = []
    seen: set[str] = set()
    for heading, found in zip(headings, known, strict=True):
        while path and path[-1][0] >= heading.level:
            path.pop()
        lettered = "references" in seen and _LETTER.match(heading.title)
        if found is not None and not lettered:
            name = found
        elif path:
            name = path[-1][1]
        else:
            name = _unknown_name(heading, seen) if is_paper else BODY
        if name not in (CONTENTS, "abstract"):  # nothing stands below them
            path.append((heading.level, name))
        names.append(name)
        seen.add(name)
    return names


def _unknown_name(heading: Heading, seen: set[str]) -> str:
    if "references" in seen:
        return "appendix" if _LETTER.match(heading.title) or "appendix" in seen else BODY
    return "methodology" if "introduction" in seen and not seen & _AFTER_METHOD else BODY


if TYPE_CHECKING:
    from langchain_text_splitters import RecursiveCharacterTextSplitter

CHUNKER_VERSION = "2"
"""Part of every fingerprint: chunks of another version are not interchangeable."""

CountTokens = Callable[[Sequence[str]], list[int]]

SEPARATORS = ("\n\n", "\n", r"(?<=[.!?])(?<!\.\w\.)\s+|(?<=[\u3002\uff01\uff1f])", r"\s+")
"""Where a text may be cut, best first; a separator stays at the end of what is before it. "e.g."
ends no sentence."""
# Ends where a sentence starts. Looking forward from the stops is three times as fast as looking
# back from every character.
_BEFORE_SENTENCE = re.compile(
    r"(?:[.!?](?<!\.\w\.)[\"')\]\u201d\u2019]?\s|[\u3002\uff01\uff1f\n])(?=\S)"
)
_BEFORE_SENTENCE_LONGEST = 3
_WORD_START = re.compile(r"(?<=\s)(?=\S)")
_SHORT = 1 / 8
"""Of the chunk size: a shorter core joins its neighbour if both fit into a chunk."""


def chunk(
    parsed: ParsedDocument,
    options: IngestOptions,
    count_tokens: CountTokens | None = None,
    max_tokens: int | None = None,
) -> tuple[ChunkSpan, ...]:
    """Return a document's chunks in order; they cover every non-blank character.

    Args:
        parsed: Text with headings and page map.
        options: `chunk_size` is a ceiling in characters, `chunk_overlap` what neighbours may share.
        count_tokens: The embedder's own counts, asked once for all chunks; those over `max_tokens`
            are halved at a sentence until they fit. None leaves lengths unchecked, for bulk text,
            where tokenising would take longer than everything else: then `VectorBackfill` finds
            over-long chunks when it embeds them and averages over windows, so nothing is cut either
            way.
        max_tokens: The longest passage that the embedder reads whole.

    Raises:
        InvalidInput: The overlap is not smaller than the size.
    """
    if not 0 <= options.chunk_overlap < options.chunk_size:
        raise InvalidInput(
            f"CHUNK_OVERLAP {options.chunk_overlap!r} must be at least 0 and less than CHUNK_SIZE"
            f" {options.chunk_size!r}"
        )
    whole = _Whole(parsed)
    spans = [
        _Span(start, core, end, section, page)
        for seg_start, seg_end, section, page in _segments(parsed, options.chunker)
        for start, core, end in _cut(parsed.text, seg_start, seg_end, options, whole)
    ]
    if options.chunker == "recursive":
        spans = _with_sections(spans, sections(parsed))
    if count_tokens is not None and max_tokens is not None:
        spans = _fit(parsed.text, spans, count_tokens, max_tokens, whole)
    return tuple(
        ChunkSpan(ordinal, span.start, span.end, span.section, span.page)
        for ordinal, span in enumerate(spans)
    )


_NOT_CUT = frozenset({"row", "item", "field", "line"})


class _Whole:
    """The rows, items, fields and lines of code, none of which is cut if it fits into a chunk."""

    def __init__(self, parsed: ParsedDocument) -> None:
        spans = [(one.start, one.end) for one in parsed.blocks if one.kind in _NOT_CUT]
        self._spans = spans
        self._starts = [start for start, _ in spans]

    def within(self, start: int, end: int) -> list[tuple[int, int]]:
        """Return those that begin in `[start, end)`."""
        return self._spans[bisect_left(self._starts, start) : bisect_left(self._starts, end)]

    def next_start(self, at: int, end: int) -> int:
        """Return `at`, or where the block that it lies in ends: the start of the next, or `end`."""
        index = bisect_right(self._starts, at) - 1
        if index < 0 or at == self._starts[index] or at >= self._spans[index][1]:
            return at
        return self._starts[index + 1] if index + 1 < len(self._starts) else end


class _Span(NamedTuple):
    """A future chunk: `[core, end)` is its own, `[start, core)` is overlap."""

    start: int
    core: int
    end: int
    section: str
    page: int | None


def _segments(
    parsed: ParsedDocument, chunker: Chunker
) -> Iterator[tuple[int, int, str, int | None]]:
    """Yield the parts of the text that share section and page, or page alone."""
    pages = parsed.pages
    starts = [page.start for page in pages]
    for section in (
        sections(parsed) if chunker == "headings" else (SectionSpan(0, len(parsed.text), BODY),)
    ):
        position = section.start
        while position < section.end:
            index = bisect_right(starts, position) - 1
            end = min(section.end, starts[index + 1]) if index + 1 < len(starts) else section.end
            yield position, end, section.name, pages[max(index, 0)].number if pages else None
            position = end


def _with_sections(spans: Sequence[_Span], named: Sequence[SectionSpan]) -> list[_Span]:
    starts = [section.start for section in named]
    return [
        span._replace(section=named[max(bisect_right(starts, span.core) - 1, 0)].name)
        for span in spans
    ]


def _cut(
    text: str, start: int, end: int, options: IngestOptions, whole: _Whole
) -> Iterator[tuple[int, int, int]]:
    """Yield start, core and end of the chunks of one segment."""
    start, end = _trimmed(text, start, end)
    if end - start <= options.chunk_size:
        if start < end:
            yield start, start, end
        return
    before = start
    cores = _cores(text, start, end, options.chunk_size - options.chunk_overlap, whole)
    for at, last in _packed(cores, options.chunk_size, _SHORT * options.chunk_size):
        overlap = min(options.chunk_overlap, options.chunk_size - (last - at))
        yield min(at, whole.next_start(_reach_back(text, before, at, overlap), at)), at, last
        before = at


def _cores(text: str, start: int, end: int, size: int, whole: _Whole) -> Iterator[tuple[int, int]]:
    """Yield cores: what lies between blocks by the splitter, blocks packed whole."""
    if whole.within(start, end):
        return _packed(_pieces(text, start, end, size, whole), size)
    return _split(text, start, end, size)


def _pieces(text: str, start: int, end: int, size: int, whole: _Whole) -> Iterator[tuple[int, int]]:
    position = start
    for at, last in whole.within(start, end):
        if last - at <= size and at >= position and last <= end:
            yield from _split(text, position, at, size)
            yield at, last
            position = last
    yield from _split(text, position, end, size)


def _split(text: str, start: int, end: int, size: int) -> Iterator[tuple[int, int]]:
    """Yield the splitter's pieces without blank margins, runs without blanks cut by length."""
    begin = stop = start
    for piece in _splitter(size).split_text(text[start:end]):
        begin, stop = stop, stop + len(piece)  # the pieces are the text, whole and in order
        at, last = _trimmed(text, begin, stop)
        while at < last:
            yield at, min(at + size, last)
            at += size


@lru_cache(maxsize=8)
def _splitter(size: int) -> RecursiveCharacterTextSplitter:
    """Return LangChain's splitter, which is imported where files are cut, not at the start."""
    from langchain_text_splitters import RecursiveCharacterTextSplitter  # noqa: PLC0415

    return RecursiveCharacterTextSplitter(
        separators=list(SEPARATORS),
        is_separator_regex=True,
        keep_separator="end",
        strip_whitespace=False,
        chunk_size=size,
        chunk_overlap=0,
    )


def _packed(
    spans: Iterable[tuple[int, int]], size: int, short: float = math.inf
) -> Iterator[tuple[int, int]]:
    """Yield spans; join neighbours that fit into `size` if one of them is under `short`."""
    held: tuple[int, int] | None = None
    for at, last in spans:
        if held is None:
            held = at, last
        elif min(held[1] - held[0], last - at) < short and last - held[0] <= size:
            held = held[0], last
        else:
            yield held
            held = at, last
    if held is not None:
        yield held


def _trimmed(text: str, start: int, end: int) -> tuple[int, int]:
    """Return the span without the blanks at its margins."""
    while start < end and text[start].isspace():
        start += 1
    while end > start and text[end - 1].isspace():
        end -= 1
    return start, end


def _reach_back(text: str, before: int, at: int, overlap: int) -> int:
    """Return where a chunk with core `at` starts: at most `overlap` before it.

    At a sentence, the core's own first one if no other begins there, or, where the core begins
    within one, at a word. `before` is the start of the core before it; a chunk starts behind it, so
    that starts always advance.
    """
    low = max(before + 1, at - overlap)
    if low >= at or overlap == 0:
        return at
    for stop in _BEFORE_SENTENCE.finditer(text, max(0, low - _BEFORE_SENTENCE_LONGEST), at + 1):
        if stop.end() >= low:
            return stop.end()
    if found := _WORD_START.search(text, low, at):
        return found.start()
    unbroken = low == at - overlap and not any(map(str.isspace, text[low:at]))
    return low if unbroken else at


def _fit(
    text: str, spans: list[_Span], count_tokens: CountTokens, max_tokens: int, whole: _Whole
) -> list[_Span]:
    """Split spans over the limit near their middle, at a block, sentence, word or character."""
    done: list[_Span] = []
    todo = spans
    while todo:
        counts = count_tokens([text[span.start : span.end] for span in todo])
        again: list[_Span] = []
        for span, tokens in zip(todo, counts, strict=True):
            if tokens <= max_tokens or span.end - span.start < 2:
                done.append(span)
            elif span.core > span.start and span.end - span.core < 2:
                again.append(span._replace(start=span.core))
            else:
                again += (
                    span._replace(start=left, core=left, end=right)
                    for left, right in _halves(text, span.core, span.end, whole)
                )
        todo = again
    done.sort(key=lambda span: span.core)
    # A neighbour's overlap may now reach behind the last part of a split core; it gives it up, so
    # that starts advance.
    for index in range(1, len(done)):
        if done[index].start <= done[index - 1].start:
            done[index] = done[index]._replace(start=done[index].core)
    return done


def _halves(
    text: str, start: int, end: int, whole: _Whole
) -> tuple[tuple[int, int], tuple[int, int]]:
    """Return two spans that cover `[start, end)`, cut before a block if there are some."""
    middle = (start + end) // 2
    blocks = [at for at, _ in whole.within(start + 1, end)]
    if not blocks:
        return halves(text, start, end)
    cut = min(blocks, key=lambda at: abs(at - middle))
    return _trimmed(text, start, cut), (cut, end)


def halves(text: str, start: int, end: int) -> tuple[tuple[int, int], tuple[int, int]]:
    """Return two spans that cover `[start, end)`, cut at a sentence if possible.

    The span has at least two characters, and no blanks at its margins.
    """
    middle = (start + end) // 2
    sentences = sentence_spans(text, start, end)
    if len(sentences) > 1:
        cut = min(range(1, len(sentences)), key=lambda i: abs(sentences[i][0] - middle))
        return (start, sentences[cut - 1][1]), (sentences[cut][0], end)
    blanks = [match.span() for match in re.finditer(r"\s+", text[start:end])]
    if blanks:
        left, right = min(blanks, key=lambda blank: abs(start + blank[0] - middle))
        return (start, start + left), (start + right, end)
    return (start, middle), (middle, end)
