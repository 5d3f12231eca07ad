"""Name a checkout's folders for input and output."""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
"""Root of the checkout."""
REPORTS = ROOT / "evaluation" / "reports"
"""Folder of the reports."""
