"""Read LaTeX: its structure by its commands, the text within by pylatexenc."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache, partial
from typing import Any

from pylatexenc import latex2text, latexwalker

from app.core.types import ParsedDocument
from app.ingest.parsers.blocks import Block, Cell, lowered, raised, write
from app.ingest.parsers.formulas import formula
from app.ingest.parsers.sniffing import decode

_COMMENT = re.compile(r"(?<!\\)((?:\\\\)*)%[^\n]*\n?[ \t]*")
_VERBATIM = re.compile(
    r"\\(begin|end)\{(verbatim|lstlisting|minted|Verbatim)\*?\}(?:\[[^\]\n]{0,200}\])?"
    r"(?:\{\w+\})?\n?"
)
_FORMULAS = "equation align gather multline displaymath math eqnarray alignat flalign".split()
_LISTS = {"itemize": "-", "enumerate": "1", "description": "", "thebibliography": ""}
_TABLES = "tabular tabularx tabulary longtable array".split()
_LEVELS = {
    name: level
    for level, names in enumerate(
        ("part chapter", "section", "subsection", "subsubsection", "paragraph", "subparagraph"), 1
    )
    for name in names.split()
}
_OPTION = r"(?:\[[^\]\n]{0,200}\])?"
_ARGUMENT = r"\{((?:[^{}]|\{(?:[^{}]|\{[^{}]*\})*\})*)\}"
"""What stands in braces, with two more within one another."""
_STEP = re.compile(
    rf"\\(?P<heading>{'|'.join(_LEVELS)})\*?(?![a-zA-Z]){_OPTION}{_ARGUMENT}"
    rf"|\\caption\*?{_OPTION}{_ARGUMENT}"
    rf"|\\begin\{{(?P<formula>(?:{'|'.join(_FORMULAS)})\*?)\}}|(?P<display>\\\[|\$\$)"
    rf"|\\begin\{{(?P<table>{'|'.join(_TABLES)})\*?\}}"
    r"|\\(?P<side>begin|end)\{(?P<name>[a-zA-Z]{1,30})\*?\}(?:\[[^\]\n]{0,200}\])?"
    r"|\\(?P<item>item)(?![a-zA-Z])[ \t]*(?:\[(?P<label>[^\]\n]*)\])?"
    r"|\\bibitem(?:\[[^\]\n]{0,200}\])?\{(?P<key>[^{}\n]*)\}"
    r"|(?P<blank>\n[ \t]*\n\s*|\\par(?![a-zA-Z])|\\maketitle)"
    r"|\ufde3(?P<code>\d+)\ufde3"
)
_TITLE, _DATE, _AUTHOR = (
    re.compile(rf"\\{name}{_OPTION}{_ARGUMENT}") for name in ("title", "date", "author")
)
_MATH = re.compile(r"(?<!\\)\$([^$]{1,2000})\$|\\\((.{1,2000}?)\\\)", re.DOTALL)
_FOOTNOTE = re.compile(rf"\\(?:footnote|thanks){_OPTION}{_ARGUMENT}")
_CITE = re.compile(
    r"~?\\(?:no|auto|paren|text|foot)?cite[a-z]*\*?(?:\[[^\]\n]{0,200}\])*\{([^{}]*)\}"
)
_REFERENCE = re.compile(r"\\(?:eq|auto|page|c|C|name)?ref\*?\{([^{}]*)\}")
_UNSEEN = re.compile(
    r"\\(?:label|vspace|hspace|includegraphics|bibliography|bibliographystyle|input|include|index"
    r"|pagestyle|thispagestyle|setlength|addtolength|setcounter|usepackage|cellcolor|rowcolor)\*?"
    r"(?:\[[^\]\n]{0,200}\])*\{[^{}]*\}(?:\{[^{}]*\})?|\\(?:centering|noindent|hline|toprule"
    r"|midrule|bottomrule|small|large|footnotesize|clearpage|newpage|tableofcontents|appendix)"
    r"(?![a-zA-Z])|\\(?:cline|cmidrule)(?:\([^()]*\))?\{[^{}]*\}"
)
_SCRIPT = re.compile(r"\\text(super|sub)script\{([^{}]*)\}")
_MACRO = re.compile(
    rf"\\(?:(?:re)?newcommand|providecommand|DeclareRobustCommand)\*?\s*\{{?\\([a-zA-Z]+)\}}?"
    rf"(?:\s*\[(\d)\])?\s*{_ARGUMENT}"
)
_NEXT_ARGUMENT = re.compile(r"\s*" + _ARGUMENT)
_PLACE = re.compile(r"#(\d)")
_SPAN = re.compile(r"\s*\\multi(column|row)\{([^{}]*)\}\{[^{}]*\}" + _ARGUMENT)
_WRAPPED = re.compile(
    r"\\(?:emph|text(?:bf|it|tt|sc|sf|rm|up|sl)?|underline|mbox|url)\{([^{}\\]*)\}"
)
"""Most of the commands within prose; pylatexenc reads 30 thousand characters a second."""
_ESCAPED = re.compile(r"(?<!\\)((?:\\\\)*)\\([%&#_$])")
_MARKED = re.compile(r"[\\{}~`$]|''|--")
_COMMAND = re.compile(r"\\[a-zA-Z]+\*?|[{}]")
_KEPT = re.compile("\ufde0(\\d+)\ufde1")
_NOT_READ = {
    "includegraphics": "pictures",
    "input": "files that it includes",
    "include": "files that it includes",
    "bibliography": "the bibliography",
}
_YEAR = re.compile(r"\b(1[89]\d\d|20\d\d)\b")
_LONGEST_MACRO = 200
_MOST_EXPANSIONS = 3
"""Commands of the document within one another."""
_MOST_GROWTH = 4
"""How often longer than the source the text may become."""
_LONGEST = 20_000
"""Characters of a paragraph that commands are read in."""


def parse_latex(content: bytes, *_: object) -> ParsedDocument:
    """Return a LaTeX document without its preamble and comments; formulas are lines of text.

    Commands that it defines itself stand for their text, quantities of siunitx for what they print.
    """
    source, warnings = decode(content)
    source = source.replace("\r\n", "\n").replace("\r", "\n")
    codes: list[str] = []

    source = _without_comments(source, codes)
    front, begun, body = source.partition("\\begin{document}")
    body = body.partition("\\end{document}")[0] if begun else source
    body = _printed(_expanded(body, _MACRO.findall(front if begun else source)))
    title, date = (
        _plain(_FOOTNOTE.sub("", found[1])) if (found := command.search(source)) else ""
        for command in (_TITLE, _DATE)
    )
    author = _AUTHOR.search(source)
    said = _FOOTNOTE.sub("", author[1]) if author else ""
    people = re.split(r"\\and(?![a-zA-Z])|\\AND|,|\band\b", said)
    names_ = [_plain(one.split("\\\\")[0]) for one in people]
    year = _YEAR.search(date)
    unread = dict.fromkeys(
        text for name, text in _NOT_READ.items() if re.search(rf"\\{name}\b", body)
    )
    return write(
        _Reader(codes).blocks(body, title),
        "latex",
        title=title or None,
        authors=[name for name in names_ if name],
        year=int(year[1]) if year else None,
        warnings=(*warnings, *([f"not read: {', '.join(unread)}"] if unread else [])),
    )


def _expanded(body: str, defined: list[tuple[str, str, str]]) -> str:
    """Return a body with the commands that the document defines as their text."""
    macros = {
        name: (int(count or 0), text)
        for name, count, text in defined
        if len(text) <= _LONGEST_MACRO
    }
    if not macros:
        return body
    names = "|".join(sorted(macros, key=len, reverse=True))
    pattern = re.compile(rf"\\({names})(?![a-zA-Z])")
    most = _MOST_GROWTH * len(body)
    for _ in range(_MOST_EXPANSIONS):
        parts: list[str] = []
        at = 0
        for found in pattern.finditer(body):
            if found.start() < at:
                continue  # within the argument of another
            count, text = macros[found[1]]
            given, end = _arguments(body, found.end(), count)
            if len(given) == count:
                filled = _PLACE.sub(partial(_argument, given), text)
                parts += [body[at : found.start()], filled]
                at = end if count else end + 2 * body.startswith("{}", end)
        if not parts or sum(map(len, parts)) > most:
            break
        body = "".join([*parts, body[at:]])
    return body


def _arguments(tex: str, at: int, count: int) -> tuple[list[str], int]:
    """Return up to so many arguments that stand from a place on, and where they end."""
    given: list[str] = []
    while len(given) < count and (found := _NEXT_ARGUMENT.match(tex, at)):
        given.append(found[1])
        at = found.end()
    return given, at


def _argument(given: list[str], place: re.Match[str]) -> str:
    at = int(place[1]) - 1
    return given[at] if 0 <= at < len(given) else ""


def _without_comments(source: str, codes: list[str]) -> str:
    """Return the source without comments; what is printed as typed goes into `codes`."""
    parts: list[str] = []
    at = 0
    opened: re.Match[str] | None = None
    for edge in _VERBATIM.finditer(source):
        if opened is None and edge[1] == "begin":
            opened = edge
        elif opened is not None and edge[1] == "end" and edge[2] == opened[2]:
            text = _COMMENT.sub(r"\1", source[at : opened.start()])
            parts += [text, f"\ufde3{len(codes)}\ufde3"]
            codes.append(source[opened.end() : edge.start()])
            opened, at = None, edge.end()
    return "".join([*parts, _COMMENT.sub(r"\1", source[at:])])


class _Reader:
    """Cuts a body at its commands of structure."""

    def __init__(self, codes: list[str]) -> None:
        self._codes = codes
        self._lists: list[tuple[str, int]] = []
        self._mark: str | None = None
        self._quotes = 0

    def blocks(self, body: str, title: str) -> Iterator[Block]:
        if title:
            yield Block("heading", title, level=1)
        at = 0
        missing: set[str] = set()
        while found := _STEP.search(body, at):
            yield from self._prose(body[at : found.start()])
            at = found.end()
            closer = _closer(found)
            end = body.find(closer, at) if closer and closer not in missing else -1
            if end >= 0:
                yield _inside(found, body[at:end])
                at = end + len(closer)
            elif closer:
                missing.add(closer)
            else:
                yield from self._step(found)
        yield from self._prose(body[at:])

    def _step(self, found: re.Match[str]) -> Iterator[Block]:
        if found["heading"]:
            yield Block("heading", _plain(found[2]), level=_LEVELS[found["heading"]])
        elif found[3] is not None:
            yield Block("caption", _plain(found[3]))
        elif found["code"]:
            yield Block("code", self._codes[int(found["code"])])
        elif found["item"] or found["key"]:
            self._mark = self._next(_plain(found["label"] or found["key"] or ""))
        elif found["side"]:
            yield from self._environment(found["side"] == "begin", found["name"])

    def _next(self, label: str) -> str:
        kind, count = self._lists.pop() if self._lists else ("-", 0)
        self._lists.append((kind, count + 1))
        return label or (f"{count + 1}." if kind == "1" else "-")

    def _environment(self, begins: bool, name: str) -> Iterator[Block]:
        if name in _LISTS and begins:
            self._lists.append((_LISTS[name], 0))
        elif name in _LISTS and self._lists:
            self._lists.pop()
        elif name in ("quote", "quotation"):
            self._quotes = max(0, self._quotes + (1 if begins else -1))
        elif name == "abstract" and begins:
            yield Block("heading", "Abstract", level=2)

    def _prose(self, text: str) -> Iterator[Block]:
        notes = [_plain(one[1]) for one in _FOOTNOTE.finditer(text)]
        plain = _plain(_FOOTNOTE.sub("", text))
        if plain and self._mark is not None:
            mark, self._mark = self._mark, None
            yield Block("item", plain, mark=mark, level=max(len(self._lists) - 1, 0))
        elif plain:
            yield Block("quote" if self._quotes else "paragraph", plain)
        for note in notes:
            yield Block("footnote", note)


def _closer(found: re.Match[str]) -> str:
    """Return what ends a formula or table; nothing of other steps."""
    if found["table"]:
        return found[0].replace("begin", "end")
    if found["formula"]:
        return f"\\end{{{found['formula']}}}"
    return {"\\[": "\\]", "$$": "$$"}.get(found["display"] or "", "")


def _inside(found: re.Match[str], tex: str) -> Block:
    if found["table"]:
        return Block("table", rows=_rows(tex))
    return Block("paragraph", formula(_UNSEEN.sub("", tex)) if tex.strip() else "")


def _rows(tex: str) -> list[list[Cell]]:
    tex = re.sub(
        r"\A(?:\[[^\]\n]{0,200}\])?" + _ARGUMENT + r"(?:" + _ARGUMENT + ")?", "", tex.strip()
    )
    rows = []
    for line in re.split(r"\\\\(?:\[[^\]\n]{0,200}\])?|\\tabularnewline", tex):
        cells = []
        for cell in re.split(r"(?<!\\)&", line):
            span = _SPAN.match(cell)
            width = int(span[2]) if span and span[2].isdigit() else 1
            if span and span[1] == "column":
                cells.append(Cell(_plain(span[3]), columns=width))
            else:
                cells.append(Cell(_plain(span[3] if span else cell), rows=width))
        rows.append(cells)
    return rows


def _plain(tex: str) -> str:
    """Return the text of a paragraph on one line."""
    if not tex.strip():
        return ""
    formulas: list[str] = []

    def kept(text: str) -> str:
        formulas.append(text)
        return f"\ufde0{len(formulas) - 1}\ufde1"

    def keep(found: re.Match[str]) -> str:
        tex = found[1] or found[2]
        return kept(formula(tex) if tex.strip() else "")

    text = _UNSEEN.sub("", _MATH.sub(keep, tex))
    text = _ESCAPED.sub(lambda one: one[1] + kept(one[2]), text)
    text = _REFERENCE.sub(r"\1", _CITE.sub(r" [\1]", text))
    text = _SCRIPT.sub(lambda one: (raised if one[1] == "super" else lowered)(one[2]), text)
    for _ in range(3):  # within one another
        text = _WRAPPED.sub(r"\1", text)
    text = text.replace("~", " ")
    if _MARKED.search(text):
        text = _read(text.replace("\\\\", " "))
    text = _KEPT.sub(lambda one: formulas[int(one[1])], text)
    return " ".join(text.split())


def _read(tex: str) -> str:
    walked, texts = _contexts()
    if len(tex) <= _LONGEST:
        try:
            walker = latexwalker.LatexWalker(tex, latex_context=walked, tolerant_parsing=True)
            reader = latex2text.LatexNodes2Text(latex_context=texts, math_mode="text")
            return str(reader.nodelist_to_text(walker.get_latex_nodes()[0]))
        except (RecursionError, latexwalker.LatexWalkerError, IndexError, ValueError):
            pass  # without its commands, then
    return _COMMAND.sub("", tex)


@cache
def _contexts() -> tuple[Any, Any]:
    return latexwalker.get_default_latex_context_db(), latex2text.get_default_latex_context_db()


# Quantities of siunitx, and signs, as they are printed.

_QUANTITY = re.compile(
    r"\\(SI|qty|num|si|unit|ang|SIrange|qtyrange|numrange|SIlist|qtylist|numlist|qtyproduct"
    r"|numproduct)(?![a-zA-Z])(?:\[[^\]\n]{0,200}\])?"
)
_HAS_UNIT = frozenset("SI qty SIrange qtyrange SIlist qtylist qtyproduct".split())
_SIGNS = {
    **dict.fromkeys(("euro", "texteuro", "EUR", "geneuro"), "\u20ac"),
    **dict.fromkeys(("pounds", "textsterling", "pound"), "\u00a3"),
    "textyen": "\u00a5",
    "textcent": "\u00a2",
    "textdollar": "\\$",
    "textperthousand": "\u2030",
    "textdegree": "\u00b0",
    "textcelsius": "\u00b0C",
    "textmu": "\u00b5",
    "textohm": "\u03a9",
    "textpm": "\u00b1",
    "texttimes": "\u00d7",
    "textonehalf": "\u00bd",
}
_SIGN = re.compile(rf"\\({'|'.join(_SIGNS)})(?![a-zA-Z])(?:\{{\}}|[ \t]+(?=\d))?")
_PREFIXES = dict(
    zip(
        "yocto zepto atto femto pico nano micro milli centi deci deca hecto kilo mega giga tera"
        " peta exa zetta yotta".split(),
        "y z a f p n \u00b5 m c d da h k M G T P E Z Y".split(),
        strict=True,
    )
)
_UNITS = dict(
    one.split("=")
    for one in (
        "metre=m meter=m gram=g kilogram=kg second=s ampere=A kelvin=K mole=mol candela=cd watt=W"
        " joule=J newton=N pascal=Pa volt=V ohm=\u03a9 hertz=Hz litre=L liter=L minute=min hour=h"
        " day=d degree=\u00b0 celsius=\u00b0C degreeCelsius=\u00b0C percent=\\% tonne=t farad=F"
        " coulomb=C henry=H tesla=T weber=Wb siemens=S lumen=lm lux=lx becquerel=Bq gray=Gy"
        " sievert=Sv katal=kat hectare=ha decibel=dB electronvolt=eV astronomicalunit=au dalton=Da"
        " arcminute=\u2032 arcsecond=\u2033 radian=rad steradian=sr byte=B um=\u00b5m"
    ).split()
)
_UNIT_STEP = re.compile(r"\\([a-zA-Z]+)(?:\{([^{}]*)\})?|\^\{?([^{}\\^]+)\}?|([^\\^.~\s{}]+)")
_BEFORE = {"square": "\u00b2", "cubic": "\u00b3"}
_BEHIND = {"squared": "\u00b2", "cubed": "\u00b3"}


def _printed(tex: str) -> str:
    """Return TeX with quantities and signs as they are printed: `3 to 5 kW`, `340 L/min`."""
    parts: list[str] = []
    at = 0
    for found in _QUANTITY.finditer(tex):
        name = found[1]
        numbers = 0 if name in ("si", "unit") else 2 if name.endswith("range") else 1
        wanted = numbers + (name in _HAS_UNIT or not numbers)
        given, end = _arguments(tex, found.end(), wanted)
        if found.start() < at or len(given) < wanted:
            continue
        unit = _unit(given[-1]) if wanted > numbers else ""
        said = _amounts(name, given[:numbers])
        gap = " " if said and unit and unit != "\u00b0" else ""
        parts += [tex[at : found.start()], said + gap + unit]
        at = end
    return _SIGN.sub(lambda one: _SIGNS[one[1]], "".join([*parts, tex[at:]]))


def _amounts(name: str, numbers: list[str]) -> str:
    if name.endswith("range"):
        return " to ".join(map(_amount, numbers))
    if name.endswith("list"):
        return ", ".join(map(_amount, numbers[0].split(";")))
    if name.endswith("product"):
        return " \u00d7 ".join(map(_amount, numbers[0].split("x")))
    if name == "ang":
        parts = zip(numbers[0].split(";"), "\u00b0\u2032\u2033", strict=False)
        return "".join(f"{_amount(one)}{sign}" for one, sign in parts if one)
    return "".join(map(_amount, numbers))


def _amount(text: str) -> str:
    power = re.sub(r"(?<=\d)[eEdD](?=[+-]?\d)", " \u00d7 10^", text.strip())
    power = re.sub(r"\A(?=10\^)|\A[eE](?=[+-]?\d)", "", power)
    return power.replace("+-", " \u00b1 ").replace("\\pm", " \u00b1 ")


def _unit(tex: str) -> str:
    """Return a unit as it is printed, of the names of siunitx or as it is written."""
    made = prefix = power = ""
    for name, argument, raised_to, plain in _UNIT_STEP.findall(tex):
        if name in _PREFIXES:
            prefix = _PREFIXES[name]
        elif name in _BEFORE:
            power = _BEFORE[name]
        elif name == "per":
            made = f"{made or '1'}/"
        elif name in _BEHIND:
            made += _BEHIND[name]
        elif raised_to or name in ("tothe", "raiseto"):
            made += f"^{raised_to or argument}"
        else:
            gap = "" if not made or made.endswith("/") else " "
            made += f"{gap}{prefix}{_UNITS.get(name, name or plain)}{power}"
            prefix = power = ""
    return made
