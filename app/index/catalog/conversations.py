"""Conversations in the catalog: turns, titles, running summaries."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sqlalchemy import Update, delete, insert, select, update

from app.core.errors import NotFound
from app.core.ids import new_id
from app.core.types import Message
from app.index.catalog.database import Database
from app.index.catalog.work_schema import conversations, turns
from app.index.files.durable import utc_now

_SHOWN = tuple(column for column in conversations.c if column is not conversations.c.n)
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
                select(conversations).where(conversations.c.id == conversation_id)
            ).first()
            if row is None:
                raise _unknown(conversation_id)
            said = sql.execute(_TURNS.where(turns.c.conversation == row.n)).mappings().all()
        found: dict[str, object] = dict(row._mapping)
        del found["n"]
        return found | {"turns": [dict(turn) for turn in said]}

    def list(self, limit: int = 100) -> Sequence[Mapping[str, object]]:
        """Return conversations without turns, newest first."""
        newest = select(*_SHOWN).order_by(conversations.c.n.desc()).limit(limit)
        return [dict(row._mapping) for row in self._database.rows(newest)]

    def append(
        self, conversation_id: str, turns: Sequence[Message], answer_id: str | None = None
    ) -> None:
        """Add a finished exchange atomically.

        Raises:
            NotFound: No such conversation.
        """
        now = utc_now()
        with self._database.write("conversation") as sql:
            n = sql.execute(
                _of(conversation_id).values(updated_at=now).returning(conversations.c.n)
            ).scalar()
            if n is None:
                raise _unknown(conversation_id)
            of = {"conversation": n, "answer_id": answer_id, "at": now}
            if rows := [of | {"role": turn.role, "content": turn.content} for turn in turns]:
                sql.execute(_ADD_TURN, rows)

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

    def delete(self, conversation_id: str | None = None) -> int:
        """Forget one or all; return how many."""
        gone = delete(conversations)
        if conversation_id is not None:
            gone = gone.where(conversations.c.id == conversation_id)
        with self._database.write("conversation") as sql:
            return sql.execute(gone).rowcount


def _of(conversation_id: str) -> Update:
    return update(conversations).where(conversations.c.id == conversation_id)


def _unknown(conversation_id: str) -> NotFound:
    return NotFound(f"no conversation {conversation_id!r}; list them, or start a new one")
