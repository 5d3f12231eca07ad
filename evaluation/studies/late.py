"""Measure search steps on seven sets: title, guard, late interaction, spelling.

And function words.

    python -m evaluation.studies.late [--data DIR] [--questions N] [--sets NAME ...]

The first N questions of each set, those that `floors.json` was measured on. Papers and long texts
(covidqa, chunking) are searched by chunk: one is relevant that holds half of a reference span.
Writes evaluation/reports/late.{md,csv,json}.
"""

from __future__ import annotations

import json
import random
import unittest.mock
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import numpy as np

from app.core.text import content_or_all, words
from app.core.types import Library
from app.evaluation.arms import Arm, plain
from app.evaluation.collections import Collection, TestPassage, TestQuestion, from_folder
from app.evaluation.report import ReportProvenance, report_of, settings_hash
from app.evaluation.runner import Experiment, RankedPassages, run
from app.ingest.chunking import chunk
from app.ingest.names import IngestOptions
from app.ingest.parsers import DirectParser
from app.models.minilm import MiniLmEmbedder
from app.retrieval.request import RetrievalOptions
from app.storage.words import query as lexical_query
from evaluation.lib.workbench import SEED, Bench, arguments, indexed, say, write

SETS = (
    "squad",
    "cranfield",
    "pubmedqa",
    "foreign/clapnq",
    "foreign/covidqa",
    "foreign/chunking",
    "foreign/xquad/en",
)
LONG = {"foreign/covidqa", "foreign/chunking"}
DEFAULT = RetrievalOptions()
MISSPELT = 50


def main() -> None:
    parser = arguments(__doc__ or "")
    parser.add_argument("--questions", type=int, default=400, help="most questions per set")
    parser.add_argument("--sets", nargs="+", default=list(SETS), help="which sets")
    given = parser.parse_args()
    encoder = MiniLmEmbedder(given.cache / "graph").late_encoder()
    experiments: list[Experiment] = []
    remarks: list[str] = []
    provenance: ReportProvenance | None = None
    for name in given.sets:
        collection = _collection(
            given.data / name, given.questions, MiniLmEmbedder(given.cache / "graph")
        )
        found: dict[tuple[str, str], RankedPassages] = {}
        for boost, keep in ((1.0, True), (0.3, False)):
            with (
                _function_words(keep=keep),
                indexed(
                    {Library.PUBLIC: [collection]},
                    given.cache,
                    boost=boost,
                    encoder=None if keep else encoder,
                ) as bench,
            ):
                provenance = bench.provenance()
                search = bench.search(Library.PUBLIC)
                for arm in [_before()] if keep else _arms():
                    found |= {
                        (arm.name, q.text): search(arm, q.text, 10) for q in collection.questions
                    }
                if name == "squad" and not keep:
                    remarks.append(_spelling(collection, bench))
            say(f"{name}: title {boost}")
        experiments.append(_experiment(collection, found))
    if provenance is None:
        raise SystemExit("no set was run")
    arms = [_before(), *_arms()]
    means = {
        arm.name: float(
            np.mean([e.result(arm.name).intervals["nDCG@10"].mean for e in experiments])
        )
        for arm in arms
    }
    remarks.append(
        "Mean nDCG@10 over the sets: "
        + "; ".join(f"{name} {mean:.4f}" for name, mean in means.items())
        + "."
    )
    made = replace(provenance, settings_hash=settings_hash(tuple(experiments)))
    remarks.append(
        "Taken is what helps the mean and harms no set by more than 0.005. In covidqa and chunking"
        " a chunk is a document of its own"
        " with its first line as title, so the title weighs more there than in a library of whole"
        " papers."
    )
    title = "Function words, title, guard, late interaction, spelling: seven development sets"
    write(report_of(title, made, tuple(experiments), tuple(remarks)), "late")


def _before() -> Arm:
    return Arm(
        "before",
        replace(DEFAULT, word_guard=0.0, rerank="none"),
        note="function words searched, title 1, no guard, no codes",
    )


def _arms() -> list[Arm]:
    words_only = replace(DEFAULT, word_guard=0.0, rerank="none")
    return [
        plain("dense", "dense", "nearest neighbours alone"),
        plain("bm25", "lexical", "BM25 alone, without function words, title 0.3"),
        Arm("words", words_only, note="without function words, title 0.3"),
        Arm("guard", replace(DEFAULT, rerank="none"), note="the same with the guard"),
        Arm("default", DEFAULT, note="the same with late interaction"),
        *(
            Arm(
                f"a={a} b={b}",
                replace(DEFAULT, late_sentence_weight=a, late_token_weight=b),
                note="other weights",
            )
            for a, b in ((0.2, 0.5), (0.3, 1.0), (0.4, 0.75))
        ),
    ]


