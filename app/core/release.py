"""Which release this is."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version

CHECKOUT = "0.1.0"
"""The version in pyproject.toml, for a checkout that was not installed; a test compares the two."""


def package_version() -> str:
    """Return the version of the installed distribution, or that of the checkout."""
    try:
        return version("documind-server")
    except PackageNotFoundError:
        return CHECKOUT
