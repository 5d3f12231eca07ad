"""`documind bulk`: an encyclopedia from a dump, planned, indexed, embedded."""

from __future__ import annotations

import os
import time
from typing import Annotated, get_args

import typer
from rich.markup import escape

from app.cli.connection import connect, run_job
from app.cli.output import LibraryOption, duration, emit, err, group, out, say, size, table
from app.client import FINISHED, DocuMindClient, Json
from app.core.errors import ProviderError
from app.core.types import LibraryName
from app.settings import Settings

SourceArgument = Annotated[
    str,
    typer.Argument(
        help="a MediaWiki dump, .zim, .parquet, .jsonl, a folder of them or of .txt, or"
        " hub:owner/name"
    ),
]
NameOption = Annotated[
    str | None,
    typer.Option(
        help="name of the source in the ledger [default: the dump's own name, or the file's]"
    ),
]
JsonOption = Annotated[
    bool, typer.Option("--json", help="print progress and result as JSON, one object a line")
]
KINDS = frozenset({"bulk", "bulk_plan", "backfill"})
_TRIAL = 512
"""Passages embedded first, to learn how fast this machine is."""
_QUICK_S = 600.0
"""What takes no longer is embedded without being asked for."""

app = group("bulk", "Encyclopedias from dumps: plan, index, embed.")


def absolute(source: str) -> str:
    """Return a source as the server needs it: it may run in another directory."""
    # resolve() would follow links
    return source if source.startswith("hub:") else os.path.abspath(source)  # noqa: PTH100


@app.command()
def plan(
    source: SourceArgument,
    library: LibraryOption = "public",
    name: NameOption = None,
    as_json: JsonOption = False,
) -> None:
    """Estimate a source's time, disk and memory from a timed sample; index nothing.

    Example: documind bulk plan enwiki-latest-pages-articles-multistream.xml.bz2
    """
    with connect(Settings()) as client:
        job = client.bulk("plan", library, source=absolute(source), name=name)
        found = run_job(client, job, "reading a sample", as_json=as_json)["result"]
    if not as_json:
        show_plan(found, library)


def show_plan(found: Json, library: str) -> None:
    share, vectors_s = found["sampled_share"], found["vectors_s"]
    say(
        f"{found['name']}: from {found['sampled_articles']} articles, "
        + (f"{share:.2%} of the source" if share else "share unknown")
    )
    rows = [
        ("articles", f"{found['articles']:,}"),
        ("documents", f"{found['documents']:,}"),
        ("chunks", f"{found['chunks']:,}"),
        (
            "text searchable after",
            f"{duration(found['text_s'])} with {found['workers']} parsing processes",
        ),
        (
            "all vectors after",
            duration(vectors_s) if vectors_s is not None else "no embedder is available",
        ),
        ("disk for text", size(found["text_disk_bytes"])),
        ("disk for vectors", size(found["vectors_disk_bytes"])),
        ("free disk", size(found["free_disk_bytes"])),
        ("memory for all vectors", size(found["memory_bytes"])),
        ("vectors in dense search", f"at most {found['dense_cap']:,} (MAX_DENSE_VECTORS)"),
        ("vector store", str(found["vector_store"])),
    ]
    table(("", ""), rows)
    if found["advised_vector_store"] != found["vector_store"] == "chroma":
        say(
            f"not every vector fits into memory: {library.upper()}_VECTOR_STORE=faiss searches"
            " all of them in a fifteenth of it (docs/operations.md)"
        )
    if not found["fits"]:
        err.print("[yellow]text and vectors do not fit on this disk with a tenth to spare[/]")


