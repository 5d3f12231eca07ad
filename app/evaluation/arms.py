"""Define what an evaluation compares: named retrieval settings, alone or a grid."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Literal, cast, get_args

from app.core.errors import InvalidInput
from app.core.types import Fusion, Library, Rerank, Strategy
from app.evaluation.cases import AnswerCase, case_of
from app.evaluation.collections import Parity
from app.ingest.names import Chunker, IngestOptions
from app.retrieval.request import RetrievalOptions


@dataclass(frozen=True, slots=True)
class Chunking:
    """Chunking options of an arm; None takes the server's setting."""

    size: int | None = None
    """Ceiling of a chunk, in characters."""
    chunker: Chunker | None = None

    def options(self, base: IngestOptions) -> IngestOptions:
        """Return ingest options with this cutting; the overlap's share stays."""
        size = self.size or base.chunk_size
        overlap = (
            base.chunk_overlap
            if size == base.chunk_size
            else base.chunk_overlap * size // base.chunk_size
        )
        return replace(
            base, chunk_size=size, chunk_overlap=overlap, chunker=self.chunker or base.chunker
        )


@dataclass(frozen=True, slots=True)
class Arm:
    """One way to search; everything not named by it is the default."""

    name: str
    options: RetrievalOptions
    strategy: Strategy = "baseline"
    note: str = ""
    """What it changes, for the report."""
    top_k: int | None = None
    """Passages asked for; None asks for as many as the run does."""
    chunking: Chunking = Chunking()

    @property
    def fusion(self) -> Fusion:
        """The arm's fusion."""
        return self.options.fusion


def plain(name: str, fusion: Fusion, note: str = "") -> Arm:
    """Return an arm that is nothing but one fusion: no keywords, no reranking."""
    options = RetrievalOptions(
        fusion=fusion,
        keyword_fusion_weight=0.0,
        phrase_fusion_weight=0.0,
        keyword_rerank_weight=0.0,
        public_keyword_rerank_weight=0.0,
        rerank="none",
    )
    return Arm(name, options, note=note)


def plain_arms() -> tuple[Arm, ...]:
    """Return the baselines: both legs, and RRF and min-max fusion of their lists."""
    return (
        plain("dense", "dense", "nearest neighbours alone"),
        plain("bm25", "lexical", "BM25 alone"),
        plain("rrf", "rrf", "reciprocal rank fusion, k = 60, of the same two lists"),
        plain("min-max", "relative_score", "min-max fusion, equal shares, completed signals"),
    )


def standard_arms(default: RetrievalOptions | None = None) -> tuple[Arm, ...]:
    """Return the arms of every report: legs, RRF, default, and steps on or off."""
    default = default or RetrievalOptions()
    return (
        *plain_arms(),
        Arm("default", default, note="min-max fusion with keyword overlap and word pairs"),
        Arm(
            "without pairs",
            replace(default, phrase_fusion_weight=0.0),
            note="default without word pairs",
        ),
        Arm(
            "without overlap",
            replace(default, keyword_fusion_weight=0.0),
            note="default without keyword overlap",
        ),
        Arm(
            "mmr",
            replace(default, rerank="mmr"),
            note="default, selected by maximal marginal relevance",
        ),
    )


def grid(base: RetrievalOptions, axes: Mapping[str, Sequence[object]]) -> Iterator[Arm]:
    """Yield an arm per combination, named like `dense_weight=0.3 rrf_k=60`.

    Args:
        base: Options that every arm shares.
        axes: Values by field of RetrievalOptions.

    Raises:
        TypeError: An axis is no field of RetrievalOptions.
    """
    for values in itertools.product(*axes.values()):
        chosen = dict(zip(axes, values, strict=True))
        yield Arm(
            " ".join(f"{name}={value}" for name, value in chosen.items()),
            replace(base, **chosen),  # type: ignore[arg-type]
        )


