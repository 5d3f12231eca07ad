"""Folder sync: what to add, replace and remove so that a library mirrors a folder.

A library mirrors Zotero in the same way; `Holdings` are what either of them holds.

Which documents came from a folder is kept by the server, and only those are ever removed: not
uploads, not those of another folder, and nothing when most of a folder is gone at once, as when
its disk is not mounted. The manifest in the data directory only spares reading files again and
decides nothing about removals. Nothing in a folder is opened through a link. See
docs/decisions/0011-sync-manifest.md.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Protocol

from pathspec import GitIgnoreSpec

from app.core.errors import InvalidInput, NotFound, UnsupportedType
from app.core.ids import bundle, content_sha256, document_id
from app.core.labels import Labels, labels_from, with_file_date
from app.core.types import SAMPLE_PREFIX, IngestOutcome, Library, RawDocument
from app.ingest.names import display_name, source_key
from app.ingest.sources.bibtex import labels_of_files
from app.ingest.sources.obsidian import NOTE, Vault, vault_at
from app.ingest.sources.zotero_rdf import labels_in_rdf

# Find the files of a folder that a library follows.

IGNORE_FILE = ".documindignore"
"""Names what a synced folder leaves out, as gitignore(5) describes."""

PASSED_OVER = (
    "*.tmp", "*.bak", "*~", "*.sync-conflict-*", "*conflicted copy*", "node_modules/"
)  # fmt: skip
"""Left out by default; a rule of the ignore file such as `!*.bak` takes it in."""

_UNFINISHED = (
    ".part", ".partial", ".crdownload", ".opdownload", ".download", ".aria2", ".!ut", ".!qb"
)  # fmt: skip
"""Ends of the names under which browsers and other programs download a file."""


_OF_PROGRAMS = re.compile(r"~\$.*|desktop\.ini|thumbs\.db", re.IGNORECASE)
"""Locks of open office documents, and what Windows keeps of a folder's looks."""


def visible_files(
    root: Path,
    failed: Callable[[OSError], None] | None = None,
    skipped: Callable[[Path, str], None] = lambda *_: None,
) -> Iterator[Path]:
    """Yield regular files below `root` by path, without hidden and ignored ones.

    Symbolic links, files that programs keep for themselves, and those that are being downloaded are
    left out too.

    Args:
        root: The folder; its `.documindignore` is read.
        failed: Called for folders that cannot be listed; by default they are skipped.
        skipped: Called with the reason for files of programs and unfinished downloads.

    Raises:
        InvalidInput: The ignore file cannot be read.
    """
    rules = read_ignore_file(root)
    for folder, folders, files in os.walk(root, onerror=failed):
        here, here_too = Path(folder), {*folders, *files}
        relative = here.relative_to(root)
        for name in filter(_downloaded_as, sorted(folders)):
            skipped(here / name, WAITS)
        folders[:] = sorted(
            name
            for name in folders
            if not name.startswith(".")
            and not (here / name).is_symlink()
            and not _downloaded_as(name)
            and not rules.match_file(f"{(relative / name).as_posix()}/")
        )
        for name in sorted(files):
            path = here / name
            is_regular = not name.startswith(".") and not path.is_symlink() and path.is_file()
            if not is_regular or rules.match_file((relative / name).as_posix()):
                continue
            if name.endswith(SIDECAR) and path.with_name(name.removesuffix(SIDECAR)).is_file():
                continue
            if _OF_PROGRAMS.fullmatch(name):
                skipped(path, "a file of a program")
            elif _downloaded_as(name) or any(f"{name}{end}" in here_too for end in _UNFINISHED):
                skipped(path, WAITS)
            else:
                yield path


WAITS = "its download is not finished"


def _downloaded_as(name: str) -> str:
    """Return the name that a file under way will have; empty for any other."""
    ends = (end for end in _UNFINISHED if name.endswith(end))
    return name.removesuffix(next(ends, name))


def _own_text(path: Path) -> str:
    """Return a regular file's text; empty where none is there, or something else of its name.

    Raises:
        OSError: It cannot be read, or is a link.
        UnicodeDecodeError: It is no UTF-8.
    """
    if path.is_symlink() or not path.is_file():
        return ""
    with os.fdopen(os.open(path, os.O_RDONLY | os.O_NOFOLLOW), encoding="utf-8") as file:
        return file.read()


