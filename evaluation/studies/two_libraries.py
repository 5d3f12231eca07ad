"""Search twenty papers and 100,000 encyclopedia passages together.

Are the papers still found, and never read where they must not be?

    python -m evaluation.studies.two_libraries [--data DIR] [--passages N]

Groups of twenty abstracts of pubmedqa are the papers in turn, and their own questions are asked.
The public library holds short real passages (`evaluation.lib.windows`, whose vectors must be there)
and, for every paper that gives a figure, one sentence that gives another one. Writes
evaluation/reports/two_libraries.{md,json}.
"""

from __future__ import annotations

import random
import re
import tempfile
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from app.answer.disagreement import disagreements
from app.answer.search import LibrarySearcher, Search
from app.answer.strategies.base import numbered
from app.bootstrap.libraries import fingerprint_of
from app.core.ids import fingerprint8
from app.core.release import checkout_sha
from app.core.sentences import sentence_spans
from app.core.trace import Trace
from app.core.types import Library, Question, RawDocument, Scope
from app.evaluation.collections import Collection, TestPassage, TestQuestion, from_folder
from app.evaluation.metrics import percentile
from app.evaluation.report import Provenance
from app.index.options import IndexOptions
from app.index.store import IndexStore
from app.ingest.embedding import VectorBackfill
from app.ingest.options import IngestOptions
from app.ingest.parsers import DirectParser
from app.ingest.pipeline import IngestPipeline
from app.providers.minilm import MiniLmEmbedder
from app.retrieval.options import RetrievalOptions
from app.retrieval.pipeline import Retriever
from app.retrieval.request import Retrieval
from evaluation.lib.windows import LONGEST_CHARS, PAPERS, Window, collected, fill, held_out, vectors
from evaluation.lib.workbench import SEED, Figures, arguments, hash_of, say, write_figures

DEPTHS = (5, 10)
LIMIT = 0.02
"""How much of the papers' gold may be lost when the encyclopedia is searched too."""
_PLAIN_NUMBER = re.compile(r"(?<![\w.,/-])\d{2,}(?![\w.,/-])")


class Watched:
    """A port that notes which libraries it was asked for."""

    def __init__(self, port: object, asked: set[Library]) -> None:
        """Watch `port`."""
        self._port = port
        self._asked = asked

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401  # any attribute of the port
        """Return the port's own method, watched."""
        method = getattr(self._port, name)

        def call(*given: object, **named: object) -> object:
            self._asked.update(
                value for value in (*given, *named.values()) if isinstance(value, Library)
            )
            return method(*given, **named)

        return call


@dataclass(frozen=True, slots=True)
class Contradiction:
    """A paper's sentence, and a copy with another figure in the public library."""

    paper: str
    words: str
    """The sentence without its figures: what is asked."""
    start: int
    """Of the figure in the paper's text."""
    other: str


def contradictions(passages: Sequence[TestPassage]) -> list[Contradiction]:
    """Return one for every paper with a sentence of some length that gives a figure."""
    chance = random.Random(SEED)
    found = []
    for passage in passages:
        text = passage.document
        figures = [
            (start, end, number)
            for start, end in sentence_spans(text)
            for number in _PLAIN_NUMBER.finditer(text, start, end)
            if len(text[start:end].split()) >= 8 and end - start <= LONGEST_CHARS
        ]
        if figures:
            start, end, number = chance.choice(figures)
            value = int(number.group())
            other = value - 30 if 1000 <= value <= 2100 else int(value * 1.3) + 2
            changed = f"{text[start : number.start()]}{other}{text[number.end() : end]}"
            words = re.sub(r"\d[\d.,]*%?", "", text[start:end])
            found.append(Contradiction(passage.id, words, number.start(), changed))
    return found


class WatchedSearch:
    """Asks both libraries, one of them, and notes what was read."""

    def __init__(
        self, store: IndexStore, embedder: MiniLmEmbedder, options: RetrievalOptions
    ) -> None:
        """Wire a watched retriever."""
        self.read: set[Library] = set()
        catalog, dense, lexical = (
            Watched(port, self.read) for port in (store.catalog, store.vectors, store.lexical)
        )
        retriever = Retriever(catalog, dense, lexical, embedder, options)
        self._shelf = LibrarySearcher(retriever, embedder)
        self.ms: dict[str, list[float]] = {}

    def ask(self, text: str, scope: Scope, top_k: int) -> Retrieval:
        """Return passages as a search over HTTP would."""
        question = Question(text, scope, retrieve_only=True, top_k=top_k)
        start = time.perf_counter()
        found = Search(question, top_k, lambda _: self._shelf, Trace())(text)
        self.ms.setdefault(scope, []).append((time.perf_counter() - start) * 1000)
        return found


