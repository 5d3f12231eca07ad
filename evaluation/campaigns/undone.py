"""Delete while uploads, fetched pages, feeds, moves and rereads are under way; nothing comes back.

    make bench-undone                                    # 500 rounds
    python -m evaluation.campaigns.undone --rounds 20

Writes evaluation/reports/undone.{md,json}.
"""

from __future__ import annotations

import logging
import random
import sys
import tempfile
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from sqlalchemy import update

from app.core.cancel import CancelToken
from app.core.errors import NotFound
from app.core.ids import document_id
from app.core.types import Fingerprint, Library, PageWords, ParsedDocument, RawDocument, json_values
from app.ingest.embedding import VectorBackfill
from app.ingest.options import IngestOptions
from app.ingest.parsers import DirectParser
from app.ingest.pipeline import IngestPipeline
from app.jobs.ingest import REREAD, Collecting, FetchJob
from app.jobs.kinds import FETCH, register_ingest
from app.jobs.payloads import IngestPayload, UploadedFile
from app.jobs.runner import JobOptions, JobRunner
from app.storage.catalog.schema import documents
from app.storage.options import IndexOptions
from app.storage.store import IndexStore
from evaluation.lib.reports import Line, options, say, write
from tests.fakes.embedders import HashEmbedder
from tests.fakes.ocr import GrayReader

KEYS = ("a.txt", "b.txt", "c.txt")
TEXTS = ("Walruses whistle.", "Penguins parade.", "Lions sleep.", "Herons wade.")
"""Few, so that the same bytes are often sent again."""
OPERATIONS = 14
"""In a round."""
WAIT_S = 60.0
OLD = "an older reader"

Place = tuple[Library, str]


class Gate:
    """Holds what jobs read until it is let through, so that any order can come about."""

    def __init__(self) -> None:
        self._passes = threading.Semaphore(0)
        self._open = threading.Event()

    def wait(self) -> None:
        while not self._open.is_set() and not self._passes.acquire(timeout=0.005):
            pass

    def let_one(self) -> None:
        self._passes.release()

    @contextmanager
    def open(self) -> Iterator[None]:
        self._open.set()
        yield
        self._passes = threading.Semaphore(0)
        self._open.clear()


@dataclass
class Model:
    """What may be in each place after everything that was accepted is done."""

    due: dict[Place, set[str]] = field(default_factory=dict)
    """Texts of the last acceptance; a page's are known when it is fetched. Empty: deleted."""

    def accept(self, place: Place, text: str | None = None) -> None:
        self.due[place] = set() if text is None else {text}

    def wrong(self, found: dict[Place, str]) -> list[str]:
        told = [
            f"{place}: {text!r} was deleted"
            for place, text in found.items()
            if not self.due.get(place)
        ]
        return told + [
            f"{place}: {found.get(place)!r} is none of {sorted(texts)}"
            for place, texts in self.due.items()
            if texts and found.get(place) not in texts
        ]


class HeldParser(DirectParser):
    """Reads a file when the gate lets it."""

    gate: Gate

    def parse(
        self,
        content: bytes | Path,
        filename: str,
        cancel: CancelToken | None = None,
        words: Sequence[PageWords] = (),
    ) -> ParsedDocument:
        self.gate.wait()
        return super().parse(content, filename, cancel, words)


