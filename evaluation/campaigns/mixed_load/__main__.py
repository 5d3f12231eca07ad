"""Run 200 clients that ask, upload, list and delete for 80 s.

Into evaluation/reports/mixed_load.{md,json}.

make bench-mixed-load
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from pathlib import Path
from typing import cast

from app.client import Json
from evaluation.campaigns.mixed_load.clients import Clients, Outcome, broken_promises
from evaluation.lib.served import Line, Served, quantile, write

REMARKS = (
    "Clients in threads of their own against the real server with the embedded model, on one"
    " machine. Of 100 requests 40 are",
    "questions, 25 uploads (`wait=text`), 20 lists, 15 deletions without grace of a document of"
    " their own. A refusal is a 503",
    "problem; its client waits 0.2 s. Afterwards every document whose upload was acknowledged and"
    " that was not deleted must be",
    "listed, none whose deletion was acknowledged, and `fsck` checks the store.",
)


def trial(
    directory: Path, clients: int, seconds: float
) -> tuple[Outcome, tuple[list[str], list[str]], list[object]]:
    """Run the clients against a server of its own.

    Returns:
        What they saw; acknowledged documents that are lost and deleted ones that are back; faults
        that fsck finds.
    """
    with Served(directory / "data") as server:
        load = Clients(server.url, clients)
        load.run(seconds)
        broken = broken_promises(server.client, load.outcome)
        job = server.client.follow(str(server.client.post("/api/v1/fsck")["id"]))
    return load.outcome, broken, cast("list[object]", cast("Json", job["result"])["faults"])


def main() -> int:
    """Run, report, and exit 1 when a promise was broken."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--clients", type=int, default=200)
    parser.add_argument("--seconds", type=float, default=80.0)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="documind-mixed-") as temporary:
        outcome, (lost, back), faults = trial(Path(temporary), args.clients, args.seconds)
    answered = sum(
        count for status, count in outcome.statuses.items() if status.split()[1] != "503"
    )
    lines = [
        Line(
            "replies that are neither 2xx nor a 503 problem, broken connections",
            len(outcome.odd),
            0,
            "",
        ),
        Line("acknowledged documents that are lost", len(lost), 0, ""),
        Line("deleted documents that are back", len(back), 0, ""),
        Line("faults that fsck finds afterwards", len(faults), 0, ""),
        Line("requests answered", answered, 1000, "", at_most=False),
    ]
    figures: dict[str, float] = {"clients": args.clients, "seconds": args.seconds}
    for what, times in sorted(outcome.seconds.items()):
        for share, name in ((0.5, "p50"), (0.95, "p95"), (0.99, "p99")):
            figures[f"{what}, answered: {name} ms"] = quantile(times, share) * 1000
    figures |= {
        f"status {status}": float(count) for status, count in sorted(outcome.statuses.items())
    }
    for line in [
        *outcome.odd[:20],
        *lost[:20],
        *back[:20],
        *(json.dumps(fault) for fault in faults[:20]),
    ]:
        print(line)
    command = (
        f"python -m evaluation.campaigns.mixed_load --clients {args.clients} --seconds"
        f" {args.seconds:g}"
    )
    return write("mixed_load", "Mixed load", REMARKS, lines, figures, command)


if __name__ == "__main__":
    sys.exit(main())