# Define the request of an evaluation as JSON values, and its arms.

Kind = Literal["retrieval", "answers", "ablation"]
Half = Literal["all"] | Parity

MOST_ARMS = 64
"""Arms of one run: Holm's correction leaves little to find among more."""
CONFIGURED = "configured"
"""The arm with the server's own settings."""


@dataclass(frozen=True, slots=True)
class Axes:
    """Values to try in all combinations; an empty axis keeps the server's value."""

    fusion: tuple[Fusion, ...] = ()
    dense_weight: tuple[float, ...] = ()
    """Share of the dense leg in min-max fusion, [0, 1]."""
    keyword_weight: tuple[float, ...] = ()
    phrase_weight: tuple[float, ...] = ()
    rerank: tuple[Rerank, ...] = ()
    top_k: tuple[int, ...] = ()
    strategy: tuple[Strategy, ...] = ()
    chunk_size: tuple[int, ...] = ()
    """Characters."""
    chunker: tuple[Chunker, ...] = ()

    @property
    def empty(self) -> bool:
        """Return whether nothing varies."""
        return not any(asdict(self).values())

    @property
    def cuts_anew(self) -> bool:
        """Return whether documents must be indexed again."""
        return bool(self.chunk_size or self.chunker)

    def arms(self, base: RetrievalOptions) -> tuple[Arm, ...]:
        """Return an arm per combination, named by its settings, after `configured`.

        Raises:
            InvalidInput: There are too many, or an option is out of its range.
        """
        named = [(name, values) for name, values in asdict(self).items() if values]
        made = 1 + math.prod(len(values) for _, values in named)
        if made > MOST_ARMS:
            raise InvalidInput(
                f"these values make {made} arms, and at most {MOST_ARMS} are compared at once;"
                " name fewer"
            )
        arms = [Arm(CONFIGURED, base, note="the server's own settings")]
        for combination in itertools.product(*(values for _, values in named)):
            chosen = dict(zip((name for name, _ in named), combination, strict=True))
            arm = Arm(" ".join(f"{name}={value}" for name, value in chosen.items()), base)
            for name, value in chosen.items():
                arm = _SETTERS[name](arm, value)
            arms.append(arm)
        return tuple(arms)


def _option(name: str) -> Callable[[Arm, object], Arm]:
    def set_option(arm: Arm, value: object) -> Arm:
        return replace(arm, options=replace(arm.options, **{name: value}))  # type: ignore[arg-type]  # the axis has the field's type

    return set_option


_SETTERS: Mapping[str, Callable[[Arm, object], Arm]] = {
    "fusion": _option("fusion"),
    "dense_weight": _option("dense_weight"),
    "keyword_weight": _option("keyword_fusion_weight"),
    "phrase_weight": _option("phrase_fusion_weight"),
    "rerank": _option("rerank"),
    "top_k": lambda arm, value: replace(arm, top_k=cast("int", value)),
    "strategy": lambda arm, value: replace(arm, strategy=cast("Strategy", value)),
    "chunk_size": lambda arm, value: replace(
        arm, chunking=replace(arm.chunking, size=cast("int", value))
    ),
    "chunker": lambda arm, value: replace(
        arm, chunking=replace(arm.chunking, chunker=cast("Chunker", value))
    ),
}


