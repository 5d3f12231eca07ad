"""Answers with their traces, kept as the JSON records that the API shows."""

from __future__ import annotations

import json
import secrets
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any

from sqlalchemy import Connection, Select, Update, and_, bindparam, delete, insert, select, update

from app.core.access import digest_of
from app.core.errors import NotFound
from app.core.ids import new_id
from app.core.serialization import INTERNAL
from app.core.types import Answer, Document, Library, Message
from app.storage.catalog.database import Database
from app.storage.catalog.schema import (
    answer_documents,
    answers,
    conversations,
    documents,
    revisions,
    shares,
    turn_documents,
    turns,
)
from app.storage.files.durable import utc_now

# Blank quotes of a deleted document in a stored answer's JSON record.

BLANK = "\u2588"
"""Stands for one removed character, so that offsets into the answer stay true."""


def redact_answer(
    record: Mapping[str, object], library: str, doc_id: str
) -> tuple[dict[str, object], int]:
    """Return the record without the document's words, and how many were blanked.

    Blanked are its passages' previews and titles, every quote of it, and of the answer everything
    but the sentences that cite other documents alone: what cites nothing, a table or an inventory,
    may be made of its words as well.
    """
    redacted = dict(record)
    numbers: set[object] = set()
    sources = []
    for source in _records(record.get("sources")):
        if source.get("doc_id") == doc_id and source.get("library", library) == library:
            numbers.add(source.get("n"))
            blank = {"preview": "", "title": "", "filename": "", "authors": []}
            source |= {**blank, "source_url": None, "zotero_url": None, "obsidian_url": None}
        sources.append(source)
    if "sources" in record:
        redacted["sources"] = sources
    if not numbers:
        return redacted, 0
    blanked = 0
    kept: set[int] = set()
    sentences = []
    for sentence in _records(record.get("sentences")):
        citations = _records(sentence.get("citations"))
        cited = [citation for citation in citations if citation.get("n") in numbers]
        blanked += len(cited)
        for citation in cited:
            citation["quote"] = ""
        if cited or not citations:
            text = BLANK * len(str(sentence.get("text") or ""))
            sentence |= {"text": text, "citations": citations}
        else:
            start, end = sentence.get("answer_start"), sentence.get("answer_end")
            kept.update(range(_offset(start), _offset(end)))
        sentences.append(sentence)
    if "sentences" in record:
        redacted["sentences"] = sentences
    if "answer" in record:
        answer = str(record.get("answer") or "")
        redacted["answer"] = "".join(
            sign if at in kept or sign.isspace() else BLANK for at, sign in enumerate(answer)
        )
    redacted["rewritten_query"] = None
    # Both may be made of its words.
    redacted |= dict.fromkeys({"quote", "model_text"} & redacted.keys())
    return redacted, blanked


def _records(value: object) -> list[dict[str, object]]:
    items = value if isinstance(value, list) else []
    return [dict(item) for item in items if isinstance(item, Mapping)]


def _offset(value: object) -> int:
    return value if isinstance(value, int) and value >= 0 else 0


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
_TURN_DREW_ON = and_(
    turn_documents.c.library == bindparam("of"), turn_documents.c.doc_id == bindparam("wanted")
)
_QUOTING_TURNS = (
    select(turns.c.n, turns.c.content, turns.c.conversation)
    .join(turn_documents)
    .where(_TURN_DREW_ON, turns.c.answer_id.not_in(select(answers.c.answer_id)))
)
_FORGET_TURNS = delete(turn_documents).where(_TURN_DREW_ON)
_THERE = (
    select(revisions.c.doc)
    .join(documents)
    .where(
        documents.c.library == bindparam("of"),
        documents.c.doc_id == bindparam("wanted"),
        revisions.c.sha256 == bindparam("bytes"),
    )
    .limit(1)
)


