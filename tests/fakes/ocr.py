"""OCR without a model: pictures of one gray, and an engine that knows what each gray says."""

from __future__ import annotations

import io
import threading
from collections.abc import Sequence

import numpy as np
from PIL import Image
from reportlab.lib.utils import ImageReader
from reportlab.pdfgen.canvas import Canvas

from app.core.errors import Unreadable
from app.core.types import Word
from app.ingest.ocr import Picture
from app.ingest.options import IngestOptions

PAGE = 400, 500
"""In points."""


class GrayReader:
    """Reads a picture of gray 100 + n as the n-th text; one of another gray says nothing."""

    def __init__(self, texts: Sequence[str]) -> None:
        self.texts = texts
        self.read: list[int] = []
        """Which texts were asked for, in order."""
        self.broken: set[int] = set()
        """Texts over which the engine falls."""
        self.stop_behind = 0
        """After so many texts it says `reached` and waits for `go_on`."""
        self.reached, self.go_on = threading.Event(), threading.Event()

    def __call__(self, picture: Picture, _: IngestOptions) -> list[list[Word]]:
        at = int(np.median(picture)) - 100
        if not 0 <= at < len(self.texts):
            return []
        if at in self.broken:
            raise Unreadable("the engine fell over")
        self.read.append(at)
        if len(self.read) == self.stop_behind:
            self.reached.set()
            assert self.go_on.wait(20)
        size = picture.shape[1] / PAGE[0]
        return [
            [
                Word(
                    word,
                    *(
                        size * side
                        for side in (20 + 60 * n, 40 + 30 * line, 70 + 60 * n, 55 + 30 * line)
                    ),
                )
                for n, word in enumerate(words.split())
            ]
            for line, words in enumerate(self.texts[at].split("\n"))
        ]


def gray(n: int, size: tuple[int, int] = (40, 50)) -> Image.Image:
    return Image.new("L", size, 100 + n)


def scanned(*pages: str | int) -> bytes:
    """A PDF: a text is drawn as such, a number is a picture that says the text of that number."""
    buffer = io.BytesIO()
    canvas = Canvas(buffer, pagesize=PAGE, invariant=1)
    for page in pages:
        if isinstance(page, int):
            canvas.drawImage(ImageReader(gray(page)), 0, 0, *PAGE)
        else:
            for line, words in enumerate(page.split(". ")):
                canvas.drawString(10, 400 - 20 * line, words)
        canvas.showPage()
    canvas.save()
    return buffer.getvalue()


def image(n: int, kind: str = "PNG", **options: object) -> bytes:
    buffer = io.BytesIO()
    gray(n).save(buffer, kind, **options)
    return buffer.getvalue()
