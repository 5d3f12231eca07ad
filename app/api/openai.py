"""Serve OpenAI's chat completions, embeddings and vector stores; each library is a model.

`documind` (the default of questions), `documind-public`, `documind-papers`, `documind-all`. An
answer is the same as of /api/v1/query: `RAGService.stream`, folded into OpenAI's shapes by
`app.api.openai`.
"""

from __future__ import annotations

import asyncio
import json
import re
import time
from base64 import b64encode
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Literal

from fastapi import APIRouter, Request, Response

from app.answer.completion import Completions, needs_model
from app.answer.records import view_url
from app.api.deps import AtCaller, AtEdge, ContextDep, RequestContext, Responses, events, needs
from app.api.errors import ANSWERING, PROVIDER, status_of_code
from app.api.middleware.limits import openai_error
from app.api.routes import questions
from app.api.schemas.openai import (
    Annotation,
    AssistantMessage,
    ChatCompletion,
    ChatCompletionRequest,
    Choice,
    CompletionUsage,
    EmbeddingPage,
    EmbeddingRequest,
    EmbeddingRow,
    EmbeddingUsage,
    Model,
    ModelPage,
    OpenAIErrorReply,
    StoredText,
    StoreHit,
    StorePage,
    StoreSearch,
    UrlCitation,
)
from app.api.schemas.questions import QueryResponse, SearchQuery
from app.api.streaming import (
    AnswerReply,
    EventStream,
    Produce,
    Pump,
    each,
    event,
    finals,
    stream_problem,
)
from app.core.cancel import CancelToken
from app.core.errors import InvalidInput, NotFound
from app.core.ports import Embedder
from app.core.serialization import json_values
from app.core.types import (
    Answer,
    AnswerEvent,
    FinalEvent,
    Hit,
    Message,
    MetaEvent,
    Question,
    QuoteEvent,
    ReadingEvent,
    Scope,
    SourcesEvent,
    Strategy,
    TokenEvent,
    Usage,
)
from app.generation.check.citations import MARK

ChatTask = Literal["title", "tags", "follow_ups", "queries"]
TITLE_CHARACTERS = 60
_OPENS = re.compile(r"\s*#{2,3}\s*Task\s*:", re.IGNORECASE)
_HISTORY = re.compile(r"<chat_history>(.*?)</chat_history>", re.DOTALL)
_ASKED = re.compile(r"^\s*(?:USER|user|User)\s*:\s*(.+)$", re.MULTILINE)
_WANTED: tuple[tuple[ChatTask, re.Pattern[str]], ...] = (
    ("title", re.compile(r'"title"\s*:')),
    ("tags", re.compile(r'"tags"\s*:')),
    ("follow_ups", re.compile(r'"follow_ups"\s*:')),
    ("queries", re.compile(r'"queries"\s*:')),
)


def task_of(message: str) -> ChatTask | None:
    """Return which task a message is; None for a question."""
    if not _OPENS.match(message) or not _HISTORY.search(message):
        return None
    outside = _HISTORY.sub("", message)
    return next((task for task, pattern in _WANTED if pattern.search(outside)), None)


def plain_reply(task: ChatTask, message: str, library: str) -> str:
    """Return the JSON that the task asks for, made without a model.

    A title is the first question's first 60 characters, the tag is the library, and there are no
    follow-ups or queries.
    """
    if task != "title":
        return json.dumps({task: [library] if task == "tags" else []}, ensure_ascii=False)
    history = _HISTORY.search(message)
    asked = _ASKED.search(history[1]) if history else None
    words = " ".join(asked[1].split()) if asked else "Chat"
    if len(words) > TITLE_CHARACTERS:
        words = f"{words[: TITLE_CHARACTERS - 1].rstrip()}…"
    return json.dumps({"title": words}, ensure_ascii=False)


