from __future__ import annotations

import json

from app.answer.records import PREVIEW_CHARACTERS, AnswerRecord, Source, StoredRecord
from app.core.serialization import from_json, json_values
from app.core.types import (
    Answer,
    Citation,
    ContextTrace,
    Evidence,
    Filters,
    Hit,
    Message,
    Notice,
    Question,
    Sentence,
    Signals,
    StageTrace,
    TraceItem,
    TraceReport,
    Usage,
)
from tests.stores import passage

QUERY_RESPONSE = set(
    "answer_id conversation_id answer status generator embedder library query_mode"
    " retrieval_strategy rewritten_query confidence"
    " notices sources sentences quote model_text nearest trace usage".split()
)  # QueryResponse of openapi.json, without request_id
SOURCE = set(
    "n doc_id duplicate_of revision library title filename authors year section page chunk_index start end"
    " distance similarity band score"
    " signals preview source_url zotero_url obsidian_url view_url licence sample flags".split()
)


def _answer() -> Answer:
    found = passage("Copper conducts electricity well.", key="copper", ordinal=3, start=40)
    evidence = Evidence(1, Hit(found, 0.75, Signals(dense=0.3, bm25=7.5), "strong"))
    text = "Copper conducts electricity [1]."
    sentence = Sentence(
        text, 0, len(text), "supported", (Citation(1, 40, 73, found.chunk.text, 0.9),)
    )
    trace = TraceReport(
        (StageTrace("search", 1.5, 10, 2, (TraceItem(7, 1, 0.5, kept=True),)),),
        1,
        ContextTrace(100, 40, 41, used=(1,)),
    )
    question = Question(
        "Does copper conduct?",
        "papers",
        mode="compare",
        strategy="hyde",
        filters=Filters(sections=("body",), year_from=2000, author="writer"),
        history=(Message("user", "hello"),),
    )
    return Answer(
        "a" * 32,
        text,
        "answered",
        question,
        "fake:one",
        "minilm",
        strategy="baseline",
        evidence=(evidence,),
        sentences=(sentence,),
        notices=(Notice("strategy_degraded", "no model"),),
        confidence=0.91234,
        trace=trace,
        usage=Usage(10, 5),
    )


def test_record_has_exactly_the_fields_of_the_api() -> None:
    record = json_values(AnswerRecord.of(_answer()))
    assert set(record) == QUERY_RESPONSE
    assert set(record["sources"][0]) == SOURCE
    assert set(record["sources"][0]["signals"]) == {
        "dense",
        "bm25",
        "overlap",
        "sentence",
        "rerank",
    }
    assert record["retrieval_strategy"] == "baseline"
    assert record["query_mode"] == "compare"
    assert json.loads(json.dumps(record)) == record


def test_distance_and_similarity_are_complements_or_null() -> None:
    source = json_values(AnswerRecord.of(_answer()))["sources"][0]
    assert (source["distance"], source["similarity"]) == (0.3, 0.7)
    lexical = json_values(Source.of(Evidence(1, Hit(passage("x"), 1.0))))
    assert (lexical["distance"], lexical["similarity"], lexical["band"]) == (None, None, None)


def test_trace_levels() -> None:
    answer = _answer()
    assert json_values(AnswerRecord.of(answer, "none"))["trace"] is None
    summary = json_values(AnswerRecord.of(answer))["trace"]
    assert summary == {
        "stages": [{"name": "search", "ms": 1.5, "in": 10, "out": 2}],
        "llm_calls": 1,
        "context": {
            "budget": 100,
            "planned": 40,
            "seen": 41,
            "used": [1],
            "trimmed": [],
            "dropped": [],
            "prompts": "full",
            "evidence": "full",
            "why": "",
        },
    }
    full = json_values(AnswerRecord.of(answer, "full"))["trace"]
    assert full is not None
    items = [{"chunk": 7, "rank": 1, "score": 0.5, "kept": True, "reason": ""}]
    assert full["stages"] == [{"name": "search", "ms": 1.5, "in": 10, "out": 2, "items": items}]


def test_stored_record_keeps_question_and_full_trace() -> None:
    answer = _answer()
    stored = json_values(StoredRecord.kept_whole(answer, {"fusion": "rrf"}, "2026-01-01T00:00:00Z"))
    assert stored["asked"]["retrieval_strategy"] == "hyde"  # as asked, not as degraded
    assert from_json(StoredRecord, stored).asked.filters == answer.question.filters
    assert stored["trace"] is not None
    assert "items" in stored["trace"]["stages"][0]
    assert stored["settings"] == {"fusion": "rrf"}
    assert json.loads(json.dumps(stored)) == stored


def test_preview_is_cut_at_a_word() -> None:
    text = "word " * 400
    preview = json_values(Source.of(Evidence(1, Hit(passage(text), 1.0))))["preview"]
    assert preview.endswith("word\u2026")
    assert len(preview) <= PREVIEW_CHARACTERS + 1
    assert text.startswith(preview[:-1])
    short = json_values(Source.of(Evidence(1, Hit(passage("short"), 1.0))))["preview"]
    assert short == "short"


def test_view_url_names_the_exact_span() -> None:
    url = json_values(AnswerRecord.of(_answer()))["sources"][0]["view_url"]
    assert url.endswith("revision=1&start=40&end=73")


def test_verdicts_that_were_kept_are_read_in_todays_words() -> None:
    kept = StoredRecord.kept_whole(_answer(), {}, "2026-01-01T00:00:00Z")
    record = json_values(kept)
    (sentence,) = record["sentences"]
    old = [{**sentence, "verdict": "unsupported"}, {**sentence, "verdict": "weak"}]
    read = from_json(StoredRecord, {**record, "sentences": old})
    assert [one.verdict for one in read.sentences] == ["not_found", "unsure"]
    assert {**json_values(read), "sentences": []} == {**record, "sentences": []}


def test_what_an_older_release_kept_of_differing_figures_is_passed_over() -> None:
    record = json_values(StoredRecord.kept_whole(_answer(), {}, "2026-01-01T00:00:00Z"))
    side = {"n": 1, "start": 0, "end": 9, "values": [1966.0]}
    old = {
        **record,
        "notices": [{"code": "libraries_disagree", "message": "compare [1] with [2]"}]
        + record["notices"],
        "trace": {**record["trace"], "disagreements": [{"paper": side, "article": side}]},
    }
    assert json_values(from_json(StoredRecord, old)) == record