class AnswerStore:
    """Answers with their traces, by id, within retention."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def save(self, answer: Answer, record: Record, forget_before: str | None = None) -> None:
        """Keep an answer soon, so that no reader waits; who reads or forgets answers sees it.

        What it draws on and was purged in the meantime is blanked.

        Args:
            answer: The answer.
            record: Its full JSON form.
            forget_before: Forget answers before a UTC time, too.
        """

        def keep(sql: Connection) -> None:
            there, gone = _drawn_on(sql, answer.documents)
            kept = record
            for library, doc_id in gone:
                kept, _ = redact_answer(kept, library, doc_id)
            row = {"answer_id": answer.answer_id, "record": _packed(kept)}
            sql.execute(delete(answers).where(answers.c.answer_id == answer.answer_id))
            n = sql.execute(
                insert(answers).returning(answers.c.n), row | {"created_at": record["at"]}
            ).scalar_one()
            if there:
                rows = [{"answer": n, "library": of, "doc_id": doc_id} for of, doc_id in there]
                sql.execute(insert(answer_documents), rows)
            if forget_before is not None:
                sql.execute(delete(answers).where(answers.c.created_at < forget_before))

        self._database.write_later("answer", keep)

    def get(self, answer_id: str) -> Record:
        """Return the record; with feedback, under the key `feedback`.

        Raises:
            NotFound: No such answer, or it was not stored.
        """
        self._database.finish_later()
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
        self._database.finish_later()
        rated = update(answers).where(answers.c.answer_id == answer_id)
        with self._database.write_apart("answer") as sql:
            changed = sql.execute(rated.values(feedback=_packed(feedback))).rowcount
        if not changed:
            raise NotFound(f"no answer {answer_id!r} to attach feedback to")

    def list(self, limit: int = 100, with_feedback: bool = False) -> Sequence[Record]:
        """Return records, newest first."""
        self._database.finish_later()
        found = _RECORDS.order_by(answers.c.n.desc()).limit(limit)
        if with_feedback:
            found = found.where(answers.c.feedback.is_not(None))
        return [_record_from(*row) for row in self._database.rows(found)]

    def delete(self, older_than: str | None = None) -> int:
        """Forget all answers with their shared copies, or those before a UTC time; return count.

        A shared copy outlives the retention of its answer, until it is revoked.
        """
        old = delete(answers)
        if older_than is not None:
            old = old.where(answers.c.created_at < older_than)
        self._database.finish_later()
        with self._database.write_apart("answer") as sql:
            if older_than is None:
                sql.execute(delete(shares))
            return sql.execute(old).rowcount


def purge_quotes(sql: Connection, library: Library, doc_id: str) -> int:
    """Blank a document's quotes in stored and shared answers and conversations; return count.

    A turn whose answer was forgotten is blanked whole: which of its words are quotes is not known.
    Shared copies of stored answers are not counted again.
    """
    blanked = 0
    of = {"of": library.value, "wanted": doc_id}
    for n, answer_id, packed in sql.execute(_QUOTING, of).all():
        record, quotes = redact_answer(json.loads(packed), library.value, doc_id)
        blanked += quotes
        said = str(record.get("answer", ""))
        of_answer = turns.c.answer_id == answer_id
        stored = update(answers).where(answers.c.n == n)
        sql.execute(stored.values(record=_packed(record), feedback=None))
        replies = update(turns).where(of_answer, turns.c.role == "assistant")
        sql.execute(replies.values(content=said))
        touched = conversations.c.n.in_(select(turns.c.conversation).where(of_answer))
        sql.execute(update(conversations).where(touched).values(summary="", folded=0))
    for turn in sql.execute(_QUOTING_TURNS, of).all():
        blanked += 1
        blank = update(turns).where(turns.c.n == turn.n).values(content=_redacted(turn.content))
        sql.execute(blank)
        _change(sql, turn.conversation, summary="", folded=0)
    sql.execute(_FORGET, of)
    sql.execute(_FORGET_TURNS, of)
    rewrite_shares(sql, doc_id, lambda record: redact_answer(record, library.value, doc_id)[0])
    return blanked


def _drawn_on(
    sql: Connection, drawn_on: Iterable[Document]
) -> tuple[set[tuple[str, str]], set[tuple[str, str]]]:
    """Return library and id of documents whose bytes are kept, and of those that were purged."""
    there, gone = set[tuple[str, str]](), set[tuple[str, str]]()
    for one in drawn_on:
        of = {"of": one.library.value, "wanted": one.doc_id, "bytes": one.sha256}
        kept = sql.execute(_THERE, of).first() is not None
        (there if kept else gone).add((one.library.value, one.doc_id))
    return there, gone


def _redacted(text: str) -> str:
    return "".join(sign if sign.isspace() else BLANK for sign in text)


def _packed(record: Record) -> str:
    return json.dumps(record, ensure_ascii=False)


def _record_from(record: str, feedback: str | None) -> Record:
    kept: dict[str, object] = json.loads(record)
    if feedback is not None:
        kept["feedback"] = json.loads(feedback)
    return kept


# Conversations in the catalog: turns, titles, running summaries.

_HIDDEN = {"n", "forget_at", "tip"}
_SHOWN = tuple(column for column in conversations.c if column.name not in _HIDDEN)
_KEPT = conversations.c.forget_at.is_(None)
_ADD_TURN = insert(turns)
_TURNS = select(
    turns.c.role, turns.c.content, turns.c.answer_id, turns.c.at, turns.c.parent
).order_by(turns.c.n)


class ConversationStore:
    """Conversations: id, title, turns, running summary.

    Exchanges, named by their answer ids, are a tree: one that replaces another follows what that
    followed. The tip says which branch is shown and remembered.
    """

    def __init__(self, database: Database) -> None:
        self._database = database

    def create(self, title: str = "", library: str | None = None) -> str:
        row = {"id": new_id(), "title": title, "library": library, "summary": "", "folded": 0}
        now = utc_now()
        with self._database.write_apart("conversation") as sql:
            sql.execute(insert(conversations), row | {"created_at": now, "updated_at": now})
        return str(row["id"])

    def get(self, conversation_id: str) -> Mapping[str, object]:
        """Return one with the turns of the branch that is shown.

        Keys: id, title, library, summary, folded, created_at, updated_at, turns [{role, content,
        answer_id, at, versions}]. Versions are the exchanges with the same predecessor, oldest
        first.

        Raises:
            NotFound: No such conversation.
        """
        with self._database.read() as sql:
            asked = select(conversations.c.n, conversations.c.tip, *_SHOWN).where(_KEPT)
            row = sql.execute(asked.where(conversations.c.id == conversation_id)).first()
            if row is None:
                raise _unknown(conversation_id)
            said = sql.execute(_TURNS.where(turns.c.conversation == row.n)).mappings().all()
        found: dict[str, object] = dict(row._mapping)
        del found["n"], found["tip"]
        parents = _parents((turn["answer_id"], turn["parent"]) for turn in said)
        shown = _branch(parents, row.tip)
        turns_shown = [
            {name: turn[name] for name in ("role", "content", "answer_id", "at")}
            | {"versions": _following(parents, parents[turn["answer_id"] or ""])}
            for turn in said
            if (turn["answer_id"] or "") in shown
        ]
        return found | {"turns": turns_shown}

    def cited(self, conversation_id: str) -> Sequence[str]:
        """Return the documents of the newest answer shown that cites any and is kept."""
        self._database.finish_later()
        shown = {one["answer_id"] for one in _records(self.get(conversation_id)["turns"])}
        kept = _RECORDS.where(answers.c.answer_id.in_(shown)).order_by(answers.c.n.desc())
        for row in self._database.rows(kept):
            record = _record_from(*row)
            cited = [
                one["n"]
                for sentence in _records(record.get("sentences"))
                for one in _records(sentence.get("citations"))
            ]
            sources = [one for one in _records(record.get("sources")) if one["n"] in cited]
            if sources:
                return list(dict.fromkeys(str(one["doc_id"]) for one in sources))
        return []

    def list(self, limit: int = 100) -> Sequence[Mapping[str, object]]:
        """Return conversations without turns, newest first."""
        newest = select(*_SHOWN).where(_KEPT).order_by(conversations.c.n.desc()).limit(limit)
        return [dict(row._mapping) for row in self._database.rows(newest)]

    def begin(self, conversation_id: str, question: str, answer_id: str) -> None:
        """Keep a question that is being answered, as a turn of the user after the tip.

        It takes the place of the same question where that got no answer.

        Raises:
            NotFound: No such conversation.
        """
        with self._database.write_apart("conversation") as sql:
            n, tip = _touch(sql, conversation_id)
            parents = _tree(sql, n)
            same = (turns.c.conversation == n) & (turns.c.content == question)
            broken = delete(turns).where(same, turns.c.answer_id.not_in(_answered(n)))
            gone = set(sql.execute(broken.returning(turns.c.answer_id)).scalars())

            def kept(exchange: str) -> str:
                return kept(parents[exchange]) if exchange in gone else exchange

            for exchange in gone:
                after = (turns.c.conversation == n) & (turns.c.parent == exchange)
                sql.execute(update(turns).where(after).values(parent=kept(exchange)))
            parent = kept(_last(parents, tip))
            sql.execute(_ADD_TURN, _turn(n, Message("user", question), answer_id, parent))
            _show(sql, n, answer_id)

    def append(
        self,
        conversation_id: str,
        said: Sequence[Message],
        answer_id: str,
        drawn_on: Collection[Document] = (),
    ) -> None:
        """Add a finished exchange atomically, in the place of the question that was kept alone.

        A reply that draws on a document that was purged in the meantime is blanked.

        Raises:
            NotFound: No such conversation.
        """
        with self._database.write_apart("conversation") as sql:
            n, tip = _touch(sql, conversation_id)
            parents = _tree(sql, n)
            parent = parents.get(answer_id, _last(parents, tip))
            begun = delete(turns).where(turns.c.conversation == n, turns.c.answer_id == answer_id)
            sql.execute(begun)
            there, gone = _drawn_on(sql, drawn_on)
            for message in said:
                reply = message.role == "assistant"
                kept = (
                    replace(message, content=_redacted(message.content))
                    if reply and gone
                    else message
                )
                added = insert(turns).returning(turns.c.n)
                turn = sql.execute(added, _turn(n, kept, answer_id, parent)).scalar_one()
                rows = [{"turn": turn, "library": of, "doc_id": doc_id} for of, doc_id in there]
                if reply and rows and not gone:
                    sql.execute(insert(turn_documents), rows)
            if answer_id not in parents:
                _show(sql, n, answer_id)

    def leave(self, conversation_id: str, answer_id: str) -> None:
        """Go back to before an exchange: the next question begins a branch next to it.

        Raises:
            NotFound: No such conversation, or no such exchange in it.
        """
        with self._database.write_apart("conversation") as sql:
            n, _ = _touch(sql, conversation_id)
            _show(sql, n, _known(_tree(sql, n), answer_id), summary="", folded=0)

    def show(self, conversation_id: str, answer_id: str) -> None:
        """Go to the newest branch that has an exchange.

        Raises:
            NotFound: No such conversation, or no such exchange in it.
        """
        with self._database.write_apart("conversation") as sql:
            n, _ = _touch(sql, conversation_id)
            parents = _tree(sql, n)
            _known(parents, answer_id)
            while following := _following(parents, answer_id):
                answer_id = following[-1]
            _show(sql, n, answer_id, summary="", folded=0)

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
        with self._database.write_apart("conversation") as sql:
            changed = sql.execute(_of(conversation_id).values(values)).rowcount
        if not changed:
            raise _unknown(conversation_id)

    def delete(self, conversation_id: str, grace_s: float = 0) -> int:
        """Hide one, and forget it when its grace (seconds) is over; return how many."""
        until = (datetime.now(UTC) + timedelta(seconds=grace_s)).isoformat()
        with self._database.write_apart("conversation") as sql:
            gone = sql.execute(_of(conversation_id).values(forget_at=until)).rowcount
        if grace_s <= 0:
            self.delete_due()
        return gone

    def restore(self, conversation_id: str) -> None:
        """Undo a deletion.

        Raises:
            NotFound: No such conversation was deleted, or its grace is over.
        """
        due = conversations.c.forget_at > datetime.now(UTC).isoformat()
        back = update(conversations).where(conversations.c.id == conversation_id, due)
        with self._database.write_apart("conversation") as sql:
            if not sql.execute(back.values(forget_at=None)).rowcount:
                raise NotFound(f"no deleted conversation {conversation_id!r} can be brought back")

    def delete_due(self) -> int:
        """Forget the deleted ones whose grace is over; return how many."""
        due = conversations.c.forget_at <= datetime.now(UTC).isoformat()
        if not self._database.rows(select(conversations.c.n).where(due).limit(1)):
            return 0
        with self._database.write_apart("conversation") as sql:
            return sql.execute(delete(conversations).where(due)).rowcount

    def delete_all(self) -> int:
        with self._database.write_apart("conversation") as sql:
            return sql.execute(delete(conversations)).rowcount


def _of(conversation_id: str) -> Update:
    return update(conversations).where(conversations.c.id == conversation_id, _KEPT)


def _answered(n: int) -> Select[tuple[str]]:
    """Return the query for the answers of a conversation."""
    replies = turns.alias()
    ours = (replies.c.conversation == n) & (replies.c.role == "assistant")
    return select(replies.c.answer_id).where(ours, replies.c.answer_id.is_not(None))


def _touch(sql: Connection, conversation_id: str) -> tuple[int, str | None]:
    """Mark a conversation as changed now, and return its number and tip."""
    changed = _of(conversation_id).values(updated_at=utc_now())
    row = sql.execute(changed.returning(conversations.c.n, conversations.c.tip)).first()
    if row is None:
        raise _unknown(conversation_id)
    return int(row.n), row.tip


def _turn(n: int, message: Message, answer_id: str, parent: str) -> dict[str, object]:
    said = {"role": message.role, "content": message.content, "parent": parent}
    return {"conversation": n, "answer_id": answer_id, "at": utc_now(), **said}


def _show(sql: Connection, n: int, tip: str, **values: object) -> None:
    _change(sql, n, tip=tip, **values)


def _change(sql: Connection, n: int, **values: object) -> None:
    sql.execute(update(conversations).where(conversations.c.n == n).values(values))


def _tree(sql: Connection, n: int) -> dict[str, str]:
    """Return what each exchange of a conversation follows, in the order of writing."""
    said = select(turns.c.answer_id, turns.c.parent).where(turns.c.conversation == n)
    return _parents(map(tuple, sql.execute(said.order_by(turns.c.n))))


def _parents(said: Iterable[tuple[str | None, str | None]]) -> dict[str, str]:
    """Return what each exchange follows, from the answer id and the parent of each turn."""
    parents: dict[str, str] = {}
    last = ""
    for answer_id, parent in said:
        exchange = answer_id or ""
        if exchange not in parents:
            parents[exchange] = last if parent is None else parent
            last = exchange
    return parents


def _last(parents: Mapping[str, str], tip: str | None) -> str:
    """Return the last exchange that is shown; empty where there is none."""
    known = tip in parents or tip == ""
    return tip if known and tip is not None else next(reversed(list(parents)), "")


def _branch(parents: Mapping[str, str], tip: str | None) -> set[str]:
    """Return the exchanges that lead to the tip."""
    shown: set[str] = set()
    at = _last(parents, tip)
    while at in parents and at not in shown:
        shown.add(at)
        at = parents[at]
    return shown


def _following(parents: Mapping[str, str], exchange: str) -> list[str]:
    """Return what follows an exchange, oldest first: versions of one question."""
    return [one for one, before in parents.items() if before == exchange and one != exchange]


def _known(parents: Mapping[str, str], answer_id: str) -> str:
    """Return what an exchange follows.

    Raises:
        NotFound: The conversation has no such exchange.
    """
    if answer_id not in parents:
        raise NotFound(f"no answer {answer_id!r} in this conversation; load it again")
    return parents[answer_id]


def _unknown(conversation_id: str) -> NotFound:
    return NotFound(f"no conversation {conversation_id!r}; list them, or start a new one")


# Copies of answers that open by a link: the digest of its token is kept, never the token.


@dataclass(frozen=True, slots=True)
class Share:
    """A link as it is kept; its token is not."""

    id: str
    answer_id: str
    question: str
    created_at: str
    record: Record = field(metadata=INTERNAL)
    """What it shows: the answer as it was when it was shared."""


class ShareStore:
    """The shared answers of a catalog."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def add(self, answer_id: str, record: Record) -> tuple[str, Share]:
        """Share a copy; return its token (256 random bits), which nothing can show again."""
        token = secrets.token_urlsafe(32)
        made = Share(new_id(), answer_id, str(record["question"]), utc_now(), record)
        row = {
            "id": made.id,
            "digest": digest_of(token.encode()),
            "answer_id": answer_id,
            "record": _packed(record),
            "created_at": made.created_at,
        }
        with self._database.write("share") as sql:
            sql.execute(shares.insert().values(row))
        return token, made

    def open(self, token: str) -> Share:
        """Return what a link shows.

        Raises:
            NotFound: It was revoked, or there never was one.
        """
        of = shares.c.digest == digest_of(token.encode())
        rows = self._database.rows(select(shares).where(of))
        if not rows:
            raise NotFound("this link opens nothing: it was revoked, or a part of it is missing")
        return _share(rows[0])

    def list(self, answer_id: str | None = None) -> Sequence[Share]:
        """Return the links, or those of one answer, newest first."""
        found = select(shares).order_by(shares.c.created_at.desc(), shares.c.id)
        if answer_id is not None:
            found = found.where(shares.c.answer_id == answer_id)
        return [_share(row) for row in self._database.rows(found)]

    def revoke(self, share_id: str) -> Share:
        """Forget a link and its copy; return what it was.

        Raises:
            NotFound: There is none of this id.
        """
        gone = delete(shares).where(shares.c.id == share_id).returning(*shares.c)
        with self._database.write("share") as sql:
            row = sql.execute(gone).first()
            if row is None:
                raise NotFound(f"no shared answer {share_id!r}; GET /api/v1/shares lists them")
            return _share(row)


def rewrite_shares(sql: Connection, doc_id: str, change: Callable[[Record], Record]) -> None:
    """Change the copies that name a document."""
    quoting = select(shares.c.id, shares.c.record).where(shares.c.record.contains(doc_id))
    for share_id, packed in sql.execute(quoting).all():
        record = _packed(change(json.loads(packed)))
        sql.execute(update(shares).where(shares.c.id == share_id).values(record=record))


def _share(row: Any) -> Share:  # a row of SQLAlchemy
    record = json.loads(row.record)
    return Share(row.id, row.answer_id, str(record["question"]), row.created_at, record)
