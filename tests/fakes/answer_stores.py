"""Answers and conversations in memory."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from app.core.errors import NotFound
from app.core.ids import new_id
from app.core.types import Answer, Message, ModelFindings, ModelSpeed

_AT = "2026-01-01T00:00:00Z"


class MemoryAnswerStore:
    """Keeps records by id, oldest first; `failure` is raised by the next save."""

    def __init__(self) -> None:
        self.records: dict[str, Mapping[str, object]] = {}
        self.feedback: dict[str, Mapping[str, object]] = {}
        self.wiped: list[str | None] = []
        self.failure: Exception | None = None

    def save(self, answer: Answer, record: Mapping[str, object]) -> None:
        if self.failure is not None:
            raise self.failure
        self.records[answer.answer_id] = record

    def get(self, answer_id: str) -> Mapping[str, object]:
        if answer_id not in self.records:
            raise NotFound(f"no answer {answer_id!r}")
        return self._with_feedback(answer_id)

    def add_feedback(self, answer_id: str, feedback: Mapping[str, object]) -> None:
        self.get(answer_id)
        self.feedback[answer_id] = feedback

    def list(self, limit: int = 100, with_feedback: bool = False) -> Sequence[Mapping[str, object]]:
        kept = [
            self._with_feedback(key)
            for key in self.records
            if key in self.feedback or not with_feedback
        ]
        return kept[::-1][:limit]

    def _with_feedback(self, answer_id: str) -> Mapping[str, object]:
        said = self.feedback.get(answer_id)
        return (
            self.records[answer_id]
            if said is None
            else {**self.records[answer_id], "feedback": said}
        )

    def delete(self, older_than: str | None = None) -> int:
        self.wiped.append(older_than)
        gone = [
            key
            for key, record in self.records.items()
            if older_than is None or str(record["at"]) < older_than
        ]
        for key in gone:
            del self.records[key]
        return len(gone)


@dataclass
class _Conversation:
    title: str
    library: str | None
    summary: str = ""
    folded: int = 0
    turns: list[dict[str, str | None]] = field(default_factory=list)


class MemoryConversationStore:
    """Conversations by id."""

    def __init__(self) -> None:
        self._kept: dict[str, _Conversation] = {}
        self._deleted: dict[str, tuple[float, _Conversation]] = {}

    def create(self, title: str = "", library: str | None = None) -> str:
        conversation_id = new_id()
        self._kept[conversation_id] = _Conversation(title, library)
        return conversation_id

    def get(self, conversation_id: str) -> Mapping[str, object]:
        found = self._find(conversation_id)
        return {**self._head(conversation_id, found), "turns": [dict(turn) for turn in found.turns]}

    def list(self, limit: int = 100) -> Sequence[Mapping[str, object]]:
        return [self._head(key, found) for key, found in reversed(self._kept.items())][:limit]

    def begin(self, conversation_id: str, question: str, answer_id: str) -> None:
        found = self._find(conversation_id)
        answered = {turn["answer_id"] for turn in found.turns if turn["role"] == "assistant"}
        found.turns = [
            turn
            for turn in found.turns
            if turn["content"] != question or turn["answer_id"] in answered
        ]
        found.turns.append(_turn(Message("user", question), answer_id))

    def append(self, conversation_id: str, said: Sequence[Message], answer_id: str) -> None:
        found = self._find(conversation_id)
        found.turns = [turn for turn in found.turns if turn["answer_id"] != answer_id]
        found.turns += [_turn(message, answer_id) for message in said]

    def set_summary(self, conversation_id: str, summary: str, folded: int) -> None:
        found = self._find(conversation_id)
        found.summary, found.folded = summary, folded

    def rename(self, conversation_id: str, title: str) -> None:
        self._find(conversation_id).title = title

    def delete(self, conversation_id: str, grace_s: float = 0) -> int:
        gone = self._kept.pop(conversation_id, None)
        if gone is not None and grace_s > 0:
            self._deleted[conversation_id] = (time.time() + grace_s, gone)
        return int(gone is not None)

    def restore(self, conversation_id: str) -> None:
        self.delete_due()
        if conversation_id not in self._deleted:
            raise NotFound(f"no deleted conversation {conversation_id!r}")
        self._kept[conversation_id] = self._deleted.pop(conversation_id)[1]

    def delete_due(self) -> int:
        due = [key for key, (until, _) in self._deleted.items() if until <= time.time()]
        for key in due:
            del self._deleted[key]
        return len(due)

    def delete_all(self) -> int:
        gone = len(self._kept) + len(self._deleted)
        self._kept.clear()
        self._deleted.clear()
        return gone

    def _find(self, conversation_id: str) -> _Conversation:
        if conversation_id not in self._kept:
            raise NotFound(f"no conversation {conversation_id!r}")
        return self._kept[conversation_id]

    def _head(self, conversation_id: str, found: _Conversation) -> dict[str, object]:
        return {
            "id": conversation_id,
            "title": found.title,
            "library": found.library,
            "summary": found.summary,
            "folded": found.folded,
            "created_at": _AT,
            "updated_at": _AT,
        }


def _turn(message: Message, answer_id: str) -> dict[str, str | None]:
    said = {"role": message.role, "content": message.content}
    return {**said, "answer_id": answer_id, "at": _AT}


class MemoryModelStore:
    """A ModelStore in memory."""

    def __init__(self) -> None:
        self._speeds: dict[tuple[str, str], ModelSpeed] = {}
        self._tests: dict[str, tuple[str, ModelFindings]] = {}
        self._chosen = ""

    def speed(self, host: str, model: str) -> ModelSpeed | None:
        return self._speeds.get((host, model))

    def keep_speed(self, host: str, model: str, speed: ModelSpeed) -> None:
        self._speeds[host, model] = speed

    def findings(self, digest: str) -> ModelFindings | None:
        return self._tests[digest][1] if digest in self._tests else None

    def keep_findings(self, digest: str, model: str, findings: ModelFindings) -> None:
        self._tests[digest] = (model, findings)

    def tested(self) -> Sequence[tuple[str, ModelFindings]]:
        return sorted(self._tests.values(), key=lambda row: row[1].at, reverse=True)

    def chosen(self) -> str:
        return self._chosen

    def choose(self, model: str) -> None:
        self._chosen = model
