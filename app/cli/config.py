"""`documind config`: which settings hold, and where each comes from."""

from __future__ import annotations

import os
from typing import Annotated

import typer
from dotenv import dotenv_values

from app.cli.options import JsonOption
from app.cli.output import emit, table
from app.client import Json
from app.providers.addresses import without_credentials
from app.settings import Settings

HIDDEN = "(hidden)"


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(config)


def config(
    everything: Annotated[
        bool, typer.Option("--all", "-a", help="also what stands at its default")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Show changed settings and their source: environment or `.env`. Keys are hidden.

    Example: documind config --all
    """
    rows = [
        row
        for row in settings_in_force()
        if everything or row["from"] != "default" or row["setting"] == "DATA_DIR"
    ]
    if as_json:
        emit(rows)
    else:
        table(
            ("setting", "value", "from"),
            [(row["setting"], row["value"], row["from"]) for row in rows],
        )


def settings_in_force() -> list[Json]:
    """Return every setting with its value as text and its source; secrets are hidden."""
    settings = Settings()
    environment = {name.upper() for name, value in os.environ.items() if value}
    written = {name.upper() for name, value in dotenv_values(".env").items() if value}
    rows: list[Json] = []
    for field, definition in Settings.model_fields.items():
        name = field.upper()
        origin = "environment" if name in environment else ".env" if name in written else "default"
        value = getattr(settings, field)
        shown = _shown(value, secret=definition.repr is False)
        rows.append(
            {
                "setting": name,
                "value": str(settings.data_dir.resolve()) if field == "data_dir" else shown,
                "from": origin,
            }
        )
    return rows


def _shown(value: object, *, secret: bool) -> str:
    if value is None or value == "":
        return ""
    if secret:
        return HIDDEN
    if isinstance(value, bool):
        return str(value).lower()
    text = ",".join(map(str, value)) if isinstance(value, tuple) else str(value)
    return (
        ",".join(without_credentials(part) for part in text.split(",")) if "://" in text else text
    )