SIDECAR = ".meta.json"
"""Ends the name of a file that holds labels of the file that it is named after."""


def labels_beside(path: Path) -> str:
    """Return the labels that the file next to `path` says; empty without one.

    A link says nothing: what it leads to is not of the folder.

    Raises:
        InvalidInput: It cannot be read.
    """
    beside = path.with_name(path.name + SIDECAR)
    try:
        return _own_text(beside)
    except (OSError, ValueError) as exc:
        raise InvalidInput(f"{beside.name!r} cannot be read ({exc}); fix it or remove it") from exc


def read_ignore_file(root: Path) -> GitIgnoreSpec:
    """Return the rules of a folder's `.documindignore` after PASSED_OVER.

    Raises:
        InvalidInput: The file is a link, cannot be read or has an invalid rule; without it, too
            much would be indexed.
    """
    path = root / IGNORE_FILE
    if path.is_symlink():
        raise InvalidInput(
            f"{str(path)!r} is a link, which is not followed; put a copy in its place"
        )
    try:
        return GitIgnoreSpec.from_lines([*PASSED_OVER, *_own_text(path).splitlines()])
    except (OSError, ValueError) as exc:
        raise InvalidInput(f"{str(path)!r} cannot be read ({exc}); fix it or remove it") from exc


OLD_MANIFEST_FILE = ".documind-sync.json"
"""In a folder that a release before 0.2.0 has synced."""
_VERSION = 1


@dataclass(frozen=True, slots=True)
class ManifestEntry:
    sha256: str
    size: int
    mtime_ns: int
    labels: str = ""
    """What was said of its tags, metadata and facts, as JSON."""
    md5: str = ""
    """What its source says of bytes that it keeps elsewhere; empty: it keeps them here."""


@dataclass(frozen=True, slots=True)
class FolderFile:
    """A file of the folder; `entry` is its line in the manifest once indexed."""

    source_key: str
    path: Path
    entry: ManifestEntry
    is_original: bool = False
    """Its time is that of the document, not of a copy that was made to send it."""

    @property
    def labels(self) -> str:
        """What is said of it when it is sent, as JSON."""
        changed_s = self.entry.mtime_ns / 1e9
        return (
            with_file_date(self.entry.labels, changed_s) if self.is_original else self.entry.labels
        )

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
    kept: tuple[str, ...]
    """Source keys of documents that are gone from the folder and stay: too many at once."""
    unchanged: tuple[FolderFile, ...]
    failed: tuple[tuple[str, str], ...]
    skipped: tuple[tuple[str, str], ...]
    """Paths of files that hold no document, with the reason."""


class Manifest:
    """Size, time and hash of a folder's files, by library and source key, in the data directory."""

    def __init__(self, path: Path, library: Library, root: Path | None = None) -> None:
        """Read the manifest at `path`; a missing or foreign one counts as empty.

        Before there is one, that which an older release left in the folder `root` is read.
        """
        self._path = path
        self._library = library
        known = path if root is None or path.exists() else root / OLD_MANIFEST_FILE
        self._libraries, self._versions = _read_manifest(known)

    @property
    def entries(self) -> Mapping[str, ManifestEntry]:
        return self._libraries.get(self._library.value, {})

    @property
    def version(self) -> str:
        """What the source calls the state that the entries are of; empty: it says nothing."""
        return self._versions.get(self._library.value, "")

    def record(
        self, indexed: Iterable[FolderFile], removed: Iterable[str], version: str = ""
    ) -> None:
        """Remember what was indexed and forget what was removed; call `save` afterwards."""
        self._versions[self._library.value] = version
        entries = dict(self.entries)
        entries.update({file.source_key: file.entry for file in indexed})
        for key in removed:
            entries.pop(key, None)
        self._libraries[self._library.value] = entries

    def save(self) -> None:
        """Write the manifest, whole or not at all.

        Raises:
            InvalidInput: The data directory cannot be written: documents are indexed, but the next
                sync reads every file again.
        """
        values = {
            name: {key: asdict(entry) for key, entry in sorted(entries.items())}
            for name, entries in self._libraries.items()
        }
        written = {"version": _VERSION, "libraries": values, "versions": self._versions}
        fresh = self._path.with_suffix(".new")
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            fresh.write_text(json.dumps(written, indent=1, ensure_ascii=False), "utf-8")
            fresh.replace(self._path)
        except OSError as exc:
            with suppress(OSError):
                fresh.unlink(missing_ok=True)
            raise InvalidInput(
                f"{str(self._path)!r} cannot be written ({exc.strerror}); files were indexed, but"
                " the next sync reads all of them again: make the data directory (DATA_DIR)"
                " writable"
            ) from exc


