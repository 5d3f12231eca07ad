"""`documind chat`: a conversation in the terminal, remembered by the server."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Annotated, cast, get_args

import typer

from app.cli.ask import LibraryOption, show_answer, show_sources
from app.cli.connection import connect
from app.cli.output import complain, err, out, say
from app.cli.waiting import Provisional
from app.client import DocuMindClient, Json, ServerEvent
from app.core.errors import DocuMindError
from app.core.types import Mode, Scope, Strategy
from app.settings import Settings

_CHOICES: Mapping[str, tuple[str, ...]] = {
    "library": get_args(Scope),
    "mode": get_args(Mode),
    "strategy": get_args(Strategy),
}
_COMMANDS = (
    (f"/library [{'|'.join(_CHOICES['library'])}]", "where answers come from"),
    (f"/mode [{'|'.join(_CHOICES['mode'])}]", "how passages are read"),
    (f"/strategy [{'|'.join(_CHOICES['strategy'])}]", "how passages are found"),
    ("/sources", "what the last answer cites, word for word"),
    ("/topics", "questions the library can answer"),
    ("/history", "what was said so far"),
    ("/reset", "begin a new conversation"),
    ("/quit", "leave (or Ctrl-D)"),
)
HELP = "\n".join(f"{command:<60}{what}" for command, what in _COMMANDS)
HELP += "\nCtrl-C stops the answer that is being written, never the chat."
_TOPICS = 5
_FIELDS: Mapping[str, str] = {
    "library": "library",
    "mode": "query_mode",
    "strategy": "retrieval_strategy",
}


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(chat)


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
        """Start a chat.

        Args:
            client: The server.
            options: Fields of QueryRequest to start with.
            conversation_id: The conversation to continue; None starts one.
        """
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
        final: Json | None = None
        try:
            with (
                shown.live(),
                self._client.chat_stream(message, self._conversation_id, **self._options) as events,
            ):
                final = self._follow(shown.follow(events))
        except DocuMindError:
            _keep(shown)
            raise
        except KeyboardInterrupt:
            _keep(shown)
            err.print("[dim]stopped[/]")
            return
        if final is None:
            raise DocuMindError("the answer's stream ended early; ask again")
        self._last = final
        show_answer(final)

    def _follow(self, events: Iterator[ServerEvent]) -> Json | None:
        final: Json | None = None
        for event in events:
            if event.name == "meta":
                self._conversation_id = str(event.data["conversation_id"])
            elif event.name == "final":
                final = event.data
        return final

    def _choose(self, what: str, value: str) -> None:
        field, choices = _FIELDS[what], _CHOICES[what]
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
        for sentence in cast("Sequence[Json]", self._last["sentences"]):
            for citation in cast("Sequence[Json]", sentence["citations"]):
                say(f"[{citation['n']}] \u201c{citation['quote']}\u201d")
        show_sources(self._last)

    def _topics(self) -> None:
        found = self._client.get(
            "/api/v1/suggestions", {"library": self._options["library"], "n": _TOPICS}
        )
        suggestions = cast("Sequence[Json]", found["suggestions"])
        for one in suggestions:
            say(f"{one['question']}    ({one['title']})")
        if not suggestions:
            say("nothing to suggest yet; index some documents first: documind ingest PATH")

    def _history(self) -> None:
        if self._conversation_id is None:
            say("nothing has been said yet")
            return
        conversation = self._client.get(f"/api/v1/conversations/{self._conversation_id}")
        for turn in cast("Sequence[Json]", conversation["turns"]):
            say(f"{'you' if turn['role'] == 'user' else 'it'}: {turn['content']}")

    def _reset(self) -> None:
        self._conversation_id = self._last = None
        say("a new conversation begins with the next question")


def _keep(shown: Provisional) -> None:
    """Print what was shown of an answer that has no end."""
    if shown.text:
        say(shown.text)
