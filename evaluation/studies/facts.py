"""Forty facts of whole papers, asked of the product and of a plain chain with one real model.

    HOSTED_URL=http://127.0.0.1:8080/v1 HOSTED_MODEL=NAME python -m evaluation.studies.facts

The papers and questions are COVID-QA's (DATA/foreign/covidqa), each asked of its own paper; answers
of at most five words, which a text holds or not. Quotes alone are asked first: as many facts that
they hold are taken as facts that they miss, in the order of a draw. Absent ones are questions asked of
another paper. The chain reads the first four passages of the product's own search, whole, with the
usual few words: a tutorial's chain. Finished rows are kept under --cache, so that a run that was ended
goes on. Writes evaluation/reports/facts.{md,json}.
"""

from __future__ import annotations

import json
import os
import random
import statistics
import tempfile
import time
from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from pathlib import Path

import requests

from app.client import DocuMindClient, FileToSend
from app.evaluation.collections import Collection, TestQuestion
from evaluation.lib.layouts import from_papers
from evaluation.lib.reports import COLLECTIONS, SEED, options, say, share, table, write
from evaluation.lib.served import Served

COMMAND = "python -m evaluation.studies.facts"
_WORDS = 5
"""Longest answer that is looked for as it stands."""
_PASSAGES = 4
_PAPERS = 24
_CHAIN = (
    "Answer the question with the context below, in at most three sentences. If the context does"
    " not say it, say that you do not know.\n\nContext: {context}\n\nQuestion: {question}\n\nAnswer:"
)
_PATIENCE_S = 600.0
_DENIES = (
    "do not know",
    "don't know",
    "does not say",
    "not mentioned",
    "no information",
    "unknown",
)


@dataclass(frozen=True, slots=True)
class Fact:
    """A question to one paper."""

    question: str
    paper: str
    answers: tuple[str, ...]
    absent: bool = False

    @property
    def key(self) -> str:
        return f"{self.paper}/{self.question}"

    def held(self, text: str) -> bool:
        """Return whether a text holds an answer."""
        plain = " ".join(text.casefold().split())
        return any(" ".join(one.casefold().split()) in plain for one in self.answers)


Row = Mapping[str, object]


class Kept:
    """Rows by key, written down one by one."""

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self._path = path
        lines = path.read_text("utf-8").splitlines() if path.is_file() else []
        self._rows: dict[str, Row] = {row["key"]: row for row in map(json.loads, lines)}

    def row(self, key: str, make: Callable[[], Row]) -> Row:
        """Return a row that is kept, or make and keep it."""
        if key not in self._rows:
            self._rows[key] = {"key": key, **make()}
            with self._path.open("a", encoding="utf-8") as file:
                file.write(json.dumps(self._rows[key]) + "\n")
        return self._rows[key]


def facts_of(collection: Collection) -> list[Fact]:
    """Return the questions with short answers about so many papers, in the order of a draw."""
    found = [
        Fact(one.text, next(iter(collection.relevance[one.id])), answers_of(one))
        for one in collection.questions
        if one.answers and all(len(answer.split()) <= _WORDS for answer in one.answers)
    ]
    random.Random(SEED).shuffle(found)
    papers = list(dict.fromkeys(one.paper for one in found))[:_PAPERS]
    return [one for one in found if one.paper in papers]


def answers_of(question: TestQuestion) -> tuple[str, ...]:
    return tuple(answer.strip(" .,;=") for answer in question.answers)


def chosen(facts: Sequence[Fact], quoted: Callable[[Fact], Row], half: int) -> list[Fact]:
    """Return `half` facts that the quotes hold, and as many that they miss."""
    halves: dict[bool, list[Fact]] = {True: [], False: []}
    for fact in facts:
        if all(len(one) >= half for one in halves.values()):
            break
        side = halves[bool(quoted(fact)["seen"])]
        if len(side) < half:
            side.append(fact)
    return halves[True] + halves[False]


def absent(facts: Sequence[Fact], asked: Sequence[Fact], most: int) -> list[Fact]:
    """Return questions of further facts, each asked of the paper of the one before it."""
    rest = [one for one in facts if one not in asked]
    found: list[Fact] = []
    for one, other in pairwise(rest):
        if one.paper != other.paper and len(found) < most:
            found.append(Fact(one.question, other.paper, one.answers, absent=True))
    return found


def ask(client: DocuMindClient, ids: Mapping[str, str], fact: Fact) -> Row:
    """Return what the product says."""
    begun = time.perf_counter()
    answer = client.query(fact.question, library="papers", doc_ids=[ids[fact.paper]])
    own = str(answer.get("model_text") or "")
    quote = answer.get("quote")
    seen = f"{answer['answer']}\n{quote['text'] if isinstance(quote, dict) else ''}"
    return {
        "status": answer["status"],
        "seen": answer["status"] == "answered" and fact.held(seen),
        "own": answer["status"] == "answered" and fact.held(own or str(answer["answer"])),
        "asked": own != "" or any(one["code"] == "quoted_instead" for one in answer["notices"]),
        "text": answer["answer"],
        "model_text": own,
        "seconds": round(time.perf_counter() - begun, 2),
    }


