"""A real HTTP server that speaks OpenAI's chat completions and embeddings."""

from __future__ import annotations

import json
import re

from tests.fakes.http_double import Asked, Canned, HttpDouble
from tests.fakes.ollama_double.models import DoubleModel, count_tokens, default_answer


def sse(*events: object, done: bool = True) -> Canned:
    """A stream of events as one body."""
    lines = [f"data: {json.dumps(event, ensure_ascii=False)}\n\n" for event in events]
    return Canned(
        "".join([*lines, "data: [DONE]\n\n"] if done else lines).encode(),
        content_type="text/event-stream",
    )


def piece(content: str, logprob: float | None = None) -> dict[str, object]:
    """A chunk of an answer."""
    logprobs = None if logprob is None else {"content": [{"token": content, "logprob": logprob}]}
    return {
        "choices": [
            {"index": 0, "delta": {"content": content}, "finish_reason": None, "logprobs": logprobs}
        ]
    }


def finish(reason: str) -> dict[str, object]:
    """The chunk that ends an answer."""
    return {"choices": [{"index": 0, "delta": {}, "finish_reason": reason}]}


class OpenAIDouble(HttpDouble):
    """Knows the chat model `chat-1` and the embedding model `embed-1`, and wants the key `sk-right-key-123456`."""

    key = "sk-right-key-123456"
    model = DoubleModel("embed-1", dimension=32)

    def default(self, asked: Asked) -> Canned:
        if asked.headers.get("Authorization") != f"Bearer {self.key}":
            said = (
                "Incorrect API key provided:"
                f" {asked.headers.get('Authorization', '').removeprefix('Bearer ')}."
            )
            return Canned(
                json.dumps({"error": {"message": said, "type": "invalid_request_error"}}).encode(),
                401,
            )
        if asked.body.get("model") not in {"chat-1", "embed-1"}:
            said = f"The model `{asked.body.get('model')}` does not exist"
            return Canned(
                json.dumps({"error": {"message": said, "type": "invalid_request_error"}}).encode(),
                404,
            )
        return self._embed(asked) if asked.path.endswith("/embeddings") else self._chat(asked)

    def _embed(self, asked: Asked) -> Canned:
        texts = asked.body["input"]
        assert isinstance(texts, list)
        data = [
            {
                "object": "embedding",
                "index": at,
                "embedding": (self.model.vector(text) * 3).tolist(),
            }
            for at, text in enumerate(texts)
        ]
        return Canned(
            json.dumps({"object": "list", "data": data[::-1]}).encode()
        )  # order is by index, not by place

    def _chat(self, asked: Asked) -> Canned:
        messages = asked.body["messages"]
        assert isinstance(messages, list)
        prompt = "\n".join(message["content"] for message in messages)
        tokens = re.findall(r"\s*\S+", default_answer(prompt, obedient=False))
        usage = {
            "choices": [],
            "usage": {"prompt_tokens": count_tokens(prompt), "completion_tokens": len(tokens)},
        }
        return sse(
            *(piece(token, -0.1 if asked.body.get("logprobs") else None) for token in tokens),
            finish("stop"),
            usage,
        )
