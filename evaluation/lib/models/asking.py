"""Asks the questions of the study, one row each, and keeps every finished row."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from itertools import zip_longest
from pathlib import Path
from typing import Literal, get_args

from app.answer.conversation import ConversationMemory
from app.answer.models import MannerOptions, ModelSelector, ModelSpeeds
from app.answer.records import AnswerJournal
from app.answer.research import Research
from app.answer.search import SearcherFor
from app.answer.service import RAGService
from app.answer.writing import AnswerWriter
from app.core.cancel import CancelToken
from app.core.errors import ProviderError
from app.core.types import Answer, FinalEvent, Mode, Question, QuoteEvent, Scope, Strategy
from app.generation.grounding import Grounder
from app.generation.prompts import PromptLibrary
from app.generation.runaway import RunawayGuard
from app.settings import Settings
from app.storage.store import IndexStore

Part = Literal["strategy", "mode", "prompt"]
_ATTEMPTS = 4
_PAUSE_S = 2.0
"""Before a question is asked again whose model host broke off."""
PROMPTS: Mapping[str, MannerOptions] = {
    "compact": MannerOptions("compact", "short"),
    "full": MannerOptions("full", "full"),
}


@dataclass(frozen=True, slots=True)
class Task:
    """One question of one arm."""

    part: Part
    collection: str
    arm: str
    """Strategy, mode, or prompt."""
    number: int
    """Of the question in its draw, from 0."""
    text: str
    library: Scope
    question_id: str = ""
    expected: tuple[str, ...] = ()
    absent: bool = False

    @property
    def key(self) -> str:
        """Return the key of the row."""
        return f"{self.part}/{self.collection}/{self.arm}/{self.question_id or self.text}"


@dataclass(frozen=True, slots=True)
class Row:
    """The outcome of a task; times in seconds."""

    key: str
    status: str
    whole_s: float
    calls: int
    ranking: tuple[str, ...] = ()
    """Passages as the collection knows them, best first."""
    degraded: bool = False
    """Another strategy searched than the arm's."""
    seen: bool | None = None
    """What the reader sees holds an expected answer."""
    own: bool | None = None
    """The model's own words do."""
    quote: bool | None = None
    """The quotes alone do."""
    quoted: bool = False
    """There was a quote."""
    cited: bool = False
    """Some sentence carries a mark that holds."""
    leak: bool = False
    loop: bool = False
    reason: str = ""
    """Why the quote was the answer instead of the model's words."""
    prompt_tokens: int | None = None
    quote_s: float | None = None


@dataclass(frozen=True, slots=True)
class Place:
    """The place of a collection, and its search."""

    store: IndexStore
    searcher_for: SearcherFor
    passage_of: Mapping[str, str] = field(default_factory=dict)
    """Collection id by doc_id; other documents keep their doc_id."""
    top_k: int = 10


