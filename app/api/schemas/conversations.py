"""Conversations, stored answers, feedback, suggestions."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, StringConstraints

from app.answer.stored_records import StoredRecord
from app.answer.suggestions import Suggestion
from app.api.schemas.base import DocId, Reply, Request
from app.core.types import LibraryName, Scope

Title = Annotated[str, StringConstraints(max_length=200, strip_whitespace=True)]


class NewConversation(Request):
    """A conversation without a word in it yet."""

    title: Title = ""
    library: Scope | None = None


class Rename(Request):
    """A new title."""

    title: Title


class ConversationSummary(Reply):
    """A conversation in a list."""

    id: str
    title: str
    library: str | None
    created_at: str
    updated_at: str


class ConversationList(Reply):
    """Conversations, newest first."""

    conversations: list[ConversationSummary]


class ConversationTurn(Reply):
    """One message."""

    role: str
    content: str
    answer_id: str | None
    at: str


class Conversation(ConversationSummary):
    """A conversation with its turns."""

    summary: str = Field(description="summary of the beginning")
    turns: list[ConversationTurn]


class Forgotten(Reply):
    """The number of forgotten items."""

    forgotten: int


class RightPassage(Request):
    """The passage that should have been the source."""

    library: LibraryName
    doc_id: DocId
    start: Annotated[int, Field(ge=0)]
    end: Annotated[int, Field(ge=0)]


class FeedbackRequest(Request):
    """A reader's rating of an answer."""

    thumbs: Literal["up", "down"] | None = None
    passage: RightPassage | None = None


class FeedbackReply(Reply):
    """The rating stored with the answer."""

    answer_id: str
    feedback: dict[str, object]


class StoredAnswer(StoredRecord):
    """An answer as given, with its full trace and request.

    Quotes of deleted documents are blank.
    """

    request_id: str


class SuggestionList(Reply):
    """Example questions for what is indexed."""

    suggestions: list[Suggestion]
