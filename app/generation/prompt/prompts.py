"""Prompts: read from YAML, checked at load, assembled by one builder in one order.

Packaged files lie in `templates/`; an overlay directory replaces them file by file.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Literal, TypeVar, cast, get_args

import yaml
from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    Strict,
    ValidationError,
    ValidationInfo,
)

from app.core.errors import InvalidInput
from app.core.text import fault_in_words
from app.core.types import REFUSAL, Message, Mode, Prompt, Reasoning, Scope

AnswerMode = Literal["general", "compare", "methodology", "reproduce", "summary"]
"""Modes that have a prompt; `datasets` needs no model."""

Task = Literal[
    "rewrite",
    "translate",
    "conversation",
    "hyde",
    "multi_query",
    "flare_draft",
    "judge_faithfulness",
    "judge_relevance",
    "judge_claim",
    "structured",
]
TASK_FIELDS: Mapping[Task, frozenset[str]] = {
    "rewrite": frozenset({"history", "question"}),
    "translate": frozenset({"question", "language"}),
    "conversation": frozenset({"summary", "history"}),
    "hyde": frozenset({"question", "style"}),
    "multi_query": frozenset({"question", "count"}),
    "flare_draft": frozenset({"context", "fence", "question"}),
    "judge_faithfulness": frozenset({"context", "fence", "answer"}),
    "judge_relevance": frozenset({"question", "answer"}),
    "judge_claim": frozenset({"context", "fence", "claim"}),
    "structured": frozenset({"question", "answer", "wishes"}),
}
"""The placeholders of each task."""
_ANSWER_FIELDS = frozenset({"context", "fence", "question", "refusal"})
_COMPACT_FIELDS = frozenset({"context", "question"})
PLACEHOLDER = re.compile(r"\{([a-z_]+)\}")

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
    "closing",
]
"""What a file may hold of a prompt."""
PARTS = (*get_args(Part)[:-1], "reasoning", "closing")
"""The order in which parts are assembled."""
_SYSTEM_PARTS = frozenset({"role", "instruction"})
_TITLED = frozenset(PARTS) - {"role", "instruction", "input", "closing"}

# YAML files of prompts: where they lie, and what they may hold.


def _known(text: str, info: ValidationInfo) -> str:
    """Return a text whose placeholders are all among those of its file, the context."""
    if not text.strip():
        raise ValueError("it must not be empty")
    fields: frozenset[str] = info.context or frozenset()
    if unknown := set(PLACEHOLDER.findall(text)) - fields:
        raise ValueError(f"it names {sorted(unknown)!r}; placeholders are {sorted(fields)!r}")
    return text


def _instructing(parts: dict[Part, str]) -> dict[Part, str]:
    if "instruction" not in parts:
        raise ValueError("it lacks the key 'instruction'")
    return parts


def _in_turn(texts: tuple[str, ...]) -> tuple[str, ...]:
    if len(texts) % 2:
        raise ValueError("it must be a list of texts, user and assistant in turn")
    return texts


def _complete(ways: dict[Reasoning, str]) -> dict[Reasoning, str]:
    if missing := set(get_args(Reasoning)) - set(ways):
        raise ValueError(f"it lacks {sorted(missing)!r}")
    return ways


_Text = Annotated[str, AfterValidator(_known)]
_Parts = dict[Part, _Text]
_Whole = Annotated[_Parts, AfterValidator(_instructing)]
_Temperature = Annotated[float, Strict(), Field(ge=0, le=2)]  # 2: the highest any provider takes
_Tokens = Annotated[int, Strict(), Field(ge=1)]


class _File(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)


class _Contract(_File):
    parts: _Parts
    turns: Annotated[tuple[_Text, ...], AfterValidator(_in_turn)] = ()
    reasoning: Annotated[dict[Reasoning, _Text], AfterValidator(_complete)]


class _AnswerFile(_File):
    temperature: _Temperature | None = None
    reasoning: Reasoning | None = None
    papers: _Whole
    public: _Whole
    all: _Whole


class _CompactFile(_File):
    temperature: _Temperature | None = None
    max_tokens: _Tokens
    general: _Parts
    compare: _Parts
    methodology: _Parts
    reproduce: _Parts
    summary: _Parts


class _TaskFile(_File):
    temperature: _Temperature | None = None
    max_tokens: _Tokens
    parts: _Whole


def prompt_files(overlay: Path | None) -> dict[str, Path]:
    """Return packaged files by name, each replaced by its overlay file if any.

    Raises:
        InvalidInput: The overlay is no directory, or holds a prompt that does not exist.
    """
    packaged = Path(__file__).with_name("templates")
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
                f"PROMPTS_DIR {str(overlay)!r}: {path.name}: no prompt has this name; expected one"
                f" of {sorted(sources)!r}"
            )
        sources[path.name] = path
    return sources


_Read = TypeVar("_Read", bound=_File)


def _read(kind: type[_Read], path: Path, fields: frozenset[str]) -> _Read:
    """Return a checked file.

    Raises:
        InvalidInput: It is not YAML, not UTF-8, or not of this kind; the message names the key.
    """
    try:
        data: object = yaml.safe_load(path.read_text(encoding="utf-8"))
        return kind.model_validate(data, context=fields)
    except yaml.YAMLError as exc:
        raise InvalidInput(f"{path.name}: not readable as YAML: {exc}") from exc
    except UnicodeDecodeError as exc:
        raise InvalidInput(f"{path.name}: not UTF-8; save it as UTF-8") from exc
    except ValidationError as exc:
        faults = exc.errors()
        mistyped = (one for one in faults if one["type"] == "extra_forbidden")
        found = next(mistyped, faults[0])  # it tells more than the key that is missing therefore
        key = ".".join(str(step) for step in found["loc"] if step != "[key]") or "the file"
        said = fault_in_words(found["type"], found.get("ctx", {}), found["msg"])
        got = f"; got {found['input']!r:.80}"
        known = {"missing": "", "extra_forbidden": f"; expected some of {list(kind.model_fields)}"}
        got = known.get(found["type"], got)
        raise InvalidInput(f"{path.name}: {key}{said}{got}") from exc


# The prompts of a server, and how one is built.


@dataclass(frozen=True, slots=True)
class PromptText:
    """One prompt: of a mode over one scope, of a mode in a few words, or of a task."""

    parts: Mapping[str, str]
    """By name, those of the contract filled in."""
    temperature: float | None
    """None: LLM_TEMPERATURE."""
    max_tokens: int | None = None
    """Cap on the reply; None: as configured."""
    reasoning: Reasoning | None = None
    """How the model works where the question does not say; None: as configured."""

    def messages(
        self, values: Mapping[str, str], history: Sequence[Message] = ()
    ) -> tuple[Message, ...]:
        """Return role and instruction as the system message, history, and one of the user."""
        system: list[str] = []
        user: list[str] = []
        for part in PARTS:
            if text := self.parts.get(part):
                said = _filled(text, values).strip()
                (system if part in _SYSTEM_PARTS else user).append(
                    f"# {part.capitalize()}\n{said}" if part in _TITLED else said
                )
        told = (Message("system", "\n\n".join(system)),) if system else ()
        return (*told, *history, Message("user", "\n\n".join(user)))


def _filled(text: str, values: Mapping[str, str]) -> str:
    """Return a text with its placeholders filled, in one pass."""
    # What was filled in is never read as a template again, so a passage cannot name a
    # placeholder.
    return PLACEHOLDER.sub(lambda match: values.get(match.group(1), match.group()), text)


def _merged(shared: _Parts, own: _Parts) -> dict[str, str]:
    """Return a prompt's parts; its own replace those shared, but constraints of both count."""
    merged: dict[str, str] = {name: text for parts in (shared, own) for name, text in parts.items()}
    if "constraints" in shared and "constraints" in own:
        merged["constraints"] = f"{shared['constraints'].rstrip()}\n{own['constraints']}"
    return merged


