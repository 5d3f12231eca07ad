"""Let a model judge whether an answer follows from its sources."""

from __future__ import annotations

import json
import secrets
from dataclasses import dataclass

from app.core.cancel import CancelToken
from app.core.ports import Generator
from app.core.types import Answer, Prompt
from app.generation.prompts import PromptLibrary


@dataclass(frozen=True, slots=True)
class Judge:
    """A model that counts which statements of an answer its sources support."""

    generator: Generator
    prompts: PromptLibrary

    def share_supported(self, answer: Answer) -> float | None:
        """Return the share of supported statements in [0, 1], or None.

        None if the model does not reply as asked or counts none.

        Raises:
            ProviderError: The model host failed.
        """
        fence = secrets.token_hex(8)  # a passage cannot close a fence that it cannot guess
        context = "\n\n".join(
            f'<passage-{fence} n="{e.n}">\n{e.hit.passage.chunk.text}\n</passage-{fence}>'
            for e in answer.evidence
        )
        task = self.prompts.task(
            "judge_faithfulness", context=context, fence=fence, answer=answer.text
        )
        prompt = Prompt(task.messages, temperature=task.temperature, max_tokens=task.max_tokens)
        said = "".join(token.text for token in self.generator.stream(prompt, CancelToken()))
        try:
            verdict = json.loads(said[said.index("{") : said.rindex("}") + 1])
            statements, supported = int(verdict["statements"]), int(verdict["supported"])
        except (ValueError, KeyError, TypeError, OverflowError, RecursionError):
            return None
        return min(max(supported / statements, 0.0), 1.0) if statements > 0 else None
