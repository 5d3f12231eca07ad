"""Fetch the papers of a list from arXiv into a running server.

python -m scripts.bulk_ingest_arxiv [--list FILE] [--base-url URL]

A line of the list is an arXiv id and, if you like, a title; what follows a # is ignored. Papers
that the library has are not fetched again, so a run that was stopped goes on when it is started
again. arXiv is asked once in three seconds, as its terms of use say. Exit code 3 when some papers
could not be had.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from app.cli.main import run_at_edge
from app.client import DocuMindClient, Json
from app.core.errors import Busy, DocuMindError, InvalidInput, NotFound, ProviderError
from app.models.arxiv import base_id
from scripts.reports import ROOT
from scripts.run_retrieval_ablation import server_options

SEEDS = ROOT / "data" / "arxiv_seed_list.txt"
LIBRARY = "papers"
INTERVAL_S = 3.0
"""Least time between two papers, seconds; info.arxiv.org/help/api/tou.html asks for it between
requests, which the server keeps."""
RETRY_S = 30.0
TRIES = 3
SOME_FAILED = 3


@dataclass(slots=True)
class Summary:
    """Outcomes of a list's papers, by id."""

    added: list[str] = field(default_factory=list)
    known: list[str] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        return f"{len(self.added)} added, {len(self.known)} were here, {len(self.failed)} failed"


def main() -> None:
    """Read the list, fetch what is missing and say what was done.

    Raises:
        SystemExit: Some papers failed; the code is 3.
    """
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    server_options(parser)
    parser.add_argument(
        "--list", type=Path, default=SEEDS, help="file of ids (default: data/arxiv_seed_list.txt)"
    )
    given = parser.parse_args()
    ids = list(dict.fromkeys(read_list(given.list)))
    with DocuMindClient(given.base_url, given.api_key) as client:
        summary = ingest(client, ids)
    print(summary)
    if summary.failed:
        sys.exit(SOME_FAILED)


def read_list(path: Path) -> Iterator[str]:
    """Yield the ids of a list; report lines without an id on standard error.

    Raises:
        InvalidInput: The file cannot be read.
    """
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as exc:
        raise InvalidInput(
            f"{str(path)!r} is no readable list ({exc}); expected one arXiv id a line"
        ) from exc
    for number, line in enumerate(lines, start=1):
        words = line.partition("#")[0].split()
        if not words:
            continue
        try:
            base_id(words[0])
        except InvalidInput as error:
            print(f"line {number} of {path.name!r} is left out: {error.message}", file=sys.stderr)
            continue
        yield words[0]


def ingest(
    client: DocuMindClient, ids: list[str], sleep: Callable[[float], object] = time.sleep
) -> Summary:
    """Fetch the missing papers one after the other; return their outcomes.

    Raises:
        ProviderError: The server or arXiv is away; what was fetched stays.
    """
    summary = Summary()
    fetched = 0
    for number, arxiv_id in enumerate(ids, start=1):
        if is_known(client, arxiv_id):
            summary.known.append(arxiv_id)
            continue
        if fetched:
            sleep(INTERVAL_S)
        fetched += 1
        try:
            said = str(fetch(client, arxiv_id, sleep)["status"])
            summary.added.append(arxiv_id)
        except DocuMindError as error:
            if isinstance(error, ProviderError) and error.retryable:
                raise type(error)(f"{error.message}; {summary}, run it again to go on") from error
            said = f"failed: {error.message}"
            summary.failed.append(arxiv_id)
        print(f"{number}/{len(ids)} {arxiv_id}: {said}", flush=True)
    return summary


def is_known(client: DocuMindClient, arxiv_id: str) -> bool:
    """Return whether the library has a paper, in any version."""
    try:
        client.document(LIBRARY, base_id(arxiv_id))
    except NotFound:
        return False
    return True


def fetch(client: DocuMindClient, arxiv_id: str, sleep: Callable[[float], object]) -> Json:
    """Return a paper's outcome; wait and ask again if arXiv says so.

    Raises:
        Busy: arXiv asked for it each time.
        DocuMindError: The paper cannot be had.
    """
    for attempt in range(1, TRIES + 1):
        try:
            return dict(client.fetch_arxiv(arxiv_id)["documents"][0])
        except Busy as error:
            if attempt == TRIES:
                raise
            sleep(max(error.retry_after_s or 0.0, RETRY_S))
    raise AssertionError("unreachable")


if __name__ == "__main__":
    run_at_edge(main)