class Asker:
    """Asks tasks of one collection through the query use case; stores nothing."""

    def __init__(
        self,
        settings: Settings,
        place: Place,
        models: ModelSelector,
        answer_writer: AnswerWriter,
        grounder: Grounder,
    ) -> None:
        """Keep what answering takes."""
        self._settings, self._place, self._models = settings, place, models
        self._answer_writer, self._grounder = answer_writer, grounder
        self._speeds = ModelSpeeds(place.store.models)
        self._instructions = _instructions(answer_writer.prompts)

    def ask(self, task: Task) -> Row:
        """Return the row of a task.

        Raises:
            ProviderError: The model host broke off again and again.
        """
        for attempt in range(_ATTEMPTS):
            if attempt:
                time.sleep(_PAUSE_S)
            begun = time.perf_counter()
            try:
                answer, quote, quote_s = self._answer(task, begun)
            except ProviderError as error:
                why = error.message
                continue
            why = next(
                (one.message for one in answer.notices if _broke_off(one.code, one.message)), ""
            )
            if not why:
                return self._row(task, answer, quote, quote_s, time.perf_counter() - begun)
        raise ProviderError(f"{task.key} could not be answered: {why}")

    def _answer(self, task: Task, begun: float) -> tuple[Answer, str, float | None]:
        """Return the answer, the quote, and the seconds to the first quote."""
        quote, quote_s = "", None
        for event in self._service(task).stream(_question(task), CancelToken()):
            if isinstance(event, QuoteEvent):
                quote = event.quote.text
                quote_s = quote_s or time.perf_counter() - begun
            if isinstance(event, FinalEvent):
                return event.answer, quote, quote_s
        raise RuntimeError("a stream ended without its final event")

    def _service(self, task: Task) -> RAGService:
        quiet = replace(self._settings.answer(), store_answers="off")
        if task.part == "prompt":
            quiet = replace(quiet, manner=PROMPTS[task.arm])
        store = self._place.store
        memory = ConversationMemory(store.conversations, quiet)
        research = Research(
            store.catalog,
            self._place.searcher_for,
            self._answer_writer,
            self._grounder,
            memory,
            self._speeds,
            quiet,
            self._settings.top_k_results,
        )
        journal = AnswerJournal(store.answers, quiet, dict)
        return RAGService(
            catalog=store.catalog, models=self._models, research=research, journal=journal
        )

    def _row(
        self, task: Task, answer: Answer, quote: str, quote_s: float | None, whole_s: float
    ) -> Row:
        documents = [item.hit.passage.document.doc_id for item in answer.evidence]
        ranking = tuple(
            dict.fromkeys(self._place.passage_of.get(doc_id, doc_id) for doc_id in documents)
        )
        allowed = [task.text, *(item.hit.passage.chunk.text for item in answer.evidence)]
        guard = RunawayGuard(self._instructions, allowed)
        guard.feed(answer.text)
        guard.close()
        context = answer.trace.context
        known = bool(task.expected)
        degraded = any(one.code == "strategy_degraded" for one in answer.notices)
        return Row(
            task.key,
            answer.status,
            round(whole_s, 3),
            answer.trace.llm_calls,
            ranking,
            degraded,
            seen=holds(answer.text, task.expected) if known else None,
            own=holds(answer.model_text or "", task.expected) if known else None,
            quote=holds(quote, task.expected) if known else None,
            quoted=bool(quote),
            cited=any(sentence.citations for sentence in answer.sentences),
            leak=guard.stopped == "leak",
            loop=guard.stopped == "loop",
            reason=next(
                (
                    one.message.partition(";")[0]
                    for one in answer.notices
                    if one.code == "quoted_instead"
                ),
                "",
            ),
            prompt_tokens=(context.seen or context.planned) if context else None,
            quote_s=quote_s,
        )


def holds(text: str, expected: Sequence[str]) -> bool:
    """Return whether a text contains an expected string, ignoring case."""
    return any(one.casefold() in text.casefold() for one in expected)


def _broke_off(code: str, message: str) -> bool:
    """Return whether a notice says that the model host failed.

    That says nothing about the model.
    """
    return (code == "quoted_instead" and " failed (" in message) or (
        code == "strategy_degraded" and "connection" in message
    )


def _question(task: Task) -> Question:
    if task.part == "strategy":
        strategy: Strategy = next(one for one in get_args(Strategy) if one == task.arm)
        return Question(task.text, task.library, strategy=strategy, retrieve_only=True, top_k=10)
    mode: Mode = (
        next((one for one in get_args(Mode) if one == task.arm), "general")
        if task.part == "mode"
        else "general"
    )
    return Question(task.text, task.library, mode=mode)


def _instructions(prompts: PromptLibrary) -> tuple[str, ...]:
    """Return all instructions of prompts, to check independently what readers get."""
    full = [text for answer in prompts.answers.values() for text in answer.parts.values()]
    small = [text for answer in prompts.compact.values() for text in answer.parts.values()]
    return (*full, *small, *prompts.reasoning.values(), *(turn.content for turn in prompts.turns))


class Rows:
    """Finished rows in a file of JSON lines; an interrupted run continues."""

    def __init__(self, path: Path) -> None:
        """Read the existing rows, without a last line that was cut off."""
        self._path = path
        self.by_key: dict[str, Row] = {}
        lines = path.read_text("utf-8").splitlines() if path.is_file() else []
        for line in lines:
            try:
                row = json.loads(line)
            except json.JSONDecodeError:
                continue
            self.by_key[row["key"]] = Row(**{**row, "ranking": tuple(row["ranking"])})

    @contextmanager
    def keeping(self) -> Iterator[Callable[[Row], None]]:
        """Open the file for more."""
        self._path.parent.mkdir(parents=True, exist_ok=True)
        with self._path.open("a", encoding="utf-8") as file:

            def keep(row: Row) -> None:
                self.by_key[row.key] = row
                file.write(json.dumps(asdict(row), ensure_ascii=False) + "\n")
                file.flush()

            yield keep


def in_turn(parts: Sequence[Sequence[Sequence[Task]]]) -> list[Task]:
    """Return the tasks with parts in turn, so an interrupted run has some of each.

    Args:
        parts: By part and question, the arms of that question; these stay together, because they
            are compared.
    """
    return [task for turn in zip_longest(*parts, fillvalue=()) for arms in turn for task in arms]
