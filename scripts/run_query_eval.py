"""Run the query cases against a server: `python -m scripts.run_query_eval`.

Options: [--base-url URL] [--csv F].

Exit code 1 when a case fails. With --skip-empty-corpus-cases those that need documents are left out
when there are none.
"""

from __future__ import annotations

import argparse
import csv
import sys
from pathlib import Path
from typing import get_args

from app.cli.main import run_at_edge
from app.client import DocuMindClient
from app.core.types import LibraryName
from scripts.probes import QueryCase, failures, load_cases
from scripts.reports import PROBES, require_writable
from scripts.run_retrieval_ablation import server_options


def main() -> None:
    """Ask every case and print what failed.

    Raises:
        SystemExit: A case failed; the code is 1.
    """
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    server_options(parser)
    parser.add_argument("--cases", type=Path, default=PROBES / "query_cases.json")
    parser.add_argument("--csv", type=Path, help="write one row per case")
    parser.add_argument("--skip-empty-corpus-cases", action="store_true")
    given = parser.parse_args()
    require_writable([given.csv] if given.csv else [])
    rows = []
    with DocuMindClient(given.base_url, given.api_key) as client:
        empty = given.skip_empty_corpus_cases and not any(
            int(str(client.stats(name)["documents"])) for name in get_args(LibraryName)
        )
        for case in load_cases(given.cases):
            if empty and case.needs_corpus:
                rows.append((case.id, "skipped", "the libraries are empty"))
                continue
            wrong = wrong_with(client, case)
            rows.append((case.id, "failed" if wrong else "passed", "; ".join(wrong)))
    for row in rows:
        print("\t".join(row))
    if given.csv:
        with given.csv.open("w", encoding="utf-8", newline="") as file:
            csv.writer(file).writerows([("case", "outcome", "why"), *rows])
    passed, failed = (
        sum(outcome == wanted for _, outcome, _ in rows) for wanted in ("passed", "failed")
    )
    print(f"{passed} of {len(rows)} passed, {failed} failed")
    if failed:
        sys.exit(1)


def wrong_with(client: DocuMindClient, case: QueryCase) -> list[str]:
    """Send a case as a request; return what does not hold."""
    body = client.query(
        case.question,
        library=case.library,
        query_mode=case.mode,
        retrieval_strategy=case.strategy,
        retrieve_only=case.retrieve_only,
    )
    titles = {str(source["title"]).lower() for source in body["sources"]}
    return failures(case, str(body["status"]), str(body["answer"]), titles)


if __name__ == "__main__":
    run_at_edge(main)