def main() -> None:
    """Fill, ask and write."""
    parser = arguments(__doc__ or "")
    parser.add_argument(
        "--passages", type=int, default=100_000, help="most passages of the public library"
    )
    given = parser.parse_args()
    collection = from_folder(given.data / "pubmedqa").judged()
    by_id = {passage.id: passage for passage in collection.passages}
    groups = [[by_id[name] for name in names] for names in held_out(given.data)]
    planted = contradictions([passage for group in groups for passage in group])
    embedder = MiniLmEmbedder(given.cache / "graph")
    windows = collected(given.data, 100_000)  # as `evaluation.lib.windows` cuts and keeps them
    rows = np.concatenate(
        vectors([w.text for w in windows], embedder, given.cache / "windows", seconds=0)
    )[: given.passages]
    public = [*windows[: len(rows)], *(Window(c.other, f"planted-{c.paper}") for c in planted)]
    rows = np.concatenate([rows, embedder.embed_passages([c.other for c in planted])])
    say(f"{len(rows)} public passages, {len(planted)} of them planted")
    settings, ingest = RetrievalOptions(), IngestOptions()
    with ExitStack() as stack:
        there = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="documind-two-")))
        store = stack.enter_context(IndexStore(IndexOptions(there, there / "chroma")))
        fill(store, public, rows, fingerprint_of(embedder.identity, ingest))
        say("public library filled")
        search = WatchedSearch(store, embedder, settings)
        figures = _run(store, search, embedder, ingest, collection, groups, planted)
    lost = max(
        figures[f"papers alone: gold among {k}"] - figures[f"both libraries: gold among {k}"]
        for k in DEPTHS
    )
    held = (
        "kept"
        if lost <= LIMIT and figures["library public: calls that name papers"] == 0
        else "MISSED"
    )
    identity = embedder.identity
    write_figures(
        Figures(
            f"Two libraries at once: {PAPERS} papers and {len(rows):,} passages",
            Provenance(
                checkout_sha(),
                hash_of(settings, ingest),
                fingerprint8(fingerprint_of(identity, ingest)),
                {identity.model: identity.digest},
                SEED,
            ),
            {
                "public passages": len(rows),
                "papers at a time": PAPERS,
                "groups": len(groups),
                **figures,
            },
            {f"{scope}: p50 ms": percentile(ms, 0.5) for scope, ms in search.ms.items()},
            (
                "Papers are abstracts of pubmedqa with their own questions; public are sentences,"
                " and runs of them, of the other"
                " abstracts, squad, cranfield and an early dump of the English Wikipedia.",
                f"Limits: at most {LIMIT:.0%} of the gold lost with the encyclopedia, nothing of"
                " papers read by"
                f" `library: public`: {held}.",
                "Contradictions: the words of a paper's sentence are asked of both libraries;"
                " public holds it with another figure.",
            ),
        ),
        "two_libraries",
    )


def _run(
    store: IndexStore,
    search: WatchedSearch,
    embedder: MiniLmEmbedder,
    ingest: IngestOptions,
    collection: Collection,
    groups: Sequence[Sequence[TestPassage]],
    planted: Sequence[Contradiction],
) -> dict[str, float]:
    outcomes: dict[str, list[float]] = {}
    named_by_public = 0

    def note(name: str, value: float) -> None:
        outcomes.setdefault(name, []).append(value)

    for number, group in enumerate(groups, start=1):
        keys = _shelve(store, embedder, ingest, group)
        for question in _questions(collection, group):
            gold = {name for name, grade in collection.relevance[question.id].items() if grade > 0}
            for k in DEPTHS:
                for scope, title in (("papers", "papers alone"), ("all", "both libraries")):
                    found = _named(search.ask(question.text, scope, k), keys)  # type: ignore[arg-type]  # two of the scopes
                    note(f"{title}: gold among {k}", float(bool(gold & set(found))))
                    if scope == "all":
                        note(
                            f"both libraries: places of papers among {k}",
                            sum(name != "" for name in found) / max(len(found), 1),
                        )
            search.read.clear()
            search.ask(question.text, "public", 10)
            named_by_public += Library.PAPERS in search.read
        here = {passage.id for passage in group}
        for contradiction in planted:
            if contradiction.paper in here:
                note("contradictions flagged", _flagged(search, contradiction, keys))
        say(f"group {number}: {len(outcomes['papers alone: gold among 5'])} questions so far")
    means = {name: float(np.mean(values)) for name, values in outcomes.items()}
    counts = {
        "questions": float(len(outcomes["papers alone: gold among 5"])),
        "contradictions": float(len(outcomes["contradictions flagged"])),
        "library public: calls that name papers": float(named_by_public),
    }
    return counts | means


def _shelve(
    store: IndexStore, embedder: MiniLmEmbedder, ingest: IngestOptions, group: Sequence[TestPassage]
) -> dict[str, str]:
    """Replace the papers by a group; returns the passage's id by doc_id."""
    store.writer.delete_all(Library.PAPERS)
    store.writer.claim(Library.PAPERS, fingerprint_of(embedder.identity, ingest))
    raw = [RawDocument(f"{p.id}.txt", f"{p.id}.txt", p.document.encode()) for p in group]
    outcomes = IngestPipeline(DirectParser(ingest), store.writer, embedder, ingest).ingest(
        Library.PAPERS, iter(raw)
    )
    keys = {
        str(outcome.doc_id): passage.id for passage, outcome in zip(group, outcomes, strict=True)
    }
    VectorBackfill(store.writer, embedder, ingest).run(Library.PAPERS)
    store.writer.apply(Library.PAPERS)
    return keys


def _questions(collection: Collection, group: Sequence[TestPassage]) -> list[TestQuestion]:
    here = {passage.id for passage in group}
    return [
        q
        for q in collection.questions
        if here & {name for name, grade in collection.relevance[q.id].items() if grade > 0}
    ]


def _named(retrieval: Retrieval, keys: dict[str, str]) -> list[str]:
    """Return passage ids of papers in hit order; empty strings for public hits."""
    return [
        keys[hit.passage.document.doc_id] if hit.passage.chunk.library is Library.PAPERS else ""
        for hit in retrieval.hits
    ]


def _flagged(search: WatchedSearch, contradiction: Contradiction, keys: dict[str, str]) -> float:
    evidence = numbered(search.ask(contradiction.words, "all", 10).hits)
    named = {item.n: keys.get(item.hit.passage.document.doc_id) for item in evidence}
    return float(
        any(
            named[pair.paper.n] == contradiction.paper
            and pair.paper.start <= contradiction.start < pair.paper.end
            for pair in disagreements(evidence)
        )
    )


if __name__ == "__main__":
    main()
