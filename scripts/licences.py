"""Print the licences of the locked packages: `python -m scripts.licences --lock FILE`.

FILE is locks/runtime.lock by default; run it where the lock is installed. Exit code 1 if one is not permissive.

Packages say their licence in three ways: an SPDX expression (PEP 639), classifiers, or free text.
"""

from __future__ import annotations

import argparse
import re
import sys
from dataclasses import dataclass
from email.message import Message
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import cast

LOCK = Path(__file__).resolve().parent.parent / "locks/runtime.lock"

PERMISSIVE = frozenset(
    "MIT MIT-0 BSD-2-Clause BSD-3-Clause 0BSD Apache-2.0 ISC PSF-2.0 Python-2.0 Zlib CC0-1.0"
    " Unlicense HPND MIT-CMU BSL-1.0".split()
)
FILE_LEVEL = frozenset({"MPL-2.0"})
"""The Mozilla licence binds its own files only; we use the packages as they are and change none
of their files."""
UNCHANGED_LIBRARIES = {
    **dict.fromkeys(("psycopg", "psycopg-binary"), "LGPL-3.0-only"),
    "docutils": "Public Domain AND BSD-3-Clause AND GNU General Public License (GPL)",
}
"""Libraries of the extra `shared`, used as published (docs/decisions/0241); of docutils the GPL is
that of its Emacs mode (its COPYING), which no wheel has."""

_TEXTS = {
    "mit": "MIT",
    "mit license": "MIT",
    "apache software license": "Apache-2.0",
    "apache license, version 2.0": "Apache-2.0",
    "apache license 2.0": "Apache-2.0",
    "bsd license": "BSD-3-Clause",
    "bsd": "BSD-3-Clause",
    "3-clause bsd license": "BSD-3-Clause",
    "isc license (iscl)": "ISC",
    "python software foundation license": "PSF-2.0",
    "mozilla public license 2.0 (mpl 2.0)": "MPL-2.0",
    "bsd-3-clause, apache-2.0, dependency licenses": "BSD-3-Clause AND Apache-2.0",
}


@dataclass(frozen=True, slots=True)
class Licence:
    """A package and its licence, as an SPDX expression if possible."""

    package: str
    expression: str

    @property
    def allowed(self) -> bool:
        """Return whether every licence named permits use without duties for our files."""
        if UNCHANGED_LIBRARIES.get(self.package) == self.expression:
            return True
        names = re.findall(r"[\w.+-]+", re.sub(r"\b(AND|OR|WITH)\b", " ", self.expression))
        return bool(names) and all(name in PERMISSIVE | FILE_LEVEL for name in names)


def expression_of(metadata: Message) -> str:
    """Return a package's SPDX expression, its own words, or an empty text."""
    if expression := metadata.get("License-Expression"):
        return str(expression)
    classifiers = [
        str(line).rpartition("::")[2].strip()
        for line in metadata.get_all("Classifier", [])
        if "License ::" in str(line)
    ]
    said = [text for text in classifiers if text != "OSI Approved"] or [
        str(metadata.get("License", "")).strip().partition("\n")[0]
    ]
    return " AND ".join(_TEXTS.get(text.lower(), text) for text in said)


def locked(lock: Path = LOCK) -> list[str]:
    return sorted(
        set(re.findall(r"^([a-z0-9.-]+)==", lock.read_text(encoding="utf-8"), re.MULTILINE))
    )


def licences(names: list[str]) -> list[Licence]:
    """Return the licences of installed packages; the rest are for other systems."""
    found = []
    for name in names:
        try:
            found.append(Licence(name, expression_of(cast("Message", distribution(name).metadata))))
        except PackageNotFoundError:
            continue
    return found


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--lock", type=Path, default=LOCK, metavar="FILE")
    found = licences(locked(parser.parse_args().lock))
    for one in sorted(found, key=lambda one: (one.expression, one.package)):
        print(f"{one.expression:45} {one.package}")
    wrong = [one for one in found if not one.allowed]
    for one in wrong:
        print(f"NOT ALLOWED: {one.package}: {one.expression or 'says nothing'}", file=sys.stderr)
    print(f"{len(found)} packages, {len(wrong)} not allowed")
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
