"""The ignore file of a synced folder: the everyday part of gitignore's rules."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

IGNORE_FILE = ".documindignore"


@dataclass(frozen=True, slots=True)
class _Rule:
    pattern: re.Pattern[str]
    negated: bool
    folders_only: bool


class IgnoreRules:
    """The patterns of an ignore file.

    One a line: `#` comments, `!` takes back, a final `/` means folders only, a `/` elsewhere ties to the root; `*`, `?` and `[...]`
    stay within a name, `**` crosses folders. The last rule that matches decides; nothing inside an ignored folder comes back.

    References:
        gitignore(5), https://git-scm.com/docs/gitignore
    """

    def __init__(self, lines: Iterable[str] = ()) -> None:
        """Read the rules of an ignore file."""
        self._rules = [rule for line in lines if (rule := _read(line)) is not None]

    def ignores(self, path: str, *, is_folder: bool = False) -> bool:
        """Return whether a path relative to the root is ignored.

        `/` separates parts; its folders were checked before.
        """
        for rule in reversed(self._rules):
            if (is_folder or not rule.folders_only) and rule.pattern.fullmatch(path):
                return not rule.negated
        return False


def _read(line: str) -> _Rule | None:
    text = line.rstrip("\r\n").rstrip(" ")
    if not text or text.startswith("#"):
        return None
    negated = text.startswith("!")
    text = text[1:] if negated else text.removeprefix("\\")
    folders_only = text.endswith("/")
    text = text.rstrip("/")
    if not text:
        return None
    anchored = "/" in text
    body = _translate(text.lstrip("/"))
    try:
        pattern = re.compile(body if anchored else f"(?:.*/)?{body}", re.DOTALL)
    except re.error:  # a range such as [z-a]
        pattern = re.compile(re.escape(text))
    return _Rule(pattern, negated, folders_only)


_PIECE = re.compile(r"\*\*/|/\*\*\Z|\*+|\?|\[!?\]?[^\]]*\]|.", re.DOTALL)


def _translate(glob: str) -> str:
    return "".join(_as_regex(piece) for piece in _PIECE.findall(glob))


def _as_regex(piece: str) -> str:
    if piece == "**/":
        return "(?:.*/)?"
    if piece == "/**":
        return "/.*"
    if piece.startswith("*"):
        return "[^/]*"
    if piece == "?":
        return "[^/]"
    if piece.startswith("[") and len(piece) > 2:
        inner = piece[1:-1].replace("\\", "\\\\")
        return f"(?!/)[{'^' + inner[1:] if inner.startswith('!') else inner}]"
    return re.escape(piece)
