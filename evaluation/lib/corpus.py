"""Make libraries of any size: synthetic text, or real sentences with real vectors and noisy copies of them."""

from __future__ import annotations

import hashlib
import json
import sqlite3
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

import numpy as np
import numpy.typing as npt

from app.core.sentences import sentence_spans
from app.core.types import Article, Fingerprint, FloatArray, Library
from app.core.vectors import l2_normalise
from app.evaluation.collections import Collection, from_folder
from app.ingest.bulk import BulkIndexer, BulkTask
from app.ingest.options import IngestOptions
from app.ingest.parsers.wikitext import parse_wikitext
from app.ingest.sources.dumps import XmlDump
from app.models.minilm import MiniLmEmbedder
from app.storage.store import IndexStore
from evaluation.lib.reports import SEED, say

Figures = dict[str, float]
HalfArray = npt.NDArray[np.float16]
LIBRARY = Library.PUBLIC

# --- synthetic text

_SENTENCES = 200_000
_VOCABULARY = 100_000
_ZIPF = 1.05  # English text: about 1 (Piantadosi 2014)
_SENTENCES_PER_ARTICLE = 34


class TextPool:
    """Seeded articles of given or synthetic sentences, in constant memory apart from the sentences."""

    def __init__(self, sentences: Sequence[str] = (), seed: int = SEED) -> None:
        self.sentences = sentences or _zipf_sentences(seed)
        self._seed = seed

    def articles(self, count: int) -> Iterator[Article]:
        rng = np.random.default_rng(self._seed + 1)
        for number in range(count):
            chosen = rng.integers(0, len(self.sentences), _SENTENCES_PER_ARTICLE)
            paragraphs = [
                " ".join(self.sentences[i] for i in chosen[at : at + 6])
                for at in range(0, len(chosen), 6)
            ]
            title = f"{_word(number % _VOCABULARY)} {number}"
            yield Article(str(number + 1), "1", title, "text", "\n\n".join(paragraphs))

    def queries(self, count: int) -> list[str]:
        """Return windows of 8 to 12 words of indexed sentences."""
        rng = np.random.default_rng(self._seed + 2)
        found: list[str] = []
        while len(found) < count:
            words = self.sentences[int(rng.integers(len(self.sentences)))].split()
            size = int(rng.integers(8, 13))
            if len(words) >= size:
                start = int(rng.integers(0, len(words) - size + 1))
                found.append(" ".join(words[start : start + size]))
        return found


def _zipf_sentences(seed: int) -> list[str]:
    rng = np.random.default_rng(seed)
    weights = np.arange(1, _VOCABULARY + 1, dtype=np.float64) ** -_ZIPF
    lengths = rng.integers(8, 28, _SENTENCES)
    ranks = np.searchsorted(np.cumsum(weights / weights.sum()), rng.random(int(lengths.sum())))
    names = [_word(number) for number in range(_VOCABULARY + 1)]
    words = [names[rank] for rank in ranks]
    ends = np.cumsum(lengths)
    return [
        " ".join(words[end - length : end]).capitalize() + "."
        for length, end in zip(lengths, ends, strict=True)
    ]


