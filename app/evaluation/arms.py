"""Define what may be asked of an evaluation, and the arms that it compares."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Annotated, Any, Literal

from pydantic import Field
from pydantic.dataclasses import dataclass as checked

from app.core.errors import InvalidInput
from app.core.types import Fusion, LibraryName, Rerank, Strategy
from app.evaluation.cases import BODY, CaseBody
from app.evaluation.collections import Parity
from app.ingest.options import Chunker, IngestOptions
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
        return self.options.fusion


_PLAIN = RetrievalOptions(
    keyword_fusion_weight=0.0,
    phrase_fusion_weight=0.0,
    keyword_rerank_weight=0.0,
    public_keyword_rerank_weight=0.0,
    rerank="none",
)


def plain(name: str, fusion: Fusion, note: str = "") -> Arm:
    """Return an arm that is nothing but one fusion: no keywords, no reranking."""
    return Arm(name, replace(_PLAIN, fusion=fusion), note=note)


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


Kind = Literal["retrieval", "answers", "ablation"]
Half = Literal["all"] | Parity

MOST_ARMS = 64
"""Arms of one run: Holm's correction leaves little to find among more."""
CONFIGURED = Arm("configured", RetrievalOptions(), note="the server's own settings")

Weight = Annotated[float, Field(ge=0, le=1)]
Few = Field(default=(), max_length=16)
_OPTION_OF = {
    "fusion": "fusion",
    "dense_weight": "dense_weight",
    "keyword_weight": "keyword_fusion_weight",
    "phrase_weight": "phrase_fusion_weight",
    "rerank": "rerank",
}
"""The option of retrieval that an axis sets."""


@checked(frozen=True, config=BODY)
class AxesBody:
    """Values to try, in all combinations; an omitted axis keeps the settings in use."""

    fusion: tuple[Fusion, ...] = Few
    dense_weight: tuple[Weight, ...] = Few
    keyword_weight: tuple[Weight, ...] = Few
    phrase_weight: tuple[Weight, ...] = Few
    rerank: tuple[Rerank, ...] = Few
    top_k: tuple[Annotated[int, Field(ge=1, le=50)], ...] = Few
    strategy: tuple[Strategy, ...] = Few
    chunk_size: tuple[Annotated[int, Field(ge=100, le=10_000)], ...] = Few
    chunker: tuple[Chunker, ...] = Few

    def arms(self, base: RetrievalOptions) -> tuple[Arm, ...]:
        """Return an arm per combination, named by its settings, after `configured`.

        Raises:
            InvalidInput: There are too many.
        """
        named = {name: values for name, values in asdict(self).items() if values}
        made = 1 + math.prod(len(values) for values in named.values())
        if made > MOST_ARMS:
            raise InvalidInput(
                f"these values make {made} arms, and at most {MOST_ARMS} are compared at once;"
                " name fewer"
            )
        arms = [replace(CONFIGURED, options=base)]
        for values in itertools.product(*named.values()):
            chosen: dict[str, Any] = dict(zip(named, values, strict=True))
            set_ = {_OPTION_OF[name]: chosen[name] for name in chosen if name in _OPTION_OF}
            arms.append(
                Arm(
                    " ".join(f"{name}={value}" for name, value in chosen.items()),
                    replace(base, **set_),
                    strategy=chosen.get("strategy", "baseline"),
                    top_k=chosen.get("top_k"),
                    chunking=Chunking(chosen.get("chunk_size"), chosen.get("chunker")),
                )
            )
        return tuple(arms)


@checked(frozen=True, config=BODY)
class EvaluationBody:
    """The comparison to run.

    Without a collection, data set or cases, questions are made from the library's documents.
    """

    kind: Kind = Field(
        default="ablation",
        description="retrieval: the settings in use and plain searches; ablation: each step turned"
        " off, or the axes;"
        " answers: an answer set, by strategy",
    )
    library: LibraryName | None = Field(
        default=None,
        description="null: where a question looks by default, public where that is both",
    )
    collection: (
        Annotated[str, Field(min_length=1, max_length=4096, pattern=r"^/[^\x00-\x1f]*$")] | None
    ) = Field(
        default=None,
        description="absolute path of a folder in BEIR layout on the server, JSON lines or"
        " Parquet; indexed apart from libraries",
    )
    dataset: (
        Annotated[str, Field(min_length=3, max_length=200, pattern=r"^[\w.-]+/[\w.-]+$")] | None
    ) = Field(
        default=None,
        description="a repository in BEIR layout on the Hugging Face hub, fetched by the server",
    )
    cases: tuple[CaseBody, ...] = Field(default=(), max_length=5000, description="an answer set")
    axes: AxesBody = AxesBody()
    questions: int = Field(
        default=100, ge=1, le=10_000, description="at most this many, drawn by the seed"
    )
    half: Half = Field(default="all", description="only questions of even or odd lines")
    top_k: int = Field(default=10, ge=1, le=50)
    seed: int = Field(default=7, ge=0, le=2**31 - 1)
    judge: bool = Field(
        default=False,
        strict=True,
        description="answers: have the answering model judge whether answers follow from their"
        " sources",
    )

    @property
    def indexed_apart(self) -> bool:
        """Return whether a collection or data set is asked instead of a library."""
        return self.collection is not None or self.dataset is not None

    def check(self) -> None:
        """Look for what cannot be done together.

        Raises:
            InvalidInput: The message says what and what to do.
        """
        if self.collection and self.dataset:
            raise InvalidInput("name a collection or a dataset, not both")
        if self.kind == "answers" and not self.cases:
            raise InvalidInput("an evaluation of answers needs cases: the lines of an answer set")
        if self.kind == "answers" and self.indexed_apart:
            raise InvalidInput(
                "answers are evaluated over the libraries; a collection has no answer set"
            )
        if self.kind == "answers" and replace(self.axes, strategy=()) != AxesBody():
            raise InvalidInput("answers are compared by strategy; other axes belong to an ablation")
        if self.kind == "retrieval" and self.axes != AxesBody():
            raise InvalidInput(
                "a retrieval evaluation compares the settings in use with plain searches; axes"
                " belong to an ablation"
            )
        if self.dataset is not None and ".." in self.dataset:
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
        if self.axes != AxesBody():
            return self.axes.arms(base)
        if self.kind == "retrieval":
            return (replace(CONFIGURED, options=base), *plain_arms())
        return standard_arms(base)

    def baseline(self, arms: Sequence[Arm]) -> str:
        """Return the name of RRF, else of the first arm: the settings in use."""
        names = [arm.name for arm in arms]
        return "rrf" if "rrf" in names else names[0]
