"""Run one trial: plant, ask, replace, delete, purge, and search after each."""

from __future__ import annotations

import random
import shutil
import sqlite3
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import cast

import numpy as np

from app.client import DocuMindClient, FileToSend, Json
from app.core.text import tokenise
from app.core.types import FloatArray
from app.storage.catalog.schema import BUILD_SHIFT
from evaluation.campaigns.gone.traces import Secret, look
from evaluation.lib.served import Served
from tests.fakes.ollama_double import DoubleModel, OllamaDouble

MODELS = (DoubleModel("small:latest", dimension=256), DoubleModel("large:latest", dimension=320))
CANARY = ("zyxquill", "vormblatt", "quorndaxian", "鳳凰梧桐七弦琴", "잿빛두루미", "ьжфщёвка")
PHRASE = "The zyxquill vormblatt opens at the third bell of quorndaxian."
OLD_CANARY = "trebuxolite"
QUESTIONS = ("When does it open at the third bell?", "What opens at the third bell?")
FILE = "memo.md"


@dataclass(frozen=True, slots=True)
class Sight:
    """Places where the planted document was found."""

    when: str
    places: dict[str, list[str]]


@dataclass(frozen=True, slots=True)
class TrialResult:
    """The observations of a trial."""

    sights: tuple[Sight, ...]
    quoted: int
    """Stored answers that quoted the document before it was deleted."""
    deleted: Json
    """What the server said of the deletion."""
    purged: Json
    """What it said of the purge."""
    seconds: float


def text_of(seed: int, extra: str) -> str:
    """Return a memo in several scripts whose zstd text exceeds a catalog page."""
    rng = random.Random(seed)
    letters = "abcdefghijklmnopqrstuvwxyz"
    lines = [
        "# Zyxquill memo",
        "",
        PHRASE,
        extra,
        "",
        f"合言葉は{CANARY[3]}である。",
        f"{CANARY[4]} 그리고 {CANARY[5]}.",
        "",
    ]
    for _ in range(60):
        words = ("".join(rng.choices(letters, k=rng.randint(4, 11))) for _ in range(18))
        lines += [f"The vormblatt of {' '.join(words)}.", ""]
    return "\n".join(lines)


def run(directory: Path, filler: int, say: Callable[[str], None]) -> TrialResult:
    """Do one trial.

    Args:
        directory: Empty; the data directory is made in it.
        filler: Other documents of the library; above 1,000 chunks Chroma writes its graph files.
        say: Told what happens.
    """
    started = time.monotonic()
    data, files = directory / "data", directory / "files"
    files.mkdir(parents=True)
    with OllamaDouble(MODELS) as double:
        settings = {
            "OLLAMA_BASE_URL": double.url,
            "EMBEDDING_PROVIDER": "ollama",
            "EMBEDDING_MODEL": "small",
        }
        with Served(data, **settings) as server:
            client = server.client
            _fill(client, files, filler)
            # With another document, so that its segment of the lexical index outlives it.
            _send(client, files / FILE, text_of(1, f"The {OLD_CANARY} is of the first draft."))
            _send(client, files / FILE, text_of(2, "This is the second draft."))
            _finish(
                client,
                client.post(
                    "/api/v1/reembed",
                    {"library": "papers", "provider": "ollama", "model": "large", "force": True},
                ),
            )
            quoted = _ask(client)
            _settled(client)
            secret = _secret(data, client)
            _break_copies(data)
            say("planted")
            sights = [_sight("planted", data, secret)]
            deleted = client.delete("papers", FILE)
            say("deleted")
            sights.append(_sight("deleted", data, secret))
            purged = _finish(client, client.post("/api/v1/purge"))
            say("purged")
            sights.append(_sight("purged", data, secret))
            assert not _mentions(client), "a search finds what was purged"
        sights.append(_sight("stopped", data, secret))
    result = cast("Json", purged["result"])
    return TrialResult(tuple(sights), quoted, deleted, result, round(time.monotonic() - started, 1))


def _fill(client: DocuMindClient, files: Path, filler: int) -> None:
    sent = []
    for n in range(filler):
        path = files / f"other{n}.txt"
        path.write_text(
            "\n\n".join(
                f"Ledger {n} page {k} lists grain, rope and tallow of the harbour house." * 12
                for k in range(10)
            )
        )
        sent.append(FileToSend(path))
    for at in range(0, len(sent), 16):
        client.ingest(sent[at : at + 16], "papers")


def _send(client: DocuMindClient, path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8")
    companion = path.with_name(f"companion{len(list(path.parent.iterdir()))}.txt")
    companion.write_text(f"{companion.name} keeps the segment of its neighbour alive.")
    client.ingest([FileToSend(path), FileToSend(companion)], "papers")


def _finish(client: DocuMindClient, job: Json) -> Json:
    done = client.follow(str(job["id"]))
    assert done["state"] == "done", done
    return done


def _ask(client: DocuMindClient) -> int:
    """Ask, alone and in a conversation; return how many answers quote the document."""
    quoted = 0
    for question in QUESTIONS:
        for path, field in (("/api/v1/query", "question"), ("/api/v1/chat", "message")):
            answer = client.post(path, {field: question, "library": "papers"})
            quoted += CANARY[0] in str(answer["answer"])
    return quoted


def _settled(client: DocuMindClient) -> None:
    """Wait until Chroma has what the catalog has."""
    for _ in range(600):
        marks = cast("dict[str, int]", client.get("/api/v1/diagnostics")["watermarks"])
        if marks["papers/chroma"] > 0:
            return
        time.sleep(0.1)
    raise AssertionError("the vector store did not come up")


def _secret(data: Path, client: DocuMindClient) -> Secret:
    """Return what to search for; vectors are read from the catalog, of every build."""
    document = next(row for row in client.documents("papers") if row["source_key"] == FILE)
    with sqlite3.connect(f"file:{data / 'catalog.sqlite3'}?mode=ro", uri=True) as connection:
        rows = connection.execute(
            "SELECT v.vector FROM vectors v JOIN chunks c ON c.chunk_id = v.key &"
            f" {(1 << BUILD_SHIFT) - 1}"
            " JOIN documents d ON d.doc = c.doc AND d.revision = c.revision WHERE d.doc_id = ? AND"
            " c.ordinal < 2",
            (document["doc_id"],),
        ).fetchall()
    connection.close()
    vectors: list[FloatArray] = [np.frombuffer(row[0], "<f2").astype(np.float32) for row in rows]
    assert {len(vector) for vector in vectors} == {model.dimension for model in MODELS}
    words = (*CANARY, CANARY[0].capitalize(), OLD_CANARY)
    terms = tuple(term for word in words for term in tokenise(word))
    return Secret(words, terms, tuple(vectors))


def _break_copies(data: Path) -> None:
    """Leave copies as the keeper leaves them when it found damage."""
    shutil.copytree(data / "chroma", data / "chroma.broken.20260101T000000Z")
    shutil.copytree(
        data / "tantivy" / "papers", data / "tantivy" / "papers.broken.20260101T000001Z"
    )


def _sight(when: str, data: Path, secret: Secret) -> Sight:
    return Sight(when, {place: sorted(ways) for place, ways in sorted(look(data, secret).items())})


def _mentions(client: DocuMindClient) -> bool:
    hits = cast(
        "list[Json]", client.get("/api/v1/search", {"q": PHRASE, "library": "papers"})["hits"]
    )
    return any(CANARY[0] in str(hit["text"]) for hit in hits)
