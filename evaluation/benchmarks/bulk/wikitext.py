"""Compare the fast wikitext path with mwparserfromhell on a real dump.

Speed per core, agreement in words, markup left over.
"""

from __future__ import annotations

import re
import statistics
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import mwparserfromhell

from app.ingest.parsers.wikitext import parse_wikitext
from app.ingest.sources.dumps import XmlDump

_WORD = re.compile(r"\w+")
_MARKS = re.compile(r"\{\{|\}\}|\[\[|\]\]|'''|\{\||\|\}|</?ref|<nowiki|&nbsp;|__[A-Z]+__")
_LEFT_OUT_TAGS = frozenset(
    "ref references math chem gallery timeline imagemap score syntaxhighlight source section"
    " mapframe".split()
)
_LEFT_OUT_LINKS = frozenset("file image category media".split())
_HEADING = re.compile(r"^==", re.MULTILINE)
_LONG_WORDS = 300


@dataclass(frozen=True, slots=True)
class Wikitext:
    """Figures over a dump's articles; F1 is of the multisets of words, [0, 1]."""

    articles: int
    wikitext_mb: float
    fast_mb_per_cpu_s: float
    reference_mb_per_cpu_s: float
    times_reference: float
    f1_median: float
    f1_min_over_300_words: float
    f1_worst_title: str
    marks_per_mb: float
    fallback_share: float
    """Articles that the fast path handed to the reference, [0, 1]."""


def measure(dump: Path) -> Wikitext:
    """Parse every article of a dump both ways."""
    pages = [page for page in XmlDump(dump) if page.redirect_to is None and page.namespace == 0]
    characters = sum(len(page.source) for page in pages)
    started = time.process_time()
    parsed = [parse_wikitext(page.source, page.title) for page in pages]
    fast_s = time.process_time() - started
    started = time.process_time()
    for page in pages:
        mwparserfromhell.parse(page.source).strip_code()
    reference_s = time.process_time() - started
    scores = []
    for page, found in zip(pages, parsed, strict=True):
        expected = reference_text(page.source)
        scores.append((f1(found.text, expected), len(_WORD.findall(expected)), page.title))
    worst = min(score for score in scores if score[1] > _LONG_WORDS)
    text = "\n".join(found.text for found in parsed)
    return Wikitext(
        articles=len(pages),
        wikitext_mb=characters / 1e6,
        fast_mb_per_cpu_s=characters / 1e6 / fast_s,
        reference_mb_per_cpu_s=characters / 1e6 / reference_s,
        times_reference=reference_s / fast_s,
        f1_median=statistics.median(score for score, _, _ in scores),
        f1_min_over_300_words=worst[0],
        f1_worst_title=worst[2],
        marks_per_mb=len(_MARKS.findall(text)) / (len(text) / 1e6),
        fallback_share=sum(bool(found.warnings) for found in parsed) / len(parsed),
    )


def reference_text(source: str) -> str:
    """Return mwparserfromhell's text of a page, without tables, files and notes.

    Categories go too.

    Its `strip_code` keeps the captions of files and the cells of tables as loose words; we drop
    both on purpose (ADR 0090). A table or note that reaches over a heading is a mistake of its
    tree, which took prose for markup, and stays.
    """
    code = mwparserfromhell.parse(source)
    for tag in code.filter_tags(recursive=True):
        if str(tag.tag).strip().lower() in _LEFT_OUT_TAGS | {"table"} and not _HEADING.search(
            str(tag)
        ):
            _remove(code, tag)
    for link in code.filter_wikilinks(recursive=True):
        if str(link.title).partition(":")[0].strip().lower() in _LEFT_OUT_LINKS:
            _remove(code, link)
    return str(code.strip_code())


def _remove(code: mwparserfromhell.wikicode.Wikicode, node: mwparserfromhell.nodes.Node) -> None:
    try:
        code.remove(node)
    except ValueError:  # it stood inside a node that is gone already
        return


def f1(found: str, expected: str) -> float:
    """Return the F1 of two texts as multisets of lower-cased words, [0, 1]."""
    left, right = Counter(_WORD.findall(found.lower())), Counter(_WORD.findall(expected.lower()))
    shared = (left & right).total()
    return 2 * shared / (left.total() + right.total()) if shared else float(not left and not right)
