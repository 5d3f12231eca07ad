"""Damage a vector store in thirty ways, start the real server on each, and write evaluation/reports/damage.{json,md}.

make bench-damage
python -m evaluation.campaigns.damage --dir D --minutes 5       # a part of it; the same command
goes on
"""

from __future__ import annotations

import json
import os
import pickle
import shutil
import sqlite3
import struct
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path

import numpy as np

from app.bootstrap.libraries import fingerprint_of
from app.client import Json
from app.core.errors import Busy, ProviderUnreachable
from app.core.ids import content_sha256, document_id
from app.core.types import ChunkSpan, DocumentDraft, Fingerprint, Library, Metadata
from app.core.vectors import l2_normalise
from app.ingest.names import IngestOptions
from app.models.minilm import MiniLmEmbedder
from app.storage.options import IndexOptions
from app.storage.store import IndexStore
from evaluation.lib.paths import ROOT, parser_of, publish, resumable
from evaluation.lib.served import Served, quantile
from evaluation.lib.vector_checks import held, unproposed

HEADER = struct.Struct("<iQQQQQQiIQQQdQ")
"""Of header.bin (hnswlib): version, level-0 offset, capacity, elements, bytes an element, label
offset, vector offset, ..."""

Spoil = Callable[[Path], None]
"""Damages the store in a directory."""

RUNAWAY_BYTES = 1 << 40
"""Sparse: it costs no disk, but a full read never ends (docs/facts/chroma.md)."""


def segment_of(chroma: Path) -> Path:
    """Return the directory of the store's persisted graph."""
    return next(chroma.glob("*/header.bin")).parent


def _flip(name: str, at: float | int) -> Spoil:
    """Flip one bit of a segment's file; a fraction counts from the file's end."""

    def spoil(chroma: Path) -> None:
        path = segment_of(chroma) / name
        content = bytearray(path.read_bytes())
        content[int(at * len(content)) if isinstance(at, float) else at] ^= 0x10
        path.write_bytes(content)

    return spoil


def _truncate(name: str, share: float) -> Spoil:
    def spoil(chroma: Path) -> None:
        path = segment_of(chroma) / name
        os.truncate(path, int(path.stat().st_size * share))

    return spoil


def _remove(name: str) -> Spoil:
    def spoil(chroma: Path) -> None:
        (segment_of(chroma) / name).unlink()

    return spoil


def _in_record(field: str) -> Spoil:
    """Change a field of the 500th element's record in data_level0.bin."""

    def spoil(chroma: Path) -> None:
        path = segment_of(chroma) / "data_level0.bin"
        fields = HEADER.unpack_from(path.with_name("header.bin").read_bytes())
        elements, element_bytes, label, vector, links = (
            fields[3],
            fields[4],
            fields[5],
            fields[6],
            fields[10],
        )
        content = bytearray(path.read_bytes())
        start = 500 * element_bytes
        if field == "sign":  # of the vector's first number: the norm stays 1
            content[start + vector + 3] ^= 0x80
        elif field == "low bit":
            content[start + vector] ^= 0x01
        elif field == "vector":  # another vector of norm 1, as sound as its own
            other = 700 * element_bytes + vector
            content[start + vector : start + label] = content[other : other + label - vector]
        elif field == "neighbour":
            struct.pack_into("<I", content, start + 4, elements + 5)
        elif field == "label":
            content[start + label] ^= 0x01
        elif field == "deleted":
            content[start + 2] ^= 0x01
        elif field == "links":  # to elements that exist, but are no neighbours
            for n in range(links):
                struct.pack_into("<I", content, start + 4 + 4 * n, n)
        path.write_bytes(content)

    return spoil


def _upper_links(chroma: Path) -> None:
    """Point the first upper-level link of the graph at another element that exists."""
    path = segment_of(chroma) / "link_lists.bin"
    content = bytearray(path.read_bytes())
    offset = 0
    while not (size := struct.unpack_from("<I", content, offset)[0]):
        offset += 4
    (first,) = struct.unpack_from("<I", content, offset + 8)
    struct.pack_into("<I", content, offset + 8, first + 1 if size else first)
    path.write_bytes(content)


