"""Find answer sentences that repeat the prompt instead of the passages."""

from __future__ import annotations

from collections.abc import Iterable

from app.core.sentences import sentence_spans
from app.generation.citations import MARK
from app.generation.prompt_files import PLACEHOLDER
from app.generation.reading import Claim, content_tokens
from app.generation.support_rows import longest_run

_REPEATED = 0.8
"""Share of a sentence's content words in one run of an instruction from which it repeats it."""
_FEWEST = 3
"""Content words; what is shorter is said by chance."""


class PromptEcho:
    """Knows a prompt's sentences."""

    def __init__(self, prompts: Iterable[str]) -> None:
        """Read the prompts; what is filled in between their words is left out.

        Args:
            prompts: Texts with or without placeholders.
        """
        texts = [MARK.sub(" ", PLACEHOLDER.sub("\n\n", prompt)) for prompt in prompts]
        pieces = {text[start:end] for text in texts for start, end in sentence_spans(text)}
        self._told = [
            tokens for piece in sorted(pieces) if len(tokens := content_tokens(piece)) >= _FEWEST
        ]

    def repeats(self, claim: Claim) -> bool:
        """Return whether a claim is one of the prompt's sentences, or nearly."""
        said = claim.content
        least = max(_FEWEST, _REPEATED * len(said))
        return len(said) >= _FEWEST and any(
            longest_run(said, told) >= least
            for told in self._told
            if not claim.wanted.isdisjoint(told)
        )
