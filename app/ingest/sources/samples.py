"""The bundled sample documents, as raw documents with fixed ids."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from app.core.errors import NotFound
from app.core.release import bundle
from app.core.types import SAMPLE_PREFIX, Library, RawDocument

LICENCE = "Apache-2.0"
INVENTED = "invented for this demonstration"
"""Note for the papers' licence: their studies and figures are not real."""


def bundled() -> Path:
    """Return the folder of the samples: `data`, or in a wheel inside the package."""
    here = Path(__file__).resolve().parents[3] / "data" / "sample_docs"
    return here if here.is_dir() else bundle("samples")


@dataclass(frozen=True, slots=True)
class SampleDocuments:
    """The samples of one library, sorted by name; a `Source`."""

    library: Library
    root: Path

    def __iter__(self) -> Iterator[RawDocument]:
        """Yield documents whose id and source key are `sample_<stem>`.

        Raises:
            NotFound: The folder is not there; the package was installed without its data.
        """
        licence = f"{LICENCE}; {INVENTED}" if self.library is Library.PAPERS else LICENCE
        folder = self.root / self.library.value
        if not folder.is_dir():
            raise NotFound(
                f"the sample documents are not at {str(folder)!r}; run from a checkout or the image"
            )
        for path in sorted(folder.iterdir()):
            if path.is_file() and not path.name.startswith("."):
                name = SAMPLE_PREFIX + path.stem
                yield RawDocument(name, path.name, path, licence=licence, doc_id=name)
