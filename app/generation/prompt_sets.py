"""The sets of prompts: which there are, what they may hold, and how they are read.

`contract.yml` holds what all answer prompts share, one file per mode the rest; every other file is
a task for the helper model (rewriting, summaries, sub-queries, judging).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, cast, get_args

from app.core.errors import InvalidInput
from app.core.types import Message, Reasoning, Scope
from app.generation.prompt_files import PARTS, PLACEHOLDER, Parts, PromptFile

AnswerMode = Literal["general", "compare", "methodology", "reproduce", "summary"]
"""Modes that have a prompt; `datasets` needs no model."""

Task = Literal[
    "rewrite",
    "conversation",
    "hyde",
    "multi_query",
    "flare_draft",
    "flare_question",
    "judge_faithfulness",
    "judge_relevance",
    "judge_claim",
    "structured",
]

_SCOPES: tuple[Scope, ...] = get_args(Scope)
_SYSTEM_PARTS = frozenset({"role", "instruction"})
_TITLED = frozenset(PARTS) - {"role", "instruction", "input", "closing"}
_ANSWER_FIELDS = frozenset({"context", "fence", "question", "refusal"})
_COMPACT_FIELDS = frozenset({"context", "question"})
_TASK_FIELDS: Mapping[Task, frozenset[str]] = {
    "rewrite": frozenset({"history", "question"}),
    "conversation": frozenset({"summary", "history"}),
    "hyde": frozenset({"question", "style"}),
    "multi_query": frozenset({"question", "count"}),
    "flare_draft": frozenset({"context", "fence", "question"}),
    "flare_question": frozenset({"question", "sentence", "span"}),
    "judge_faithfulness": frozenset({"context", "fence", "answer"}),
    "judge_relevance": frozenset({"question", "answer"}),
    "judge_claim": frozenset({"context", "fence", "claim"}),
    "structured": frozenset({"question", "answer", "wishes"}),
}


@dataclass(frozen=True, slots=True)
class AnswerPrompt:
    """One mode over one scope: its parts with the contract's filled in."""

    parts: Parts
    temperature: float | None
    """None: LLM_TEMPERATURE."""
    reasoning: Reasoning | None = None
    """How the model works where the question does not say; None: as configured."""


@dataclass(frozen=True, slots=True)
class CompactPrompt:
    """One mode in a few words, for small models; `max_tokens` caps the answer."""

    parts: Parts
    temperature: float | None
    max_tokens: int


@dataclass(frozen=True, slots=True)
class TaskPrompt:
    """One job for the helper model; `max_tokens` caps its reply."""

    parts: Parts
    temperature: float | None
    max_tokens: int
    fields: frozenset[str]


@dataclass(frozen=True, slots=True)
class BuiltTask:
    """A filled task, ready to send."""

    messages: tuple[Message, ...]
    temperature: float | None
    max_tokens: int


def read_contract(
    sources: Mapping[str, Path],
) -> tuple[Parts, tuple[Message, ...], Mapping[Reasoning, str]]:
    """Return the parts, example turns and ways of working that all answers share.

    Raises:
        InvalidInput: The file is wrong, or lacks a way of working.
    """
    contract = PromptFile("contract.yml", sources)
    contract.only({"parts", "turns", "reasoning"})
    turns = contract.turns("turns", frozenset({"refusal"}))
    shared = contract.parts("parts", _ANSWER_FIELDS, required=False)
    reasoning = contract.texts("reasoning", set(get_args(Reasoning)), _ANSWER_FIELDS)
    if missing := set(get_args(Reasoning)) - set(reasoning):
        raise InvalidInput(f"contract.yml: reasoning lacks {sorted(missing)!r}")
    return shared, turns, cast("Mapping[Reasoning, str]", reasoning)


def read_answers(
    sources: Mapping[str, Path], shared: Parts
) -> dict[tuple[AnswerMode, Scope], AnswerPrompt]:
    """Return the full prompt of every mode and scope."""
    answers: dict[tuple[AnswerMode, Scope], AnswerPrompt] = {}
    for mode in get_args(AnswerMode):
        reader = PromptFile(f"{mode}.yml", sources)
        reader.only({"temperature", "reasoning", *_SCOPES})
        for scope in _SCOPES:
            own = reader.parts(scope, _ANSWER_FIELDS, required=True)
            answers[mode, scope] = AnswerPrompt(
                _merged(shared, own),
                reader.temperature(),
                cast("Reasoning | None", reader.choice("reasoning", get_args(Reasoning))),
            )
    return answers


def read_compact(sources: Mapping[str, Path]) -> dict[AnswerMode, CompactPrompt]:
    """Return the compact prompt of every mode."""
    small = PromptFile("compact.yml", sources)
    small.only({"temperature", "max_tokens", *get_args(AnswerMode)})
    return {
        mode: CompactPrompt(
            small.parts(mode, _COMPACT_FIELDS, required=False),
            small.temperature(),
            small.max_tokens(),
        )
        for mode in get_args(AnswerMode)
    }


def read_tasks(sources: Mapping[str, Path]) -> dict[Task, TaskPrompt]:
    """Return the prompt of every task of the helper model."""
    tasks: dict[Task, TaskPrompt] = {}
    for task, fields in _TASK_FIELDS.items():
        reader = PromptFile(f"{task}.yml", sources)
        reader.only({"parts", "temperature", "max_tokens"})
        tasks[task] = TaskPrompt(
            reader.parts("parts", fields, required=True),
            reader.temperature(),
            reader.max_tokens(),
            fields,
        )
    return tasks


def messages_of(
    parts: Parts, values: Mapping[str, str], history: Sequence[Message]
) -> tuple[Message, ...]:
    """Return the messages of a prompt: system, history, then one of the user."""
    system: list[str] = []
    user: list[str] = []
    for part in PARTS:
        if text := parts.get(part):
            said = filled(text, values).strip()
            (system if part in _SYSTEM_PARTS else user).append(
                f"# {part.capitalize()}\n{said}" if part in _TITLED else said
            )
    told = (Message("system", "\n\n".join(system)),) if system else ()
    return (*told, *history, Message("user", "\n\n".join(user)))


def filled(text: str, values: Mapping[str, str]) -> str:
    """Return a text with its placeholders filled, in one pass."""
    # What was filled in is never read as a template again, so a passage cannot name a
    # placeholder.
    return PLACEHOLDER.sub(lambda match: values.get(match.group(1), match.group()), text)


def _merged(shared: Parts, own: Parts) -> Parts:
    merged = {**shared, **own}
    if "constraints" in shared and "constraints" in own:
        merged["constraints"] = f"{shared['constraints'].rstrip()}\n{own['constraints']}"
    return merged
