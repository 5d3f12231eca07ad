"""Define the questions of the scripts: probes of passages, and cases of replies.

Probes ask a running server or a service in this process.
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, TypeVar, get_args

from pydantic import ConfigDict, Field, TypeAdapter, ValidationError
from pydantic.dataclasses import dataclass as checked

from app.client import DocuMindClient, Json
from app.core.errors import InvalidInput, NotFound
from app.core.ids import regular_file
from app.core.types import Answer, AnswerStatus, Fusion, Mode, Question, Scope, Strategy
from app.evaluation.arms import Arm
from app.evaluation.cases import in_words
from app.evaluation.degraded import Degraded
from app.evaluation.metrics import RESAMPLES, grounded
from app.evaluation.report import Experiment
from app.evaluation.runner import DOCUMENTS, RankedPassages, experiment_of
from app.retrieval.request import RetrievalOptions

MOST_BYTES = 16 * 2**20
"""Of a file of probes or cases."""

T = TypeVar("T")


def listed(path: Path, name: str, rows: TypeAdapter[T]) -> T:
    """Return the rows that a JSON object in a file holds under a name.

    Raises:
        InvalidInput: The file is missing, or a row has an unknown field or value.
    """
    try:
        content = json.loads(regular_file(path, MOST_BYTES).read_text(encoding="utf-8"))
        return rows.validate_python(content[name])
    except ValidationError as exc:
        raise InvalidInput(f"{path.name!r} is not a file of {name}: {in_words(exc)}") from exc
    except (OSError, ValueError, KeyError, TypeError) as exc:
        raise InvalidInput(f"{path.name!r} is not a file of {name} ({exc!r})") from exc


GROUNDED, NDCG = "grounded", "nDCG"


@checked(frozen=True, slots=True)
class Probe:
    """A question with the strings any of which, or all, its passages should hold.

    Without strings nothing answers it, and a refusal is right.
    """

    id: str
    question: str
    library: Scope
    expected_substrings: tuple[str, ...]
    mode: Mode = "general"
    article: str = ""
    """Title of the article that answers it; empty where any passage may."""
    every: bool = False
    """All strings are wanted, each of another document."""

    def ranks(self, texts: Sequence[str]) -> list[int]:
        """Return at which ranks, from 1, the wanted strings stand first; those that do."""
        groups = [[one] for one in self.expected_substrings]
        if not self.every:
            groups = [list(self.expected_substrings)]
        firsts = (
            next((n for n, text in enumerate(texts, 1) if grounded([text], group)), None)
            for group in groups
        )
        return [rank for rank in firsts if rank is not None]

    @property
    def absent(self) -> bool:
        return not self.expected_substrings

    def grounded(self, texts: Sequence[str]) -> bool:
        """Return whether every wanted string is there, or nothing where nothing answers."""
        return not texts if self.absent else len(self.ranks(texts)) == self.wanted()

    def wanted(self) -> int:
        return len(self.expected_substrings) if self.every else 1

    def ndcg(self, texts: Sequence[str]) -> float:
        """Return the discounted gain of the wanted strings over the best there could be, [0, 1].

        References:
            Järvelin, Kekäläinen: Cumulated gain-based evaluation of IR techniques, TOIS 2002.
        """
        if self.absent:
            return float(self.grounded(texts))
        best = sum(1 / math.log2(1 + rank) for rank in range(1, self.wanted() + 1))
        return sum(1 / math.log2(1 + rank) for rank in self.ranks(texts)) / best


Ask = Callable[[Arm, Probe, int], RankedPassages]
"""Returns what an arm finds for a probe: document ids and passage texts, best first."""


TitlesLike = Callable[[Probe], Iterable[str]]
"""Returns titles in a probe's library that contain the title of its article."""


_PROBES = TypeAdapter(tuple[Probe, ...])


def load_probes(path: Path) -> tuple[Probe, ...]:
    """Read a file of probes: a JSON object with `probes`; see evaluation/retrieval_ablation.json.

    Raises:
        InvalidInput: The file is missing, or a probe has an unknown field or value.
    """
    return listed(path, "probes", _PROBES)


def with_articles(
    probes: Sequence[Probe], titles_like: TitlesLike
) -> tuple[tuple[Probe, ...], tuple[str, ...]]:
    """Return the probes whose article is indexed, and titles of missing articles.

    Probes that name no article are returned too.

    Raises:
        NotFound: No article that a probe names is indexed.
    """
    missing = {
        probe.id: probe.article
        for probe in probes
        if probe.article
        and not any(title.casefold() == probe.article.casefold() for title in titles_like(probe))
    }
    if probes and len(missing) == len(probes):
        raise NotFound(
            f"none of the {len(set(missing.values()))} articles that the questions are about is indexed;"
            " index a dump of the encyclopedia: documind bulk index FILE --library public"
            " (docs/scale.md says what it takes)"
        )
    asked = tuple(probe for probe in probes if probe.id not in missing)
    return asked, tuple(dict.fromkeys(missing.values()))


def strategy_arms() -> tuple[Arm, ...]:
    """Return what a request can choose: the strategies, and baseline with each fusion."""
    default = RetrievalOptions()
    return (
        *(Arm(strategy, default, strategy=strategy) for strategy in get_args(Strategy)),
        *(
            Arm(f"fusion {fusion}", RetrievalOptions(fusion=fusion))
            for fusion in get_args(Fusion)
            if fusion != default.fusion
        ),
    )