def manifest_path(data_dir: Path, name: str) -> Path:
    """Return where the manifest of a folder of this name is."""
    return data_dir / "synced" / f"{hashlib.sha256(name.encode()).hexdigest()[:32]}.json"


def _read_manifest(path: Path) -> tuple[dict[str, dict[str, ManifestEntry]], dict[str, str]]:
    """Return entries, and versions of sources, by library."""
    try:
        value = json.loads(_own_text(path))
        if value["version"] != _VERSION:
            return {}, {}
        libraries = {
            str(name): {
                str(key): ManifestEntry(
                    str(e["sha256"]),
                    int(e["size"]),
                    int(e["mtime_ns"]),
                    str(e.get("labels", "")),
                    str(e.get("md5", "")),
                )
                for key, e in entries.items()
            }
            for name, entries in value["libraries"].items()
        }
        versions = value.get("versions", {})
        return libraries, {str(name): str(version) for name, version in versions.items()}
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return {}, {}


@dataclass(frozen=True, slots=True)
class Holdings:
    """What a folder, or something else that holds documents, holds now."""

    found: Mapping[str, FolderFile]
    """By source key."""
    failed: tuple[tuple[str, str], ...] = ()
    """Source keys or paths that cannot be read, and the reason: what is there may still exist."""
    skipped: tuple[tuple[str, str], ...] = ()
    waiting: frozenset[str] = frozenset()
    """Source keys of documents whose files are on their way."""
    version: str = ""
    """What the source calls this state; empty: it says nothing."""


def held_by_folder(root: Path, known: Mapping[str, ManifestEntry]) -> Holdings:
    """Return what a folder holds; a file of the size and time that is known is not read again.

    Raises:
        InvalidInput: `root` is no folder, or its ignore file cannot be read.
    """
    if not root.is_dir():
        raise InvalidInput(f"{str(root)!r} is no folder; give the folder to sync")
    failed: list[tuple[str, str]] = []
    skipped: list[tuple[str, str]] = []
    waiting: set[str] = set()
    found: dict[str, FolderFile] = {}

    def fail(path: Path | str, exc: OSError | InvalidInput) -> None:
        said = exc.message if isinstance(exc, InvalidInput) else exc.strerror or "unreadable"
        failed.append((_relative(root, path), said))

    def skip(path: Path, why: str) -> None:
        skipped.append((_relative(root, path), why))
        if why is WAITS:
            final = path.with_name(_downloaded_as(path.name) or path.name)
            waiting.add(source_key(_relative(root, final)))

    paths = list(visible_files(root, lambda error: fail(error.filename, error), skip))
    told = _labels_in_exports(paths, fail)
    if (vault := vault_at(root)) is not None:
        left_out = {path: why for path in paths if (why := vault.leaves_out(_relative(root, path)))}
        for path, why in left_out.items():
            skip(path, why)
        paths = [path for path in paths if path not in left_out]
        told |= dict(_labels_in_vault(vault, paths))
    for path in paths:
        try:
            key = source_key(_relative(root, path))
            labels = labels_beside(path)
            if path in told:
                labels = told[path].under(labels_from(labels)).as_json()
            found[key] = replace(_file(key, path, labels, known), is_original=True)
        except (OSError, InvalidInput) as exc:
            fail(path, exc)
    return Holdings(found, tuple(failed), tuple(skipped), frozenset(waiting))


def _labels_in_exports(
    paths: Iterable[Path], fail: Callable[[Path, InvalidInput | OSError], None]
) -> dict[Path, Labels]:
    """Return what BibTeX and RDF files say, by the files that they name; RDF has to be some."""
    told: dict[Path, Labels] = {}
    for path in paths:
        named: Mapping[str, Labels] = {}
        if path.suffix.lower() == ".bib":
            with suppress(OSError, ValueError):
                named = labels_of_files(_own_text(path))
        elif path.suffix.lower() == ".rdf":
            try:
                named = labels_in_rdf(_own_text(path))
            except (InvalidInput, OSError) as exc:
                fail(path, exc)
            except UnicodeDecodeError:
                fail(path, InvalidInput("it is no UTF-8; in Zotero export again, in that"))
        for one, labels in named.items():
            told[Path(os.path.normpath(path.parent / one))] = labels
    return told


