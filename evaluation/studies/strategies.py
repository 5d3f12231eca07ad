"""Forty facts of three papers, searched by each strategy with one real model.

    HOSTED_URL=http://127.0.0.1:8080/v1 HOSTED_MODEL=NAME python -m evaluation.studies.strategies

The papers and questions are those of `facts`: COVID-QA's, each asked of its own paper, with answers of
at most five words. A fact is found where one of the first five passages holds an answer, word for
word. Finished rows are kept under --cache, so that a run that was ended goes on. Writes
evaluation/reports/strategies.{md,json}.
"""

from __future__ import annotations

import os
import statistics
import tempfile
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import partial
from itertools import chain, zip_longest
from pathlib import Path
from typing import get_args

from app.client import DocuMindClient
from app.core.types import Strategy
from app.evaluation.collections import Collection
from evaluation.lib.layouts import from_papers
from evaluation.lib.reports import COLLECTIONS, options, say, share, table, write
from evaluation.lib.served import Served
from evaluation.studies.facts import Fact, Kept, Row, facts_of, sent, written

COMMAND = "python -m evaluation.studies.strategies"
_PASSAGES = 5
_PAPERS = 3


def asked_of(collection: Collection, most: int) -> list[Fact]:
    """Return facts of the three papers that have the most, in turn."""
    facts = facts_of(collection)
    common = Counter(one.paper for one in facts).most_common(_PAPERS)
    each = [[one for one in facts if one.paper == paper] for paper, _ in common]
    return [one for one in chain.from_iterable(zip_longest(*each)) if one is not None][:most]


def search(client: DocuMindClient, ids: Mapping[str, str], strategy: Strategy, fact: Fact) -> Row:
    """Return whether the first passages hold the fact, and what the search took."""
    doc_id = ids[fact.paper]
    begun = time.perf_counter()
    answer = client.query(
        fact.question,
        library="papers",
        doc_ids=[doc_id],
        retrieval_strategy=strategy,
        retrieve_only=True,
        top_k=_PASSAGES,
        trace="full",
    )
    seconds = time.perf_counter() - begun
    text = str(client.get(f"/api/v1/documents/{doc_id}/text", {"library": "papers"})["text"])
    return {
        "found": any(fact.held(text[one["start"] : one["end"]]) for one in answer["sources"]),
        "calls": answer["trace"]["llm_calls"],
        "degraded": any(one["code"] == "strategy_degraded" for one in answer["notices"]),
        "seconds": round(seconds, 2),
    }


def main() -> None:
    given = options(__doc__, **COLLECTIONS, facts=(40, "questions"))
    papers = given.data / "foreign" / "covidqa"
    collection = from_papers(papers)
    asked = asked_of(collection, given.facts)
    model = os.environ["HOSTED_MODEL"]
    kept = Kept(given.cache / "strategies" / f"{model}.jsonl")
    rows: dict[Strategy, list[Row]] = {}
    with tempfile.TemporaryDirectory() as folder:
        files = written(collection, {one.paper for one in asked}, Path(folder))
        with Served(Path(folder, "data"), LLM_PROVIDER="openai_compatible") as server:
            ids = sent(server.client, files)
            for strategy in get_args(Strategy):
                rows[strategy] = []
                for at, fact in enumerate(asked, 1):
                    made = partial(search, server.client, ids, strategy, fact)
                    row = kept.row(f"{strategy}/{fact.key}", made)
                    rows[strategy].append(row)
                    say(f"{strategy} {at} of {len(asked)}: {row['found']}, {row['seconds']} s")
    _report(rows, model, papers)


def _report(rows: Mapping[Strategy, Sequence[Row]], model: str, papers: Path) -> None:
    lines = []
    figures: dict[str, float] = {}
    plain = [bool(row["found"]) for row in rows["baseline"]]
    for name, found in rows.items():
        holds = [bool(row["found"]) for row in found]
        won = sum(one and not other for one, other in zip(holds, plain, strict=True))
        lost = sum(other and not one for one, other in zip(holds, plain, strict=True))
        calls = statistics.mean(float(str(row["calls"])) for row in found)
        seconds = statistics.median(float(str(row["seconds"])) for row in found)
        degraded = sum(bool(row["degraded"]) for row in found)
        cells = (share(holds), f"{won} more, {lost} fewer", degraded, f"{calls:.1f}")
        lines.append((name, len(found), *cells, f"{seconds:.1f}"))
        figures[f"{name}: found"] = float(sum(holds))
    head = "strategy|facts|in the first five passages|against baseline|baseline instead|calls|seconds, median"
    write(
        "strategies",
        "Strategies over whole papers, with a real model",
        [f"Model {model}. Facts of three papers (COVID-QA), each searched in its own paper."],
        [],
        {},
        COMMAND,
        tables=table(head.split("|"), lines),
        aside=figures,
        sets=[papers],
    )


if __name__ == "__main__":
    main()
