"""Say in the question's language that the documents do not answer it."""

from __future__ import annotations

from dataclasses import replace

from app.core.languages import LANGUAGES
from app.core.languages.detection import language_of
from app.core.types import AnswerEvent, FinalEvent, TokenEvent
from app.generation.prompts import REFUSAL


def translated(event: AnswerEvent, question: str) -> AnswerEvent:
    """Return an event whose refusal is in the language of the question.

    Other events, and questions in a language that is not listed, stay as they are. `status` is
    `abstained` in any language.
    """
    known = LANGUAGES.get(language_of(question))
    if known is None:
        return event
    if isinstance(event, TokenEvent) and event.text == REFUSAL:
        return TokenEvent(known.refusal)
    if isinstance(event, FinalEvent) and event.answer.text == REFUSAL:
        return replace(event, answer=replace(event.answer, text=known.refusal))
    return event
