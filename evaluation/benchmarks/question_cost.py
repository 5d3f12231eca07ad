"""Count what a search asks of PostgreSQL and of the engine, at growing sizes of the library.

    python -m evaluation.benchmarks.question_cost [--sizes 10000 100000 300000]

PostgreSQL is real, Qdrant the double in a process of its own (the extra `shared`). Counts, not
times, are compared. Writes evaluation/reports/question_cost.{md,json}.
"""

from __future__ import annotations

import random
import string
import tempfile
from pathlib import Path
from statistics import median

from app.bootstrap import build_services
from app.bootstrap.services import Services
from app.core.types import Library, Question
from app.jobs.kinds import SAMPLES
from app.settings import Settings
from evaluation.lib.reports import Line, options, write
from tests.fakes.postgres_server import running_server
from tests.shared.engines import DoubleProcess
from tests.unit.storage.drafts import make_draft

PAPERS = Library.PAPERS
QUESTIONS = (
    "What does retrieval augmented generation combine?",
    "How are documents retrieved for a generation?",
    "Which attention does the model use?",
)
ROUNDS = 5
BATCH, CHUNKS_EACH, WORDS_EACH = 400, 10, 250
COMMON = 0.3
"""Share of the words that are those of the questions, so that every question meets many chunks."""
VOCABULARY = 20_000


def fill(services: Services, size: int, chance: random.Random) -> None:
    """Bring documents until the library has so many chunks."""
    named = " ".join(QUESTIONS).lower().translate(str.maketrans("", "", "?")).split()
    others = ["".join(chance.choices(string.ascii_lowercase, k=7)) for _ in range(VOCABULARY)]
    while (held := services.catalog.counts(PAPERS)).chunks < size:
        drafts = []
        for number in range(held.documents, held.documents + BATCH):
            words = [
                chance.choice(named if chance.random() < COMMON else others)
                for _ in range(WORDS_EACH)
            ]
            drafts.append(make_draft(f"made{number}", " ".join(words), chunks=CHUNKS_EACH))
        services.writer.store(drafts)
    services.writer.flush(PAPERS)


def asked(services: Services) -> dict[str, float]:
    """Return the median number of calls of each engine that a search takes."""
    counts: dict[str, list[int]] = {calls.engine: [] for calls in services.store.calls}
    for question in QUESTIONS * (ROUNDS + 1):
        before = {calls.engine: calls.count for calls in services.store.calls}
        services.rag.answer(Question(question, "papers", retrieve_only=True))
        for calls in services.store.calls:
            counts[calls.engine].append(calls.count - before[calls.engine])
    return {engine: median(found[len(QUESTIONS) :]) for engine, found in counts.items()}


def main() -> int:
    sizes = sorted(
        options(__doc__, sizes=((10_000, 100_000, 300_000), "chunks of the library")).sizes
    )
    found: dict[int, dict[str, float]] = {}
    with tempfile.TemporaryDirectory() as folder, running_server() as database:
        engine = DoubleProcess(Path(folder) / "engine")
        engine.start()
        try:
            settings = Settings(
                _env_file=None, data_dir=Path(folder) / "data", database_url=database.url(),
                search_url=engine.url, embedding_provider="minilm", samples="off", ocr="off",
            )  # fmt: skip
            with build_services(settings) as services:
                job = services.jobs.submit(SAMPLES, {"purge": False})
                services.jobs.wait(job.id, 120)
                chance = random.Random(1)
                for size in sizes:
                    fill(services, size, chance)
                    found[size] = asked(services)
        finally:
            engine.kill()
    least, most = found[sizes[0]], found[sizes[-1]]
    return write(
        "question_cost",
        "What a search asks of PostgreSQL and of the engine",
        [
            "Synthetic text; only the samples have vectors. One server, PostgreSQL without fsync, and a",
            "**double** of Qdrant. A call of PostgreSQL is a statement or a transaction, a call of the",
            "engine a request; medians.",
        ],
        [
            Line(
                f"calls of the {engine} more at {sizes[-1]:,} chunks", most[engine] - least[engine]
            )
            for engine in least
        ],
        {
            f"calls of the {engine} at {size:,} chunks": count
            for size, counts in found.items()
            for engine, count in counts.items()
        },
        "python -m evaluation.benchmarks.question_cost --sizes " + " ".join(map(str, sizes)),
    )


if __name__ == "__main__":
    raise SystemExit(main())
