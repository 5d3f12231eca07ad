"""Compare search with plain baselines and with other products, on the same vectors.

    python -m evaluation.benchmarks.scoreboard [--data DIR] [--questions N]
        [--peer langchain=PYTHON] [--peer txtai=PYTHON] [--trec DIR]

Each contestant runs in a process of its own; a peer in the environment of its PYTHON. Baselines and
peers get pieces of 1,000 characters with 150 in common, as tutorials cut them, with the vectors
of the embedded model; DocuMind reads and cuts the same texts itself. Documents are ranked by their
best piece. Writes evaluation/reports/scoreboard.{md,json}.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from langchain_text_splitters import RecursiveCharacterTextSplitter

from app.core.ports import Embedder
from app.core.trace import Trace
from app.core.types import EmbedderIdentity, FloatArray, Library
from app.evaluation.collections import Collection, from_folder
from app.evaluation.metrics import compare, per_question
from app.evaluation.workshop import CachedEmbedder, bench
from app.ingest.names import IngestOptions
from app.models.minilm import MiniLmEmbedder
from app.retrieval.pipeline import Retriever
from app.retrieval.request import RetrievalOptions, SearchRequest
from app.retrieval.reranking import LateInteraction
from evaluation.benchmarks.contest import cpu_s, peak_mb
from evaluation.lib.paths import REPORTS, ROOT
from evaluation.lib.served import write
from evaluation.lib.workbench import SEED, arguments, say

COMMAND = "make scoreboard"
SETS = ("squad", "cranfield", "pubmedqa", "foreign/clapnq")
OURS = "DocuMind"
NAMES = {
    "bm25": "BM25 alone",
    "dense": "vectors alone",
    "rrf": "both, by reciprocal rank",
    "min_max": "both, scaled and added (ten lines)",
    "langchain": "LangChain with Chroma",
    "txtai": "txtai, hybrid",
}
"""Contestants beside DocuMind, as the report calls them."""
PEERS = ("langchain", "txtai")
DEPTH = 20
MEASURES = ("nDCG@10", "R@5")
_CONTEST = Path(__file__).with_name("contest.py")


@dataclass(frozen=True, slots=True)
class Result:
    """What a contestant found and used on one collection."""

    rankings: Mapping[str, Sequence[str]]
    """Documents by question, best first."""
    index_ms: float
    """Processor milliseconds a document, without its vectors."""
    ask_ms: float
    """The same for a question."""
    kb: float | None
    """Kilobytes on disk for a document; None where nothing is stored."""
    peak_mb: float
    version: str


class KnownQuestions:
    """An embedder that has the vectors of the questions already: embedding is no contestant's."""

    def __init__(self, inner: Embedder, questions: Sequence[str]) -> None:
        self._inner = inner
        self._known = {text: inner.embed_query(text) for text in questions}

    @property
    def identity(self) -> EmbedderIdentity:
        return self._inner.identity

    def embed_passages(self, texts: Sequence[str]) -> FloatArray:
        """Return float32 `[n, dim]`, rows of L2 norm 1."""
        return self._inner.embed_passages(texts)

    def embed_query(self, text: str) -> FloatArray:
        """Return float32 `[dim]` of L2 norm 1."""
        return self._known[text] if text in self._known else self._inner.embed_query(text)

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        """Return the model's own counts."""
        return self._inner.count_tokens(texts)


def prepare(collection: Collection, folder: Path) -> list[str]:
    """Write pieces and questions with their vectors for `contest.py`; return each piece's document."""
    model = MiniLmEmbedder()
    splitter = RecursiveCharacterTextSplitter(chunk_size=1000, chunk_overlap=150)
    owners, texts = [], []
    for passage in collection.passages:
        for text in splitter.split_text(passage.document):
            owners.append(passage.id)
            texts.append(text)
    unique = dict.fromkeys(texts)
    rows = dict(zip(unique, model.embed_passages(_cut(model, list(unique))), strict=True))
    questions = [question.text for question in collection.questions]
    for name, of in (("pieces", texts), ("questions", questions)):
        lines = (json.dumps({"text": text}) + "\n" for text in of)
        (folder / f"{name}.jsonl").write_text("".join(lines), encoding="utf-8")
    np.save(folder / "pieces.npy", np.stack([rows[text] for text in texts]))
    np.save(folder / "questions.npy", np.stack([model.embed_query(text) for text in questions]))
    return owners


def _cut(model: Embedder, texts: Sequence[str]) -> list[str]:
    """Return texts with what the model reads of them, as sentence-transformers cut them."""
    most, cut = model.identity.max_tokens, []
    for text, tokens in zip(texts, model.count_tokens(texts), strict=True):
        while tokens > most:
            text = text[: int(len(text) * (most - 1) / tokens)]  # noqa: PLW2901
            tokens = model.count_tokens([text])[0]  # noqa: PLW2901
        cut.append(text)
    return cut


