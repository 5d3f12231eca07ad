"""Prompts: read from YAML, checked at load, assembled by one builder in one order.

Packaged files lie in `prompts/`; an overlay directory replaces them file by file. `contract.yml`
holds what all answer prompts share, one file per mode the rest; every other file is a task for the
helper model (rewriting, summaries, sub-queries, judging).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, cast, get_args

from app.core.errors import InvalidInput
from app.core.types import Message, Mode, Reasoning, Scope
from app.generation.prompt_files import PARTS, PLACEHOLDER, Parts, PromptFile, prompt_files

REFUSAL = "I don't have enough information in the provided documents to answer that."
"""The one sentence of an answer that has no evidence; part of the contract with clients."""

AnswerMode = Literal["general", "compare", "methodology", "reproduce"]
"""Modes that have a prompt; `datasets` needs no model."""

Task = Literal[
    "rewrite",
    "summary",
    "hyde",
    "multi_query",
    "flare_draft",
    "flare_question",
    "judge_faithfulness",
    "judge_relevance",
    "structured",
]

_SCOPES: tuple[Scope, ...] = get_args(Scope)
_SYSTEM_PARTS = frozenset({"role", "instruction"})
_TITLED = frozenset(PARTS) - {"role", "instruction", "input", "closing"}
_ANSWER_FIELDS = frozenset({"context", "fence", "question", "refusal"})
_COMPACT_FIELDS = frozenset({"context", "question"})
_TASK_FIELDS: Mapping[Task, frozenset[str]] = {
    "rewrite": frozenset({"history", "question"}),
    "summary": frozenset({"summary", "history"}),
    "hyde": frozenset({"question", "style"}),
    "multi_query": frozenset({"question", "count"}),
    "flare_draft": frozenset({"context", "fence", "question"}),
    "flare_question": frozenset({"question", "sentence", "span"}),
    "judge_faithfulness": frozenset({"context", "fence", "answer"}),
    "judge_relevance": frozenset({"question", "answer"}),
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
        contract = PromptFile("contract.yml", sources)
        contract.only({"parts", "turns", "reasoning"})
        turns = contract.turns("turns", frozenset({"refusal"}))
        shared = contract.parts("parts", _ANSWER_FIELDS, required=False)
        reasoning = contract.texts("reasoning", set(get_args(Reasoning)), _ANSWER_FIELDS)
        if missing := set(get_args(Reasoning)) - set(reasoning):
            raise InvalidInput(f"contract.yml: reasoning lacks {sorted(missing)!r}")
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
        small = PromptFile("compact.yml", sources)
        small.only({"temperature", "max_tokens", *get_args(AnswerMode)})
        compact: dict[AnswerMode, CompactPrompt] = {
            mode: CompactPrompt(
                small.parts(mode, _COMPACT_FIELDS, required=False),
                small.temperature(),
                small.max_tokens(),
            )
            for mode in get_args(AnswerMode)
        }
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
        return PromptLibrary(
            answers, compact, turns, cast("Mapping[Reasoning, str]", reasoning), tasks, sources
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
            context_text: Fenced passages as `context.plan_context` renders them.
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
        example = tuple(Message(turn.role, _filled(turn.content, values)) for turn in self.turns)
        system, *rest = _messages(parts, values, history)
        return (system, *example, *rest)

    def small(self, mode: Mode, question: str, context_text: str) -> tuple[Message, ...]:
        """Return a compact prompt's messages: the facts, then the question.

        Raises:
            InvalidInput: The mode has no prompt.
        """
        prompt = self.compact.get(cast("AnswerMode", mode))
        if prompt is None:
            raise InvalidInput(
                f"mode {mode!r} has no compact prompt; expected one of {get_args(AnswerMode)!r}"
            )
        return _messages(prompt.parts, {"context": context_text, "question": question}, ())

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
                f"mode {mode!r} over library {library!r} has no prompt; expected one of {get_args(AnswerMode)!r}"
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
        return BuiltTask(_messages(prompt.parts, values, ()), prompt.temperature, prompt.max_tokens)

    def describe(self) -> str:
        """Return every prompt as sent, with placeholders, for `documind prompt show`."""
        blocks: list[str] = []
        for (mode, scope), answer in self.answers.items():
            parts = {**answer.parts, "reasoning": self.reasoning[answer.reasoning or "grounded"]}
            blocks.append(
                f"== {mode} / {scope}  ({_temperature(answer.temperature)})\n{_rendered(_messages(parts, {}, ()))}"
            )
        for mode, small in self.compact.items():
            head = f"== compact {mode}  ({_temperature(small.temperature)}, at most {small.max_tokens} tokens)"
            blocks.append(f"{head}\n{_rendered(_messages(small.parts, {}, ()))}")
        for name, task in self.tasks.items():
            head = (
                f"== {name}  ({_temperature(task.temperature)}, at most {task.max_tokens} tokens)"
            )
            blocks.append(f"{head}\n{_rendered(_messages(task.parts, {}, ()))}")
        return "\n\n".join(blocks) + "\n"

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


def _temperature(value: float | None) -> str:
    return "temperature as LLM_TEMPERATURE" if value is None else f"temperature {value:g}"


def _messages(
    parts: Parts, values: Mapping[str, str], history: Sequence[Message]
) -> tuple[Message, ...]:
    system: list[str] = []
    user: list[str] = []
    for part in PARTS:
        if text := parts.get(part):
            filled = _filled(text, values).strip()
            (system if part in _SYSTEM_PARTS else user).append(
                f"# {part.capitalize()}\n{filled}" if part in _TITLED else filled
            )
    told = (Message("system", "\n\n".join(system)),) if system else ()
    return (*told, *history, Message("user", "\n\n".join(user)))


def _filled(text: str, values: Mapping[str, str]) -> str:
    # One pass: what was filled in is never read as a template again, so a passage cannot name a
    # placeholder.
    return PLACEHOLDER.sub(lambda match: values.get(match.group(1), match.group()), text)


def _rendered(messages: Sequence[Message]) -> str:
    return "\n".join(f"-- {message.role}\n{message.content}" for message in messages)


def _merged(shared: Parts, own: Parts) -> Parts:
    merged = {**shared, **own}
    if "constraints" in shared and "constraints" in own:
        merged["constraints"] = f"{shared['constraints'].rstrip()}\n{own['constraints']}"
    return merged