def chain(client: DocuMindClient, ids: Mapping[str, str], fact: Fact) -> Row:
    """Return what a plain chain says over the product's first passages."""
    begun = time.perf_counter()
    hits = client.search(fact.question, "papers", limit=_PASSAGES, doc_ids=[ids[fact.paper]])[
        "hits"
    ]
    context = "\n\n".join(str(hit["text"]) for hit in hits)
    said = _CHAIN.format(context=context, question=fact.question)
    reply = requests.post(
        f"{os.environ['HOSTED_URL']}/chat/completions",
        json={
            "model": os.environ["HOSTED_MODEL"],
            "messages": [{"role": "user", "content": said}],
            "temperature": 0,
            "max_tokens": 256,
        },
        timeout=_PATIENCE_S,
    )
    reply.raise_for_status()
    text = str(reply.json()["choices"][0]["message"]["content"])
    refused = any(one in text.casefold().replace("\u2019", "'") for one in _DENIES)
    return {
        "status": "abstained" if refused else "answered",
        "own": fact.held(text),
        "text": text,
        "seconds": round(time.perf_counter() - begun, 2),
    }


def main() -> None:
    given = options(
        __doc__,
        **COLLECTIONS,
        half=(20, "facts that the quotes hold, and as many that they miss"),
        absent=(10, "questions that their paper does not answer"),
    )
    source = given.data / "foreign" / "covidqa"
    collection = from_papers(source)
    facts = facts_of(collection)
    model = os.environ["HOSTED_MODEL"]
    kept = Kept(given.cache / "facts" / f"{model}.jsonl")
    with tempfile.TemporaryDirectory() as folder:
        papers = {one.paper for one in facts}
        ids, quotes = written(collection, papers, Path(folder)), "quotes"
        with Served(Path(folder, "data"), LLM_PROVIDER="extractive") as server:  # quotes alone
            by_id = sent(server.client, ids)

            def quoted(fact: Fact) -> Row:
                return kept.row(f"{quotes}/{fact.key}", lambda: ask(server.client, by_id, fact))

            asked = chosen(facts, quoted, given.half)
            asked += absent(facts, asked, given.absent)
            rows = {quotes: [(fact, quoted(fact)) for fact in asked]}
        with Served(Path(folder, "data"), LLM_PROVIDER="openai_compatible") as server:
            for name, by in (("product", ask), ("chain", chain)):
                rows[name] = []
                for at, fact in enumerate(asked, 1):
                    made = partial(by, server.client, by_id, fact)
                    row = kept.row(f"{name}/{fact.key}", made)
                    rows[name].append((fact, row))
                    say(f"{name} {at} of {len(asked)}: {row['status']}, {row['seconds']} s")
    _report(rows, model, source)


def written(collection: Collection, papers: Container[str], folder: Path) -> dict[str, Path]:
    """Write papers as files and return them by their ids."""
    files = {}
    for one in (one for one in collection.passages if one.id in papers):
        path = folder / f"{one.id}.txt"
        path.write_text(f"{one.title}\n\n{one.text}" if one.title else one.text, "utf-8")
        files[one.id] = path
    return files


def sent(client: DocuMindClient, files: Mapping[str, Path]) -> dict[str, str]:
    """Send the papers and return their document ids."""
    given = [FileToSend(path) for path in files.values()]
    found: dict[str, str] = {}
    for begin in range(0, len(given), 8):
        reply = client.ingest(given[begin : begin + 8], "papers")
        for name, one in zip(list(files)[begin : begin + 8], reply["documents"], strict=True):
            found[name] = str(one["doc_id"])
    return found


def _report(rows: Mapping[str, Sequence[tuple[Fact, Row]]], model: str, papers: Path) -> None:
    lines = []
    figures: dict[str, float] = {}
    for name, found in rows.items():
        present = [row for fact, row in found if not fact.absent]
        refused = [row["status"] == "abstained" for fact, row in found if fact.absent]
        own = [bool(row["own"]) for row in present]
        seen = [bool(row.get("seen", row["own"])) for row in present]
        half = len(present) // 2
        seconds = statistics.median(float(str(row["seconds"])) for row in present)
        cells = (share(seen), share(own), f"{sum(own[half:])} of {len(own[half:])}", share(refused))
        lines.append((name, len(present), *cells, f"{seconds:.1f}"))
        figures[f"{name}: own words right"] = float(sum(own))
        figures[f"{name}: seen right"] = float(sum(seen))
        figures[f"{name}: absent refused"] = float(sum(refused))
    head = (
        "who|facts|seen right|in its own words|of those that the quotes miss"
        "|absent refused|seconds, median"
    )
    remarks = [
        f"Model {model}. Facts of whole papers (COVID-QA), half of them chosen because the quotes"
        " miss them: these figures compare, they are no quality of answers.",
        "Right: the text holds an answer of the set, word for word. Shares with 95 % intervals.",
    ]
    write(
        "facts",
        "Facts of papers, with a real model",
        remarks,
        [],
        {},
        COMMAND,
        tables=table(head.split("|"), lines),
        aside=figures,
        sets=[papers],
    )


if __name__ == "__main__":
    main()
