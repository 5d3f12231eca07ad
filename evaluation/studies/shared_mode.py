"""Move libraries between both modes, and ask both the same questions.

    python -m evaluation.studies.shared_mode [--data DIR] [--passages N] [--questions N]
        [--database-url URL --search-url URL]

An embedded server gets the samples and passages of squad; `documind export` and `documind import`
move both libraries to a server over PostgreSQL and Qdrant, and back to an embedded one. Without
addresses it starts a PostgreSQL and the double of Qdrant; it needs the extra `shared`. Writes
evaluation/reports/shared_mode.{md,json}; exits 1 when a limit does not hold.
"""

from __future__ import annotations

import random
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from qdrant_client import models

from app.core.types import Library
from app.evaluation.cases import CaseBody, load
from app.evaluation.collections import Collection, from_folder
from app.evaluation.metrics import bootstrap_interval
from app.models.minilm import MiniLmEmbedder
from app.storage.engine import PREFIX, SearchEngine
from app.storage.vectors.qdrant import DENSE, ROOM
from evaluation.lib.modes import (
    DEPTH,
    Asked,
    Held,
    Same,
    ask,
    command,
    compared,
    contents,
    fill,
    interval,
    settle,
)
from evaluation.lib.paths import ROOT
from evaluation.lib.served import Line, Served, quantile, write
from evaluation.lib.workbench import SEED, arguments, say
from tests.fakes.postgres_server import running_server
from tests.shared.engines import DoubleProcess

SAMPLES = ROOT / "data" / "sample_docs" / "questions.jsonl"
SETTINGS = {"EMBEDDING_PROVIDER": "minilm", "LLM_PROVIDER": "extractive"}
REMARKS = (
    "An embedded server (SQLite, tantivy, vectors in memory) gets the samples and passages of"
    " squad. `documind export` and",
    "`documind import` move both libraries to a shared server (PostgreSQL, Qdrant), and from there"
    " to a new embedded server.",
    "Each server answers the same questions without a model key; a search returns ten hits. An"
    " answer is right when it holds",
    "an expected string and an expected document, or refuses what is out of scope.",
    "",
    "PostgreSQL is real. Unless an address was given, Qdrant is a **double**: one shard of"
    " `qdrant-edge-py`, the engine of",
    "the server, behind HTTP on loopback. Several shards, replication, majorities and raft were not"
    " run.",
)


@dataclass(frozen=True, slots=True)
class Journey:
    """What the servers answered, in the order in which the libraries came to them."""

    embedded: list[Asked]
    shared: list[Asked]
    back: list[Asked]
    documents: int
    same_there: int
    """Documents whose text, language, vectors and codes are the same bytes in the shared mode."""
    same_back: int
    vectors: int
    coded: int
    """Documents with codes for late interaction."""
    exact: float
    """Overlap of the engine's neighbours with those of its exact search."""
    faults: int
    """What a check of the shared store finds."""


@contextmanager
def engines(folder: Path, database_url: str, search_url: str) -> Iterator[dict[str, str]]:
    """Yield the settings of the shared mode; start what has no address."""
    if database_url and search_url:
        yield {"DATABASE_URL": database_url, "SEARCH_URL": search_url}
        return
    double = DoubleProcess(folder / "engine")
    with running_server() as postgres:
        double.start()
        try:
            yield {"DATABASE_URL": postgres.url(), "SEARCH_URL": double.url}
        finally:
            double.kill()


def chosen(squad: Collection, passages: int, questions: int) -> tuple[Collection, list[CaseBody]]:
    """Return passages and questions about some of them, drawn by the seed."""
    draw = random.Random(SEED)
    kept = tuple(draw.sample(squad.passages, min(passages, len(squad.passages))))
    ids = {passage.id for passage in kept}
    about = [
        question
        for question in squad.judged().questions
        if question.answers and ids & set(squad.relevance[question.id])
    ]
    cases = [
        CaseBody(question.text, "public", "question", question.answers)
        for question in draw.sample(about, min(questions, len(about)))
    ]
    return Collection("squad", kept, (), {}), cases


def journey(
    folder: Path, squad: Collection, cases: Sequence[CaseBody], shared: dict[str, str]
) -> Journey:
    """Fill, ask, move, ask, move back, ask."""
    with Served(folder / "embedded", **SETTINGS) as server:
        fill(server, squad.passages, folder / "files")
        say("the embedded server answers")
        first = ask(server, cases)
        vectors = _exported(server, folder / "there")
    with Served(folder / "shared", **SETTINGS, **shared) as server:
        _imported(server, folder / "there")
        say("the shared server answers")
        second = ask(server, cases)
        _exported(server, folder / "back")
        faults = len(server.client.follow(_checked(server))["result"]["faults"])
    exact = exactness(shared["SEARCH_URL"], [case.question for case in cases], folder)
    with Served(folder / "again", **SETTINGS) as server:
        _imported(server, folder / "back")
        say("the second embedded server answers")
        third = ask(server, cases)
        _exported(server, folder / "end")
    held = [_contents(folder / name) for name in ("there", "back", "end")]
    same = [sum(held[0][key] == one.get(key) for key in held[0]) for one in held]
    coded = sum(bool(document.code_sizes) for document in held[0].values())
    return Journey(
        first, second, third, same[0], same[1], same[2], vectors, coded, exact, faults
    )  # fmt: skip


