"""Real models asked as the product asks them: strategies, modes and both prompts.

    LLM_PROVIDER=openai_compatible HOSTED_URL=... HOSTED_MODEL=... python -m
    evaluation.studies.models --questions 20

The model and its host are those that the settings name, as the server reads them from the
environment (OLLAMA_BASE_URL and LLM_MODEL, or the three above). Collections are indexed in
temporary directories with the embedded model. Finished rows are kept under --cache by model and
commit, so a run that was ended goes on; --minutes ends one early, with a report of the rows that
are there. Writes evaluation/reports/models.{md,json}.
"""

from __future__ import annotations

import re
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from itertools import zip_longest
from pathlib import Path
from random import Random
from statistics import median
from typing import Literal, TypeVar, cast, get_args

import numpy as np

from app.answer.memory import ConversationMemory
from app.answer.models import ModelSelector, ModelSpeeds
from app.answer.options import MannerOptions
from app.answer.records import AnswerJournal
from app.answer.research import Research
from app.answer.search import LibrarySearcher, SearcherFor
from app.answer.service import RAGService
from app.answer.writing import AnswerWriter
from app.bootstrap import build_services
from app.bootstrap.models import Models
from app.core.cancel import CancelToken
from app.core.errors import ProviderError
from app.core.ids import checkout_sha, fingerprint8
from app.core.types import (
    Answer,
    FinalEvent,
    Mode,
    ModelProfile,
    Question,
    QuoteEvent,
    Scope,
    Strategy,
)
from app.evaluation.cases import CaseBody, load
from app.evaluation.collections import Collection, TestQuestion, from_folder
from app.evaluation.metrics import bootstrap_interval, per_question
from app.evaluation.report import ReportProvenance
from app.evaluation.runner import KeptRows
from app.generation.check.grounding import Grounder
from app.generation.language.tokens import TokenCalibrator
from app.generation.prompt.prompts import PromptLibrary
from app.generation.prompt.runaway import RunawayGuard
from app.ingest.embedding import fingerprint_of
from app.jobs.kinds import SAMPLES
from app.models.minilm import MiniLmEmbedder
from app.retrieval.request import RetrievalOptions
from app.settings import Settings
from app.storage.store import IndexStore
from evaluation.lib.reports import COLLECTIONS, ROOT, SEED, hash_of, options, say, table, write
from evaluation.lib.workbench import indexed

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
    store: IndexStore
    searcher_for: SearcherFor
    passage_of: Mapping[str, str] = field(default_factory=dict)
    """Collection id by doc_id; other documents keep their doc_id."""


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
    """Return whether a notice says that the host failed, which says nothing of the model."""
    return (code == "quoted_instead" and " failed (" in message) or (
        code == "strategy_degraded" and "connection" in message
    )


def _question(task: Task) -> Question:
    if task.part == "strategy":
        strategy = cast("Strategy", task.arm)
        return Question(task.text, task.library, strategy=strategy, retrieve_only=True, top_k=10)
    mode = cast("Mode", task.arm) if task.part == "mode" else "general"
    return Question(task.text, task.library, mode=mode)


def _instructions(prompts: PromptLibrary) -> tuple[str, ...]:
    """Return all instructions of prompts, to check independently what readers get."""
    full = [text for answer in prompts.answers.values() for text in answer.parts.values()]
    small = [text for answer in prompts.compact.values() for text in answer.parts.values()]
    return (*full, *small, *prompts.reasoning.values(), *(turn.content for turn in prompts.turns))


Relevance = Mapping[str, Mapping[str, int]]
Done = Sequence[tuple[Task, Row]]
"""Tasks with their rows."""
MEASURE = "nDCG@10"
_RESAMPLES = 2000


Table = tuple[list[str], dict[str, float]]
"""Lines of Markdown, and figures by name."""


