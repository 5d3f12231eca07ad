"""Options that several commands share, and the check of a library's name."""

from __future__ import annotations

from typing import Annotated

import typer

from app.core.errors import InvalidInput
from app.core.types import Library

JsonOption = Annotated[bool, typer.Option("--json", help="print the result as JSON")]


def check_library(name: str) -> None:
    """Refuse a name that is no library's.

    Raises:
        InvalidInput: It is neither `public` nor `papers`.
    """
    known = [library.value for library in Library]
    if name not in known:
        raise InvalidInput(f"library {name!r} is none of {', '.join(known)}")