class Completion:
    """The parts that whole answers and streams share."""

    def __init__(self, model: str, base_url: str, request_id: str) -> None:
        self.model = model
        self.request_id = request_id
        self.created = int(time.time())
        self._base_url = base_url

    def whole(self, answer: Answer | None, content: str | None = None) -> bytes:
        """Return a whole reply; without content, the answer's own text with its citations."""
        annotations = self.annotations(answer, answer.text) if answer and content is None else []
        text = content if content is not None else answer.text if answer else ""
        reply = ChatCompletion(
            id=completion_id(answer.answer_id if answer else self.request_id),
            created=self.created,
            model=self.model,
            choices=[Choice(message=AssistantMessage(content=text, annotations=annotations))],
            usage=usage_of(answer),
            documind=QueryResponse.of(answer, request_id=self.request_id) if answer else None,
        )
        return reply.model_dump_json(by_alias=True).encode("utf-8", "replace")

    def record(self, answer: Answer) -> dict[str, object]:
        return json_values(QueryResponse.of(answer, request_id=self.request_id))

    def annotations(self, answer: Answer, shown: str, before: int = 0) -> list[Annotation]:
        """Return an answer's verified citations, placed on the marks of the text that was shown.

        `before` characters were shown before that text.
        """
        places = marks_of(shown)
        evidence = {item.n: item for item in answer.evidence}
        found: list[Annotation] = []
        for (place, n), (start, end) in marks_of(answer.text).items():
            around = (
                one
                for one in answer.sentences
                if one.answer_start <= start and end <= one.answer_end
            )
            sentence = next(around, None)
            for citation in sentence.citations if sentence else ():
                if citation.n != n or (place, n) not in places:
                    continue
                document = evidence[n].hit.passage.document
                start_index, end_index = (before + at for at in places[place, n])
                cited = UrlCitation(
                    start_index=start_index,
                    end_index=end_index,
                    url=self._base_url + view_url(evidence[n].hit),
                    title=document.title,
                    quote=citation.quote,
                    doc_id=document.doc_id,
                    start=citation.start,
                    end=citation.end,
                    support=round(citation.support, 4),
                    flags=list(document.flags),
                )
                found.append(Annotation(url_citation=cited))
        return found


class Chunks:
    """The chunks of one stream; knows what has been shown."""

    def __init__(self, completion: Completion, *, usage: bool) -> None:
        """Begin; with `usage`, a chunk with token counts comes before the end."""
        self._completion = completion
        self._usage = usage
        self._id = ""
        self._shown = ""

    def render(self, item: AnswerEvent) -> bytes:
        match item:
            case MetaEvent():
                self._id = completion_id(item.answer_id)
                return self._chunk({"role": "assistant", "content": ""})
            case SourcesEvent() | QuoteEvent() | ReadingEvent():
                return b""
            case TokenEvent():
                self._shown += item.text
                return self._chunk({"content": item.text})
            case FinalEvent():
                return self._last(item.answer)

    def at_once(self, answer: Answer | None, content: str) -> bytes:
        """Return all chunks of a reply in one piece; `answer` None: no document answer."""
        self._id = completion_id(answer.answer_id if answer else self._completion.request_id)
        ours = {"documind": self._completion.record(answer)} if answer else {}
        return (
            self._chunk({"role": "assistant", "content": content})
            + self._chunk({}, finish="stop", **ours)
            + self._counts(answer)
        )

    def end(self, error: BaseException | None) -> bytes:
        if error is None:
            return b"data: [DONE]\n\n"
        return event("", openai_error(stream_problem(error, self._completion.request_id)))

    def _last(self, answer: Answer) -> bytes:
        """Return text not shown yet, the citations and, if wanted, the token counts."""
        lead, missing, text = rest_of(answer, self._shown)
        rest = self._chunk({"content": missing}) if missing else b""
        annotations = [
            one.model_dump() for one in self._completion.annotations(answer, text, len(lead))
        ]
        closing = self._chunk(
            {"annotations": annotations} if annotations else {},
            finish="stop",
            documind=self._completion.record(answer),
        )
        return rest + closing + self._counts(answer)

    def _counts(self, answer: Answer | None) -> bytes:
        """Return a chunk with token counts where the client wants it."""
        if not self._usage:
            return b""
        return event("", {**self._frame(), "choices": [], "usage": usage_of(answer).model_dump()})

    def _chunk(
        self, delta: Mapping[str, object], finish: str | None = None, **ours: object
    ) -> bytes:
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
        return event("", {**self._frame(), "choices": [choice], **ours})

    def _frame(self) -> dict[str, object]:
        shared = self._completion
        return {
            "id": self._id,
            "object": "chat.completion.chunk",
            "created": shared.created,
            "model": shared.model,
        }


def rest_of(answer: Answer, shown: str) -> tuple[str, str, str]:
    """Return what was shown before the answer's text, what is still to be shown, and the text."""
    quoted = any(notice.code == "quoted_instead" for notice in answer.notices)
    if answer.text.startswith(shown):
        return "", answer.text[len(shown) :], answer.text
    if quoted:  # what was said does not hold: the quote follows it
        return f"{shown}\n\n", f"\n\n{answer.text}", answer.text
    return "", "", shown


def completion_id(answer_id: str) -> str:
    """Return a completion's id: the stored answer's id after the first hyphen."""
    return f"chatcmpl-{answer_id}"


