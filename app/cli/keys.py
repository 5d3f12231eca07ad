"""Commands about API keys: make one, list them, revoke one."""

from __future__ import annotations

from typing import Annotated, get_args
from urllib.parse import quote

import typer

from app.cli.connection import connect
from app.cli.output import LIBRARIES, JsonOption, emit, err, group, one_of, say, table, tell
from app.core.access import FIRST_KEY, LAST_KEY, KeyScope
from app.settings import Settings

PATH = "/api/v1/keys"
app = group("keys", "API keys: make one, list them, revoke one.")
YesOption = Annotated[bool, typer.Option("--yes", "-y", help="do not ask")]


@app.command("add")
def add_key(
    name: Annotated[str, typer.Argument(help="its name, for example of who has it")],
    scopes: Annotated[
        list[str],
        one_of(
            get_args(KeyScope),
            "--scope",
            "-s",
            text="{}; repeat for several; admin may do everything",
        ),
    ],
    libraries: Annotated[
        list[str] | None,
        one_of(
            LIBRARIES, "--library", "-l", text="{}: all that it may use [default: every library]"
        ),
    ] = None,
    yes: YesOption = False,
    as_json: JsonOption = False,
) -> None:
    """Make a key and print it, this once: only its digest is kept.

    The first key closes the server to requests without one.

    Example: documind keys add laptop --scope read --scope ask --library papers
    """
    wanted = {"name": name, "scopes": scopes, "libraries": libraries or []}
    with connect(Settings()) as client:
        if not yes and client.get(PATH)["open"]:
            typer.confirm(f"{FIRST_KEY}. Make it?", abort=True, err=True)
        made = client.post(PATH, {**wanted, "confirm": True})
    if as_json:
        emit(made)
        return
    err.print(f"the key {name!r}; it is not shown again:", markup=False)
    say(made["key"])


@app.command("list")
def list_keys(as_json: JsonOption = False) -> None:
    """List keys, what they may do, and when each was last used.

    Example: documind keys list
    """
    with connect(Settings()) as client:
        found = client.get(PATH)
    if as_json:
        emit(found)
        return
    if found["open"]:
        say("no key, and no API_KEY: everything is open to all who reach this server")
        return
    rows = [
        (
            key["name"],
            " ".join(key["scopes"]),
            " ".join(key["libraries"]),
            key["created_at"],
            key["used_at"] or "never",
        )
        for key in found["keys"]
    ]
    table(("name", "scopes", "libraries", "made", "last used"), rows)


@app.command("revoke")
def revoke_key(
    name: Annotated[str, typer.Argument(help="the key's name")],
    yes: YesOption = False,
    as_json: JsonOption = False,
) -> None:
    """Revoke a key: nothing opens with it any more.

    Example: documind keys revoke laptop
    """
    settings = Settings()
    with connect(settings) as client:
        last = [key["name"] for key in client.get(PATH)["keys"]] == [name]
        if last and not (yes or settings.api_key):
            typer.confirm(f"{LAST_KEY}. Revoke it?", abort=True, err=True)
        gone = client.remove(f"{PATH}/{quote(name, safe='')}", {"confirm": True})
    tell(gone, f"revoked {name}", as_json=as_json)