def _exported(server: Served, folder: Path) -> int:
    folder.mkdir()
    done = [
        command(server, "export", library.value, str(folder / library.value)) for library in Library
    ]
    return sum(int(str(one["vectors"])) for one in done)


def _imported(server: Served, folder: Path) -> None:
    for library in Library:
        command(server, "import", str(folder / library.value))
    settle(server)


def _contents(folder: Path) -> dict[tuple[Library, str], Held]:
    return {
        (library, key): value
        for library in Library
        for key, value in contents(folder / library.value).items()
    }


def _checked(server: Served) -> str:
    return str(server.client.post("/api/v1/fsck", {})["id"])


def exactness(url: str, questions: Sequence[str], folder: Path) -> float:
    """Return how many of ten neighbours are those of the exact search."""
    embedder, engine = MiniLmEmbedder(folder / "embedded" / "models"), SearchEngine(url)
    (name,) = (name for name in engine.collections() if name.startswith(f"{ROOM}public"))
    overlaps = []
    for question in questions:
        query = embedder.embed_query(question).tolist()
        usual = {found for found, _ in engine.search(name, DENSE, query, DEPTH, width=400)}
        exact = engine.call(
            lambda client, query=query: client.query_points(  # type: ignore[misc]
                PREFIX + name, query=query, using=DENSE, limit=DEPTH,
                search_params=models.SearchParams(exact=True),
            )
        )  # fmt: skip
        overlaps.append(len(usual & {point.id for point in exact.points}) / DEPTH)
    engine.close()
    return float(np.mean(overlaps))


def _table(rows: Sequence[tuple[str, Same]]) -> list[str]:
    """Return counts and intervals as Markdown."""
    lines = [
        "",
        "| questions, moved | n | same status | same first cited document | overlap@10 | right |",
        "|---|---|---|---|---|---|",
    ]
    for name, same in rows:
        mean = bootstrap_interval(np.array(same.overlaps), seed=SEED)
        n = same.questions
        lines.append(
            f"| {name} | {n} | {_share(same.status, n)} | {_share(same.first_cited, n)}"
            f" | {mean.mean:.3f} ({mean.low:.3f} to {mean.high:.3f})"
            f" | {same.right[0]} before, {same.right[1]} after |"
        )
    return [*lines, "", "Intervals are of 95 %: Wilson's of shares, by bootstrap of means."]


def _share(hits: int, n: int) -> str:
    low, high = interval(hits, n)
    return f"{hits} ({low:.3f} to {high:.3f})"


def report(found: Journey, cut: int, remarks: Sequence[str], invoked: str) -> int:
    """Write the report; the first `cut` questions are the samples'."""
    there, back = (
        [compared(found.embedded[part], after[part]) for part in (slice(cut), slice(cut, None))]
        for after in (found.shared, found.back)
    )
    rows = [
        ("samples, to shared", there[0]), ("squad, to shared", there[1]),
        ("samples, and back", back[0]), ("squad, and back", back[1]),
    ]  # fmt: skip
    lines = [
        Line(f"{name}: overlap@{DEPTH}", same.overlap, 0.95, "", at_most=False)
        for name, same in rows
    ]
    lines += [
        Line(f"{name}: {what}, of {same.questions}", measured, limit, "", at_most=False)
        for name, same in (rows[0], rows[2])
        for what, measured, limit in (
            ("same status", same.status, same.questions),
            ("same first cited document", same.first_cited, 0.95 * same.questions),
            ("right answers", same.right[1], same.right[0]),
        )
    ]
    lines += [
        Line("documents the same, bytes of vectors and codes, shared", found.same_there,
             found.documents, "", at_most=False),
        Line("documents the same, bytes of vectors and codes, back", found.same_back,
             found.documents, "", at_most=False),
        Line("faults that fsck finds in the shared store", found.faults, 0, ""),
    ]  # fmt: skip
    figures = {
        "documents": float(found.documents),
        "documents with codes": float(found.coded),
        "vectors": float(found.vectors),
        "overlap of the engine's neighbours with its exact search": found.exact,
    }
    for name, asked in (("embedded", found.embedded), ("shared", found.shared)):
        figures[f"{name}: median of an answer, ms"] = quantile([one.ms for one in asked], 0.5)
    return write(
        "shared_mode", "Embedded and shared", [*remarks, *_table(rows)], lines, figures, invoked
    )


def main() -> int:
    """Run, report, and return 1 when a limit does not hold."""
    parser = arguments(__doc__ or "")
    parser.add_argument("--passages", type=int, default=500, help="of squad")
    parser.add_argument("--questions", type=int, default=200, help="of squad")
    parser.add_argument("--database-url", default="", help="an empty PostgreSQL")
    parser.add_argument("--search-url", default="", help="a Qdrant without collections of ours")
    given = parser.parse_args()
    squad, about = chosen(from_folder(given.data / "squad"), given.passages, given.questions)
    samples = load(SAMPLES)
    with tempfile.TemporaryDirectory(prefix="documind-modes-") as temporary:
        folder = Path(temporary)
        with engines(folder, given.database_url, given.search_url) as shared:
            found = journey(folder, squad, [*samples, *about], shared)
    invoked = (
        "python -m evaluation.studies.shared_mode"
        f" --passages {given.passages} --questions {given.questions}"
    )
    return report(found, len(samples), REMARKS, invoked)


if __name__ == "__main__":
    sys.exit(main())
