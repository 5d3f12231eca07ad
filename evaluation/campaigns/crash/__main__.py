"""Kill the server at random under load; write evaluation/reports/crash.{json,md}.

make crash                                                    # 300 kills
python -m evaluation.campaigns.crash --dir D --kills 300 --minutes 5    # a part of it; the same
command goes on
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
import tempfile
import time
from pathlib import Path

from evaluation.campaigns.crash.campaign import Campaign, Tally
from evaluation.campaigns.crash.promises import ABSENT, Promises
from evaluation.lib.paths import REPORTS
from evaluation.lib.served import quantile

KILLS = 300
OPEN_SHARE = 0.7
ACKNOWLEDGED = 1_000
LONGEST_LOAD_S = 2.0


def main() -> int:
    """Run the campaign or a part; exit 1 if a promise broke or it was too small."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--kills", type=int, default=KILLS)
    parser.add_argument("--seed", type=int, default=11)
    parser.add_argument(
        "--dir", type=Path, help="where it works; a campaign that was begun there goes on"
    )
    parser.add_argument(
        "--minutes",
        type=float,
        default=0.0,
        help="stop after so long, to go on later; 0: run to the end",
    )
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="documind-crash-") as temporary:
        campaign = Campaign(
            args.dir or Path(temporary), seed=args.seed, longest_load_s=LONGEST_LOAD_S
        )
        until = time.monotonic() + 60 * args.minutes if args.minutes else None
        campaign.run(args.kills, until=until)
        if campaign.tally.kills < args.kills:
            print(
                f"{campaign.tally.kills} of {args.kills} kills so far,"
                f" {len(campaign.tally.broken)} promises broken"
            )
            return 0
        asked, vectors = campaign.finish()
        return report(campaign.tally, campaign.promises, asked, vectors)


def report(tally: Tally, promises: Promises, asked: int, vectors: int) -> int:
    """Write the report; return 0 if promises held and the campaign was large enough."""
    acknowledged = promises.acknowledged["text"] + promises.acknowledged["vectors"]
    live = sum(revision != ABSENT for revision in promises.settled.values())
    share = tally.kills_in_open_writes / tally.kills
    whole = tally.kills >= KILLS and acknowledged >= ACKNOWLEDGED
    holds = not tally.broken and share >= OPEN_SHARE and whole
    machine = {"python": platform.python_version(), "cores": os.cpu_count() or 0}
    figures = {
        "kills": tally.kills,
        "kills_in_open_writes": tally.kills_in_open_writes,
        "share_in_open_writes": round(share, 3),
        "kills_while_starting": tally.kills_while_starting,
        "documents_acknowledged": acknowledged,
        "documents_acknowledged_with_vectors": promises.acknowledged["vectors"],
        "documents_accepted": promises.acknowledged["accepted"],
        "deletions_acknowledged": promises.acknowledged["deleted"],
        "broken_promises": len(tally.broken),
        "upper_95_bound_per_kill": round(3 / tally.kills, 4),
        "unanswered_changes": tally.open_requests,
        "unanswered_done_after_all": tally.became.get("done", 0),
        "unanswered_without_trace": tally.became.get("nothing", 0),
        "searches_under_load": tally.searches,
        "documents_at_the_end": live,
        "chunks_asked_over_http": asked,
        "vectors_asked_of_chroma": vectors,
        "vector_stores_remade": tally.stores_remade,
        "ready_s_p50": round(quantile(tally.ready_s, 0.5), 2),
        "ready_s_max": round(max(tally.ready_s), 2),
        "jobs_done_s_p50": round(quantile(tally.settled_s, 0.5), 2),
        "jobs_done_s_max": round(max(tally.settled_s), 2),
    }
    REPORTS.mkdir(parents=True, exist_ok=True)
    record = {"holds": holds, "figures": figures, "broken": tally.broken[:100], "machine": machine}
    (REPORTS / "crash.json").write_text(json.dumps(record, indent=1) + "\n", "utf-8")
    page = [
        "# Random kills under load",
        "",
        "A real server, three clients that upload, replace and delete, one that searches. SIGKILL"
        " at a random moment, restart,",
        "check: every acknowledged document has its text and is found by its own word at once;"
        " accepted ones follow; nothing",
        "deleted is back, nothing is there twice. At the end every chunk is asked for by its own"
        " text over HTTP, `fsck` runs, and",
        "Chroma is asked for every vector.",
        "",
        f"- lost: **{len(tally.broken)}** of {acknowledged:,} acknowledged documents"
        f" ({promises.acknowledged['vectors']:,} of them"
        f" with vectors), {promises.acknowledged['accepted']:,} accepted ones and"
        f" {promises.acknowledged['deleted']:,} deletions",
        f"- kills: {tally.kills}, of which {tally.kills_in_open_writes} ({share:.0%}) met a change"
        " that was sent and not answered,"
        f" and {tally.kills_while_starting} a server that was not ready yet",
        f"- no broken promise in {tally.kills} kills means at most {3 / tally.kills:.1%} per kill"
        " (95 %)"
        if not tally.broken
        else f"- broken: {tally.broken[:5]}",
        f"- changes without an answer: {tally.open_requests:,}; {tally.became.get('done', 0):,}"
        " were done after all,"
        f" {tally.became.get('nothing', 0):,} left no trace",
        f"- searches while others wrote: {tally.searches:,}, every one found its document",
        f"- at the end {live:,} documents, {asked:,} chunks asked for over HTTP, {vectors:,}"
        " vectors asked of Chroma",
        f"- vector stores found damaged at a start and rebuilt: {tally.stores_remade}",
        f"- ready again: p50 {figures['ready_s_p50']} s, at most {figures['ready_s_max']} s; every"
        " accepted job done after another"
        f" {figures['jobs_done_s_p50']} s (p50), at most {figures['jobs_done_s_max']} s",
        *(
            []
            if whole
            else [
                f"- **a part of the campaign**: {KILLS} kills and {ACKNOWLEDGED:,} acknowledged"
                " documents are asked for; the same"
                " command with a larger `--kills` goes on"
            ]
        ),
        "",
        f"Made by `make crash` on {machine['cores']} cores; the times include any other load of"
        " the machine.",
        "",
    ]
    (REPORTS / "crash.md").write_text("\n".join(page), "utf-8")
    print("\n".join(page))
    return 0 if holds else 1


if __name__ == "__main__":
    sys.exit(main())
