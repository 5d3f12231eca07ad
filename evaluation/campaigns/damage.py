"""Damage a vector store in thirty ways, start the real server on each, and write evaluation/reports/damage.{json,md}.

make bench-damage
python -m evaluation.campaigns.damage --dir D --minutes 5       # a part of it; the same command
goes on
"""

from __future__ import annotations

import os
import pickle
import shutil
import sqlite3
import struct
import sys
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from app.client import Json
from app.core.errors import Busy, ProviderUnreachable
from app.core.ids import document_id
from app.core.types import DocumentDraft, Fingerprint, Library
from app.core.vectors import l2_normalise
from app.evaluation.runner import KeptRows
from app.ingest.embedding import fingerprint_of
from app.ingest.options import IngestOptions
from app.models.minilm import MiniLmEmbedder
from app.storage.options import IndexOptions
from app.storage.store import IndexStore
from evaluation.lib.campaign import deadline, working_in
from evaluation.lib.reports import PARTS, ROOT, Line, options, quantile, say, write
from evaluation.lib.served import Served
from evaluation.lib.vector_checks import held, unproposed
from tests.unit.storage.drafts import make_draft

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


def _bytes(name: str, change: Callable[[bytearray], bytearray | None]) -> Spoil:
    """Change the bytes of a file of the segment, or of the store's database."""

    def spoil(chroma: Path) -> None:
        path = (chroma if name.endswith(".sqlite3") else segment_of(chroma)) / name
        content = bytearray(path.read_bytes())
        path.write_bytes(change(content) or content)

    return spoil


def _flip(at: int) -> Callable[[bytearray], None]:
    return lambda content: content.__setitem__(at, content[at] ^ 0x10)


def _cut(share: float) -> Callable[[bytearray], None]:
    return lambda content: content.__delitem__(slice(int(len(content) * share), None))


def _removed(name: str) -> Spoil:
    return lambda chroma: (segment_of(chroma) / name).unlink()


def _in_record(field: str) -> Spoil:
    """Change a field of the 500th element's record in data_level0.bin."""

    def spoil(chroma: Path) -> None:
        path = segment_of(chroma) / "data_level0.bin"
        fields = HEADER.unpack_from(path.with_name("header.bin").read_bytes())
        elements, element_bytes, label, vector = fields[3:7]
        links = fields[10]
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
            struct.pack_into(f"<{links}I", content, start + 4, *range(links))
        path.write_bytes(content)

    return spoil


def _upper_link(content: bytearray) -> None:
    """Point the first upper-level link of the graph at another element that exists."""
    offset = 0
    while not struct.unpack_from("<I", content, offset)[0]:
        offset += 4
    (first,) = struct.unpack_from("<I", content, offset + 8)
    struct.pack_into("<I", content, offset + 8, first + 1)


class _Foreign:
    """A value that no pickle of Chroma's holds."""


def _older_segment(chroma: Path) -> None:
    """Restore a segment's state before its last persist, kept by `build`."""
    segment = segment_of(chroma)
    shutil.rmtree(segment)
    shutil.copytree(chroma.with_name("earlier") / segment.name, segment)


def _sql(*statements: str) -> Spoil:
    def spoil(chroma: Path) -> None:
        with closing(sqlite3.connect(chroma / "chroma.sqlite3")) as connection, connection:
            for statement in statements:
                connection.execute(statement)

    return spoil


