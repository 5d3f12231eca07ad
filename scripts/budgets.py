"""Hold each room of the package to its lines: `python -m scripts.budgets`, part of `make lint`.

docs/budgets.toml has the lines that a room may have. A feature that needs more raises its room's
number in the same commit and says for what.
"""

from __future__ import annotations

import argparse
import sys
import tomllib
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def rooms(package: Path) -> Counter[str]:
    """Return the lines of each folder and each module of a package."""
    lines: Counter[str] = Counter()
    for path in package.rglob("*.py"):
        name = path.relative_to(package).parts[0].removesuffix(".py")
        lines[name] += len(path.read_text("utf-8").splitlines())
    return lines


def problems(lines: Counter[str], budgets: dict[str, int]) -> list[str]:
    """Return a line for each room that has too many lines or no budget."""
    return [
        f"{name}: {count} lines, {budgets[name]} in docs/budgets.toml"
        if name in budgets
        else f"{name}: {count} lines and no budget in docs/budgets.toml"
        for name, count in sorted(lines.items())
        if count > budgets.get(name, 0)
    ]


def main() -> int:
    """Print what is over its budget; return 1 if anything is."""
    argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None).parse_args()
    budgets = tomllib.loads((ROOT / "docs" / "budgets.toml").read_text("utf-8"))["lines"]
    found = problems(rooms(ROOT / "app"), budgets)
    print("\n".join(found) or f"{sum(budgets.values()):,} lines are budgeted; every room fits")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
