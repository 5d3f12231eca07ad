"""Read chats in exports of programs: who wrote, when, and what.

An export is a list of objects that each have a writer and a text. Names of fields are those of the
common programs; ids of writers are looked up in the lists of users that the same file has.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime

_WRITERS = ("from", "sender_name", "sender", "author", "user", "username", "user_name")
_TEXTS = ("text", "content", "message", "body")
_TIMES = ("date", "timestamp", "ts", "time", "sent", "created_at", "datetime", "timestamp_ms")
_IDS, _OWN_NAMES = ("id", "user_id"), ("real_name", "display_name", "name", "username")
_LEAST_SHARE = 0.8
"""Of the objects of a list that are messages."""
_NUMBER = re.compile(r"(\d{10})(\d{3})?(?:\.\d+)?\Z")
"""Seconds or milliseconds since 1970."""
_MINUTE = re.compile(r"(\d{4}-\d\d-\d\d)[T ](\d\d:\d\d)\S*\Z")

Object = Mapping[str, str]
"""The texts of an object by their names in lower case."""


def names_of(objects: Iterable[Object]) -> dict[str, str]:
    """Return the names of users by their ids."""
    found: dict[str, str] = {}
    for one in objects:
        own, name = _first(one, _IDS), _first(one, _OWN_NAMES)
        if own and name:
            found.setdefault(own, name)
    return found


def messages_of(objects: Sequence[Object], names: Mapping[str, str]) -> list[str] | None:
    """Return the messages of a list as `Writer, 2025-03-05 07:40: text`; None if it is no chat."""
    made = []
    for one in objects:
        writer, text = _first(one, _WRITERS), _first(one, _TEXTS)
        if writer and text:
            when = moment(_first(one, _TIMES))
            made.append(f"{names.get(writer, writer)}{', ' if when else ''}{when}: {text}")
    return made if len(made) > 1 and len(made) >= _LEAST_SHARE * len(objects) else None


def moment(written: str) -> str:
    """Return a time to the minute where it is written as a machine writes it."""
    if number := _NUMBER.match(written):
        return datetime.fromtimestamp(int(number[1]), UTC).strftime("%Y-%m-%d %H:%M")
    minute = _MINUTE.match(written)
    return f"{minute[1]} {minute[2]}" if minute else written


def _first(one: Object, names: Sequence[str]) -> str:
    return next((one[name] for name in names if one.get(name)), "")
