"""Look up known vulnerabilities of the locked packages: `python -m scripts.audit`.

pip-audit asks the package index.

Exit code 0: every package was looked up and none has a known vulnerability. 1: some have. 2: some
could not be looked up; without a network set AUDIT_OFFLINE=1 to go on without (then nothing was
audited, and that is said).
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import cast

LOCK = Path(__file__).resolve().parent.parent / "locks/runtime.lock"
Package = Mapping[str, object]


def ask(lock: Path) -> Sequence[Package]:
    """Return what the index says of each package; empty when it cannot be reached."""
    options = "--no-deps --disable-pip --require-hashes -f json".split()
    command = [sys.executable, "-m", "pip_audit", "-r", str(lock), *options]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=600)  # noqa: S603  # our own command
    try:
        return cast("Sequence[Package]", json.loads(done.stdout)["dependencies"])
    except (ValueError, KeyError):
        print(done.stderr.strip()[-500:], file=sys.stderr)
        return ()


def verdict(packages: Sequence[Package], *, offline: bool) -> tuple[int, list[str]]:
    """Return the exit code and what to print.

    Args:
        packages: Replies of the index; those with `skip_reason` could not be looked up.
        offline: Whether the user chose to continue without a lookup.
    """
    lines, found = [], 0
    for package in packages:
        for fault in cast("Sequence[Package]", package.get("vulns", ())):
            found += 1
            fixed = (
                ", ".join(cast("Sequence[str]", fault.get("fix_versions", ()))) or "no release yet"
            )
            lines.append(
                f"{package['name']} {package.get('version')}: {fault['id']}, fixed in {fixed}"
            )
    unknown = [str(package["name"]) for package in packages if package.get("skip_reason")]
    looked_up = len(packages) - len(unknown)
    lines.append(f"{looked_up} packages looked up, {found} vulnerabilities known")
    if found:
        return 1, lines
    if looked_up and not unknown:
        return 0, lines
    some = f"{len(unknown)} packages" if packages else "the packages"
    if offline:
        return 0, [
            *lines,
            f"AUDIT_OFFLINE: {some} were NOT audited; run make audit where the package index can"
            " be reached",
        ]
    return 2, [
        *lines,
        f"{some} could not be looked up: the package index cannot be reached; AUDIT_OFFLINE=1 goes"
        " on without",
    ]


def main() -> int:
    argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    ).parse_args()
    code, lines = verdict(ask(LOCK), offline=os.environ.get("AUDIT_OFFLINE", "") not in {"", "0"})
    print("\n".join(lines))
    return code


if __name__ == "__main__":
    sys.exit(main())
