"""`documind`: the commands, and what their exit codes mean.

Exit codes: 0 done; 1 something failed (the message says what to do); 2 the command line is wrong; 3
some of several files failed; 4 not found; 5 the data is in use by another process; 6 a model host
cannot be reached or lacks the model; 7 `fsck` found faults; 8 `fsck` found faults that need a
backup; 130 interrupted.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable, Mapping
from typing import Annotated

import typer
from pydantic import ValidationError
from typer.exceptions import TyperException

from app.cli import (
    ask,
    bulk,
    doctor,
    evaluate,
    keys,
    library,
    maintenance,
    models,
    output,
    serve,
    up,
)
from app.cli.connection import INTERRUPTED
from app.cli.output import complain, say
from app.core import errors
from app.core.errors import refusal
from app.core.ids import package_version
from app.core.text import fault_in_words

EXIT_CODES: tuple[tuple[type[errors.DocuMindError], int], ...] = (
    (errors.InvalidInput, 2),
    (errors.NotFound, 4),
    (errors.Locked, 5),
    (errors.ProviderError, 6),
)
app = typer.Typer(
    name="documind",
    help="Ask your own documents on your own machine; every citation leads to the exact words it"
    " came from.",
    no_args_is_help=True,
    rich_markup_mode=None,
    epilog=(
        "Settings are environment variables; docs/configuration.md lists them. Exit codes:"
        " docs/cli.md. Completion of commands by the Tab key: documind --install-completion."
    ),
)


def _say_version(wanted: bool) -> None:
    if wanted:
        say(f"documind {package_version()}")
        raise typer.Exit


@app.callback()
def everywhere(
    _: Annotated[
        bool,
        typer.Option(
            "--version",
            "-V",
            help="say which version this is",
            is_eager=True,
            callback=_say_version,
        ),
    ] = False,
) -> None:
    """Ask your own documents; every citation can be checked."""


COMMANDS: Mapping[str, Callable[..., None]] = {
    "up": up.up,
    "down": up.down,
    "serve": serve.serve,
    "work": serve.work,
    "open": output.open_running,
    "ask": ask.ask,
    "search": ask.search,
    "check": ask.check,
    "chat": ask.chat,
    "ingest": library.ingest,
    "arxiv": library.arxiv,
    "fetch": library.fetch,
    "samples": library.samples,
    "list": library.list_documents,
    "duplicates": library.list_duplicates,
    "delete": library.delete,
    "clear": library.clear,
    "feedback": ask.feedback,
    "forget": ask.forget,
    "sync": library.sync,
    "fsck": maintenance.fsck,
    "rebuild": maintenance.rebuild,
    "purge": maintenance.purge,
    "backup": maintenance.backup,
    "restore": maintenance.restore,
    "migrate": serve.migrate,
    "export": library.export_library,
    "import": library.import_library,
    "reembed": models.reembed,
    "calibrate": models.calibrate,
    "status": maintenance.status,
    "doctor": doctor.doctor,
    "config": maintenance.config,
    "mcp": serve.serve_stdio,
}
"""As the help lists them."""
for name, command in COMMANDS.items():
    app.command(name)(command)
app.command("add", hidden=True)(library.ingest)  # what other programs call it
for group in (library.tag_app, keys.app, bulk.app, evaluate.app, models.app, models.prompt_app):
    app.add_typer(group)


def exit_code(error: errors.DocuMindError) -> int:
    return next((code for cls, code in EXIT_CODES if isinstance(error, cls)), 1)


def main(arguments: list[str] | None = None) -> None:
    """Run the command line (by default the process's own)."""
    logging.basicConfig(level=logging.WARNING, format="%(levelname)s %(message)s")
    run_at_edge(lambda: sys.exit(_run(arguments)))


def _run(arguments: list[str] | None) -> int:
    """Run a command and return its exit code; a value that it does not take is one sentence."""
    try:
        code = app(arguments, standalone_mode=False)
    except typer.Abort:
        complain("aborted")
        return 1
    except typer.BadParameter as error:
        if isinstance(error.__cause__, ValidationError):  # typer's own of a number
            (found, *_) = error.__cause__.errors()
            said = fault_in_words(found["type"], found.get("ctx", {}), found["msg"])
            error.message = said.removeprefix(":").strip()
        help_of = f"; see: {error.ctx.command_path} --help" if error.ctx else ""
        complain(f"{error.format_message().rstrip('.')}{help_of}")
        return 2
    except TyperException as error:
        error.show()  # type: ignore[attr-defined]  # of its subclasses, which have no public name
        return 2
    return code if isinstance(code, int) else 0


def run_at_edge(work: Callable[[], object]) -> None:
    """Run a command or a script; our errors become one line and an exit code. An edge."""
    try:
        work()
    except errors.DocuMindError as error:
        complain(error.message)
        sys.exit(exit_code(error))
    except ValidationError as error:
        for problem in error.errors():
            name = "_".join(str(part) for part in problem["loc"]).upper() or "settings"
            got = ""  # of several settings at once the input holds all, keys too
            if problem["loc"]:
                got = f" (got {maintenance.shown(name.lower(), problem['input'])!r})"
            said = fault_in_words(problem["type"], problem.get("ctx", {}), problem["msg"])
            complain(f"{name}{said}{got}; see docs/configuration.md")
        sys.exit(2)
    except OSError as error:
        refused = refusal(error)
        if refused is None:
            raise
        complain(refused.message)
        sys.exit(exit_code(refused))
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)
