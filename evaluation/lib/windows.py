"""Embed many short real passages of the collections and of a dump.

    python -m evaluation.lib.windows --count 100000 --seconds 480

Embeds what has no vector yet until the time is over, and may be run again; vectors are kept in
slices under --cache, for the benchmark of vectors.
"""

from __future__ import annotations

import hashlib
import random
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

import numpy as np

from app.core.sentences import sentence_spans
from app.core.types import FloatArray
from app.evaluation.collections import Collection, from_folder
from app.ingest.parsers.wikitext import parse_wikitext
from app.ingest.sources.dumps import XmlDump
from app.models.minilm import MiniLmEmbedder
from evaluation.lib.workbench import SEED, arguments, say

GROUPS, PAPERS = 5, 20
"""Groups of abstracts, each standing for a person's papers, and how many abstracts a group has."""
SLICE = 1000
"""Texts embedded and kept at once."""
WORDS, STEP = 24, 12
"""Length and stride of windows in texts that have no sentences to be found (Cranfield's full
stops stand alone)."""
LONGEST_CHARS = 700
"""Longer ones would pass the 256 tokens that the model reads."""


@dataclass(frozen=True, slots=True)
class Window:
    """A stretch of a text."""

    text: str
    source: str
    """Which collection and passage it is of."""


def sentences(collection: Collection, without: frozenset[str] = frozenset()) -> list[list[Window]]:
    found = []
    for passage in collection.passages:
        if passage.id in without:
            continue
        source = f"{collection.name}-{passage.id}"
        parts = [passage.text[start:end] for start, end in sentence_spans(passage.text)]
        if len(parts) < 3 and len(passage.text) > LONGEST_CHARS // 2:
            words = passage.text.split()
            parts = [" ".join(words[at : at + WORDS]) for at in range(0, len(words), STEP)]
        found.append([Window(part, source) for part in parts if 20 <= len(part) <= LONGEST_CHARS])
    return found


def runs(listed: Sequence[Sequence[Window]], length: int) -> Iterator[Window]:
    """Yield every run of `length` neighbouring windows of one passage."""
    for parts in listed:
        for at in range(len(parts) - length + 1):
            text = " ".join(part.text for part in parts[at : at + length])
            if len(text) <= LONGEST_CHARS:
                yield Window(text, parts[0].source)


def of_dump(path: Path) -> list[list[Window]]:
    """Return the sentences of each article of a MediaWiki dump."""
    found = []
    for article in XmlDump(path):
        if article.redirect_to is not None or article.namespace:
            continue
        text = parse_wikitext(article.source, article.title).text
        found.append(
            [
                Window(text[start:end], f"dump-{article.key}")
                for start, end in sentence_spans(text)
                if 20 <= end - start <= LONGEST_CHARS and "\n" not in text[start:end]
            ]
        )
    return found


def distinct(windows: Iterator[Window], count: int) -> list[Window]:
    """Return the first `count` windows with different texts."""
    seen: dict[str, Window] = {}
    for window in windows:
        seen.setdefault(window.text, window)
        if len(seen) == count:
            break
    return list(seen.values())


def held_out(data: Path) -> list[list[str]]:
    """Return GROUPS groups of PAPERS abstracts with a question: a person's papers, by SEED."""
    judged = from_folder(data / "pubmedqa").judged()
    relevant = sorted(
        {
            name
            for q in judged.questions
            for name, grade in judged.relevance[q.id].items()
            if grade > 0
        }
    )
    drawn = random.Random(SEED).sample(relevant, GROUPS * PAPERS)
    return [drawn[at : at + PAPERS] for at in range(0, len(drawn), PAPERS)]


def collected(data: Path, count: int) -> list[Window]:
    """Return `count` distinct windows, shortest kind first: sentences, then runs.

    Runs of two, of three and so on.

    The abstracts of `held_out` are left out.
    """
    without = frozenset(chain.from_iterable(held_out(data)))
    listed = [
        *sentences(from_folder(data / "pubmedqa"), without),
        *sentences(from_folder(data / "squad")),
        *sentences(from_folder(data / "cranfield")),
        *of_dump(data / "wikipedia" / "enwiki-shortened.xml.bz2"),
    ]
    return distinct(chain.from_iterable(runs(listed, length) for length in range(1, 7)), count)


def vectors(
    texts: Sequence[str], embedder: MiniLmEmbedder, cache: Path, seconds: float = float("inf")
) -> list[FloatArray]:
    """Return vectors of the first slices of `texts`, as many as time allows.

    Slices in the cache cost nothing.

    Returns:
        One float32 `[SLICE, dim]` per slice (the last may be shorter), in order.
    """
    cache.mkdir(parents=True, exist_ok=True)
    until = time.monotonic() + seconds
    rows = []
    for at in range(0, len(texts), SLICE):
        some = texts[at : at + SLICE]
        key = hashlib.sha256("\0".join([embedder.identity.digest, *some]).encode()).hexdigest()[:32]
        path = cache / f"windows-{key}.npy"
        if not path.is_file():
            if time.monotonic() > until:
                break
            made = embedder.embed_passages(_fitting(some, embedder))
            np.save(path, made)
        kept: FloatArray = np.load(path)
        rows.append(kept)
    return rows


def _fitting(texts: Sequence[str], embedder: MiniLmEmbedder) -> list[str]:
    """Cut the few texts that are over the model's limit, by words."""
    limit = embedder.identity.max_tokens
    return [
        text if tokens <= limit else _cut(text, embedder, limit)
        for text, tokens in zip(texts, embedder.count_tokens(texts), strict=True)
    ]


def _cut(text: str, embedder: MiniLmEmbedder, limit: int) -> str:
    words = text.split()
    while embedder.count_tokens([" ".join(words)])[0] > limit:
        words = words[: len(words) * 3 // 4]
    return " ".join(words)


def main() -> None:
    parser = arguments(__doc__ or "")
    parser.add_argument("--count", type=int, default=100_000)
    parser.add_argument("--seconds", type=float, default=480.0)
    given = parser.parse_args()
    windows = collected(given.data, given.count)
    embedder = MiniLmEmbedder(given.cache / "graph")
    start = time.monotonic()
    rows = vectors(
        [window.text for window in windows], embedder, given.cache / "windows", given.seconds
    )
    done = sum(len(part) for part in rows)
    say(f"{done} of {len(windows)} windows have vectors; {time.monotonic() - start:.0f} s")


if __name__ == "__main__":
    main()