class Trial:
    """A store and its jobs, and the model of what was acknowledged."""

    def __init__(self, directory: Path, rng: random.Random) -> None:
        self.rng = rng
        self.gate, self.model, self.done = Gate(), Model(), Counter[str]()
        self.store = IndexStore(
            IndexOptions(
                directory, directory / "chroma", tantivy_threads=1, tantivy_heap_bytes=15_000_000
            ),
            vector_store="off",
        )
        ingest = IngestOptions(ocr_engine="a reader")
        self.parser = HeldParser(ingest, GrayReader([]))
        self.parser.gate = self.gate
        embedder = HashEmbedder(32)
        who = embedder.identity
        fingerprint = Fingerprint(who.model, who.digest, who.dimension, "", "", "chunks", "en_stem")
        self.runner = JobRunner(self.store.jobs, JobOptions(retry_s=0.01, network_workers=2))
        parts = Collecting(
            self.runner,
            self.store.catalog,
            self.store.writer,
            lambda _: IngestPipeline(self.parser, self.store.writer, embedder, ingest),
            lambda _: VectorBackfill(self.store.writer, embedder, ingest),
        )
        for library in Library:
            self.store.writer.claim(library, fingerprint)
        register_ingest(parts, self.store.jobs, self.parser)
        self.runner.register(FETCH, FetchJob(parts, self._fetch, apart_s=0), lane="network")
        self.runner.start()
        self._pages: dict[str, str] = {}

    # --- what is done

    def upload(self) -> None:
        self._send(self._place(), self.rng.choice(TEXTS))

    def _send(self, place: Place, text: str) -> None:
        library, key = place
        sha256 = self.store.writer.store_originals([text.encode()])[0]
        payload = IngestPayload(library, (UploadedFile(key, key, sha256),), retry=True)
        self.runner.submit("ingest", json_values(payload))
        self.model.accept(place, text)

    def fetch(self) -> None:
        """Fetch a page, which answers under the key of a file: as an address that leads on."""
        place, address = self._place(), f"https://example.org/{self.rng.random()}"
        text = self.rng.choice(TEXTS)
        self._pages[address] = f"{place[1]}\n{text}"
        self.runner.submit(FETCH, {"url": address, "library": place[0].value, "retry": True})
        self.model.accept(place, text)

    def feed(self) -> None:
        """Fetch a sitemap of two pages."""
        library, keys = self._place()[0], self.rng.sample(KEYS, 2)
        listed = []
        for key in keys:
            listed.append(f"https://example.org/{self.rng.random()}")
            text = self.rng.choice(TEXTS)
            self._pages[listed[-1]] = f"{key}\n{text}"
            self.model.accept((library, key), text)
        address = f"https://example.org/{self.rng.random()}/sitemap.xml"
        locations = "".join(f"<url><loc>{one}</loc></url>" for one in listed)
        self._pages[address] = f"sitemap.xml\n<urlset>{locations}</urlset>"
        self.runner.submit(FETCH, {"url": address, "library": library.value, "retry": True})

    def _fetch(self, address: str, _: CancelToken) -> RawDocument:
        self.gate.wait()
        key, text = self._pages[address].split("\n", 1)
        return RawDocument(key, key, text.encode())

    def move(self) -> None:
        """Send what is live to the other library, then delete it here, as the page does."""
        library, key = place = self._place()
        text = self._live().get(place)
        if text is not None:
            other = next(one for one in Library if one is not library)
            self._send((other, key), text)
            self._delete(place)

    def reread(self) -> None:
        library = self._place()[0]
        older = update(documents).where(documents.c.library == library.value)
        with self.store.database.write("test") as sql:
            sql.execute(older.values(source_revision=OLD))
        self.runner.submit(REREAD, {"library": library.value}, coalesce=True)

    def delete(self) -> None:
        self._delete(self._place())

    def _delete(self, place: Place) -> None:
        library, key = place
        try:
            self.store.writer.delete(library, document_id(library, key))
        except NotFound:
            return  # nothing was promised
        self.model.accept(place)

    def clear(self) -> None:
        library = self._place()[0]
        self.store.writer.delete_all(library)
        for place in list(self.model.due):
            if place[0] is library:
                self.model.accept(place)

    def let_on(self) -> None:
        self.gate.let_one()

    def _place(self) -> Place:
        return self.rng.choice(list(Library)), self.rng.choice(KEYS)

    # --- rounds

    def round(self) -> list[str]:
        """Do some operations in any order, let all jobs end; return what is wrong then."""
        shares: dict[Callable[[], None], float] = {
            self.upload: 5, self.fetch: 3, self.feed: 1, self.move: 1, self.reread: 1.5,
            self.delete: 5, self.clear: 0.4, self.let_on: 8,
        }  # fmt: skip
        for operation in self.rng.choices(list(shares), list(shares.values()), k=OPERATIONS):
            operation()
            self.done[operation.__name__] += 1
        with self.gate.open():
            for job in self.store.jobs.unfinished():
                ended = self.runner.wait(job.id, WAIT_S)
                self.done[f"{job.kind} {ended.state}"] += 1
        return self.model.wrong(self._live())

    def _live(self) -> dict[Place, str]:
        catalog = self.store.catalog
        return {
            (library, one.source_key): catalog.text(library, one.doc_id).text
            for library in Library
            for one in catalog.documents(library)[0]
        }

    def close(self) -> None:
        self.runner.close(WAIT_S)
        self.store.close()


def run(directory: Path, rounds: int, seed: int) -> tuple[list[str], Counter[str]]:
    """Return what was undone or lost in so many rounds, and what was done."""
    trial, wrong = Trial(directory, random.Random(seed)), list[str]()
    try:
        for number in range(rounds):
            wrong += [f"round {number}: {one}" for one in trial.round()]
            if number % 50 == 49:
                say(f"{number + 1} rounds, {len(wrong)} wrong")
    finally:
        trial.close()
    return wrong, trial.done


REMARKS = (
    "Uploads that do not wait, pages that are fetched, sitemaps, documents that are moved to the"
    " other library or read again, deletions of a document or a whole library, in any order, while"
    " jobs wait in the queue or with what they read. When all jobs have ended, each document must"
    " be what was accepted last, and gone where a deletion came after that.",
)


def main() -> int:
    args = options(__doc__, rounds=(500, "rounds of operations"), seed=(1, "of what is done"))
    logging.disable(logging.CRITICAL)
    with tempfile.TemporaryDirectory(prefix="documind-undone-") as directory:
        wrong, done = run(Path(directory), args.rounds, args.seed)
    figures = {"rounds": float(args.rounds)}
    figures |= {name: float(count) for name, count in sorted(done.items())}
    return write(
        "undone",
        "A deletion is not undone",
        [*REMARKS, *(f"- {one}" for one in wrong[:100])],
        [Line("deletions undone, or acknowledged uploads lost", len(wrong))],
        figures,
        "make bench-undone",
    )


if __name__ == "__main__":
    sys.exit(main())