def _runaway(chroma: Path) -> None:
    os.truncate(segment_of(chroma) / "link_lists.bin", RUNAWAY_BYTES)


class _Foreign:
    """A value that no pickle of Chroma's holds."""


def _foreign_pickle(chroma: Path) -> None:
    (segment_of(chroma) / "index_metadata.pickle").write_bytes(pickle.dumps(_Foreign()))


def _remove_segment(chroma: Path) -> None:
    shutil.rmtree(segment_of(chroma))


def _older_segment(chroma: Path) -> None:
    """Restore a segment's state before its last persist, kept by `stores.build`."""
    segment = segment_of(chroma)
    shutil.rmtree(segment)
    shutil.copytree(chroma.with_name("earlier") / segment.name, segment)


@contextmanager
def _sqlite(chroma: Path) -> Iterator[sqlite3.Connection]:
    with closing(sqlite3.connect(chroma / "chroma.sqlite3")) as connection, connection:
        yield connection


def _sql(*statements: str) -> Spoil:
    def spoil(chroma: Path) -> None:
        with _sqlite(chroma) as connection:
            for statement in statements:
                connection.execute(statement)

    return spoil


def _queued_vector(chroma: Path) -> None:
    """Overwrite a vector that is only in the write-ahead log so far."""
    with _sqlite(chroma) as connection:
        rows = connection.execute(
            "SELECT seq_id, vector FROM embeddings_queue ORDER BY seq_id DESC LIMIT 40"
        ).fetchall()
        connection.execute(
            "UPDATE embeddings_queue SET vector = ? WHERE seq_id = ?", (rows[30][1], rows[13][0])
        )


def _database_bytes(change: Callable[[bytearray], bytearray]) -> Spoil:
    def spoil(chroma: Path) -> None:
        path = chroma / "chroma.sqlite3"
        path.write_bytes(change(bytearray(path.read_bytes())))

    return spoil


