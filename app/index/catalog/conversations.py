"""Conversations in the catalog: turns, titles, running summaries."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from app.core.errors import NotFound
from app.core.ids import new_id
from app.core.types import Message
from app.index.catalog.database import Database
from app.index.files.durable import utc_now

_KEYS = ("id", "title", "library", "summary", "folded", "created_at", "updated_at")
_COLUMNS = ", ".join(_KEYS)


class SqliteConversationStore:
    """The ConversationStore port on the catalog."""

    def __init__(self, database: Database) -> None:
        """Keep conversations in `database`."""
        self._database = database

    def create(self, title: str = "", library: str | None = None) -> str:
        """Return the id of a new conversation."""
        conversation_id, now = new_id(), utc_now()
        with self._database.write("conversation") as sql:
            sql.exec_driver_sql(
                f"INSERT INTO conversations ({_COLUMNS}) VALUES (?, ?, ?, '', 0, ?, ?)",  # noqa: S608
                (conversation_id, title, library, now, now),
            )
        return conversation_id

    def get(self, conversation_id: str) -> Mapping[str, object]:
        """Return one with its turns.

        Raises:
            NotFound: No such conversation.
        """
        with self._database.read_raw() as cursor:
            row = cursor.execute(f"SELECT n, {_COLUMNS} FROM conversations WHERE id = ?", (conversation_id,)).fetchone()  # noqa: S608
            if row is None:
                raise _unknown(conversation_id)
            turns = cursor.execute(
                "SELECT role, content, answer_id, at FROM turns WHERE conversation = ? ORDER BY n", (row[0],)
            ).fetchall()
        found: dict[str, object] = dict(zip(_KEYS, row[1:], strict=True))
        found["turns"] = [dict(zip(("role", "content", "answer_id", "at"), turn, strict=True)) for turn in turns]
        return found

    def list(self, limit: int = 100) -> Sequence[Mapping[str, object]]:
        """Return conversations without turns, newest first."""
        with self._database.read_raw() as cursor:
            rows = cursor.execute(f"SELECT {_COLUMNS} FROM conversations ORDER BY n DESC LIMIT ?", (limit,)).fetchall()  # noqa: S608
        return [dict(zip(_KEYS, row, strict=True)) for row in rows]

    def append(self, conversation_id: str, turns: Sequence[Message], answer_id: str | None = None) -> None:
        """Add a finished exchange atomically.

        Raises:
            NotFound: No such conversation.
        """
        now = utc_now()
        with self._database.write("conversation") as sql:
            n = sql.exec_driver_sql(
                "UPDATE conversations SET updated_at = ? WHERE id = ? RETURNING n", (now, conversation_id)
            ).scalar()
            if n is None:
                raise _unknown(conversation_id)
            sql.exec_driver_sql(
                "INSERT INTO turns (conversation, role, content, answer_id, at) VALUES (?, ?, ?, ?, ?)",
                [(n, turn.role, turn.content, answer_id, now) for turn in turns],
            )

    def set_summary(self, conversation_id: str, summary: str, folded: int) -> None:
        """Keep the summary of the first `folded` messages.

        Raises:
            NotFound: No such conversation.
        """
        self._update("UPDATE conversations SET summary = ?, folded = ? WHERE id = ?", (summary, folded, conversation_id))

    def rename(self, conversation_id: str, title: str) -> None:
        """Change the title.

        Raises:
            NotFound: No such conversation.
        """
        self._update("UPDATE conversations SET title = ? WHERE id = ?", (title, conversation_id))

    def _update(self, statement: str, values: tuple[object, ...]) -> None:
        with self._database.write("conversation") as sql:
            changed = sql.exec_driver_sql(statement, values).rowcount
        if not changed:
            raise _unknown(str(values[-1]))

    def delete(self, conversation_id: str | None = None) -> int:
        """Forget one or all; return how many."""
        with self._database.write("conversation") as sql:
            return sql.exec_driver_sql("DELETE FROM conversations WHERE ?1 IS NULL OR id = ?1", (conversation_id,)).rowcount


def _unknown(conversation_id: str) -> NotFound:
    return NotFound(f"no conversation {conversation_id!r}; list them, or start a new one")