def contest(
    name: str, python: str, collection: Collection, owners: Sequence[str], folder: Path
) -> Result:
    """Let a contestant of `contest.py` index and answer."""
    subprocess.run(  # the interpreter that the user names
        [python, "-P", "-B", str(_CONTEST), name, str(folder)], check=True, cwd=folder
    )
    record = json.loads((folder / f"{name}.json").read_text("utf-8"))
    rankings = {
        question.id: list(dict.fromkeys(owners[piece] for piece in found))[:DEPTH]
        for question, found in zip(collection.questions, record["found"], strict=True)
    }
    return _result(rankings, record, collection)


def _result(
    rankings: Mapping[str, Sequence[str]], record: Mapping[str, float], collection: Collection
) -> Result:
    documents = len(collection.passages)
    return Result(
        rankings,
        1000 * record["index_s"] / documents,
        1000 * record["ask_s"] / len(collection.questions),
        record["bytes"] / documents / 1000 if record["bytes"] else None,
        record["peak_mb"],
        str(record["version"]),
    )


def take_part(collection: Collection, cache: Path) -> dict[str, object]:
    """Return what DocuMind finds and uses, as `contest.py` records it; documents instead of pieces.

    The vectors are made before by an index that is thrown away; codes for late interaction are a
    part of the index.
    """
    model = MiniLmEmbedder()
    embedder = KnownQuestions(
        CachedEmbedder(model, cache / "passages"), [one.text for one in collection.questions]
    )
    with bench(collection, embedder, ingest=IngestOptions()):
        pass
    encoder = model.late_encoder()
    begun = cpu_s()
    with bench(collection, embedder, ingest=IngestOptions(), encoder=encoder) as opened:
        indexed, store = cpu_s(), opened.store
        late = LateInteraction(store.codes, encoder)
        retriever = Retriever(
            store.catalog, store.vectors, store.lexical, embedder, RetrievalOptions(), late=late
        )

        def ask(text: str) -> list[str]:
            request = SearchRequest(text, Library.PUBLIC, top_k=DEPTH, keep_weak=True)
            hits = retriever.retrieve(request, Trace()).hits
            found = (opened.passage_of[hit.passage.chunk.doc_id] for hit in hits)
            return list(dict.fromkeys(found))

        ask(collection.questions[0].text)
        warm = cpu_s()
        found = {one.id: ask(one.text) for one in collection.questions}
        done = cpu_s()
        place = store.options.data_dir
        stored = sum(path.stat().st_size for path in place.rglob("*") if path.is_file())
        peak = peak_mb()
    return {
        "found": found,
        "index_s": indexed - begun,
        "ask_s": done - warm,
        "bytes": stored,
        "peak_mb": peak,
        "version": "this checkout",
    }


def ours(collection: Collection, name: str, given: argparse.Namespace, folder: Path) -> Result:
    """Let DocuMind take part in a process of its own, as the others do."""
    out = folder / "documind.json"
    command = [sys.executable, "-m", "evaluation.benchmarks.scoreboard"]
    command += ["--data", str(given.data), "--cache", str(given.cache), "--alone", name]
    command += ["--questions", str(given.questions), "--out", str(out)]
    subprocess.run(command, check=True, cwd=ROOT)  # our own interpreter
    record = json.loads(out.read_text("utf-8"))
    return _result(record["found"], record, collection)


def quality_table(name: str, scores: Mapping[str, Mapping[str, Mapping[str, float]]]) -> list[str]:
    """Return a table of a collection, what is better than DocuMind first.

    Args:
        name: Of the collection.
        scores: Contestant to measure to question to value.
    """
    first = MEASURES[0]
    against = {
        row.arm: row.difference
        for row in compare(OURS, {who: of[first] for who, of in scores.items()}, seed=SEED)
    }
    means = {
        who: {measure: float(np.mean(list(of[measure].values()))) for measure in MEASURES}
        for who, of in scores.items()
    }
    order = sorted(scores, key=lambda who: -means[who][first])
    lines = [
        f"| {name}, {len(scores[OURS][first])} questions | {' | '.join(MEASURES)}"
        f" | {first} beside {OURS}, 95 % |",
        "|---|---|---|---|",
    ]
    for who in order:
        shown = " | ".join(f"{means[who][measure]:.3f}" for measure in MEASURES)
        beside = against.get(who)
        apart = f"{beside.mean:+.3f} ({beside.low:+.3f} to {beside.high:+.3f})" if beside else ""
        lines.append(f"| {who} | {shown} | {apart} |")
    return ["", *lines]


def cost_table(results: Mapping[str, Sequence[Result]]) -> list[str]:
    """Return what each contestant costs, the mean over the collections."""
    lines = [
        "| | processor ms a document | a question | kB on disk a document | peak MB | version |",
        "|---|---|---|---|---|---|",
    ]
    for who, found in sorted(
        results.items(), key=lambda item: np.mean([r.ask_ms for r in item[1]])
    ):
        stored = [one.kb for one in found if one.kb is not None]
        cells = [
            f"{np.mean([one.index_ms for one in found]):.2g}",
            f"{np.mean([one.ask_ms for one in found]):.2g}",
            f"{np.mean(stored):.1f}" if stored else "in memory",
            f"{max(one.peak_mb for one in found):.0f}",
            found[0].version,
        ]
        lines.append(f"| {who} | {' | '.join(cells)} |")
    return ["", "## What it costs, without the vectors", "", *lines]


