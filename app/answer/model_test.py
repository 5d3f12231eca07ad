"""Test a model on built-in questions, as the product asks, with both prompts.

It takes the same path as an answer, from the quote over the prompt and the guards to the check of
every sentence, over passages in memory: no index is searched and nothing of the user's is read.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from collections.abc import Generator as Steps
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from app.answer.exam_questions import ExamQuestion, exam_questions
from app.answer.manner import Manner, MannerOptions, manner
from app.answer.model_advice import EVIDENCE, ModelReply, Prompts, TestReport, counted, findings_of
from app.answer.models import ModelCalls, ModelChoice, ModelSelector
from app.answer.outcome import is_refusal, reads_as_refusal, settle
from app.answer.speeds import ModelSpeeds
from app.answer.writing import CONFIDENT, AnswerWriter, Assignment, ModelText, quote_of, write
from app.core.cancel import CancelToken
from app.core.errors import InvalidInput, ProviderError
from app.core.ports import Generator, ModelStore
from app.core.trace import Trace
from app.core.types import ModelFindings, Question, ReadingEvent, TokenEvent
from app.generation.citations import without_marks
from app.generation.grounding import Grounder

_ATTEMPTS = 5
"""Of one question, while its host breaks off."""
_PAUSE_S = 1.0
"""Before the next attempt."""

Watch = Callable[[Sequence[ModelReply], int], None]
"""Told all replies so far and how many there will be; may raise Cancelled."""


@dataclass(frozen=True, slots=True)
class ModelTester:
    """Tests models and keeps what it finds."""

    models: ModelSelector
    answer_writer: AnswerWriter
    grounder: Grounder
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
        watch: Watch = lambda _replies, _total: None,
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
        total = len(questions) * len(EVIDENCE)
        for prompts in EVIDENCE:
            for at, question in enumerate(questions):
                if (prompts, at) not in asked:
                    replies.append(self._reply(choice, writer, prompts, at, question, cancel))
                    watch(replies, total)
        found = findings_of(
            self._report(choice, writer, questions, replies),
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
        selection, quoted = quote_of(
            self.answer_writer, self.grounder, question.text, question.evidence, leads=False
        )
        absent = not question.expected
        if (
            quoted is None and how.evidence == "short"
        ):  # the engine finds no answer and asks no model
            return ModelReply(
                prompts, at, absent, absent, True, False, False, None, None, None, 0.0
            )
        parameters = choice.profile.parameters
        few = prompts == "compact" and (
            parameters is None or parameters < self.answer_writer.few_below
        )
        asked = Question(question.text, "public")
        task = Assignment(
            asked,
            question.text,
            question.evidence,
            selection,
            (),
            how,
            few,
            self.answer_writer.reasoning(asked),
        )
        written, prompt_tokens, first_word_s, whole_s = self._written(choice, writer, task, cancel)
        grounded = self.grounder.ground(written.text, question.evidence, question=question.text)
        outcome = settle(
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
            stopped=written.stopped,
            prompt_tokens=prompt_tokens,
            first_word_s=first_word_s,
            whole_s=whole_s,
        )

    def _written(
        self, choice: ModelChoice, writer: Generator, task: Assignment, cancel: CancelToken
    ) -> tuple[ModelText, int | None, float | None, float]:
        """Return the model's text, tokens read, and seconds to first word and end.

        A host that breaks off is asked again: it may have been given something else to do.
        """
        for attempt in range(1, _ATTEMPTS + 1):
            trace = Trace()
            calls = ModelCalls(
                trace,
                cancel,
                self.answer_writer.prompts,
                None,
                lambda name, usage: self.speeds.observe(choice.profile.host, name, usage),
            )
            begun = time.perf_counter()
            try:
                written, first_word_s = _timed(
                    write(self.answer_writer, task, writer, calls), begun
                )
            except ProviderError as error:
                if not error.retryable or attempt == _ATTEMPTS:
                    raise
                cancel.wait(_PAUSE_S)
            else:
                planned = trace.context.planned if trace.context else None
                return (
                    written,
                    calls.usage.prompt_tokens or planned,
                    first_word_s,
                    time.perf_counter() - begun,
                )
        raise AssertionError("the last attempt returns or raises")

    def _manner(self, choice: ModelChoice, writer: Generator, prompts: Prompts) -> Manner:
        speed = self.speeds.of(choice.profile.host, writer.name)
        forced = replace(self.options, prompts=prompts, evidence=EVIDENCE[prompts])
        return replace(manner(choice.profile, speed, forced), leads=False)

    def _report(
        self,
        choice: ModelChoice,
        writer: Generator,
        questions: Sequence[ExamQuestion],
        replies: Sequence[ModelReply],
    ) -> TestReport:
        counts = {
            prompts: counted([one for one in replies if one.prompts == prompts])
            for prompts in EVIDENCE
        }
        quotes = 0
        for one in questions:
            _, quoted = quote_of(
                self.answer_writer, self.grounder, one.text, one.evidence, leads=False
            )
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
