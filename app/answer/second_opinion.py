"""Ask a model for its own verdict on the sentences of a checked text."""

from __future__ import annotations

import re
import secrets
from dataclasses import dataclass, replace

from app.answer.models import ModelSelector
from app.core.cancel import CancelToken
from app.core.errors import InvalidInput, ModelNotInstalled, ProviderError
from app.core.ports import Generator
from app.core.types import CheckedSentence, CheckReport, Prompt, SecondVerdict
from app.generation.claims import plain_claim
from app.generation.prompts import PromptLibrary

MOST_JUDGED = 100
"""Sentences per request: a model on a small host takes a second for each."""
_WORDS: dict[str, SecondVerdict] = {"yes": "supported", "no": "not_supported"}
_SAID = re.compile(r"\b(yes|no)\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class SecondOpinion:
    """Puts a model's verdict next to that of the check; never changes the check's own."""

    models: ModelSelector
    prompts: PromptLibrary

    def on(self, report: CheckReport, model: str, cancel: CancelToken) -> CheckReport:
        """Return a report in which each sentence with a place has the model's verdict.

        A sentence without a place is `not_supported` unasked: there is nothing to judge it by. The
        verdict is None where the model's reply names none. A model that fails is asked no further:
        what it said before stays, and the report has the reason.

        Args:
            report: What the check found.
            model: The model's name.
            cancel: Ends the calls.

        Raises:
            InvalidInput: No model answers here, or more than MOST_JUDGED sentences would be asked.
            ModelNotInstalled: The host does not have the model.
        """
        choice = self.models.select(model)
        if choice.model is None:
            raise InvalidInput(f"no model can judge: {choice.reason or 'no model host answers'}")
        asked = [one for one in report.sentences if one.findings]
        if len(asked) > MOST_JUDGED:
            raise InvalidInput(
                f"a model judges at most {MOST_JUDGED} sentences at a time, not {len(asked)};"
                " check the text in parts"
            )
        judged, failed = list(report.sentences), None
        try:
            for at, one in enumerate(judged):
                judged[at] = self._sentence(one, choice.model, cancel)
        except ModelNotInstalled:
            raise
        except ProviderError as error:
            failed = error.message
        return replace(
            report, sentences=tuple(judged), judge=choice.model.name, judge_failed=failed
        )

    def _sentence(
        self, one: CheckedSentence, model: Generator, cancel: CancelToken
    ) -> CheckedSentence:
        if one.verdict == "no_claim":
            return one
        if not one.findings:
            return replace(one, judged="not_supported")
        cancel.raise_if_cancelled()
        return replace(one, judged=read_verdict(self._reply(one, model, cancel)))

    def _reply(self, one: CheckedSentence, model: Generator, cancel: CancelToken) -> str:
        fence = secrets.token_hex(8)  # a quote cannot close a fence that it cannot guess
        quotes = dict.fromkeys(finding.quote for finding in one.findings)
        context = "\n\n".join(f"<passage-{fence}>\n{quote}\n</passage-{fence}>" for quote in quotes)
        task = self.prompts.task(
            "judge_claim", context=context, fence=fence, claim=plain_claim(one.text)
        )
        prompt = Prompt(task.messages, temperature=task.temperature, max_tokens=task.max_tokens)
        return "".join(token.text for token in model.stream(prompt, cancel))


def read_verdict(reply: str) -> SecondVerdict | None:
    """Return what the first yes or no of a model's reply says, or None."""
    said = _SAID.search(reply)
    return _WORDS[said.group(1).lower()] if said else None
