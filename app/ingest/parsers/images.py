"""Parse images as pages that OCR reads: PNG, JPEG, WebP, and TIFF with a page a frame."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from io import BytesIO

import numpy as np
from PIL import Image, ImageOps, UnidentifiedImageError

from app.core.errors import TooLarge, Unreadable, UnsupportedType
from app.core.types import PageWords, ParsedDocument
from app.ingest.ocr import DPI, INSTALL, MOST_PIXELS, POINTS, Picture
from app.ingest.options import IngestOptions
from app.ingest.parsers.pdf import assemble, texts_of_words, with_findings

MOST_IMAGE_PIXELS = 60_000_000
"""Of one image, decoded; a page at 600 dpi has 35 million."""
_FORMATS = ("PNG", "JPEG", "TIFF", "WEBP")
_LEAST_DPI, _MOST_DPI = 97, 1200
"""Other resolutions that a file states are of a screen, or made up."""


def parse_image(
    content: bytes, filename: str, options: IngestOptions, words: Sequence[PageWords] = ()
) -> ParsedDocument:
    """Return the text of an image, a page a frame of TIFF, that OCR recognised so far.

    Raises:
        TooLarge: More pages than `options.max_pages`, or more than sixty megapixels.
        UnsupportedType: There is no OCR; a folder's pictures are then passed over.
        Unreadable: It is damaged or cut short.
    """
    if not words and not options.reads_pictures:
        raise UnsupportedType(f"{filename!r} is a picture; {INSTALL}")
    with _opened(content, filename) as image:
        frames = int(getattr(image, "n_frames", 1)) if image.format == "TIFF" else 1
        if frames > options.max_pages:
            raise TooLarge(
                f"{filename!r} has {frames} pages; at most {options.max_pages} are read: split it"
                " and send the parts"
            )
        for at in range(frames):
            image.seek(at)
            _load(image, filename)
        media_type = f"image/{(image.format or '').lower().replace('mpo', 'jpeg')}"
    recognised = texts_of_words(words)
    pages = range(1, frames + 1)
    parsed = assemble([recognised.get(number, "") for number in pages], {})
    findings = [(pages, "pictures", INSTALL)]
    return replace(with_findings(parsed, findings, words, options), media_type=media_type)


def print_image(content: bytes, number: int) -> tuple[Picture, tuple[float, float]]:
    """Return a page of an image upright, of at most twelve megapixels, and its size in points.

    Raises:
        Unreadable: It is damaged or has no such page.
    """
    with _opened(content, "the original") as image:
        image.seek(number - 1)
        _load(image, "the original")
        stated = float(image.info.get("dpi", (DPI, DPI))[0])
        points = POINTS / (stated if _LEAST_DPI <= stated <= _MOST_DPI else DPI)
        upright = ImageOps.exif_transpose(image)
        shown = upright.convert("RGBA") if upright.has_transparency_data else upright
        if shown.mode == "RGBA":
            shown = Image.alpha_composite(Image.new("RGBA", shown.size, "white"), shown)
        if shown.mode.startswith(("I", "F")):  # more than eight bits of gray
            values = np.asarray(shown, dtype=np.float32)
            shown = Image.fromarray((255 * values / max(values.max(), 1)).astype(np.uint8))
        gray = shown.convert("L")
        size = gray.width * points, gray.height * points
        scale = (MOST_PIXELS / (gray.width * gray.height)) ** 0.5
        if scale < 1:
            gray = gray.resize((max(1, int(gray.width * scale)), max(1, int(gray.height * scale))))
        return np.array(gray, dtype=np.uint8), size


def _load(image: Image.Image, filename: str) -> None:
    if image.width * image.height > MOST_IMAGE_PIXELS:
        raise TooLarge(
            f"{filename!r} has {image.width} x {image.height} pixels; at most"
            f" {MOST_IMAGE_PIXELS // 1_000_000} million are read: make it smaller and send that"
        )
    image.load()


@contextmanager
def _opened(content: bytes, filename: str) -> Iterator[Image.Image]:
    Image.MAX_IMAGE_PIXELS = None  # asked by `_load`, before anything is decoded
    try:
        with Image.open(BytesIO(content), formats=_FORMATS) as image:
            yield image
    # what Pillow raises over bytes that are no image, or a part of one
    except (UnidentifiedImageError, OSError, SyntaxError, ValueError, EOFError) as exc:
        raise Unreadable(
            f"{filename!r} is a damaged image ({exc}); save it again and send that"
        ) from exc
