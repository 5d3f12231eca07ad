"""Questions in the terminal: `ask`, `search`, `chat`, `check`, and stored answers."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Literal, get_args

import typer
from rich.markdown import Markdown
from rich.markup import escape

from app.check_report import SAID, ReportForm, written
from app.cli.connection import Provisional, connect, document_names
from app.cli.output import (
    SOME_FAILED,
    CollectionOption,
    JsonOption,
    TagsOption,
    WhereOption,
    complain,
    emit,
    err,
    job_progress,
    one_of,
    out,
    say,
    shown,
    table,
    tell,
)
from app.client import NEAREST, DocuMindClient, Json
from app.core.errors import DocuMindError, InputError, InvalidInput, NotFound
from app.core.labels import Condition
from app.core.types import CheckBy, EvidenceKind, LibraryName, Mode, Scope, Strategy
from app.ingest.sandbox import SandboxedParser
from app.ingest.sources.folders import visible_files
from app.settings import Settings

LibraryOption = Annotated[
    str | None, one_of(get_args(Scope), "--library", "-l", text="{} [default: DEFAULT_LIBRARY]")
]
_PREVIEW_CHARACTERS = 100
_SUMMARISE = "Summarise this."


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
            autocompletion=document_names,
        ),
    ] = None,
    mode: Annotated[str, one_of(get_args(Mode), "--mode", "-m")] = "general",
    strategy: Annotated[
        str | None,
        one_of(
            get_args(Strategy),
            "--strategy",
            text="{} [default: flare if FLARE_ACTIVE_RETRIEVAL, else baseline]",
        ),
    ] = None,
    limit: Annotated[
        int | None,
        typer.Option(
            "--limit", "-k", min=1, max=50, help="passages to read [default: TOP_K_RESULTS]"
        ),
    ] = None,
    model: Annotated[
        str | None,
        typer.Option(help="another model for this question [default: the one that answers]"),
    ] = None,
    evidence: Annotated[
        str | None,
        one_of(
            get_args(EvidenceKind), "--evidence", text="what a model reads: {} [default: EVIDENCE]"
        ),
    ] = None,
    fallback: Annotated[
        bool | None,
        typer.Option(
            help="let a model read the nearest passages if none is relevant enough [default:"
            " ENABLE_FALLBACK_RETRIEVAL]"
        ),
    ] = None,
    strict: bool | None = typer.Option(
        None,
        "--strict",
        help="withhold what a model writes and the check does not call supported [default: STRICT]",
    ),
    tags: TagsOption = None,
    where: WhereOption = None,
    collection: CollectionOption = None,
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
        "top_k": limit,
        "model": model,
        "evidence": evidence,
        "fallback": fallback,
        "strict": strict,
    }
    options = {name: value for name, value in options.items() if value is not None}
    if tags or where or collection:
        wanted = map(Condition.written, where or ())
        metadata = {condition.key: condition.given for condition in wanted}
        filters = {"tags": tags or [], "metadata": metadata, "collection": collection}
        options["filters"] = filters
    question = question or _SUMMARISE
    with connect(Settings()) as client:
        if documents:
            libraries = get_args(LibraryName) if library in {None, "all"} else (library,)
            options["doc_ids"] = [_doc_id(client, libraries, name) for name in documents]
        if as_json:
            emit(client.query(question, **options))
            return
        shown = Provisional(err)
        with shown.live(), client.query_stream(question, **options) as events:
            shown.follow(events)
    answer = shown.answer()
    show_answer(answer)
    if answer["status"] == "abstained" and answer["library"] != "all":
        err.print(f"Only the library {answer['library']} was asked; --library all asks both.")


def _doc_id(client: DocuMindClient, libraries: Sequence[str], name: str) -> str:
    """Return the id of a document named by id, source key, file name or title."""
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
    """Print an answer, a quote apart from the model's words, with notices and sources.

    Under a refusal stand the places that come nearest.
    """
    quote, words = _parts(answer)
    if quote and words:
        out.print("[dim]From your documents[/]")
        out.print(Markdown(quote))
        out.print()
        out.print(f"[dim]In the words of {escape(str(answer['generator']))}[/]")
    out.print(Markdown(words or quote))
    nearest = answer.get("nearest", ())  # a server of before has none
    if nearest:
        out.print(f"\n[dim]{NEAREST}[/]")
    for near in nearest:
        say(f"- \u201c{' '.join(near['quote'].split())}\u201d ({near['title']})")
    for notice in answer["notices"]:
        err.print(f"[yellow]{notice['code']}:[/] {notice['message']}")
    show_sources(answer)


def _parts(answer: Json) -> tuple[str, str]:
    """Return the quote that an answer begins with, and the rest."""
    text, quote = str(answer["answer"]), answer.get("quote")
    first = str(quote["text"]) if quote and quote["leads"] else ""
    return (first, text[len(first) :].strip()) if text.startswith(first) else ("", text)


def show_sources(answer: Json) -> None:
    """Print a table of the sources of an answer; nothing when it has none."""
    sources = answer["sources"]
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
    limit: Annotated[
        int, typer.Option("--limit", "-k", min=1, max=50, help="passages to show")
    ] = 10,
    tags: TagsOption = None,
    where: WhereOption = None,
    collection: CollectionOption = None,
    as_json: JsonOption = False,
) -> None:
    """List the best passages, without an answer.

    Example: documind search "waggle dance" --limit 3
    """
    with connect(Settings()) as client:
        found = client.search(
            query, library, limit=limit, tags=tags, metadata=where, collection=collection
        )
    if as_json:
        emit(found)
        return
    hits = found["hits"]
    table(
        ("", "source", "section", "page", "score", "text"),
        [
            (n, h["title"], h["section"], h["page"], f"{h['score']:.3f}", preview(h))
            for n, h in enumerate(hits, 1)
        ],
        right=(4,),
    )


_CHOICES: Mapping[str, tuple[str, tuple[str, ...]]] = {
    "library": ("library", get_args(Scope)),
    "mode": ("query_mode", get_args(Mode)),
    "strategy": ("retrieval_strategy", get_args(Strategy)),
}
"""By what a person calls them: a field of QueryRequest and its values."""
_COMMANDS = (
    (f"/library [{'|'.join(get_args(Scope))}]", "where answers come from"),
    (f"/mode [{'|'.join(get_args(Mode))}]", "how passages are read"),
    (f"/strategy [{'|'.join(get_args(Strategy))}]", "how passages are found"),
    ("/sources", "what the last answer cites, word for word"),
    ("/topics", "questions the library can answer"),
    ("/history", "what was said so far"),
    ("/reset", "begin a new conversation"),
    ("/quit", "leave (or Ctrl-D)"),
)
HELP = "\n".join(f"{command:<60}{what}" for command, what in _COMMANDS)
HELP += "\nCtrl-C stops the answer that is being written, never the chat."
_TOPICS = 5


def chat(
    library: LibraryOption = None,
    model: Annotated[
        str | None, typer.Option(help="another model for this chat [default: the one that answers]")
    ] = None,
    conversation: Annotated[
        str | None, typer.Option(help="id of a conversation to continue [default: a new one]")
    ] = None,
) -> None:
    """Chat with the libraries; earlier turns are remembered. /help lists commands.

    A restart of the server keeps them.

    Example: documind chat --library papers
    """
    with connect(Settings()) as client:
        options = {
            "library": library or str(client.libraries()["default_library"]),
            **({"model": model} if model else {}),
        }
        Chat(client, options, conversation).run()


class Chat:
    """One sitting: reads lines until the end, answers each."""

    def __init__(
        self, client: DocuMindClient, options: Mapping[str, str], conversation_id: str | None
    ) -> None:
        """Begin with some fields of QueryRequest; no conversation id starts a new one."""
        self._client = client
        self._options = dict(options)
        self._conversation_id = conversation_id
        self._last: Json | None = None
        self._commands: Mapping[str, Callable[[str], None]] = {
            "/help": lambda _: say(HELP),
            "/library": lambda value: self._choose("library", value),
            "/mode": lambda value: self._choose("mode", value),
            "/strategy": lambda value: self._choose("strategy", value),
            "/sources": lambda _: self._sources(),
            "/topics": lambda _: self._topics(),
            "/history": lambda _: self._history(),
            "/reset": lambda _: self._reset(),
        }

    def run(self) -> None:
        """Read and answer until /quit or the end of input."""
        # Line editing and the arrow keys; importing it is all that `input` needs. Not every Python
        # has it.
        with suppress(ImportError):
            import readline  # noqa: F401, PLC0415
        say(f"Library: {self._options['library']}. Ask something; /help lists the commands.")
        while True:
            try:
                text = out.input("[bold]>[/] ").strip()
                if text in {"/quit", "/exit"}:
                    return
                if text:
                    self._take(text)
            except EOFError:
                out.print()
                return
            except KeyboardInterrupt:  # at the prompt it drops the line that was begun
                out.print("\n[dim]/quit leaves[/]")

    def _take(self, text: str) -> None:
        """Answer or obey one line; what goes wrong ends the turn, never the chat."""
        name, _, value = text.partition(" ")
        try:
            if not text.startswith("/"):
                self._answer(text)
            elif name in self._commands:
                self._commands[name](value.strip())
            else:
                complain(f"there is no command {name!r}; /help lists them")
        except DocuMindError as error:
            complain(error.message)

    def _answer(self, message: str) -> None:
        shown = Provisional(out)
        try:
            with (
                shown.live(),
                self._client.chat_stream(message, self._conversation_id, **self._options) as events,
            ):
                shown.follow(events)
        except DocuMindError:
            _keep(shown)
            raise
        except KeyboardInterrupt:
            _keep(shown)
            err.print("[dim]stopped[/]")
            return
        finally:
            self._conversation_id = shown.conversation_id or self._conversation_id
        self._last = shown.answer()
        show_answer(self._last)

    def _choose(self, what: str, value: str) -> None:
        field, choices = _CHOICES[what]
        if value in choices:
            self._options[field] = value
        elif value:
            complain(f"{what} {value!r} is none of {', '.join(choices)}")
            return
        say(f"{what}: {self._options.get(field, 'as the server is set')}    ({', '.join(choices)})")

    def _sources(self) -> None:
        if self._last is None or not self._last["sources"]:
            say("there is no answer with sources yet")
            return
        for sentence in self._last["sentences"]:
            for citation in sentence["citations"]:
                say(f"[{citation['n']}] \u201c{citation['quote']}\u201d")
        show_sources(self._last)

    def _topics(self) -> None:
        found = self._client.get(
            "/api/v1/suggestions", {"library": self._options["library"], "n": _TOPICS}
        )
        suggestions = found["suggestions"]
        for one in suggestions:
            say(f"{one['question']}    ({one['title']})")
        if not suggestions:
            say("nothing to suggest yet; index some documents first: documind ingest PATH")

    def _history(self) -> None:
        if self._conversation_id is None:
            say("nothing has been said yet")
            return
        conversation = self._client.get(f"/api/v1/conversations/{self._conversation_id}")
        for turn in conversation["turns"]:
            say(f"{'you' if turn['role'] == 'user' else 'it'}: {turn['content']}")

    def _reset(self) -> None:
        self._conversation_id = self._last = None
        say("a new conversation begins with the next question")


def _keep(shown: Provisional) -> None:
    if shown.text:
        say(shown.text)


Format = Literal[ReportForm, "json"]


Changed = Callable[[Json], None]
"""Takes how far work is."""


def _unseen(_: Json) -> None:
    """Show nothing."""


def check(
    file: Annotated[
        str,
        typer.Argument(help="any file that is read, or a folder of such; - reads standard input"),
    ],
    library: Annotated[
        str | None,
        typer.Option(
            "--library",
            "-l",
            help="public, papers or all; with --against: where to look for a better source"
            " [default: DEFAULT_LIBRARY; with --against: none]",
        ),
    ] = None,
    against: Annotated[
        Path | None, typer.Option(help="check it against this file [default: the library]")
    ] = None,
    judge: Annotated[
        str | None,
        typer.Option(
            metavar="MODEL",
            help="ask this model for its verdict, shown next to the first [default: none]",
        ),
    ] = None,
    check_by: Annotated[
        CheckBy | None,
        typer.Option(
            "--by", help="who decides: reader, model, both (both say so) [default: CHECK_BY]"
        ),
    ] = None,
    form: Annotated[
        Format, typer.Option("--format", help="markdown, html, docx (comments) or json")
    ] = "markdown",
) -> None:
    """Check every sentence of a text: supported, unsure, contradicted or not found.

    Unsure is what a place may say. Each verdict names the place in a document. Of a folder of
    drafts a table says how many sentences of each have which verdict.

    Example: documind check draft.docx --library papers --format docx > checked.docx
    """
    settings = Settings()
    with SandboxedParser(settings.ingest()) as parser, connect(settings) as client:
        source = parser.parse(against, against.name).text if against else None

        def checked(content: bytes | Path, name: str, changed: Changed = _unseen) -> Json:
            text = parser.parse(content, name).text

            def watch(now: Json) -> None:
                changed({"done": now["done"], "total": now["of"], "unit": "sentences"})

            return client.check(text, library, source, judge, check_by, watch)

        if file != "-" and Path(file).is_dir():
            if form not in ("markdown", "json"):
                raise InvalidInput(f"of a folder there is a table, or json, no {form}")
            _check_drafts(Path(file), checked, as_json=form == "json")
            return
        stdin = file == "-"
        with job_progress("checking") as changed:
            report = checked(
                sys.stdin.buffer.read() if stdin else Path(file),
                "text.md" if stdin else Path(file).name,
                changed,
            )
    if form == "json":
        emit(report)
    elif form == "docx":
        sys.stdout.buffer.write(written(report, form))
    else:
        sys.stdout.write(shown(written(report, form).decode()))


def _check_drafts(folder: Path, checked: Callable[[Path, str], Json], *, as_json: bool) -> None:
    """Print a table of the verdicts of every file of a folder, or all reports as JSON.

    A file that cannot be read is a row with the reason, and the exit code says so.
    """
    reports: dict[str, Json] = {}
    failed: dict[str, str] = {}
    files = list(visible_files(folder))
    with job_progress("checking drafts") as changed:
        for done, path in enumerate(files, 1):
            name = path.relative_to(folder).as_posix()
            try:
                reports[name] = checked(path, path.name)
            except InputError as error:
                failed[name] = error.message
            changed({"done": done, "total": len(files), "unit": "files"})
    if as_json:
        emit({"reports": reports, "failed": failed})
    else:
        rows = [
            (name, *(report["counts"][verdict] for verdict in SAID), _not_there(report))
            for name, report in reports.items()
        ]
        heads = ("file", *SAID.values(), "references not in the library")
        table(heads, rows, right=range(1, len(heads)))
    for name, why in failed.items():
        complain(f"{name}: {why}")
    if failed:
        sys.exit(SOME_FAILED if reports else 1)


def _not_there(report: Json) -> int:
    return sum(one["state"] == "not_there" for one in report["references"])


def feedback() -> None:
    """Print ratings of answers as JSON Lines for `documind evaluate answers`.

    Example: documind feedback > feedback.jsonl
    """
    with connect(Settings()) as client:
        out.file.write(client.feedback())


def forget(
    yes: Annotated[bool, typer.Option("--yes", help="do not ask")] = False,
    conversations: Annotated[
        bool, typer.Option("--conversations", help="delete conversations too")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Forget every stored answer, with its question, trace and feedback.

    Example: documind forget --conversations --yes
    """
    if not yes:
        typer.confirm("Forget every stored answer?", abort=True, err=True)
    with connect(Settings()) as client:
        gone = {"answers": client.forget("answers")["forgotten"]}
        if conversations:
            gone["conversations"] = client.forget("conversations")["forgotten"]
    text = "forgotten: " + ", ".join(f"{count} {what}" for what, count in gone.items())
    tell(gone, text, as_json=as_json)
