"""Test a model on built-in questions, as the product asks, with both prompts.

It takes the same path as an answer, from the quote over the prompt and the guards to the check of
every sentence, over passages in memory: no index is searched and nothing of the user's is read.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from collections.abc import Generator as Steps
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from statistics import median
from typing import Literal, TypeVar

from app.answer.checking import CheckService
from app.answer.judging import STATES_FROM, states
from app.answer.models import (
    ModelCalls,
    ModelChoice,
    ModelSelector,
    ModelSpeeds,
    PromptPlan,
    manner,
)
from app.answer.options import MannerOptions
from app.answer.writing import (
    CONFIDENT,
    AnswerWriter,
    GenerationRequest,
    ModelText,
    choose_outcome,
    is_refusal,
    quote_of,
    reads_as_refusal,
    write,
)
from app.core.cancel import CancelToken
from app.core.errors import InvalidInput, ProviderError
from app.core.ports import Generator
from app.core.serialization import PUBLIC
from app.core.trace import Trace
from app.core.types import (
    Chunk,
    Document,
    Evidence,
    Hit,
    Library,
    ModelFindings,
    Passage,
    Question,
    Quote,
    ReadingEvent,
    TokenEvent,
)
from app.generation.check.citations import without_marks
from app.generation.check.grounding import Grounder
from app.generation.quote.quoting import Selection
from app.storage.catalog.models import ModelStore

# Define the questions and passages that test models.

_FILE = Path(__file__).with_name("model_test.json")


@dataclass(frozen=True, slots=True)
class ExamQuestion:
    """One question with its passages, best first."""

    text: str
    evidence: tuple[Evidence, ...]
    expected: tuple[str, ...]
    """Any of them makes an answer right; empty where the passages do not hold the answer."""

    def right(self, text: str) -> bool:
        """Return whether a text holds an expected answer as whole words."""
        return any(
            re.search(rf"(?<!\w){re.escape(one)}(?!\w)", text, re.IGNORECASE)
            for one in self.expected
        )


def exam_questions() -> tuple[ExamQuestion, ...]:
    """Return the 24 built-in questions; the last four have no answer."""
    data = json.loads(_FILE.read_text(encoding="utf-8"))
    passages = {row["name"]: _passage(at, row) for at, row in enumerate(data["passages"])}
    return tuple(
        ExamQuestion(
            row["question"],
            _evidence([passages[name] for name in row["passages"]]),
            tuple(row["expected"]),
        )
        for row in data["questions"]
    )


@dataclass(frozen=True, slots=True)
class ExamClaim:
    """A sentence about a passage, in other words than it has."""

    text: str
    passage: str
    stated: bool
    """The passage states it; else it says otherwise, or nothing of it."""


def exam_claims() -> tuple[ExamClaim, ...]:
    """Return the 40 built-in claims, half of them true."""
    data = json.loads(_FILE.read_text(encoding="utf-8"))
    texts = {row["name"]: row["text"] for row in data["passages"]}
    return tuple(
        ExamClaim(row["text"], texts[row["passage"]], row["stated"]) for row in data["claims"]
    )


def _evidence(passages: Sequence[Passage]) -> tuple[Evidence, ...]:
    return tuple(Evidence(n, Hit(passage, 1.0 / n)) for n, passage in enumerate(passages, start=1))


def _passage(at: int, row: Mapping[str, str]) -> Passage:
    """Return a passage of a document that holds nothing else and lies in no library."""
    name, text = f"test:{row['name']}", row["text"]
    chunk = Chunk(at, name, Library.PUBLIC, 1, 0, 0, len(text), "body", None, text)
    document = Document(
        doc_id=name,
        library=Library.PUBLIC,
        source_key=name,
        revision=1,
        sha256="",
        title=row["title"],
        authors=(),
        year=None,
        type="text",
        state="live",
        characters=len(text),
        pages=0,
        chunks=1,
        embedded=0,
        duplicate_of=None,
        source_url=None,
        licence=None,
        added_at="",
        updated_at="",
    )
    return Passage(chunk, document)


# Evaluate a model's test: counts, the chosen prompt, and advice.

Prompts = Literal["compact", "full"]
EVIDENCE: Mapping[Prompts, Literal["short", "full"]] = {"compact": "short", "full": "full"}
"""Each prompt is tested with the evidence that it is made for."""
_WORTH = 2
"""Questions by which the slower prompt must be better to be taken: one may be chance."""


@dataclass(frozen=True, slots=True)
class ModelReply:
    """The outcome of one question with one prompt."""

    prompts: Prompts
    question: int
    """Its place among the built-in questions, from 0."""
    right: bool
    """By the model's own words; a question without an answer: it was refused."""
    absent: bool
    """The passages do not hold the answer."""
    refused: bool
    cited: bool
    """Some of the model's words are supported and carry a mark that holds."""
    own_marks: bool
    """The model wrote such a mark itself; otherwise the engine did."""
    stopped: Literal["loop", "leak"] | None
    prompt_tokens: int | None
    """As the host counts them, else as they were estimated; None where the model was not asked."""
    first_word_s: float | None
    """None where the model was not asked or wrote nothing."""
    whole_s: float


