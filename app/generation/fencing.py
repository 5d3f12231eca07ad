"""Render a passage for a prompt: between random marks, with nothing in it that looks like one.

References:
    Hines 2024, Spotlighting, arXiv 2403.14720 (random delimiters).
"""

from __future__ import annotations

import re
import secrets

from app.core.types import Evidence

_FENCE_BYTES = 6
_NATIVE_MARK = re.compile(r"\[(\d{1,4}(?:\s*[,;\u2013-]\s*\d{1,4})*)\]")


def new_fence(*texts: str) -> str:
    """Return a random delimiter that stands in none of the texts."""
    while True:
        fence = secrets.token_hex(_FENCE_BYTES)
        if not any(fence in text for text in texts):
            return fence


def rendered_evidence(
    item: Evidence, fence: str, text: str | None = None, *, titled: bool = False
) -> str:
    """Return a passage for the prompt: fenced, or one plain line without a fence."""
    if fence:
        return render_passage(item, fence, text)
    body = " ".join(_disarmed(item.hit.passage.chunk.text if text is None else text, "").split())
    return f"{_attribute(item.hit.passage.document.title)}: {body}" if titled else body


def render_passage(item: Evidence, fence: str, text: str | None = None) -> str:
    """Return a passage between its marks, with title, section and page.

    `text` replaces the chunk's own. Anything that looks like a mark is disarmed, and the source's
    own `[12]` becomes `(12)`, so that it is not taken for a citation.
    """
    chunk, document = item.hit.passage.chunk, item.hit.passage.document
    head = (
        f'<passage-{fence} n="{item.n}" library="{chunk.library.value}"'
        f' title="{_attribute(document.title)}"'
    )
    if chunk.section and chunk.section != "body":
        head += f' section="{_attribute(chunk.section)}"'
    if chunk.page is not None:
        head += f' page="{chunk.page}"'
    body = _disarmed(chunk.text if text is None else text, fence)
    return f"{head}>\n{body}\n</passage-{fence}>"


def _disarmed(text: str, fence: str) -> str:
    text = (
        (text.replace(fence, "") if fence else text)
        .replace("<passage", "&lt;passage")
        .replace("</passage", "&lt;/passage")
    )
    return _NATIVE_MARK.sub(r"(\1)", text)


def _attribute(text: str) -> str:
    return re.sub(r"[\s<>\"]+", " ", text).strip()[:200]
