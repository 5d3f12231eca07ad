"""OpenAI's shapes of an answer: a whole reply, or the chunks of a stream.

Every citation that was verified is a `url_citation` annotation that leads to the exact characters.
A stream cannot take words back, so its last chunk carries the annotations of what was shown and,
under `documind`, the guarded answer.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping

from app.answer.passage_records import view_url
from app.api.middleware.dialect import openai_error
from app.api.schemas.answers import QueryResponse
from app.api.schemas.openai import (
    Annotation,
    AssistantMessage,
    ChatCompletion,
    Choice,
    CompletionUsage,
    UrlCitation,
)
from app.api.sse import stream_problem
from app.core.types import (
    Answer,
    AnswerEvent,
    FinalEvent,
    MetaEvent,
    QuoteEvent,
    ReadingEvent,
    SourcesEvent,
    TokenEvent,
    Usage,
)
from app.generation.citations import MARK


class Completion:
    """The parts that whole answers and streams share."""

    def __init__(self, model: str, base_url: str, request_id: str) -> None:
        """Keep the model's name, where our page is, and the request's id."""
        self.model = model
        self.request_id = request_id
        self.created = int(time.time())
        self._base_url = base_url

    def whole(self, answer: Answer | None, content: str | None = None) -> bytes:
        """Return a whole reply.

        Args:
            answer: The answer; None for what is no answer from documents.
            content: The text of the reply; None: the answer's own, with its citations.
        """
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
        """Return the answer as /api/v1/query gives it."""
        return QueryResponse.of(answer, request_id=self.request_id).json_values()

    def annotations(self, answer: Answer, shown: str, before: int = 0) -> list[Annotation]:
        """Return the verified citations of an answer, placed on the marks of shown text.

        Args:
            answer: The final answer.
            shown: The text that holds its marks, as it was shown.
            before: Characters that were shown before that text.
        """
        places = marks_of(shown)
        evidence = {item.n: item for item in answer.evidence}
        found: list[Annotation] = []
        for (place, n), (start, end) in marks_of(answer.text).items():
            sentence = next(
                (
                    one
                    for one in answer.sentences
                    if one.answer_start <= start and end <= one.answer_end
                ),
                None,
            )
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
        """Keep what all chunks share.

        Args:
            completion: The request.
            usage: Whether the client wants a chunk with token counts before the end.
        """
        self._completion = completion
        self._usage = usage
        self._id = ""
        self._shown = ""

    def render(self, item: AnswerEvent) -> bytes:
        """Return the chunks of one step of an answer."""
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
        counts = (
            _event({**self._frame(), "choices": [], "usage": usage_of(answer).model_dump()})
            if self._usage
            else b""
        )
        return (
            self._chunk({"role": "assistant", "content": content})
            + self._chunk({}, finish="stop", **ours)
            + counts
        )

    def end(self, error: BaseException | None) -> bytes:
        """Return what closes the stream."""
        if error is None:
            return b"data: [DONE]\n\n"
        return _event(openai_error(stream_problem(error, self._completion.request_id)))

    def _last(self, answer: Answer) -> bytes:
        """Return text not shown yet, the citations and, if wanted, the token counts."""
        rest, lead = b"", ""
        if any(
            notice.code == "quoted_instead" for notice in answer.notices
        ) and not answer.text.startswith(self._shown):
            lead, self._shown = (
                f"{self._shown}\n\n",
                answer.text,
            )  # what was said does not hold: the quote follows it
            rest = self._chunk({"content": f"\n\n{answer.text}"})
        elif answer.text.startswith(self._shown) and answer.text != self._shown:
            missing = answer.text[len(self._shown) :]
            self._shown = answer.text
            rest = self._chunk({"content": missing})
        annotations = [
            one.model_dump() for one in self._completion.annotations(answer, self._shown, len(lead))
        ]
        closing = self._chunk(
            {"annotations": annotations} if annotations else {},
            finish="stop",
            documind=self._completion.record(answer),
        )
        counts = (
            _event({**self._frame(), "choices": [], "usage": usage_of(answer).model_dump()})
            if self._usage
            else b""
        )
        return rest + closing + counts

    def _chunk(
        self, delta: Mapping[str, object], finish: str | None = None, **ours: object
    ) -> bytes:
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
        return _event({**self._frame(), "choices": [choice], **ours})

    def _frame(self) -> dict[str, object]:
        shared = self._completion
        return {
            "id": self._id,
            "object": "chat.completion.chunk",
            "created": shared.created,
            "model": shared.model,
        }


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


def _event(data: Mapping[str, object]) -> bytes:
    return (
        b"data: "
        + json.dumps(data, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")
        + b"\n\n"
    )
