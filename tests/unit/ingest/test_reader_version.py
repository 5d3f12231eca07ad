"""What is made of the same bytes changes only with READER_VERSION, or files sent again would keep what an older release read."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict
from pathlib import Path

from app.ingest.metadata import describe
from app.ingest.options import IngestOptions
from app.ingest.parsers import READER_VERSION, DirectParser

SAMPLES = Path(__file__).resolve().parents[3] / "data" / "sample_docs"
READ = {
    "1": "244442de65d8f858",
    "2": "a4af80a4529fd7d1",
    "3": "a4af80a4529fd7d1",
    "4": "01e0455022de4f1a",
    "5": "01e0455022de4f1a",
    "6": "01e0455022de4f1a",
    "7": "01e0455022de4f1a",
    "8": "01e0455022de4f1a",
    "9": "01e0455022de4f1a",
    "10": "01e0455022de4f1a",
    "11": "01e0455022de4f1a",
}
"""Digest of what each version makes of the sample documents; when it differs, raise
READER_VERSION and add a line. Version 3 labels the cells of Markdown's tables; version 4 reads blocks;
version 5 reads CSV, JSON, YAML and XML, which were text before; version 6 several rows of heads that
nothing marks; version 7 the title above a sheet's table as a heading; version 8 labels of more dialects, and files
that bend their format; version 9 heads over pages and of several lines, and words in columns; version 10 spaced capitals and hyphens at
line ends of PDFs; version 11 tables of PDFs whose rules are missing or double, and heads of several lines."""


def test_the_samples_are_read_as_this_version_reads_them() -> None:
    parser = DirectParser(IngestOptions())
    digest = hashlib.sha256()
    for path in sorted(
        path
        for path in SAMPLES.glob("*/*")
        if path.suffix in {".pdf", ".docx", ".html", ".md", ".txt"}
    ):
        parsed = parser.parse(path, path.name)
        facts = asdict(describe(parsed, path.name))
        del facts["language"]  # found in the text, by no parser
        shown = parsed.text, [asdict(heading) for heading in parsed.headings], facts
        digest.update(json.dumps(shown, sort_keys=True, default=str).encode())
    assert READ.get(READER_VERSION) == digest.hexdigest()[:16], (
        f"READER_VERSION reads the samples as {digest.hexdigest()[:16]}"
    )