def usage_of(answer: Answer | None) -> CompletionUsage:
    """Return token counts, 0 if not counted: OpenAI's clients expect numbers."""
    usage = answer.usage if answer else Usage()
    read, written = usage.prompt_tokens or 0, usage.completion_tokens or 0
    return CompletionUsage(
        prompt_tokens=read, completion_tokens=written, total_tokens=read + written
    )


def marks_of(text: str) -> dict[tuple[int, int], tuple[int, int]]:
    """Return each `[n]` mark's span, keyed by the characters before it, and n.

    Blanks and marks do not count. The guard only ever takes marks and blanks out of a text, so the
    same mark has the same key before and after it.
    """
    found: dict[tuple[int, int], tuple[int, int]] = {}
    before, at = 0, 0
    for match in MARK.finditer(text):
        before += len("".join(text[at : match.start()].split()))
        at = match.end()
        found.setdefault((before, int(match.group(1))), match.span())
    return found


router = APIRouter(prefix="/v1", tags=["openai"])

MODELS: Mapping[str, Scope | None] = {
    "documind": None,
    "documind-public": "public",
    "documind-papers": "papers",
    "documind-all": "all",
}


def errors(*codes: str) -> Responses:
    """Return OpenAPI `responses` for errors in OpenAI's shape."""
    failures = {status_of_code(code) for code in (*codes, "busy")}
    return {
        "4XX": {"model": OpenAIErrorReply, "description": "Refused"},
        **{status: {"model": OpenAIErrorReply} for status in sorted(failures) if status >= 500},
    }


openai_needs = partial(needs, describe=errors)


@router.get("/models", operation_id="openai_models", **openai_needs("read"))
def models(edge: AtEdge, caller: AtCaller) -> ModelPage:
    """The libraries that the key may use, as models."""
    usable = (
        name
        for name, scope in MODELS.items()
        if scope in {None, "all"} or scope in caller.libraries
    )
    return ModelPage(data=[_model(name, edge.uptime_s()) for name in usable])


@router.get("/models/{model}", operation_id="openai_model", **openai_needs("read", "not_found"))
def model(edge: AtEdge, model: str) -> Model:
    """One library, as a model."""
    _scope_of(model)
    return _model(model, edge.uptime_s())


@router.post(
    "/chat/completions",
    operation_id="openai_chat_completion",
    response_model=ChatCompletion,
    **openai_needs(
        "ask",
        *ANSWERING,
        also=events(
            "The answer; with `stream: true` server-sent events of chat.completion.chunk, then"
            " [DONE]"
        ),
    ),
)
async def chat_completion(
    asked: ChatCompletionRequest, request: Request, context: ContextDep
) -> Response:
    """Answer the user's last message from the documents.

    Titles and tags of chat programs are answered as such.
    """
    _scope_of(asked.model)
    task = task_of(asked.last_words())
    if task is not None:
        return await chat_task(task, asked, context)
    question = await question_of(asked, context)
    shown = Completion(asked.model, host_of(request), context.request_id)
    schema = asked.response_format.schema_wanted() if asked.response_format else None
    if schema is not None and not await asyncio.to_thread(context.services.completions.can_write):
        raise needs_model()

    rag, chunks = context.answering(), Chunks(shown, usage=asked.wants_usage())

    def make(cancel: CancelToken) -> Iterator[bytes]:
        steps = rag.stream(question, cancel)
        if schema is not None:
            shape = _shaped(
                shown, context.services.completions, schema, chunks if asked.stream else None
            )
            return finals(steps, lambda answer: shape(answer, cancel))
        return each(steps, chunks.render) if asked.stream else finals(steps, shown.whole)

    return _reply(make, chunks, asked, context)


async def question_of(asked: ChatCompletionRequest, context: RequestContext) -> Question:
    """Return what the last message of the user asks of the library that is named as a model."""
    named = _scope_of(asked.model)
    text, history = asked.question()
    strategy: Strategy = "flare" if context.edge.settings.flare_active_retrieval else "baseline"
    return Question(
        text=text,
        library=await context.asked(named),
        strategy=strategy,
        history=history,
        trace="none",
        wishes=asked.wishes(),
    )


def host_of(request: Request) -> str:
    return f"{request.url.scheme}://{request.url.netloc}"


def _reply(
    make: Produce[bytes], chunks: Chunks, asked: ChatCompletionRequest, context: RequestContext
) -> Response:
    pump = Pump(make, context.edge.streams)
    return (
        EventStream(pump, context.request_id, end=chunks.end) if asked.stream else AnswerReply(pump)
    )


