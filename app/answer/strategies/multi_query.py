"""Several wordings of one question: each is searched, the results are fused by reciprocal rank.

References:
    Rackauckas 2024, RAG-Fusion: a New Take on Retrieval-Augmented Generation, arXiv 2402.03367.
"""

from __future__ import annotations

import re

from app.answer.search import fused
from app.answer.strategies.base import Desk, Found

MAX_QUERIES = 3
"""Sub-queries searched at most (REQUIREMENTS C1)."""

_BULLET = re.compile(r"^\s*(?:(?:[-*\u2022]+|\(?\d{1,2}[.):])\s*)?(?:(?:sub-?)?query(?:\s\d)?:\s*)?", re.IGNORECASE)
_QUOTES = "\"'`\u201c\u201d\u2018\u2019 "


def find(query: str, desk: Desk) -> Found:
    """Let the helper split the question and search every part; without usable parts, search as baseline."""
    queries = sub_queries(desk.calls.ask("multi_query", question=query, count=str(MAX_QUERIES)))
    if not queries:
        return Found(desk.search(query), "baseline", "the model wrote no sub-queries")
    return Found(fused([desk.search(one) for one in queries], desk.search.places), "multi_query")


def sub_queries(reply: str) -> list[str]:
    """Return up to three distinct queries out of a model's reply, one per line, without bullets, numbers or quotation marks.

    Lines that introduce the list ("Here are three queries:") are left out.
    """
    lines = [_BULLET.sub("", line).strip(_QUOTES) for line in reply.splitlines() if not line.rstrip().endswith(":")]
    distinct: dict[str, str] = {}
    for line in lines:
        if any(char.isalnum() for char in line):
            distinct.setdefault(line.casefold(), line)
    return list(distinct.values())[:MAX_QUERIES]
