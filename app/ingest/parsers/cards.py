"""Read calendars (ICS, RFC 5545) and contact cards (VCF, RFC 6350), entry by entry."""

from __future__ import annotations

import quopri
import re
from collections.abc import Iterator
from types import MappingProxyType
from typing import NamedTuple

from app.core.types import ParsedDocument
from app.ingest.parsers.blocks import Block, write
from app.ingest.parsers.sniffing import decode

_FOLD = re.compile(r"\n[ \t]")
_SOFT_BREAK = re.compile(r"(?i)(;ENCODING=QUOTED-PRINTABLE[^\n]*)=\n")
_LINE = re.compile(
    r"(?:[\w-]{1,60}\.)?(?P<name>[A-Za-z][\w-]{0,60})"
    r"(?P<about>(?:;(?:\"[^\"]*\"|[^\";:])*)*):(?P<value>.*)"
)
_KIND = re.compile(r"(?i)(?:\A|;)TYPE=\"?([\w,-]+)|;(HOME|WORK|CELL|FAX|PREF)(?=;|\Z)")
_ZONE = re.compile(r"(?i);TZID=\"?([^\";:]+)")
_MOMENT = re.compile(r"(\d{4})-?(\d\d)-?(\d\d)(?:T(\d\d):?(\d\d)(?::?(\d\d))?(Z)?)?")
_ESCAPE = re.compile(r"\\([\\,;nN])")
_NAMES = MappingProxyType(
    {
        "DTSTART": "Start", "DTEND": "End", "TEL": "Telephone", "ADR": "Address",
        "ORG": "Organisation", "BDAY": "Birthday", "RRULE": "Repeats", "FN": "Name",
        "EXDATE": "Except", "URL": "Address on the web", "EMAIL": "E-mail",
    }
)  # fmt: skip
_UNSEEN = frozenset(
    "VERSION PRODID UID DTSTAMP SEQUENCE PHOTO LOGO SOUND KEY LAST-MODIFIED CREATED REV METHOD"
    " CALSCALE TRANSP BEGIN END SUMMARY FN N CLIENTPIDMAP KIND CLASS ATTACH".split()
)
"""What says nothing to a reader, and what is the name of the entry."""
_SKIPPED = frozenset({"VTIMEZONE", "VALARM", "STANDARD", "DAYLIGHT"})
_ABOUT_ALL = frozenset({"X-WR-CALNAME", "NAME"})
_MAILTO = re.compile(r"(?i)\Amailto:")


class _Field(NamedTuple):
    name: str
    about: str
    value: str


def parse_cards(content: bytes, *_: object) -> ParsedDocument:
    """Return the entries of a calendar or the cards of contacts, each field with its name.

    Alarms, time zones and what only programs need are left out.
    """
    source, warnings = decode(content)
    source = source.replace("\r\n", "\n").replace("\r", "\n")
    while (joined := _SOFT_BREAK.sub(r"\1", source)) != source:
        source = joined
    fields = list(_fields(_FOLD.sub("", source)))
    title = next((one.value for one in fields if one.name in _ABOUT_ALL), None)
    return write(_blocks(fields), "cards", title=title, warnings=warnings)


def _fields(source: str) -> Iterator[_Field]:
    for line in source.split("\n"):
        if (found := _LINE.fullmatch(line.strip())) is None:
            continue
        about, value = found["about"], found["value"]
        if "QUOTED-PRINTABLE" in about.upper():
            value = quopri.decodestring(value).decode(errors="replace")
        yield _Field(found["name"].upper(), about, value)


def _blocks(fields: list[_Field]) -> Iterator[Block]:
    open_: list[str] = []
    entry: list[_Field] = []
    for field in fields:
        if field.name == "BEGIN":
            open_.append(field.value.upper())
        elif field.name == "END":
            yield from _entry(entry)
            entry = []
            del open_[-1:]
        elif not _SKIPPED.intersection(open_) and field.name not in _ABOUT_ALL:
            entry.append(field)


def _entry(fields: list[_Field]) -> Iterator[Block]:
    known = {field.name: field for field in reversed(fields)}
    named = next((known[name] for name in ("SUMMARY", "FN", "N") if name in known), None)
    shown = [one for one in fields if one.name not in _UNSEEN and not one.name.startswith("X-")]
    if named is not None:
        yield Block("heading", " ".join(_plain(named).split()), level=2)
    for field in shown:
        kinds = [one for found in _KIND.findall(field.about) for one in found if one]
        label = _NAMES.get(field.name, field.name.capitalize())
        of_kind = f" ({', '.join(kinds).replace(',', ', ').lower()})" if kinds else ""
        yield Block(
            "field", " ".join(_plain(field).split()), mark=label + of_kind.replace(",  ", ", ")
        )


def _plain(field: _Field) -> str:
    """Return a value as people write it: parts of a name apart, a moment by ISO 8601."""
    if moment := _MOMENT.fullmatch(field.value):
        year, month, day, hour, minute, second, is_utc = moment.groups()
        zone = _ZONE.search(field.about)
        time = (
            f" {hour}:{minute}" + (f":{second}" if second not in (None, "00") else "")
            if hour
            else ""
        )
        where = " UTC" if is_utc else f" ({zone[1]})" if zone and hour else ""
        return f"{year}-{month}-{day}{time}{where}"
    if field.name in ("N", "ADR", "ORG"):
        parts = map(_unescaped, re.split(r"(?<!\\);", field.value))
        return (" " if field.name == "N" else ", ").join(filter(str.strip, parts))
    return _unescaped(_MAILTO.sub("", field.value))


def _unescaped(text: str) -> str:
    return _ESCAPE.sub(lambda one: "\n" if one[1] in "nN" else one[1], text)
