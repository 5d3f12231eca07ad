"""Index a source into the public library.

`python -m scripts.bulk_index_public FOLDER`

Interrupted runs go on by themselves: the ledger in the data directory is the checkpoint.
`--checkpoint FILE` writes its account to a file as well, to watch the progress.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
from pathlib import Path

from app.cli.main import main as documind


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.ArgumentDefaultsHelpFormatter
    )
    parser.add_argument(
        "source", help="a folder of .txt files, a dump, .zim, .parquet, .jsonl or hub:owner/name"
    )
    parser.add_argument(
        "--dry-run", action="store_true", help="say what it would take, index nothing"
    )
    parser.add_argument(
        "--checkpoint", type=Path, help="write the ledger's account here as JSON when done"
    )
    parser.add_argument(
        "--workers", type=int, help="parsing processes; by source and cores when not given"
    )
    args = parser.parse_args()
    if args.dry_run:
        documind_or_exit(["bulk", "plan", args.source, "--library", "public"])
        return
    workers = [] if args.workers is None else ["--workers", str(args.workers)]
    documind_or_exit(["bulk", "index", args.source, "--library", "public", *workers])
    if args.checkpoint:
        found = io.StringIO()
        with contextlib.redirect_stdout(found):
            documind_or_exit(["bulk", "status", "--json"])
        account = json.loads(found.getvalue())["ledger"]["public"]
        args.checkpoint.write_text(json.dumps(account, indent=1) + "\n", encoding="utf-8")


def documind_or_exit(arguments: list[str]) -> None:
    """Run a command; leave with its exit code when that is not 0."""
    try:
        documind(arguments)
    except SystemExit as end:
        if end.code:
            raise


if __name__ == "__main__":
    main()
