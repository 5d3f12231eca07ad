"""Evaluations: what may be asked of one, and its report."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from app.api.schemas.base import Flag, Reply, Request
from app.core.types import Fusion, Library, LibraryName, Rerank, Scope, Strategy
from app.evaluation.arms import Axes, EvaluationRequest, Half, Kind
from app.evaluation.cases import AnswerCase
from app.evaluation.metrics import Interval
from app.ingest.names import Chunker

Words = Annotated[str, Field(min_length=1, max_length=4000)]
Weight = Annotated[float, Field(ge=0, le=1)]
Few = Field(default=(), max_length=16)


class CaseBody(Request):
    """One line of an answer set."""

    question: Words
    library: Scope
    intent: Literal["question", "chitchat"] = "question"
    expected_substrings: tuple[Words, ...] = Field(
        (), max_length=50, description="the answer is right if it contains any of them"
    )
    keywords: tuple[Words, ...] = Field((), max_length=50)
    expected_docs: tuple[Words, ...] = Field(
        (), max_length=50, description="doc_ids, file names or source keys"
    )
    oos: Flag = Field(False, description="out of scope: the right answer is a refusal")

    def case(self) -> AnswerCase:
        return AnswerCase(
            self.question,
            self.library,
            self.intent,
            self.expected_substrings,
            self.keywords,
            self.expected_docs,
            self.oos,
        )


class AxesBody(Request):
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


class EvaluationBody(Request):
    """The comparison to run.

    Without a collection, data set or cases, questions are made from the library's documents.
    """

    kind: Kind = Field(
        "ablation",
        description="retrieval: the settings in use and plain searches; ablation: each step turned"
        " off, or the axes;"
        " answers: an answer set, by strategy",
    )
    library: LibraryName | None = Field(
        None, description="null: where a question looks by default, public where that is both"
    )
    collection: (
        Annotated[str, Field(min_length=1, max_length=4096, pattern=r"^/[^\x00-\x1f]*$")] | None
    ) = Field(
        None,
        description="absolute path of a folder in BEIR layout on the server, JSON lines or"
        " Parquet; indexed apart from libraries",
    )
    dataset: (
        Annotated[str, Field(min_length=3, max_length=200, pattern=r"^[\w.-]+/[\w.-]+$")] | None
    ) = Field(
        None,
        description="a repository in BEIR layout on the Hugging Face hub, fetched by the server",
    )
    cases: tuple[CaseBody, ...] = Field((), max_length=5000, description="an answer set")
    axes: AxesBody = AxesBody()
    questions: int = Field(100, ge=1, le=10_000, description="at most this many, drawn by the seed")
    half: Half = Field("all", description="only questions of even or odd lines")
    top_k: int = Field(10, ge=1, le=50)
    seed: int = Field(7, ge=0, le=2**31 - 1)
    judge: Flag = Field(
        False,
        description="answers: have the answering model judge whether answers follow from their"
        " sources",
    )

    def request(self, library: Library) -> EvaluationRequest:
        return EvaluationRequest(
            self.kind,
            library,
            self.collection,
            self.dataset,
            tuple(case.case() for case in self.cases),
            Axes(**self.axes.model_dump()),
            self.questions,
            self.half,
            self.top_k,
            self.seed,
            self.judge,
        )


class EvaluationSummary(Reply):
    """A finished report in the list."""

    id: str = Field(description="id id of the job that made it")
    title: str
    created_at: str


class EvaluationList(Reply):
    """Finished reports, newest first."""

    evaluations: list[EvaluationSummary]


class ReportArm(Reply):
    """One arm over one set of questions."""

    name: str
    settings: dict[str, object]
    measures: dict[str, Interval] = Field(description="by measure")
    grounded_rate: float | None
    overlap_with_baseline: float
    per_question: dict[str, float] = Field(description="the experiment's measure by question id")


class ReportComparison(Reply):
    """One arm against the baseline, question by question."""

    arm: str
    baseline: str
    n: int
    difference: Interval
    p: float
    p_holm: float
    verdict: str


class ReportExperiment(Reply):
    """All arms over one set of questions."""

    collection: str
    questions: int
    passages: int
    baseline: str
    measure: str
    arms: list[ReportArm]
    comparisons: list[ReportComparison]
    question_texts: dict[str, str] = Field(description="by question id")
    relevant: dict[str, list[str]] = Field(
        description="judged passages by question id; doc_ids for your own documents"
    )
    found: dict[str, dict[str, list[str]]] = Field(
        description="the first passages by arm and question id, best first, as keys of `previews`"
    )
    previews: dict[str, str] = Field(description="the beginning of each passage")


class ArmTimings(Reply):
    """Duration of an arm's searches, in milliseconds."""

    p50_ms: float
    p95_ms: float
    stages_p50_ms: dict[str, float]


class ReportProvenance(Reply):
    """The inputs of a report."""

    git_sha: str
    settings_hash: str
    fingerprint: str
    models: dict[str, str]
    seed: int


class EvaluationReport(Reply):
    """A finished report."""

    title: str
    provenance: ReportProvenance
    remarks: list[str]
    figures: dict[str, float]
    experiments: list[ReportExperiment]
    timings: dict[str, dict[str, ArmTimings]] = Field(description="by collection and arm")
