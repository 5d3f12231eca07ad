"""Remember a conversation: a summary and the last exchanges, within a budget.

The budget is in tokens; the exchanges are kept word for word. Older exchanges are folded into the
summary when a conversation goes on, so no answer waits for it. Folding needs a model; without one
the exchanges stay in the store until a model is available.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import cast

from app.answer.intent import past_questions
from app.answer.options import AnswerOptions
from app.core.types import Document, Message, Question, Role
from app.generation.check.citations import without_marks
from app.generation.language.tokens import TokenEstimate
from app.storage.catalog.answers import ConversationStore

_TITLE_CHARS = 120
"""A page shows two lines of it."""
_ESTIMATE = TokenEstimate()
_LIST_LIMIT = 20
_HISTORY_MESSAGES = 6
"""Only so many of the newest messages of a request's history are used."""

Summarise = Callable[[str, str], str]
"""(summary so far, new turns as text) to the new summary; empty when there is no model or it
wrote nothing."""


@dataclass(frozen=True, slots=True)
class Memory:
    """The state of a conversation before the next message."""

    summary: str = ""
    recent: tuple[Message, ...] = ()
    """Word for word, oldest first."""
    questions: tuple[str, ...] = ()
    """Everything the user asked so far, pleasantries left out."""

    def __bool__(self) -> bool:
        return bool(self.summary or self.recent)

    def messages(self) -> tuple[Message, ...]:
        """Return the history for a prompt, without citation marks of old answers."""
        earlier = (Message("assistant", self.summary),) if self.summary else ()
        return (
            *earlier,
            *(Message(turn.role, without_marks(turn.content)) for turn in self.recent),
        )

    def transcript(self) -> str:
        """Return summary and turns as lines of text, for the helper's prompts."""
        lines = [f"Summary of earlier turns: {self.summary}"] if self.summary else []
        return "\n".join([*lines, transcript(self.recent)]).strip()


def transcript(turns: Sequence[Message]) -> str:
    """Return turns as `User: ...` and `Assistant: ...` lines, citation marks left out."""
    return "\n".join(f"{turn.role.capitalize()}: {without_marks(turn.content)}" for turn in turns)


class ConversationMemory:
    """Reads and writes conversations; stateless, so threads can share it."""

    def __init__(self, store: ConversationStore, options: AnswerOptions) -> None:
        self._store = store
        self._options = options

    def open(self, conversation_id: str | None, library: str, message: str) -> str:
        """Return the conversation's id: the given one, or a new one's.

        The message is a new conversation's title.

        Raises:
            NotFound: There is no conversation of this id.
        """
        if conversation_id is None:
            title = re.sub(r"\s+", " ", message).strip()
            short = (
                title
                if len(title) <= _TITLE_CHARS
                else f"{title[: _TITLE_CHARS - 1].rstrip()}\u2026"
            )
            return self._store.create(short, library)
        self._store.get(conversation_id)
        return conversation_id

    def recall(self, question: Question, summarise: Summarise) -> Memory:
        """Return what is remembered for a question, folding what is overdue.

        A conversation on the server is remembered by the configured strategy. History that came
        with the question counts as it is, within the token budget.

        Raises:
            NotFound: The question names a conversation that does not exist.
        """
        if question.conversation_id is None:
            history = question.history[-_HISTORY_MESSAGES:]
            return Memory(
                "",
                _within(history, self._options.memory_token_budget),
                tuple(past_questions(history)),
            )
        conversation = self._store.get(question.conversation_id)
        turns = _turns(conversation)
        if self._options.memory_strategy == "none":
            return Memory()
        asked = tuple(past_questions(turns))
        buffered = 2 * self._options.memory_buffer_size
        if self._options.memory_strategy == "buffer":
            return Memory(
                "", _within(_last(turns, buffered), self._options.memory_token_budget), asked
            )
        summary, folded = (
            str(conversation["summary"] or ""),
            int(cast("int", conversation["folded"]) or 0),
        )
        budget = self._options.memory_token_budget
        keep = _kept(turns[folded:], buffered, budget - _ESTIMATE.tokens(summary))
        last_due = len(turns) - len(keep)
        while folded < last_due:
            batch = _first_within(turns[folded:last_due], budget)
            updated = summarise(summary, transcript(batch))
            if not updated:  # no model: as much as fits stays word for word
                return Memory(summary, _within(turns[folded:], budget), asked)
            summary, folded = _shortened(updated, budget), folded + len(batch)
            self._store.set_summary(question.conversation_id, summary, folded)
        return Memory(summary, keep, asked)

    def cited(self, conversation_id: str) -> Sequence[str]:
        """Return the documents of the last answer that cites any; none where none is kept."""
        return self._store.cited(conversation_id)

    def begin(
        self, conversation_id: str, question: str, answer_id: str, replaces: str | None = None
    ) -> None:
        """Keep a question before it is answered, unless nothing may be stored.

        Raises:
            NotFound: The conversation has no answer `replaces`.
        """
        if replaces is not None:
            self._store.leave(conversation_id, replaces)
        if self._options.store_answers != "off":
            self._store.begin(conversation_id, question, answer_id)

    def record(
        self,
        conversation_id: str,
        question: str,
        answer: str,
        answer_id: str,
        drawn_on: Collection[Document] = (),
    ) -> None:
        """Add a finished exchange; only those are remembered."""
        said = [Message("user", question), Message("assistant", answer)]
        self._store.append(conversation_id, said, answer_id, drawn_on)