@dataclass(frozen=True, slots=True)
class EvaluationRequest:
    """One run: what is asked, over which passages, under which arms."""

    kind: Kind = "ablation"
    library: Library = Library.PUBLIC
    """Whose documents are asked; not looked at with a collection or a data set."""
    collection: str | None = None
    """A folder in BEIR layout, as JSON lines or Parquet, on the machine of the server; indexed
    apart from the libraries."""
    dataset: str | None = None
    """A repository in BEIR layout on the Hugging Face hub; fetched and indexed apart from the
    libraries."""
    cases: tuple[AnswerCase, ...] = ()
    """An answer set: what `answers` asks, and whose questions the others may take."""
    axes: Axes = Axes()
    questions: int = 100
    """At most as many, drawn by the seed."""
    half: Half = "all"
    """Only questions of even or odd lines: choose on the one half, report on the other."""
    top_k: int = 10
    seed: int = 7
    judge: bool = False
    """Have a model judge whether answers follow from their sources."""

    def to_json(self) -> dict[str, object]:
        return asdict(self)

    @classmethod
    def from_json(cls, row: Mapping[str, object]) -> EvaluationRequest:
        """Return the request of a job; its values were checked when it was made."""
        values = {name: value for name, value in row.items() if name != "retry"}
        axes = cast("Mapping[str, Sequence[object]]", values.pop("axes", {}))
        cases = cast("Sequence[Mapping[str, object]]", values.pop("cases", ()))
        library = Library(str(values.pop("library", Library.PUBLIC.value)))
        return cls(
            library=library,
            axes=Axes(**{name: tuple(chosen) for name, chosen in axes.items()}),  # type: ignore[arg-type]  # JSON lists of our own
            cases=tuple(case_of(case, "a case of the job") for case in cases),
            **values,  # type: ignore[arg-type]  # as `to_json` wrote them
        )

    def check(self) -> None:
        """Look for what cannot be done together.

        Raises:
            InvalidInput: The message says what and what to do.
        """
        if self.collection and self.dataset:
            raise InvalidInput("name a collection or a dataset, not both")
        if self.kind == "answers" and not self.cases:
            raise InvalidInput("an evaluation of answers needs cases: the lines of an answer set")
        if self.kind == "answers" and (self.collection or self.dataset):
            raise InvalidInput(
                "answers are evaluated over the libraries; a collection has no answer set"
            )
        if self.kind == "answers" and replace(self.axes, strategy=()) != Axes():
            raise InvalidInput("answers are compared by strategy; other axes belong to an ablation")
        if self.kind == "retrieval" and not self.axes.empty:
            raise InvalidInput(
                "a retrieval evaluation compares the settings in use with plain searches; axes"
                " belong to an ablation"
            )
        if self.dataset is not None and (self.dataset.count("/") != 1 or ".." in self.dataset):
            raise InvalidInput(
                f"dataset {self.dataset!r} is no repository of the hub; expected owner/name, such"
                " as BeIR/scifact"
            )
        self.arms(RetrievalOptions())

    def arms(self, base: RetrievalOptions) -> tuple[Arm, ...]:
        """Return what is compared, given the server's own options; see `baseline`."""
        if self.kind == "answers":
            strategies = self.axes.strategy or ("baseline",)
            return tuple(Arm(strategy, base, strategy) for strategy in strategies)
        if not self.axes.empty:
            return self.axes.arms(base)
        if self.kind == "retrieval":
            return (Arm(CONFIGURED, base, note="the server's own settings"), *plain_arms())
        return standard_arms(base)

    def baseline(self, arms: Sequence[Arm]) -> str:
        """Return the baseline's name.

        The settings in use for a grid, else RRF, else the first strategy.
        """
        names = [arm.name for arm in arms]
        return "rrf" if "rrf" in names else names[0]


def values_of(axis: str) -> tuple[str, ...] | None:
    """Return what an axis may hold, None where it holds numbers.

    Raises:
        InvalidInput: There is no such axis.
    """
    closed: Mapping[str, tuple[str, ...] | None] = {
        "fusion": get_args(Fusion),
        "rerank": get_args(Rerank),
        "strategy": get_args(Strategy),
        "chunker": get_args(Chunker),
        **dict.fromkeys(
            ("dense_weight", "keyword_weight", "phrase_weight", "top_k", "chunk_size"), None
        ),
    }
    if axis not in closed:
        raise InvalidInput(f"axis {axis!r} is none of {', '.join(sorted(closed))}")
    return closed[axis]
