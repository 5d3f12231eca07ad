"""`documind ask` and `documind search`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, cast, get_args

import typer
from rich.markdown import Markdown
from rich.markup import escape

from app.cli.connection import connect
from app.cli.options import JsonOption
from app.cli.output import emit, err, out, table
from app.cli.waiting import Provisional
from app.client import DocuMindClient, Json
from app.core.errors import DocuMindError, NotFound
from app.core.text import either
from app.core.types import EvidenceKind, LibraryName, Mode, Scope, Strategy
from app.settings import Settings

LibraryOption = Annotated[
    str | None,
    typer.Option("--library", "-l", help=f"{either(get_args(Scope))} [default: DEFAULT_LIBRARY]"),
]
_PREVIEW_CHARACTERS = 100
_SUMMARISE = "Summarise this."


def register(app: typer.Typer) -> None:
    """Add the commands."""
    app.command()(ask)
    app.command()(search)


def ask(
    question: Annotated[
        str, typer.Argument(help="your question; the mode summary needs none [default: none]")
    ] = "",
    library: LibraryOption = None,
    documents: Annotated[
        list[str] | None,
        typer.Option(
            "--document",
            "-d",
            help="ask only this document: id, file name or title; repeatable [default: all]",
        ),
    ] = None,
    mode: Annotated[str, typer.Option("--mode", "-m", help=either(get_args(Mode)))] = "general",
    strategy: Annotated[
        str | None,
        typer.Option(
            help=f"{either(get_args(Strategy))} [default: flare if FLARE_ACTIVE_RETRIEVAL, else"
            " baseline]"
        ),
    ] = None,
    top_k: Annotated[
        int | None,
        typer.Option("--top-k", "-k", help="passages to read, 1 to 50 [default: TOP_K_RESULTS]"),
    ] = None,
    model: Annotated[
        str | None,
        typer.Option(help="another model for this question [default: the one that answers]"),
    ] = None,
    evidence: Annotated[
        str | None,
        typer.Option(
            help=f"what a model reads: {either(get_args(EvidenceKind))} [default: EVIDENCE]"
        ),
    ] = None,
    fallback: Annotated[
        bool | None,
        typer.Option(
            help="let a model read the nearest passages if none is relevant enough [default:"
            " ENABLE_FALLBACK_RETRIEVAL]"
        ),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Answer a question from the documents, with its sources.

    Example: documind ask --mode summary --document paper.pdf
    """
    if not question and mode != "summary":
        raise typer.BadParameter("what is your question?", param_hint="QUESTION")
    options: dict[str, object] = {
        "library": library,
        "query_mode": mode,
        "retrieval_strategy": strategy,
        "top_k": top_k,
        "model": model,
        "evidence": evidence,
        "fallback": fallback,
    }
    options = {name: value for name, value in options.items() if value is not None}
    question = question or _SUMMARISE
    with connect(Settings()) as client:
        if documents:
            options["doc_ids"] = _doc_ids(client, library or "all", documents)
        if as_json:
            emit(client.query(question, **options))
            return
        answer: Json | None = None
        shown = Provisional(err)
        with shown.live(), client.query_stream(question, **options) as events:
            for event in shown.follow(events):
                if event.name == "final":
                    answer = event.data
    if answer is None:
        raise DocuMindError("the answer's stream ended early; ask again")
    show_answer(answer)
    if answer["status"] == "abstained" and answer["library"] != "all":
        err.print(f"Only the library {answer['library']} was asked; --library all asks both.")


def _doc_ids(client: DocuMindClient, library: str, names: Sequence[str]) -> list[str]:
    """Return the ids of documents named by id, source key, file name or title."""
    libraries = get_args(LibraryName) if library == "all" else (library,)
    return [_doc_id(client, libraries, name) for name in names]


def _doc_id(client: DocuMindClient, libraries: Sequence[str], name: str) -> str:
    for library in libraries:
        try:
            return str(client.document(library, name)["doc_id"])
        except NotFound:
            found = list(client.documents(library, name, limit=20))
        exact = [one for one in found if str(one["title"]).casefold() == name.casefold()]
        if len(exact or found) == 1:
            return str((exact or found)[0]["doc_id"])
    raise NotFound(f"no document, or more than one, is named {name!r}; run: documind list")


def show_answer(answer: Json) -> None:
    """Print an answer, its notices and a table of the sources it cites.

    A quote, and the model's words below it, are printed apart.
    """
    quote, words = _parts(answer)
    if quote and words:
        out.print("[dim]From your documents[/]")
        out.print(Markdown(quote))
        out.print()
        out.print(f"[dim]In the words of {escape(str(answer['generator']))}[/]")
    out.print(Markdown(words or quote))
    for notice in cast("Sequence[Mapping[str, str]]", answer["notices"]):
        err.print(f"[yellow]{notice['code']}:[/] {notice['message']}")
    show_sources(answer)


def _parts(answer: Json) -> tuple[str, str]:
    """Return the quote that an answer begins with, and the rest."""
    text, quote = str(answer["answer"]), cast("Json | None", answer.get("quote"))
    first = str(quote["text"]) if quote and quote["leads"] else ""
    return (first, text[len(first) :].strip()) if text.startswith(first) else ("", text)


def show_sources(answer: Json) -> None:
    """Print a table of the sources of an answer; nothing when it has none."""
    sources = cast("Sequence[Json]", answer["sources"])
    if sources:
        out.print()
        table(
            ("", "source", "section", "page", "band", "text"),
            [
                (f"[{s['n']}]", s["title"], s["section"], s["page"], s["band"], preview(s))
                for s in sources
            ],
        )


def preview(source: Json) -> str:
    """Return the beginning of a passage on one line."""
    text = " ".join(str(source.get("preview") or source.get("text")).split())
    return text if len(text) <= _PREVIEW_CHARACTERS else text[: _PREVIEW_CHARACTERS - 1] + "\u2026"


def search(
    query: Annotated[str, typer.Argument(help="words or a question")],
    library: LibraryOption = None,
    limit: Annotated[int, typer.Option(help="hits to show, 1 to 50")] = 10,
    as_json: JsonOption = False,
) -> None:
    """List the best passages, without an answer.

    Example: documind search "waggle dance" --limit 3
    """
    with connect(Settings()) as client:
        found = client.search(query, library, limit=limit)
    if as_json:
        emit(found)
        return
    hits = cast("Sequence[Json]", found["hits"])
    table(
        ("", "source", "section", "page", "score", "text"),
        [
            (n, h["title"], h["section"], h["page"], f"{cast('float', h['score']):.3f}", preview(h))
            for n, h in enumerate(hits, 1)
        ],
        right=(4,),
    )