@dataclass(frozen=True, slots=True)
class Counts:
    """Outcomes of the built-in questions with one prompt; median times in seconds."""

    __pydantic_config__ = PUBLIC
    asked: int
    right: int
    """Right by the model's own words; a question without an answer is refused."""
    cited: int
    """Some of the model's words are supported and carry a mark that holds."""
    own_marks: int
    """The model wrote such a mark itself."""
    refused_rightly: int
    refused_wrongly: int
    loops: int
    leaks: int
    prompt_tokens: float | None
    first_word_s: float | None
    whole_s: float


CheckedBy = Literal["model", "decision", "reader"]


@dataclass(frozen=True, slots=True)
class CheckRates:
    """What a judge says of the built-in claims: two rates that only together mean something."""

    __pydantic_config__ = PUBLIC
    true: int
    """Claims that their passage states, in other words."""
    false: int
    true_supported: int
    false_supported: int
    seconds: float
    """For one claim, in the mean."""

    @property
    def line(self) -> str:
        passed = f"{self.false_supported} of {self.false} false sentences pass"
        return (
            f"lets {passed} and keeps {self.true_supported} of {self.true} true ones,"
            f" {self.seconds:.2f} s a sentence"
        )


def rates(claims: Sequence[ExamClaim], said: Sequence[bool], seconds: float) -> CheckRates:
    """Return the rates of a judge that said of each claim whether it is stated."""
    true = [yes for claim, yes in zip(claims, said, strict=True) if claim.stated]
    false = [yes for claim, yes in zip(claims, said, strict=True) if not claim.stated]
    each = round(seconds / max(1, len(claims)), 2)
    return CheckRates(len(true), len(false), sum(true), sum(false), each)


@dataclass(frozen=True, slots=True)
class TestReport:
    """The findings of one model's test."""

    __test__ = False  # no test case, although its name begins like one

    model: str
    """`provider:model`."""
    questions: int
    quotes_right: int
    """Questions that the quoted sentences alone answer, or rightly do not."""
    prompts: Mapping[Prompts, Counts]
    reading_tokens_s: float | None
    writing_tokens_s: float | None
    budget_tokens: int
    """Evidence to hand over at most from now on."""
    budget_s: float | None
    """Seconds that this host takes to read it; the first word comes after that."""
    checks: Mapping[CheckedBy, CheckRates] = field(default_factory=dict)
    """The model as the judge of claims, the host's decision model where it has one, and the reader
    on the same ones."""


def counted(replies: Sequence[ModelReply]) -> Counts:
    """Return the counts of replies to one prompt; at least one."""
    tokens = [one.prompt_tokens for one in replies if one.prompt_tokens is not None]
    waits = [one.first_word_s for one in replies if one.first_word_s is not None]
    return Counts(
        asked=len(replies),
        right=sum(one.right for one in replies),
        cited=sum(one.cited for one in replies),
        own_marks=sum(one.own_marks for one in replies),
        refused_rightly=sum(one.refused and one.absent for one in replies),
        refused_wrongly=sum(one.refused and not one.absent for one in replies),
        loops=sum(one.stopped == "loop" for one in replies),
        leaks=sum(one.stopped == "leak" for one in replies),
        prompt_tokens=median(tokens) if tokens else None,
        first_word_s=round(median(waits), 2) if waits else None,
        whole_s=round(median(one.whole_s for one in replies), 2),
    )


