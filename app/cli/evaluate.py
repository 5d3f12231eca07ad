"""`documind evaluate`: measure searches and answers, and compare settings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, fields
from pathlib import Path
from typing import Annotated, get_args

import typer
from pydantic import ValidationError

from app.cli.connection import connect, run_job
from app.cli.output import JsonOption, emit, err, group, out, say, table
from app.client import DocuMindClient, Json
from app.core.errors import InvalidInput
from app.core.text import either
from app.core.types import Rerank, Strategy
from app.evaluation.arms import AxesBody
from app.evaluation.cases import in_words, load
from app.evaluation.collections import EXPECTED, collections_below, from_path
from app.evaluation.report import SEPARATOR, ArmTimings, EvaluationReport, ReportExperiment, to_trec
from app.ingest.options import Chunker
from app.settings import Settings

SourceArgument = Annotated[
    Path | None,
    typer.Argument(
        help="folder in BEIR layout: corpus, queries and qrels as JSON lines or Parquet; or of"
        " documents with a questions.json [default: your own documents]"
    ),
]
LibraryOption = Annotated[
    str | None,
    typer.Option(
        "--library",
        "-l",
        help="library if no folder is given: public or papers [default: DEFAULT_LIBRARY, and"
        " public where that is both]",
    ),
]
DatasetOption = Annotated[
    str | None,
    typer.Option(
        help="repository in BEIR layout on the Hugging Face hub, such as BeIR/scifact [default:"
        " none]"
    ),
]
CasesOption = Annotated[
    Path | None,
    typer.Option(
        "--cases",
        help="answer set with questions about your own documents [default: questions made from"
        " them]",
    ),
]
QuestionsOption = Annotated[
    int, typer.Option(min=1, help="at most this many questions, drawn by the seed")
]
HalfOption = Annotated[str, typer.Option(help="all, or only questions of even or odd lines")]
TopKOption = Annotated[int, typer.Option("--limit", min=1, max=50, help="passages per question")]
SeedOption = Annotated[
    int,
    typer.Option(min=0, help="number that starts every draw; the same seed gives the same report"),
]
OutOption = Annotated[
    Path | None,
    typer.Option(
        "--out",
        "-o",
        help="folder for report.md, .csv, .json and .html, and of a collection qrels and runs for"
        " trec_eval [default: none is written]",
    ),
]

app = group("evaluate", "Compare searches and answers on judged questions.")


@app.command()
def retrieval(
    source: SourceArgument = None,
    library: LibraryOption = None,
    dataset: DatasetOption = None,
    cases: CasesOption = None,
    collections: Annotated[
        Path | None,
        typer.Option(
            "--collections", help="folder of such folders, each measured in turn [default: none]"
        ),
    ] = None,
    questions: QuestionsOption = 100,
    half: HalfOption = "all",
    top_k: TopKOption = 10,
    seed: SeedOption = 7,
    to: OutOption = None,
    as_json: JsonOption = False,
) -> None:
    """Measure the configured search against its two legs and plain fusions.

    Example: documind evaluate retrieval --library papers --out evaluation
    """
    same = {"questions": questions, "half": half, "top_k": top_k, "seed": seed}
    if collections is None:
        body = _searched("retrieval", source, cases, library=library, dataset=dataset, **same)
        _run(body, to, as_json=as_json)
        return
    found, others = collections_below(collections)
    for one in others:
        name = one.relative_to(collections)
        err.print(f"passed over: {name}: no collection; expected {EXPECTED}", markup=False)
    if not found:
        raise InvalidInput(f"no folder in {str(collections)!r} is a collection: {EXPECTED}")
    for one in found:
        folder = to / one.relative_to(collections) if to else None
        _run(_searched("retrieval", one, None, **same), folder, as_json=as_json)


@app.command()
def ablation(
    source: SourceArgument = None,
    library: LibraryOption = None,
    dataset: DatasetOption = None,
    cases: CasesOption = None,
    axis: Annotated[
        list[str] | None,
        typer.Option(
            "--axis",
            "-a",
            help="NAME=VALUE,VALUE; repeat it to combine axes. fusion, dense_weight,"
            " keyword_weight, phrase_weight, rerank"
            f" ({', '.join(get_args(Rerank))}), top_k, strategy, chunk_size, chunker"
            f" ({', '.join(get_args(Chunker))})."
            " [default: each step of the search taken away in turn]",
        ),
    ] = None,
    questions: QuestionsOption = 100,
    half: HalfOption = "all",
    top_k: TopKOption = 10,
    seed: SeedOption = 7,
    to: OutOption = None,
    as_json: JsonOption = False,
) -> None:
    """Compare settings, and say which differences are more than chance.

    Example: documind evaluate ablation data/collections/squad --axis fusion=rrf,relative_score
    --axis chunk_size=500,1000
    """
    same = {"questions": questions, "half": half, "top_k": top_k, "seed": seed}
    body = _searched("ablation", source, cases, library=library, dataset=dataset, **same)
    _run({**body, "axes": dict(read_axis(text) for text in axis or ())}, to, as_json=as_json)


@app.command()
def answers(
    cases: Annotated[
        Path, typer.Argument(metavar="FILE", help="answer set: one JSON object a line")
    ],
    strategy: Annotated[
        list[str] | None,
        typer.Option(
            "--strategy",
            help=f"{either(get_args(Strategy))}; several are compared with the first [default:"
            " baseline]",
        ),
    ] = None,
    judge: Annotated[
        bool, typer.Option("--judge", help="have the answering model judge whether answers follow")
    ] = False,
    questions: QuestionsOption = 1000,
    to: OutOption = None,
    as_json: JsonOption = False,
) -> None:
    """Answer a set of questions and measure the answers against what the set expects.

    Example: documind evaluate answers data/sample_docs/questions.jsonl --out evaluation
    """
    axes = {"strategy": strategy or ["baseline"]}
    body = {
        "kind": "answers",
        "cases": [asdict(case) for case in load(cases)],
        "axes": axes,
        "judge": judge,
        "questions": questions,
    }
    _run(body, to, as_json=as_json)


def _searched(kind: str, source: Path | None, cases: Path | None, **same: object) -> Json:
    """Return the body of an evaluation of searches."""
    return {
        "kind": kind,
        "collection": None if source is None else str(source.absolute()),
        "cases": [] if cases is None else [asdict(case) for case in load(cases)],
        **same,
    }


def read_axis(text: str) -> tuple[str, list[str]]:
    """Return an axis and its values.

    Raises:
        InvalidInput: It is none, or a value does not fit it.
    """
    name, _, listed = text.partition("=")
    name, values = name.strip(), [value.strip() for value in listed.split(",") if value.strip()]
    known = [field.name for field in fields(AxesBody)]
    if name not in known:
        raise InvalidInput(f"axis {name!r} is none of {', '.join(sorted(known))}")
    if not values:
        raise InvalidInput(f"axis {text!r} has no values; write it as {name}=one,another")
    try:
        AxesBody(**{name: values})  # type: ignore[arg-type]  # it checks what was typed
    except ValidationError as error:
        raise InvalidInput(in_words(error)) from error
    return name, values


def _run(body: Json, to: Path | None, *, as_json: bool) -> None:
    """Run an evaluation to its end, keep its files where asked, and show it."""
    with connect(Settings()) as client:
        job = run_job(client, client.post("/api/v1/evaluations", body), "evaluating")
        report_id = str(job["id"])
        report = client.evaluation(report_id)
        written = [] if to is None else _write(client, report_id, to)
    shown = EvaluationReport.model_validate(report)
    if to is not None and body["kind"] != "answers" and body["collection"] is not None:
        written += _write_trec(shown, Path(body["collection"]), to)
    if as_json:
        emit(report)
        return
    for experiment in shown.experiments:
        show_experiment(experiment, shown.timings[experiment.collection])
    for remark in shown.remarks:
        say(f"note: {remark}")
    say(
        f"report {report_id}"
        + (f": {', '.join(str(path) for path in written)}" if written else ", on the page Evaluate")
    )


def _write(client: DocuMindClient, report_id: str, folder: Path) -> list[Path]:
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    for kind in ("md", "csv", "html", "json"):
        path = folder / f"report.{kind}"
        path.write_text(client.evaluation_file(report_id, kind), encoding="utf-8")
        written.append(path)
    return written


def _write_trec(report: EvaluationReport, source: Path, folder: Path) -> list[Path]:
    relevance = from_path(source).relevance
    written = []
    for experiment in report.experiments:
        runs = {
            arm: {
                question: [name.partition(SEPARATOR)[0] for name in names]
                for question, names in found.items()
            }
            for arm, found in experiment.found.items()
        }
        for name, text in to_trec(relevance, runs).items():
            written.append(folder / name)
            written[-1].write_text(text, encoding="utf-8")
    return written


def show_experiment(experiment: ReportExperiment, timings: Mapping[str, ArmTimings]) -> None:
    """Print a table of the arms and the verdicts in words."""
    measure = experiment.measure
    verdicts = {compared.arm: compared.verdict for compared in experiment.comparisons}
    say(
        f"{experiment.collection}: {experiment.questions} questions,"
        f" {experiment.passages} documents"
    )
    rows = []
    for arm in experiment.arms:
        found = arm.measures[measure]
        interval = f"{found.low:.3f} to {found.high:.3f}"
        ms = f"{timings[arm.name].p50_ms:.1f}"
        rows.append((arm.name, f"{found.mean:.3f}", interval, ms, verdicts.get(arm.name, "")))
    table(
        ("", measure, "95 % interval", "ms", f"against {experiment.baseline}"), rows, right=(1, 3)
    )
    first = experiment.arms[0]
    others = [f"{m} {found.mean:.3f}" for m, found in first.measures.items() if m != measure]
    if others:
        say(f"{first.name}: " + ", ".join(others))
    out.print()
