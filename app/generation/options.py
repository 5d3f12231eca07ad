"""Options of generation."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from app.core.types import Reasoning


@dataclass(frozen=True, slots=True)
class GenerationOptions:
    """Prompt, budget and grounding knobs."""

    prompts_dir: Path | None = None
    """Overlay for the packaged YAML prompts, file by file."""
    max_tokens: int = 1024
    temperature: float = 0.2
    """Sampling temperature where a prompt names none, [0, 2]."""
    reasoning: Reasoning = "grounded"
    """How a model is told to work where neither the question nor the mode's prompt says."""
    grounding_min_similarity: float = 0.4
    """Probability, [0, 1], from which a passage is about a sentence that it does not say."""
    explicit: tuple[str, ...] = ()
    """Names of those of these options that the user set; they act with every packaged prompt."""
