"""Commands that fill and empty the libraries: files, samples, folders, bundles."""

from __future__ import annotations

import socket
import sys
import threading
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, get_args

import typer
from watchfiles import Change, watch

from app.cli.connection import connect, document_names, run
from app.cli.output import (
    LIBRARIES,
    SOME_FAILED,
    AnyLibraryOption,
    JsonOption,
    LibraryOption,
    check_library,
    complain,
    emit,
    emit_line,
    err,
    group,
    job_progress,
    one_of,
    out,
    say,
    table,
    tell,
)
from app.client import DocuMindClient, FileToSend, Json, Wait
from app.core.errors import DocuMindError, InputError, InvalidInput
from app.core.labels import fold, with_file_date
from app.core.types import IngestOutcome, Library, LibraryName
from app.ingest.parsers.formats import accepted
from app.ingest.sources.folders import (
    FolderFile,
    Holdings,
    Manifest,
    ManifestEntry,
    SyncOutcome,
    held_by_folder,
    labels_beside,
    manifest_path,
    mirror,
    visible_files,
)
from app.ingest.sources.obsidian import CONFIGURATION, vault_at
from app.models.zotero import open_zotero
from app.settings import Settings

NamesArgument = Annotated[
    list[str], typer.Argument(help="ids, source keys or file names", autocompletion=document_names)
]
_WIDE = 120
"""Columns of a terminal that shows all of a document's row."""
BATCH_FILES = 16
_WEB = ("http://", "https://")


