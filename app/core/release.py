"""Which release this is, and which commit."""

from __future__ import annotations

import shutil
import subprocess
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

CHECKOUT = "0.1.0"
"""The version in pyproject.toml, for a checkout that was not installed; a test compares the two."""


def package_version() -> str:
    """Return the version of the installed distribution, or that of the checkout."""
    try:
        return version("documind-server")
    except PackageNotFoundError:
        return CHECKOUT


def bundle(name: str) -> Path:
    """Return a folder of the wheel (`minilm`, `samples`).

    In a checkout it exists only after `make wheel`.
    """
    return Path(__file__).resolve().parents[1] / "bundle" / name


@cache
def checkout_sha() -> str:
    """Return the commit of this checkout; empty outside of one or without git."""
    root = Path(__file__).resolve().parents[2]
    git = shutil.which("git")
    if git is None or not (root / ".git").exists():
        return ""
    found = subprocess.run(  # noqa: S603
        [git, "rev-parse", "HEAD"], cwd=root, capture_output=True, text=True, check=False
    )
    return found.stdout.strip()