def recollection(memory: Memory) -> str:
    """Return a Markdown recollection: the summary and the questions so far."""
    if not memory.summary and not memory.questions:
        return "We have not discussed anything yet."
    parts = [memory.summary] if memory.summary else []
    if memory.questions:
        listed = "\n".join(f"- {question}" for question in memory.questions[-_LIST_LIMIT:])
        parts.append(f"So far you asked:\n\n{listed}")
    return "\n\n".join(parts)


def _turns(conversation: Mapping[str, object]) -> tuple[Message, ...]:
    """Return the turns of finished exchanges; a question without an answer is not remembered."""
    turns = cast("Sequence[Mapping[str, str]]", conversation["turns"])
    answered = {turn["answer_id"] for turn in turns if turn["role"] == "assistant"}
    return tuple(
        Message(cast("Role", turn["role"]), turn["content"])
        for turn in turns
        if turn["answer_id"] in answered
    )


def _last(turns: tuple[Message, ...], count: int) -> tuple[Message, ...]:
    return turns[-count:] if count else ()


def _kept(unfolded: tuple[Message, ...], buffered: int, room_tokens: int) -> tuple[Message, ...]:
    """Return the turns kept word for word; older ones go into the summary.

    Nothing is due until twice the buffer has gathered or the room is full, and then so much at once
    that the next fold is about a buffer's length away: a summary costs a call of the model.
    """
    if len(_within(unfolded, room_tokens)) < len(unfolded):
        newest = _last(unfolded, buffered)
        return _within(newest, room_tokens // 2) or _within(newest[-2:], room_tokens)
    return unfolded if len(unfolded) < 2 * buffered else _last(unfolded, buffered)


def _within(turns: tuple[Message, ...], budget_tokens: int) -> tuple[Message, ...]:
    """Return the newest turns that fit together, beginning with one of the user's."""
    kept = 0
    for turn in reversed(turns):
        budget_tokens -= _ESTIMATE.tokens(turn.content)
        if budget_tokens < 0:
            break
        kept += 1
    recent = _last(turns, kept)
    while recent and recent[0].role != "user":
        recent = recent[1:]
    return recent


def _first_within(turns: tuple[Message, ...], budget_tokens: int) -> tuple[Message, ...]:
    """Return the oldest turns that fit one call of the helper, at least two."""
    left = budget_tokens
    for count, turn in enumerate(turns):
        left -= _ESTIMATE.tokens(turn.content)
        if left < 0:
            return turns[: max(2, count)]
    return turns


def _shortened(summary: str, budget_tokens: int) -> str:
    """Return the end of a summary over half the budget; new topics come last."""
    limit = int(budget_tokens / 2 * _ESTIMATE.chars_per_token)
    if len(summary) <= limit:
        return summary
    return summary[-limit:].split(maxsplit=1)[-1]
