"""From a span of a document to the pages it stands on."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from app.core.types import PageSpan, PageText


def page_texts(
    pages: Sequence[PageSpan], start: int, end: int, read: Callable[[int, int], str]
) -> tuple[PageText, ...]:
    """Return each page of a span, its text, and the part of the span on it.

    This is the input of `PageLocator.page_boxes`.

    Args:
        pages: Page map of the revision, in order.
        start: First character of the span in the revision's text.
        end: One past its last character.
        read: Returns the characters `[start, end)` of the same revision.
    """
    return tuple(
        PageText(
            page.number,
            read(page.start, page.end),
            max(start, page.start) - page.start,
            min(end, page.end) - page.start,
        )
        for page in pages
        if page.start < end and start < page.end
    )
