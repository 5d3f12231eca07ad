"""Files and folders as raw documents."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from app.core.errors import InvalidInput
from app.core.types import RawDocument
from app.ingest.names import display_name, source_key


@dataclass(frozen=True, slots=True)
class FileSource:
    """Single files under their names, folders under paths relative to each of them; a `Source`.

    Hidden files and folders (a leading dot) and symbolic links inside folders are left out.
    """

    paths: tuple[Path, ...]

    def __iter__(self) -> Iterator[RawDocument]:
        """Yield documents in the order of the paths, folders sorted by relative path.

        Raises:
            InvalidInput: A path does not exist, or a name cannot be a source key.
        """
        for path in self.paths:
            if path.is_dir():
                for file in visible_files(path):
                    yield RawDocument(source_key(file.relative_to(path).as_posix()), display_name(file.name), file)
            elif path.is_file():
                yield RawDocument(source_key(path.name), display_name(path.name), path)
            else:
                raise InvalidInput(f"no file or folder {str(path)!r}; check the path")


def visible_files(root: Path, skip: Iterable[str] = ()) -> Iterator[Path]:
    """Yield regular files below `root`, sorted by path, without hidden ones, links, and relative folder paths in `skip`."""
    skipped = set(skip)
    for folder, folders, files in os.walk(root):
        here = Path(folder)
        folders[:] = sorted(
            name
            for name in folders
            if not name.startswith(".")
            and not (here / name).is_symlink()
            and (here / name).relative_to(root).as_posix() not in skipped
        )
        for name in sorted(files):
            if not name.startswith(".") and not (here / name).is_symlink() and (here / name).is_file():
                yield here / name
