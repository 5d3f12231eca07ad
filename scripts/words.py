"""Count words and phrases that make prose hard to read: `make words`.

The exit code is 1 when a count passes its limit; `--places` lists each place. Texts are
Markdown pages without their code, docstrings, comments, messages (string literals of more than
one word) of Python, and comments, strings and text of the page.
"""

from __future__ import annotations

import argparse
import ast
import io
import re
import sys
import tokenize
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PYTHON = ("app", "scripts", "evaluation")
PAGES = ("README.md", "CONTRIBUTING.md", "docs/**/*.md")
WEB = ("web/src/**/*.ts", "web/src/**/*.tsx")

WORDS_LIMIT = 3.0
"""Most unwanted words per 10,000 words of all texts."""
OPENERS_LIMIT = 1.0
"""Most docstrings, in percent, that begin with a question word instead of a verb."""

_STEP = r"\s+(?:[\w'\u2019-]+\s+){1,3}of\b"
UNWANTED = re.compile(
    r"\b(?:whoever|nobody|somebody|whatever|meanwhile|beside|anew|what\s+is\s+there"
    rf"|of{_STEP}{_STEP})\b",
    re.IGNORECASE,
)
_OPENER = re.compile(r"(?:What|Who|Whether|Where|How|When)\b")
_WORD = re.compile(r"[^\W\d_][\w'\u2019-]*")
_PROSE = re.compile(r"\w[^\w\s]*\s+\w")
_PAGE_CODE = re.compile(r"```.*?```|`[^`\n]*`", re.DOTALL)
_WEB_TEXT = re.compile(
    r"/\*.*?\*/|(?<!:)//[^\n]*|\"[^\"\n]*\"|'[^'\n]*'|`[^`]*`|(?<=>)[^<>{}=;]+(?=[<{])", re.DOTALL
)
_ALL_WORDS = re.compile(r"[a-z'\s-]{60,}")


@dataclass(frozen=True, slots=True)
class Text:
    """A piece of prose: its kind, its file, and the line it begins on."""

    kind: str
    path: Path
    line: int
    text: str


@dataclass(frozen=True, slots=True)
class Place:
    """One thing to rewrite: the file, the line, and what was found there."""

    kind: str
    path: Path
    line: int
    found: str


@dataclass(slots=True)
class Tally:
    """Counts over all texts, and the places they were found at."""

    words: Counter[str]
    docstrings: int
    places: list[Place]

    def per_10_000(self, *kinds: str) -> float:
        """Return the unwanted words per 10,000 words of some kinds of text."""
        found = sum(place.kind in kinds for place in self.places)
        return 10_000 * found / max(1, sum(self.words[kind] for kind in kinds))

    def percent(self, kind: str) -> float:
        found = sum(place.kind == kind for place in self.places)
        return 100 * found / max(1, self.docstrings)


def page_texts(path: Path, source: str) -> Iterator[Text]:
    """Yield a Markdown page without its code, as one text with the page's lines."""
    yield Text(
        "docs", path, 1, _PAGE_CODE.sub(lambda match: "\n" * match[0].count("\n") or "x", source)
    )


def python_texts(path: Path, source: str) -> Iterator[Text]:
    """Yield the docstrings, comments and messages of a Python file.

    A string that stands as a statement documents what is above it and counts as a docstring.
    Strings without two words in a row, and long lists of bare words, are no messages.
    """
    tree = ast.parse(source)
    documenting = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            if id(node) in documenting:
                yield Text("docstrings", path, node.lineno, node.value)
            elif _PROSE.search(node.value) and not _ALL_WORDS.fullmatch(node.value):
                yield Text("messages", path, node.lineno, node.value)
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            yield Text("comments", path, token.start[0], token.string)


def web_texts(path: Path, source: str) -> Iterator[Text]:
    """Yield comments, strings and element text of a TypeScript file."""
    for match in _WEB_TEXT.finditer(source):
        if _PROSE.search(match[0]):
            yield Text("web", path, source.count("\n", 0, match.start()) + 1, match[0])


def first_lines(source: str) -> Iterator[tuple[int, str]]:
    """Yield line and first line of each module's, class's or function's docstring."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            doc = ast.get_docstring(node)
            if doc:
                yield node.body[0].lineno, doc.splitlines()[0]


def _texts(root: Path) -> Iterator[Text]:
    for pattern in PAGES:
        for path in sorted(root.glob(pattern)):
            yield from page_texts(path, path.read_text(encoding="utf-8"))
    for path in _python_files(root):
        yield from python_texts(path, path.read_text(encoding="utf-8"))
    for pattern in WEB:
        for path in sorted(root.glob(pattern)):
            yield from web_texts(path, path.read_text(encoding="utf-8"))


def _python_files(root: Path) -> list[Path]:
    return sorted(path for folder in PYTHON for path in (root / folder).rglob("*.py"))


def count(root: Path) -> Tally:
    tally = Tally(Counter(), 0, [])
    for text in _texts(root):
        tally.words[text.kind] += len(_WORD.findall(text.text))
        for match in UNWANTED.finditer(text.text):
            line = text.line + text.text.count("\n", 0, match.start())
            tally.places.append(Place(text.kind, text.path, line, " ".join(match[0].split())))
    for path in _python_files(root):
        for line, first in first_lines(path.read_text(encoding="utf-8")):
            tally.docstrings += 1
            if _OPENER.match(first):
                tally.places.append(Place("openers", path, line, first))
    return tally


def report(tally: Tally) -> tuple[list[str], bool]:
    """Return one line a count, and whether every count is within its limit."""
    lines = [
        f"{kind:<11}{words:>8} words  {tally.per_10_000(kind):5.1f} unwanted per 10,000"
        for kind, words in sorted(tally.words.items())
    ]
    rate = tally.per_10_000(*tally.words)
    passed = rate <= WORDS_LIMIT
    lines.append(
        f"{'all':<11}{tally.words.total():>8} words  {rate:5.1f} unwanted per 10,000 (at most"
        f" {WORDS_LIMIT:g})"
    )
    share = tally.percent("openers")
    lines.append(
        f"{tally.docstrings} docstrings: {share:.1f} % begin with a question word (at most"
        f" {OPENERS_LIMIT:g} %)"
    )
    return lines, passed and share <= OPENERS_LIMIT


def main() -> int:
    """Print the counts; return 1 when one passes its limit."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--places", action="store_true", help="list each place to rewrite")
    arguments = parser.parse_args()
    tally = count(ROOT)
    lines, passed = report(tally)
    if arguments.places:
        for place in tally.places:
            print(f"{place.path.relative_to(ROOT)}:{place.line}: {place.kind}: {place.found}")
    print("\n".join(lines))
    if not passed:
        print("see the places with: python -m scripts.words --places", file=sys.stderr)
    return 0 if passed else 1


if __name__ == "__main__":
    raise SystemExit(main())
