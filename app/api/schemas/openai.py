"""Define the supported part of OpenAI's chat API; unknown fields are ignored."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, Field

from app.api.schemas.base import Tolerant
from app.api.schemas.questions import HISTORY_USED, QueryResponse, readable
from app.core.errors import InvalidInput
from app.core.normalisation import normalise
from app.core.types import Message

_MAX_QUESTION_CHARACTERS = 4000
"""The same as of /api/v1/query."""
_MAX_WISHES_CHARACTERS = 8000
_INSTRUCTING = frozenset({"system", "developer"})


class ContentPart(Tolerant):
    """A piece of a message; only text is read."""

    type: str
    text: str | None = None


class ChatMessage(Tolerant):
    """One message of the conversation so far."""

    role: Annotated[str, Field(min_length=1, max_length=40)]
    content: str | list[ContentPart] | None = None

    def plain(self) -> str:
        """Return the text of the message in normal form."""
        parts = self.content if isinstance(self.content, list) else []
        text = (
            self.content
            if isinstance(self.content, str)
            else "\n".join(part.text or "" for part in parts)
        )
        return normalise(text)[0].strip()


class StreamOptions(Tolerant):
    """Extra content of a stream."""

    include_usage: bool = False


class JsonSchema(Tolerant):
    """A schema that the reply has to follow."""

    definition: Annotated[dict[str, object], Field(alias="schema", default_factory=dict)]


class ResponseFormat(Tolerant):
    """The form of the reply: text, or JSON that a model makes of the checked answer."""

    type: Literal["text", "json_object", "json_schema"]
    json_schema: JsonSchema | None = None

    def schema_wanted(self) -> dict[str, object] | None:
        """Return the JSON schema of the reply; None for text."""
        if self.type == "text":
            return None
        named = (
            self.json_schema.definition if self.type == "json_schema" and self.json_schema else {}
        )
        return named or {"type": "object"}


class ChatCompletionRequest(Tolerant):
    """A question: the user's last message; earlier messages are history."""

    model: Annotated[str, Field(min_length=1, max_length=200, examples=["documind-public"])]
    messages: Annotated[list[ChatMessage], Field(min_length=1, max_length=1000)]
    stream: bool | None = False
    stream_options: StreamOptions | None = None
    response_format: ResponseFormat | None = None

    def wants_usage(self) -> bool:
        return self.stream_options is not None and self.stream_options.include_usage

    def last_words(self) -> str:
        """Return the text of the user's last message; empty if none has that role."""
        return next(
            (message.plain() for message in reversed(self.messages) if message.role == "user"), ""
        )

    def wishes(self) -> str:
        """Return system and developer instructions, cut to leave room for passages."""
        texts = [message.plain() for message in self.messages if message.role in _INSTRUCTING]
        return "\n\n".join(filter(None, texts))[:_MAX_WISHES_CHARACTERS]

    def question(self) -> tuple[str, tuple[Message, ...]]:
        """Return the question and the turns before it.

        Raises:
            InvalidInput: There is no question, or it is too long.
        """
        asked = max(
            (at for at, message in enumerate(self.messages) if message.role == "user"), default=None
        )
        if asked is None:
            raise InvalidInput(
                "messages: none has the role 'user'; the last one that has it is the question"
            )
        text = self.messages[asked].plain()
        if len(text) > _MAX_QUESTION_CHARACTERS:
            raise InvalidInput(
                f"messages: the question has {len(text):,} characters; at most"
                f" {_MAX_QUESTION_CHARACTERS:,} are read"
            )
        try:
            text = readable(text)
        except ValueError as exc:
            raise InvalidInput(f"messages: {exc}") from exc
        history = tuple(
            Message("user" if message.role == "user" else "assistant", message.plain())
            for message in self.messages[:asked]
            if message.role in {"user", "assistant"} and message.plain()
        )
        return text, history[-HISTORY_USED:]


class Model(BaseModel):
    """A library, as a model."""

    id: str
    object: Literal["model"] = "model"
    created: int = Field(description="Unix time of the server's start")
    owned_by: Literal["documind"] = "documind"


class ModelPage(BaseModel):
    """The models that can be asked."""

    object: Literal["list"] = "list"
    data: list[Model]


class UrlCitation(BaseModel):
    """Target of the mark at `content[start_index:end_index]`: the quoted characters."""

    start_index: int
    end_index: int
    url: str
    title: str
    quote: str = Field(description="ours: the quoted text")
    doc_id: str = Field(description="ours")
    start: int = Field(description="ours: first character in the document")
    end: int = Field(description="ours: one past the last")
    support: float = Field(description="ours: 0 to 1")
    flags: list[str] = Field(
        description="ours: findings about the whole document that a reader should see"
    )


class Annotation(BaseModel):
    """One checked citation."""

    type: Literal["url_citation"] = "url_citation"
    url_citation: UrlCitation


class AssistantMessage(BaseModel):
    """The answer."""

    role: Literal["assistant"] = "assistant"
    content: str
    refusal: None = None
    annotations: list[Annotation]


class Choice(BaseModel):
    """The one answer there is."""

    index: int = 0
    message: AssistantMessage
    logprobs: None = None
    finish_reason: Literal["stop"] = "stop"


class CompletionUsage(BaseModel):
    """Token counts of the model host; 0 without a model or a count."""

    prompt_tokens: int
    completion_tokens: int
    total_tokens: int


class ChatCompletion(BaseModel):
    """A whole answer."""

    id: str
    object: Literal["chat.completion"] = "chat.completion"
    created: int
    model: str
    choices: list[Choice]
    usage: CompletionUsage
    documind: QueryResponse | None = Field(
        description="ours: the answer, as from /api/v1/query; null for titles and the like"
    )


class OpenAIError(BaseModel):
    """An error in OpenAI's format."""

    message: str
    type: str
    param: str | None
    code: str | None


class OpenAIErrorReply(BaseModel):
    """The body of every error under /v1."""

    error: OpenAIError
