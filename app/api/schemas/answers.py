"""Answers, as replies."""

from __future__ import annotations

from app.answer.records import AnswerRecord


class QueryResponse(AnswerRecord):
    """An answer whose every citation can be checked."""

    request_id: str
