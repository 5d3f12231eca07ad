"""Commands about models, their prompts, and the vectors of a library."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, get_args

import typer

from app.cli.connection import connect, run, run_job
from app.cli.output import (
    LIBRARIES,
    JsonOption,
    LibraryOption,
    complain,
    emit,
    err,
    group,
    one_of,
    out,
    say,
    size,
    table,
    tell,
)
from app.client import Json
from app.core.errors import InvalidInput
from app.core.types import EmbeddedModel
from app.generation.prompt.prompts import PromptLibrary
from app.settings import Settings

app = group(
    "models", "Models: list them, choose what embeds a library, fetch or test one of Ollama."
)


@app.command("list")
def list_models(as_json: JsonOption = False) -> None:
    """Show the models that are installed, in memory and in use.

    Example: documind models list
    """
    with connect(Settings()) as client:
        found = client.get("/api/v1/models")
        libraries = client.get("/api/v1/libraries")["libraries"]
    if as_json:
        emit(found)
        return
    for one in libraries:
        embedding = one["embedding"]
        say(f"{one['library']} is embedded with {embedding['embedder']}")
    used = found["in_use"]
    loaded = found["loaded"]
    say(f"answers: {answering(found)}")
    if "helper" in used:
        say(f"helper: {used['helper']}")
    installed = found["installed"]
    if installed:
        out.print()
        rows = [
            (name, size(bytes_) if bytes_ else "", "yes" if name in loaded else "")
            for name, bytes_ in ((row["name"], row["size_bytes"]) for row in installed)
        ]
        table(("installed", "on disk", "in memory"), rows, right=(1,))
    else:
        say(
            "no model host answers, or it has no models; answers are quotes until one does"
            " (documind doctor says more)"
        )
    if found["fit"] is False:
        err.print(
            "[yellow]the answering and the embedding model do not stay in memory together:[/] each"
            " question loads one and drops the other. Choose a smaller answering model, a smaller"
            " LLM_NUM_CTX, or EMBEDDING_PROVIDER=minilm for a new library."
        )


@app.command()
def use(
    model: Annotated[
        str,
        typer.Argument(
            help="for search: minilm (English) or multilingual; for answers: a model of Ollama,"
            " or auto for the server's own choice"
        ),
    ],
    purpose: Annotated[
        str, typer.Option("--for", help="search (embed a library) or answers")
    ] = "search",
    library: Annotated[
        str | None, one_of(LIBRARIES, "--library", "-l", text="for search: {} [default: public]")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Choose the model that embeds a library, or the one that answers.

    For search: a model of the server itself; no host is needed. The present vectors serve until the
    new ones are there, and come back with `documind reembed --rollback`. For libraries that are
    empty set EMBEDDED_MODEL. For answers: from the next question on, kept over restarts; refused
    while LLM_MODEL or LLM_PROVIDER names a model.

    Example: documind models use qwen2.5:7b --for answers
    """
    settings = Settings()
    if purpose == "answers":
        body: Json = {"model": None if model == "auto" else model}
        with connect(settings) as client:
            found = client.put("/api/v1/models/answering", body)
        tell(found, f"answers: {answering(found)}", as_json=as_json)
        return
    if purpose != "search":
        raise InvalidInput(f"--for {purpose!r} must be search or answers")
    if model not in get_args(EmbeddedModel):
        raise InvalidInput(
            f"model {model!r} must be one of {', '.join(get_args(EmbeddedModel))}; for a model of"
            " Ollama that answers add: --for answers"
        )
    chosen = library or settings.library.value
    body = {"library": chosen, "provider": model}
    found = run("/api/v1/reembed", body, f"embedding {chosen} with {model}", "the same command")
    tell(found, f"{found['outcome']}: {found['reason']}", as_json=as_json)


def answering(models: Json) -> str:
    """Return which model answers, why, and which others could, from `/api/v1/models`."""
    from app.models.ollama import same_model  # noqa: PLC0415  # only where a server answered

    answers = str(models["in_use"]["answers"])
    others = [
        str(row["name"])
        for row in models["installed"]
        if row["chats"] and not same_model(str(row["name"]), answers.removeprefix("ollama:"))
    ]
    line = f"{answers} ({models['why']})" if models["why"] else answers
    if not others:
        return line
    cure = (
        "the environment decides"
        if models["decided_by"] == "environment"
        else "to use one: documind models use NAME --for answers"
    )
    return f"{line}; also installed: {', '.join(others)} ({cure})"


@app.command()
def pull(
    model: Annotated[str, typer.Argument(help="name such as llama3.2 or nomic-embed-text")],
    as_json: JsonOption = False,
) -> None:
    """Fetch a model into Ollama; an interrupted fetch resumes.

    Example: documind models pull nomic-embed-text
    """
    with connect(Settings()) as client:
        job = run_job(
            client, client.post("/api/v1/models/pull", {"model": model}), f"fetching {model}"
        )
    tell(job, f"{model} is there; it can be chosen from now on", as_json=as_json)


