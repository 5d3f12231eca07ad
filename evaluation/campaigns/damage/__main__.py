"""Damage a vector store in thirty ways, start the real server on each, and write evaluation/reports/damage.{json,md}.

make bench-damage
python -m evaluation.campaigns.damage --dir D --minutes 5       # a part of it; the same command
goes on
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import tempfile
import time
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path

from app.core.types import Fingerprint
from evaluation.campaigns.damage.kinds import KINDS
from evaluation.campaigns.damage.stores import DAMAGED, HEALTHY, build, fingerprint
from evaluation.campaigns.damage.trial import Trial, check_and_repair, damaged_copy, serve
from evaluation.lib.paths import REPORTS, ROOT
from evaluation.lib.served import quantile


@dataclass(frozen=True, slots=True)
class Outcome:
    """One damaged or healthy store: under the server, and apart from it under `fsck`."""

    name: str
    damaged: bool
    served: Trial
    fsck_found: tuple[str, ...]
    whole_after_repair: bool

    @property
    def found_by(self) -> str:
        """Who finds it."""
        return "start" if self.served.found_at_start else "fsck" if self.fsck_found else "nobody"

    @property
    def holds(self) -> bool:
        """Whether the server did all it promises."""
        served = self.served
        answered = served.first_hits > 0 or any(
            recipe.leaves_nothing for recipe in HEALTHY if recipe.name == self.name
        )
        calm = served.started and answered
        if not self.damaged:
            return calm and self.found_by == "nobody" and served.whole
        return calm and self.whole_after_repair and (served.whole or self.found_by == "fsck")


class Workshop:
    """Keeps the sound data directory that is copied, and what was tried so far."""

    def __init__(self, directory: Path) -> None:
        """Work in `directory`; what is there already is used."""
        directory.mkdir(parents=True, exist_ok=True)
        self.directory = directory
        self.made_with: Fingerprint = fingerprint(directory / "models")
        self._log = directory / "outcomes.jsonl"
        self.outcomes: list[Outcome] = []
        for line in self._log.read_text("utf-8").splitlines() if self._log.exists() else []:
            found = json.loads(self._without_places(line))
            self.outcomes.append(Outcome(**{**found, "served": Trial(**found["served"])}))

    def _without_places(self, text: str) -> str:
        """Return messages without the directories of this machine that they name."""
        for place in (self.directory, sys.prefix, ROOT):
            text = text.replace(f"{place}/", "")
        return text

    def base(self) -> Path:
        """Return a sound data directory with the store that is damaged."""
        base = self.directory / "base"
        if not base.exists():
            part = self.directory / "base.part"
            shutil.rmtree(part, ignore_errors=True)
            build(part, DAMAGED, self.made_with)
            part.rename(base)
        return base

    def damaged(self, name: str) -> Outcome:
        """Damage a copy in one way and start the server on it; when it finds nothing, let `fsck` look at another copy."""
        data = self.directory / "served"
        served = self._serve(damaged_copy(self.base(), data, KINDS[name]))
        if served.found_at_start:
            return Outcome(name, True, served, (), served.whole)
        self.clean()
        found, whole = check_and_repair(damaged_copy(self.base(), data, KINDS[name]))
        return Outcome(name, True, served, tuple(found), whole)

    def healthy(self, number: int) -> Outcome:
        """Make a healthy store, start the server on it, and let `fsck` look at it."""
        recipe = HEALTHY[number]
        data = self.directory / "served"
        build(data, recipe, self.made_with)
        shutil.rmtree(data / "earlier", ignore_errors=True)
        served = self._serve(data)
        found, whole = check_and_repair(data)
        return Outcome(recipe.name, False, served, tuple(found), whole)

    def _serve(self, data: Path) -> Trial:
        shutil.copytree(self.directory / "models", data / "models", dirs_exist_ok=True)
        return serve(data)

    def keep(self, outcome: Outcome) -> None:
        """Write an outcome down."""
        self.outcomes.append(outcome)
        with self._log.open("a", encoding="utf-8") as log:
            log.write(json.dumps(asdict(outcome)) + "\n")
        sys.stderr.write(
            f"{'ok    ' if outcome.holds else 'BROKEN'} {outcome.name}: found by"
            f" {outcome.found_by}\n"
        )
        sys.stderr.flush()

    def clean(self) -> None:
        """Remove what a trial left."""
        data = self.directory / "served"
        shutil.rmtree(data, ignore_errors=True)
        for suffix in (".log",):
            data.with_suffix(suffix).unlink(missing_ok=True)


def main() -> int:
    """Try every kind and every healthy store, or a part of them; exit 1 when a server did not do what it promises."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--dir", type=Path, help="where it works; what was tried there before is not tried again"
    )
    parser.add_argument(
        "--minutes",
        type=float,
        default=0.0,
        help="stop after so long, to go on later; 0: run to the end",
    )
    args = parser.parse_args()
    until = time.monotonic() + 60 * args.minutes if args.minutes else None
    with tempfile.TemporaryDirectory(prefix="documind-damage-") as temporary:
        workshop = Workshop(args.dir or Path(temporary))
        done = {outcome.name for outcome in workshop.outcomes if outcome.damaged}
        kinds = [name for name in KINDS if name not in done]
        healthy = range(sum(not outcome.damaged for outcome in workshop.outcomes), len(HEALTHY))
        todo = [partial(workshop.damaged, name) for name in kinds] + [
            partial(workshop.healthy, number) for number in healthy
        ]
        for work in todo:
            workshop.clean()
            workshop.keep(work())
            if until is not None and time.monotonic() > until:
                break
        outcomes = Workshop(workshop.directory).outcomes  # as they were written down
    return report(outcomes) if len(outcomes) == len(KINDS) + len(HEALTHY) else 0


