"""Read subtitles (SubRip, WebVTT): what is said, with the time at which a passage begins."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator

from app.core.errors import Unreadable
from app.core.types import ParsedDocument
from app.ingest.parsers.blocks import Block, write
from app.ingest.parsers.sniffing import decode

_TIMES = re.compile(
    r"^[ \t]*(?:(\d{1,3}):)?(\d{1,2}):(\d{2})[.,]\d{1,3}[ \t]*-->[ \t]*(?:\d+:)?\d+:\d+[^\n]*$",
    re.MULTILINE,
)
_VOICE = re.compile(r"<v(?:\.[^\s>]*)?[ \t]+([^<>]{1,80})>")
_TAG = re.compile(r"</?[a-zA-Z0-9][^<>\n]{0,200}>|\{\\[^{}\n]{0,200}\}")
_END = re.compile(r"[.!?\u2026\u3002\uff01\uff1f][\"')\]\u201d\u2019]*\Z")
_BLANK = re.compile(r"\n[ \t]*\n")
_NEXT_NUMBER = re.compile(r"\n\d+[ \t]*\Z")
"""Of the next cue, where no blank line stands before it."""
_LONGEST = 400
"""Characters after which a paragraph ends with the next sentence."""
_PAUSE_S = 4


def parse_subtitles(content: bytes, filename: str, *_: object) -> ParsedDocument:
    """Return what is said in paragraphs of whole sentences, such as `[00:01:05] The lock is shut.`.

    Raises:
        UnsupportedType: The bytes are not text.
        Unreadable: No line of times is in it.
    """
    source, warnings = decode(content)
    source = source.replace("\r\n", "\n").replace("\r", "\n")
    cues = list(_TIMES.finditer(source))
    if not cues:
        raise Unreadable(
            f"{filename!r} holds no subtitles: no line like '00:01:05,000 --> 00:01:07,000'; send"
            " it as plain text (.txt)"
        )
    return write(_paragraphs(source, cues), "subtitles", warnings=warnings)


def _paragraphs(source: str, cues: list[re.Match[str]]) -> Iterator[Block]:
    held: list[str] = []
    begun = last = 0
    ends = [*(cue.start() for cue in cues[1:]), len(source)]
    for cue, end in zip(cues, ends, strict=True):
        at = int(cue[1] or 0) * 3600 + int(cue[2]) * 60 + int(cue[3])
        said = _said(source[cue.end() : end].strip("\n"))
        lines = [line for line in said if line not in held[-2:]]  # those that roll up stand twice
        is_long = sum(map(len, held)) > _LONGEST or at - last > _PAUSE_S
        if held and is_long and _END.search(held[-1]):
            yield _paragraph(begun, held)
            held = []
        begun = begun if held else at
        last = at
        held += lines
    if held:
        yield _paragraph(begun, held)


def _paragraph(begun: int, lines: list[str]) -> Block:
    hours, rest = divmod(begun, 3600)
    return Block("paragraph", f"[{hours:02}:{rest // 60:02}:{rest % 60:02}] {' '.join(lines)}")


def _said(text: str) -> list[str]:
    """Return a cue's lines without tags, names of speakers in front as a script has them."""
    text = _BLANK.split(text, maxsplit=1)[0]
    text = _NEXT_NUMBER.sub("", _TAG.sub("", _VOICE.sub(r"\1: ", text)))
    lines = (" ".join(html.unescape(line).split()) for line in text.split("\n"))
    return [line for line in lines if line]
