"""Run a module as `make run` would find it: packages that locks/runtime.lock does not name cannot be imported.

python -m tests.fakes.runtime_only MODULE [ARGUMENT...]
"""

from __future__ import annotations

import re
import runpy
import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec, PathFinder
from importlib.metadata import packages_distributions
from pathlib import Path
from types import ModuleType

ROOT = Path(__file__).resolve().parents[2]


def developers_modules() -> frozenset[str]:
    """Return the names of importable packages and modules that only developers have."""
    lock = (ROOT / "locks/runtime.lock").read_text(encoding="utf-8")
    runtime = {*re.findall(r"^([a-z0-9.-]+)==", lock, re.MULTILINE), "documind-server", "pip"}

    def installed_to_run(distributions: Sequence[str]) -> bool:
        return any(re.sub(r"[-_.]+", "-", name).lower() in runtime for name in distributions)

    return frozenset(
        name for name, owners in packages_distributions().items() if not installed_to_run(owners)
    )


class RuntimeFinder:
    """Finds what the path finder finds, less what only developers have."""

    hidden = developers_modules()

    @classmethod
    def find_spec(
        cls, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return where a module is, None for a hidden one."""
        return (
            None
            if fullname.partition(".")[0] in cls.hidden
            else PathFinder.find_spec(fullname, path, target)
        )


if __name__ == "__main__":
    sys.meta_path[sys.meta_path.index(PathFinder)] = RuntimeFinder
    sys.argv = sys.argv[1:]
    runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
