"""Files and folders as raw documents."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from pathspec import GitIgnoreSpec

from app.core.errors import InvalidInput
from app.core.types import RawDocument
from app.ingest.names import display_name, source_key

IGNORE_FILE = ".documindignore"
"""Names what a synced folder leaves out, as gitignore(5) describes."""


@dataclass(frozen=True, slots=True)
class FileSource:
    """A `Source` of single files by name, and folders by relative paths.

    Hidden files and folders (a leading dot), symbolic links inside folders and what a folder's
    ignore file names are left out.
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
                    yield RawDocument(
                        source_key(file.relative_to(path).as_posix()), display_name(file.name), file
                    )
            elif path.is_file():
                yield RawDocument(source_key(path.name), display_name(path.name), path)
            else:
                raise InvalidInput(f"no file or folder {str(path)!r}; check the path")


def visible_files(root: Path, failed: Callable[[OSError], None] | None = None) -> Iterator[Path]:
    """Yield regular files below `root` by path, without hidden and ignored ones.

    Symbolic links are left out too.

    Args:
        root: The folder; its `.documindignore` is read.
        failed: Called for folders that cannot be listed; by default they are skipped.

    Raises:
        InvalidInput: The ignore file cannot be read.
    """
    rules = read_ignore_file(root)
    for folder, folders, files in os.walk(root, onerror=failed):
        here = Path(folder)
        relative = here.relative_to(root)
        folders[:] = sorted(
            name
            for name in folders
            if not name.startswith(".")
            and not (here / name).is_symlink()
            and not rules.match_file(f"{(relative / name).as_posix()}/")
        )
        for name in sorted(files):
            path = here / name
            if (
                not name.startswith(".")
                and not path.is_symlink()
                and path.is_file()
                and not rules.match_file((relative / name).as_posix())
            ):
                yield path


def read_ignore_file(root: Path) -> GitIgnoreSpec:
    """Return the rules of a folder's `.documindignore`, none when there is none.

    Raises:
        InvalidInput: The file cannot be read or has an invalid rule; without it, too much would be
            indexed.
    """
    path = root / IGNORE_FILE
    try:
        return GitIgnoreSpec.from_lines(
            path.read_text("utf-8").splitlines() if path.exists() else ()
        )
    except (OSError, ValueError) as exc:
        raise InvalidInput(f"{str(path)!r} cannot be read ({exc}); fix it or remove it") from exc
