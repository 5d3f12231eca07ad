"""Prompts: read from YAML, checked at load, assembled by one builder in one order.

Packaged files lie in `prompts/`; an overlay directory replaces them file by file.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, cast, get_args

import yaml

from app.core.errors import InvalidInput
from app.core.types import Message, Mode, Reasoning, Scope

# YAML files of prompts: where they lie, and what they may hold.

Part = Literal[
    "role",
    "instruction",
    "context",
    "constraints",
    "style",
    "format",
    "examples",
    "goal",
    "input",
    "reasoning",
    "closing",
]
PARTS: tuple[Part, ...] = get_args(Part)
"""The order in which parts are assembled; only `instruction` is required."""

Parts = Mapping[Part, str]

PLACEHOLDER = re.compile(r"\{([a-z_]+)\}")
_MAX_TEMPERATURE = 2.0  # the highest any supported provider takes


def prompt_files(overlay: Path | None) -> dict[str, Path]:
    """Return packaged files by name, each replaced by its overlay file if any.

    Raises:
        InvalidInput: The overlay is no directory, or holds a prompt that does not exist.
    """
    packaged = Path(__file__).with_name("prompts")
    sources = {path.name: path for path in sorted(packaged.glob("*.yml"))}
    if overlay is None:
        return sources
    if not overlay.is_dir():
        raise InvalidInput(
            f"PROMPTS_DIR {str(overlay)!r} is not a directory; create it or leave the setting empty"
        )
    for path in sorted(overlay.iterdir()):
        if path.suffix not in {".yml", ".yaml"}:
            continue
        if path.name not in sources:
            raise InvalidInput(
                f"{path.name}: no prompt has this name; expected one of {sorted(sources)!r}"
            )
        sources[path.name] = path
    return sources


class PromptFile:
    """A checked YAML file; every complaint names the file and the key."""

    def __init__(self, name: str, sources: Mapping[str, Path]) -> None:
        """Read the file.

        Raises:
            InvalidInput: Not YAML, not UTF-8, or no mapping.
        """
        self._name = name
        try:
            data: object = yaml.safe_load(sources[name].read_text(encoding="utf-8"))
        except yaml.YAMLError as exc:
            raise InvalidInput(f"{name}: not readable as YAML: {exc}") from exc
        except UnicodeDecodeError as exc:
            raise InvalidInput(f"{name}: not UTF-8; save it as UTF-8") from exc
        self._data = self._mapping(data, "top level")

    def only(self, allowed: AbstractSet[str]) -> None:
        """Refuse keys at the top level that are not allowed."""
        self._only(self._data, allowed, "top level")

    def parts(self, key: str, fields: frozenset[str], *, required: bool) -> Parts:
        """Return the prompt parts under a key; `required` asks for an instruction."""
        texts = self.texts(key, {*PARTS} - {"reasoning"}, fields)
        if required and "instruction" not in texts:
            raise InvalidInput(f"{self._name}: {key} lacks the key 'instruction'")
        return cast("Parts", texts)

    def texts(self, key: str, allowed: AbstractSet[str], fields: frozenset[str]) -> dict[str, str]:
        """Return the texts under a key, each with known placeholders only."""
        section = self._mapping(self._data.get(key), key)
        self._only(section, allowed, key)
        found: dict[str, str] = {}
        for name, text in section.items():
            if not isinstance(text, str) or not text.strip():
                raise InvalidInput(f"{self._name}: {key}.{name} must be a text; got {text!r}")
            if unknown := {field for field in PLACEHOLDER.findall(text) if field not in fields}:
                raise InvalidInput(
                    f"{self._name}: {key}.{name} names {sorted(unknown)!r}; placeholders here are"
                    f" {sorted(fields)!r}"
                )
            found[name] = text
        return found

    def turns(self, key: str, fields: frozenset[str]) -> tuple[Message, ...]:
        """Return the example turns under a key, or none.

        Texts alternate between user and assistant.
        """
        texts = self._data.get(key, [])
        if (
            not isinstance(texts, list)
            or len(texts) % 2
            or not all(isinstance(text, str) and text.strip() for text in texts)
        ):
            raise InvalidInput(
                f"{self._name}: {key} must be a list of texts, user and assistant in turn; got"
                f" {texts!r:.80}"
            )
        if unknown := {
            field for text in texts for field in PLACEHOLDER.findall(text) if field not in fields
        }:
            raise InvalidInput(
                f"{self._name}: {key} names {sorted(unknown)!r}; placeholders here are"
                f" {sorted(fields)!r}"
            )
        return tuple(
            Message("assistant" if at % 2 else "user", text.strip())
            for at, text in enumerate(texts)
        )

    def temperature(self) -> float | None:
        """Return the sampling temperature of the file; None where it names none."""
        value = self._data.get("temperature")
        if "temperature" not in self._data:
            return None
        if (
            isinstance(value, bool)
            or not isinstance(value, int | float)
            or not 0 <= value <= _MAX_TEMPERATURE
        ):
            raise InvalidInput(
                f"{self._name}: temperature must be a number from 0 to {_MAX_TEMPERATURE:g}; got"
                f" {value!r}"
            )
        return float(value)

    def choice(self, key: str, allowed: Sequence[str]) -> str | None:
        """Return the value of a key with a fixed set of values; None if missing."""
        value = self._data.get(key)
        if value is not None and value not in allowed:
            raise InvalidInput(
                f"{self._name}: {key} must be one of {sorted(allowed)!r}; got {value!r}"
            )
        return cast("str | None", value)

    def max_tokens(self) -> int:
        """Return the cap on a task's reply, in tokens."""
        value = self._data.get("max_tokens")
        if isinstance(value, bool) or not isinstance(value, int) or value < 1:
            raise InvalidInput(
                f"{self._name}: max_tokens must be a whole number from 1; got {value!r}"
            )
        return value

    def _mapping(self, value: object, where: str) -> dict[str, object]:
        if not isinstance(value, dict) or not all(isinstance(key, str) for key in value):
            raise InvalidInput(
                f"{self._name}: {where} must be a mapping with text keys; got {value!r:.80}"
            )
        return value

    def _only(self, section: Mapping[str, object], allowed: AbstractSet[str], where: str) -> None:
        if unknown := sorted(set(section) - allowed):
            raise InvalidInput(
                f"{self._name}: unknown key {unknown[0]!r} in {where}; expected some of"
                f" {sorted(allowed)!r}"
            )


# The sets of prompts: which there are, what they may hold, and how they are read.

AnswerMode = Literal["general", "compare", "methodology", "reproduce", "summary"]
"""Modes that have a prompt; `datasets` needs no model."""

Task = Literal[
    "rewrite",
    "conversation",
    "hyde",
    "multi_query",
    "flare_draft",
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


# Show every prompt as it is sent, for `documind prompt show`.


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


# Options of generation.


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
