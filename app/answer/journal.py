"""Keep answers whole, hashed, or not at all (STORE_ANSWERS), for a time.

`hash` keeps what was retrieved and how it went, and replaces every text a person wrote or read by
its SHA-256. That hides texts from a reader of the database, not from a person who can guess a text
and compare.
"""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from app.answer.options import AnswerOptions
from app.answer.stored_records import StoredRecord
from app.core.ports import AnswerStore
from app.core.types import Answer, Sentence

_PRUNE_EVERY = timedelta(hours=1)

Clock = Callable[[], datetime]
"""The time now, with a zone."""


def utc_now() -> datetime:
    """Return the time now in UTC."""
    return datetime.now(UTC)


class AnswerJournal:
    """Keeps finished answers as the privacy options say. Thread-safe."""

    def __init__(
        self,
        store: AnswerStore,
        options: AnswerOptions,
        settings: Callable[[], Mapping[str, str]],
        clock: Clock = utc_now,
    ) -> None:
        """Take the store, the options, and the settings that affect answers."""
        self._store = store
        self._options = options
        self._settings = settings
        self._clock = clock
        self._lock = threading.Lock()
        self._pruned: datetime | None = None

    @property
    def keeps_traces(self) -> bool:
        """Return whether answers and their full traces are stored."""
        return self._options.store_answers != "off"

    def keep(self, answer: Answer) -> None:
        """Store a finished answer, and now and then forget those past retention.

        Searches (`retrieve_only`) and pleasantries are not answers and are not kept.
        """
        if self._options.store_answers == "off" or answer.status in ("retrieved", "chitchat"):
            return
        record = StoredRecord.kept_whole(answer, self._settings(), _iso(self._clock()))
        shown = hashed(record) if self._options.store_answers == "hash" else record
        self._store.save(answer, shown.json_values())
        self._prune()

    def _prune(self) -> None:
        if self._options.answer_retention_days <= 0:
            return
        now = self._clock()
        with self._lock:
            if self._pruned is not None and now - self._pruned < _PRUNE_EVERY:
                return
            self._pruned = now
        self._store.delete(_iso(now - timedelta(days=self._options.answer_retention_days)))


def hashed(record: StoredRecord) -> StoredRecord:
    """Return the record with every human text replaced by its SHA-256.

    Offsets, scores and times stay.
    """
    asked, quote, trace = record.asked, record.quote, record.trace
    history = tuple(replace(turn, content=_sha256(turn.content)) for turn in asked.history)
    return record.model_copy(
        update={
            "answer": _sha256(record.answer),
            "rewritten_query": _hash_or_none(record.rewritten_query),
            "sources": tuple(
                source.model_copy(update={"preview": ""}) for source in record.sources
            ),
            "sentences": _hashed_sentences(record.sentences),
            "quote": quote
            and replace(
                quote, text=_sha256(quote.text), sentences=_hashed_sentences(quote.sentences)
            ),
            "model_text": _hash_or_none(record.model_text),
            "trace": trace and trace.model_copy(update={"disagreements": ()}),
            "asked": asked.model_copy(
                update={"question": _sha256(asked.question), "history": history}
            ),
            "kept": "hash",
        }
    )


def _hashed_sentences(sentences: Iterable[Sentence]) -> tuple[Sentence, ...]:
    return tuple(
        replace(
            sentence,
            text=_sha256(sentence.text),
            citations=tuple(replace(one, quote=_sha256(one.quote)) for one in sentence.citations),
        )
        for sentence in sentences
    )


def _hash_or_none(text: str | None) -> str | None:
    return None if text is None else _sha256(text)


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def _iso(at: datetime) -> str:
    return at.astimezone(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
