"""What may be asked of an evaluation, and the arms it means."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from app.core.errors import InvalidInput, NotFound
from app.core.types import Library
from app.evaluation.arms import AxesBody, Chunking, EvaluationBody
from app.evaluation.cases import CaseBody
from app.evaluation.collections import from_cases, with_texts
from app.evaluation.report import ReportArchive
from app.evaluation.runner import OutcomeLog, QuestionOutcome, RankedPassages
from app.ingest.options import IngestOptions
from app.retrieval.request import RetrievalOptions
from tests.stores import passage, shelved


def test_a_request_survives_a_restart() -> None:
    case = CaseBody("Who?", "papers", "question", ("Rollo",), (), ("a.txt",), oos=False)
    axes = AxesBody(
        fusion=("rrf",),
        dense_weight=(0.3, 0.5),
        strategy=("hyde",),
        chunk_size=(500,),
        chunker=("recursive",),
    )
    request = EvaluationBody(
        "ablation", "papers", cases=(case,), axes=axes, questions=7, half="odd", seed=3, judge=True
    )
    assert EvaluationBody(**json.loads(json.dumps(asdict(request)))) == request


def test_a_grid_sets_what_its_arms_are_named_for() -> None:
    base = RetrievalOptions(top_k=7)
    axes = AxesBody(
        fusion=("rrf", "relative_score"), dense_weight=(0.4,), keyword_weight=(0.1,), phrase_weight=(0.3,), rerank=("mmr",),
        top_k=(3,), strategy=("hyde",), chunk_size=(400,), chunker=("recursive",),
    )  # fmt: skip
    configured, first, second = axes.arms(base)
    assert (configured.name, configured.options, configured.chunking) == (
        "configured",
        base,
        Chunking(),
    )
    assert first.name.startswith("fusion=rrf dense_weight=0.4")
    assert second.name.startswith("fusion=relative_score dense_weight=0.4")
    options = second.options
    assert (options.fusion, options.dense_weight, options.keyword_fusion_weight) == (
        "relative_score",
        0.4,
        0.1,
    )
    assert (options.phrase_fusion_weight, options.rerank, options.top_k) == (0.3, "mmr", 7)
    assert (second.top_k, second.strategy, second.chunking) == (
        3,
        "hyde",
        Chunking(400, "recursive"),
    )
    by_encoder = AxesBody(rerank=("mmr", "cross_encoder", "none")).arms(base)[1:]
    assert [arm.options.rerank for arm in by_encoder] == ["mmr", "cross_encoder", "none"]


def test_a_smaller_chunk_keeps_the_share_of_its_overlap() -> None:
    base = IngestOptions(chunk_size=1000, chunk_overlap=150)
    assert Chunking(400, "recursive").options(base) == IngestOptions(
        chunk_size=400, chunk_overlap=60, chunker="recursive"
    )
    assert Chunking().options(base) == base


@pytest.mark.parametrize(
    ("request_", "said"),
    [
        (EvaluationBody("answers"), "needs cases"),
        (
            EvaluationBody(
                "answers", cases=(CaseBody("?", "papers", "question"),), axes=AxesBody(top_k=(3,))
            ),
            "by strategy",
        ),
        (
            EvaluationBody(
                "answers", cases=(CaseBody("?", "papers", "question"),), collection="/x"
            ),
            "has no answer set",
        ),
        (EvaluationBody("retrieval", axes=AxesBody(top_k=(3,))), "belong to an ablation"),
        (EvaluationBody(collection="/x", dataset="a/b"), "not both"),
        (EvaluationBody(dataset="../passwd"), "no repository"),
        (
            EvaluationBody(
                axes=AxesBody(
                    top_k=tuple(range(1, 9)), dense_weight=tuple(n / 10 for n in range(9))
                )
            ),
            "at most 64",
        ),
    ],
)
def test_what_makes_no_sense_is_named(request_: EvaluationBody, said: str) -> None:
    with pytest.raises(InvalidInput, match=said):
        request_.check()


def test_arms_are_counted_before_they_are_made() -> None:
    many = (0.5,) * 16
    with pytest.raises(InvalidInput, match="these values make 1048577 arms"):
        AxesBody(
            dense_weight=many,
            keyword_weight=many,
            phrase_weight=many,
            top_k=(3,) * 16,
            chunk_size=(400,) * 16,
        ).arms(RetrievalOptions())


def test_an_unknown_field_or_value_is_refused() -> None:
    hostile: list[dict[str, Any]] = [
        {"axes": {"chunker": ["pages"]}},
        {"axes": {"dense_weight": [1.5]}},
        {"axes": {"speed": [1]}},
        {"dataset": "../../etc/passwd"},
        {"collection": "relative"},
        {"judge": "yes"},
        {"answer_set": "x"},
    ]
    for wrong in hostile:
        with pytest.raises(ValidationError):
            EvaluationBody(**wrong)


def test_baselines() -> None:
    base = RetrievalOptions()
    for request, name in (
        (EvaluationBody("ablation"), "rrf"),
        (EvaluationBody("retrieval"), "rrf"),
        (EvaluationBody(axes=AxesBody(fusion=("rrf",))), "configured"),
        (EvaluationBody("answers", axes=AxesBody(strategy=("hyde", "baseline"))), "hyde"),
    ):
        assert request.baseline(request.arms(base)) == name


def test_a_torn_line_is_asked_again(tmp_path: Path) -> None:
    log = OutcomeLog(tmp_path / "o.jsonl")
    outcome = QuestionOutcome(
        RankedPassages(("a",), ("text\n of a",), 1.5, {"search": 1.0}, 0.25),
        {"right": 1.0, "recall": None},
    )
    assert log.outcome("one", "Who?", lambda: outcome) == outcome
    log.outcome("two", "Who?", lambda: outcome)
    whole = (tmp_path / "o.jsonl").read_bytes()
    (tmp_path / "o.jsonl").write_bytes(whole[:-9])
    again = OutcomeLog(tmp_path / "o.jsonl")
    asked: list[str] = []

    def ask() -> QuestionOutcome:
        asked.append("again")
        return outcome

    assert again.outcome("one", "Who?", ask) == outcome
    assert asked == []
    assert again.outcome("two", "Who?", ask) == outcome
    assert asked == ["again"]
    assert (tmp_path / "o.jsonl").read_bytes() == whole


def test_only_whole_reports_are_listed(tmp_path: Path) -> None:
    archive = ReportArchive(tmp_path / "evaluations")
    assert archive.list() == []
    archive.outcomes("half")
    assert archive.list() == []
    for wrong in ("half", "..", "a/b", ""):
        with pytest.raises(NotFound):
            archive.text(wrong, "json")


def test_an_answer_set_judges_the_documents_it_names() -> None:
    catalog = shelved(
        passage("Rollo led the Norse.", key="rollo"), passage("Wheat is a grass.", key="wheat")
    ).catalog
    documents = {d.source_key: d for d in catalog.documents(Library.PAPERS)[0]}
    cases = (
        CaseBody("Who led?", "papers", "question", ("Rollo",), (), ("rollo",)),
        CaseBody("Which grass?", "all", "question", (), (), (documents["wheat"].doc_id, "missing")),
        CaseBody("Elsewhere?", "public", "question", (), (), ("rollo",)),
        CaseBody("No document named", "papers", "question", ("x",)),
        CaseBody("Out of scope", "papers", "question", (), (), ("rollo",), oos=True),
    )
    found = from_cases(cases, catalog, Library.PAPERS)
    assert [q.text for q in found.questions] == ["Who led?", "Which grass?"]
    assert found.relevance["case-1"] == {documents["rollo"].doc_id: 1}
    assert found.relevance["case-2"] == {documents["wheat"].doc_id: 1}
    assert (found.size, found.passages) == (2, ())
    filled = with_texts(found, catalog, Library.PAPERS)
    assert {p.id: p.text for p in filled.passages}[
        documents["rollo"].doc_id
    ] == "Rollo led the Norse."
