"""Prompts: read from YAML, checked at load, assembled by one builder in one order.

Packaged files lie in `prompts/`; an overlay directory replaces them file by file.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import cast, get_args

from app.core.errors import InvalidInput
from app.core.types import Message, Mode, Reasoning, Scope
from app.generation.prompt_files import prompt_files
from app.generation.prompt_sets import (
    AnswerMode,
    AnswerPrompt,
    BuiltTask,
    CompactPrompt,
    Task,
    TaskPrompt,
    filled,
    messages_of,
    read_answers,
    read_compact,
    read_contract,
    read_tasks,
)

REFUSAL = "I don't have enough information in the provided documents to answer that."
"""The one sentence of an answer that has no evidence; part of the contract with clients."""


@dataclass(frozen=True, slots=True)
class PromptLibrary:
    """All prompts of a server, immutable and safe to share between threads."""

    answers: Mapping[tuple[AnswerMode, Scope], AnswerPrompt]
    compact: Mapping[AnswerMode, CompactPrompt]
    turns: tuple[Message, ...]
    """The contract's example, as turns of a chat."""
    reasoning: Mapping[Reasoning, str]
    tasks: Mapping[Task, TaskPrompt]
    sources: Mapping[str, Path]
    """File name to the path it was read from, overlay or packaged."""

    @staticmethod
    def load(overlay: Path | None = None) -> PromptLibrary:
        """Read the packaged prompts; overlay files of the same name replace them.

        Args:
            overlay: Directory with YAML files named like the packaged ones; None for the packaged
                ones alone.

        Raises:
            InvalidInput: The directory is missing, a file has an unknown name, is not YAML, holds
                an unknown key, lacks a required one, or uses a placeholder that its prompt does not
                have; the message names file and key.
        """
        try:
            return PromptLibrary._read(prompt_files(overlay))
        except InvalidInput as error:
            if overlay is None or "PROMPTS_DIR" in error.message:
                raise
            raise InvalidInput(f"PROMPTS_DIR {str(overlay)!r}: {error.message}") from error

    @staticmethod
    def _read(sources: Mapping[str, Path]) -> PromptLibrary:
        shared, turns, reasoning = read_contract(sources)
        return PromptLibrary(
            read_answers(sources, shared),
            read_compact(sources),
            turns,
            reasoning,
            read_tasks(sources),
            sources,
        )

    def build(
        self,
        mode: Mode,
        library: Scope,
        question: str,
        context_text: str,
        history: Sequence[Message] = (),
        *,
        fence: str = "",
        reasoning: Reasoning = "grounded",
    ) -> tuple[Message, ...]:
        """Return the messages of an answer prompt.

        Role and instruction are the system message; the history follows; everything else, context
        first and closing last, is one user message. With an empty context the context part is left
        out.

        Args:
            mode: What the answer is for; `datasets` has no prompt.
            library: The library asked.
            question: The user's own words.
            context_text: Fenced passages as `context_plan.plan_context` renders them.
            history: Earlier turns, oldest first.
            fence: The delimiter that `context_text` was fenced with.
            reasoning: How the model is told to work.

        Raises:
            InvalidInput: The mode has no prompt.
        """
        prompt = self.answer(mode, library)
        parts = dict(prompt.parts)
        parts["reasoning"] = self.reasoning[reasoning]
        if not context_text:
            parts.pop("context", None)
        values = {"context": context_text, "fence": fence, "question": question, "refusal": REFUSAL}
        example = tuple(Message(turn.role, filled(turn.content, values)) for turn in self.turns)
        system, *rest = messages_of(parts, values, history)
        return (system, *example, *rest)

    def small(
        self, mode: Mode, question: str, context_text: str, reasoning: Reasoning = "grounded"
    ) -> tuple[Message, ...]:
        """Return a compact prompt's messages: the facts, then the question.

        A way of working other than the usual one is said too.

        Raises:
            InvalidInput: The mode has no prompt.
        """
        prompt = self.compact.get(cast("AnswerMode", mode))
        if prompt is None:
            raise InvalidInput(
                f"mode {mode!r} has no compact prompt; expected one of {get_args(AnswerMode)!r}"
            )
        parts = dict(prompt.parts)
        if reasoning != "grounded":
            parts["reasoning"] = self.reasoning[reasoning]
        values = {"context": context_text, "fence": "", "question": question, "refusal": REFUSAL}
        return messages_of(parts, values, ())

    def is_overlaid(self, name: str) -> bool:
        """Return whether a file, by its name without ending, is the user's own."""
        return self.sources[f"{name}.yml"].parent != Path(__file__).with_name("prompts")

    def instructions(self) -> tuple[str, ...]:
        """Return every instruction text of answer prompts, once, with placeholders."""
        parts = [prompt.parts for prompt in self.answers.values()] + [
            prompt.parts for prompt in self.compact.values()
        ]
        told = (text for one in parts for text in one.values())
        return tuple(dict.fromkeys((*told, *self.reasoning.values())))

    def answer(self, mode: Mode, library: Scope) -> AnswerPrompt:
        """Return the prompt of a mode and library.

        Raises:
            InvalidInput: The mode has no prompt.
        """
        found = self.answers.get((cast("AnswerMode", mode), library))
        if found is None:
            raise InvalidInput(
                f"mode {mode!r} over library {library!r} has no prompt; expected one of"
                f" {get_args(AnswerMode)!r}"
            )
        return found

    def task(self, name: Task, **values: str) -> BuiltTask:
        """Return a helper task with its placeholders filled.

        Raises:
            ValueError: A placeholder of the task has no value, or a value has no placeholder.
        """
        prompt = self.tasks[name]
        if set(values) != prompt.fields:
            raise ValueError(
                f"task {name!r} takes {sorted(prompt.fields)!r}; got {sorted(values)!r}"
            )
        return BuiltTask(
            messages_of(prompt.parts, values, ()), prompt.temperature, prompt.max_tokens
        )

    @staticmethod
    def check(overlay: Path | None) -> list[str]:
        """Return an overlay's faults, one line a file, for `documind prompt check`.

        Empty if it loads.
        """
        problems: list[str] = []
        try:
            PromptLibrary.load(overlay)
        except InvalidInput as error:
            problems.append(error.message)
        return problems