def elsewhere() -> list[str]:
    """Return figures of our own reports about what the other contestants do not do."""

    def report(name: str) -> dict[str, Any]:
        found: dict[str, Any] = json.loads((REPORTS / f"{name}.json").read_text("utf-8"))
        return found

    rows = [("whole", line["what"], line["measured"]) for line in report("whole")["lines"]]
    rows += [
        ("confidence", what, value)
        for what, value in report("confidence")["figures"].items()
        if what.startswith("with vectors: refused")
    ]
    checked = report("false_claims")["sets"]["by hand"]
    rows += [
        ("false_claims", f"{kind} sentences called supported", checked[kind]["all"]["supported"])
        for kind in ("true", "false")
    ]
    cited = report("grounding")["citations"]
    rows += [
        ("grounding", "right citations kept", cited["right"]["kept"]),
        ("grounding", "planted wrong citations kept", cited["random"]["kept"]),
    ]
    rows += [("documents", what, found[0]) for what, found in report("documents")["pdf"].items()]
    lines = ["| report | figure | |", "|---|---|---|"]
    lines += [f"| [{name}]({name}.md) | {what} | {value:.3g} |" for name, what, value in rows]
    return ["", "## What the others have no counterpart of", "", *lines]


def write_trec(
    folder: Path, name: str, collection: Collection, results: Mapping[str, Result]
) -> None:
    """Write judgements and one run a contestant, in the formats of trec_eval."""
    folder.mkdir(parents=True, exist_ok=True)
    stem = name.replace("/", "-")
    judged = (
        f"{question.id} 0 {passage} {grade}\n"
        for question in collection.questions
        for passage, grade in collection.relevance[question.id].items()
    )
    (folder / f"{stem}.qrels").write_text("".join(judged), encoding="utf-8")
    for who, result in results.items():
        tag = next((short for short, title in NAMES.items() if title == who), who)
        rows = (
            f"{question} Q0 {passage} {rank} {DEPTH + 1 - rank} {tag}\n"
            for question, ranking in result.rankings.items()
            for rank, passage in enumerate(ranking, start=1)
        )
        (folder / f"{stem}.{tag}.run").write_text("".join(rows), encoding="utf-8")


def collection_of(data: Path, name: str, most: int) -> Collection:
    """Return a collection with judged questions of odd lines; no weight saw these."""
    return from_folder(data / name).judged().half("odd").sample(most, SEED)


def main() -> None:
    parser = arguments(__doc__ or "")
    parser.add_argument("--questions", type=int, default=300, help="most questions of a set")
    parser.add_argument("--peer", action="append", default=[], help="NAME=PYTHON of a product")
    parser.add_argument("--trec", type=Path, help="folder for run and qrels files")
    parser.add_argument("--alone", help="run DocuMind on one set and write --out")
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    if given.alone:
        collection = collection_of(given.data, given.alone, given.questions)
        given.out.write_text(json.dumps(take_part(collection, given.cache)), encoding="utf-8")
        return
    pythons = dict(one.split("=", 1) for one in given.peer)
    tables: list[str] = []
    results: dict[str, list[Result]] = {}
    for name in SETS:
        collection = collection_of(given.data, name, given.questions)
        found: dict[str, Result] = {}
        with tempfile.TemporaryDirectory(prefix="documind-scoreboard-") as place:
            folder = Path(place)
            owners = prepare(collection, folder)
            found[OURS] = ours(collection, name, given, folder)
            for short, title in NAMES.items():
                if short in PEERS and short not in pythons:
                    continue
                python = pythons.get(short, sys.executable)
                found[title] = contest(short, python, collection, owners, folder)
                say(f"{name}: {title}")
        scores = {
            who: per_question(one.rankings, collection.relevance, MEASURES)
            for who, one in found.items()
        }
        tables += quality_table(name, scores)
        for who, one in found.items():
            results.setdefault(who, []).append(one)
        if given.trec:
            write_trec(given.trec, name, collection, found)
    left = [NAMES[one] for one in PEERS if one not in pythons]
    remarks = [
        f"Odd lines of the questions, at most {given.questions} of a set, one text a document,"
        " the same vectors for all. A difference is the contestant's less DocuMind's, paired.",
        "DocuMind's index has codes for late interaction too: a second pass of the model over each text. haiku.rag needs Python 3.12 and is not run.",
        *([f"Not run, because no --peer names it: {', '.join(left)}."] if left else []),
    ]
    tables += [*cost_table(results), *elsewhere()]
    write("scoreboard", "Scoreboard", remarks, [], {}, COMMAND, tables=tables)


if __name__ == "__main__":
    main()
