from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict

from app.answer.checking import CheckService
from tests.fakes.readers import WordReader
from tests.unit.answer.bench import Bench
from tests.unit.generation.passages import evidence

NORMANS = (
    "The Normans were descended from Norse raiders. Their leader Rollo swore fealty to King"
    " Charles III in 911."
)
WARSAW = (
    "Warsaw is the capital of Poland. It stands on the Vistula, roughly 260 km from the Baltic Sea."
)


def public() -> Bench:
    """Return a public library of two documents whose text begins at character 100."""
    return Bench(passages=[item.hit.passage for item in evidence(NORMANS, WARSAW, start=100)])


def service(bench: Bench | None = None, prompts: Sequence[str] = ()) -> CheckService:
    bench = bench or public()
    return CheckService(
        searcher_for=bench.searcher_for,
        documents=lambda library: [one.document for one in bench.passages],
        reader=WordReader(),
        prompts=prompts,
    )


def test_a_text_is_checked_against_another_with_offsets_in_it() -> None:
    text = (
        "# Poland\n\nWarsaw stands on the Vistula. Warsaw is 310 km from the Baltic Sea."
        " Bananas ripen in Ecuador."
    )
    report = service().against(text, WARSAW)
    assert [sentence.verdict for sentence in report.sentences] == [
        "no_claim",
        "supported",
        "contradicted",
        "not_found",
    ]
    assert asdict(report.counts) == {
        "supported": 1,
        "unsure": 0,
        "contradicted": 1,
        "not_found": 1,
        "no_claim": 1,
    }
    for sentence in report.sentences:
        assert text[sentence.start : sentence.end] == sentence.text
        for finding in sentence.citations:
            assert WARSAW[finding.start : finding.end] == finding.quote
            assert finding.doc_id is None


def test_a_text_is_checked_against_a_library_with_the_document_and_its_characters() -> None:
    found = public()
    report = service(found).in_libraries(
        "Warsaw is the capital of Poland. Rollo swore fealty in 912.", "public"
    )
    first, second = report.sentences
    assert (first.verdict, second.verdict) == ("supported", "contradicted")
    best = first.citations[0]
    assert (best.quote, best.start, best.support) == ("Warsaw is the capital of Poland.", 100, 1.0)
    assert best.doc_id
    assert (
        second.citations[0].quote == "Their leader Rollo swore fealty to King Charles III in 911."
    )
    assert sorted(found.retriever.queries) == [
        "Rollo swore fealty in 912.",
        "Warsaw is the capital of Poland.",
    ]


def test_a_text_without_claims_searches_nothing() -> None:
    found = public()
    assert [one.verdict for one in service(found).in_libraries("# Warsaw\n", "all").sentences] == [
        "no_claim"
    ]
    assert found.retriever.queries == []


def test_a_better_source_is_named_where_the_given_one_does_not_hold() -> None:
    text = "Warsaw stands on the Vistula. Rollo swore fealty in 911. Bananas ripen in Ecuador."
    found = public()
    checker = service(found)
    report = checker.with_better(checker.against(text, WARSAW), "public")
    held, elsewhere, nowhere = report.sentences
    assert (held.verdict, held.better) == ("supported", None)
    assert elsewhere.verdict == "not_found"
    assert elsewhere.better is not None
    assert elsewhere.better.quote.startswith("Their leader Rollo swore fealty")
    assert elsewhere.better.doc_id
    assert nowhere.better is None
    assert sorted(found.retriever.queries) == [
        "Bananas ripen in Ecuador.",
        "Rollo swore fealty in 911.",
    ]


def test_a_sentence_that_repeats_the_instructions_is_never_supported() -> None:
    told = "Answer only from the passages between the marks."
    checker = service(prompts=[told])
    report = checker.against(f"{told} Warsaw stands on the Vistula.", f"{told} {WARSAW}")
    assert [one.verdict for one in report.sentences] == ["not_found", "supported"]


def test_a_watcher_is_told_of_each_sentence_how_many_are_read() -> None:
    text = "Warsaw stands on the Vistula. Rollo swore fealty in 911. Bananas ripen."
    told: list[tuple[int, int]] = []
    service().in_libraries(text, "public", lambda done, of: told.append((done, of)))
    service().against(text, WARSAW, lambda done, of: told.append((done, of)))
    assert told == [(0, 3), (1, 3), (2, 3)] * 2
