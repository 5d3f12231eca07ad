"""The test of a model: what is counted, what is taken from now on, and what it says."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

import pytest

from app.answer.checking import CheckService
from app.answer.model_test import (
    CheckRates,
    Counts,
    ExamQuestion,
    ModelReply,
    ModelTester,
    TestReport,
    better_prompt,
    compared,
    counted,
    exam_claims,
    exam_questions,
    findings_of,
    rates,
)
from app.answer.models import ModelSpeeds, manner
from app.answer.options import MannerOptions
from app.answer.writing import AnswerWriter
from app.core.cancel import CancelToken
from app.core.errors import Cancelled, InvalidInput, ProviderUnreachable
from app.core.sentences import sentence_spans
from app.core.types import REFUSAL, Library, ModelFindings, ModelProfile, ModelSpeed, Token
from app.generation.check.grounding import Grounder
from app.generation.language.tokens import TokenCalibrator
from app.generation.prompt.prompts import GenerationOptions, PromptLibrary
from app.generation.quote.quoting import ExtractiveGenerator
from app.models.embedding import RememberedEncoder
from app.models.minilm import MiniLmEmbedder
from app.storage.options import IndexOptions
from app.storage.store import IndexStore
from tests.fakes.generators import FixedModels, ScriptedGenerator

PROMPTS = PromptLibrary.load()
QUESTIONS = exam_questions()
CLAIMS = exam_claims()
SMALL = ModelProfile("fake:scripted", "fake", "digest", parameters=5e8)
RECITED = "Answer with the words of the text, in one full sentence."
CONTRACT = PROMPTS.answers["general", "public"].parts["instruction"]


@dataclass
class Exam:
    tester: ModelTester
    store: IndexStore

    def play(self, say: Callable[[str, ExamQuestion], str]) -> ModelFindings:
        """Test a model that says what `say` makes of prompt and question."""
        self.answering(say)
        found = self.tester.run(None, CancelToken())
        assert isinstance(self.models.model, ScriptedGenerator)
        assert self.models.model.left == 0
        return found

    def answering(self, say: Callable[[str, ExamQuestion], str]) -> None:
        self.models.model = ScriptedGenerator(
            *(
                say(prompts, question)
                for prompts in ("compact", "full")
                for question in QUESTIONS
                if prompts == "full"
                or self.tester.answer_writer.extractive.select(
                    question.text, question.evidence
                ).chosen
            ),
            *("yes" if claim.stated else "no" for claim in CLAIMS),
        )

    @property
    def models(self) -> FixedModels:
        assert isinstance(self.tester.models, FixedModels)
        return self.tester.models


@pytest.fixture(scope="module")
def quoting(minilm: MiniLmEmbedder) -> ExtractiveGenerator:
    """The quoting answerer as installed; every sentence is embedded once for all tests here."""
    return ExtractiveGenerator(RememberedEncoder(minilm))


@pytest.fixture
def exam(tmp_path: Path, quoting: ExtractiveGenerator) -> Iterator[Exam]:
    with IndexStore(
        IndexOptions(
            tmp_path, tmp_path / "chroma", tantivy_threads=1, tantivy_heap_bytes=15_000_000
        )
    ) as store:
        tester = ModelTester(
            FixedModels(profile=SMALL),
            AnswerWriter(quoting, PROMPTS, TokenCalibrator(), GenerationOptions()),
            Grounder(),
            CheckService(searcher_for=_no_search, documents=lambda _: (), reader=None),
            ModelSpeeds(store.models),
            store.models,
            MannerOptions(),
        )
        yield Exam(tester, store)


def _no_search(library: Library) -> NoReturn:
    raise AssertionError(f"a test of a model searches {library}")


def sentence(question: ExamQuestion) -> str:
    """Return the sentence of the passages that answers a question, or the refusal."""
    texts = [item.hit.passage.chunk.text for item in question.evidence]
    found = (
        text[start:end]
        for text in texts
        for start, end in sentence_spans(text)
        if question.right(text[start:end])
    )
    return next(found, REFUSAL) if question.expected else REFUSAL


def counts(found: ModelFindings, prompts: str) -> dict[str, float]:
    kept: dict[str, float] = json.loads(found.report)["prompts"][prompts]
    return kept


def test_twenty_questions_have_an_answer_in_their_first_passages_and_four_have_none() -> None:
    assert [bool(one.expected) for one in QUESTIONS] == [True] * 20 + [False] * 4
    for question in QUESTIONS:
        assert [item.n for item in question.evidence] == [1, 2, 3, 4]
        assert (sentence(question) == REFUSAL) == (not question.expected)
        assert not question.expected or any(
            question.right(item.hit.passage.chunk.text) for item in question.evidence[:2]
        )
    assert QUESTIONS[16].right("It was 9 degrees long.")
    assert not QUESTIONS[16].right("In 1907 and 1971 it was 19 degrees long.")


def test_a_model_that_is_always_right_answers_alone_from_then_on(exam: Exam) -> None:
    found = exam.play(lambda _, question: sentence(question))
    for prompts in ("compact", "full"):
        one = counts(found, prompts)
        assert (one["asked"], one["right"], one["cited"], one["own_marks"]) == (24, 24, 20, 0)
        assert (one["refused_rightly"], one["refused_wrongly"], one["loops"], one["leaks"]) == (
            4,
            0,
            0,
            0,
        )
    assert (found.prompts, found.evidence, found.as_good_as_quotes) == ("compact", "short", True)
    assert found.advice.startswith(
        "fake:scripted: 24 of 24 with compact, first word after 0.0 s; quotes alone "
    )
    assert exam.store.models.findings("digest") == found
    before, after = (
        manner(ModelProfile("m", parameters=5e8, findings=one), None, MannerOptions())
        for one in (None, found)
    )
    assert (before.leads, after.leads) == (True, False)


def test_a_model_that_recites_its_instructions_is_counted_so_and_stays_below_the_quotes(
    exam: Exam,
) -> None:
    found = exam.play(lambda prompts, _: RECITED if prompts == "compact" else CONTRACT)
    assert counts(found, "compact")["leaks"] >= 20
    assert counts(found, "full")["leaks"] == 24
    assert counts(found, "full")["cited"] == counts(found, "full")["right"] == 0
    assert not found.as_good_as_quotes
    assert "its words stand below the quotes" in found.advice


def test_a_model_that_refuses_is_right_where_there_is_no_answer(exam: Exam) -> None:
    found = exam.play(lambda *_: REFUSAL)
    for prompts in ("compact", "full"):
        one = counts(found, prompts)
        assert (one["right"], one["refused_rightly"], one["refused_wrongly"]) == (4, 4, 20)
    assert not found.as_good_as_quotes


def test_a_model_that_repeats_itself_is_counted_so(exam: Exam) -> None:
    found = exam.play(lambda _, question: " ".join([sentence(question)] * 5))
    assert counts(found, "full")["loops"] == 24


def test_the_full_contract_is_taken_where_it_is_clearly_better(exam: Exam) -> None:
    found = exam.play(
        lambda prompts, question: (
            sentence(question) if prompts == "full" else "I like trains very much."
        )
    )
    assert (found.prompts, found.evidence, found.as_good_as_quotes) == ("full", "full", True)
    one = counted([reply(right=True), reply(right=False)])
    near, far = with_right(one, 2), with_right(one, 3)
    assert better_prompt({"compact": one, "full": near}) == "compact"
    assert better_prompt({"compact": one, "full": far}) == "full"


def test_a_test_that_was_cut_short_asks_only_what_is_left(exam: Exam) -> None:
    exam.answering(lambda _, question: sentence(question))
    seen: list[ModelReply] = []
    token = CancelToken()

    def watch(replies: Sequence[ModelReply], asked: int, total: int) -> None:
        assert (asked, total) == (len(replies), 88)
        seen[:] = replies
        if len(replies) == 30:
            token.cancel()

    with pytest.raises(Cancelled):
        exam.tester.run(None, token, watch=watch)
    assert exam.store.models.findings("digest") is None
    assert len(seen) == 30
    found = exam.tester.run(None, CancelToken(), tuple(seen))
    assert counts(found, "full")["right"] == 24
    assert isinstance(exam.models.model, ScriptedGenerator)
    assert exam.models.model.left == 0


def test_a_host_that_breaks_off_is_asked_again_and_one_that_is_gone_ends_the_test(
    exam: Exam, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("app.answer.model_test._PAUSE_S", 0.0)
    broken = ProviderUnreachable("the host broke the connection")
    exam.models.model = ScriptedGenerator([Token("The"), broken], *[REFUSAL] * 88)
    assert counts(exam.tester.run(None, CancelToken()), "full")["refused_wrongly"] == 20
    exam.models.model = ScriptedGenerator(*[broken] * 5)
    with pytest.raises(ProviderUnreachable):
        exam.tester.run(None, CancelToken())


def test_without_a_model_there_is_nothing_to_test(exam: Exam) -> None:
    exam.models.reason = "Ollama does not answer; start it: ollama serve"
    with pytest.raises(InvalidInput, match="start it: ollama serve"):
        exam.tester.run(None, CancelToken())


def test_the_budget_and_its_seconds_come_from_the_measured_speed(exam: Exam) -> None:
    exam.store.models.keep_speed("fake", "fake:scripted", ModelSpeed(100.0, 10.0))
    report = json.loads(exam.play(lambda _, question: sentence(question)).report)
    assert (report["reading_tokens_s"], report["writing_tokens_s"]) == (100.0, 10.0)
    assert (report["budget_tokens"], report["budget_s"]) == (2000, 20.0)


def test_tested_models_are_compared_with_each_other_and_the_quotes() -> None:
    weak, strong = (report_of(name, right) for name, right in (("weak", 17), ("strong", 23)))
    tests = [("weak", findings_of(weak, "2026")), ("strong", findings_of(strong, "2026"))]
    assert compared([]) == ""
    assert compared(tests[:1]) == (
        "weak: 17 of 24 with compact, first word after 1.2 s; quotes alone 22 of 24: "
        "no model is as good as the quotes, which come first in its answers"
    )
    assert compared(tests) == (
        "strong: 23 of 24 with compact, first word after 1.2 s; weak: 17 of 24 with compact, first"
        " word after 1.2 s; "
        "quotes alone 22 of 24: strong is as good as the quotes and answers alone"
    )


def reply(*, right: bool) -> ModelReply:
    return ModelReply("compact", 0, right, False, False, True, False, None, None, None, 0.0)


def with_right(one: Counts, right: int) -> Counts:
    return Counts(one.asked, right, 0, 0, 0, 0, 0, 0, None, 1.2, 2.0)


def report_of(name: str, right: int) -> TestReport:
    one = with_right(counted([reply(right=True)]), right)
    return TestReport(name, 24, 22, {"compact": one, "full": one}, 300.0, 60.0, 350, 1.17)


def test_a_model_is_told_as_a_judge_by_two_rates_beside_the_reader(exam: Exam) -> None:
    """Without a reader only copies are supported, and no built-in claim is one."""
    found = exam.play(lambda _, question: sentence(question))
    checks = json.loads(found.report)["checks"]
    assert {by: (one["true_supported"], one["false_supported"]) for by, one in checks.items()} == {
        "model": (20, 0),
        "reader": (0, 0),
    }
    assert "as a check it lets 0 of 20 false sentences pass and keeps 20 of 20" in found.advice
    assert "as a check the reader lets 0 of 20" in found.advice


def test_a_decision_model_of_the_host_is_told_as_a_judge_too(exam: Exam) -> None:
    decider = ScriptedGenerator(*["yes"] * len(CLAIMS))
    exam.models.judge = decider
    found = exam.play(lambda _, question: sentence(question))
    assert decider.left == 0
    assert list(json.loads(found.report)["checks"]) == ["model", "decision", "reader"]
    assert "as a check the decision model lets 20 of 20 false sentences pass" in found.advice


def test_a_judge_that_says_yes_to_everything_lets_everything_pass() -> None:
    assert rates(CLAIMS, [True] * 40, 80.0) == CheckRates(20, 20, 20, 20, 2.0)
