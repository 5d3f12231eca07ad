"""Check that thirty paragraphs proofread by a person still come out unchanged.

    python -m evaluation.studies.paragraphs [--data DIR]     # into
    evaluation/reports/wikitext_paragraphs.{json,md}

The text of the articles is not in this repository. `wikitext_paragraphs.json` names each paragraph
by its article, the number of its words and the SHA-256 of its words with single spaces between
them; a paragraph is right when the parsed article holds exactly these words as one paragraph.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import re
import sys
from dataclasses import asdict, dataclass
from pathlib import Path

from app.ingest.parsers.wikitext import parse_wikitext
from app.ingest.sources.dump_xml import XmlDump
from evaluation.lib.paths import DATA, REPORTS

CHECKED = Path(__file__).with_name("wikitext_paragraphs.json")
DUMP = Path("wikipedia") / "enwiki-shortened.xml.bz2"
_WORD = re.compile(r"\w+")


@dataclass(frozen=True, slots=True)
class Paragraph:
    """A proofread paragraph."""

    title: str
    words: int
    sha256: str


def paragraph(title: str, text: str) -> Paragraph:
    """Return a paragraph by its words."""
    words = _WORD.findall(text)
    return Paragraph(title, len(words), hashlib.sha256(" ".join(words).encode()).hexdigest())


def missing(dump: Path) -> list[Paragraph]:
    """Return the checked paragraphs that the parser does not make any more."""
    checked = [Paragraph(**entry) for entry in json.loads(CHECKED.read_text("utf-8"))]
    titles = {entry.title for entry in checked}
    found = {
        paragraph(page.title, text)
        for page in XmlDump(dump)
        if page.title in titles
        for text in parse_wikitext(page.source, page.title).text.split("\n\n")
    }
    return [entry for entry in checked if entry not in found]


def main() -> int:
    """Check and write the report; exit 1 when one is missing."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, default=DATA, help="folder with the real dump")
    dump = parser.parse_args().data / DUMP
    lost = missing(dump)
    checked = len(json.loads(CHECKED.read_text("utf-8")))
    result = {
        "checked": checked,
        "found": checked - len(lost),
        "missing": [asdict(entry) for entry in lost],
    }
    (REPORTS / "wikitext_paragraphs.json").write_text(json.dumps(result, indent=1) + "\n", "utf-8")
    lines = [
        "# Paragraphs of real wikitext",
        "",
        f"{checked - len(lost)} of {checked} paragraphs, each of another article and read by hand,"
        " come out of"
        " the parser word for word. Formulas, references and pronunciations are left out of them"
        " on purpose (ADR 0090).",
        "",
        *(f"- missing: {entry.title}, {entry.words} words" for entry in lost),
        "Made by `python -m evaluation.studies.paragraphs`.",
    ]
    (REPORTS / "wikitext_paragraphs.md").write_text("\n".join(lines) + "\n", "utf-8")
    return 1 if lost else 0


if __name__ == "__main__":
    sys.exit(main())
