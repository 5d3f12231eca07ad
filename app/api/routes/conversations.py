"""Conversations on the server, stored answers, feedback, suggestions."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path, Query
from starlette.responses import Response

from app.answer.feedback import answer_set
from app.api.deps import AnyLibrary, Composition, RequestIdentity
from app.api.errors import declared
from app.api.schemas.base import DocId
from app.api.schemas.conversations import (
    Conversation,
    ConversationList,
    ConversationSummary,
    FeedbackReply,
    FeedbackRequest,
    Forgotten,
    NewConversation,
    Rename,
    StoredAnswer,
    SuggestionList,
)
from app.core.errors import NotFound

router = APIRouter(prefix="/api/v1", tags=["conversations"])

GRACE_S = 10.0
"""In which a deleted conversation can be brought back, unless the request says otherwise."""
Grace = Annotated[
    float, Query(ge=0, le=86400, description="seconds during which it can be restored")
]
Identity = Annotated[str, Path(min_length=1, max_length=64)]


@router.get(
    "/conversations",
    operation_id="list_conversations",
    response_model=ConversationList,
    responses=declared(),
)
def list_conversations(
    services: Composition, limit: Annotated[int, Query(ge=1, le=1000)] = 100
) -> ConversationList:
    """Conversations, newest first, without their turns."""
    found = services.conversations.list(limit)
    return ConversationList(
        conversations=[ConversationSummary.model_validate(one) for one in found]
    )


@router.post(
    "/conversations",
    operation_id="create_conversation",
    status_code=201,
    response_model=Conversation,
    responses=declared("disk_full"),
)
def create_conversation(services: Composition, new: NewConversation) -> Conversation:
    """Begin a conversation; chatting without an id begins one too."""
    return Conversation.model_validate(
        services.conversations.get(services.conversations.create(new.title, new.library))
    )


@router.get(
    "/conversations/{conversation_id}",
    operation_id="get_conversation",
    response_model=Conversation,
    responses=declared("not_found"),
)
def get_conversation(services: Composition, conversation_id: Identity) -> Conversation:
    """One conversation with its turns; a question without an answer was broken off."""
    return Conversation.model_validate(services.conversations.get(conversation_id))


@router.patch(
    "/conversations/{conversation_id}",
    operation_id="rename_conversation",
    response_model=Conversation,
    responses=declared("not_found", "disk_full"),
)
def rename_conversation(
    services: Composition, conversation_id: Identity, rename: Rename
) -> Conversation:
    """Give a conversation another title."""
    services.conversations.rename(conversation_id, rename.title)
    return Conversation.model_validate(services.conversations.get(conversation_id))


@router.delete(
    "/conversations",
    operation_id="forget_conversations",
    response_model=Forgotten,
    responses=declared("disk_full"),
)
def forget_conversations(services: Composition) -> Forgotten:
    """Forget every conversation."""
    return Forgotten(forgotten=services.conversations.clear())


@router.delete(
    "/conversations/{conversation_id}",
    operation_id="forget_conversation",
    response_model=Forgotten,
    responses=declared("not_found", "disk_full"),
)
def forget_conversation(
    services: Composition, conversation_id: Identity, grace_s: Grace = GRACE_S
) -> Forgotten:
    """Hide a conversation at once, and forget it after the grace period."""
    forgotten = services.conversations.delete(conversation_id, grace_s)
    if not forgotten:
        raise NotFound(f"no conversation {conversation_id!r}")
    return Forgotten(forgotten=forgotten)


@router.post(
    "/conversations/{conversation_id}/restore",
    operation_id="restore_conversation",
    response_model=Conversation,
    responses=declared("not_found", "disk_full"),
)
def restore_conversation(services: Composition, conversation_id: Identity) -> Conversation:
    """Undo the deletion of a conversation within its grace."""
    services.conversations.restore(conversation_id)
    return Conversation.model_validate(services.conversations.get(conversation_id))


@router.get(
    "/answers/{answer_id}",
    operation_id="get_answer",
    response_model=StoredAnswer,
    responses=declared("not_found"),
)
def get_answer(
    services: Composition, request_id: RequestIdentity, answer_id: Identity
) -> StoredAnswer:
    """A stored answer with its full trace."""
    return StoredAnswer.model_validate(
        {**services.answers.get(answer_id), "request_id": request_id}
    )


@router.post(
    "/answers/{answer_id}/feedback",
    operation_id="give_feedback",
    response_model=FeedbackReply,
    responses=declared("not_found", "disk_full"),
)
def give_feedback(
    services: Composition, answer_id: Identity, feedback: FeedbackRequest
) -> FeedbackReply:
    """Rate an answer and name the passage that would have been right.

    The newest rating replaces older ones.
    """
    given: dict[str, object] = feedback.model_dump(exclude_none=True)
    services.answers.add_feedback(answer_id, given)
    return FeedbackReply(answer_id=answer_id, feedback=given)


@router.delete(
    "/answers",
    operation_id="forget_answers",
    response_model=Forgotten,
    responses=declared("disk_full"),
)
def forget_answers(services: Composition) -> Forgotten:
    """Forget every stored answer, with its question, trace and feedback."""
    return Forgotten(forgotten=services.answers.delete())


@router.get(
    "/feedback",
    operation_id="export_feedback",
    response_class=Response,
    responses={
        200: {
            "description": "JSON lines",
            "content": {"application/x-ndjson": {"schema": {"type": "string"}}},
        },
        **declared(),
    },
)
def export_feedback(
    services: Composition,
    limit: Annotated[int, Query(ge=1, le=100_000, description="answers, newest first")] = 100_000,
) -> Response:
    """Export ratings of answers as JSON Lines for `documind evaluate answers`."""
    return Response(
        answer_set(services.answers.list(limit, with_feedback=True)),
        media_type="application/x-ndjson",
    )


@router.get(
    "/suggestions",
    operation_id="suggestions",
    response_model=SuggestionList,
    responses=declared("not_found"),
)
def suggestions(
    services: Composition,
    library: AnyLibrary,
    n: Annotated[int, Query(ge=1, le=20)] = 4,
    doc_id: DocId | None = None,
) -> SuggestionList:
    """Example questions for what is indexed, each of which has an answer there."""
    found = services.suggester.suggest(library, n, doc_id)
    return SuggestionList(suggestions=list(found))
