"""Find the files of a folder that a library follows."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path

from pathspec import GitIgnoreSpec

from app.core.errors import InvalidInput

IGNORE_FILE = ".documindignore"
"""Names what a synced folder leaves out, as gitignore(5) describes."""


_OF_PROGRAMS = re.compile(r"~\$.*|desktop\.ini|thumbs\.db", re.IGNORECASE)
"""Locks of open office documents, and what Windows keeps of a folder's looks."""


def visible_files(
    root: Path,
    failed: Callable[[OSError], None] | None = None,
    skipped: Callable[[Path], None] | None = None,
) -> Iterator[Path]:
    """Yield regular files below `root` by path, without hidden and ignored ones.

    Symbolic links, and files that programs keep for themselves, are left out too.

    Args:
        root: The folder; its `.documindignore` is read.
        failed: Called for folders that cannot be listed; by default they are skipped.
        skipped: Called for the files of programs.

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
                if not _OF_PROGRAMS.fullmatch(name):
                    yield path
                elif skipped is not None:
                    skipped(path)


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
