"""YAML files of prompts: where they lie, and what they may hold."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from pathlib import Path
from typing import Literal, cast, get_args

import yaml

from app.core.errors import InvalidInput
from app.core.types import Message

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