def run_probes(
    name: str,
    probes: Sequence[Probe],
    arms: Sequence[Arm],
    ask: Ask,
    *,
    seed: int,
    top_k: int = 5,
    documents: int = 0,
    resamples: int = RESAMPLES,
) -> Experiment:
    """Ask every probe under every arm and compare the arms with the first one.

    Args:
        name: Of the set.
        probes: At least one.
        arms: The first is the baseline.
        ask: Who answers.
        seed: Of all resampling.
        top_k: Passages asked for.
        documents: In the libraries, for the report.
        resamples: Of intervals and tests.

    Raises:
        InvalidInput: There is no probe.
    """
    if not probes:
        raise InvalidInput("there is no probe to ask")
    found = {arm.name: {probe.id: ask(arm, probe, top_k) for probe in probes} for arm in arms}
    values = {
        arm: {
            NDCG: {probe.id: probe.ndcg(own[probe.id].texts) for probe in probes},
            GROUNDED: {probe.id: float(probe.grounded(own[probe.id].texts)) for probe in probes},
            DOCUMENTS: {probe.id: float(len(set(own[probe.id].passages))) for probe in probes},
        }
        for arm, own in found.items()
    }
    return experiment_of(
        name,
        {probe.id: probe.question for probe in probes},
        arms,
        found,
        values,
        measure=NDCG,
        baseline=arms[0].name,
        documents=documents,
        seed=seed,
        resamples=resamples,
    )


@dataclass(frozen=True, slots=True)
class ServerAsk:
    """Asks a running server over HTTP; passage texts are fetched later, untimed."""

    client: DocuMindClient
    degraded: Degraded = field(default_factory=Degraded)

    def __call__(self, arm: Arm, probe: Probe, top_k: int) -> RankedPassages:
        start = time.perf_counter()
        reply = self.client.query(
            probe.question,
            library=probe.library,
            query_mode=probe.mode,
            retrieval_strategy=arm.strategy,
            fusion=arm.fusion,
            retrieve_only=not probe.absent,
            top_k=top_k,
            trace="summary",
        )
        ms = (time.perf_counter() - start) * 1000
        notices = ((str(one["code"]), str(one["message"])) for one in reply["notices"])
        self.degraded.note(arm.name, notices)
        sources = reply["sources"]
        texts = tuple(self._text(source) for source in sources)
        stages = {str(stage["name"]): float(stage["ms"]) for stage in reply["trace"]["stages"]}
        return RankedPassages(tuple(str(source["doc_id"]) for source in sources), texts, ms, stages)

    def _text(self, source: Json) -> str:
        span = self.client.text(
            source["library"], source["doc_id"], source["start"], source["end"], source["revision"]
        )
        return str(span["text"])


@dataclass(frozen=True, slots=True)
class ServiceAsk:
    answer: Callable[[Question], Answer]
    degraded: Degraded = field(default_factory=Degraded)

    def __call__(self, arm: Arm, probe: Probe, top_k: int) -> RankedPassages:
        question = Question(
            probe.question,
            probe.library,
            mode=probe.mode,
            strategy=arm.strategy,
            fusion=arm.fusion,
            retrieve_only=not probe.absent,
            top_k=top_k,
        )
        start = time.perf_counter()
        answer = self.answer(question)
        ms = (time.perf_counter() - start) * 1000
        self.degraded.note(arm.name, ((one.code, one.message) for one in answer.notices))
        hits = [evidence.hit.passage for evidence in answer.evidence]
        stages = {stage.name: stage.ms for stage in answer.trace.stages}
        return RankedPassages(
            tuple(p.document.doc_id for p in hits), tuple(p.chunk.text for p in hits), ms, stages
        )


@checked(frozen=True, slots=True, config=ConfigDict(extra="forbid"))
class QueryCase:
    """One question and what its reply must be."""

    id: str
    question: str
    library: Scope
    statuses: Annotated[tuple[AnswerStatus, ...], Field(min_length=1)]
    """The reply has one of them."""
    mode: Mode = "general"
    strategy: Strategy = "baseline"
    retrieve_only: bool = False
    expected_docs: tuple[str, ...] = ()
    """One of these file names is among the sources' documents."""
    expected_substrings: tuple[str, ...] = ()
    """One of them stands in the answer."""
    needs_corpus: bool = True
    """False for cases that hold over an empty library too (greetings)."""


_CASES = TypeAdapter(tuple[QueryCase, ...])


def load_cases(path: Path) -> tuple[QueryCase, ...]:
    """Read a file of cases: a JSON object with `cases`.

    Raises:
        InvalidInput: The file is missing, or a case has an unknown field or value.
    """
    return listed(path, "cases", _CASES)


def failures(case: QueryCase, status: str, answer: str, titles: set[str]) -> list[str]:
    """Return what does not hold of a reply, whose sources have these titles in lower case."""
    found, names = [], case.expected_docs
    if status not in case.statuses:
        found.append(f"status {status!r}, expected one of {', '.join(case.statuses)}")
    if names and not any(name.lower() in titles for name in names):
        found.append(f"none of {', '.join(names)} among the sources {sorted(titles)}")
    parts = case.expected_substrings
    if parts and not any(part.casefold() in answer.casefold() for part in parts):
        found.append(f"none of {', '.join(parts)} in the answer {answer[:120]!r}")
    return found
