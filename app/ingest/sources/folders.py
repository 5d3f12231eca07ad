"""Folder sync: what to add, replace and remove so that a library mirrors a folder.

Which documents came from a folder is kept by the server, and only those are ever removed: not
uploads, not those of another folder, and nothing when the folder's disk is not mounted. The hidden
manifest in the folder only spares reading files again and decides nothing about removals. See
docs/decisions/0011-sync-manifest.md.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from pathspec import GitIgnoreSpec

from app.core.errors import InvalidInput, NotFound
from app.core.ids import bundle, content_sha256, document_id
from app.core.types import SAMPLE_PREFIX, Library, RawDocument
from app.ingest.names import display_name, source_key

# Find the files of a folder that a library follows.

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
            is_regular = not name.startswith(".") and not path.is_symlink() and path.is_file()
            if not is_regular or rules.match_file((relative / name).as_posix()):
                continue
            if name.endswith(SIDECAR) and path.with_name(name.removesuffix(SIDECAR)).is_file():
                continue
            if not _OF_PROGRAMS.fullmatch(name):
                yield path
            elif skipped is not None:
                skipped(path)


SIDECAR = ".meta.json"
"""Ends the name of a file that holds tags and metadata of the file that it is named after."""


def labels_beside(path: Path) -> str:
    """Return what the file next to `path` says of its tags and metadata; empty without one.

    Raises:
        InvalidInput: It cannot be read.
    """
    beside = path.with_name(path.name + SIDECAR)
    try:
        return beside.read_text("utf-8") if beside.is_file() else ""
    except (OSError, ValueError) as exc:
        raise InvalidInput(f"{beside.name!r} cannot be read ({exc}); fix it or remove it") from exc


def read_ignore_file(root: Path) -> GitIgnoreSpec:
    """Return the rules of a folder's `.documindignore`, none when there is none.

    Raises:
        InvalidInput: The file cannot be read or has an invalid rule; without it, too much would be
            indexed.
    """
    path = root / IGNORE_FILE
    try:
        lines = path.read_text("utf-8").splitlines() if path.exists() else ()
        return GitIgnoreSpec.from_lines(lines)
    except (OSError, ValueError) as exc:
        raise InvalidInput(f"{str(path)!r} cannot be read ({exc}); fix it or remove it") from exc


MANIFEST_FILE = ".documind-sync.json"
_VERSION = 1


@dataclass(frozen=True, slots=True)
class ManifestEntry:
    sha256: str
    size: int
    mtime_ns: int
    labels: str = ""
    """What was said of its tags and metadata."""


@dataclass(frozen=True, slots=True)
class FolderFile:
    """A file of the folder; `entry` is its line in the manifest once indexed."""

    source_key: str
    path: Path
    entry: ManifestEntry

    def raw(self) -> RawDocument:
        return RawDocument(self.source_key, display_name(self.path.name), self.path)


@dataclass(frozen=True, slots=True)
class SyncPlan:
    """The changes a sync will make; documents of `failed`, unreadable paths, stay."""

    library: Library
    add: tuple[FolderFile, ...]
    replace: tuple[FolderFile, ...]
    remove: tuple[str, ...]
    """Source keys."""
    unchanged: tuple[FolderFile, ...]
    failed: tuple[tuple[str, str], ...]
    skipped: tuple[tuple[str, str], ...]
    """Paths of files that hold no document, with the reason."""


class Manifest:
    """The hidden file with size, time and hash of a folder's files, by library and source key."""

    def __init__(self, root: Path, library: Library) -> None:
        """Read the manifest of `root`; a missing or foreign one counts as empty."""
        self._path = root / MANIFEST_FILE
        self._library = library
        self._libraries = _read_manifest(self._path)

    @property
    def entries(self) -> Mapping[str, ManifestEntry]:
        return self._libraries.get(self._library.value, {})

    def record(self, indexed: Iterable[FolderFile], removed: Iterable[str]) -> None:
        """Remember what was indexed and forget what was removed; call `save` afterwards."""
        entries = dict(self.entries)
        entries.update({file.source_key: file.entry for file in indexed})
        for key in removed:
            entries.pop(key, None)
        self._libraries[self._library.value] = entries

    def save(self) -> None:
        """Write the manifest, whole or not at all.

        Raises:
            InvalidInput: The folder is read-only: documents are indexed, but the next sync reads
                every file again.
        """
        values = {
            name: {key: asdict(entry) for key, entry in sorted(entries.items())}
            for name, entries in self._libraries.items()
        }
        written = {"version": _VERSION, "libraries": values}
        fresh = self._path.with_name(f"{MANIFEST_FILE}.new")
        try:
            fresh.write_text(json.dumps(written, indent=1, ensure_ascii=False), "utf-8")
            fresh.replace(self._path)
        except OSError as exc:
            with suppress(OSError):
                fresh.unlink(missing_ok=True)
            raise InvalidInput(
                f"{str(self._path)!r} cannot be written ({exc.strerror}); files were indexed, but"
                " the next sync reads all of them"
                " again: make the folder writable"
            ) from exc


