"""Commands that fill and empty the libraries."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Annotated, cast, get_args

import typer

from app.cli.connection import connect
from app.cli.options import JsonOption
from app.cli.output import emit, err, job_progress, say, table
from app.client import DocuMindClient, FileToSend, Json, Wait
from app.core.errors import InputError, InvalidInput
from app.core.types import LibraryName
from app.ingest.parsers.formats import accepted
from app.ingest.sources.files import visible_files
from app.settings import Settings

SOME_FAILED = 3
"""Exit code when some of several files failed."""
BATCH_FILES = 16

LibraryOption = Annotated[str, typer.Option("--library", "-l", help="public or papers")]


def register(app: typer.Typer) -> None:
    """Add the commands."""
    app.command()(ingest)
    app.command()(arxiv)
    app.command()(samples)
    app.command("list")(list_documents)
    app.command()(delete)
    app.command()(clear)


def ingest(
    paths: Annotated[list[Path], typer.Argument(help=f"files ({accepted()}) or folders")],
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
                yield FileToSend(file, file.relative_to(path).as_posix())
        elif path.is_file():
            yield FileToSend(path)
        else:
            raise InvalidInput(f"there is no file or folder {str(path)!r}; check the path")


def send_files(
    client: DocuMindClient,
    files: Sequence[FileToSend],
    library: str,
    *,
    sync_folder: str = "",
    wait: Wait = "true",
) -> list[Json]:
    """Send files in batches; return outcomes in order.

    A file refused alone does not stop the others.
    """
    rows: list[Json] = []
    with job_progress(f"indexing into {library}") as changed:
        for start in range(0, len(files), BATCH_FILES):
            batch = files[start : start + BATCH_FILES]
            try:
                rows += cast(
                    "list[Json]",
                    client.ingest(batch, library, wait, sync_folder=sync_folder)["documents"],
                )
            except InputError as error:
                if len(batch) == 1:
                    rows.append(_failure(batch[0], error))
                else:
                    rows += _one_by_one(client, batch, library, sync_folder, wait)
            changed({"done": len(rows), "total": len(files), "unit": "files"})
    return rows


def _one_by_one(
    client: DocuMindClient, batch: Sequence[FileToSend], library: str, sync_folder: str, wait: Wait
) -> list[Json]:
    rows: list[Json] = []
    for file in batch:
        try:
            rows += cast(
                "list[Json]",
                client.ingest([file], library, wait, sync_folder=sync_folder)["documents"],
            )
        except InputError as error:
            rows.append(_failure(file, error))
    return rows


def _failure(file: FileToSend, error: InputError) -> Json:
    return {
        "filename": file.path.name,
        "doc_id": None,
        "status": "failed",
        "reason": error.message,
        "code": error.code,
        "receipt": None,
    }


def _report(rows: Sequence[Json], *, as_json: bool) -> None:
    """Print outcomes; exit 1 when all failed, 3 when some did."""
    if as_json:
        emit(rows)
    else:
        table(
            ("file", "status", "id", "pages", "chunks", "remark"),
            [
                (
                    r["filename"],
                    r["status"],
                    r["doc_id"],
                    _of(r, "pages"),
                    _of(r, "chunks"),
                    _remark(r),
                )
                for r in rows
            ],
            right=(3, 4),
        )
    failed = sum(row["status"] == "failed" for row in rows)
    if failed:
        err.print(f"{failed} of {len(rows)} files failed; the others are indexed")
        sys.exit(1 if failed == len(rows) else SOME_FAILED)


def _of(row: Json, name: str) -> object:
    receipt = cast("Json | None", row.get("receipt"))
    return receipt[name] if receipt else None


def _remark(row: Json) -> object:
    return row.get("reason") or (
        f"same as {row['duplicate_of']}" if row.get("duplicate_of") else ""
    )


def arxiv(
    arxiv_id: Annotated[str, typer.Argument(help="id such as 2210.03629 or hep-th/9901001")],
    as_json: JsonOption = False,
) -> None:
    """Fetch a paper from arXiv into papers.

    Example: documind arxiv 2210.03629
    """
    with connect(Settings()) as client, err.status(f"fetching {arxiv_id}"):
        rows = cast("list[Json]", client.fetch_arxiv(arxiv_id)["documents"])
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
        if as_json:
            emit(removed)
        else:
            say(f"{removed['public']} samples removed from public, {removed['papers']} from papers")
        return
    with connect(Settings()) as client, err.status("indexing the samples"):
        rows = cast("list[Json]", client.samples()["documents"])
    _report(rows, as_json=as_json)


def list_documents(
    library: Annotated[
        str | None, typer.Option("--library", "-l", help="public or papers [default: both]")
    ] = None,
    query: Annotated[
        str, typer.Option("--query", "-q", help="part of a title or file name [default: any]")
    ] = "",
    as_json: JsonOption = False,
) -> None:
    """List what is indexed.

    Example: documind list --library papers
    """
    with connect(Settings()) as client:
        rows = [
            row
            for name in ([library] if library else get_args(LibraryName))
            for row in client.documents(name, query)
        ]
    if as_json:
        emit(rows)
        return
    table(
        ("id", "library", "title", "year", "type", "pages", "chunks", ""),
        [
            (
                r["doc_id"],
                r["library"],
                r["title"],
                r["year"],
                r["type"],
                r["pages"] or None,
                r["chunks"],
                "sample" if r["sample"] else "",
            )
            for r in rows
        ],
        right=(3, 5, 6),
    )


def delete(
    names: Annotated[list[str], typer.Argument(help="ids, source keys or file names")],
    library: LibraryOption = "papers",
    as_json: JsonOption = False,
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
    say("out of reach: " + "; ".join(cast("list[str]", reply["out_of_reach"])))