def ingest(
    paths: Annotated[list[Path], typer.Argument(help=f"files or folders: {accepted()}")],
    library: LibraryOption = "papers",
    no_wait: Annotated[
        bool,
        typer.Option(
            "--no-wait",
            help="return when words find the files; search by meaning follows in the server",
        ),
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Index files.

    Folders are indexed whole, without hidden files.

    Example: documind ingest paper.pdf notes/ --library papers
    """
    files = list(_files(paths))
    if not files:
        raise InvalidInput(f"there are no files in {', '.join(map(str, paths))!r}")
    with connect(Settings()) as client:
        rows = send_files(client, files, library, wait="text" if no_wait else "true")
    _report(rows, as_json=as_json)


def _files(paths: Iterable[Path]) -> Iterable[FileToSend]:
    for path in paths:
        if path.is_dir():
            for file in visible_files(path):
                key = file.relative_to(path).as_posix()
                yield FileToSend(file, key, _labels_of(file))
        elif path.is_file():
            yield FileToSend(path, labels=_labels_of(path))
        else:
            raise InvalidInput(f"there is no file or folder {str(path)!r}; check the path")


def _labels_of(path: Path) -> str:
    return with_file_date(labels_beside(path), path.stat().st_mtime)


def send_files(
    client: DocuMindClient,
    files: Sequence[FileToSend],
    library: str,
    *,
    sync_folder: str = "",
    wait: Wait = "true",
) -> list[Json]:
    """Send files in batches, return outcomes in order; one that is refused stops no other."""

    def sent(batch: Sequence[FileToSend]) -> list[Json]:
        try:
            reply = client.ingest(batch, library, wait, sync_folder=sync_folder)
        except InputError as error:
            if len(batch) > 1:
                return [row for file in batch for row in sent([file])]
            failure = {"status": "failed", "reason": error.message, "code": error.code}
            return [{"filename": batch[0].path.name, "doc_id": None, "receipt": None, **failure}]
        return list(reply["documents"])

    rows: list[Json] = []
    with job_progress(f"indexing into {library}") as changed:
        for start in range(0, len(files), BATCH_FILES):
            rows += sent(files[start : start + BATCH_FILES])
            changed({"done": len(rows), "total": len(files), "unit": "files"})
    return rows


def _report(rows: Sequence[Json], *, as_json: bool) -> None:
    """Print outcomes; exit 1 when all failed, 3 when some did."""
    if as_json:
        emit(rows)
    else:
        lines = []
        for row in rows:
            receipt, same = row.get("receipt") or {}, row.get("duplicate_of")
            counts = receipt.get("pages"), receipt.get("chunks")
            remark = row.get("reason") or (f"same as {same}" if same else "")
            lines.append((row["filename"], row["status"], row["doc_id"], *counts, remark))
        table(("file", "status", "id", "pages", "chunks", "remark"), lines, right=(3, 4))
    failed = sum(row["status"] == "failed" for row in rows)
    if failed:
        err.print(f"{failed} of {len(rows)} files failed; the others are indexed")
        sys.exit(1 if failed == len(rows) else SOME_FAILED)


def arxiv(
    arxiv_id: Annotated[str, typer.Argument(help="id such as 2210.03629 or hep-th/9901001")],
    as_json: JsonOption = False,
) -> None:
    """Fetch a paper from arXiv into papers.

    Example: documind arxiv 2210.03629
    """
    with connect(Settings()) as client, err.status(f"fetching {arxiv_id}"):
        rows = client.fetch_arxiv(arxiv_id)["documents"]
    _report(rows, as_json=as_json)


def fetch(
    url: Annotated[str, typer.Argument(help="address of a page or file  [default: none]")] = "",
    library: LibraryOption = "papers",
    again: Annotated[
        bool, typer.Option("--again", help="fetch all addresses of the library again")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Fetch a page or file from the web, or the pages of a feed; --again says what changed.

    Example: documind fetch https://example.org/tides.html
    """
    if bool(url) == again:
        raise InvalidInput("give an address, or --again for all that were fetched before")
    rows: list[Json] = []
    with connect(Settings()) as client:
        known = (str(one["source_key"]) for one in client.documents(library)) if again else ()
        for address in [url] if url else [key for key in known if key.startswith(_WEB)]:
            with err.status(f"fetching {address}"):
                try:
                    rows += client.fetch_url(address, library)["documents"]
                except DocuMindError as error:
                    if not again:
                        raise
                    reason = {"filename": address, "status": "failed", "doc_id": None}
                    rows.append({**reason, "reason": error.message})
    _report(rows, as_json=as_json)


def samples(
    remove: Annotated[
        bool, typer.Option("--remove", help="remove only the samples, from both libraries")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Index the bundled sample documents into both libraries, or remove them.

    Repeating it changes nothing.

    Example: documind samples --remove
    """
    if remove:
        with connect(Settings()) as client, err.status("removing the samples"):
            removed = client.remove_samples()
        text = f"{removed['public']} samples removed from public, {removed['papers']} from papers"
        tell(removed, text, as_json=as_json)
        return
    with connect(Settings()) as client, err.status("indexing the samples"):
        rows = client.samples()["documents"]
    _report(rows, as_json=as_json)


def list_documents(
    library: AnyLibraryOption = None,
    query: Annotated[
        str, typer.Option("--query", "-q", help="part of a title or file name [default: any]")
    ] = "",
    tag: Annotated[str, typer.Option("--tag", "-t", help="with this tag [default: any]")] = "",
    as_json: JsonOption = False,
) -> None:
    """List what is indexed.

    Example: documind list --library papers
    """
    with connect(Settings()) as client:
        rows = [
            row
            for name in ([library] if library else get_args(LibraryName))
            for row in client.documents(name, query, tag=tag)
        ]
    if as_json:
        emit(rows)
        return
    shown = [
        (
            row["doc_id"],
            row["filename"] or row["source_key"],
            row["title"],
            row["library"],
            row["year"],
            row["type"],
            row["pages"] or None,
            row["chunks"],
            "sample" if row["sample"] else "",
        )
        for row in rows
    ]
    headers = ("id", "file", "title", "library", "year", "type", "pages", "chunks", "")
    first = 3 if out.is_terminal and out.width < _WIDE else len(headers)
    table(headers[:first], [row[:first] for row in shown], right=(4, 6, 7), whole=(0, 1))


_ALIKE = {"same_bytes": "same bytes", "same_text": "same text", "versions": "one work"}


def list_duplicates(library: AnyLibraryOption = None, as_json: JsonOption = False) -> None:
    """List documents that are alike: same bytes, same text, or versions of one work.

    Example: documind duplicates --library papers
    """
    with connect(Settings()) as client:
        names = [library] if library else get_args(LibraryName)
        groups = {name: client.duplicates(name)["groups"] for name in names}
    if as_json:
        emit(groups)
        return
    rows = [
        (_ALIKE[group["likeness"]], row["doc_id"], row["filename"], row["title"], name)
        for name, found in groups.items()
        for group in found
        for row in group["documents"]
    ]
    if not rows:
        say("No documents are alike.")
        return
    table(("alike", "id", "file", "title", "library"), rows, whole=(0, 1))


def delete(
    names: NamesArgument, library: LibraryOption = "papers", as_json: JsonOption = False
) -> None:
    """Remove documents with everything made of them.

    Example: documind delete paper.pdf --library papers
    """
    with connect(Settings()) as client:
        gone = [client.delete(library, name) for name in names]
    if as_json:
        emit(gone)
        return
    for row in gone:
        say(
            f"deleted {row['doc_id']}: {row['chunks']} chunks, {row['vectors']} vectors,"
            f" {row['originals']} originals"
        )
    _say_out_of_reach(gone[-1])


def clear(
    library: LibraryOption,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="do not ask")] = False,
    as_json: JsonOption = False,
) -> None:
    """Remove every document of a library.

    Example: documind clear --library papers --yes
    """
    if not yes:
        typer.confirm(f"Remove every document of {library!r}?", abort=True, err=True)
    with connect(Settings()) as client:
        gone = client.clear(library)
    if as_json:
        emit(gone)
        return
    say(f"removed {gone['documents']} documents and {gone['chunks']} chunks from {library}")
    _say_out_of_reach(gone)


def _say_out_of_reach(reply: Json) -> None:
    say("the last bytes in index files go a while later, or now with: documind purge")
    say("out of reach: " + "; ".join(reply["out_of_reach"]))


tag_app = group("tag", "Tags: give documents one, take it away, rename it, list all.")
TagArgument = Annotated[str, typer.Argument(help="the tag")]


@tag_app.command("add")
def add_tag(
    tag: TagArgument,
    names: NamesArgument,
    library: LibraryOption = "papers",
    as_json: JsonOption = False,
) -> None:
    """Give documents a tag.

    Example: documind tag add draft paper.pdf --library papers
    """
    _retag(names, library, lambda tags: [*tags, tag], as_json=as_json)


@tag_app.command("remove")
def remove_tag(
    tag: TagArgument,
    names: NamesArgument,
    library: LibraryOption = "papers",
    as_json: JsonOption = False,
) -> None:
    """Take a tag from documents.

    Example: documind tag remove draft paper.pdf
    """
    gone = fold(tag)
    _retag(names, library, lambda tags: [one for one in tags if fold(one) != gone], as_json=as_json)


def _retag(
    names: Sequence[str], library: str, change: Callable[[list[str]], list[str]], *, as_json: bool
) -> None:
    with connect(Settings()) as client:
        found = [client.document(library, name) for name in names]  # all are there, or none changes
        rows = [client.correct(library, one["doc_id"], tags=change(one["tags"])) for one in found]
    if as_json:
        emit(rows)
        return
    table(
        ("id", "title", "tags"),
        [(row["doc_id"], row["title"], ", ".join(row["tags"])) for row in rows],
    )


@tag_app.command("rename")
def rename_tag(
    tag: TagArgument,
    name: Annotated[str, typer.Argument(help="its new name")],
    library: AnyLibraryOption = None,
    as_json: JsonOption = False,
) -> None:
    """Rename a tag in every document that has it.

    Example: documind tag rename draft final
    """
    with connect(Settings()) as client:
        done = client.replace_tag(tag, name, library)
    tell(done, f"{done['documents']} documents have the tag {done['tag']}", as_json=as_json)


@tag_app.command("delete")
def delete_tag(
    tag: TagArgument, library: AnyLibraryOption = None, as_json: JsonOption = False
) -> None:
    """Take a tag from every document; the documents stay.

    Example: documind tag delete draft
    """
    with connect(Settings()) as client:
        done = client.replace_tag(tag, None, library)
    tell(done, f"{done['documents']} documents had the tag {done['tag']}", as_json=as_json)


@tag_app.command("list")
def list_tags(library: AnyLibraryOption = None, as_json: JsonOption = False) -> None:
    """List tags, and how many documents have each.

    Example: documind tag list
    """
    with connect(Settings()) as client:
        found = client.tags(library)
    if as_json:
        emit(found)
        return
    table(
        ("tag", "documents"), [(one["tag"], one["documents"]) for one in found["tags"]], right=(1,)
    )


REMOVED_AT_ONCE = 500
"""Documents per request that removes some."""
DEBOUNCE_MS = 2000
"""Changes that follow each other within this many milliseconds are one: editors save in several
steps, copies come in rows."""
STILL_MS = 300_000
"""A watch says this often that it goes on; the server takes it for ended after eleven minutes."""


ZOTERO = Path("zotero")
"""Names the program to `sync`; a folder of this name is given by its whole path."""


def sync(
    folder: Annotated[
        Path,
        typer.Argument(
            help="the folder, whose .documindignore lists files to ignore; or `zotero`, the"
            " libraries of Zotero on this machine"
        ),
    ],
    library: LibraryOption = "papers",
    watching: Annotated[
        bool, typer.Option("--watch", help="follow every change until Ctrl-C")
    ] = False,
    again: Annotated[
        bool,
        typer.Option(
            "--again",
            help="send unchanged files too: the server parses again what an older release has"
            " parsed",
        ),
    ] = False,
    obsidian: Annotated[
        bool,
        typer.Option(
            "--obsidian", help="the folder is a vault of Obsidian; refuse one that is not"
        ),
    ] = False,
    allow_empty: Annotated[
        bool,
        typer.Option(
            "--allow-empty",
            help="remove documents also where more than half of the folder's are gone at once",
        ),
    ] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="print changes as JSON, one object a line with --watch")
    ] = False,
) -> None:
    """Add, replace and remove documents until a library equals a folder, or Zotero.

    Only documents that came from there are removed, and none when most of them are gone at once:
    the folder's disk may not be mounted.

    Example: documind sync ~/papers --library papers --watch
    """
    settings, target, is_program = Settings(), Library(library), folder == ZOTERO
    if is_program and folder.is_dir():
        raise InvalidInput(
            f"there is a folder {str(folder)!r} here, and a program of that name: give the whole"
            " path of the folder, or run this elsewhere for the program"
        )
    if is_program and watching:
        raise InvalidInput(
            "--watch follows folders; run documind sync zotero again after changes, or by a timer"
        )
    if obsidian and vault_at(folder) is None:
        raise InvalidInput(
            f"{str(folder)!r} has no folder {CONFIGURATION!r}, so it is no vault; give the folder"
            " that Obsidian opens as one, or leave --obsidian out"
        )
    if is_program:
        outcome = _sync_zotero(settings, target, again=again, allow_empty=allow_empty)
        emit(asdict(outcome)) if as_json else show(outcome)
        sys.exit(exit_code(outcome))
    name = folder_name(folder)

    def once(again: bool = False) -> SyncOutcome:
        with connect(settings) as client:
            manifest = Manifest(manifest_path(settings.data_dir, name), target, folder)
            there = _OverHttp(client, target.value, name, watching)

            def look(known: Mapping[str, ManifestEntry], _: str) -> Holdings:
                return held_by_folder(folder, known)

            return mirror(there, look, target, manifest, again=again, allow_empty=allow_empty)

    def still(watching: bool = True) -> None:
        with connect(settings) as client:
            client.report_folder(target.value, name, watching=watching)

    outcome = once(again)
    if not watching:
        emit(asdict(outcome)) if as_json else show(outcome)
        sys.exit(exit_code(outcome))
    told = (lambda done: emit_line(asdict(done))) if as_json else show
    told(outcome)
    err.print(f"watching {folder}; Ctrl-C ends it", markup=False)
    try:
        follow(folder, once, told, still, threading.Event())
    finally:
        still(watching=False)


def _sync_zotero(
    settings: Settings, library: Library, *, again: bool, allow_empty: bool
) -> SyncOutcome:
    from app.jobs.zotero import held_by_zotero  # noqa: PLC0415  # storage comes with it

    with (
        TemporaryDirectory(prefix="documind-") as into,
        closing(open_zotero(settings.zotero(), Path(into))) as zotero,
        connect(settings) as client,
    ):

        def look(known: Mapping[str, ManifestEntry], version: str) -> Holdings:
            with job_progress("reading Zotero") as changed:

                def told(done: int, total: int, what: str) -> None:
                    changed({"done": done, "total": total, "unit": what})

                return held_by_zotero(zotero, Path(into), known, version, told)

        manifest = Manifest(manifest_path(settings.data_dir, zotero.folder), library)
        there = _OverHttp(client, library.value, zotero.folder, watching=False)
        return mirror(there, look, library, manifest, again=again, allow_empty=allow_empty)


@dataclass(frozen=True, slots=True)
class _OverHttp:
    """A library of a server that is to equal a folder of this machine."""

    client: DocuMindClient
    library: str
    folder: str
    watching: bool

    def live(self) -> Mapping[str, str]:
        rows = self.client.documents(self.library)
        return {str(row["doc_id"]): str(row["sha256"]) for row in rows}

    def claimed(self) -> Collection[str]:
        return self.client.synced(self.library, self.folder)

    def send(self, files: Sequence[FolderFile]) -> Sequence[IngestOutcome]:
        sent = [FileToSend(file.path, file.source_key, file.labels) for file in files]
        rows = send_files(self.client, sent, self.library, sync_folder=self.folder)
        return [
            IngestOutcome(
                row["filename"], row["doc_id"], row["status"], row["reason"], row.get("code")
            )
            for row in rows
        ]

    def remove(self, source_keys: Sequence[str]) -> Sequence[str]:
        return [
            key
            for at in range(0, len(source_keys), REMOVED_AT_ONCE)
            for key in self.client.remove_synced(
                self.library, self.folder, source_keys[at : at + REMOVED_AT_ONCE]
            )
        ]

    def report(self, failed: Sequence[tuple[str, str]]) -> None:
        self.client.report_folder(self.library, self.folder, watching=self.watching, failed=failed)


def folder_name(folder: Path) -> str:
    """Return the folder's name on the server, by machine and path; never a name stored in it."""
    return f"{socket.gethostname()}:{folder.resolve()}"


def exit_code(outcome: SyncOutcome) -> int:
    """Return 0 when nothing failed or was kept, 3 when some did, 1 when nothing else happened."""
    if outcome.kept:
        return SOME_FAILED
    if not outcome.failed:
        return 0
    done = outcome.added or outcome.replaced or outcome.removed or outcome.unchanged
    return SOME_FAILED if done else 1


def show(outcome: SyncOutcome) -> None:
    done = (("added", outcome.added), ("replaced", outcome.replaced), ("removed", outcome.removed))
    left = (("failed", outcome.failed), ("skipped", outcome.skipped))
    rows = [(key, what, outcome.names.get(key, "")) for what, keys in done for key in keys]
    rows += [(key, what, reason) for what, pairs in left for key, reason in pairs]
    if rows:
        table(("file", "what", "remark"), rows)
    say(
        f"{outcome.library}: {len(outcome.added)} added, {len(outcome.replaced)} replaced,"
        f" {len(outcome.removed)} removed, "
        f"{outcome.unchanged} unchanged, {len(outcome.failed)} failed"
        + (f", {len(outcome.skipped)} skipped" if outcome.skipped else "")
    )
    if outcome.kept:
        err.print(
            f"{len(outcome.kept)} documents are kept though they are gone there: that is more than"
            " half of what came from there. Is the disk mounted? If they are to go: documind sync"
            " --allow-empty",
            markup=False,
        )
    if outcome.failed:
        err.print(
            "what failed is tried again next time; a folder's .documindignore names files to leave"
            " out",
            markup=False,
        )


def follow(
    folder: Path,
    once: Callable[[], SyncOutcome],
    tell: Callable[[SyncOutcome], None],
    still: Callable[[], None],
    stop: threading.Event,
) -> None:
    """Sync after changes of visible files until `stop`; what failed is repeated at the next.

    While nothing changes, `still` is called every STILL_MS.
    """
    for changed in changes(folder, stop):
        try:
            if not changed:
                still()
                continue
            outcome = once()
        except DocuMindError as error:
            complain(error.message)
            continue
        if outcome.added or outcome.replaced or outcome.removed or outcome.failed or outcome.kept:
            tell(outcome)


def changes(folder: Path, stop: threading.Event) -> Iterator[set[tuple[Change, str]]]:
    """Yield changes below a folder in groups, without hidden files.

    Without any for STILL_MS, yield none.
    """
    root = folder.resolve()

    def visible(_: Change, path: str) -> bool:
        return not any(part.startswith(".") for part in Path(path).relative_to(root).parts)

    yield from watch(
        root,
        watch_filter=visible,
        debounce=DEBOUNCE_MS,
        stop_event=stop,
        rust_timeout=STILL_MS,
        yield_on_timeout=True,
        raise_interrupt=True,
    )


def export_library(
    library: Annotated[str, typer.Argument(help="public or papers")],
    file: Annotated[Path, typer.Argument(help="the file to write; it must not exist")],
    as_json: JsonOption = False,
) -> None:
    """Write a library with texts, vectors and originals into one checksummed file.

    Example: documind export papers papers.documind
    """
    check_library(library)
    body = {"library": library, "path": str(file.absolute())}
    _show_bundle(run("/api/v1/export", body, f"exporting {library}"), "written", as_json=as_json)


def import_library(
    file: Annotated[Path, typer.Argument(help="a file that `documind export` wrote")],
    library: Annotated[
        str | None,
        one_of(LIBRARIES, "--library", "-l", text="target: {} [default: the one it came from]"),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Import an exported file into a library; embed nothing again.

    After an interruption, the same command continues.

    Example: documind import papers.documind --library papers
    """
    body = {"path": str(file.absolute()), "library": library}
    found = run("/api/v1/import", body, f"importing {file.name}")
    _show_bundle(found, "imported", as_json=as_json)


def _show_bundle(found: Json, done: str, *, as_json: bool) -> None:
    text = (
        f"{done}: {found['documents']} documents, {found['chunks']} chunks, {found['vectors']}"
        " vectors"
    )
    tell(found, text, as_json=as_json)
