"""Render the sample papers as PDF, DOCX and Markdown from their Markdown.

`python -m scripts.make_sample_papers`
"""

from __future__ import annotations

import argparse
import re
import shutil
from datetime import UTC, datetime
from pathlib import Path

from docx import Document
from reportlab.lib.pagesizes import A4
from reportlab.lib.styles import getSampleStyleSheet
from reportlab.platypus import Flowable, Paragraph, SimpleDocTemplate, Spacer

INVENTED = "invented for this demonstration"
"""In the keywords and the subject of each file: the studies and their figures are not real."""
SAMPLES = Path(__file__).resolve().parent.parent / "data" / "sample_docs"
FORMATS = {
    "lexical-first-indexing": "pdf",
    "citation-checking": "pdf",
    "crash-safe-vectors": "docx",
    "chunk-size-study": "docx",
    "score-fusion-revisited": "md",
    "reading-aloud-corpus": "md",
}
MADE = datetime(2026, 1, 1, tzinfo=UTC)  # fixed, so that a second run writes the same bytes


def blocks(source: str) -> list[tuple[int, str]]:
    """Return (heading level, text) pairs; level 0 is a paragraph."""
    found = []
    for block in source.strip().split("\n\n"):
        heading = re.match(r"(#+) (.*)", block)
        found.append((len(heading[1]), heading[2]) if heading else (0, block))
    return found


def write_pdf(source: str, path: Path) -> None:
    """Lay the text out on A4 pages."""
    styles = getSampleStyleSheet()
    flow: list[Flowable] = []
    for level, text in blocks(source):
        style = {0: "BodyText", 1: "Title", 2: "Heading2"}[level]
        flow += [Paragraph(text.replace("\n", "<br/>"), styles[style]), Spacer(1, 4)]
    title = blocks(source)[0][1]
    SimpleDocTemplate(
        str(path),
        pagesize=A4,
        title=title,
        author="the DocuMind developers",
        subject=INVENTED,
        invariant=1,
    ).build(flow)


def write_docx(source: str, path: Path) -> None:
    document = Document()
    document.core_properties.subject = document.core_properties.keywords = INVENTED
    document.core_properties.created = document.core_properties.modified = MADE
    for level, text in blocks(source):
        if level:
            document.add_heading(text, level - 1)
        else:
            document.add_paragraph(text)
    document.save(str(path))


def main() -> None:
    argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    ).parse_args()
    (SAMPLES / "papers").mkdir(parents=True, exist_ok=True)
    for name, kind in FORMATS.items():
        source = SAMPLES / "sources" / f"{name}.md"
        target = SAMPLES / "papers" / f"{name}.{kind}"
        if kind == "pdf":
            write_pdf(source.read_text(encoding="utf-8"), target)
        elif kind == "docx":
            write_docx(source.read_text(encoding="utf-8"), target)
        else:
            shutil.copyfile(source, target)
        print(f"wrote {target.relative_to(SAMPLES.parent.parent)}")


if __name__ == "__main__":
    main()