def _labels_in_vault(vault: Vault, paths: Iterable[Path]) -> Iterator[tuple[Path, Labels]]:
    """Yield the notes of a vault that can be read, and what they say of themselves."""
    for path in paths:
        if path.suffix.lower() == NOTE:
            with suppress(OSError, ValueError):
                yield path, vault.labels(_relative(vault.root, path), _own_text(path))


def held_in(
    documents: Iterable[RawDocument],
    failed: Iterable[tuple[str, str]],
    waiting: Iterable[tuple[str, str]],
    known: Mapping[str, ManifestEntry],
    into: Path,
) -> Holdings:
    """Return what a source other than a folder holds.

    Args:
        documents: A content that is in memory is written to a file below `into`; one that was
            fetched into it gets its name.
        failed: Source keys and reasons.
        waiting: The same of documents whose files are on their way.
        known: As for `held_by_folder`.
        into: A folder that has to outlast the sync.
    """
    found: dict[str, FolderFile] = {}
    failures = list(failed)
    for at, document in enumerate(documents):
        key, path = document.source_key, document.content
        try:
            if isinstance(path, bytes) or path.parent == into:
                written = into / str(at) / display_name(document.filename)
                written.parent.mkdir()
                path = _written(path, written)
            found[key] = _file(key, path, document.labels.as_json(), known)
        except OSError as exc:
            failures.append((key, exc.strerror or "unreadable"))
    waits = tuple(waiting)
    return Holdings(found, tuple(failures), waits, frozenset(key for key, _ in waits))


def _written(content: bytes | Path, to: Path) -> Path:
    if isinstance(content, Path):
        return content.rename(to)
    to.write_bytes(content)
    return to


def plan_sync(
    held: Holdings,
    library: Library,
    manifest: Manifest,
    live: Mapping[str, str],
    claimed: Collection[str],
    *,
    allow_empty: bool = False,
) -> SyncPlan:
    """Compare what is held with what is indexed; files are compared by their bytes.

    Args:
        held: What the library is to mirror.
        library: The library to mirror it into.
        manifest: What was said of the files before.
        live: SHA-256 of the original bytes by doc_id, for every live document of the library.
        claimed: Source keys of the documents that the server knows to come from there.
        allow_empty: Remove documents also where more than half of them are gone at once. Those
            whose bytes are there under another name are not gone.
    """
    skipped = list(held.skipped)
    groups: dict[str, list[FolderFile]] = {"add": [], "replace": [], "unchanged": []}
    for key, file in held.found.items():
        if file.entry.size == 0:
            skipped.append((key, "empty"))
            continue
        sha256 = live.get(document_id(library, key))
        before = manifest.entries.get(key)
        told = file.entry.labels in ("", before.labels if before else None)
        same = sha256 == file.entry.sha256 and told
        groups["add" if sha256 is None else "unchanged" if same else "replace"].append(file)
    there = {*held.found, *held.waiting}
    gone = sorted(key for key in claimed if key not in there and not _within(key, held.failed))
    here = {file.entry.sha256 for file in held.found.values()}
    lost = [key for key in gone if live.get(document_id(library, key)) not in here]
    too_many = 2 * len(lost) > len(claimed) and not allow_empty
    return SyncPlan(
        library,
        tuple(groups["add"]),
        tuple(groups["replace"]),
        () if too_many else tuple(gone),
        tuple(gone) if too_many else (),
        tuple(groups["unchanged"]),
        held.failed,
        tuple(skipped),
    )


def _file(key: str, path: Path, labels: str, known: Mapping[str, ManifestEntry]) -> FolderFile:
    status = path.stat()
    entry = known.get(key)
    if entry is not None and (entry.size, entry.mtime_ns) == (status.st_size, status.st_mtime_ns):
        return FolderFile(key, path, replace(entry, labels=labels))
    entry = ManifestEntry(content_sha256(path), status.st_size, status.st_mtime_ns, labels)
    return FolderFile(key, path, entry)


def _relative(root: Path, path: Path | str) -> str:
    return Path(path).relative_to(root).as_posix()