@dataclass(frozen=True, slots=True)
class PromptLibrary:
    """All prompts of a server, immutable and safe to share between threads."""

    answers: Mapping[tuple[AnswerMode, Scope], PromptText]
    compact: Mapping[AnswerMode, PromptText]
    """In a few words, for small models."""
    turns: tuple[Message, ...]
    """The contract's example, as turns of a chat."""
    reasoning: Mapping[Reasoning, str]
    tasks: Mapping[Task, PromptText]
    """Jobs for the helper model."""
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
        sources = prompt_files(overlay)
        try:
            return PromptLibrary._of(sources)
        except InvalidInput as error:
            if overlay is None:
                raise
            raise InvalidInput(f"PROMPTS_DIR {str(overlay)!r}: {error.message}") from error

    @staticmethod
    def _of(sources: Mapping[str, Path]) -> PromptLibrary:
        contract = _read(_Contract, sources["contract.yml"], _ANSWER_FIELDS)
        compact = _read(_CompactFile, sources["compact.yml"], _COMPACT_FIELDS)
        answers: dict[tuple[AnswerMode, Scope], PromptText] = {}
        small: dict[AnswerMode, PromptText] = {}
        for mode in get_args(AnswerMode):
            own = _read(_AnswerFile, sources[f"{mode}.yml"], _ANSWER_FIELDS)
            for scope in get_args(Scope):
                parts = _merged(contract.parts, getattr(own, scope))
                answers[mode, scope] = PromptText(parts, own.temperature, None, own.reasoning)
            parts = _merged({}, getattr(compact, mode))
            small[mode] = PromptText(parts, compact.temperature, compact.max_tokens)
        tasks: dict[Task, PromptText] = {}
        for task, fields in TASK_FIELDS.items():
            one = _read(_TaskFile, sources[f"{task}.yml"], fields)
            tasks[task] = PromptText(_merged({}, one.parts), one.temperature, one.max_tokens)
        return PromptLibrary(
            answers,
            small,
            tuple(
                Message("assistant" if at % 2 else "user", text.strip())
                for at, text in enumerate(contract.turns)
            ),
            contract.reasoning,
            tasks,
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
        compact: bool = False,
    ) -> tuple[Message, ...]:
        """Return the messages of an answer prompt.

        Role and instruction are the system message; example and history follow; everything else,
        context first and closing last, is one user message. A compact prompt has no example, and
        says only a way of working that is not the usual one.

        Args:
            mode: What the answer is for; `datasets` has no prompt.
            library: The library asked.
            question: The user's own words.
            context_text: Fenced passages as `context.plan_context` renders them.
            history: Earlier turns, oldest first.
            fence: The delimiter that `context_text` was fenced with.
            reasoning: How the model is told to work.
            compact: The prompt in a few words.

        Raises:
            InvalidInput: The mode has no prompt.
        """
        prompt = self.answer(mode, library, compact=compact)
        values = {"context": context_text, "fence": fence, "question": question, "refusal": REFUSAL}
        if not compact or reasoning != "grounded":
            prompt = self._working(prompt, reasoning)
        if compact:
            return prompt.messages(values, history)
        example = (Message(turn.role, _filled(turn.content, values)) for turn in self.turns)
        system, *rest = prompt.messages(values, history)
        return (system, *example, *rest)

    def _working(self, prompt: PromptText, reasoning: Reasoning) -> PromptText:
        return replace(prompt, parts={**prompt.parts, "reasoning": self.reasoning[reasoning]})

    def is_overlaid(self, name: str) -> bool:
        """Return whether a file, by its name without ending, is the user's own."""
        return self.sources[f"{name}.yml"].parent != Path(__file__).with_name("templates")

    def instructions(self) -> tuple[str, ...]:
        """Return every instruction text of answer prompts, once, with placeholders."""
        prompts = (*self.answers.values(), *self.compact.values())
        told = (text for prompt in prompts for text in prompt.parts.values())
        return tuple(dict.fromkeys((*told, *self.reasoning.values())))

    def answer(self, mode: Mode, library: Scope, *, compact: bool = False) -> PromptText:
        """Return the prompt of a mode over a library; the compact one is the same for all.

        Raises:
            InvalidInput: The mode has no prompt.
        """
        if mode not in get_args(AnswerMode):
            raise InvalidInput(
                f"mode {mode!r} has no prompt; expected one of {get_args(AnswerMode)!r}"
            )
        known = cast("AnswerMode", mode)
        return self.compact[known] if compact else self.answers[known, library]

    def task(self, name: Task, **values: str) -> Prompt:
        """Return a helper task with its placeholders filled, ready to send.

        Raises:
            ValueError: A placeholder of the task has no value, or a value has no placeholder.
        """
        if set(values) != TASK_FIELDS[name]:
            raise ValueError(
                f"task {name!r} takes {sorted(TASK_FIELDS[name])!r}; got {sorted(values)!r}"
            )
        told = self.tasks[name]
        return Prompt(
            told.messages(values), temperature=told.temperature, max_tokens=told.max_tokens
        )

    def described(self) -> str:
        """Return every prompt as it is sent, with placeholders, temperature and limits."""
        shown = {
            f"{mode} / {scope}": self._working(one, one.reasoning or "grounded")
            for (mode, scope), one in self.answers.items()
        }
        shown |= {f"compact {mode}": one for mode, one in self.compact.items()}
        shown |= {str(name): one for name, one in self.tasks.items()}
        blocks: list[str] = []
        for name, one in shown.items():
            given = one.temperature
            head = "temperature as LLM_TEMPERATURE" if given is None else f"temperature {given:g}"
            head += "" if one.max_tokens is None else f", at most {one.max_tokens} tokens"
            said = (f"-- {message.role}\n{message.content}" for message in one.messages({}))
            blocks.append("\n".join((f"== {name}  ({head})", *said)))
        return "\n\n".join(blocks) + "\n"


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
    explicit: tuple[str, ...] = ()
    """Names of those of these options that the user set; they act with every packaged prompt."""
