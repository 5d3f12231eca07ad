"""How many tokens a text takes, without the model's tokenizer."""

from __future__ import annotations

import math
import re
import threading
from collections.abc import Sequence
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
_MIN_TOKENS = 64
"""Shorter prompts say little: their template weighs too much."""


_WORD = re.compile(r"[^\W_]+(?:['\u2019][^\W_]+)*")


def least_tokens(text: str) -> int:
    """Return how many tokens a text takes at least, with any tokenizer: its words.

    Tokenizers cut at spaces and signs first, so no token holds two words. An apostrophe may stay
    inside a token. A script without spaces has few words, so there the bound is low.
    """
    return sum(1 for _ in _WORD.finditer(text))


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


class TokenCalibrator:
    """Characters per token of each model, learned from finished calls. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._densest: dict[str, float] = {}
        """Lowest characters per token, by model."""

    def estimate(self, model: str) -> TokenEstimate:
        """Return a model's estimate: its densest prompt and the margin, or the default."""
        with self._lock:
            seen = self._densest.get(model, DEFAULT_CHARS_PER_TOKEN)
        return TokenEstimate(seen / _MARGIN)

    def observe(self, model: str, messages: Sequence[str], seen_tokens: int | None) -> bool:
        """Learn from one call, and return whether the host cut its prompt.

        Args:
            model: Name that the ratio belongs to.
            messages: The texts of the prompt.
            seen_tokens: What the host says it read of them (`prompt_eval_count`); None or 0 when it
                does not say.

        Returns:
            True when it read fewer tokens than the prompt has words, so that part of it must be
            missing; nothing is learned then.
        """
        if not seen_tokens:
            return False
        if seen_tokens < sum(map(least_tokens, messages)):
            return True
        content = seen_tokens - MESSAGE_TOKENS * len(messages)
        ratio = sum(map(text_size, messages)) / max(1, content)
        if content >= _MIN_TOKENS and ratio >= _MIN_CHARS_PER_TOKEN:
            with self._lock:
                self._densest[model] = min(self._densest.get(model, ratio), ratio)
        return False