def _experiment(collection: Collection, found: dict[tuple[str, str], RankedPassages]) -> Experiment:
    def recalled(arm: Arm, question: str, top_k: int) -> RankedPassages:
        del top_k
        return found[arm.name, question]

    return run(collection, [_before(), *_arms()], recalled, baseline="before", seed=SEED)


@contextmanager
def _function_words(*, keep: bool) -> Iterator[None]:
    """Search function words too, as before, for the time of the block."""
    if not keep:
        yield
        return
    with unittest.mock.patch.object(lexical_query, "content_or_all", list):
        yield


def _spelling(collection: Collection, bench: Bench) -> str:
    """Return what one edit in one telling word of a question costs."""
    draw = random.Random(SEED)
    chosen = draw.sample(collection.questions, min(MISSPELT, len(collection.questions)))
    wrong = tuple(replace(question, text=_misspelt(question.text, draw)) for question in chosen)
    search = bench.search(Library.PUBLIC)
    right, off = (
        run(
            replace(collection, questions=questions),
            [Arm("default", DEFAULT)],
            search,
            baseline="default",
            seed=SEED,
        )
        for questions in (tuple(chosen), wrong)
    )
    before, after = (e.result("default").intervals["nDCG@10"].mean for e in (right, off))
    return (
        f"Spelling: {len(chosen)} questions of squad with one letter of one word left out,"
        " doubled, changed or swapped with its"
        f" neighbour: nDCG@10 {after:.4f}, spelt right {before:.4f}, at most 0.03 less wanted."
    )


def _misspelt(text: str, draw: random.Random) -> str:
    """Return a question with one edit in its longest content word, not in the first letter."""
    telling = content_or_all(words(text))
    word = max(telling, key=len)
    at = draw.randrange(1, len(word) - 1)
    edit = draw.choice(("drop", "double", "change", "swap"))
    letters = {
        "drop": word[:at] + word[at + 1 :],
        "double": word[: at + 1] + word[at:],
        "change": word[:at] + draw.choice("aeiourstn") + word[at + 1 :],
        "swap": word[:at] + word[at + 1] + word[at] + word[at + 2 :],
    }
    return text.lower().replace(word, letters[edit], 1)


def _collection(folder: Path, questions: int, embedder: MiniLmEmbedder) -> Collection:
    """Return the first judged questions of a set."""
    name = str(folder).rpartition("/foreign/")[2] if "/foreign/" in str(folder) else folder.name
    found = _by_chunk(folder, embedder) if f"foreign/{name}" in LONG else from_folder(folder)
    judged = tuple(
        q
        for q in found.questions
        if any(grade > 0 for grade in found.relevance.get(q.id, {}).values())
    )
    return replace(found, name=name.replace("/", "-"), questions=judged[:questions])


def _by_chunk(folder: Path, embedder: MiniLmEmbedder) -> Collection:
    """Return long documents cut as the server cuts them, each chunk a passage."""
    passages: list[TestPassage] = []
    relevance: dict[str, dict[str, int]] = {}
    questions: list[TestQuestion] = []
    spans: dict[str, list[tuple[int, int, str]]] = {}
    texts: dict[str, str] = {}
    options = IngestOptions()
    for doc, text in _documents(folder):
        parsed = DirectParser(options).parse(text.encode(), f"{doc}.txt")
        texts[doc] = parsed.text
        spans[doc] = []
        for n, span in enumerate(
            chunk(parsed, options, embedder.count_tokens, embedder.identity.max_tokens)
        ):
            passages.append(TestPassage(f"{doc}-{n}", "", parsed.text[span.start : span.end]))
            spans[doc].append((span.start, span.end, f"{doc}-{n}"))
    for n, row in enumerate(_rows(folder / "questions.jsonl")):
        doc = str(row.get("doc") or row.get("corpus"))
        held = row.get("answers") or row.get("references")
        assert isinstance(held, list)
        questions.append(TestQuestion(str(n), str(row["question"]), n + 1))
        for reference in held:
            content = str(reference.get("text") or reference.get("content"))
            start = texts[doc].find(content)
            for begin, end, name in spans[doc]:
                if start >= 0 and 2 * (min(end, start + len(content)) - max(begin, start)) >= len(
                    content
                ):
                    relevance.setdefault(str(n), {})[name] = 1
    return Collection(folder.name, tuple(passages), tuple(questions), relevance)


def _documents(folder: Path) -> Iterator[tuple[str, str]]:
    if (folder / "documents.jsonl").is_file():
        yield from (
            (str(row["_id"]), str(row["text"])) for row in _rows(folder / "documents.jsonl")
        )
    else:
        yield from ((path.stem, path.read_text("utf-8")) for path in sorted(folder.glob("*.md")))


def _rows(path: Path) -> Iterator[dict[str, object]]:
    with path.open(encoding="utf-8") as lines:
        yield from (json.loads(line) for line in lines)


if __name__ == "__main__":
    main()
