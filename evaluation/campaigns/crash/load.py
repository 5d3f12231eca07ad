"""Clients that upload, replace, delete and search, and note the promises.

The server may die at any moment.
"""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import cast

from app.client import DocuMindClient, FileToSend, Json, Wait
from app.core.errors import Busy, DocuMindError, ProviderUnreachable
from evaluation.campaigns.crash.promises import ABSENT, Level, Promises, marker, text_of

LIBRARY = "papers"

_WAITS: tuple[tuple[Wait, Level], ...] = (
    ("text", "text"),
    ("true", "vectors"),
    ("false", "accepted"),
)
_WAIT_SHARES = (0.5, 0.3, 0.2)
"""How uploaders wait, what they are promised then, and how often they do so."""

_DELETE, _REPLACE = 0.1, 0.3
"""Shares of deletions among requests, and of replacements among uploaded files."""

_FILES = (1, 1, 1, 2, 3, 5)
"""How many files an upload may hold."""

Step = Callable[[DocuMindClient, str, random.Random], None]


def filename(key: str) -> str:
    """Return the file name, which is the source key, of a document."""
    return f"{key}.txt"


def hits_of(client: DocuMindClient, word: str) -> list[Json]:
    """Return what a search by words finds for one word."""
    return list(
        cast("Sequence[Json]", client.search(word, LIBRARY, fusion="lexical", limit=10)["hits"])
    )


class Load:
    """Uploaders and searchers against one run of the server."""

    def __init__(
        self,
        url: str,
        promises: Promises,
        folder: Path,
        *,
        uploaders: int = 3,
        searchers: int = 1,
        seed: str = "",
    ) -> None:
        """Prepare; nothing is sent before `start`."""
        self._url = url
        self._promises = promises
        self._folder = folder
        self._stop = threading.Event()
        self.begun = threading.Event()
        """Set once the first upload is on its way."""
        self.wrong: list[str] = []
        """What clients saw that they should not have."""
        self.touched: set[str] = set()
        """Documents that were written or deleted, or may have been."""
        self.searches = 0
        work: list[tuple[Step, str]] = [(self._change, f"u{n}-") for n in range(uploaders)]
        work += [(self._search, f"s{n}-") for n in range(searchers)]
        self._threads = [
            threading.Thread(
                target=self._run,
                args=(step, name, random.Random(f"{seed}/{name}")),
                name=name,
                daemon=True,
            )
            for step, name in work
        ]

    def start(self) -> None:
        """Let them go."""
        self._folder.mkdir(parents=True, exist_ok=True)
        for thread in self._threads:
            thread.start()

    def join(self) -> None:
        """Stop, and wait until every client has its last answer or lost its server."""
        self._stop.set()
        for thread in self._threads:
            thread.join()

    def _run(self, step: Step, name: str, rng: random.Random) -> None:
        with DocuMindClient(self._url, timeout_s=60) as client:
            while not self._stop.is_set():
                try:
                    step(client, name, rng)
                except ProviderUnreachable:
                    return  # the server was killed
                except Busy:
                    time.sleep(0.05)
                except DocuMindError as error:
                    self.wrong.append(f"{name}: {error.code}: {error.message}")
                    return

    def _change(self, client: DocuMindClient, name: str, rng: random.Random) -> None:
        quiet = self._promises.quiet(name)
        if quiet and rng.random() < _DELETE:
            self._delete(client, rng.choice(quiet))
            return
        files = rng.choice(_FILES)
        replaced = rng.sample(
            quiet, sum(rng.random() < _REPLACE for _ in range(min(files, len(quiet))))
        )
        new = [f"{name}{rng.randrange(1 << 48):012x}" for _ in range(files - len(replaced))]
        self._upload(client, [*replaced, *new], rng)

    def _upload(self, client: DocuMindClient, keys: list[str], rng: random.Random) -> None:
        revisions = {key: self._promises.next_revision(key) for key in keys}
        self.touched.update(keys)
        paths = [self._folder / filename(key) for key in keys]
        for key, path in zip(keys, paths, strict=True):
            path.write_text(text_of(key, revisions[key]), "utf-8")
        wait, level = rng.choices(_WAITS, _WAIT_SHARES)[0]
        self.begun.set()
        client.ingest([FileToSend(path) for path in paths], LIBRARY, wait=wait)
        for key, path in zip(keys, paths, strict=True):
            self._promises.acknowledge(key, revisions[key], level)
            path.unlink()

    def _delete(self, client: DocuMindClient, key: str) -> None:
        self._promises.begin_delete(key)
        self.touched.add(key)
        self.begun.set()
        client.delete(LIBRARY, filename(key))
        self._promises.acknowledge(key, ABSENT, "text")

    def _search(self, client: DocuMindClient, name: str, rng: random.Random) -> None:
        """Look for a document that is there, by its own word, while others change theirs."""
        del name
        quiet = self._promises.quiet("u")
        if not quiet:
            time.sleep(0.01)
            return
        key = rng.choice(quiet)
        revision = self._promises.settled[key]
        found = [
            hit
            for hit in hits_of(client, marker(key, revision))
            if marker(key, revision) in str(hit["text"])
        ]
        self.searches += 1
        if (
            len(found) != 1
            and self._promises.settled[key] == revision
            and key not in self._promises.possible
        ):
            self.wrong.append(
                f"a search for the word of {key} revision {revision} found {len(found)} passages"
                " while others wrote"
            )
