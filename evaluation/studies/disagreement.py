"""Count flagged disagreements: planted ones, and texts on the same topic.

    python -m evaluation.studies.disagreement [--data DIR]

Passages of squad stand for both libraries. Planted: a passage and its copy with one figure changed
(years by 30, others by 30 % and 2). Same: a passage and its copy. Topic: three passages of an
article and three others of it.
"""

from __future__ import annotations

import json
import random
import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path

from app.answer.disagreement import disagreements
from app.core.release import checkout_sha
from app.core.types import Chunk, Disagreement, Document, Evidence, Hit, Library, Passage
from app.evaluation.report import Provenance
from evaluation.lib.workbench import Figures, arguments, hash_of, write_figures

SEED = 3
GROUP = 6
_PLAIN_NUMBER = re.compile(r"(?<![\w.,/-])\d+(?![\w.,/-])")


def main() -> None:
    """Write the report."""
    articles = _articles(arguments(__doc__ or "").parse_args().data / "squad" / "corpus.jsonl")
    texts = [text for passages in articles.values() for text in passages]
    planted = _planted(texts, random.Random(SEED))
    same = [bool(_flagged([text], [text])) for text in texts]
    topic = [
        bool(_flagged(group[::2], group[1::2]))
        for passages in articles.values()
        for group in _groups(passages)
    ]
    rows = {
        "planted, one figure changed": planted,
        "same text twice": same,
        "same topic, other passages": topic,
    }
    lines = [
        f"| {name} | {sum(found)} | {len(found)} | {sum(found) / len(found):.1%} |"
        for name, found in rows.items()
    ]
    figures = {name: sum(found) / len(found) for name, found in rows.items()}
    write_figures(
        Figures(
            "Disagreements flagged between two libraries",
            Provenance(checkout_sha(), hash_of(GROUP), "no index", {}, SEED),
            {f"share flagged: {name}": share for name, share in figures.items()},
            remarks=(
                "Made by `python -m evaluation.studies.disagreement`; passages of squad stand for"
                " both libraries.",
            ),
            tables=("| pairs | flagged | of | share |", "|---|---|---|---|", *lines, ""),
        ),
        "disagreement",
    )


def _articles(path: Path) -> Mapping[str, list[str]]:
    found: dict[str, list[str]] = defaultdict(list)
    for line in path.read_text(encoding="utf-8").splitlines():
        record = json.loads(line)
        found[record["title"]].append(record["text"])
    return found


def _groups(passages: Sequence[str]) -> list[Sequence[str]]:
    return [passages[i : i + GROUP] for i in range(0, len(passages) - GROUP + 1, GROUP)]


def _planted(texts: Sequence[str], chance: random.Random) -> list[bool]:
    """Return, per passage with a number, whether changing its copy was flagged."""
    outcomes = []
    for text in texts:
        numbers = list(_PLAIN_NUMBER.finditer(text))
        if not numbers:
            continue
        number = chance.choice(numbers)
        value = int(number.group())
        other = value - 30 if 1000 <= value <= 2100 else int(value * 1.3) + 2
        changed = f"{text[: number.start()]}{other}{text[number.end() :]}"
        found = _flagged([text], [changed])
        outcomes.append(any(pair.paper.start <= number.start() < pair.paper.end for pair in found))
    return outcomes


def _flagged(papers: Sequence[str], public: Sequence[str]) -> Sequence[Disagreement]:
    shelves = [(Library.PAPERS, text) for text in papers] + [
        (Library.PUBLIC, text) for text in public
    ]
    return disagreements(
        [
            Evidence(n, Hit(_passage(n, library, text), 1.0))
            for n, (library, text) in enumerate(shelves, start=1)
        ]
    )


def _passage(n: int, library: Library, text: str) -> Passage:
    key, at = f"d{n}", "2026-01-01T00:00:00Z"
    chunk = Chunk(n, key, library, 1, 0, 0, len(text), "body", None, text)
    document = Document(
        key,
        library,
        key,
        1,
        "0" * 64,
        key,
        (),
        None,
        "text",
        "live",
        len(text),
        0,
        1,
        0,
        None,
        None,
        None,
        added_at=at,
        updated_at=at,
    )
    return Passage(chunk, document)


if __name__ == "__main__":
    main()