def better_prompt(prompts: Mapping[Prompts, Counts]) -> Prompts:
    """Return the better prompt: compact, unless the full one clearly wins."""
    return "full" if prompts["full"].right >= prompts["compact"].right + _WORTH else "compact"


def findings_of(report: TestReport, at: str) -> ModelFindings:
    """Return what is kept of a test.

    Args:
        report: Its counts.
        at: When it ended, UTC ISO 8601.
    """
    taken = better_prompt(report.prompts)
    as_good = report.prompts[taken].right >= report.quotes_right
    line = f"{_line(report, taken)}; quotes alone {report.quotes_right} of {report.questions}"
    then = "its answers stand alone" if as_good else "its words stand below the quotes"
    judges = [f"as a check {by} {one.line}" for by, one in _judges(report)]
    advice = "; ".join([line, then, *judges])
    return ModelFindings(taken, EVIDENCE[taken], as_good, advice, at, json.dumps(asdict(report)))


def _judges(report: TestReport) -> Iterator[tuple[str, CheckRates]]:
    names: Mapping[CheckedBy, str] = {
        "model": "it",
        "decision": "the decision model",
        "reader": "the reader",
    }
    return ((name, report.checks[by]) for by, name in names.items() if by in report.checks)


def right_share(findings: ModelFindings) -> float:
    """Return the share of a test's questions that the model had right, in [0, 1]."""
    return _kept(findings)[0] / max(1, int(json.loads(findings.report)["questions"]))


def compared(tests: Sequence[tuple[str, ModelFindings]]) -> str:
    """Return a line that compares tested models and quotes; empty without a test."""
    if not tests:
        return ""
    found = sorted((_kept(findings) for _, findings in tests), key=lambda one: -one[0])
    best = max(tests, key=lambda test: _kept(test[1])[0])
    quotes = _kept(best[1])[2]
    lines = "; ".join(line for _, line, _ in found)
    if best[1].as_good_as_quotes:
        end = f"{best[0]} is as good as the quotes and answers alone"
    else:
        end = "no model is as good as the quotes, which come first in its answers"
    return f"{lines}; quotes alone {quotes}: {end}"


def _kept(findings: ModelFindings) -> tuple[int, str, str]:
    """Return how many were right, the line of the model, and what the quotes had."""
    report = json.loads(findings.report)
    counts = report["prompts"][findings.prompts]
    told = f"{report['quotes_right']} of {report['questions']}"
    line = _words(
        report["model"],
        counts["right"],
        report["questions"],
        findings.prompts,
        counts["first_word_s"],
    )
    return int(counts["right"]), line, told


def _line(report: TestReport, taken: Prompts) -> str:
    counts = report.prompts[taken]
    return _words(report.model, counts.right, report.questions, taken, counts.first_word_s)


def _words(model: str, right: int, asked: int, prompts: str, first_word_s: float | None) -> str:
    waits = "" if first_word_s is None else f", first word after {first_word_s:.1f} s"
    return f"{model}: {right} of {asked} with {prompts}{waits}"


_ATTEMPTS = 5
"""Of one question, while its host breaks off."""
_PAUSE_S = 1.0
"""Before the next attempt."""
T = TypeVar("T")

Watch = Callable[[Sequence[ModelReply], int, int], None]
"""Told all replies so far, how much was asked, and of how much; may raise Cancelled."""


