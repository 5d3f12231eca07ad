"""Refuses a distribution without what a reader needs: the page, the samples, the embedded model. pyproject.toml names it."""

from __future__ import annotations

from pathlib import Path

from setuptools.command.build_py import build_py

NEEDED = {
    "the web page": "app/api/static/page/index.html",
    "the sample documents": "app/bundle/samples/papers/citation-checking.pdf",
    "the embedded model": "app/bundle/minilm/int8.graph",
    "the reader": "app/bundle/reader/int8.graph",
}


class WholeBuild(build_py):  # type: ignore[misc]  # setuptools has no types
    """Builds only what is whole; an editable install runs from the checkout, which has the samples and fetches the rest."""

    def run(self) -> None:
        """Build, or end with what is missing."""
        missing = [what for what, path in NEEDED.items() if not Path(path).is_file()]
        if missing and not self.editable_mode:
            raise SystemExit(f"this wheel would lack {' and '.join(missing)}; run: make wheel")
        super().run()
