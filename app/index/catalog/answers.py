"""Answers with their traces, kept as the JSON records that the API shows."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from sqlalchemy import Connection, and_, bindparam, delete, insert, select, update

from app.core.errors import NotFound
from app.core.types import Answer, Library
from app.index.catalog.database import Database
from app.index.catalog.redaction import redact_answer
from app.index.catalog.work_schema import answer_documents, answers, conversations, turns
from app.index.files.durable import utc_now

Record = Mapping[str, object]

_RECORDS = select(answers.c.record, answers.c.feedback)
_DRAWN_ON = and_(
    answer_documents.c.library == bindparam("of"), answer_documents.c.doc_id == bindparam("wanted")
)
_QUOTING = (
    select(answers.c.n, answers.c.answer_id, answers.c.record)
    .join(answer_documents)
    .where(_DRAWN_ON)
)
_FORGET = delete(answer_documents).where(_DRAWN_ON)


class SqliteAnswerStore:
    """The AnswerStore port on the catalog."""

    def __init__(self, database: Database) -> None:
        """Keep answers in `database`."""
        self._database = database

    def save(self, answer: Answer, record: Record) -> None:
        """Keep an answer; `record` is its full JSON form. Saving again replaces."""
        shown = (item.hit.passage.document for item in answer.evidence)
        documents = sorted({(document.library.value, document.doc_id) for document in shown})
        row = {"answer_id": answer.answer_id, "record": _packed(record), "created_at": utc_now()}
        with self._database.write("answer") as sql:
            sql.execute(delete(answers).where(answers.c.answer_id == answer.answer_id))
            n = sql.execute(insert(answers).returning(answers.c.n), row).scalar_one()
            if documents:
                rows = [
                    {"answer": n, "library": library, "doc_id": doc_id}
                    for library, doc_id in documents
                ]
                sql.execute(insert(answer_documents), rows)

    def get(self, answer_id: str) -> Record:
        """Return the record; with feedback, under the key `feedback`.

        Raises:
            NotFound: No such answer, or it was not stored.
        """
        rows = self._database.rows(_RECORDS.where(answers.c.answer_id == answer_id))
        if not rows:
            raise NotFound(
                f"no answer {answer_id!r}; answers are kept as STORE_ANSWERS and"
                " ANSWER_RETENTION_DAYS say"
            )
        return _record_from(*rows[0])

    def add_feedback(self, answer_id: str, feedback: Record) -> None:
        """Attach thumbs and the right passage; the newest feedback counts.

        Raises:
            NotFound: No such answer.
        """
        with self._database.write("answer") as sql:
            rated = (
                update(answers)
                .where(answers.c.answer_id == answer_id)
                .values(feedback=_packed(feedback))
            )
            changed = sql.execute(rated).rowcount
        if not changed:
            raise NotFound(f"no answer {answer_id!r} to attach feedback to")

    def list(self, limit: int = 100, with_feedback: bool = False) -> Sequence[Record]:
        """Return records, newest first."""
        found = _RECORDS.order_by(answers.c.n.desc()).limit(limit)
        if with_feedback:
            found = found.where(answers.c.feedback.is_not(None))
        return [_record_from(*row) for row in self._database.rows(found)]

    def delete(self, older_than: str | None = None) -> int:
        """Forget all answers, or those before a UTC time; return how many."""
        old = (
            delete(answers)
            if older_than is None
            else delete(answers).where(answers.c.created_at < older_than)
        )
        with self._database.write("answer") as sql:
            return sql.execute(old).rowcount


def purge_quotes(sql: Connection, library: Library, doc_id: str) -> int:
    """Blank a document's quotes in stored answers and conversations; return count."""
    blanked = 0
    for n, answer_id, packed in sql.execute(
        _QUOTING, {"of": library.value, "wanted": doc_id}
    ).all():
        record, quotes = redact_answer(json.loads(packed), library.value, doc_id)
        blanked += quotes
        said = str(record.get("answer", ""))
        of_answer = turns.c.answer_id == answer_id
        sql.execute(
            update(answers).where(answers.c.n == n).values(record=_packed(record), feedback=None)
        )
        sql.execute(
            update(turns).where(of_answer, turns.c.role == "assistant").values(content=said)
        )
        touched = conversations.c.n.in_(select(turns.c.conversation).where(of_answer))
        sql.execute(update(conversations).where(touched).values(summary="", folded=0))
    sql.execute(_FORGET, {"of": library.value, "wanted": doc_id})
    return blanked


def _packed(record: Record) -> str:
    return json.dumps(record, ensure_ascii=False)


def _record_from(record: str, feedback: str | None) -> Record:
    kept: dict[str, object] = json.loads(record)
    if feedback is not None:
        kept["feedback"] = json.loads(feedback)
    return kept
