"""Wikitext templates as the text that a reader sees in their place.

A dump holds the calls of templates, not what they do. Kinds that numbers, dates, names and lists
are written with are known by rule; boxes of named values become fields; any other template in
running text gives its plain arguments, so that no sentence has a hole.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NamedTuple

from app.core.dates import MONTHS
from app.ingest.parsers.blocks import lowered, raised

FIELD, LABEL_END, LINE, BAR = "\ue001", "\ue002", "\ue003", "\ue004"
"""Begin a line that is a field, end its label, break a line within its value, stand for a bar that
is no separator: private-use characters, taken out of the source beforehand."""


class Call(NamedTuple):
    """One use of a template, its inner ones resolved."""

    raw: str
    """The name as written."""
    values: list[str]
    """Arguments without a name, in order."""
    named: dict[str, str]
    is_alone: bool
    """Has its lines to itself: a box or a notice, not running text."""

    def first(self, *keys: str) -> str:
        """Return the first argument that is not blank: of these names, then without a name."""
        return next(filter(None, map(self.named.get, keys)), "") or (self.values or [""])[0]


# Dates and times.

_RANGE = "\u2013"
_YEAR = re.compile(r"\d{3,4}\Z")
_DIGITS = re.compile(r"\d{1,2}\Z")


def _date(parts: list[str], named: dict[str, str]) -> str:
    """Return `1961|4|9` as April 9, 1961; with df=y the day comes first."""
    if not parts or not _YEAR.match(parts[0]):
        return " ".join(parts)
    year, month, day, rest = parts[0], "", "", parts[1:]
    if rest and _DIGITS.match(rest[0]) and 1 <= int(rest[0]) <= 12:
        month = MONTHS[int(rest.pop(0)) - 1].capitalize()
        if rest and _DIGITS.match(rest[0]):
            day = str(int(rest.pop(0)))
    elif rest and rest[0].isalpha():
        month = rest.pop(0)
        day = rest.pop(0) if rest and _DIGITS.match(rest[0]) else ""
    time: list[str] = []
    while rest and _DIGITS.match(rest[0]):
        time.append(rest.pop(0))
    if day and named.get("df", "n")[:1] == "y":
        shown = f"{day} {month} {year}"
    else:
        shown = f"{month} {day}, {year}" if day else f"{month} {year}".strip()
    shown = f"{':'.join(time)}, {shown}" if time else shown
    return f"{shown} {_date(rest, named)}" if rest else shown


def _years(begin: list[str], end: list[str]) -> int | None:
    """Return whole years between two dates; None if they are not numbers."""
    if not all(map(str.isdecimal, [*begin, *end])) or len(begin) != 3 or len(end) != 3:
        return None
    (year, *early), (last, *late) = map(int, begin), map(int, end)
    return last - year - (late < early)


def _death(call: Call) -> str:
    age = _years(call.values[3:6], call.values[:3])
    shown = _date(call.values[:3] if age is not None else call.values[:1], call.named)
    return f"{shown} (aged {age})" if age is not None else shown


def _age(call: Call) -> str:
    """Return the years between two dates, or the two; without the second the first."""
    begin, end = call.values[:3], call.values[3:6]
    age = _years(begin, end) if call.raw.lower() in ("age", "age in years", "ayd") else None
    dates = [_date(each, call.named) for each in (begin, end) if each]
    return f" {_RANGE} ".join(dates) if age is None else str(age)


def _as_of(call: Call) -> str:
    word = "Since" if "since" in call.named else "As of"
    shown = f"{word} {_date(call.values, call.named | {'df': call.named.get('df', 'y')})}"
    if call.named.get("bare"):
        shown = shown.partition(" of ")[2] or shown
    return call.named.get("alt") or (shown[:1].lower() + shown[1:] if "lc" in call.named else shown)


def _clock(call: Call) -> str:
    if call.values and not call.values[0].lstrip("+-\u2212").isdecimal():
        return _ship(call)
    return " ".join(f"{value}{unit}" for value, unit in zip(call.values, "hms", strict=False))


# Numbers, quantities and places.

_POWERS = {"e3": "thousand ", "e6": "million ", "e9": "billion ", "e12": "trillion "}
_RANGE_WORDS = frozenset("- \u2013 to and or by x \xd7 + to(-) and(-) \xb1 +/-".split())
_UNITS = {"C": "\xb0C", "F": "\xb0F", "sqmi": "sq mi", "sqft": "sq ft", "ST": "short tons"}
_SQUARE = re.compile(r"\A([a-z]{1,2})([23])\Z")
_NUMBER = re.compile(r"[+\-\u2212]?[\d.,/+]*\d\Z")
_MEASURES = {
    "duration": {"h": "h", "m": "min", "s": "s"},
    "height": dict(zip(*["m cm ft in".split()] * 2, strict=True)),
}


def _unit(code: str) -> str:
    if code[:2] in _POWERS or code[:3] in _POWERS:
        power = code[:2] if code[:2] in _POWERS else code[:3]
        return _POWERS[power] + _unit(code[len(power) :])
    if square := _SQUARE.match(code):
        return square[1] + raised(square[2])
    return _UNITS.get(code, code)


def _quantity(call: Call) -> str:
    """Return a `convert` as written: `44|e6acre|km2` is 44 million acre, `5|ft|8|in` 5 ft 8 in."""
    parts: list[str] = []
    at, values = 0, call.values
    while at < len(values) and _NUMBER.match(values[at]):
        shown = values[at]
        while at + 2 < len(values) and values[at + 1] in _RANGE_WORDS:
            shown, at = f"{shown} {values[at + 1]} {values[at + 2]}", at + 2
        unit = values[at + 1] if at + 1 < len(values) else ""
        if parts and (not unit or _NUMBER.match(unit)):
            break  # digits to round to
        parts.append(f"{shown} {_unit(unit)}".strip())
        at += 2
    return " ".join(parts) or " ".join(values[:2])


def _measure(call: Call) -> str:
    units = _MEASURES[call.raw.lower()]
    shown = " ".join(f"{value} {units[key]}" for key, value in call.named.items() if key in units)
    return shown or call.first()


def _value(call: Call) -> str:
    r"""Return the arguments of `val`: `0.5|0.1|e=-3|u=mm` is 0.5\xb10.1\xd710^-3 mm."""
    named = call.named
    shown = "\xb1".join(call.values[:2])
    if len(call.values) > 2:
        shown = f"{call.values[0]} (+{call.values[1].lstrip('+')}, -{call.values[2].lstrip('-')})"
    power = f"\xd710^{named['e']}" if named.get("e") else ""
    return f"{shown}{power} {_unit(named.get('u') or named.get('ul') or '')}".strip()


def _place(call: Call) -> str:
    r"""Return a `coord` as a place: `30|12|N|74|7|W` is 30\xb012\u2032N 74\xb07\u2032W."""
    display = call.named.get("display", "")
    if ("title" in display and "inline" not in display) or not call.first():
        return ""
    parts: list[str] = []
    numbers: list[str] = []
    for value in call.values[:8]:
        if value in {"N", "S", "E", "W"}:
            parts.append(
                "".join(map("".join, zip(numbers, "\xb0\u2032\u2033", strict=False))) + value
            )
            numbers = []
        else:
            numbers.append(value)
    return " ".join(parts) or ", ".join(numbers[:2])


def _fraction(call: Call) -> str:
    values = call.values[-3:]
    if len(values) == 1:
        return f"1/{values[0]}"
    return f"{values[0]} {values[1]}/{values[2]}" if len(values) == 3 else "/".join(values)


def _chemical(call: Call) -> str:
    """Return `SO|4|2-` as SO4^2-."""
    return "".join(
        raised(value) if value[-1:] in ("+", "-", "\u2212") and value[:-1].isdecimal() | (at > 0)
        else value
        for at, value in enumerate(call.values)
    )  # fmt: skip


# Words, names and lists.

_BULLET = re.compile(r"^[*#:;]+[ \t]*", re.MULTILINE)


def _list(call: Call) -> str:
    entries = [
        _BULLET.sub("", line).strip()
        for value in call.values
        for line in (value.split("\n") if _BULLET.search(value) else [value])
    ]
    entries = list(filter(None, entries))
    if call.is_alone:
        return "\n" + "\n".join(f"* {entry}" for entry in entries) + "\n"
    return ", ".join(entries)


def _quote(call: Call) -> str:
    named = call.named
    author = named.get("author") or named.get("sign") or "".join(call.values[1:2])
    source = named.get("source") or named.get("title") or ""
    shown = call.first("text", "quote", "content")
    return f"{shown} \u2014 {', '.join(filter(None, (author, source)))}" if author else shown


def _ship(call: Call) -> str:
    name, *number = filter(None, call.values[:2])
    return f"{call.raw} {name}" + "".join(f" ({part})" for part in number)


def _spoken(call: Call) -> str:
    sounds = [value for value in call.values if value not in {"lang", "pron", "us", "uk", "also"}]
    return f"/{''.join(sounds)}/"


def _density(call: Call) -> str:
    """Return people, area and unit of `pop density` without the division."""
    people, area, unit = [*call.values, "", "", ""][:3]
    return f"{people} per {area} {_unit(unit)}"


def _bar(call: Call) -> str:
    label, _, share = [*call.values, "", "", ""][:3]
    return _field(label, f"{share}%")


def _glossed(call: Call) -> str:
    """Return `Harbour Line|\u6e2f\u7dda|Minato-sen` with the rest in brackets."""
    word, *rest = filter(None, [*call.values[:1], *call.values[1:3]])
    return f"{word} ({', '.join(rest)})" if rest else word


def _marriage(call: Call) -> str:
    years = _RANGE.join(filter(None, call.values[1:3]))
    return f"{call.first()} ({years})" if years else call.first()


def _pairs(call: Call) -> str:
    values = [value for value in call.values if value]
    return "".join(map(_field, values[::2], values[1::2]))


def _second(call: Call) -> str:
    return call.values[1] if len(call.values) > 1 else call.first("text")


def _named_words(call: Call) -> str:
    words = [value for key, value in call.named.items() if key not in {"first", "labels", "links"}]
    return ", ".join(filter(None, [*call.values, *words]))


_RULES: dict[str, Callable[[Call], str]] = {
    name: rule
    for names, rule in (
        (
            "nowrap|nobr|nobold|noitalic|small|smaller|big|bigger|larger|em|strong|mvar|var|math|"
            "abbr|tooltip|ill|interlanguage link|sc|smallcaps|small caps|vanchor|visible anchor|"
            "center|keypress|key press|bold|italic|sic|nts|formatnum|hebrew|url|flag|flagcountry|"
            "flagu|fb|nft|railgauge|track gauge|chem2|ipa|lang-zh-hans|official url|linktext|"
            "fraktur|native name list|angle bracket",
            lambda call: call.first("text", "content"),
        ),
        ("transl|transliteration|audio|sort|color|colored text|font color|resize|rtl-lang|script|"
         "pre2|longitem|font|size|nastaliq|hidden",
         lambda call: (call.values or [call.first("text")])[-1]),
        ("lang|langx|native name|native phrase|legend|legend inline", _second),
        ("frac|fraction|sfrac|percentage|ratio", _fraction),
        ("convert|cvt|convinfobox", _quantity),
        ("duration|height", _measure),
        ("val", _value),
        ("coord", _place),
        ("chem", _chemical),
        ("hms", _clock),
        ("uss|ss|mv|rms|ms|hmas|hmcs|usns|sms|ins|jds|js|us", _ship),
        ("flatlist|plainlist|plain list|ubl|ublist|unbulleted list|vunblist|hlist|bulleted list|"
         "flowlist|collapsible list|startflatlist|ordered list|unordered list|cslist", _list),
        ("quote|blockquote|cquote|bquote|quotation|quote box|pull quote|rquote", _quote),
        ("columns-list|div col|poem|poemquote|block indent|collapse|centered|indent",
         lambda call: f"\n{call.first('content', 'text')}\n"),
        ("nihongo|nihongo2|nihongo3|nihongo foot|korean name", _glossed),
        ("zh|lang-zh|korean|chinese|ko", _named_words),
        ("nbsp|spaces", lambda _: " "),
        ("marriage", _marriage),
        ("pop density", _density),
        ("bar percent", _bar),
        ("fossil range|long fossil range|geological range|season|ayd range",
         lambda call: f" {_RANGE} ".join(filter(None, call.values[:2]))),
        ("oldstyledate|oldstyledatedy", lambda call: "{} {} ({})".format(*call.values[:3])
         if len(call.values) > 2 else " ".join(call.values)),
        ("historical populations|historical population", _pairs),
        ("birth date|birth date and age|birth-date|birth-date and age|bda|dob|birthdate|date|dts|"
         "start date|end date|start date and age|start-date|end-date|film date|release date|"
         "death date|death-date|birth year and age|birth year|death year|date table sorting|"
         "launch date|opening date|dateline|release-date",
         lambda call: _date(call.values, call.named)),
        ("death date and age|death-date and age|death year and age|dda", _death),
        ("age in years|age|ayd|age in years and months|age in years, months and days|age in days|"
         "age in years and days", _age),
        ("as of|asof|since", _as_of),
        ("ipac-en|ipac-pl|ipac-fr", _spoken),
        ("respell", lambda call: "-".join(call.values)),
        ("e", lambda call: f"\xd710^{call.first()}"),
        ("10^|x10^", lambda call: f"{call.raw[:1].replace('1', '')}\xd710^{call.first()}"),
        ("pow", lambda call: "^".join(call.values[:2])),
        ("sup", lambda call: raised(call.first())),
        ("sub", lambda call: lowered(call.first())),
        ("su", lambda call: raised(call.named.get("p", "")) + lowered(call.named.get("b", ""))),
        ("angbr|angle", lambda call: f"\u27e8{call.first()}\u27e9"),
        ("bartable", lambda call: "".join(call.values[:2])),
        ("ruby", lambda call: "{} ({})".format(*[*call.values, "", ""][:2])),
        ("isbn|issn|oclc|doi|icd10|icd9|omim", lambda call: f"{call.raw.upper()} {call.first()}"),
        ("inflation|clade|chart|family tree|familytree|hs|ntsh|sort name|listen|flagicon|"
         "flagicon image|flagdeco|inflation-fn|gap|pad|clear|anchor|bar box", lambda _: ""),
    )
    for name in names.split("|")
}  # fmt: skip
_SIGNED = {
    "c.": "c.", "ca": "c.", "circa": "c.", "fl.": "fl.", "floruit": "fl.", "r.": "r.",
    "reign": "r.", "b.": "b.", "born": "b.", "d.": "d.", "died": "d.",
}  # fmt: skip
"""Templates of years, and what stands before them."""

_SYMBOLS = {
    "nbsp": " ", "snd": " \u2013 ", "snds": " \u2013 ", "spnd": " \u2013 ", "thinsp": " ",
    "spaced ndash": " \u2013 ", "ndash": "\u2013", "mdash": "\u2014", "mdashb": "\u2014",
    "endash": "\u2013", "emdash": "\u2014", "dash": "\u2013", "spaced mdash": " \u2014 ",
    "'": "'", "'s": "'s", "=": "=", "' \"": "' \"", "\" '": "\" '",
    "!": BAR, "!!": BAR * 2, "!-": f"{BAR}-", "(!": f"{{{BAR}", "!)": f"{BAR}}}", "pipe": "&#124;",
    "dot": " \xb7 ", "middot": "\xb7", "\xb7": " \xb7 ", "bull": " \u2022 ", "\u2022": " \u2022 ",
    "ellipsis": "\u2026", "pi": "\u03c0", "times": "\xd7", "minus": "\u2212", "degree": "\xb0",
    "eqm": "\u21cc", "\\": " / ", "spaces": " ",
    "yes": "Yes", "no": "No", "won": "Won", "nom": "Nominated", "n/a": "N/A", "na": "N/A",
    "tba": "TBA", "tbd": "TBD", "unknown": "Unknown", "none": "None", "sic": "[sic]",
    "partial": "Partial", "pending": "Pending", "nominated": "Nominated", "depends": "Depends",
}  # fmt: skip
"""Templates without arguments that stand for a sign or a word; dropping a space among them would
join two words."""
_COUNTRY = re.compile(r"[A-Z]{3}\Z")
_FUNCTION = re.compile(r"#?[a-z]+\Z")
_FOREIGN = re.compile(r"(lang|ipa)-[a-z]{2,3}(?:-[a-z]+)?\Z")
_MONEY = re.compile(r"(?:[A-Z]{0,3}|[a-z]{0,3})[$\u00a3\u20ac\u00a5\u20b9\u20a9]\Z")
_UNSEEN = re.compile(
    r"(?:v?cite|citation|sfn|harv|efn|refn|note|rp?\Z|ref(?!erend)|main|see|further|details|about"
    r"|for\d?\Z|hatnote|redirect|other |distinguish|use |engvar|short desc|authority|portal"
    r"|commons|wiki|sister|navbox|sidebar|pp-|toc|col-|colbegin|colend|div |s-|start box|end box"
    r"|succession|dead link|wayback|webarchive|cn\Z|fact\Z|clarify|when\Z|who\Z|which\Z|whom"
    r"|by whom|dubious|disputed|pov|unreferenced|unreliable|better source|failed|page needed"
    r"|relevance|vague|weasel|peacock|original research|or\Z|synth|update|out ?dated|expand"
    r"|multiple issues|cleanup|copy ?edit|stub|orphan|merge|split|good article"
    r"|featured|spoken|no?bots|disambig|dab\Z|geographic location|no ?more|multiple image"
    r"|double image|wide image|image|css|map|dmoz|imdb|youtube|google|gutenberg|librivox"
    r"|internet archive|official website|worldcat"
    r"|cia world|osm|library resources|eb1911|isbn missing|coord missing|contains|default ?sort"
    r"|in our time|books-|findagrave|find a grave|[am]mbox|ambox|tmbox|ombox|userbox|external"
    r"|ouvrage|lien web|literatur|internetquelle|cita |portail|bases|palette|\u00e9bauche"
    r"|navigation).*|.*(?:-stub| stub| icon| topics| needed| inline|box top|box bottom)\Z",
    re.DOTALL,
)
"""Citations, notices, navigation and furniture: a reader of the text does not miss them."""
_BOX = re.compile(r".*box\b|.*(?:taxobox|chembox|drugbox|geobox)|infobox|ficha|info/|\u57fa\u790e")
_LEAST_FIELDS = 4
"""Named values that make a box of a template on lines of its own."""
_LEAST_WORDS = 8
"""A nameless value of so many words is text even where the template stands alone."""
_NOT_TEXT = re.compile(
    r"(?:https?:|//)|#[0-9a-f]{3,8}\Z|\d+(?:x\d+)?px\Z|[\w-]+\s*:\s*[\w#.-]+;?\Z"
    r"|.*\.(?:jpe?g|png|svg|gif|tiff?|ogg|oga|ogv|webm|webp|mp3)\Z",
    re.IGNORECASE | re.DOTALL,
)
_NO_KEY = re.compile(r"[<>\"'\[\]\n]")
_LONGEST_NAME = 100
_HIGHEST_POSITION = 50
"""A larger number before an equals sign is a label, as of a year."""
_FURNITURE = re.compile(
    r"(?:.*(?:size|style|colou?r|align|upright|alt|zoom|pixels)|.+width|.*height px)\d*\Z",
    re.IGNORECASE,
)
_LABELLED = re.compile(r"(.*?)(data|name|date|info)(\d*|_\w*)\Z")
_LABELS = {"data": ("label",), "name": ("title", "type"), "date": ("title",), "info": ("name",)}
_BREAK = re.compile(r"<br\s*/?>|\n", re.IGNORECASE)


def template_text(match: re.Match[str], title: str = "") -> str:
    """Return the text of a template without inner templates, on a page of a title.

    The first group is the template without its braces: name, then arguments after bars.
    """
    raw, *parts = match[1].split("|")
    raw = raw.strip()
    name = raw[:_LONGEST_NAME].lower().replace("_", " ")
    if not parts and (name in _SYMBOLS or name == "pagename"):
        return _SYMBOLS.get(name, title)
    head, colon, _ = name.partition(":")
    if colon and _FUNCTION.match(head):
        return _function(head, [raw[len(head) + 1 :].strip(), *map(str.strip, parts)])
    call = _call(raw, parts, match)
    if name in _SIGNED and parts:
        return f"{_SIGNED[name]} {_RANGE.join(call.values)}"
    if _FOREIGN.match(name):
        return call.first()
    if _MONEY.match(raw):
        return raw + call.first()
    if rule := _RULES.get(name):
        return rule(call) if parts else ""
    if _UNSEEN.match(name):
        return ""
    if _BOX.match(name) or (call.is_alone and len(call.named) >= _LEAST_FIELDS):
        return _fields(call.named)
    return _plain(call) if parts or not _COUNTRY.match(raw) else raw


def _call(raw: str, parts: list[str], match: re.Match[str]) -> Call:
    placed: dict[int, str] = {}
    named: dict[str, str] = {}
    nameless = 0
    for part in parts:
        key, sign, value = part.partition("=")
        key = key.strip()
        if not sign or _NO_KEY.search(key):
            nameless += 1
            placed[nameless] = part.strip()
        elif key.isdecimal() and int(key[:9]) <= _HIGHEST_POSITION:
            placed[int(key)] = value.strip()
        else:
            named[key] = value.strip()
    text, start, end = match.string, match.start(), match.end()
    is_alone = text[start - 1 : start] in ("", "\n") and text[end : end + 1] in ("", "\n")
    if is_alone and (closing := text.find("}}", end)) >= 0:
        is_alone = text.find("{{", end, closing) >= 0  # else it stands within another one
    return Call(raw, [placed[key] for key in sorted(placed)], named, is_alone)


def _plain(call: Call) -> str:
    """Return the words and numbers of a template that is not known."""
    values = [value for value in call.values if value and not _NOT_TEXT.match(value)]
    if not call.is_alone:
        return " ".join(values)
    values = [value for value in values if len(value.split()) >= _LEAST_WORDS]
    return "\n".join(["", *values, ""]) if values else ""


def _fields(named: dict[str, str]) -> str:
    """Return a box as lines; a title or type next to a name is its label."""
    labels: dict[str, str] = {}
    used: set[str] = set()
    for key in named:
        parts = _LABELLED.match(key)
        if parts and (parts[1] or parts[3]):
            for word in _LABELS[parts[2]]:
                at = f"{parts[1]}{word}{parts[3]}"
                if at != key and named.get(at) and FIELD not in named[at]:
                    labels[key] = named[at]
                    used.add(at)
                    break
    return "".join(
        _field(labels.get(key) or key.replace("_", " "), value)
        for key, value in named.items()
        if value and key not in used and not _FURNITURE.match(key) and not _is_file(value)
    )


def _is_file(value: str) -> bool:
    return bool(_NOT_TEXT.match(value)) and not value.startswith(("http", "//"))


def _field(label: str, value: str) -> str:
    """Return lines of a field; those of a box within the value follow as fields of their own."""
    value, inner, rest = value.partition(FIELD)
    value = _BREAK.sub(LINE, value.strip())
    label = _BREAK.sub(" ", label)
    own = f"\n{FIELD}{label[:1].upper()}{label[1:]}{LABEL_END}{value}\n" if value else ""
    return own + (f"\n{inner}{rest}" if inner else "")


def _function(name: str, values: list[str]) -> str:
    """Return the text of a parser function.

    References:
        https://www.mediawiki.org/wiki/Help:Extension:ParserFunctions.
    """
    first, *rest = values
    if name in ("lc", "uc", "lcfirst", "ucfirst"):
        changed = first.lower() if name[0] == "l" else first.upper()
        return changed if len(name) == 2 else changed[:1] + first[1:]
    if name in ("formatnum", "#expr"):
        return first
    if name == "plural":
        return rest[0 if first == "1" else -1] if rest else ""
    if name == "#if":
        return [*rest, "", ""][0 if first else 1]
    if name == "#ifeq":
        return [*rest[1:], "", ""][0 if first == "".join(rest[:1]) else 1]
    if name == "#switch":
        cases = [value.partition("=") for value in rest]
        for at, (case, _, _) in enumerate(cases):
            if case.strip() == first:  # a case without a value takes that of the next one with one
                return next((value.strip() for _, sign, value in cases[at:] if sign), "")
        default = [value for case, sign, value in cases if sign and case.strip() == "#default"]
        last = [case for case, sign, _ in cases[-1:] if not sign]
        return "".join(default or last).strip()
    if name == "template":
        return "".join(rest[:1])
    return ""
