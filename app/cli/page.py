"""`documind open`, and the browser that other commands open."""

from __future__ import annotations

import os
import sys
import webbrowser

import typer

from app.cli.output import say
from app.core.errors import NotFound
from app.index.files.lock import owner
from app.settings import Settings


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("open")(open_running)


def open_running() -> None:
    """Open the page of the server that runs on this data.

    Example: documind open
    """
    running = owner(Settings().data_dir)
    if running is None or not running.url or not running.lasting:
        raise NotFound("no server is running on this data; start one: documind up")
    if not open_page(running.url):
        say(f"there is no browser here; the page is at {running.url}")


def open_page(url: str) -> bool:
    """Open the page in a browser and return True, where there is a screen for it."""
    if sys.platform.startswith("linux") and not (
        os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")
    ):
        return False
    return webbrowser.open(url)
