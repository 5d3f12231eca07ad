"""Markup made to be slow, by the number of its repetitions."""

from __future__ import annotations

from collections.abc import Callable

WIKITEXT: dict[str, Callable[[int], str]] = {
    "templates": lambda n: "{{a|" * n + "}}" * n,
    "templates without end": lambda n: "{{a|" * n,
    "references": lambda n: "<ref>" * n,
    "reference tags": lambda n: "<ref name=a " * n,
    "nowiki": lambda n: "<nowiki>" * n,
    "links": lambda n: "[[" * n + "]]" * n,
    "links without end": lambda n: "[[" * n,
    "brackets in links": lambda n: "[[a [b] " * n,
    "tables": lambda n: "{|\n" * n,
    "headings": lambda n: "== " * n,
    "blanks": lambda n: "= " + " " * n + "x",
    "address": lambda n: "[http://" + "a" * n,
}
HTML: dict[str, Callable[[int], str]] = {
    "options": lambda n: "<select>" + "<option>a" * n,
    "divisions": lambda n: "<div>" * n,
    "tables": lambda n: "<table><tr><td>" * n,
    "formatting": lambda n: "<b><p>" * n,
    "hidden": lambda n: "<div hidden>a" * n,
    "items": lambda n: "<li>a</li>" * n,
}
