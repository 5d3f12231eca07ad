"""Ask servers the same questions and compare what they answer."""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from app.client import FINISHED, FileToSend, Json
from app.core.types import Library
from app.evaluation.cases import CaseBody
from app.evaluation.collections import TestPassage
from app.storage.maintenance.bundle_format import CodeSizes, Documents, code_bytes, read_blocks
from evaluation.lib.paths import ROOT
from evaluation.lib.served import Served

DEPTH = 10
"""Hits of a search that are compared."""

UPLOAD = 100
"""Files a request."""


@dataclass(frozen=True, slots=True)
class Held:
    """What a bundle holds of a document."""

    text: str
    language: str
    vectors: Mapping[int, bytes]
    """By number of the chunk."""
    code_sizes: Sequence[CodeSizes]
    codes: bytes


Place = tuple[str, int]
"""A chunk wherever it is kept: its document and its number in it."""


@dataclass(frozen=True, slots=True)
class Asked:
    """What one server makes of a question."""

    status: str
    first_cited: str
    """The document of the first citation; empty without one."""
    right: bool
    hits: tuple[Place, ...]
    ms: float


@dataclass(frozen=True, slots=True)
class Same:
    """How two servers' answers to the same questions agree."""

    questions: int
    status: int
    first_cited: int
    overlaps: tuple[float, ...]
    """Share of the first search's hits that the second has too, for each question with hits."""
    right: tuple[int, int]

    @property
    def overlap(self) -> float:
        return sum(self.overlaps) / max(1, len(self.overlaps))


def fill(server: Served, passages: Sequence[TestPassage], folder: Path) -> None:
    """Send the samples and a file a passage, and wait for vectors and codes."""
    server.client.samples()
    folder.mkdir()
    files = []
    for passage in passages:
        path = folder / f"squad-{passage.id}.txt"
        path.write_text(passage.document, "utf-8")
        files.append(FileToSend(path))
    for at in range(0, len(files), UPLOAD):
        server.client.ingest(files[at : at + UPLOAD], Library.PUBLIC.value)
    settle(server)


def settle(server: Served) -> None:
    """Wait until every chunk has its vector and no job runs."""
    while True:
        stats = [server.client.stats(library.value) for library in Library]
        jobs = server.client.jobs()["jobs"]
        embedded = all(one["embedded"] == one["chunks"] for one in stats)
        if embedded and all(job["state"] in FINISHED for job in jobs):
            return
        time.sleep(0.2)


def command(server: Served, *words: str) -> Json:
    """Run a `documind` command on a server's data and return what it prints as JSON."""
    ran = subprocess.run(
        [sys.executable, "-m", "app", *words, "--json"],
        cwd=ROOT, env={**os.environ, **server.settings}, capture_output=True, text=True,
        check=False,
    )  # fmt: skip
    if ran.returncode:
        raise SystemExit(f"documind {' '.join(words)} ended with {ran.returncode}: {ran.stderr}")
    printed: Json = json.loads(ran.stdout)
    return printed


def ask(server: Served, cases: Sequence[CaseBody]) -> list[Asked]:
    """Ask every question and search for each."""
    return [_asked(server, case) for case in cases]


def _asked(server: Served, case: CaseBody) -> Asked:
    begun = time.perf_counter()
    reply = server.client.query(case.question, library=case.library)
    ms = (time.perf_counter() - begun) * 1000
    sources = {one["n"]: str(one["doc_id"]) for one in reply["sources"]}
    cited = [
        sources[citation["n"]]
        for sentence in reply["sentences"]
        for citation in sentence["citations"]
    ]
    found = server.client.search(case.question, str(case.library), limit=DEPTH)
    hits = tuple((str(hit["doc_id"]), hit["chunk_index"]) for hit in found["hits"])
    right = _right(case, str(reply["status"]), str(reply["answer"]), set(sources.values()))
    return Asked(str(reply["status"]), cited[0] if cited else "", right, hits, ms)


def _right(case: CaseBody, status: str, answer: str, sources: set[str]) -> bool:
    """Return whether everything holds that a case asks for."""
    if case.oos:
        return status == "abstained"
    if case.intent == "chitchat":
        return status == "chitchat"
    said = any(part.casefold() in answer.casefold() for part in case.expected_substrings)
    return (
        status == "answered"
        and (said or not case.expected_substrings)
        and (not case.expected_docs or bool(sources & set(case.expected_docs)))
    )


def compared(before: Sequence[Asked], after: Sequence[Asked]) -> Same:
    """Compare two servers' answers to the same questions."""
    pairs = list(zip(before, after, strict=True))
    return Same(
        len(pairs),
        sum(one.status == two.status for one, two in pairs),
        sum(one.first_cited == two.first_cited for one, two in pairs),
        tuple(len(set(one.hits) & set(two.hits)) / len(one.hits) for one, two in pairs if one.hits),
        (sum(one.right for one in before), sum(two.right for two in after)),
    )


def contents(bundle: Path) -> Mapping[str, Held]:
    """Return what a bundle holds of each document, by id."""
    found: dict[str, Held] = {}
    width = 0
    for block in read_blocks(bundle, 1 << 30):
        record = block.record
        if record.kind == "header" and record.fingerprint:
            width = 2 * record.fingerprint.dimension
        if not isinstance(record, Documents):
            continue
        at, code_at = 0, width * sum(len(one.vectors) for one in record.documents)
        for one in record.documents:
            end = at + width * len(one.vectors)
            code_end = code_at + sum(sum(code_bytes(sizes)) for sizes in one.codes)
            vectors = dict(zip(one.vectors, _rows(block.payload[at:end], width), strict=True))
            codes = block.payload[code_at:code_end]
            found[one.doc_id] = Held(one.text, one.language, vectors, one.codes, codes)
            at, code_at = end, code_end
    return found


def _rows(payload: bytes, width: int) -> list[bytes]:
    return [payload[at : at + width] for at in range(0, len(payload), width or 1)]


def interval(hits: int, n: int) -> tuple[float, float]:
    """Return the 95 % interval of a share.

    References:
        Wilson 1927, Probable inference, the law of succession, and statistical inference.
    """
    z, share = 1.96, hits / max(1, n)
    middle = share + z * z / (2 * n)
    half = z * math.sqrt(share * (1 - share) / n + z * z / (4 * n * n))
    return (middle - half) / (1 + z * z / n), (middle + half) / (1 + z * z / n)
