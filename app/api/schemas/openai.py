"""Define the supported part of OpenAI's API; unknown fields are ignored."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, Field

from app.api.schemas.base import Tolerant
from app.api.schemas.questions import (
    HISTORY_USED,
    MOST_CHARACTERS,
    QueryResponse,
    QuestionText,
    readable,
)
from app.core.errors import InvalidInput
from app.core.normalisation import normalise
from app.core.types import Message

_MAX_QUESTION_CHARACTERS = 4000
"""The same as of /api/v1/query."""
_MAX_WISHES_CHARACTERS = 8000
_INSTRUCTING = frozenset({"system", "developer"})


EmbeddedText = Annotated[str, Field(min_length=1, max_length=MOST_CHARACTERS)]


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


class InputItem(ChatMessage):
    """One message of a response's input."""

    type: Literal["message"] = "message"


class ResponseText(Tolerant):
    """The form of a response's text."""

    format: ResponseFormat | None = None


class ResponseRequest(Tolerant):
    """A question, with everything that it needs: no response is a state of this server."""

    model: Annotated[str, Field(min_length=1, max_length=200, examples=["documind-papers"])]
    input: (
        Annotated[str, Field(min_length=1, max_length=MOST_CHARACTERS)]
        | Annotated[list[InputItem], Field(min_length=1, max_length=1000)]
    )
    instructions: str | None = None
    stream: bool | None = False
    text: ResponseText | None = None
    previous_response_id: None = Field(None, description="refused: send the turns before as input")
    conversation: None = Field(None, description="refused, as `previous_response_id`")
    background: Literal[False] | None = None

    def as_chat(self) -> ChatCompletionRequest:
        """Return the same question as chat completions ask it.

        Raises:
            InvalidInput: The text is to be JSON.
        """
        if self.text and self.text.format and self.text.format.schema_wanted() is not None:
            raise InvalidInput("text.format: JSON is made by /v1/chat/completions")
        told = [ChatMessage(role="system", content=self.instructions)] if self.instructions else []
        said = self.input
        turns = [ChatMessage(role="user", content=said)] if isinstance(said, str) else said
        return ChatCompletionRequest(model=self.model, messages=[*told, *turns], stream=self.stream)


class EmbeddingRequest(Tolerant):
    """Texts to embed as the passages of documents are."""

    model: Annotated[str, Field(min_length=1, max_length=200)] = Field(
        description="the server's embedder, by the name that an error lists, or `documind`"
    )
    input: EmbeddedText | Annotated[list[EmbeddedText], Field(min_length=1, max_length=2048)]
    encoding_format: Literal["float", "base64"] = "float"
    dimensions: int | None = Field(None, description="refused unless it is the embedder's")

    def texts(self) -> list[str]:
        return [self.input] if isinstance(self.input, str) else self.input


class EmbeddingRow(BaseModel):
    """The vector of one text."""

    object: Literal["embedding"] = "embedding"
    index: int
    embedding: list[float] | str = Field(description="of norm 1; base64: float32, little-endian")


class EmbeddingUsage(BaseModel):
    """Tokens of the texts, by the model's tokenizer."""

    prompt_tokens: int
    total_tokens: int


class EmbeddingPage(BaseModel):
    """Vectors, in the order of the texts."""

    object: Literal["list"] = "list"
    data: list[EmbeddingRow]
    model: str
    usage: EmbeddingUsage


class RankingOptions(Tolerant):
    """Which passages are good enough."""

    score_threshold: float = 0.0


class StoreSearch(Tolerant):
    """A search in a library, as in a vector store."""

    query: QuestionText | Annotated[list[QuestionText], Field(min_length=1, max_length=1)]
    max_num_results: Annotated[int, Field(ge=1, le=50)] = 10
    filters: None = Field(None, description="refused: /api/v1/search has filters")
    ranking_options: RankingOptions = RankingOptions()

    def words(self) -> str:
        return self.query if isinstance(self.query, str) else self.query[0]


class StoredText(BaseModel):
    """The text of a passage."""

    type: Literal["text"] = "text"
    text: str


class StoreHit(BaseModel):
    """A passage; its attributes are where it stands."""

    file_id: str
    filename: str
    score: float = Field(description="from 0 to 1; orders the passages of one search")
    attributes: dict[str, str | float]
    content: list[StoredText]


class StorePage(BaseModel):
    """Passages, best first."""

    object: Literal["vector_store.search_results.page"] = "vector_store.search_results.page"
    search_query: list[str]
    data: list[StoreHit]
    has_more: bool = False
    next_page: None = None


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


class FileCitation(BaseModel):
    """The document behind the mark at `text[index:]`; all but four fields are ours."""

    type: Literal["file_citation"] = "file_citation"
    file_id: str
    filename: str
    index: int
    title: str
    url: str
    quote: str
    start: int
    end: int
    support: float


class OutputText(BaseModel):
    """The text of a response."""

    type: Literal["output_text"] = "output_text"
    text: str
    annotations: list[FileCitation]
    logprobs: list[object] = []


class OutputMessage(BaseModel):
    """The answer."""

    id: str
    type: Literal["message"] = "message"
    role: Literal["assistant"] = "assistant"
    status: Literal["in_progress", "completed"]
    content: list[OutputText]


class CachedTokens(BaseModel):
    """Counts that nothing here has."""

    cached_tokens: int = 0
    cache_write_tokens: int = 0


class ReasoningTokens(BaseModel):
    """Counts that nothing here has."""

    reasoning_tokens: int = 0


class ResponseUsage(BaseModel):
    """Token counts of the model host; 0 without a model or a count."""

    input_tokens: int
    input_tokens_details: CachedTokens = CachedTokens()
    output_tokens: int
    output_tokens_details: ReasoningTokens = ReasoningTokens()
    total_tokens: int


class ResponseReply(BaseModel):
    """A response; what cannot act has OpenAI's default."""

    id: str
    object: Literal["response"] = "response"
    created_at: int
    status: Literal["in_progress", "completed"]
    model: str
    output: list[OutputMessage]
    usage: ResponseUsage | None = None
    error: None = None
    incomplete_details: None = None
    instructions: str | None = None
    metadata: dict[str, str] = {}
    parallel_tool_calls: bool = False
    previous_response_id: None = None
    store: bool = False
    temperature: None = None
    tool_choice: Literal["none"] = "none"
    tools: list[dict[str, str]] = []
    top_p: None = None
    documind: QueryResponse | None = Field(
        None, description="ours: the answer, as from /api/v1/query"
    )