def _read_manifest(path: Path) -> dict[str, dict[str, ManifestEntry]]:
    try:
        value = json.loads(path.read_text("utf-8"))
        if value["version"] != _VERSION:
            return {}
        return {
            str(name): {
                str(key): ManifestEntry(
                    str(e["sha256"]), int(e["size"]), int(e["mtime_ns"]), str(e.get("labels", ""))
                )
                for key, e in entries.items()
            }
            for name, entries in value["libraries"].items()
        }
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return {}


def plan_sync(
    root: Path,
    library: Library,
    manifest: Manifest,
    live: Mapping[str, str],
    claimed: Collection[str],
) -> SyncPlan:
    """Compare a folder with what is indexed.

    A file of the size and time that the manifest knows is not read again; every other one is
    compared by its bytes.

    Args:
        root: The folder.
        library: The library to mirror it into.
        manifest: Which files need not be read again.
        live: SHA-256 of the original bytes by doc_id, for every live document of the library.
        claimed: Source keys of the documents that the server knows to come from this folder.

    Raises:
        InvalidInput: `root` is no folder, or its ignore file cannot be read.
    """
    if not root.is_dir():
        raise InvalidInput(f"{str(root)!r} is no folder; give the folder to sync")
    failed: list[tuple[str, str]] = []
    skipped: list[tuple[str, str]] = []
    found: dict[str, FolderFile] = {}

    def fail(path: Path | str, exc: OSError | InvalidInput) -> None:
        said = exc.message if isinstance(exc, InvalidInput) else exc.strerror or "unreadable"
        failed.append((_relative(root, path), said))

    for path in visible_files(
        root,
        lambda error: fail(error.filename, error),
        lambda path: skipped.append((_relative(root, path), "a file of a program")),
    ):
        try:
            file = _look(root, path, manifest.entries)
        except (OSError, InvalidInput) as exc:
            fail(path, exc)
        else:
            found[file.source_key] = file
    groups: dict[str, list[FolderFile]] = {"add": [], "replace": [], "unchanged": []}
    for key, file in found.items():
        if file.entry.size == 0:
            skipped.append((key, "empty"))
            continue
        sha256 = live.get(document_id(library, key))
        before = manifest.entries.get(key)
        told = file.entry.labels in ("", before.labels if before else None)
        same = sha256 == file.entry.sha256 and told
        groups["add" if sha256 is None else "unchanged" if same else "replace"].append(file)
    gone = (key for key in claimed if key not in found and not _within(key, failed))
    return SyncPlan(
        library,
        tuple(groups["add"]),
        tuple(groups["replace"]),
        tuple(sorted(gone)),
        tuple(groups["unchanged"]),
        tuple(failed),
        tuple(skipped),
    )


def _look(root: Path, path: Path, known: Mapping[str, ManifestEntry]) -> FolderFile:
    key = source_key(_relative(root, path))
    status = path.stat()
    entry, labels = known.get(key), labels_beside(path)
    if entry is not None and (entry.size, entry.mtime_ns) == (status.st_size, status.st_mtime_ns):
        return FolderFile(key, path, replace(entry, labels=labels))
    entry = ManifestEntry(content_sha256(path), status.st_size, status.st_mtime_ns, labels)
    return FolderFile(key, path, entry)


def _relative(root: Path, path: Path | str) -> str:
    return Path(path).relative_to(root).as_posix()


def _within(key: str, failed: Iterable[tuple[str, str]]) -> bool:
    """Return whether a key lies at or under an unreadable path, and may still exist."""
    return any(path in (".", key) or key.startswith(f"{path}/") for path, _ in failed)


# The bundled sample documents, as raw documents with fixed ids.

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
