"""Show every prompt as it is sent, for `documind prompt show`."""

from __future__ import annotations

from collections.abc import Sequence

from app.core.types import Message
from app.generation.prompt_sets import messages_of
from app.generation.prompts import PromptLibrary


def described(library: PromptLibrary) -> str:
    """Return every prompt with its placeholders, temperature and limits."""
    blocks: list[str] = []
    for (mode, scope), answer in library.answers.items():
        parts = {**answer.parts, "reasoning": library.reasoning[answer.reasoning or "grounded"]}
        blocks.append(
            f"== {mode} / {scope} "
            f" ({_temperature(answer.temperature)})\n{_rendered(messages_of(parts, {}, ()))}"
        )
    for mode, small in library.compact.items():
        head = (
            f"== compact {mode}  ({_temperature(small.temperature)}, at most {small.max_tokens}"
            " tokens)"
        )
        blocks.append(f"{head}\n{_rendered(messages_of(small.parts, {}, ()))}")
    for name, task in library.tasks.items():
        head = f"== {name}  ({_temperature(task.temperature)}, at most {task.max_tokens} tokens)"
        blocks.append(f"{head}\n{_rendered(messages_of(task.parts, {}, ()))}")
    return "\n\n".join(blocks) + "\n"


def _temperature(value: float | None) -> str:
    return "temperature as LLM_TEMPERATURE" if value is None else f"temperature {value:g}"


def _rendered(messages: Sequence[Message]) -> str:
    return "\n".join(f"-- {message.role}\n{message.content}" for message in messages)
