"""Conversations in the catalog: turns, titles, running summaries."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta

from sqlalchemy import Connection, Select, Update, delete, insert, select, update

from app.core.errors import NotFound
from app.core.ids import new_id
from app.core.types import Message
from app.index.catalog.database import Database
from app.index.catalog.work_schema import conversations, turns
from app.index.files.durable import utc_now

_SHOWN = tuple(column for column in conversations.c if column.name not in {"n", "forget_at"})
_KEPT = conversations.c.forget_at.is_(None)
_ADD_TURN = insert(turns)
_TURNS = select(turns.c.role, turns.c.content, turns.c.answer_id, turns.c.at).order_by(turns.c.n)


class SqliteConversationStore:
    """The ConversationStore port on the catalog."""

    def __init__(self, database: Database) -> None:
        """Keep conversations in `database`."""
        self._database = database

    def create(self, title: str = "", library: str | None = None) -> str:
        """Return the id of a new conversation."""
        row = {"id": new_id(), "title": title, "library": library, "summary": "", "folded": 0}
        now = utc_now()
        with self._database.write("conversation") as sql:
            sql.execute(insert(conversations), row | {"created_at": now, "updated_at": now})
        return str(row["id"])

    def get(self, conversation_id: str) -> Mapping[str, object]:
        """Return one with its turns.

        Raises:
            NotFound: No such conversation.
        """
        with self._database.read() as sql:
            row = sql.execute(
                select(conversations.c.n, *_SHOWN).where(
                    conversations.c.id == conversation_id, _KEPT
                )
            ).first()
            if row is None:
                raise _unknown(conversation_id)
            said = sql.execute(_TURNS.where(turns.c.conversation == row.n)).mappings().all()
        found: dict[str, object] = dict(row._mapping)
        del found["n"]
        return found | {"turns": [dict(turn) for turn in said]}

    def list(self, limit: int = 100) -> Sequence[Mapping[str, object]]:
        """Return conversations without turns, newest first."""
        newest = select(*_SHOWN).where(_KEPT).order_by(conversations.c.n.desc()).limit(limit)
        return [dict(row._mapping) for row in self._database.rows(newest)]

    def begin(self, conversation_id: str, question: str, answer_id: str) -> None:
        """Keep a question that is being answered.

        It takes the place of the same question where that got no answer.

        Raises:
            NotFound: No such conversation.
        """
        with self._database.write("conversation") as sql:
            n = _touch(sql, conversation_id)
            same = (turns.c.conversation == n) & (turns.c.content == question)
            sql.execute(delete(turns).where(same, turns.c.answer_id.not_in(_answered(n))))
            sql.execute(_ADD_TURN, _turn(n, Message("user", question), answer_id))

    def append(self, conversation_id: str, said: Sequence[Message], answer_id: str) -> None:
        """Add a finished exchange atomically, in the place of the question that was kept alone.

        Raises:
            NotFound: No such conversation.
        """
        with self._database.write("conversation") as sql:
            n = _touch(sql, conversation_id)
            begun = delete(turns).where(turns.c.conversation == n, turns.c.answer_id == answer_id)
            sql.execute(begun)
            sql.execute(_ADD_TURN, [_turn(n, message, answer_id) for message in said])

    def set_summary(self, conversation_id: str, summary: str, folded: int) -> None:
        """Keep the summary of the first `folded` messages.

        Raises:
            NotFound: No such conversation.
        """
        self._update(conversation_id, summary=summary, folded=folded)

    def rename(self, conversation_id: str, title: str) -> None:
        """Change the title.

        Raises:
            NotFound: No such conversation.
        """
        self._update(conversation_id, title=title)

    def _update(self, conversation_id: str, **values: object) -> None:
        with self._database.write("conversation") as sql:
            changed = sql.execute(_of(conversation_id).values(values)).rowcount
        if not changed:
            raise _unknown(conversation_id)

    def delete(self, conversation_id: str, grace_s: float = 0) -> int:
        """Hide one, and forget it when its grace (seconds) is over; return how many."""
        until = (datetime.now(UTC) + timedelta(seconds=grace_s)).isoformat()
        with self._database.write("conversation") as sql:
            gone = sql.execute(_of(conversation_id).values(forget_at=until)).rowcount
        if grace_s <= 0:
            self.forget_due()
        return gone

    def restore(self, conversation_id: str) -> None:
        """Undo a deletion within its grace.

        Raises:
            NotFound: It was not deleted, or is forgotten.
        """
        due = conversations.c.forget_at > datetime.now(UTC).isoformat()
        back = update(conversations).where(conversations.c.id == conversation_id, due)
        with self._database.write("conversation") as sql:
            if not sql.execute(back.values(forget_at=None)).rowcount:
                raise NotFound(f"no deleted conversation {conversation_id!r} can be brought back")

    def forget_due(self) -> int:
        """Forget the deleted ones whose grace is over; return how many."""
        due = conversations.c.forget_at <= datetime.now(UTC).isoformat()
        if not self._database.rows(select(conversations.c.n).where(due).limit(1)):
            return 0
        with self._database.write("conversation") as sql:
            return sql.execute(delete(conversations).where(due)).rowcount

    def clear(self) -> int:
        """Forget all; return how many."""
        with self._database.write("conversation") as sql:
            return sql.execute(delete(conversations)).rowcount


def _of(conversation_id: str) -> Update:
    return update(conversations).where(conversations.c.id == conversation_id, _KEPT)


def _answered(n: int) -> Select[tuple[str]]:
    """Return the query for the answers of a conversation."""
    replies = turns.alias()
    ours = (replies.c.conversation == n) & (replies.c.role == "assistant")
    return select(replies.c.answer_id).where(ours, replies.c.answer_id.is_not(None))


def _touch(sql: Connection, conversation_id: str) -> int:
    """Mark a conversation as changed now, and return its number."""
    changed = _of(conversation_id).values(updated_at=utc_now()).returning(conversations.c.n)
    n = sql.execute(changed).scalar()
    if n is None:
        raise _unknown(conversation_id)
    return int(n)


def _turn(n: int, message: Message, answer_id: str) -> dict[str, object]:
    said = {"role": message.role, "content": message.content}
    return {"conversation": n, "answer_id": answer_id, "at": utc_now(), **said}


def _unknown(conversation_id: str) -> NotFound:
    return NotFound(f"no conversation {conversation_id!r}; list them, or start a new one")
