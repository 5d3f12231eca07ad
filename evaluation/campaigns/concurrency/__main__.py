"""Run 4 uploaders, 8 searchers and 1 deleter for 3 minutes against a model.

Into evaluation/reports/concurrency.{md,json}.

make bench-concurrency
"""

from __future__ import annotations

import argparse
import json
import logging
import sys
import tempfile
from pathlib import Path
from typing import cast

from app.client import Json
from evaluation.campaigns.concurrency.clients import Clients, final_check
from evaluation.lib.served import Line, Served, quantile, write

REMARKS = (
    "Four uploaders (new documents, and replacements of their own), eight searchers (search by"
    " every fusion, and answers), and one",
    "that deletes, and undoes three of ten deletions, against the real server with the embedded"
    " model. Each returned passage must",
    "be exactly the characters of a version of its document that was live at some moment of the"
    " search; a version acknowledged",
    "before the search began and not ended by its end must be found by its marker; every status"
    " must be one the OpenAPI document",
    "declares. Afterwards every version is looked for once more, and `fsck` checks the store.",
)


def trial(directory: Path, seconds: float, at_least: int = 0) -> tuple[Clients, list[str], Json]:
    """Run the clients against a new server until enough operations are done.

    Returns:
        The clients, what the last look found wrong, and the result of fsck.
    """
    with Served(directory / "data") as server:
        clients = Clients(server.url, uploaders=4, searchers=8)
        clients.run(seconds, at_least)
        last = final_check(clients)
        job = server.client.follow(str(server.client.post("/api/v1/fsck")["id"]))
    return clients, last, cast("Json", job["result"])


def main() -> int:
    """Run, report, and exit 1 when a promise was broken."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seconds", type=float, default=180.0)
    args = parser.parse_args()
    logging.disable(logging.CRITICAL)
    with tempfile.TemporaryDirectory(prefix="documind-concurrency-") as temporary:
        clients, _, fsck = trial(Path(temporary), args.seconds)
    tally = clients.tally
    kinds = {
        kind: sum(line.startswith(kind) for line in tally.wrong)
        for kind in ("wrong text", "phantom", "missing", "the library")
    }
    errors = sum(count for status, count in tally.statuses.items() if status.endswith(" 500"))
    lines = [
        Line("passages that are no text of their document", kinds["wrong text"], 0, ""),
        Line("passages of what was gone before the search began", kinds["phantom"], 0, ""),
        Line("acknowledged documents that were not found", kinds["missing"], 0, ""),
        Line("wrong counts at the end", kinds["the library"], 0, ""),
        Line("replies the contract does not declare", len(tally.undeclared), 0, ""),
        Line("replies of 500", errors, 0, ""),
        Line("faults that fsck finds afterwards", len(cast("list[object]", fsck["faults"])), 0, ""),
    ]
    figures: dict[str, float] = {
        "seconds": args.seconds,
        **{f"documents {what}": float(n) for what, n in tally.done.items()},
    }
    for what, times in sorted(tally.seconds.items()):
        figures[f"{what}: requests"] = float(len(times))
        for share, name in ((0.5, "p50"), (0.95, "p95"), (0.99, "p99")):
            figures[f"{what}: {name} ms"] = quantile(times, share) * 1000
    figures |= {
        f"status {status}": float(count) for status, count in sorted(tally.statuses.items())
    }
    faults = [json.dumps(fault) for fault in cast("list[object]", fsck["faults"])]
    for line in [*tally.wrong[:20], *tally.undeclared[:20], *faults[:20]]:
        print(line)
    command = f"python -m evaluation.campaigns.concurrency --seconds {args.seconds:g}"
    return write("concurrency", "Concurrency", REMARKS, lines, figures, command)


if __name__ == "__main__":
    sys.exit(main())