@app.command()
def index(
    source: SourceArgument,
    library: LibraryOption = "public",
    name: NameOption = None,
    workers: Annotated[
        int | None,
        typer.Option(
            min=0,
            max=64,
            help="parser processes; 0: the server itself [default: by source and cores]",
        ),
    ] = None,
    missing: Annotated[
        str | None,
        typer.Option(
            help="documents whose article is gone from the source: remove, keep or force [default:"
            " keep for a part, else remove]"
        ),
    ] = None,
    articles: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="at most this many articles, from the beginning, redirects not counted [default:"
            " all]",
        ),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Index a source; its text is searchable when this ends.

    It is embedded too where that takes less than ten minutes; --json leaves that out.
    Ctrl-C pauses; the same command continues.

    Example: documind bulk index enwiki-latest-pages-articles-multistream.xml.bz2 --library public
    """
    with connect(Settings()) as client:
        job = client.bulk(
            "index",
            library,
            source=absolute(source),
            name=name,
            workers=workers,
            missing=missing,
            articles=articles,
        )
        again = f"documind bulk index {source} --library {library}"
        again += f" --articles {articles}" if articles else ""
        done = run_job(client, job, f"indexing into {library}", again, as_json=as_json)
        if not as_json:
            show_ledger(done["result"]["ledger"])
            _embed_if_quick(client, library)


def _embed_if_quick(client: DocuMindClient, library: str) -> None:
    """Embed a trial of passages, then the rest if it takes less than ten minutes at that speed.

    What has no vector at the end is said, with the command.
    """
    if not (pending := _without_vector(client, library)):
        return
    again = f"documind bulk embed --library {library}"

    def embed(limit: int | None) -> None:
        job = client.bulk("embed", library, order="id", limit=limit, workers=1)
        run_job(client, job, f"embedding {library}", again)

    try:
        begun_s = time.monotonic()
        embed(_TRIAL)
        took_s, left = time.monotonic() - begun_s, _without_vector(client, library)
        if 0 < left * took_s < _QUICK_S * (pending - left):
            embed(None)
    except ProviderError as error:
        err.print(f"[yellow]not embedded:[/] {escape(error.message)}")
    if left := _without_vector(client, library):
        say(f"{left:,} passages have no vector and are found by their words alone; run: {again}")


def _without_vector(client: DocuMindClient, library: str) -> int:
    stats = client.stats(library)
    return int(stats["chunks"] - stats["embedded"])


def show_ledger(ledger: Json) -> None:
    skipped = ledger["skipped"]
    reasons = ", ".join(f"{count:,} {reason}" for reason, count in sorted(skipped.items()))
    say(
        f"{ledger['articles']:,} articles: {ledger['indexed']:,} indexed, {ledger['redirects']:,}"
        f" redirects, skipped: {reasons or 'none'}"
    )


@app.command()
def embed(
    library: LibraryOption = "public",
    order: Annotated[
        str,
        typer.Option(
            help="which documents first: id, longest, or linked (most other articles link to them)"
        ),
    ] = "id",
    workers: Annotated[
        int, typer.Option(min=1, max=64, help="batches of 128 passages to embed at once")
    ] = 1,
    limit: Annotated[
        int | None, typer.Option(min=1, help="at most this many chunks [default: all]")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Give chunks without a vector theirs. Ctrl-C pauses; the same command goes on.

    Example: documind bulk embed --library public --order linked
    """
    with connect(Settings()) as client:
        job = client.bulk("embed", library, order=order, limit=limit, workers=workers)
        again = f"documind bulk embed --library {library} --order {order} --workers {workers}"
        again += f" --limit {limit}" if limit else ""
        done = run_job(client, job, f"embedding {library}", again, as_json=as_json)
    if not as_json:
        result = done["result"]
        say(f"{result['embedded']} chunks embedded, {result['failed']} failed")


@app.command()
def status(
    as_json: Annotated[bool, typer.Option("--json", help="print the reply as JSON")] = False,
) -> None:
    """Show the ledger, how many chunks have vectors, and unfinished bulk jobs.

    Example: documind bulk status
    """
    with connect(Settings()) as client:
        ledgers = {name: client.bulk_ledger(name) for name in get_args(LibraryName)}
        libraries = client.libraries()["libraries"]
        jobs = [job for job in client.jobs(100)["jobs"] if job["kind"] in KINDS]
    if as_json:
        emit({"ledger": ledgers, "libraries": libraries, "jobs": jobs})
        return
    for row in libraries:
        say(
            f"{row['library']}: {row['documents']:,} documents, {row['embedded']:,} of"
            f" {row['chunks']:,} chunks with a vector"
        )
        show_ledger(ledgers[str(row["library"])])
    open_jobs = [job for job in jobs if job["state"] not in FINISHED]
    if open_jobs:
        out.print()
        columns = ("id", "kind", "state", "done", "total", "unit")
        table(
            columns, [tuple(job[column] for column in columns) for job in open_jobs], right=(3, 4)
        )


@app.command()
def cancel(library: LibraryOption = "public") -> None:
    """End bulk jobs for good; their results stay.

    Indexing the same source later continues from there.

    Example: documind bulk cancel --library public
    """
    with connect(Settings()) as client:
        ended = [
            client.cancel(str(job["id"]))
            for job in client.jobs(1000)["jobs"]
            if job["kind"] in KINDS and job["library"] == library and job["state"] not in FINISHED
        ]
    say(f"{len(ended)} jobs ended")
