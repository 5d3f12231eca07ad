"""Repeat a stored answer's search, and explain what differs.

Retrieval is repeated with the query and the strategy of then; nothing is written. Strategies that
need a model ask it again, so their queries may differ even over the same documents; the report says
so.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from app.answer.finding import find
from app.answer.intent import without_politeness
from app.answer.models import ModelCalls, ModelSelector
from app.answer.options import AnswerOptions
from app.answer.passage_records import Source
from app.answer.search import Search, SearcherFor, embedder_names
from app.answer.stored_records import StoredRecord
from app.answer.strategies import StrategyContext
from app.answer.strategies.base import numbered
from app.core.cancel import CancelToken
from app.core.errors import Conflict, NotFound
from app.core.ports import AnswerStore, Catalog
from app.core.trace import Trace
from app.core.types import Evidence, Question, Scope
from app.generation.prompts import PromptLibrary

ChangeKind = Literal["added", "removed", "moved", "revised"]


@dataclass(frozen=True, slots=True)
class PassageChange:
    """The change of one passage; its old and new numbers, None if absent."""

    kind: ChangeKind
    library: str
    doc_id: str
    title: str
    section: str
    n_before: int | None
    n_now: int | None
    reason: str


@dataclass(frozen=True, slots=True)
class SettingChange:
    """A setting or model that differs."""

    name: str
    before: str
    now: str


@dataclass(frozen=True, slots=True)
class Replay:
    """The comparison. `same` is True when the same passages come in the same order."""

    answer_id: str
    question: str
    query: str
    strategy: str
    answered_at: str
    same: bool
    passages: tuple[PassageChange, ...]
    settings: tuple[SettingChange, ...]
    remarks: tuple[str, ...]


class Replayer:
    """Repeats stored questions. Stateless, so it may be shared between threads."""

    def __init__(
        self,
        *,
        store: AnswerStore,
        catalog: Catalog,
        searcher_for: SearcherFor,
        models: ModelSelector,
        prompts: PromptLibrary,
        options: AnswerOptions,
        settings: Callable[[], Mapping[str, str]],
        top_k: int,
    ) -> None:
        """Take what a search needs.

        `settings` is what the journal stores with each answer, `top_k` the default of a search.
        """
        self._store = store
        self._catalog = catalog
        self._searcher_for = searcher_for
        self._models = models
        self._prompts = prompts
        self._options = options
        self._settings = settings
        self._top_k = top_k

    def replay(self, answer_id: str, cancel: CancelToken | None = None) -> Replay:
        """Search again for a stored answer's question and report what changed.

        Raises:
            NotFound: There is no such answer, or it is past retention.
            Conflict: Only hashes of it were kept, so that its question is not known.
        """
        record = StoredRecord.model_validate(self._store.get(answer_id))
        if record.kept != "full":
            raise Conflict(
                f"answer {answer_id!r} was kept as a hash, its question is not known; set"
                " STORE_ANSWERS=full to replay"
            )
        question = _question(record)
        query = record.rewritten_query or without_politeness(question.text)
        strategy = question.strategy
        # who needs no model looks for none: a model host that hangs must not hold up a comparison
        # of documents
        choice = self._models.select(question.model) if strategy != "baseline" else None
        trace = Trace()
        calls = ModelCalls(
            trace, cancel or CancelToken(), self._prompts, choice.helper if choice else None
        )
        search = Search(question, self._top_k, self._searcher_for, trace)
        found = find(
            query, StrategyContext(search, calls, self._options, choice.model if choice else None)
        )
        now = numbered(found.retrieval.hits)
        remarks = (
            []
            if strategy == "baseline"
            else [f"{strategy} asks a model, whose words may differ each time"]
        )
        if found.degraded:
            remarks.append(f"{strategy} was not possible now: {found.degraded}")
        elif found.strategy != record.retrieval_strategy:
            remarks.append(f"{record.retrieval_strategy} searched then, {found.strategy} now")
        if record.status == "abstained":
            remarks.append(
                "the answer was an abstention, which keeps no sources: every passage counts as"
                " added"
            )
        changes = self._changes(record, now)
        return Replay(
            answer_id=answer_id,
            question=question.text,
            query=query,
            strategy=found.strategy,
            answered_at=record.at,
            same=not changes,
            passages=changes,
            settings=self._setting_changes(record, question.library),
            remarks=tuple(remarks),
        )

    def _changes(self, record: StoredRecord, now: Sequence[Evidence]) -> tuple[PassageChange, ...]:
        before = {_place(source): source for source in record.sources}
        current = {_place_now(item): item for item in now}
        changes = []
        for place, item in current.items():
            old = before.get(place)
            if old is None:
                changes.append(self._appeared(item, record))
            elif old.n != item.n:
                changes.append(_change("moved", item, old.n, f"ranked {old.n} then, {item.n} now"))
        changes += [
            self._vanished(source) for place, source in before.items() if place not in current
        ]
        return tuple(
            sorted(changes, key=lambda change: (change.n_now or 10**6, change.n_before or 0))
        )

    def _appeared(self, item: Evidence, record: StoredRecord) -> PassageChange:
        document = item.hit.passage.document
        olds = [source for source in record.sources if source.doc_id == document.doc_id]
        revisions = sorted({source.revision for source in olds})
        if revisions and document.revision not in revisions:
            reason = (
                f"the document was revised: revision {revisions[-1]} then, {document.revision} now"
            )
            return _change("revised", item, olds[0].n, reason)
        if document.added_at > record.at:
            return _change("added", item, None, "the document was added after the answer")
        if document.updated_at > record.at:
            return _change("added", item, None, "the document was revised after the answer")
        return _change("added", item, None, "ranks among the first now and did not then")

    def _vanished(self, source: Source) -> PassageChange:
        try:
            document = self._catalog.document(source.library, source.doc_id)
        except NotFound:
            reason = "the document was deleted"
        else:
            revised = document.revision != source.revision
            changed = (
                f"the document was revised: revision {source.revision} then,"
                f" {document.revision} now"
            )
            reason = changed if revised else "ranks lower now"
        return PassageChange(
            "removed",
            source.library.value,
            source.doc_id,
            source.title,
            source.section,
            source.n,
            None,
            reason,
        )

    def _setting_changes(self, record: StoredRecord, scope: Scope) -> tuple[SettingChange, ...]:
        then, now = {**record.settings, "embedder": record.embedder}, dict(self._settings())
        now["embedder"] = embedder_names(self._searcher_for, scope)
        names = sorted({*then, *now})
        return tuple(
            SettingChange(name, then.get(name, ""), now.get(name, ""))
            for name in names
            if then.get(name, "") != now.get(name, "")
        )


def _question(record: StoredRecord) -> Question:
    asked = record.asked
    return Question(
        asked.question,
        asked.library,
        asked.query_mode,
        asked.retrieval_strategy,
        retrieve_only=False,
        top_k=asked.top_k,
        filters=asked.filters.filters(),
        fusion=asked.fusion,
        rerank=asked.rerank,
        model=asked.model,
        fallback=asked.fallback,
    )


def _place(source: Source) -> tuple[str, str, int, int, int]:
    return source.library.value, source.doc_id, source.revision, source.start, source.end


def _place_now(item: Evidence) -> tuple[str, str, int, int, int]:
    chunk = item.hit.passage.chunk
    return chunk.library.value, chunk.doc_id, chunk.revision, chunk.start, chunk.end


def _change(kind: ChangeKind, item: Evidence, n_before: int | None, reason: str) -> PassageChange:
    chunk, document = item.hit.passage.chunk, item.hit.passage.document
    return PassageChange(
        kind,
        chunk.library.value,
        chunk.doc_id,
        document.title,
        chunk.section,
        n_before,
        item.n,
        reason,
    )
