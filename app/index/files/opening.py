"""Open the originals: an object store where an address names one, else a directory."""

from __future__ import annotations

import importlib
import logging
from pathlib import Path
from types import ModuleType

from app.core.errors import InvalidInput
from app.index.files.originals import Originals, names_in
from app.index.files.steps import Steps
from app.index.options import IndexOptions

log = logging.getLogger(__name__)


def open_originals(options: IndexOptions, steps: Steps) -> Originals:
    """Return the originals; with an object store, put there what only the directory has.

    Args:
        options: Say where.
        steps: Where write steps are counted.

    Raises:
        InvalidInput: The address is wrong or does not answer, or the extra `shared` is missing.
        OriginalsAway: The store went away while files were put there; the next start goes on.
    """
    directory = options.data_dir / "originals"
    if not options.originals_url:
        return Originals(directory, steps)
    kept: Originals = _object_store().ObjectOriginals(
        options.data_dir / "originals-cache",
        steps,
        options.originals_url,
        options.originals_cache_bytes,
    )
    _put_there(directory, kept)
    return kept


def ask_object_store(url: str) -> str:
    """Return an object store's address; nothing is created.

    Raises:
        InvalidInput: The address is wrong or does not answer, or the extra `shared` is missing.
    """
    return str(_object_store().ask(url))


def _object_store() -> ModuleType:
    """Return the module of object stores, whose client is an extra."""
    try:
        return importlib.import_module("app.index.files.object_originals")
    except ModuleNotFoundError as exc:
        raise InvalidInput(
            "ORIGINALS_URL needs the extra 'shared': pip install 'documind-server[shared]'"
        ) from exc


def _put_there(directory: Path, kept: Originals) -> None:
    missing = sorted(names_in(directory) - kept.names()) if directory.is_dir() else []
    for name in missing:
        kept.store(directory / f"{name}.bin")
    if missing:
        log.info("%d originals of %s were put into the object store", len(missing), directory)