def _twenty_flips(content: bytearray) -> bytearray:
    for n in range(20):
        content[4096 + (len(content) - 4096) * n // 20 + 9] ^= 0x40
    return content


def _zero_header(content: bytearray) -> bytearray:
    content[:100] = bytes(100)
    return content


def _half(content: bytearray) -> bytearray:
    return content[: len(content) // 8192 * 4096]


def _no_database(chroma: Path) -> None:
    (chroma / "chroma.sqlite3").unlink()


def _no_directory(chroma: Path) -> None:
    shutil.rmtree(chroma)


def _a_file_instead(chroma: Path) -> None:
    shutil.rmtree(chroma)
    chroma.write_bytes(b"not a directory")


KINDS: Mapping[str, Spoil] = {
    "header.bin: one bit of a count": _flip("header.bin", 20),
    "header.bin: cut in half": _truncate("header.bin", 0.5),
    "header.bin: removed": _remove("header.bin"),
    "data_level0.bin: the sign bit of a number": _in_record("sign"),
    "data_level0.bin: the lowest bit of a number": _in_record("low bit"),
    "data_level0.bin: a vector is another's": _in_record("vector"),
    "data_level0.bin: a link to nowhere": _in_record("neighbour"),
    "data_level0.bin: links to wrong neighbours": _in_record("links"),
    "data_level0.bin: a label": _in_record("label"),
    "data_level0.bin: marked deleted": _in_record("deleted"),
    "data_level0.bin: cut in half": _truncate("data_level0.bin", 0.5),
    "data_level0.bin: emptied": _truncate("data_level0.bin", 0.0),
    "length.bin: emptied": _truncate("length.bin", 0.0),
    "link_lists.bin: one bit": _flip("link_lists.bin", 0),
    "link_lists.bin: cut in half": _truncate("link_lists.bin", 0.5),
    "link_lists.bin: emptied": _truncate("link_lists.bin", 0.0),
    "link_lists.bin: runaway, a terabyte": _runaway,
    "link_lists.bin: an upper link to a wrong element": _upper_links,
    "index_metadata.pickle: removed": _remove("index_metadata.pickle"),
    "index_metadata.pickle: torn": _truncate("index_metadata.pickle", 0.6),
    "index_metadata.pickle: names a class": _foreign_pickle,
    "segment: directory removed": _remove_segment,
    "segment: files of an earlier state": _older_segment,
    "chroma.sqlite3: twenty bits": _database_bytes(_twenty_flips),
    "chroma.sqlite3: header zeroed": _database_bytes(_zero_header),
    "chroma.sqlite3: cut in half": _database_bytes(_half),
    "chroma.sqlite3: removed": _no_database,
    "chroma.sqlite3: collection row lost": _sql("DELETE FROM collections"),
    "chroma.sqlite3: a listed id lost": _sql(
        "DELETE FROM embeddings WHERE id = (SELECT max(id) - 7 FROM embeddings)"
    ),
    "chroma.sqlite3: log lost": _sql("DELETE FROM embeddings_queue"),
    "chroma.sqlite3: a vector in the log is another's": _queued_vector,
    "store: directory removed": _no_directory,
    "store: a file in its place": _a_file_instead,
}
"""What is done to the store, by name."""


LIBRARY = Library.PAPERS
WORD = "walrus"
"""A word of every document."""
CHUNKS_PER_DOCUMENT = 20
BATCH = 200
EARLIER_AT = 1_200
"""Vectors after which the state of the graph's files is kept: Chroma wrote them at 1,000 and
writes them again at 2,000."""


@dataclass(frozen=True, slots=True)
class Recipe:
    """How a healthy store came to be."""

    vectors: int
    deleted_documents: int = 0
    written_again: int = 0
    """Documents replaced by a new revision with other vectors."""
    reopened: int = 0
    """How often the store was closed and opened in between."""

    @property
    def name(self) -> str:
        """What is not as in the plainest store."""
        return ", ".join(f"{key} {value}" for key, value in asdict(self).items() if value)

    @property
    def leaves_nothing(self) -> bool:
        """Whether every document is deleted, so that no question finds any."""
        return self.deleted_documents * CHUNKS_PER_DOCUMENT >= self.vectors


HEALTHY: Sequence[Recipe] = (
    Recipe(20), Recipe(200), Recipe(980), Recipe(1000), Recipe(1020), Recipe(1200), Recipe(1980), Recipe(2000), Recipe(2020),
    Recipe(2600), Recipe(3000), Recipe(4000), Recipe(200, deleted_documents=5), Recipe(1200, deleted_documents=10),
    Recipe(2600, deleted_documents=60), Recipe(1200, written_again=5), Recipe(2600, written_again=40),
    Recipe(1200, reopened=2), Recipe(2600, deleted_documents=20, written_again=20, reopened=3),
    Recipe(1200, deleted_documents=60),
)  # fmt: skip
"""Twenty of them: below, at and above the thousands at which Chroma writes its files, grown,
thinned, emptied, reopened."""

DAMAGED = Recipe(2600)
"""What the kinds of damage are done to: two writes of the files, 600 vectors in the log."""


def options_at(data_dir: Path) -> IndexOptions:
    """Return options of a data directory whose libraries are searched in Chroma alone."""
    return IndexOptions(
        data_dir,
        data_dir / "chroma",
        tantivy_threads=1,
        tantivy_heap_bytes=15_000_000,
        vector_cache_vectors=0,
    )


def fingerprint(model_cache: Path) -> Fingerprint:
    """Return what the server's own embedder says of itself, so that its questions are searched among these vectors."""
    return fingerprint_of(MiniLmEmbedder(model_cache, threads=1).identity, IngestOptions())


def build(data_dir: Path, recipe: Recipe, made_with: Fingerprint) -> None:
    """Make a data directory; beside its store, `earlier` keeps the graph's files of an earlier state."""
    rng = np.random.default_rng(recipe.vectors)
    rounds = recipe.reopened + 1
    documents = list(range(recipe.vectors // CHUNKS_PER_DOCUMENT))
    for n in range(rounds):
        with IndexStore(options_at(data_dir), vector_store="foreground") as store:
            store.writer.write([_draft(number, 0) for number in documents[n::rounds]])
            store.writer.claim(LIBRARY, made_with)
            _embed(store, rng, made_with.dimension, keep_at=EARLIER_AT if rounds == 1 else 0)
    with IndexStore(options_at(data_dir), vector_store="foreground") as store:
        for number in documents[: recipe.deleted_documents]:
            store.writer.delete(LIBRARY, document_id(LIBRARY, _key(number)))
        store.writer.write(
            [
                _draft(number, 1)
                for number in documents[recipe.deleted_documents :][: recipe.written_again]
            ]
        )
        _embed(store, rng, made_with.dimension)


def _embed(store: IndexStore, rng: np.random.Generator, dimension: int, keep_at: int = 0) -> None:
    done = 0
    while chunks := store.writer.pending_vectors(LIBRARY, BATCH):
        rows = l2_normalise(rng.normal(size=(len(chunks), dimension)))
        store.writer.write_vectors(LIBRARY, [chunk.chunk_id for chunk in chunks], rows)
        store.writer.apply(LIBRARY)
        done += len(chunks)
        if done == keep_at:
            chroma = store.options.chroma_dir
            for header in chroma.glob("*/header.bin"):
                shutil.copytree(header.parent, chroma.with_name("earlier") / header.parent.name)


def _key(number: int) -> str:
    return f"d{number:05d}.txt"


def _draft(number: int, revision: int) -> DocumentDraft:
    parts = [
        f"{WORD} number {number} in part {part} of revision {revision}. "
        for part in range(CHUNKS_PER_DOCUMENT)
    ]
    text = "".join(parts)
    spans, start = [], 0
    for ordinal, part in enumerate(parts):
        spans.append(ChunkSpan(ordinal, start, start + len(part), "body", None))
        start += len(part)
    return DocumentDraft(
        library=LIBRARY,
        doc_id=document_id(LIBRARY, _key(number)),
        source_key=_key(number),
        filename=_key(number),
        sha256=content_sha256(text.encode()),
        type="text",
        text=text,
        metadata=Metadata(f"Document {number}", (), None),
        chunks=tuple(spans),
        pages=(),
        has_original=False,
    )


def wholeness(data_dir: Path) -> tuple[int, int, list[str]]:
    """Open a data directory like the next start, and ask Chroma for its list, and for every vector by a search for itself.

    Returns:
        How many vectors there are, how many are found by themselves, and what else is wrong.
    """
    with IndexStore(options_at(data_dir), vector_store="foreground") as store:
        vectors, listed = store.catalog.counts(LIBRARY).embedded, held(store, LIBRARY)
        wrong = [] if len(listed) == vectors else [f"Chroma lists {len(listed)} of {vectors}"]
        return vectors, vectors - len(unproposed(store, LIBRARY)), wrong


FILLED = "the vector store is filled again from the catalog: "
FOUND = 0.99
"""Share of vectors that a search for themselves has to find: what damage that nothing notices
may cost."""

READY_S = 180.0
"""Longest wait until the store is ready: a rebuild of 4,000 vectors takes seconds."""


@dataclass(frozen=True, slots=True)
class Trial:
    """What became of one data directory."""

    started: bool
    found_at_start: str
    """Why the start filled the store again; empty when it did not."""
    first_hits: int
    """Passages in the first answer to a search, moments after the start."""
    first_notices: tuple[str, ...]
    progress: tuple[str, ...]
    """What was said of the rebuild while it ran."""
    ready_s: float
    """Seconds from the first answer until the store was whole, as the server says."""
    vectors: int
    found_by_themselves: int
    """Vectors that a search for themselves finds, or an equal one, after the server has ended."""
    wrong: tuple[str, ...]

    @property
    def whole(self) -> bool:
        """Whether every vector is listed, and as good as every one found by itself; a wrong row costs recall and no score."""
        return whole(self.vectors, self.found_by_themselves, self.wrong)


def serve(data_dir: Path) -> Trial:
    """Start the server on a data directory, watch it until its store is ready, stop it, and check the store."""
    server = Served(data_dir, VECTOR_CACHE_VECTORS="0", EMBEDDING_PROVIDER="minilm")
    server.start()
    try:
        first = _first_answer(server)
        progress, ready_s = _until_ready(server)
        started = server.process.poll() is None
    finally:
        server.close()
    vectors, found, wrong = wholeness(data_dir)
    return Trial(
        started=started,
        found_at_start=_said(server),
        first_hits=len(first["hits"]),
        first_notices=tuple(str(notice["code"]) for notice in first["notices"]),
        progress=tuple(progress),
        ready_s=round(ready_s, 2),
        vectors=vectors,
        found_by_themselves=found,
        wrong=tuple(wrong),
    )


def _first_answer(server: Served) -> Json:
    """Search until the server answers."""
    while server.process.poll() is None:
        try:
            return server.client.search(WORD, LIBRARY.value, limit=5)
        except (ProviderUnreachable, Busy):
            time.sleep(0.01)
    raise SystemExit(f"the server ended: {server.log.read_text(errors='replace')[-800:]}")


def _until_ready(server: Served) -> tuple[list[str], float]:
    begun = time.perf_counter()
    said: list[str] = []
    while time.perf_counter() - begun < READY_S:
        libraries = server.client.libraries()["libraries"]
        state = next(
            str(library["build"]) for library in libraries if library["library"] == LIBRARY.value
        )
        if state == "ready":
            return said, time.perf_counter() - begun
        if not said or said[-1] != state:
            said.append(state)
        time.sleep(0.02)
    raise SystemExit(
        f"the store is not ready after {READY_S:.0f} s: {said[-3:]}"
        f" {server.log.read_text(errors='replace')[-800:]}"
    )


def _said(server: Served) -> str:
    """Return why the log says that the store was filled again."""
    lines = server.log.read_text(errors="replace").splitlines()
    return next((line.partition(FILLED)[2] for line in lines if FILLED in line), "")


def whole(vectors: int, by_themselves: int, wrong: Sequence[str]) -> bool:
    """Return whether all is listed and at least FOUND of it found."""
    return by_themselves >= FOUND * vectors and not wrong


def damaged_copy(base: Path, target: Path, spoil: Spoil) -> Path:
    shutil.copytree(base, target)
    spoil(target / "chroma")
    shutil.rmtree(target / "earlier", ignore_errors=True)
    return target


def check_and_repair(data_dir: Path) -> tuple[list[str], bool]:
    """Run `fsck` as after a stop, then `fsck --repair`; return the codes it found, and whether the store is whole afterwards."""
    with IndexStore(options_at(data_dir), vector_store="off", heal=False) as store:
        found: list[str] = [fault.code for fault in store.fsck.run().faults]
        if found:
            store.fsck.run(repair=True)
    vectors, by_themselves, wrong = wholeness(data_dir)
    return found, whole(vectors, by_themselves, wrong)


@dataclass(frozen=True, slots=True)
class Outcome:
    """One damaged or healthy store: under the server, and apart from it under `fsck`."""

    name: str
    damaged: bool
    served: Trial
    fsck_found: tuple[str, ...]
    whole_after_repair: bool

    @property
    def found_by(self) -> str:
        """Who finds it."""
        return "start" if self.served.found_at_start else "fsck" if self.fsck_found else "nobody"

    @property
    def holds(self) -> bool:
        """Whether the server did all it promises."""
        served = self.served
        answered = served.first_hits > 0 or any(
            recipe.leaves_nothing for recipe in HEALTHY if recipe.name == self.name
        )
        calm = served.started and answered
        if not self.damaged:
            return calm and self.found_by == "nobody" and served.whole
        return calm and self.whole_after_repair and (served.whole or self.found_by == "fsck")


class Workshop:
    """Keeps the sound data directory that is copied, and what was tried so far."""

    def __init__(self, directory: Path) -> None:
        """Work in `directory`; what is there already is used."""
        directory.mkdir(parents=True, exist_ok=True)
        self.directory = directory
        self.made_with: Fingerprint = fingerprint(directory / "models")
        self._log = directory / "outcomes.jsonl"
        self.outcomes: list[Outcome] = []
        for line in self._log.read_text("utf-8").splitlines() if self._log.exists() else []:
            found = json.loads(self._without_places(line))
            self.outcomes.append(Outcome(**{**found, "served": Trial(**found["served"])}))

    def _without_places(self, text: str) -> str:
        """Return messages without the directories of this machine that they name."""
        for place in (self.directory, sys.prefix, ROOT):
            text = text.replace(f"{place}/", "")
        return text

    def base(self) -> Path:
        """Return a sound data directory with the store that is damaged."""
        base = self.directory / "base"
        if not base.exists():
            part = self.directory / "base.part"
            shutil.rmtree(part, ignore_errors=True)
            build(part, DAMAGED, self.made_with)
            part.rename(base)
        return base

    def damaged(self, name: str) -> Outcome:
        """Damage a copy in one way and start the server on it; when it finds nothing, let `fsck` look at another copy."""
        data = self.directory / "served"
        served = self._serve(damaged_copy(self.base(), data, KINDS[name]))
        if served.found_at_start:
            return Outcome(name, True, served, (), served.whole)
        self.clean()
        found, whole = check_and_repair(damaged_copy(self.base(), data, KINDS[name]))
        return Outcome(name, True, served, tuple(found), whole)

    def healthy(self, number: int) -> Outcome:
        """Make a healthy store, start the server on it, and let `fsck` look at it."""
        recipe = HEALTHY[number]
        data = self.directory / "served"
        build(data, recipe, self.made_with)
        shutil.rmtree(data / "earlier", ignore_errors=True)
        served = self._serve(data)
        found, whole = check_and_repair(data)
        return Outcome(recipe.name, False, served, tuple(found), whole)

    def _serve(self, data: Path) -> Trial:
        shutil.copytree(self.directory / "models", data / "models", dirs_exist_ok=True)
        return serve(data)

    def keep(self, outcome: Outcome) -> None:
        self.outcomes.append(outcome)
        with self._log.open("a", encoding="utf-8") as log:
            log.write(json.dumps(asdict(outcome)) + "\n")
        sys.stderr.write(
            f"{'ok    ' if outcome.holds else 'BROKEN'} {outcome.name}: found by"
            f" {outcome.found_by}\n"
        )
        sys.stderr.flush()

    def clean(self) -> None:
        """Remove what a trial left."""
        data = self.directory / "served"
        shutil.rmtree(data, ignore_errors=True)
        for suffix in (".log",):
            data.with_suffix(suffix).unlink(missing_ok=True)


def main() -> int:
    """Try every kind and every healthy store, or a part of them; exit 1 when a server did not do what it promises."""
    args = resumable(parser_of(__doc__))
    until = time.monotonic() + 60 * args.minutes if args.minutes else None
    with tempfile.TemporaryDirectory(prefix="documind-damage-") as temporary:
        workshop = Workshop(args.dir or Path(temporary))
        done = {outcome.name for outcome in workshop.outcomes if outcome.damaged}
        kinds = [name for name in KINDS if name not in done]
        healthy = range(sum(not outcome.damaged for outcome in workshop.outcomes), len(HEALTHY))
        todo = [partial(workshop.damaged, name) for name in kinds] + [
            partial(workshop.healthy, number) for number in healthy
        ]
        for work in todo:
            workshop.clean()
            workshop.keep(work())
            if until is not None and time.monotonic() > until:
                break
        outcomes = Workshop(workshop.directory).outcomes  # as they were written down
    return report(outcomes) if len(outcomes) == len(KINDS) + len(HEALTHY) else 0


def report(outcomes: list[Outcome]) -> int:
    """Write the report and return 0 when every server did what it promises."""
    damaged = [outcome for outcome in outcomes if outcome.damaged]
    healthy = [outcome for outcome in outcomes if not outcome.damaged]
    found = {
        by: [outcome.name for outcome in damaged if outcome.found_by == by]
        for by in ("start", "fsck", "nobody")
    }
    alarms = [outcome.name for outcome in healthy if outcome.found_by != "nobody"]
    broken = [outcome.name for outcome in outcomes if not outcome.holds]
    noticed = [outcome for outcome in damaged if "index_rebuilding" in outcome.served.first_notices]
    rebuilt = [outcome.served.ready_s for outcome in damaged if outcome.served.found_at_start]
    record = {
        "holds": not broken,
        "figures": {
            "kinds": len(damaged),
            "found_at_start": len(found["start"]),
            "found_by_fsck_only": len(found["fsck"]),
            "found_by_nobody_and_whole": len(found["nobody"]),
            "healthy": len(healthy),
            "false_alarms": len(alarms),
            "starts_that_failed": sum(not outcome.served.started for outcome in outcomes),
            "lexical_answers_at_once": sum(outcome.served.first_hits > 0 for outcome in outcomes),
            "of_those_with_the_notice": len(noticed),
            "whole_after_the_start": sum(outcome.served.whole for outcome in damaged),
            "whole_after_repair": sum(outcome.whole_after_repair for outcome in damaged),
            "vectors_per_store": DAMAGED.vectors,
            "ready_again_s_p50": quantile(rebuilt, 0.5),
            "ready_again_s_max": max(rebuilt),
        },
        "broken": broken,
        "outcomes": [
            {**asdict(outcome), "found_by": outcome.found_by, "holds": outcome.holds}
            for outcome in outcomes
        ],
    }
    page = [
        "# Damaged vector stores",
        "",
        f"{len(damaged)} kinds of damage to a Chroma store of {DAMAGED.vectors:,} vectors, of a"
        " library that is searched in Chroma",
        f"only, and {len(healthy)} healthy stores of 20 to 4,000 vectors. The real server is"
        " started on each, asked at once,",
        "watched until its store is ready, and stopped; then Chroma is asked for every vector."
        " Where the start finds nothing,",
        "`fsck` and `fsck --repair` run on another copy.",
        "",
        f"- promises broken: **{len(broken)}**{': ' + '; '.join(broken) if broken else ''}",
        f"- the server started {sum(outcome.served.started for outcome in outcomes)} times of"
        f" {len(outcomes)}",
        "- the first question was answered from the words"
        f" {sum(outcome.served.first_hits > 0 for outcome in outcomes)} times;"
        f" {len(noticed)} of {len(damaged)} answers over damaged stores came with the notice"
        " `index_rebuilding`, the others after"
        " the store was whole",
        f"- found at start: {len(found['start'])} kinds; only by `fsck`: {len(found['fsck'])}; by"
        " neither, and every vector"
        f" (99 %) is found all the same: {len(found['nobody'])}",
        "- 99 % of the vectors find themselves after the start in"
        f" {sum(outcome.served.whole for outcome in damaged)}"
        f" of {len(damaged)},"
        f" after `fsck --repair` in {sum(outcome.whole_after_repair for outcome in damaged)}",
        f"- ready again after the first answer: p50 {quantile(rebuilt, 0.5):.1f} s, at most"
        f" {max(rebuilt):.1f} s",
        f"- false alarms over healthy stores: {len(alarms)}",
        "",
        "| damage | found by | at start | `fsck` | whole after start | whole after repair |",
        "|---|---|---|---|---|---|",
        *(_row(outcome) for outcome in damaged),
        "",
        "Made by `make bench-damage`.",
        "",
    ]
    publish("damage", record, "\n".join(page))
    return 0 if not broken else 1


def _row(outcome: Outcome) -> str:
    said = outcome.served.found_at_start.replace("|", "/")[:90]
    codes = ", ".join(dict.fromkeys(outcome.fsck_found))
    whole = [
        "yes" if value else "no" for value in (outcome.served.whole, outcome.whole_after_repair)
    ]
    return f"| {outcome.name} | {outcome.found_by} | {said} | {codes} | {whole[0]} | {whole[1]} |"


if __name__ == "__main__":
    sys.exit(main())
