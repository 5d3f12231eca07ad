"""Numbered evidence for tests."""

from __future__ import annotations

from app.core.types import Evidence, Hit, Library, Signals
from tests.stores import passage


def evidence(
    *texts: str,
    title: str = "Normans",
    start: int = 0,
    fallback: bool = False,
    section: str = "body",
) -> tuple[Evidence, ...]:
    """Number passages from 1, best first, each a document of its own whose chunk begins at `start`."""
    return tuple(
        Evidence(
            n,
            Hit(
                passage(
                    text,
                    key=f"doc-{n}",
                    library=Library.PUBLIC,
                    title=title,
                    start=start,
                    section=section,
                ),
                score=1.0 / n,
                signals=Signals(),
                fallback=fallback,
            ),
        )
        for n, text in enumerate(texts, start=1)
    )
