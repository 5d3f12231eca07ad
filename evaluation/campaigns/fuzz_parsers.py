"""Fuzz everything that reads foreign bytes: parsers, text, chunks, queries.

    pip install atheris; python -m evaluation.campaigns.fuzz_parsers [libFuzzer options] [corpus
    folder]

Importable without atheris: tests/unit/ingest/test_fuzz_target.py runs it over the hostile files and
over bytes of Hypothesis. What may come out is an InputError or a document whose spans hold;
anything else is a finding.
"""

from __future__ import annotations

import sys
from typing import Any

from app.core.errors import InputError
from app.core.normalisation import normalise
from app.core.sentences import sentence_spans
from app.core.text import lexical_form, tokenise
from app.core.types import ParsedDocument
from app.generation.flags.injection import inspect
from app.ingest.chunking import chunk
from app.ingest.metadata import describe
from app.ingest.names import display_name
from app.ingest.options import IngestOptions
from app.ingest.parsers import DirectParser

NAMES = ("a.txt", "a.md", "a.html", "a.pdf", "a.docx", "a")
OPTIONS = IngestOptions(max_file_bytes=1_000_000, max_pages=50, max_characters=1_000_000)
_PARSER = DirectParser(OPTIONS)


def one_input(data: bytes) -> None:
    """Read some bytes as a file; the first one chooses its name.

    Raises:
        AssertionError: A document came out whose spans do not hold.
    """
    name = NAMES[data[0] % len(NAMES)] if data else NAMES[0]
    display_name(data[:200].decode("utf-8", "surrogateescape"))
    try:
        parsed = _PARSER.parse(data[1:], name)
    except InputError:
        return
    check(parsed, name)


def check(parsed: ParsedDocument, name: str) -> None:
    """Do to a document what the server does, and compare."""
    text = parsed.text
    text.encode()  # no half of a surrogate pair
    assert "\0" not in text
    assert normalise(text)[0] == text, "stored text is in normal form"
    assert all(0 <= heading.start < heading.end <= len(text) for heading in parsed.headings)
    assert all(0 <= page.start <= page.end <= len(text) for page in parsed.pages)
    covered = 0
    for span in chunk(parsed, OPTIONS):
        assert 0 <= span.start < span.end <= len(text)
        assert not text[covered : span.start].strip(), "every non-blank character is in a chunk"
        covered = max(covered, span.end)
    assert not text[covered:].strip()
    reached = 0
    for start, end in sentence_spans(text):
        assert reached <= start < end <= len(text)
        reached = end
    describe(parsed, name)
    inspect(text[:20_000])
    tokenise(lexical_form(text[:20_000]))


def main() -> None:
    import atheris  # noqa: PLC0415  # not a dependency: only who fuzzes needs it

    fuzzer: Any = atheris
    fuzzer.Setup(sys.argv, one_input)
    fuzzer.Fuzz()


if __name__ == "__main__":
    main()
