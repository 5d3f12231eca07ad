"""Estimate tokens without the model's tokenizer.

Tokenizers are remote and differ, so the ratio of text to tokens is learned per model from what the
host says it read (`prompt_eval_count`), and every estimate carries a margin on the safe side.
"""

from __future__ import annotations

import math
import threading
from dataclasses import dataclass

MESSAGE_TOKENS = 8
"""What a chat template adds around one message, role marks and separators: 4 to 7 in those of
llama, qwen, gemma and mistral."""

DEFAULT_CHARS_PER_TOKEN = 3.0
"""Before anything was observed. English prose has 4 to 5 in present tokenizers, tables, code and
formulas about 3."""

_MARGIN = 1.1
"""Estimates are this much over the densest text seen, for text that is denser still."""
_MIN_CHARS_PER_TOKEN = 1.0
"""No tokenizer makes more than one token of a byte; a host that says so miscounts."""
_MAX_CHARS_PER_TOKEN = 6.5
"""No tokenizer in use packs prose tighter over a whole prompt; beyond it, a prompt was cut."""
_SLACK = 1.15
"""A prompt may be this much looser than any seen before it is taken for cut."""
_MIN_TOKENS = 64
"""Shorter prompts say little: their template weighs too much."""


def text_size(text: str) -> int:
    """Return a text's size in UTF-8 bytes.

    Other scripts than ASCII need more bytes and more tokens per character.
    """
    return len(text) if text.isascii() else len(text.encode("utf-8", "replace"))


@dataclass(frozen=True, slots=True)
class TokenEstimate:
    """Over-estimates tokens; `chars_per_token` counts UTF-8 bytes, with margin."""

    chars_per_token: float = DEFAULT_CHARS_PER_TOKEN / _MARGIN

    def tokens(self, text: str) -> int:
        """Return how many tokens the text takes at most, as far as is known."""
        return math.ceil(text_size(text) / self.chars_per_token)


@dataclass(frozen=True, slots=True)
class _Range:
    lowest: float
    highest: float


class TokenCalibrator:
    """Characters per token of each model, learned from finished calls. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._seen: dict[str, _Range] = {}

    def estimate(self, model: str) -> TokenEstimate:
        """Return a model's estimate: its densest prompt and the margin, or the default."""
        with self._lock:
            seen = self._seen.get(model)
        return TokenEstimate((seen.lowest if seen else DEFAULT_CHARS_PER_TOKEN) / _MARGIN)

    def observe(self, model: str, prompt_size: int, messages: int, seen_tokens: int | None) -> bool:
        """Learn from one call, and return whether the host cut its prompt.

        Args:
            model: Name that the ratio belongs to.
            prompt_size: `text_size` of all messages together.
            messages: How many there were.
            seen_tokens: What the host says it read (`prompt_eval_count`); None or 0 when it does
                not say.

        Returns:
            True when so few tokens were read that part of the prompt must be missing; nothing is
            learned then.
        """
        if not seen_tokens:
            return False
        content = max(1, seen_tokens - MESSAGE_TOKENS * messages)
        ratio = prompt_size / content
        with self._lock:
            known = self._seen.get(model)
            bound = (
                min(_MAX_CHARS_PER_TOKEN, known.highest * _SLACK) if known else _MAX_CHARS_PER_TOKEN
            )
            if ratio > bound and prompt_size / bound > _MIN_TOKENS:
                return True
            if content >= _MIN_TOKENS and ratio >= _MIN_CHARS_PER_TOKEN:
                lowest = min(known.lowest, ratio) if known else ratio
                highest = max(known.highest, ratio) if known else ratio
                self._seen[model] = _Range(lowest, highest)
        return False