def _word(number: int) -> str:
    """Return a pronounceable word, a different one for each number, short ones first."""
    syllables = ""
    number += 1
    while number:
        number, digit = divmod(number, 70)
        syllables += "bcdfghklmnprst"[digit // 5] + "aeiou"[digit % 5]
    return syllables


# --- real sentences and vectors

SLICE = 1000
"""Texts embedded and kept at once."""
WORDS, STEP = 24, 12
"""Length and stride of windows in texts that have no sentences to be found (Cranfield's full
stops stand alone)."""
LONGEST_CHARS = 700
"""Longer ones would pass the 256 tokens that the model reads."""
WINDOWS = 100_000
"""Sentences and runs of sentences that texts and vectors are drawn from."""
QUESTIONS = 500
NEAREST, FARTHEST = 0.95, 0.9
"""Cosines between which a copy lies of what it is a copy of."""
CHUNKS_PER_ARTICLE = 7.75
"""Of articles of real sentences: a few more than are asked for have a chunk."""
_BLOCK = 20_000
_PAGE = 2000


@dataclass(frozen=True, slots=True)
class Window:
    """A stretch of a text, and which collection and passage it is of."""

    text: str
    source: str


def sentences(collection: Collection) -> list[list[Window]]:
    found = []
    for passage in collection.passages:
        source = f"{collection.name}-{passage.id}"
        parts = [passage.text[start:end] for start, end in sentence_spans(passage.text)]
        if len(parts) < 3 and len(passage.text) > LONGEST_CHARS // 2:
            words = passage.text.split()
            parts = [" ".join(words[at : at + WORDS]) for at in range(0, len(words), STEP)]
        found.append([Window(part, source) for part in parts if 20 <= len(part) <= LONGEST_CHARS])
    return found


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


def runs(listed: Sequence[Sequence[Window]], length: int) -> Iterator[Window]:
    """Yield every run of `length` neighbouring windows of one passage."""
    for parts in listed:
        for at in range(len(parts) - length + 1):
            text = " ".join(part.text for part in parts[at : at + length])
            if len(text) <= LONGEST_CHARS:
                yield Window(text, parts[0].source)


def distinct(windows: Iterator[Window], count: int) -> list[Window]:
    """Return the first `count` windows with different texts."""
    seen: dict[str, Window] = {}
    for window in windows:
        seen.setdefault(window.text, window)
        if len(seen) == count:
            break
    return list(seen.values())


def collected(data: Path, count: int) -> list[Window]:
    """Return `count` distinct windows, shortest kind first: sentences, runs of two, of three ..."""
    listed = [
        *sentences(from_folder(data / "pubmedqa")),
        *sentences(from_folder(data / "squad")),
        *sentences(from_folder(data / "cranfield")),
        *of_dump(data / "wikipedia" / "enwiki-shortened.xml.bz2"),
    ]
    return distinct(chain.from_iterable(runs(listed, length) for length in range(1, 7)), count)


def fitting(text: str, embedder: MiniLmEmbedder) -> str:
    """Cut a text to what the model reads, by words."""
    words, limit = text.split(), embedder.identity.max_tokens
    while (tokens := embedder.count_tokens([" ".join(words)])[0]) > limit:
        words = words[: min(len(words) - 1, len(words) * limit // tokens)]
    return " ".join(words)


def vectors(texts: Sequence[str], embedder: MiniLmEmbedder, cache: Path) -> FloatArray:
    """Return float32 `[n, dim]`; slices that are in the cache cost nothing."""
    cache.mkdir(parents=True, exist_ok=True)
    rows = []
    for at in range(0, len(texts), SLICE):
        some = texts[at : at + SLICE]
        key = hashlib.sha256("\0".join([embedder.identity.digest, *some]).encode()).hexdigest()[:32]
        path = cache / f"windows-{key}.npy"
        if not path.is_file():
            np.save(path, embedder.embed_passages([fitting(text, embedder) for text in some]))
        rows.append(np.load(path))
    return np.concatenate(rows)


def noisy(rows: FloatArray, rng: np.random.Generator) -> FloatArray:
    """Return a copy of each row, float32 `[n, dim]` of norm 1, at a drawn cosine."""
    noise = rng.standard_normal(rows.shape).astype(np.float32)
    noise -= np.einsum("ij,ij->i", noise, rows)[:, np.newaxis] * rows
    noise /= np.linalg.norm(noise, axis=1, keepdims=True)
    cosines = rng.uniform(FARTHEST, NEAREST, (len(rows), 1)).astype(np.float32)
    return np.asarray(cosines * rows + np.sqrt(1 - cosines**2) * noise, np.float32)


def make_inputs(
    data: Path, cache: Path, embedder: MiniLmEmbedder, most: int, inputs: Path, real: int = WINDOWS
) -> int:
    """Write `most` vectors, sentences and questions to `inputs`; return how many vectors are real.

    `real` windows are embedded, the other vectors are noisy copies of theirs.
    """
    windows = collected(data, WINDOWS)
    rows = vectors([window.text for window in windows[:real]], embedder, cache / "windows")
    kept = np.lib.format.open_memmap(
        inputs / "rows.npy", mode="w+", dtype=np.float16, shape=(most, rows.shape[1])
    )
    kept[: len(rows)] = rows[:most]
    rng = np.random.default_rng(SEED)
    for at in range(len(rows), most, _BLOCK):
        n = min(_BLOCK, most - at)
        kept[at : at + n] = noisy(rows[rng.integers(0, len(rows), n)], rng)
    kept.flush()
    found = [window.text for window in windows if window.text.count(". ") == 0]
    (inputs / "sentences.json").write_text(json.dumps(found), "utf-8")
    asked = [q.text for q in from_folder(data / "squad").sample(QUESTIONS, SEED).questions]
    asked = list(dict.fromkeys(asked))
    (inputs / "questions.json").write_text(json.dumps(asked), "utf-8")
    np.save(inputs / "queries.npy", np.stack([embedder.embed_query(text) for text in asked]))
    say(f"{len(rows)} real vectors, {len(found)} sentences, {len(asked)} questions")
    return min(len(rows), most)


def index_articles(store: IndexStore, articles: Iterator[Article]) -> None:
    """Index articles by the bulk path, as `documind bulk index` does."""
    task = BulkTask(LIBRARY, "bench", IngestOptions())
    BulkIndexer(store.writer, store.ledger).run(task, articles)


def give_vectors(
    store: IndexStore, made_with: Fingerprint, most: int, rows: Callable[[int, int], FloatArray]
) -> int:
    """Give chunks vectors, at most so many, and bring the projections up; return how many.

    `rows` returns float32 `[n, dim]` of norm 1, given how many were asked for before, and n.
    """
    store.writer.claim(LIBRARY, made_with)
    done = 0
    while done < most and (page := store.writer.pending_vectors(LIBRARY, min(_PAGE, most - done))):
        ids = [chunk.chunk_id for chunk in page]
        store.writer.write_vectors(LIBRARY, ids, rows(done, len(page)))
        done += len(page)
    store.writer.apply(LIBRARY)
    return done


def fill_library(store: IndexStore, inputs: Path, chunks: int, made_with: Fingerprint) -> Figures:
    """Index about `chunks` chunks of what `make_inputs` wrote, and give each a vector.

    There are at least as many chunks as vectors. Returns seconds and counts.
    """
    text = TextPool(json.loads((inputs / "sentences.json").read_text("utf-8")))
    kept = np.load(inputs / "rows.npy", mmap_mode="r")
    started = time.perf_counter()
    index_articles(store, text.articles(round(chunks / CHUNKS_PER_ARTICLE)))
    indexed_s = time.perf_counter() - started

    def rows(at: int, n: int) -> FloatArray:
        return l2_normalise(kept[at : at + n].astype(np.float32))

    done = give_vectors(store, made_with, len(kept), rows)
    vectors_s = time.perf_counter() - started - indexed_s
    return {"index_s": indexed_s, "vectors_s": vectors_s, "vectors": done}


YEARS = ((0.1, 2010), (0.01, 2011), (0.001, 2012))
"""Shares of the documents, and the years that they get from `set_years`."""


def set_years(data_dir: Path) -> None:
    """Give the documents of a closed library years that a filter selects a share by."""
    year = " ".join(
        f"WHEN doc % {round(1 / share)} = {at} THEN {year}"
        for at, (share, year) in enumerate(YEARS, start=1)
    )
    with closing(sqlite3.connect(data_dir / "catalog.sqlite3")) as catalog, catalog:
        catalog.execute(f"UPDATE documents SET year = CASE {year} ELSE 1990 END")
