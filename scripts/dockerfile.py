"""Read a Dockerfile: instructions in order, by stage; unknown ones are errors."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path, PurePosixPath

KNOWN = frozenset(
    "FROM WORKDIR COPY RUN ENV ARG USER VOLUME EXPOSE HEALTHCHECK ENTRYPOINT CMD".split()
)


@dataclass(frozen=True, slots=True)
class Instruction:
    """One instruction; `flags` are its `--name=value` words."""

    name: str
    text: str
    flags: Mapping[str, str] = field(default_factory=dict)

    def words(self) -> list[str]:
        """Return its arguments, in JSON form or as a shell would part them."""
        return list(json.loads(self.text)) if self.text.startswith("[") else shlex.split(self.text)

    def pairs(self) -> dict[str, str]:
        """Return the `NAME=value` pairs of an ENV."""
        return dict(word.split("=", 1) for word in self.words())


@dataclass(frozen=True, slots=True)
class Stage:
    """A stage: what it is built on and what happens in it."""

    name: str
    base: str
    instructions: tuple[Instruction, ...]


def stages(text: str) -> list[Stage]:
    """Return the stages of a Dockerfile in order; unnamed ones have a number.

    Raises:
        ValueError: An instruction that is not known, or one before the first FROM.
    """
    found: list[tuple[str, str, list[Instruction]]] = []
    for one in instructions(text):
        if one.name == "FROM":
            words = one.words()
            found.append((words[2] if len(words) > 2 else str(len(found)), words[0], []))
        elif not found:
            raise ValueError(f"{one.name} stands before the first FROM")
        else:
            found[-1][2].append(one)
    return [Stage(name, base, tuple(rest)) for name, base, rest in found]


def instructions(text: str) -> Iterator[Instruction]:
    """Yield instructions, continuation lines joined and comments left out."""
    lines = "\n".join(line for line in text.splitlines() if not line.lstrip().startswith("#"))
    for line in re.sub(r"\\\n", " ", lines).splitlines():
        name, _, rest = line.strip().partition(" ")
        if not name:
            continue
        if name not in KNOWN:
            raise ValueError(f"the instruction {name!r} is not known here")
        flags: dict[str, str] = {}
        rest = rest.strip()
        while name != "RUN" and (flag := re.match(r"--([a-z-]+)=(\S+)\s+", rest)):
            flags[flag[1]], rest = flag[2], rest[flag.end() :]
        yield Instruction(name, rest, flags)


def ignored(path: PurePosixPath, patterns: list[str]) -> bool:
    """Return whether .dockerignore excludes a path, by itself or with its folder."""
    candidates = [path, *path.parents][:-1]
    return any(_matches(candidate, pattern) for candidate in candidates for pattern in patterns)


def _matches(path: PurePosixPath, pattern: str) -> bool:
    if pattern.startswith("**/"):
        return any(
            fnmatchcase(PurePosixPath(*path.parts[at:]).as_posix(), pattern[3:])
            for at in range(len(path.parts))
        )
    return path.as_posix().count("/") == pattern.count("/") and fnmatchcase(
        path.as_posix(), pattern
    )


def patterns_of(file: Path) -> list[str]:
    """Return the patterns of a .dockerignore; exceptions with `!` are not known here.

    Raises:
        ValueError: The file has an exception.
    """
    lines = (
        [line.strip().strip("/") for line in file.read_text(encoding="utf-8").splitlines()]
        if file.exists()
        else []
    )
    wanted = [line for line in lines if line and not line.startswith("#")]
    if any(line.startswith("!") for line in wanted):
        raise ValueError(f"{file.name} has an exception with '!', which is not known here")
    return wanted
