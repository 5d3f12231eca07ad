"""Name a checkout's folders for input and output."""

from __future__ import annotations

import os
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
"""Root of the checkout."""
REPORTS = ROOT / "evaluation" / "reports"
"""Folder of the reports."""
DATA = Path(os.environ.get("DATA") or ROOT / "data" / "collections")
"""Folder of the collections: the variable DATA, or data/collections (docs/evaluation.md)."""
