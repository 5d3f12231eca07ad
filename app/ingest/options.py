"""Limits and choices of ingest, and the engine that reads pictures."""

from __future__ import annotations

import shutil
from dataclasses import dataclass, replace
from importlib.util import find_spec
from typing import Literal

from app.core.types import Ocr, OcrEngine

Chunker = Literal["headings", "recursive"]
"""`headings`: a chunk never crosses a heading; `recursive`: headings are text like any other,
for comparison."""


@dataclass(frozen=True, slots=True)
class IngestOptions:
    chunk_size: int = 1000
    """Ceiling of a chunk, in characters."""
    chunk_overlap: int = 150
    """Characters shared by neighbours; less than chunk_size."""
    chunker: Chunker = "headings"  # docs/decisions/0010-chunks-stay-within-page-and-section.md
    """Where a chunk may not go on; either way it is cut recursively and stays on its page."""
    max_file_bytes: int = 50 * 1024 * 1024
    max_pages: int = 5_000
    max_characters: int = 20_000_000
    """Of one document's text."""
    parse_processes: int = 2
    parse_wall_s: float = 120.0
    parse_cpu_s: int = 60
    parse_memory_bytes: int = 1024**3
    parse_output_bytes: int = 256 * 1024 * 1024
    ocr: Ocr = "auto"
    ocr_engine: str = ""
    """`rapidocr`, or the path of the program tesseract; empty: pictures are not read."""
    ocr_languages: str = ""
    """Of tesseract, as `deu+eng`; empty: all that are installed."""
    late_interaction_max_chunks: int = 100_000
    """Libraries of more chunks keep no codes for late interaction, about 5 KB a chunk; 0: none
    does."""
    embed_batch: int = 128
    """Chunks per vector transaction."""

    @property
    def reads_pictures(self) -> bool:
        return bool(self.ocr_engine) and self.ocr != "off"

    def of_recogniser(self) -> IngestOptions:
        """Return the limits of a process that recognises a page: models need more than parsers."""
        return replace(
            self,
            parse_processes=1,
            parse_memory_bytes=4 * 1024**3,
            parse_cpu_s=600,
            parse_wall_s=600.0,
        )


def find_engine(wanted: OcrEngine) -> str:
    """Return `rapidocr`, the path of the program tesseract, or nothing: what is installed."""
    if wanted != "tesseract" and find_spec("rapidocr") is not None:
        return "rapidocr"
    return "" if wanted == "rapidocr" else shutil.which("tesseract") or ""
