"""Hostile books, rich text, notebooks, subtitles: bombs, depth, expressions that take the square."""

from __future__ import annotations

import json

from tests.fakes.files import archive
from tests.fakes.hostile.model import CANARY, WORDS, HostileFile, encoded, hostile

_CONTAINER = '<container><rootfiles><rootfile full-path="b.opf"/></rootfiles></container>'


def _book(spine: str, *, prolog: str = "", pages: dict[str, str | bytes] | None = None) -> bytes:
    package = (
        f'<?xml version="1.0"?>{prolog}<package><manifest>'
        '<item id="a" href="a.xhtml" media-type="application/xhtml+xml"/>'
        '<item id="up" href="../../../etc/passwd" media-type="application/xhtml+xml"/>'
        f"</manifest><spine>{spine}</spine></package>"
    )
    return archive(
        {
            "META-INF/container.xml": _CONTAINER,
            "b.opf": package,
            "a.xhtml": f"<html><body><p>{WORDS}</p></body></html>",
            **(pages or {}),
        }
    )


def _cells(*cells: object) -> bytes:
    return json.dumps({"cells": cells, "metadata": []}).encode()


_FILE = '<!DOCTYPE x [<!ENTITY e SYSTEM "file:///etc/passwd">]>'
WRITINGS: tuple[HostileFile, ...] = (
    hostile(
        "bomb.epub",
        lambda: _book('<itemref idref="a"/>', pages={"z.xhtml": b"\0" * 64 * 1024 * 1024}),
        "too_large",
    ),
    hostile(
        "one-page-a-million-times.epub", lambda: _book('<itemref idref="a"/>' * 200_000), "indexed"
    ),
    hostile("climbs.epub", lambda: _book('<itemref idref="up"/>'), "unreadable"),
    hostile(
        "reads-a-file.epub",
        lambda: _book('<itemref idref="a"/>&e;', prolog=_FILE),
        "indexed",
        "unreadable",
    ),
    hostile(
        "deep-page.epub",
        lambda: _book('<itemref idref="a"/>', pages={"a.xhtml": "<b>" * 300_000 + WORDS}),
        "unreadable",
    ),
    hostile(
        "no-package.epub", lambda: archive({"META-INF/container.xml": "<container/>"}), "unreadable"
    ),
    hostile("braces.rtf", lambda: b"{\\rtf1 " + b"{" * 900_000 + WORDS.encode(), "indexed"),
    hostile("links.rtf", lambda: b"{\\rtf1 " + b"{\\field{\\*\\fldinst{" * 100_000, "unreadable"),
    hostile(
        "fonts.rtf", lambda: b"{\\rtf1{\\fonttbl{\\f1\\fcharset1 " + b"a" * 900_000, "unreadable"
    ),
    hostile("letters.rtf", lambda: b"{\\rtf1\\u99999999 " + WORDS.encode(), "unreadable"),
    hostile("code-page.rtf", lambda: b"{\\rtf1\\ansicpg99999 a\\'ff}", "indexed"),
    hostile("deep.ipynb", lambda: b'{"cells": ' + b"[" * 500_000, "unreadable"),
    hostile(
        "not-as-it-should-be.ipynb",
        lambda: _cells(
            1, {"source": {"a": 1}, "outputs": 4, "cell_type": WORDS}, {"source": WORDS}
        ),
        "indexed",
    ),
    hostile(
        "marks.ipynb", lambda: _cells({"cell_type": "markdown", "source": "[" * 300_000}), "indexed"
    ),
    hostile(
        "times.srt", encoded(lambda: "00:00:01,000 --> 00:00:02,000\n" * 100_000 + WORDS), "indexed"
    ),
    hostile("numbers.srt", encoded(lambda: "1:" * 400_000 + WORDS), "unreadable"),
    hostile(
        "tags.vtt",
        encoded(
            lambda: "00:01.000 --> 00:02.000\n" + "<v " * 300_000 + "{\\" * 300_000 + CANARY[:4]
        ),
        "indexed",
    ),
    hostile("marks.rst", encoded(lambda: "*a " * 20_000 + WORDS), "indexed"),
    hostile("names.rst", encoded(lambda: ("|a " * 150 + "\n\n") * 20 + WORDS), "indexed"),
    hostile(
        "deep.rst", encoded(lambda: "".join(" " * n + "* a\n\n" for n in range(300))), "indexed"
    ),
    hostile(
        "reads-a-file.rst",
        lambda: b".. include:: /etc/passwd\n\n.. raw:: html\n   :file: /etc/passwd\n\nNoon.",
        "indexed",
    ),
    hostile("fences.adoc", encoded(lambda: "----\n" * 50_000 + WORDS), "indexed"),
    hostile("marks.adoc", encoded(lambda: "*a" * 100_000 + "link:" * 20_000 + WORDS), "indexed"),
    hostile("reads-a-file.tex", lambda: b"\\input{/etc/passwd} " + WORDS.encode(), "indexed"),
    hostile("open-tables.tex", encoded(lambda: "\\begin{tabular}{l}" * 5_000 + WORDS), "indexed"),
    hostile("braces.tex", encoded(lambda: "{" * 200_000 + WORDS), "indexed"),
    hostile("dollars.tex", encoded(lambda: "$ " * 200_001 + WORDS), "indexed"),
    hostile(
        "laughs.tex",
        encoded(lambda: "\\newcommand{\\a}{" + "x" * 90 + "}" + "\\a " * 20_000),
        "indexed",
    ),
    hostile("one-line.js", encoded(lambda: "a b(" * 400_000), "indexed"),
)