def report(outcomes: list[Outcome]) -> int:
    """Write the report and return 0 when every server did what it promises."""
    damaged = [outcome for outcome in outcomes if outcome.damaged]
    healthy = [outcome for outcome in outcomes if not outcome.damaged]
    found = {
        by: [outcome.name for outcome in damaged if outcome.found_by == by]
        for by in ("start", "fsck", "nobody")
    }
    alarms = [outcome.name for outcome in healthy if outcome.found_by != "nobody"]
    broken = [outcome.name for outcome in outcomes if not outcome.holds]
    noticed = [outcome for outcome in damaged if "index_rebuilding" in outcome.served.first_notices]
    rebuilt = [outcome.served.ready_s for outcome in damaged if outcome.served.found_at_start]
    record = {
        "holds": not broken,
        "figures": {
            "kinds": len(damaged),
            "found_at_start": len(found["start"]),
            "found_by_fsck_only": len(found["fsck"]),
            "found_by_nobody_and_whole": len(found["nobody"]),
            "healthy": len(healthy),
            "false_alarms": len(alarms),
            "starts_that_failed": sum(not outcome.served.started for outcome in outcomes),
            "lexical_answers_at_once": sum(outcome.served.first_hits > 0 for outcome in outcomes),
            "of_those_with_the_notice": len(noticed),
            "whole_after_the_start": sum(outcome.served.whole for outcome in damaged),
            "whole_after_repair": sum(outcome.whole_after_repair for outcome in damaged),
            "vectors_per_store": DAMAGED.vectors,
            "ready_again_s_p50": quantile(rebuilt, 0.5),
            "ready_again_s_max": max(rebuilt),
        },
        "broken": broken,
        "outcomes": [
            {**asdict(outcome), "found_by": outcome.found_by, "holds": outcome.holds}
            for outcome in outcomes
        ],
    }
    REPORTS.mkdir(parents=True, exist_ok=True)
    (REPORTS / "damage.json").write_text(json.dumps(record, indent=1) + "\n", "utf-8")
    page = [
        "# Damaged vector stores",
        "",
        f"{len(damaged)} kinds of damage to a Chroma store of {DAMAGED.vectors:,} vectors, of a"
        " library that is searched in Chroma",
        f"only, and {len(healthy)} healthy stores of 20 to 4,000 vectors. The real server is"
        " started on each, asked at once,",
        "watched until its store is ready, and stopped; then Chroma is asked for every vector."
        " Where the start finds nothing,",
        "`fsck` and `fsck --repair` run on another copy.",
        "",
        f"- promises broken: **{len(broken)}**{': ' + '; '.join(broken) if broken else ''}",
        f"- the server started {sum(outcome.served.started for outcome in outcomes)} times of"
        f" {len(outcomes)}",
        "- the first question was answered from the words"
        f" {sum(outcome.served.first_hits > 0 for outcome in outcomes)} times;"
        f" {len(noticed)} of {len(damaged)} answers over damaged stores came with the notice"
        " `index_rebuilding`, the others after"
        " the store was whole",
        f"- found at start: {len(found['start'])} kinds; only by `fsck`: {len(found['fsck'])}; by"
        " neither, and every vector"
        f" (99 %) is found all the same: {len(found['nobody'])}",
        "- 99 % of the vectors find themselves after the start in"
        f" {sum(outcome.served.whole for outcome in damaged)}"
        f" of {len(damaged)},"
        f" after `fsck --repair` in {sum(outcome.whole_after_repair for outcome in damaged)}",
        f"- ready again after the first answer: p50 {quantile(rebuilt, 0.5):.1f} s, at most"
        f" {max(rebuilt):.1f} s",
        f"- false alarms over healthy stores: {len(alarms)}",
        "",
        "| damage | found by | at start | `fsck` | whole after start | whole after repair |",
        "|---|---|---|---|---|---|",
        *(_row(outcome) for outcome in damaged),
        "",
        "Made by `make bench-damage`.",
        "",
    ]
    (REPORTS / "damage.md").write_text("\n".join(page), "utf-8")
    print("\n".join(page))
    return 0 if not broken else 1


def _row(outcome: Outcome) -> str:
    said = outcome.served.found_at_start.replace("|", "/")[:90]
    codes = ", ".join(dict.fromkeys(outcome.fsck_found))
    whole = [
        "yes" if value else "no" for value in (outcome.served.whole, outcome.whole_after_repair)
    ]
    return f"| {outcome.name} | {outcome.found_by} | {said} | {codes} | {whole[0]} | {whole[1]} |"


if __name__ == "__main__":
    sys.exit(main())
