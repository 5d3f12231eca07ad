"""Let a model write a chat's title or tags, or an answer as JSON."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from app.answer.models import ModelSelector
from app.core.cancel import CancelToken
from app.core.errors import InvalidInput, ProviderBadResponse
from app.core.types import Answer, Message, Prompt
from app.generation.prompt.prompts import PromptLibrary

_SHORT_TOKENS = 256
"""Titles, tags and follow-up questions are short."""


@dataclass(frozen=True, slots=True)
class Completions:
    """Asks the answering model directly; nothing is searched, and nothing remembered."""

    models: ModelSelector
    prompts: PromptLibrary

    def can_write(self) -> bool:
        """Return whether a model is connected now."""
        return self.models.select().model is not None

    def reply(self, messages: Sequence[Message], cancel: CancelToken) -> str | None:
        """Return the model's reply to messages, trimmed; None without a model.

        Raises:
            ProviderError: The host failed.
            Cancelled: The token was cancelled.
        """
        return self._written(Prompt(tuple(messages), max_tokens=_SHORT_TOKENS), cancel)

    def structured(self, answer: Answer, schema: Mapping[str, object], cancel: CancelToken) -> str:
        """Return a checked answer as JSON that the model makes of it.

        Args:
            answer: The answer, with its question.
            schema: JSON schema that the reply follows.
            cancel: Ends the call.

        Raises:
            InvalidInput: No model is connected, or the question is strict.
            ProviderBadResponse: The model wrote something that is no JSON.
            ProviderError: The host failed.
            Cancelled: The token was cancelled.
        """
        question = answer.question
        if question.strict:
            raise InvalidInput(
                "response_format: a model writes JSON, which is not checked sentence by sentence;"
                " leave response_format out, or ask without strict and STRICT"
            )
        built = self.prompts.task(
            "structured", question=question.text, answer=answer.text, wishes=question.wishes or " "
        )
        text = self._written(replace(built, json_schema=schema), cancel)
        if text is None:
            raise needs_model()
        try:
            json.loads(text)
        except ValueError as exc:
            raise ProviderBadResponse(
                "the model wrote something that is no JSON; ask again, or use a larger model"
            ) from exc
        return text

    def _written(self, prompt: Prompt, cancel: CancelToken) -> str | None:
        model = self.models.select().model
        return (
            None
            if model is None
            else "".join(token.text for token in model.stream(prompt, cancel)).strip()
        )


def needs_model() -> InvalidInput:
    """Return the error of a request for JSON where nothing can write it."""
    return InvalidInput(
        "response_format: JSON has to be written, and no language model is connected; connect one,"
        " or leave response_format out"
    )