@app.command("test")
def try_model(
    model: Annotated[
        str | None,
        typer.Argument(help="name of an installed model [default: the one that answers]"),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Test a model on 24 built-in questions; use the prompt that suits it.

    The questions are about passages that come with the program; none of your documents is read. A
    model whose own words are right as often as the quoted sentences answers alone from then on.

    Example: documind models test qwen2.5:0.5b
    """
    with connect(Settings()) as client:
        job = run_job(
            client, client.post("/api/v1/models/test", {"model": model}), "testing", as_json=False
        )
        found = client.get("/api/v1/models/tests")
    tests = found["tests"]
    done = next(one for one in tests if one["at"] == job["result"]["at"])
    if as_json:
        emit(done)
        return
    show_test(done)
    if len(tests) > 1:
        say(str(found["advice"]))


def show_test(test: Json) -> None:
    rows = [
        (prompt, *(_number(counts[key]) for key in _COUNTS))
        for prompt, counts in test["counts"].items()
    ]
    table(("prompt", *_COUNTS.values()), rows, right=range(1, len(_COUNTS) + 1))
    say(f"quotes alone: {test['quotes_right']} of {test['questions']}")
    say(
        f"reads {_number(test['reading_tokens_s'])} and writes {_number(test['writing_tokens_s'])}"
        " tokens a second"
    )
    budget = (
        f"at most {test['budget_tokens']} tokens of evidence, read in {_number(test['budget_s'])} s"
    )
    say(f"from now on: the {test['prompts']} prompt with {test['evidence']} evidence, {budget}")
    say(str(test["advice"]))


_COUNTS = {
    "right": "right",
    "cited": "cited",
    "refused_rightly": "refused",
    "refused_wrongly": "wrongly",
    "loops": "loops",
    "leaks": "leaks",
    "prompt_tokens": "tokens",
    "first_word_s": "first word s",
    "whole_s": "whole s",
}
"""Columns of a test, by the field of the reply."""


def _number(value: float | None) -> str:
    """Return a number for people; a host that does not say leaves it unknown."""
    return "unknown" if value is None else f"{value:.4g}"


prompt_app = group("prompt", "Prompts: show them, check an overlay.")


@prompt_app.command()
def show() -> None:
    """Print every prompt as a model gets it, PROMPTS_DIR laid over the packaged ones.

    Example: documind prompt show
    """
    say(PromptLibrary.load(Settings().prompts_dir).described().rstrip())


@prompt_app.command()
def check(
    directory: Annotated[
        Path | None, typer.Argument(help="folder with YAML files [default: PROMPTS_DIR]")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Say what is wrong with an overlay of prompts. Exit code 1 when something is.

    Example: documind prompt check my-prompts
    """
    findings: list[str] = []
    try:
        PromptLibrary.load(directory or Settings().prompts_dir)
    except InvalidInput as error:
        findings.append(error.message)
    if as_json:
        emit(findings)
    else:
        for finding in findings:
            complain(finding)
        if not findings:
            say("the prompts are in order")
    if findings:
        sys.exit(1)


def reembed(
    library: LibraryOption,
    embedder: Annotated[
        str | None,
        typer.Option(
            "--embedder",
            help="ollama, minilm, multilingual or a hosted provider [default: EMBEDDING_PROVIDER]",
        ),
    ] = None,
    model: Annotated[
        str | None,
        typer.Option("--model", help="embedding model of the provider [default: EMBEDDING_MODEL]"),
    ] = None,
    rollback: Annotated[
        bool,
        typer.Option("--rollback", help="go back to the previous vectors; nothing is embedded"),
    ] = False,
    discard: Annotated[
        bool, typer.Option("--discard", help="remove previous and unfinished vectors")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Re-embed a library with another model, then swap; --rollback goes back.

    The current vectors keep serving until then. The same command goes on after an interruption.

    Example: documind reembed --library papers --embedder ollama --model nomic-embed-text
    """
    if rollback and discard:
        raise InvalidInput("--rollback and --discard exclude each other")
    body: Json = {
        "library": library,
        "action": "rollback" if rollback else "discard" if discard else "start",
        "provider": embedder,
        "model": model,
    }
    found = run("/api/v1/reembed", body, f"re-embedding {library}", "the same command")
    tell(found, f"{found['outcome']}: {found['reason']}", as_json=as_json)


def calibrate(library: LibraryOption, as_json: JsonOption = False) -> None:
    """Calibrate a library's embedding model from the library's own sentences.

    Bands, cutoff and confidence go by it in every library of that model. It runs by itself after
    indexing.

    Example: documind calibrate --library papers
    """
    found = run("/api/v1/calibrate", {"library": library}, f"calibrating {library}")
    text = (
        f"{found['embedding_model']}: (similarity - {found['similarity_offset']}) /"
        f" {found['similarity_scale']} is on the scale of the thresholds, by"
        f" {found['pairs']} pairs"
    )
    tell(found, text, as_json=as_json)