def _twenty_flips(content: bytearray) -> None:
    for n in range(20):
        content[4096 + (len(content) - 4096) * n // 20 + 9] ^= 0x40


def _a_file_instead(chroma: Path) -> None:
    shutil.rmtree(chroma)
    chroma.write_bytes(b"not a directory")


_LAST = "SELECT {} FROM embeddings_queue ORDER BY seq_id DESC LIMIT 1 OFFSET {}"

KINDS: Mapping[str, Spoil] = {
    "header.bin: one bit of a count": _bytes("header.bin", _flip(20)),
    "header.bin: cut in half": _bytes("header.bin", _cut(0.5)),
    "header.bin: removed": _removed("header.bin"),
    "data_level0.bin: the sign bit of a number": _in_record("sign"),
    "data_level0.bin: the lowest bit of a number": _in_record("low bit"),
    "data_level0.bin: a vector is another's": _in_record("vector"),
    "data_level0.bin: a link to nowhere": _in_record("neighbour"),
    "data_level0.bin: links to wrong neighbours": _in_record("links"),
    "data_level0.bin: a label": _in_record("label"),
    "data_level0.bin: marked deleted": _in_record("deleted"),
    "data_level0.bin: cut in half": _bytes("data_level0.bin", _cut(0.5)),
    "data_level0.bin: emptied": _bytes("data_level0.bin", _cut(0.0)),
    "length.bin: emptied": _bytes("length.bin", _cut(0.0)),
    "link_lists.bin: one bit": _bytes("link_lists.bin", _flip(0)),
    "link_lists.bin: cut in half": _bytes("link_lists.bin", _cut(0.5)),
    "link_lists.bin: emptied": _bytes("link_lists.bin", _cut(0.0)),
    "link_lists.bin: runaway, a terabyte": lambda chroma: os.truncate(
        segment_of(chroma) / "link_lists.bin", RUNAWAY_BYTES
    ),
    "link_lists.bin: an upper link to a wrong element": _bytes("link_lists.bin", _upper_link),
    "index_metadata.pickle: removed": _removed("index_metadata.pickle"),
    "index_metadata.pickle: torn": _bytes("index_metadata.pickle", _cut(0.6)),
    "index_metadata.pickle: names a class": _bytes(
        "index_metadata.pickle", lambda _: bytearray(pickle.dumps(_Foreign()))
    ),
    "segment: directory removed": lambda chroma: shutil.rmtree(segment_of(chroma)),
    "segment: files of an earlier state": _older_segment,
    "chroma.sqlite3: twenty bits": _bytes("chroma.sqlite3", _twenty_flips),
    "chroma.sqlite3: header zeroed": _bytes(
        "chroma.sqlite3", lambda content: bytearray(100) + content[100:]
    ),
    "chroma.sqlite3: cut in half": _bytes(
        "chroma.sqlite3", lambda content: content[: len(content) // 8192 * 4096]
    ),
    "chroma.sqlite3: removed": lambda chroma: (chroma / "chroma.sqlite3").unlink(),
    "chroma.sqlite3: collection row lost": _sql("DELETE FROM collections"),
    "chroma.sqlite3: a listed id lost": _sql(
        "DELETE FROM embeddings WHERE id = (SELECT max(id) - 7 FROM embeddings)"
    ),
    "chroma.sqlite3: log lost": _sql("DELETE FROM embeddings_queue"),
    "chroma.sqlite3: a vector in the log is another's": _sql(
        f"UPDATE embeddings_queue SET vector = ({_LAST.format('vector', 30)})"
        f" WHERE seq_id = ({_LAST.format('seq_id', 13)})"
    ),
    "store: directory removed": shutil.rmtree,
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
        """Differences from the plainest store."""
        return ", ".join(f"{key} {value}" for key, value in asdict(self).items() if value)

    @property
    def leaves_nothing(self) -> bool:
        """Whether every document is deleted, so that no question finds any."""
        return self.deleted_documents * CHUNKS_PER_DOCUMENT >= self.vectors


HEALTHY: Sequence[Recipe] = (
    Recipe(20), Recipe(200), Recipe(980), Recipe(1000), Recipe(1020), Recipe(1200), Recipe(1980), Recipe(2000), Recipe(2020),
    Recipe(4000), Recipe(4600), Recipe(5000), Recipe(200, deleted_documents=5), Recipe(1200, deleted_documents=10),
    Recipe(5000, deleted_documents=20), Recipe(1200, written_again=5), Recipe(4600, written_again=40),
    Recipe(4600, reopened=2), Recipe(5200, deleted_documents=20, written_again=20, reopened=3),
    Recipe(1200, deleted_documents=60),
)  # fmt: skip
"""Twenty of them: below, at and above the thousands at which Chroma writes its files, grown,
thinned, emptied, reopened. A library of more than 4,000 vectors needs its store for a search."""

DAMAGED = Recipe(4600)
"""What the kinds of damage are done to: four writes of the files, 600 vectors in the log."""


def options_at(data_dir: Path) -> IndexOptions:
    """Return options of a data directory whose libraries are searched in Chroma alone."""
    small = {"tantivy_threads": 1, "tantivy_heap_bytes": 15_000_000, "vector_cache_vectors": 0}
    return IndexOptions(data_dir, data_dir / "chroma", **small)  # type: ignore[arg-type]


def fingerprint() -> Fingerprint:
    """Return what the server's own embedder says of itself, so that its questions are searched among these vectors."""
    return fingerprint_of(MiniLmEmbedder(threads=1).identity, IngestOptions())


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
        again = documents[recipe.deleted_documents :][: recipe.written_again]
        store.writer.write([_draft(number, 1) for number in again])
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
        f"{WORD} number {number} in part {part:02d} of revision {revision}. "
        for part in range(CHUNKS_PER_DOCUMENT)
    ]
    return make_draft(_key(number), "".join(parts), library=LIBRARY, chunks=len(parts))


@dataclass(frozen=True, slots=True)
class Wholeness:
    """What Chroma holds of a library."""

    vectors: int
    found_by_themselves: int
    """Vectors that a search for themselves finds, or an equal one."""
    wrong: tuple[str, ...]

    @property
    def whole(self) -> bool:
        """Return whether all is listed and at least FOUND of it found."""
        return self.found_by_themselves >= FOUND * self.vectors and not self.wrong


def wholeness(data_dir: Path) -> Wholeness:
    """Open a data directory like the next start, and ask Chroma for its list and every vector."""
    with IndexStore(options_at(data_dir), vector_store="foreground") as store:
        vectors, listed = store.catalog.counts(LIBRARY).embedded, held(store, LIBRARY)
        wrong = () if len(listed) == vectors else (f"Chroma lists {len(listed)} of {vectors}",)
        return Wholeness(vectors, vectors - len(unproposed(store, LIBRARY)), wrong)


FILLED = "the vector store is filled again from the catalog: "
FOUND = 0.99
"""Share of vectors that a search for themselves has to find: what damage that nothing notices
may cost."""

READY_S = 180.0
"""Longest wait until the store is ready: one that hangs is given up after a minute."""


@dataclass(frozen=True, slots=True)
class Trial(Wholeness):
    """The outcome of one data directory: what its server showed, and what it left."""

    started: bool
    found_at_start: str
    """Why the start filled the store again, as the log says; empty when it did not."""
    first_hits: int
    """Passages in the first answer to a search, moments after the start."""
    first_notices: tuple[str, ...]
    progress: tuple[str, ...]
    """What was said of the rebuild while it ran."""
    ready_s: float
    """Seconds from the first answer until the store was whole, as the server says."""


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
    log = server.log.read_text(errors="replace").splitlines()
    why = next((line.partition(FILLED)[2] for line in log if FILLED in line), "")
    for place in (data_dir.parent, sys.prefix, ROOT):  # of this machine
        why = why.replace(f"{place}/", "")
    left, notices = wholeness(data_dir), tuple(str(one["code"]) for one in first["notices"])
    shown = (why, len(first["hits"]), notices, tuple(progress), round(ready_s, 2))
    return Trial(left.vectors, left.found_by_themselves, left.wrong, started, *shown)


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
        state = str(next(row["build"] for row in libraries if row["library"] == LIBRARY.value))
        if state == "ready":
            return said, time.perf_counter() - begun
        if state not in said[-1:]:
            said.append(state)
        time.sleep(0.02)
    log = server.log.read_text(errors="replace")[-800:]
    raise SystemExit(f"the store is not ready after {READY_S:.0f} s: {said[-3:]} {log}")


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
    return found, wholeness(data_dir).whole


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
        """The finder."""
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


def tried(folder: Path, made_with: Fingerprint, name: str, recipe: Recipe | None) -> Outcome:
    """Start the server on a damaged copy, or on a healthy store, and let `fsck` look.

    Where the start finds damage itself, `fsck` is not asked; else it gets another copy.
    """
    data = folder / "served"
    Served.log_of(data).unlink(missing_ok=True)
    _make(data, made_with, name, recipe)
    served = serve(data)
    found, whole = list[str](), served.whole
    if recipe is not None or not served.found_at_start:
        if recipe is None:
            _make(data, made_with, name, recipe)
        found, whole = check_and_repair(data)
    outcome = Outcome(name, recipe is None, served, tuple(found), whole)
    say(f"{'ok    ' if outcome.holds else 'BROKEN'} {name}: found by {outcome.found_by}")
    return outcome


def _make(data: Path, made_with: Fingerprint, name: str, recipe: Recipe | None) -> None:
    """Make a healthy store, or a damaged copy of one that is kept."""
    shutil.rmtree(data, ignore_errors=True)
    if recipe is not None:
        build(data, recipe, made_with)
        shutil.rmtree(data / "earlier", ignore_errors=True)
        return
    base, part = data.with_name("base"), data.with_name("base.part")
    if not base.exists():
        shutil.rmtree(part, ignore_errors=True)
        build(part, DAMAGED, made_with)
        part.rename(base)
    damaged_copy(base, data, KINDS[name])


def main() -> int:
    args = options(__doc__, **PARTS)
    until, made_with = deadline(args.minutes), fingerprint()
    todo: list[tuple[str, Recipe | None]] = [(name, None) for name in KINDS]
    todo += [(recipe.name, recipe) for recipe in HEALTHY]
    with working_in(args.dir, "damage") as folder:
        outcomes = KeptRows(folder / "outcomes.jsonl", Outcome)
        for name, recipe in todo[len(outcomes.rows) :]:
            outcomes.add(tried(folder, made_with, name, recipe))
            if time.monotonic() > until:
                break
    return report(outcomes.rows) if len(outcomes.rows) == len(todo) else 0


REMARKS = (
    f"{len(KINDS)} kinds of damage to a Chroma store of {DAMAGED.vectors:,} vectors, of a library"
    f" that is searched in Chroma only, and {len(HEALTHY)} healthy stores of 20 to 5,200 vectors. The"
    " real server is started on each, asked at once, watched until its store is ready, and stopped;"
    " then Chroma is asked for every vector (whole: all are listed, and 99 % found by themselves)."
    " Where the start finds nothing, `fsck` and `fsck --repair` run on another copy. The JSON beside"
    " this page has each kind.",
)


def report(outcomes: list[Outcome]) -> int:
    """Write the report and return 0 when every server did what it promises."""
    damaged = [outcome for outcome in outcomes if outcome.damaged]
    healthy = [outcome for outcome in outcomes if not outcome.damaged]
    found = Counter(outcome.found_by for outcome in damaged)
    broken = [outcome.name for outcome in outcomes if not outcome.holds]
    rebuilt = [outcome.served.ready_s for outcome in damaged if outcome.served.found_at_start]
    alarms = sum(outcome.found_by != "nobody" for outcome in healthy)
    lines = [
        Line(f"promises broken {'; '.join(broken)}".strip(), len(broken)),
        Line("false alarms over healthy stores", alarms),
        Line("starts that failed", sum(not outcome.served.started for outcome in outcomes)),
    ]
    figures = {
        "kinds": len(damaged),
        "found at start": found["start"],
        "found by fsck only": found["fsck"],
        "found by neither, and whole": found["nobody"],
        "healthy stores": len(healthy),
        "first questions answered from the words": sum(
            one.served.first_hits > 0 for one in outcomes
        ),
        "answers over damage that came with the notice `index_rebuilding`": sum(
            "index_rebuilding" in one.served.first_notices for one in damaged
        ),
        "whole after the start": sum(one.served.whole for one in damaged),
        "whole after repair": sum(one.whole_after_repair for one in damaged),
        "ready again after the first answer, p50 s": quantile(rebuilt, 0.5),
        "ready again after the first answer, most s": max(rebuilt),
    }
    extra = {
        "outcomes": [
            {**asdict(outcome), "found_by": outcome.found_by, "holds": outcome.holds}
            for outcome in outcomes
        ]
    }
    title, command = "Damaged vector stores", "make bench-damage"
    return write("damage", title, REMARKS, lines, figures, command, extra=extra)


if __name__ == "__main__":
    sys.exit(main())
