"""Plant, delete and purge a document, and search every file for it.

Into evaluation/reports/gone.{md,json}.

make bench-gone
"""

from __future__ import annotations

import argparse
import json
import logging
import os
import platform
import sys
import tempfile
from dataclasses import asdict
from pathlib import Path
from typing import cast

from evaluation.campaigns.gone.trial import Sight, TrialResult, run
from evaluation.lib.paths import REPORTS

MUST_FIND = {
    "catalog.sqlite3": {"zstd", "text", "float16"},
    "tantivy/papers": {"term"},
    "chroma": {"float32"},
    "originals": {"text"},
    "chroma.broken.20260101T000000Z": {"float32"},
    "tantivy/papers.broken.20260101T000001Z": {"term"},
}
"""Where the control must find the document before it is deleted, or the search looks in the
wrong way."""

AFTER_DELETION = {
    "tantivy/papers",
    "chroma",
    "chroma.broken.20260101T000000Z",
    "tantivy/papers.broken.20260101T000001Z",
}
"""Where a deletion alone leaves it, which is what a purge is for."""


def missed(sight: Sight) -> list[str]:
    """Return what the control ought to have found and did not."""
    return [
        f"{way} in {place}"
        for place, ways in MUST_FIND.items()
        for way in sorted(ways - set(sight.places.get(place, [])))
    ]


def faults(result: TrialResult) -> list[str]:
    """Return what speaks against the promise or against the trial."""
    by_name = {sight.when: sight for sight in result.sights}
    found = [f"the control did not find {what}" for what in missed(by_name["planted"])]
    found += [
        f"the control without a purge did not find it in {place}"
        for place in AFTER_DELETION - set(by_name["deleted"].places)
    ]
    found += [
        f"{', '.join(ways)} in {place} after the purge ({when})"
        for when in ("purged", "stopped")
        for place, ways in by_name[when].places.items()
    ]
    if not result.quoted:
        found.append("no stored answer quoted the document: the trial proves nothing about answers")
    for name, reply in (("deletion", result.deleted), ("purge", result.purged)):
        if not any(
            "backup" in str(line) for line in cast("list[str]", reply.get("out_of_reach", []))
        ):
            found.append(f"the reply to the {name} does not list what is out of reach")
    return found


def main() -> int:
    """Run one trial; exit 1 when a byte is left or the control is blind."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--filler", type=int, default=120, help="other documents, about ten chunks each"
    )
    args = parser.parse_args()
    logging.disable(logging.CRITICAL)
    with tempfile.TemporaryDirectory(prefix="documind-gone-") as temporary:
        result = run(Path(temporary), args.filler, lambda line: print(line, flush=True))
    wrong = faults(result)
    machine = {"python": platform.python_version(), "cores": os.cpu_count() or 0}
    record = {
        "title": "Deleted means gone",
        **asdict(result),
        "faults": wrong,
        "filler": args.filler,
        "machine": machine,
    }
    REPORTS.mkdir(parents=True, exist_ok=True)
    (REPORTS / "gone.json").write_text(
        json.dumps(record, indent=2, ensure_ascii=False) + "\n", "utf-8"
    )
    (REPORTS / "gone.md").write_text(page(result, wrong, args.filler), "utf-8")
    print("\n".join(wrong) or "nothing was found after the purge")
    return 1 if wrong else 0


def page(result: TrialResult, wrong: list[str], filler: int) -> str:
    """Return the report as Markdown."""
    places = sorted({place for sight in result.sights for place in sight.places})
    names = [sight.when for sight in result.sights]
    lines = [
        "# Deleted means gone",
        "",
        "A document with words in several scripts was uploaded twice, embedded by two models,"
        " asked about, deleted and purged",
        f"over HTTP, with {filler} others. Every file of the data directory was then searched for"
        " its words (UTF-8, UTF-16, JSON",
        "escapes), inside every zstd frame that can be carved from any offset (along the overflow"
        " pages of SQLite too, free pages",
        "and write-ahead log included), for its terms in the lexical dictionaries, and for its"
        " vectors as float32 or float16,",
        "by cosine, at any offset.",
        "",
        f"| file | {' | '.join(names)} |",
        f"|---|{'---|' * len(names)}",
    ]
    lines += [
        f"| {place} |"
        f" {' | '.join(', '.join(sight.places.get(place, [])) or '-' for sight in result.sights)}"
        " |"
        for place in places
    ]
    out_of_reach = cast("list[str]", result.purged.get("out_of_reach", []))
    lines += [
        "",
        f"Stored answers that quoted it before: {result.quoted}; quotes blanked:"
        f" {result.deleted.get('quotes_blanked')}.",
    ]
    lines += [
        "",
        "Out of reach, and listed in both replies:",
        "",
        *(f"- {line}" for line in out_of_reach),
        "",
    ]
    lines += [f"**{line}**" for line in wrong] or ["After the purge nothing was found."]
    return "\n".join(
        [
            *lines,
            "",
            f"Made by `python -m evaluation.campaigns.gone --filler {filler}` in {result.seconds}"
            " s; `make bench-gone` takes 120.",
            "",
        ]
    )


if __name__ == "__main__":
    sys.exit(main())
