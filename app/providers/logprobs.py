"""Text and the log-probabilities that came with it."""

from __future__ import annotations

from collections.abc import Iterator

from app.core.types import Token


def spread(content: str, entries: list[tuple[str, float]]) -> Iterator[Token]:
    """Yield the text of a line with the log-probabilities that came for it.

    When the entries spell the text, each is a token of its own; otherwise the text is one token
    with the smallest, because doubt about a part is doubt about the whole.
    """
    if entries and "".join(text for text, _ in entries) == content:
        yield from (Token(text, logprob) for text, logprob in entries)
    else:
        yield Token(content, min((logprob for _, logprob in entries), default=None))