def _shaped(
    shown: Completion, completions: Completions, schema: Mapping[str, object], chunks: Chunks | None
) -> Callable[[Answer, CancelToken], bytes]:
    """Return a function that makes a JSON reply of an answer; `chunks`: for a stream."""

    def shape(answer: Answer, cancel: CancelToken) -> bytes:
        content = completions.structured(answer, schema, cancel)
        return shown.whole(answer, content) if chunks is None else chunks.at_once(answer, content)

    return shape


async def chat_task(
    task: ChatTask, asked: ChatCompletionRequest, context: RequestContext
) -> Response:
    """Answer a chat program's own request by the model, or with a plain reply."""
    library = asked.model.removeprefix("documind-").capitalize()
    shown = Completion(asked.model, "", context.request_id)
    chunks = Chunks(shown, usage=False)
    messages = [
        Message("system" if one.role == "system" else "user", one.plain())
        for one in asked.messages
        if one.plain()
    ]

    def make(cancel: CancelToken) -> Iterator[bytes]:
        content = context.services.completions.reply(messages, cancel) or plain_reply(
            task, asked.last_words(), library
        )
        yield chunks.at_once(None, content) if asked.stream else shown.whole(None, content)

    return _reply(make, chunks, asked, context)


@router.post(
    "/embeddings", operation_id="openai_embeddings", **openai_needs("read", *PROVIDER, "not_found")
)
async def embeddings(
    asked: EmbeddingRequest, request: Request, context: ContextDep
) -> EmbeddingPage:
    """Embed texts as the server embeds passages. Few such requests run at once."""
    return await context.edge.checks.run(
        lambda _: embedded(context.services.embedder, asked), request.receive
    )


def embedded(embedder: Embedder, asked: EmbeddingRequest) -> EmbeddingPage:
    """Return the vectors of texts.

    Raises:
        NotFound: Another model is named.
        InvalidInput: Other dimensions are wanted, or a text is longer than the model reads.
    """
    identity, texts = embedder.identity, asked.texts()
    if asked.model not in {"documind", identity.model}:
        raise NotFound(f"there is no model {asked.model!r} to embed; here is {identity.model!r}")
    if asked.dimensions not in {None, identity.dimension}:
        raise InvalidInput(
            f"dimensions {asked.dimensions!r}: {identity.model!r} has {identity.dimension}"
        )
    tokens = sum(embedder.count_tokens(texts))
    rows = embedder.embed_passages(texts)
    packed = asked.encoding_format == "base64"
    made = (b64encode(r.astype("<f4").tobytes()).decode() if packed else r.tolist() for r in rows)
    return EmbeddingPage(
        data=[EmbeddingRow(index=at, embedding=row) for at, row in enumerate(made)],
        model=identity.model,
        usage=EmbeddingUsage(prompt_tokens=tokens, total_tokens=tokens),
    )


@router.post(
    "/vector_stores/{library}/search",
    operation_id="openai_vector_store_search",
    **openai_needs("read", "index_damaged"),
)
def search_store(context: ContextDep, library: Scope, asked: StoreSearch) -> StorePage:
    """Rank passages of a library, or of all."""
    wanted = SearchQuery(q=asked.words(), library=library, limit=asked.max_num_results)
    found = questions.ranked(context, context.scope(library), wanted)
    least = asked.ranking_options.score_threshold
    hits = [_store_hit(hit) for hit in found.hits]
    return StorePage(search_query=[asked.words()], data=[hit for hit in hits if hit.score >= least])


def _store_hit(hit: Hit) -> StoreHit:
    chunk, document = hit.passage.chunk, hit.passage.document
    where = {
        "library": chunk.library.value, "title": document.title, "section": chunk.section,
        "page": chunk.page, "start": chunk.start, "end": chunk.end, "chunk_index": chunk.ordinal,
    }  # fmt: skip
    return StoreHit(
        file_id=document.doc_id,
        filename=document.filename or document.title,
        score=min(1.0, max(0.0, round(hit.score, 6))),
        attributes={name: value for name, value in where.items() if value is not None},
        content=[StoredText(text=chunk.text)],
    )


def _scope_of(model: str) -> Scope | None:
    """Return the libraries that a model's name stands for; None: the default of questions."""
    if model not in MODELS:
        raise NotFound(f"there is no model {model!r}; the models here are {', '.join(MODELS)}")
    return MODELS[model]


def _model(name: str, uptime_s: float) -> Model:
    return Model(id=name, created=int(time.time() - uptime_s))
