"""Ask a decision model: a yes with its probability, and no text.

References:
    POST /v1/systemone, which Ollama serves from 0.35 on, and llama.cpp and vLLM too: a `state`,
    named questions of the types noul (yes or no), choice and score in, probabilities out. A
    question that the model could not answer is missing from `answers`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Annotated

from pydantic import Field

from app.core.cancel import CancelToken
from app.core.errors import ProviderBadResponse
from app.core.types import Prompt, Token, Usage
from app.models.http import FromHost, HttpReply, Tokens
from app.models.ollama import OllamaHost
from app.models.retries import CallSlots, with_retries

_ASKED = "stated"
_INSTRUCTIONS = "The text states the statement: every name, number and detail of it."


class _Answer(FromHost):
    noul: Annotated[float, Field(ge=0.0, le=1.0)] | None = None


class _Usage(FromHost):
    input_tokens: Tokens | None = None


class _Decided(FromHost):
    answers: dict[str, _Answer] = Field(default_factory=dict)
    usage: _Usage = _Usage()


class OllamaDecider:
    """A decision model as a generator that says yes or no; thread-safe.

    It reads what a chat model would be asked as the state, so both judge the same text.
    """

    context_tokens = None

    def __init__(self, host: OllamaHost, model: str, slots: CallSlots) -> None:
        """Prepare; nothing is sent."""
        self._host, self._model, self._slots = host, model, slots
        self.name = f"ollama:{model}"

    def stream(self, prompt: Prompt, cancel: CancelToken) -> Iterator[Token]:
        """Yield `yes` or `no` with its log-probability, or nothing where the model says neither.

        Raises:
            ProviderBadResponse: The host is older, or the model is none that decides.
            ProviderError: The host failed.
        """
        body = {
            "model": self._model,
            "state": "\n\n".join(message.content for message in prompt.messages),
            "questions": {_ASKED: {"type": "noul", "instructions": _INSTRUCTIONS}},
        }

        def ask() -> HttpReply:
            return self._host.http.call("POST", "/v1/systemone", body, cancel=cancel)

        with self._slots.hold(cancel):
            reply = with_retries(ask, cancel)
        if reply.status == 404 and "page not found" in reply.text:
            raise ProviderBadResponse(
                f"{self._host.name} serves no decision models, which Ollama does from 0.35 on;"
                " update it, or judge by a chat model"
            )
        decided = self._host.check(reply, self._model, _Decided)
        yes = decided.answers.get(_ASKED, _Answer()).noul
        if yes is not None:
            said, sure = ("yes", yes) if yes >= 0.5 else ("no", 1.0 - yes)
            yield Token(said, logprob=math.log(sure))
        yield Token("", finish="stop", usage=Usage(decided.usage.input_tokens, 0))