@dataclass(frozen=True, slots=True)
class ModelTester:
    """Tests models and keeps what it finds."""

    models: ModelSelector
    answer_writer: AnswerWriter
    grounder: Grounder
    checker: CheckService
    speeds: ModelSpeeds
    store: ModelStore
    options: MannerOptions
    questions: tuple[ExamQuestion, ...] = ()
    """Asked; empty: the built-in ones."""

    def choice(self, model: str | None) -> tuple[ModelChoice, Generator]:
        """Return the model to be tested, by name or as configured.

        Raises:
            ModelNotInstalled: The host does not have it.
            InvalidInput: No model answers here.
        """
        choice = self.models.select(model)
        if choice.model is None:
            why = (
                choice.reason
                or "no model host has a model for this server (documind doctor says more)"
            )
            raise InvalidInput(f"there is no model to test: {why}")
        return choice, choice.model

    def run(
        self,
        model: str | None,
        cancel: CancelToken,
        done: Sequence[ModelReply] = (),
        watch: Watch = lambda _replies, _asked, _total: None,
    ) -> ModelFindings:
        """Ask every question with both prompts, keep what that finds, and return it.

        Args:
            model: Its name; None: the configured one.
            cancel: Ends the test; what was asked is with `watch`.
            done: Replies of a test of the same model that was cut short.
            watch: Told after each reply.

        Raises:
            ModelNotInstalled: The host does not have the model.
            InvalidInput: No model answers here.
            ProviderError: The host failed.
            Cancelled: The token was cancelled, or `watch` said so.
        """
        choice, writer = self.choice(model)
        questions = self.questions or exam_questions()
        replies = list(done)
        asked = {(one.prompts, one.question) for one in replies}
        claims = exam_claims()
        total = len(questions) * len(EVIDENCE) + len(claims)
        for prompts in EVIDENCE:
            for at, question in enumerate(questions):
                if (prompts, at) not in asked:
                    replies.append(self._reply(choice, writer, prompts, at, question, cancel))
                    watch(replies, len(replies), total)
        judges: dict[CheckedBy, Generator] = {"model": writer}
        if choice.judge is not None:
            judges["decision"] = choice.judge
        checks = self._checks(
            judges, claims, cancel, lambda at: watch(replies, len(replies) + at, total)
        )
        found = findings_of(
            self._report(choice, writer, questions, replies, checks),
            datetime.now(UTC).isoformat(timespec="seconds"),
        )
        self.store.keep_findings(choice.profile.digest, writer.name, found)
        return found

    def _reply(
        self,
        choice: ModelChoice,
        writer: Generator,
        prompts: Prompts,
        at: int,
        question: ExamQuestion,
        cancel: CancelToken,
    ) -> ModelReply:
        """Ask one question as a user's question is asked, and say what became of it."""
        how = self._manner(choice, writer, prompts)
        selection, quoted = self._quoted(question)
        absent = not question.expected
        if (
            quoted is None and how.evidence == "short"
        ):  # the engine finds no answer and asks no model
            return ModelReply(
                prompts, at, absent, absent, True, False, False, None, None, None, 0.0
            )
        asked = Question(question.text, "public")
        task = GenerationRequest(asked, question.text, question.evidence, selection, (), how)
        written, prompt_tokens, first_word_s, whole_s = self._written(choice, writer, task, cancel)
        grounded = self.grounder.ground(written.text, question.evidence, question=question.text)
        outcome = choose_outcome(
            quoted, grounded, written.stopped, confident=selection.sufficiency >= CONFIDENT
        )
        own = outcome.model_text or ""
        refused = is_refusal(grounded.text) or (not own and reads_as_refusal(grounded.text))
        marks = [
            citation.cited_by for sentence in grounded.sentences for citation in sentence.citations
        ]
        return ModelReply(
            prompts,
            at,
            right=refused if absent else question.right(without_marks(own)),
            absent=absent,
            refused=refused,
            cited=bool(own),
            own_marks=bool(own) and "model" in marks,
            stopped=None if written.stopped == "repeat" else written.stopped,
            prompt_tokens=prompt_tokens,
            first_word_s=first_word_s,
            whole_s=whole_s,
        )

    def _checks(
        self,
        judges: Mapping[CheckedBy, Generator],
        claims: Sequence[ExamClaim],
        cancel: CancelToken,
        watch: Callable[[int], None],
    ) -> dict[CheckedBy, CheckRates]:
        """Ask models and the reader of each claim whether its passage states it."""
        said: dict[CheckedBy, list[bool]] = {by: [] for by in (*judges, "reader")}
        seconds: dict[CheckedBy, float] = dict.fromkeys(said, 0.0)
        for at, claim in enumerate(claims, 1):
            for by, verdicts in said.items():
                begun = time.perf_counter()
                if by in judges:
                    verdicts.append(self._judged(judges[by], claim, cancel))
                else:
                    checked = self.checker.against(claim.text, claim.passage)
                    verdicts.append(checked.counts.supported > 0)
                seconds[by] += time.perf_counter() - begun
            watch(at)
        return {by: rates(claims, said[by], seconds[by]) for by in said}

    def _judged(self, writer: Generator, claim: ExamClaim, cancel: CancelToken) -> bool:
        prompts = self.answer_writer.prompts
        stream = partial(writer.stream, cancel=cancel)
        yes = self._until_it_answers(
            lambda: states(prompts, claim.text, [claim.passage], stream), cancel
        )
        return yes is not None and yes >= STATES_FROM

    def _written(
        self, choice: ModelChoice, writer: Generator, task: GenerationRequest, cancel: CancelToken
    ) -> tuple[ModelText, int | None, float | None, float]:
        """Return the model's text, tokens read, and seconds to first word and end."""

        def asked() -> tuple[ModelText, int | None, float | None, float]:
            trace = Trace()
            calls = ModelCalls(
                trace,
                cancel,
                self.answer_writer.prompts,
                None,
                lambda name, usage: self.speeds.observe(choice.profile.host, name, usage),
            )
            begun = time.perf_counter()
            written, first_word_s = _timed(write(self.answer_writer, task, writer, calls), begun)
            planned = trace.context.planned if trace.context else None
            tokens = calls.usage.prompt_tokens or planned
            return written, tokens, first_word_s, time.perf_counter() - begun

        return self._until_it_answers(asked, cancel)

    @staticmethod
    def _until_it_answers(ask: Callable[[], T], cancel: CancelToken) -> T:
        """Ask a host that breaks off again: it may have been given something else to do."""
        for _ in range(_ATTEMPTS - 1):
            try:
                return ask()
            except ProviderError as error:
                if not error.retryable:
                    raise
            cancel.wait(_PAUSE_S)
        return ask()

    def _quoted(self, asked: ExamQuestion) -> tuple[Selection, Quote | None]:
        """Return what the engine quotes, without a model."""
        selection = self.answer_writer.extractive.select(asked.text, asked.evidence)
        quote = quote_of(self.grounder, asked.text, selection, asked.evidence, leads=False)
        return selection, quote

    def _manner(self, choice: ModelChoice, writer: Generator, prompts: Prompts) -> PromptPlan:
        speed = self.speeds.of(choice.profile.host, writer.name)
        forced = replace(self.options, prompts=prompts, evidence=EVIDENCE[prompts])
        return replace(manner(choice.profile, speed, forced), leads=False)

    def _report(
        self,
        choice: ModelChoice,
        writer: Generator,
        questions: Sequence[ExamQuestion],
        replies: Sequence[ModelReply],
        checks: Mapping[CheckedBy, CheckRates],
    ) -> TestReport:
        counts = {
            prompts: counted([one for one in replies if one.prompts == prompts])
            for prompts in EVIDENCE
        }
        quotes = 0
        for one in questions:
            _, quoted = self._quoted(one)
            quotes += (
                one.right(without_marks(quoted.text))
                if quoted and one.expected
                else quoted is None and not one.expected
            )
        speed = self.speeds.of(choice.profile.host, writer.name)
        report = TestReport(
            writer.name,
            len(questions),
            quotes,
            counts,
            speed.reading if speed else None,
            speed.writing if speed else None,
            budget_tokens=0,
            budget_s=None,
            checks=checks,
        )
        found = findings_of(report, "")
        budget = manner(replace(choice.profile, findings=found), speed, self.options).budget_tokens
        return replace(
            report,
            budget_tokens=budget,
            budget_s=round(budget / speed.reading, 2) if speed else None,
        )


def _timed(
    steps: Steps[ReadingEvent | TokenEvent, None, ModelText], begun: float
) -> tuple[ModelText, float | None]:
    """Return the text, and seconds until its first word; None if none was shown."""
    first: float | None = None
    while True:
        try:
            event = next(steps)
        except StopIteration as end:
            return end.value, first
        if first is None and isinstance(event, TokenEvent):
            first = time.perf_counter() - begun
