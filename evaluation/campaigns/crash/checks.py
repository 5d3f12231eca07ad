"""Hold a restarted server, and at the end its files, to what was promised."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import cast

from app.client import DocuMindClient, Json
from app.core.errors import NotFound
from app.core.types import Library
from app.storage.options import IndexOptions
from app.storage.store import IndexStore
from evaluation.campaigns.crash.load import LIBRARY, filename, hits_of
from evaluation.campaigns.crash.promises import ABSENT, Promises, marker, text_of
from evaluation.lib.vector_checks import differences

SETTLE_S = 600.0
"""Longest wait for accepted jobs after a restart: they are seconds of work, on a busy machine
minutes."""


def check_acknowledged(
    client: DocuMindClient, promises: Promises, keys: Iterable[str]
) -> list[str]:
    """Return what is wrong with idle documents right after a restart.

    Idle: no request was under way for them.
    """
    broken: list[str] = []
    for key in keys:
        revision = promises.settled.get(key, ABSENT)
        if key in promises.possible:
            continue
        if revision == ABSENT:
            broken += _check_absent(client, key, promises.last_revision[key])
        else:
            broken += check_present(client, key, revision, vectors=key in promises.with_vectors)
    return broken


def check_present(client: DocuMindClient, key: str, revision: int, *, vectors: bool) -> list[str]:
    """Return what is wrong with a document that must be there in this revision."""
    wanted, word = text_of(key, revision), marker(key, revision)
    try:
        document = client.document(LIBRARY, filename(key))
        text = client.text(LIBRARY, str(document["doc_id"]))["text"]
    except NotFound:
        return [f"lost: {key} revision {revision} is not there"]
    broken: list[str] = []
    if text != wanted:
        broken.append(f"lost: {key} revision {revision} has another text: {str(text)[:60]!r}")
    found = [hit for hit in hits_of(client, word) if word in str(hit["text"])]
    if len(found) != 1 or found[0]["doc_id"] != document["doc_id"]:
        broken.append(f"lexical: {word!r} of {key} revision {revision} finds {len(found)} passages")
    if vectors and document["embedded"] != document["chunks"]:
        broken.append(f"vectors: {key} has {document['embedded']} of {document['chunks']}")
    return broken


def _check_absent(client: DocuMindClient, key: str, last_revision: int) -> list[str]:
    broken: list[str] = []
    try:
        client.document(LIBRARY, filename(key))
        broken.append(f"phantom: {key} was deleted and is there")
    except NotFound:
        pass
    for revision in range(max(1, last_revision - 1), last_revision + 1):
        if any(
            marker(key, revision) in str(hit["text"])
            for hit in hits_of(client, marker(key, revision))
        ):
            broken.append(
                f"phantom: {key} was deleted and revision {revision} is found by its word"
            )
    return broken


def settle(client: DocuMindClient) -> float:
    """Wait until no job is queued or running; return the seconds it took.

    Raises:
        TimeoutError: They do not end.
    """
    begun = time.perf_counter()
    while any(
        job["state"] in ("queued", "running")
        for job in cast("Sequence[Json]", client.jobs(50)["jobs"])
    ):
        if time.perf_counter() - begun > SETTLE_S:
            raise TimeoutError(f"jobs do not end: {client.jobs(50)}")
        time.sleep(0.02)
    return time.perf_counter() - begun


def observe(client: DocuMindClient, promises: Promises) -> tuple[list[str], Counter[str]]:
    """Compare the documents with the promises; resolve unanswered requests.

    Returns:
        What is wrong, and how many unanswered requests came to `done` or `nothing`.
    """
    listed = list(client.documents(LIBRARY))
    held = Counter(str(document["source_key"]) for document in listed)
    broken = [
        f"duplicate: {name} is listed {count} times" for name, count in held.items() if count > 1
    ]
    became: Counter[str] = Counter()
    for key, revisions in list(promises.possible.items()):
        wanted = [revision for revision in revisions if revision != ABSENT]
        there = filename(key) in held
        text = (
            client.text(LIBRARY, str(client.document(LIBRARY, filename(key))["doc_id"]))["text"]
            if there
            else None
        )
        now = (
            next((revision for revision in wanted if text == text_of(key, revision)), None)
            if there
            else ABSENT
        )
        if now is None or now not in revisions:
            kind = "accepted" if len(revisions) == 1 else "lost"
            broken.append(f"{kind}: {key} may be at {revisions}, and is {str(text)[:60]!r}")
            now = now if now is not None else ABSENT
        if len(revisions) > 1:
            became["done" if now == revisions[-1] else "nothing"] += 1
        promises.observe(key, now)
        if now != ABSENT:
            broken += check_present(client, key, now, vectors=False)
    wanted_names = {
        filename(key) for key, revision in promises.settled.items() if revision != ABSENT
    }
    broken += [f"phantom: {name} is listed" for name in held.keys() - wanted_names]
    broken += [f"lost: {name} is not listed" for name in wanted_names - held.keys()]
    return broken, became


def check_everything(client: DocuMindClient, promises: Promises) -> tuple[list[str], int]:
    """Check every document, and search every chunk by its text; return both.

    What is wrong, and how many chunks were searched.
    """
    broken = check_acknowledged(client, promises, list(promises.settled))
    asked = 0
    for document in client.documents(LIBRARY):
        doc_id = str(document["doc_id"])
        if document["embedded"] != document["chunks"]:
            broken.append(
                f"vectors: {document['filename']} has {document['embedded']} of"
                f" {document['chunks']}"
            )
        for chunk in cast(
            "Sequence[Json]",
            client.get(f"/api/v1/documents/{doc_id}/chunks", {"library": LIBRARY})["chunks"],
        ):
            text = str(chunk["text"])
            hits = cast(
                "Sequence[Json]", client.search(text, LIBRARY, fusion="dense", limit=3)["hits"]
            )
            asked += 1
            first = hits[0] if hits else None
            if first is None or (first["doc_id"] != doc_id and first["text"] != text):
                broken.append(
                    f"vectors: chunk {chunk['chunk_index']} of {document['filename']} is not the"
                    " nearest to its own text"
                )
    return broken, asked


def check_files(data_dir: Path) -> tuple[list[str], int]:
    """Check a stopped server's data directory: `fsck`, then every vector in Chroma.

    Returns:
        What is wrong, and how many vectors were asked for.
    """
    options = IndexOptions(data_dir, data_dir / "chroma")
    with IndexStore(options, vector_store="off", heal=False) as store:
        broken = [
            f"fsck: {fault.code}: {fault.detail}"
            for fault in store.fsck.run().faults
            if fault.code != "leftovers"
        ]
    library = Library(LIBRARY)
    with IndexStore(options, vector_store="foreground") as store:
        broken += [f"vectors: {line}" for line in differences(store, library)]
        return broken, store.catalog.counts(library).embedded
