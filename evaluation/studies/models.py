"""Real models asked as the product asks them: strategies, modes and both prompts.

    LLM_PROVIDER=openai_compatible OPENAI_BASE_URL=... OPENAI_MODEL=... python -m
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
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from random import Random
from typing import TypeVar, get_args

from app.answer.search import LibrarySearcher
from app.answer.writing import AnswerWriter
from app.bootstrap import build_services
from app.bootstrap.libraries import fingerprint_of
from app.bootstrap.models import Models
from app.core.errors import ProviderError
from app.core.ids import checkout_sha, fingerprint8
from app.core.types import Library, Mode, ModelProfile, Strategy
from app.evaluation.cases import CaseBody, load
from app.evaluation.collections import Collection, TestQuestion, from_folder
from app.evaluation.report import ReportProvenance
from app.generation.context import TokenCalibrator
from app.generation.grounding import Grounder
from app.generation.prompts import PromptLibrary
from app.jobs.kinds import SAMPLES
from app.models.minilm import MiniLmEmbedder
from app.retrieval.request import RetrievalOptions
from app.settings import Settings
from evaluation.lib.models.asking import PROMPTS, Asker, Part, Place, Rows, Task, in_turn
from evaluation.lib.models.tables import modes, prompts, strategies
from evaluation.lib.paths import ROOT
from evaluation.lib.workbench import SEED, Figures, arguments, hash_of, indexed, say, write_figures

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
    """Return every task; more questions begin with those of fewer.

    Absent questions are the samples' own and, for squad, those of cranfield.
    """
    drawn = {
        name: _drawn(collection.judged().questions, questions)
        for name, collection in collections.items()
    }
    found: list[list[list[Task]]] = []
    for name, listed in drawn.items():
        found.append(
            [
                [_task("strategy", name, arm, at, one) for arm in STRATEGIES]
                for at, one in enumerate(listed)
            ]
        )
    known = _drawn(
        [
            one
            for one in cases
            if one.expected_substrings and one.intent == "question" and not one.oos
        ],
        questions,
    )
    found.append([[_case("mode", arm, at, one) for arm in MODES] for at, one in enumerate(known)])
    absent = _drawn([one for one in cases if one.oos], max(1, questions // _ABSENT))
    found.append(
        [
            [_case("prompt", arm, at, one) for arm in PROMPTS]
            for at, one in enumerate([*known, *absent])
        ]
    )
    foreign = drawn["cranfield"][: max(1, questions // _ABSENT)]
    answered = [
        [_task("prompt", "squad", arm, at, one) for arm in PROMPTS]
        for at, one in enumerate(drawn["squad"])
    ]
    strange = [
        [_task("prompt", "squad", arm, at, one, absent=True) for arm in PROMPTS]
        for at, one in enumerate(foreign)
    ]
    found += [answered, strange]
    return in_turn(found)


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
    return Task(
        part, "samples", arm, at, one.question, one.library, "", one.expected_substrings, one.oos
    )


def _always(searcher: LibrarySearcher, _: Library) -> LibrarySearcher:
    return searcher


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
    grounder = Grounder(options)
    places = {"samples": Place(services.store, services.libraries.searcher)}
    for name, collection in collections.items():
        say(f"indexing {name}")
        bench = stack.enter_context(indexed({Library.PUBLIC: [collection]}, cache))
        searcher = LibrarySearcher(bench.retriever(RetrievalOptions()), bench.embedder)
        places[name] = Place(bench.store, partial(_always, searcher), bench.passage_of)
    return {
        name: Asker(settings, place, models, answer_writer, grounder)
        for name, place in places.items()
    }, choice.profile


def ask_all(tasks: Sequence[Task], askers: Mapping[str, Asker], rows: Rows, minutes: float) -> None:
    """Ask tasks without a row until time is up or the host is gone."""
    until = time.monotonic() + 60 * minutes
    left = [task for task in tasks if task.key not in rows.by_key]
    with rows.keeping() as keep:
        for at, task in enumerate(left, start=1):
            if time.monotonic() > until:
                say(
                    f"the time is up; {len(left) - at + 1} of {len(tasks)} are left for the next"
                    " run"
                )
                return
            try:
                row = askers[task.collection].ask(task)
            except ProviderError as error:
                say(f"ended early: {error.message}")
                return
            keep(row)
            say(f"{at} of {len(left)}: {task.key} {row.whole_s:.1f} s {row.status}")


def report(
    tasks: Sequence[Task],
    rows: Rows,
    collections: Mapping[str, Collection],
    model: ModelProfile,
    made: ReportProvenance,
    command: str,
) -> Figures:
    """Return the report of the rows that are there; parts without a row are left out."""
    done = [(task, rows.by_key[task.key]) for task in tasks if task.key in rows.by_key]
    relevance = {name: collection.relevance for name, collection in collections.items()}
    strategy, mode, prompt = (
        [pair for pair in done if pair[0].part == part] for part in get_args(Part)
    )
    told = (
        (
            "Strategies: what is found in mode general",
            strategies(strategy, relevance) if strategy else None,
        ),
        (
            "Modes, with the baseline, on the questions of the samples",
            modes(mode) if mode else None,
        ),
        ("Both prompts, in mode general", prompts(prompt) if prompt else None),
    )
    tables: list[str] = []
    figures: dict[str, float] = {"finished": len(done), "of": len(tasks)}
    for title, part in told:
        if part is not None:
            tables += [f"## {title}", "", *part[0], ""]
            figures |= part[1]
    remarks = (
        f"Model {model.name} at {model.host}, {datetime.now(UTC):%Y-%m-%d}: {len(done)} of"
        f" {len(tasks)} questions of the plan.",
        "Shares and differences with 95 % bootstrap intervals; times are medians, on a machine"
        " that may do other work.",
        "Right: an expected string stands in the text. Seen: in the whole answer, quotes included."
        " Refused: of questions whose"
        " answer is absent, the samples' own and, for squad, questions of cranfield.",
        f"Command: `{command}`.",
    )
    return Figures("Real models", made, figures, remarks=remarks, tables=tables)


def main() -> None:
    """Index, ask, write."""
    parser = arguments("Ask a real model as the product does.")
    parser.add_argument("--questions", type=int, default=50, help="of each collection")
    parser.add_argument("--minutes", type=float, default=600.0, help="ask no longer than this")
    parser.add_argument(
        "--parts",
        nargs="+",
        choices=get_args(Part),
        default=get_args(Part),
        help="of the study; others keep rows",
    )
    options = parser.parse_args()
    parts = " ".join(options.parts)
    command = (
        f"{COMMAND} --questions {options.questions} --minutes {options.minutes:g} --parts {parts}"
    )
    commit = checkout_sha()  # what runs now; a checkout may move on while questions are asked
    collections = {name: from_folder(options.data / name) for name in ("squad", "cranfield")}
    tasks = tasks_of(collections, load(SAMPLE_QUESTIONS), options.questions)
    with tempfile.TemporaryDirectory(prefix="documind-models-") as folder, ExitStack() as stack:
        settings = Settings(
            _env_file=None, data_dir=Path(folder), samples=False, embedding_provider="minilm"
        )
        askers, model = open_askers(stack, settings, collections, options.cache)
        kept = re.sub(r"[^A-Za-z0-9.]+", "-", f"{model.name}-{commit[:12]}")
        rows = Rows(options.cache / f"models-study-{kept}.jsonl")
        say(f"{model.name}: {len(tasks)} to ask, {len(rows.by_key)} rows are there")
        ask_all(
            [task for task in tasks if task.part in options.parts], askers, rows, options.minutes
        )
        embedder = MiniLmEmbedder(options.cache / "graph").identity
        used = {model.name: model.digest, embedder.model: embedder.digest}
        fingerprint = fingerprint8(fingerprint_of(embedder, settings.ingest()))
        made = ReportProvenance(
            commit,
            hash_of(settings.retrieval(), settings.answer(), settings.generation()),
            fingerprint,
            used,
            SEED,
        )
    write_figures(report(tasks, rows, collections, model, made, command), "models")


if __name__ == "__main__":
    main()
