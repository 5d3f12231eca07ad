"""Answers with their traces, kept as the JSON records that the API shows."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from sqlalchemy import Connection

from app.core.errors import NotFound
from app.core.types import Answer, Library
from app.index.catalog.database import Database
from app.index.catalog.redaction import redact_answer
from app.index.files.durable import utc_now

Record = Mapping[str, object]


class SqliteAnswerStore:
    """The AnswerStore port on the catalog."""

    def __init__(self, database: Database) -> None:
        """Keep answers in `database`."""
        self._database = database

    def save(self, answer: Answer, record: Record) -> None:
        """Keep an answer; `record` is its full JSON form. Saving again replaces."""
        documents = {(item.hit.passage.document.library.value, item.hit.passage.document.doc_id) for item in answer.evidence}
        with self._database.write("answer") as sql:
            sql.exec_driver_sql("DELETE FROM answers WHERE answer_id = ?", (answer.answer_id,))
            n = sql.exec_driver_sql(
                "INSERT INTO answers (answer_id, record, created_at) VALUES (?, ?, ?) RETURNING n",
                (answer.answer_id, json.dumps(record, ensure_ascii=False), utc_now()),
            ).scalar_one()
            for library, doc_id in sorted(documents):
                sql.exec_driver_sql("INSERT INTO answer_documents (answer, library, doc_id) VALUES (?, ?, ?)", (n, library, doc_id))

    def get(self, answer_id: str) -> Record:
        """Return the record; with feedback, under the key `feedback`.

        Raises:
            NotFound: No such answer, or it was not stored.
        """
        with self._database.read_raw() as cursor:
            row = cursor.execute("SELECT record, feedback FROM answers WHERE answer_id = ?", (answer_id,)).fetchone()
        if row is None:
            raise NotFound(f"no answer {answer_id!r}; answers are kept as STORE_ANSWERS and ANSWER_RETENTION_DAYS say")
        return _record_from(*row)

    def add_feedback(self, answer_id: str, feedback: Record) -> None:
        """Attach thumbs and the right passage; the newest feedback counts.

        Raises:
            NotFound: No such answer.
        """
        with self._database.write("answer") as sql:
            changed = sql.exec_driver_sql(
                "UPDATE answers SET feedback = ? WHERE answer_id = ?", (json.dumps(feedback, ensure_ascii=False), answer_id)
            ).rowcount
        if not changed:
            raise NotFound(f"no answer {answer_id!r} to attach feedback to")

    def list(self, limit: int = 100, with_feedback: bool = False) -> Sequence[Record]:
        """Return records, newest first."""
        where = "WHERE feedback IS NOT NULL" if with_feedback else ""
        with self._database.read_raw() as cursor:
            rows = cursor.execute(f"SELECT record, feedback FROM answers {where} ORDER BY n DESC LIMIT ?", (limit,)).fetchall()  # noqa: S608
        return [_record_from(*row) for row in rows]

    def wipe(self, older_than: str | None = None) -> int:
        """Forget all answers, or those before a UTC time; return how many."""
        with self._database.write("answer") as sql:
            return sql.exec_driver_sql("DELETE FROM answers WHERE ?1 IS NULL OR created_at < ?1", (older_than,)).rowcount


def blank_quotes(sql: Connection, library: Library, doc_id: str) -> int:
    """Blank a document's quotes in stored answers and conversations; return count."""
    rows = sql.exec_driver_sql(
        "SELECT a.n, a.answer_id, a.record FROM answers a JOIN answer_documents d ON d.answer = a.n"
        " WHERE d.library = ? AND d.doc_id = ?",
        (library.value, doc_id),
    ).all()
    blanked = 0
    for n, answer_id, packed in rows:
        record, quotes = redact_answer(json.loads(packed), library.value, doc_id)
        blanked += quotes
        sql.exec_driver_sql(
            "UPDATE answers SET record = ?, feedback = NULL WHERE n = ?", (json.dumps(record, ensure_ascii=False), n)
        )
        sql.exec_driver_sql(
            "UPDATE turns SET content = ? WHERE answer_id = ? AND role = 'assistant'", (str(record.get("answer", "")), answer_id)
        )
        sql.exec_driver_sql(
            "UPDATE conversations SET summary = '', folded = 0 WHERE n IN (SELECT conversation FROM turns WHERE answer_id = ?)",
            (answer_id,),
        )
    sql.exec_driver_sql("DELETE FROM answer_documents WHERE library = ? AND doc_id = ?", (library.value, doc_id))
    return blanked


def _record_from(record: str, feedback: str | None) -> Record:
    kept: dict[str, object] = json.loads(record)
    if feedback is not None:
        kept["feedback"] = json.loads(feedback)
    return kept
