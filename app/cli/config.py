"""`documind config`: which settings hold, and where each comes from."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer
from dotenv import dotenv_values

from app.cli.options import JsonOption
from app.cli.output import emit, table
from app.client import Json
from app.core.hosts import without_credentials
from app.settings import Settings

HIDDEN = "(hidden)"
_LISTS = {"search_url", "ollama_embed_urls"}
"""Several addresses with commas between them."""


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
    for field in Settings.model_fields:
        name = field.upper()
        origin = "environment" if name in environment else ".env" if name in written else "default"
        value = getattr(settings, field)
        shown_value = shown(field, value)
        rows.append(
            {
                "setting": name,
                "value": str(settings.data_dir.resolve()) if field == "data_dir" else shown_value,
                "from": origin,
            }
        )
    return rows


def shown(field: str, value: object) -> str:
    """Return a setting's value as people may see it."""
    if value is None or value == "":
        return ""
    definition = Settings.model_fields.get(field)
    if definition is not None and definition.repr is False:
        return HIDDEN
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, tuple):
        return ",".join(without_credentials(str(part)) for part in value)
    if isinstance(value, Path):
        return str(value)
    if field in _LISTS:
        return ",".join(map(without_credentials, str(value).split(",")))
    return without_credentials(str(value))