def strategies(done: Done, relevance: Mapping[str, Relevance]) -> Table:
    """Compare strategies with the baseline, on the questions that both searched."""
    rows: list[tuple[object, ...]] = []
    figures: dict[str, float] = {}
    for collection, arms in _by_collection(done):
        values = {
            arm: per_question(
                {task.question_id: row.ranking for task, row in pairs},
                relevance[collection],
                [MEASURE],
            )[MEASURE]
            for arm, pairs in arms.items()
        }
        for arm, pairs in arms.items():
            both = [one for one in values[arm] if one in values["baseline"]]
            own, base = (
                np.array([values[name][one] for one in both]) for name in (arm, "baseline")
            )
            figures[f"{collection} {arm} {MEASURE}"] = float(own.mean())
            against = ""
            if arm != "baseline":
                gain = bootstrap_interval(own - base, seed=SEED, resamples=_RESAMPLES)
                figures[f"{collection} {arm} {MEASURE} minus baseline"] = gain.mean
                against = f"{gain.mean:+.3f} [{gain.low:+.3f}, {gain.high:+.3f}]"
            degraded = sum(row.degraded for _, row in pairs)
            calls = f"{sum(row.calls for _, row in pairs) / len(pairs):.1f}"
            seconds = _median(pairs, lambda row: row.whole_s)
            found = (len(both), f"{own.mean():.3f}", against, degraded, calls, seconds)
            rows.append((collection, arm, *found))
    head = f"collection|strategy|questions|{MEASURE}|against baseline|degraded|calls|seconds"
    return table(head.split("|"), rows), figures


def modes(done: Done) -> Table:
    """Count what comes of each mode with the baseline strategy."""
    rows: list[tuple[object, ...]] = []
    figures: dict[str, float] = {}
    names: Sequence[str] = ()
    for arm, pairs in _by_arm(done).items():
        answered = [row for _, row in pairs if row.status == "answered"]
        counts = {
            "questions": len(pairs),
            "answered": len(answered),
            "cited": sum(row.cited for row in answered),
            "leaks": sum(row.leak for _, row in pairs),
            "loops": sum(row.loop for _, row in pairs),
            "nothing supported": sum(not row.cited for row in answered),
            "quoted instead": sum(bool(row.reason) for row in answered),
        }
        names = tuple(counts)
        rows.append((arm, *counts.values(), _median(pairs, lambda row: row.whole_s)))
        figures |= {f"{arm} {name}": count for name, count in counts.items()}
    return table(("mode", *names, "seconds"), rows), figures


def prompts(done: Done) -> Table:
    """Compare both prompts: what is right, what is refused, what it takes."""
    rows: list[tuple[object, ...]] = []
    figures: dict[str, float] = {}
    for collection, arms in _by_collection(done):
        for arm, pairs in arms.items():
            known, absent = (
                [row for task, row in pairs if task.absent == flag] for flag in (False, True)
            )
            flags = {
                "right seen": [bool(row.seen) for row in known],
                "right own": [bool(row.own) for row in known],
                "right quotes": [bool(row.quote) for row in known],
                "refused": [row.status == "abstained" for row in absent],
            }
            shares = {
                name: bootstrap_interval(np.array(of, float), seed=SEED, resamples=_RESAMPLES)
                for name, of in flags.items()
                if of
            }
            *right, refused = (
                f"{one.mean:.2f} [{one.low:.2f}, {one.high:.2f}]" if one else ""
                for one in map(shares.get, flags)
            )
            takes = (
                _median(pairs, lambda row: row.prompt_tokens or None),
                _median(pairs, lambda row: row.quote_s),
                _median(pairs, lambda row: row.whole_s),
            )
            ended = (sum(row.leak for _, row in pairs), sum(row.loop for _, row in pairs))
            counted = (len(known), *right, len(absent), refused, *ended, *takes)
            rows.append((collection, arm, *counted))
            figures |= {f"{collection} {arm} {name}": one.mean for name, one in shares.items()}
    head = (
        "collection|prompt|questions|right, seen|right, the model's words|right, quotes alone"
        "|absent|refused|leaks|loops|prompt tokens|quote s|whole s"
    )
    return table(head.split("|"), rows), figures


def _by_collection(done: Done) -> list[tuple[str, dict[str, list[tuple[Task, Row]]]]]:
    names = dict.fromkeys(task.collection for task, _ in done)
    return [(name, _by_arm([one for one in done if one[0].collection == name])) for name in names]


