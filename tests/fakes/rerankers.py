"""Rerankers without a model."""

from __future__ import annotations

from collections.abc import Sequence

from app.core.text import tokenise


class OverlapReranker:
    """Scores by how many of the question's words a text has, less a little for its length."""

    @property
    def name(self) -> str:
        return "fake:overlap"

    def score(self, question: str, texts: Sequence[str]) -> list[float]:
        wanted = set(tokenise(question))
        return [len(wanted & set(tokenise(text))) - len(text) / 10_000 for text in texts]