def _within(key: str, failed: Iterable[tuple[str, str]]) -> bool:
    """Return whether a key lies at or under an unreadable path, and may still exist."""
    return any(path in (".", key) or key.startswith(f"{path}/") for path, _ in failed)


# Carry a plan out, over HTTP or in the server.


@dataclass(frozen=True, slots=True)
class SyncOutcome:
    """The outcome of one sync, by source key."""

    library: str
    added: tuple[str, ...]
    replaced: tuple[str, ...]
    removed: tuple[str, ...]
    unchanged: int
    failed: tuple[tuple[str, str], ...]
    """Source key or path, and the reason."""
    skipped: tuple[tuple[str, str], ...] = ()
    """The same of files that hold no document: empty, of a program, unfinished, of no known
    format."""
    kept: tuple[str, ...] = ()
    """Gone from there, and kept: so many at once are removed with `allow_empty` alone."""
    names: Mapping[str, str] = field(default_factory=dict)
    """File names by source key, of what was sent and whose key does not tell it."""


Look = Callable[[Mapping[str, ManifestEntry], str], Holdings]
"""Says what is held now.

Files of the size and time that an entry knows are not read again, nor is what a source keeps
elsewhere fetched again. The text is the version that the entries are of, all of which are as they
were, or empty.
"""


class Mirrored(Protocol):
    """A library that is to equal what a folder holds, and what came from that folder."""

    def live(self) -> Mapping[str, str]:
        """Return the SHA-256 of every live document's bytes by doc_id."""

    def claimed(self) -> Collection[str]:
        """Return the source keys of documents that came from the folder."""

    def send(self, files: Sequence[FolderFile]) -> Sequence[IngestOutcome]:
        """Add or replace documents; return outcomes in order, one that is refused among them."""

    def remove(self, source_keys: Sequence[str]) -> Sequence[str]:
        """Remove documents that came from the folder; return the keys of those removed."""

    def report(self, failed: Sequence[tuple[str, str]]) -> None:
        """Remember that the folder was looked at now, and what of it failed."""


def mirror(
    there: Mirrored,
    look: Look,
    library: Library,
    manifest: Manifest,
    *,
    again: bool = False,
    allow_empty: bool = False,
) -> SyncOutcome:
    """Make a library equal what is held.

    `again` sends unchanged files too: the server parses again what an older release has parsed.
    `allow_empty` is as in `plan_sync`.

    Raises:
        InvalidInput: The folder is none, or the manifest cannot be written.
        ProviderError: What is looked at, or the server, went away; the next sync goes on from
            there.
    """
    live, claimed = there.live(), there.claimed()
    known = {
        key: entry
        for key, entry in manifest.entries.items()
        if live.get(document_id(library, key)) == entry.sha256 and not again
    }
    as_before = len(known) == len(manifest.entries) and known.keys() >= set(claimed)
    held = look(known, manifest.version if as_before else "")
    plan = plan_sync(held, library, manifest, live, claimed, allow_empty=allow_empty)
    repeated = plan.unchanged if again else ()
    files = (*plan.add, *plan.replace, *repeated)
    outcomes = dict(zip((file.source_key for file in files), there.send(files), strict=True))
    refused = {
        key: one.reason or "refused" for key, one in outcomes.items() if one.status == "failed"
    }
    foreign = {key for key in refused if outcomes[key].code == UnsupportedType.code}
    reread = tuple(file for file in repeated if outcomes[file.source_key].status != "unchanged")
    removed = there.remove(plan.remove)
    manifest.record(
        (
            file
            for file in (*plan.add, *plan.replace, *plan.unchanged)
            if file.source_key not in refused
        ),
        (*plan.remove, *refused),
        "" if refused or held.failed or held.waiting or plan.kept else held.version,
    )
    manifest.save()

    def sent(files: tuple[FolderFile, ...]) -> tuple[str, ...]:
        return tuple(file.source_key for file in files if file.source_key not in refused)

    outcome = SyncOutcome(
        library.value,
        sent(plan.add),
        sent((*plan.replace, *reread)),
        tuple(removed),
        len(plan.unchanged) - len(reread),
        (*plan.failed, *((key, why) for key, why in refused.items() if key not in foreign)),
        (*plan.skipped, *((key, refused[key]) for key in refused if key in foreign)),
        plan.kept,
        {
            file.source_key: file.path.name
            for file in files
            if not file.source_key.endswith(file.path.name)
        },
    )
    there.report(outcome.failed)
    return outcome


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