def _by_arm(done: Done) -> dict[str, list[tuple[Task, Row]]]:
    found: dict[str, list[tuple[Task, Row]]] = {}
    for task, row in done:
        found.setdefault(task.arm, []).append((task, row))
    return found


def _median(pairs: Done, of: Callable[[Row], float | None]) -> str:
    values = [value for _, row in pairs if (value := of(row)) is not None]
    return f"{median(values):.4g}" if values else ""


T = TypeVar("T")
STRATEGIES = get_args(Strategy)
MODES = get_args(Mode)
COMMAND = "python -m evaluation.studies.models"
SAMPLE_QUESTIONS = ROOT / "data" / "sample_docs" / "questions.jsonl"
_ABSENT = 4
"""One question in so many is asked of a collection that does not answer it."""


def tasks_of(
    collections: Mapping[str, Collection], cases: Sequence[CaseBody], questions: int
) -> list[Task]:
    """Return every task; those of fewer questions come first, absent ones are of other sets."""
    drawn = {
        name: _drawn(collection.judged().questions, questions)
        for name, collection in collections.items()
    }
    few = max(1, questions // _ABSENT)
    asking = [one for one in cases if one.intent == "question" and not one.oos]
    known = _drawn([one for one in asking if one.expected_substrings], questions)
    absent = _drawn([one for one in cases if one.oos], few)
    parts: list[list[list[Task]]] = [
        *(
            [[_task("strategy", name, arm, at, one) for arm in STRATEGIES] for at, one in listed]
            for name, listed in ((name, list(enumerate(of))) for name, of in drawn.items())
        ),
        [[_case("mode", arm, at, one) for arm in MODES] for at, one in enumerate(known)],
        [[_case("prompt", arm, at, q) for arm in PROMPTS] for at, q in enumerate(known + absent)],
        *(
            [
                [_task("prompt", "squad", arm, at, one, absent=foreign) for arm in PROMPTS]
                for at, one in enumerate(listed)
            ]
            for listed, foreign in ((drawn["squad"], False), (drawn["cranfield"][:few], True))
        ),
    ]
    # Parts come in turn, so that an interrupted run has some of each; the arms of a question stay
    # together, because they are compared.
    return [task for turn in zip_longest(*parts, fillvalue=()) for arms in turn for task in arms]


def _drawn(listed: Sequence[T], most: int) -> list[T]:
    shuffled = list(listed)
    Random(SEED).shuffle(shuffled)
    return shuffled[:most]


def _task(
    part: Part, collection: str, arm: str, at: int, one: TestQuestion, *, absent: bool = False
) -> Task:
    expected = () if absent else one.answers
    return Task(part, collection, arm, at, one.text, "public", one.id, expected, absent)


def _case(part: Part, arm: str, at: int, one: CaseBody) -> Task:
    expected = one.expected_substrings
    return Task(part, "samples", arm, at, one.question, one.library, "", expected, one.oos)


def open_askers(
    stack: ExitStack, settings: Settings, collections: Mapping[str, Collection], cache: Path
) -> tuple[Mapping[str, Asker], ModelProfile]:
    """Index samples and collections, and return who asks each, and the model.

    Raises:
        SystemExit: No model answers.
    """
    services = stack.enter_context(build_services(settings))
    job = services.jobs.submit(SAMPLES, {}, unit="files")
    while services.jobs.get(job.id).state in {"queued", "running"}:
        time.sleep(0.1)
    models = stack.enter_context(Models(settings.providers(), settings.generation()))
    choice = models.select()
    if choice.model is None:
        raise SystemExit(
            "no model answers:"
            f" {choice.reason or 'set LLM_PROVIDER, and the address and name of a model'}"
        )
    options = settings.generation()
    answer_writer = AnswerWriter(
        models.embedded.extractive,
        PromptLibrary.load(settings.prompts_dir),
        TokenCalibrator(),
        options,
    )
    grounder = Grounder(models.embedded.reader)
    places = {"samples": Place(services.store, services.libraries.searcher)}
    for name, collection in collections.items():
        say(f"indexing {name}")
        bench = stack.enter_context(indexed(collection, cache))
        searcher = LibrarySearcher(bench.retriever(RetrievalOptions()), bench.embedder)
        places[name] = Place(bench.store, lambda _, own=searcher: own, bench.passage_of)  # type: ignore[misc]
    return {
        name: Asker(settings, place, models, answer_writer, grounder)
        for name, place in places.items()
    }, choice.profile


def ask_all(
    tasks: Sequence[Task], askers: Mapping[str, Asker], rows: KeptRows[Row], minutes: float
) -> None:
    """Ask tasks without a row until time is up or the host is gone."""
    until = time.monotonic() + 60 * minutes
    known = {row.key for row in rows.rows}
    left = [task for task in tasks if task.key not in known]
    for at, task in enumerate(left, start=1):
        if time.monotonic() > until:
            say(f"the time is up; {len(left) - at + 1} of {len(tasks)} are left for the next run")
            return
        try:
            row = askers[task.collection].ask(task)
        except ProviderError as error:
            say(f"ended early: {error.message}")
            return
        rows.add(row)
        say(f"{at} of {len(left)}: {task.key} {row.whole_s:.1f} s {row.status}")


def main() -> None:
    given = options(
        __doc__,
        **COLLECTIONS,
        questions=(50, "of each collection"),
        minutes=(600.0, "ask no longer than this"),
        parts=(get_args(Part), "of the study; others keep rows", get_args(Part)),
    )
    parts = " ".join(given.parts)
    command = f"{COMMAND} --questions {given.questions} --minutes {given.minutes:g} --parts {parts}"
    commit = checkout_sha()  # what runs now; a checkout may move on while questions are asked
    collections = {name: from_folder(given.data / name) for name in ("squad", "cranfield")}
    tasks = tasks_of(collections, load(SAMPLE_QUESTIONS), given.questions)
    with tempfile.TemporaryDirectory(prefix="documind-models-") as folder, ExitStack() as stack:
        settings = Settings(
            _env_file=None, data_dir=Path(folder), samples=False, embedding_provider="minilm"
        )
        askers, model = open_askers(stack, settings, collections, given.cache)
        kept = re.sub(r"[^A-Za-z0-9.]+", "-", f"{model.name}-{commit[:12]}")
        given.cache.mkdir(parents=True, exist_ok=True)
        rows = KeptRows(given.cache / f"models-study-{kept}.jsonl", Row)
        say(f"{model.name}: {len(tasks)} to ask, {len(rows.rows)} rows are there")
        ask_all([task for task in tasks if task.part in given.parts], askers, rows, given.minutes)
        embedder = MiniLmEmbedder().identity
        fingerprint = fingerprint8(fingerprint_of(embedder, settings.ingest()))
        used = {model.name: model.digest, embedder.model: embedder.digest}
        answering = hash_of(settings.retrieval(), settings.answer(), settings.generation())
    made = ReportProvenance(commit, answering, fingerprint, used, SEED)
    by_key = {row.key: row for row in rows.rows}
    done = [(task, by_key[task.key]) for task in tasks if task.key in by_key]
    strategy, mode, prompt = (
        [pair for pair in done if pair[0].part == part] for part in get_args(Part)
    )
    relevance = {name: collection.relevance for name, collection in collections.items()}
    tables: list[str] = []
    figures: dict[str, float] = {"finished": len(done), "of": len(tasks)}
    for title, (lines, found) in (
        ("Strategies: what is found in mode general", strategies(strategy, relevance)),
        ("Modes, with the baseline, on the questions of the samples", modes(mode)),
        ("Both prompts, in mode general", prompts(prompt)),
    ):
        tables += [f"## {title}", "", *lines, ""]
        figures |= found
    remarks = (
        f"Model {model.name} at {model.host}, {datetime.now(UTC):%Y-%m-%d}: {len(done)} of"
        f" {len(tasks)} questions of the plan.",
        "Shares and differences with 95 % bootstrap intervals; times are medians, on a machine"
        " that may do other work.",
        "Right: an expected string stands in the text. Seen: in the whole answer, quotes included."
        " Refused: of questions whose"
        " answer is absent, the samples' own and, for squad, questions of cranfield.",
    )
    write(
        "models", "Real models", remarks, [], {}, command, tables=tables, aside=figures, made=made
    )


if __name__ == "__main__":
    main()
