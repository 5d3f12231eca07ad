"""Make false sentences from a true one, each by one exchange, as training pairs for a check.

The word lists here make data. The product does not read them: what it knows about meaning it has
learned. A maker that cannot be sure of grammar or of falsehood makes nothing, so most sentences
give two to five of the kinds in `KINDS`.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterator
from itertools import combinations

KINDS = (
    "row", "number", "unit", "name", "attribution", "role", "order", "direction", "quantifier",
    "modality", "plan_for_fact", "negation",
)  # fmt: skip
Maker = Callable[[str, str], Iterator[tuple[str, str]]]


def exchanges(claim: str, passage: str, rng: random.Random) -> list[tuple[str, str]]:
    """Return false sentences with their kinds, at most one of each kind, in the order of `KINDS`.

    Args:
        claim: One English sentence that the passage states.
        passage: The text that the claim is about; figures, names and cells are taken from it.
        rng: Chooses among the candidates of a kind; equal states give equal sentences.
    """
    found: dict[str, list[str]] = {kind: [] for kind in KINDS}
    negative = _NEGATIVE.search(claim) is not None
    for maker in _OF_NEGATIVE_CLAIMS if negative else _MAKERS:
        for made, kind in maker(claim, passage):
            if made not in (claim, *found[kind]) and made not in passage:
                found[kind].append(made)
    return [(rng.choice(candidates), kind) for kind, candidates in found.items() if candidates]


# Words and their places.

_SUBORDINATE = re.compile(
    r"\b(?:who|whose|whom|which|that|when|whenever|where|if|unless|because|although|though|while|"
    r"whereas|since|until|once|than|what|whatever|whoever|how|why|whether|as|before|after)\b",
    re.IGNORECASE,
)
_NEGATIVE = re.compile(
    r"\b(?:not|no|never|nor|neither|none|nobody|nothing|nowhere|cannot|without|hardly|unless|few|"
    r"rarely|seldom|unable|impossible|forbidden|prohibited)\b|n['\u2019]t\b",
    re.IGNORECASE,
)
_WORD = re.compile(r"[A-Za-z]+(?:[-'\u2019][A-Za-z]+)*")


def _article(word: str) -> str:
    """Return the indefinite article for what begins with `word`."""
    vowel = re.match(
        r"(?:hour|honest|heir|[aeio]|8|11\b|18\b|u(?!ni|s))(?!ne\b|nce\b|u)", word, re.I
    )
    return "an" if vowel else "a"


def _put(text: str, start: int, end: int, new: str) -> str:
    """Return the text with a span exchanged, its capital kept and an article before it fitted."""
    if text[start].isupper() and (start == 0 or new[0].islower()):
        new = new[0].upper() + new[1:]
    before = text[:start]
    if article := re.search(r"\b([Aa])n? $", before):
        before = before[: article.start()] + article[1] + _article(new)[1:] + " "
    return before + new + text[end:]


def _plain(claim: str, word: re.Match[str]) -> bool:
    """Return whether a word may be exchanged: no part of a name, no capital inside the sentence."""
    following = claim[word.end() :]
    return (word[0].islower() or word.start() == 0) and not re.match(r" [A-Z]", following[:2])


def _stems(text: str) -> set[str]:
    return {word.lower()[:5] for word in _WORD.findall(text) if len(word) > 3}


def _clauses(passage: str) -> list[str]:
    return [part for part in re.split(r"[.;:!?](?=\s)|\n|,(?=\s)", passage) if part.strip()]


def _said_of(claim: str, old: str, new: str, passage: str) -> bool:
    """Return whether the passage may say the claim of `new` too: then its exchange is not false."""
    wanted = _stems(claim.replace(old, ""))
    for clause in _clauses(passage):
        if re.search(rf"(?<![\w.,]){re.escape(new)}(?!\w)", clause):
            shared = len(wanted & _stems(clause))
            if wanted <= _stems(clause) or (shared >= 2 and old in clause):
                return True
    return False


# Verbs: the forms that a negation or a plan needs.

_IRREGULAR = {
    base: (past, participle)
    for base, past, participle in (
        line.split()
        for line in (
            "become became become|begin began begun|break broke broken|bring brought brought|"
            "build built built|buy bought bought|catch caught caught|choose chose chosen|"
            "come came come|draw drew drawn|drink drank drunk|drive drove driven|eat ate eaten|"
            "fight fought fought|find found found|fly flew flown|forbid forbade forbidden|"
            "forget forgot forgotten|get got got|give gave given|go went gone|grow grew grown|"
            "hold held held|keep kept kept|know knew known|lead led led|lend lent lent|"
            "lose lost lost|make made made|meet met met|pay paid paid|rise rose risen|"
            "fall fell fallen|run ran run|sell sold sold|send sent sent|shake shook shaken|"
            "sing sang sung|sink sank sunk|sleep slept slept|spend spent spent|"
            "steal stole stolen|swim swam swum|take took taken|teach taught taught|"
            "tell told told|wear wore worn|win won won|write wrote written|withdraw withdrew "
            "withdrawn|overcome overcame overcome|leave left left|stand stood stood|"
            "say said said|see saw seen|speak spoke spoken|think thought thought|have had had"
        ).split("|")
    )
}
_REGULAR = (
    "abolish accept accuse add adjust adopt agree allow announce appear appoint argue arrive "
    "ask attack attend avoid award belong besiege blame borrow burn cancel carry cause change "
    "clean climb close collapse collect compare compensate complain complete connect conquer "
    "consider contain continue convert cook copy create criticise cross damage decide declare "
    "decline decrease defeat defend deliver demand demolish demonstrate deny describe design "
    "destroy develop die disappear discover dismiss divide double dry elect employ encourage "
    "end enjoy enlarge enter equip establish estimate examine expand explain explore export "
    "extend fail fasten fill finance finish fire follow form found fund gain gather govern "
    "grant guard hand harvest heat help hire hope host identify imitate import improve "
    "include increase inherit injure insist inspect install introduce invade invent invest "
    "invite issue join kick kill label land last launch learn lift like limit live load lower "
    "maintain mark marry measure melt mention modernise move multiply nationalise need notice "
    "object obtain occupy offer open operate oppose order organise own pack paint park pass "
    "place plant play pollinate pour praise predict prepare present prevent process produce "
    "promise promote propose protect prove provide publish pull purchase push raise rank rate "
    "reach receive recommend record recover reduce refuse regulate reject release remain "
    "remember remove renew rent reopen repair repeat replace report represent request require "
    "rescue resign resist restore resume retire return reveal review sail save scatter "
    "separate serve settle share shorten sign smoke soften sort sponsor start stay store "
    "study succeed suffer suggest supply support survive suspect suspend test thank touch "
    "trace trade train translate treat try turn type unite unload upgrade use value visit "
    "vote wait walk want warn wash watch weigh widen wire work"
)
_DOUBLED = (
    "admit ban cancel commit control drop equip fit occur permit plan prefer refer ship stop "
    "submit transfer travel"
)
_THIRD = (
    "allows becomes begins belongs brings builds buys carries catches comes consists contains "
    "decides depends eats enters finds follows gets gives goes grows happens helps improves "
    "includes keeps knows learns loses makes occurs pays prevents produces protects provides "
    "receives reduces requires sells sends serves takes teaches tells thinks visits wins writes"
).split()


def _ed(base: str) -> str:
    if base in _DOUBLED.split():
        return base + base[-1] + "ed"
    if base.endswith("e"):
        return base + "d"
    return base[:-1] + "ied" if re.search(r"[^aeiou]y\Z", base) else base + "ed"


def _s(base: str) -> str:
    """Return the third person singular of a verb."""
    if base == "have":
        return "has"
    if re.search(r"(?:s|sh|ch|x|z|o)\Z", base):
        return base + "es"
    return base[:-1] + "ies" if re.search(r"[^aeiou]y\Z", base) else base + "s"


_FORMS = {
    **{base: (_ed(base), _ed(base)) for base in f"{_REGULAR} {_DOUBLED}".split()},
    **_IRREGULAR,
}
_BASE_OF_PAST = {past: base for base, (past, _) in _FORMS.items()}
_BASE_OF_THIRD = {_s(base): base for base in _FORMS if _s(base) in _THIRD}
_PARTICIPLES = {participle for _, participle in _FORMS.values()} | {"been"}
_AMBIGUOUS = {"left", "found", "saw", "led", "spoke", "thought", "had", "felt", "lost", "cut"}


# Rows of a table.

Row = dict[str, str]
_NO_CELL = {"", "-", "none", "no", "yes", "n/a", "all", "free", "daily"}


def rows_of(passage: str) -> list[Row]:
    """Return the rows of Markdown tables and of lines `Label: value | Label: value`."""
    rows: list[Row] = []
    head: list[str] = []
    for line in passage.splitlines():
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
        if len(cells) < 2:
            head = []
        elif all(": " in cell for cell in cells):
            rows.append(dict(cell.split(": ", 1) for cell in cells))
        elif not line.strip().startswith("|") or set(line) <= set("|-: "):
            continue
        elif head:
            rows.append(dict(zip(head, cells, strict=False)))
        else:
            head = cells
    return rows


def _shape(cell: str) -> str:
    """Return what two cells share that fit the same place of a sentence."""
    words = re.sub(r"\b[a-z]+", "a", re.sub(r"[A-Z][\w.]*", "A", cell))
    return re.sub(r"\d[\d,.]*", "0", words)


def _row(claim: str, passage: str) -> Iterator[tuple[str, str]]:
    rows = rows_of(passage)
    for row in rows:
        key, *labels = row
        if not re.search(rf"\b{re.escape(row[key])}\b", claim):
            continue
        for label in labels:
            at = re.search(rf"(?<![\w.,]){re.escape(_figure(row[label]))}(?![\w.,]*\w)", claim)
            if at is None or row[label].lower() in _NO_CELL or _bound(claim, at):
                continue
            for other in rows:
                cell = other.get(label, "")
                mentioned = other.get(key, "") in claim and other is not row
                same = _shape(cell) == _shape(row[label]) and _figure(cell) != _figure(row[label])
                if same and not mentioned and cell.lower() not in _NO_CELL:
                    yield _put(claim, at.start(), at.end(), _figure(cell)), "row"


def _figure(cell: str) -> str:
    """Return the figure of a cell that is a figure and its unit, else the whole cell."""
    alone = re.fullmatch(r"(\d[\d.,]*) ?[^\d\s]{0,12}", cell)
    return alone[1] if alone else cell


# Figures and units.

_FIGURE = re.compile(
    r"(?<![\w.,:/£$€-])(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?(?![\w:/]|[.,]\d|-\d|(?:st|nd|rd|th)\b)"
)
_COUNTS = {
    "two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7, "eight": 8, "nine": 9,
    "ten": 10, "eleven": 11, "twelve": 12, "fifteen": 15, "twenty": 20, "thirty": 30, "forty": 40,
    "fifty": 50, "sixty": 60, "seventy": 70, "eighty": 80, "ninety": 90,
}  # fmt: skip
_COUNT = re.compile(
    rf"\b(?:{'|'.join(_COUNTS)})\b(?!-| (?:thirds|quarters|fifths|or|and a half|hundred|thousand|"
    r"million|dozen|to)\b)",
    re.IGNORECASE,
)
_MONTHS = (
    "January February March April May June July August September October November December"
).split()
_DAYS = "Monday Tuesday Wednesday Thursday Friday Saturday Sunday".split()
_MONTH = rf"(?:{'|'.join(_MONTHS)})"
_BOUND = re.compile(
    r"\b(?:at least|at most|than|over|under|above|below|up to|within|beyond|exceed\w*|as many as|"
    r"as much as|no later|limit of|minimum of|maximum of|until|every|aged|between|to|and)\Z",
    re.IGNORECASE,
)
_OPEN_END = re.compile(
    r" ?(?:to|or|and|-|\u2013) ?\d|(?:\W+\w+)?\s+(?:or|and) (?:more|over|older|under|above|younger|less)\b"
)
_LABEL = re.compile(
    r"\b(?:[A-Z]\w*|pump|room|chapter|page|section|table|figure|version|line|route|plot|number|"
    r"step|class|level|grade|type|article|part|track|gate|bus|tram|force)\Z"
)
_FACTORS = (0.5, 1.5, 2.0, 3.0)
_FRACTIONS = {
    "two thirds": "one third", "one third": "two thirds", "three quarters": "one quarter",
    "one quarter": "three quarters", "a quarter of": "three quarters of",
    "a third of": "two thirds of", "half of": "a quarter of", "twice as": "three times as",
}  # fmt: skip


def _bound(claim: str, at: re.Match[str]) -> bool:
    """Return whether a figure limits a range: another limit may be true as well."""
    return bool(_BOUND.search(claim[: at.start()].rstrip()) or _OPEN_END.match(claim[at.end() :]))


def _noun_after(text: str, end: int) -> str:
    found = re.match(r"\s*(%|[a-z]+(?: cent\b)?)", text[end:])
    return found[1] if found else ""


def _scaled(figure: str, factor: float) -> str:
    """Return a figure times a factor, written as it was: commas, places and round tens."""
    digits = figure.replace(",", "")
    if "." in digits:
        return f"{float(digits) * factor:.{len(digits.split('.')[1])}f}"
    zeros = min(len(digits) - len(digits.rstrip("0")), len(digits) - 1)
    step = 10**zeros
    scaled = max(round(int(digits) * factor / step), 1) * step
    return f"{scaled:,}" if "," in figure else str(scaled)


def _years(figure: str, passage: str, apart: int) -> Iterator[str]:
    for found in re.finditer(r"(?<![\w.,])(?:1\d|20)\d\d(?![\w,])", passage):
        if abs(int(found[0]) - int(figure)) >= apart:
            yield found[0]
    for step in (-60, -34, -18, -9, 9, 18, 34, 60):
        year = str(int(figure) + step)
        if abs(step) >= apart and year not in passage and int(year) <= max(2025, int(figure)):
            yield year


def _dates(claim: str, at: re.Match[str], passage: str) -> list[str] | None:
    """Return other days or years for a figure of a date; None says that it is no date."""
    before, after = claim[: at.start()].rstrip(), claim[at.end() :]
    dated = re.match(rf" {_MONTH}\b", after) or re.search(rf"\b{_MONTH}\Z", before)
    if dated and len(at[0]) < 3:
        return [str(day) for day in (3, 8, 14, 19, 26) if str(day) not in passage]
    if re.fullmatch(r"(?:1\d|20)\d\d", at[0]) and not re.match(r" [a-z]+[^s\W]s\b", after):
        rough = re.search(r"\b(?:about|around|circa)\Z", before)
        told = re.search(rf"\b(?:in|since|of|by|from|after|before|{_MONTH})\Z", before, re.I)
        return list(_years(at[0], passage, 30 if rough else 1)) if rough or told else []
    return None


def _amounts(claim: str, at: re.Match[str], passage: str) -> Iterator[str]:
    """Yield other figures of the passage with the same noun, and multiples of a count."""
    before, noun = claim[: at.start()].rstrip(), _noun_after(claim, at.end())
    numbered = at[0] in ("0", "1") or _LABEL.search(before)
    if numbered or not (noun or re.search(r"[£$€]\Z", before)):
        return
    for other in _FIGURE.finditer(passage):
        if noun and noun == _noun_after(passage, other.end()) and other[0] not in ("0", "1"):
            yield other[0]
    for factor in _FACTORS:
        scaled = _scaled(at[0], factor)
        share = noun in ("%", "percent", "per cent") and float(scaled.replace(",", "")) > 100
        there = re.search(rf"(?<![\w.,]){re.escape(scaled)}(?![\w,])", passage)
        if scaled not in ("0", "1") and not (share or there):
            yield scaled


def _figures(claim: str, passage: str) -> Iterator[tuple[str, str]]:
    for at in _FIGURE.finditer(claim):
        if _bound(claim, at):
            continue
        dates = _dates(claim, at, passage)
        for other in _amounts(claim, at, passage) if dates is None else dates:
            if other not in claim and not _said_of(claim, at[0], other, passage):
                yield _put(claim, at.start(), at.end(), other), "number"


def _counts(claim: str, passage: str) -> Iterator[tuple[str, str]]:
    for at in _COUNT.finditer(claim):
        before = claim[: at.start()].rstrip()
        known = re.search(r"\b(?:the|first|last)\Z", before, re.IGNORECASE)
        if known or _bound(claim, at) or _LABEL.search(before):
            continue
        value = _COUNTS[at[0].lower()]
        for word, count in _COUNTS.items():
            apart = 1.5 <= max(count / value, value / count) <= 4
            if apart and not re.search(rf"\b(?:{word}|{count})\b", passage, re.IGNORECASE):
                yield _put(claim, at.start(), at.end(), word), "number"


def _fractions(claim: str, _: str) -> Iterator[tuple[str, str]]:
    for fraction, other in _FRACTIONS.items():
        for at in re.finditer(rf"\b{fraction}\b", claim, re.IGNORECASE):
            if not _bound(claim, at):
                yield _put(claim, at.start(), at.end(), other), "number"


_UNITS = [
    family.split()
    for family in (
        "seconds minutes hours days weeks months years",
        "second minute hour day week month year",
        "millimetres centimetres metres kilometres miles",
        "millimeters centimeters meters kilometers miles",
        "mm cm m km",
        "square-metres hectares",
        "grams kilograms tonnes",
        "g kg",
        "millilitres litres",
        "euros dollars francs",
        "kilobytes megabytes gigabytes",
        "watts kilowatts megawatts",
        "thousand million billion",
    )
]
_QUANTITY = (
    rf"(?:\d[\d,.]*|\b(?:{'|'.join(_COUNTS)}|\w+ty-\w+|\w+teen|several|hundred|half a))(?: more)?"
)


def _unit(claim: str, _: str) -> Iterator[tuple[str, str]]:
    for family in _UNITS:
        for place, unit in enumerate(family):
            others = [*family[max(place - 2, 0) : place], *family[place + 1 : place + 3]]
            for at in re.finditer(rf"(?<={' '}){unit}\b(?!-)|(?<=-){unit}\b", claim):
                counted = re.search(rf"{_QUANTITY}[ -]\Z", claim[: at.start()])
                if counted and not _bound(claim, counted):
                    for other in others:
                        yield _put(claim, at.start(), at.end(), other), "unit"
    for at in re.finditer(r"\b(?:a|per|each|every) (day|week|month|year)\b", claim):
        times = re.search(r"(?:\w+ times|once|twice|\d\S*(?: [a-z]+){0,2}) \Z", claim[: at.start()])
        if times and not _BOUND.search(claim[: times.start()].rstrip()):
            family = ["day", "week", "month", "year"]
            for other in family:
                if 0 < abs(family.index(other) - family.index(at[1])) < 3:
                    yield _put(claim, at.start(1), at.end(1), other), "unit"


# Names, and who does what to whom.

_NAME = re.compile(
    r"[A-Z][\w'\u2019-]*[\w](?: (?:(?:of|de|la|van|von|du|der) )?[A-Z][\w'\u2019-]*[\w])*(?:['\u2019]s)?"
)
_TITLES = (
    "Mr Mrs Ms Miss Dr Sir Lord Lady King Queen Captain Colonel General Mayor President Professor "
    "Governor Inspector Saint Prince Princess Bishop Pope"
).split()
_OPENERS = (
    "The A An In On At By For From To Of And But Or If When While After Before Since Until As With "
    "Without Under Over It Its He His She Her They Their This That These Those There Then Most Some "
    "All Many Few No Not Only Both Each Every Between During Because Although However According "
    "Where What Who How Why Once Here Earth Sun Moon God Internet We Our You Your I My One Two Three Unlike Like Near Through"
).split()
_SPEECH = (
    "said says argued argues wrote writes complained complains warned warns objected objects "
    "claimed claims believes believed suspects suspected proposed proposes reported reports "
    "insisted insists suggested suggests thinks thought holds maintains explained explains"
).split()
_HUMAN = (
    "taught learned married told asked ordered telephoned thanked opened founded invented painted "
    "wrote led served met moved left studied worked discovered lived died was"
).split()
_PLACE = re.compile(r"\b(?:in|at|near|into|through|across|outside|around|via|towards)\Z")
_WIDE = re.compile(r"\b(?:Europe|Asia|Africa|America|Australia|World|Antarctica)\b")
_FUNCTION = (
    "of in on at by to and or is was were are has had that which who from with as for into until "
    "between before after during"
).split()
_SYMMETRIC = re.compile(
    r"\A[\s,]*(?:and|or|,|&)?[\s,]*\Z|\b(?:and|or|married|met|meets|borders|resembles?|equals?|"
    r"differs?|with|joined|neighbours?|like|than)\b"
)
_ROLES = (
    "landlord tenant buyer seller grower beekeeper doctor patient teacher pupil student customer "
    "company employer employee client contractor owner agent king queen editor administrator "
    "viewer mother father son daughter sister brother judge lawyer author publisher lender "
    "borrower driver passenger captain engineer operator manager supplier parent child caretaker "
    "hunter farmer predator prey nurse surgeon bank city state district union council government "
    "parliament president minister director assistant lessor lessee carrier insurer master "
    "apprentice witness sender recipient user provider"
)
_ROLE = re.compile(rf"\b[Tt]he ({'|'.join(_ROLES.split())})(s?)\b(?!['\u2019])")


def _names(text: str, known: str = "") -> list[tuple[int, int]]:
    """Return where names stand; a capital that only begins a sentence is none if not `known`."""
    spans: list[tuple[int, int]] = []
    for found in _NAME.finditer(text):
        start, end = found.span()
        end -= len(re.search(r"(?:['\u2019]s)?\Z", found[0])[0])  # type: ignore[index]
        words = text[start:end].split(" ")
        while words and words[0] in (*_OPENERS, *_TITLES):
            start += len(words.pop(0)) + 1
        while words and words[-1] in ("of", "de", "la", "van", "von", "du", "der"):
            end -= len(words.pop()) + 1
        while len(words) > 1 and words[0] in (*_MONTHS, *_DAYS):
            spans.append((start, start + len(words[0])))
            start += len(words.pop(0)) + 1
        while len(words) > 1 and words[0] in _TITLES:
            start += len(words.pop(0)) + 1
        opens = not text[:start].strip() or re.search(
            r"[.!?:;|\n]['\"\u201d\u2019)]*\s*\Z", text[:start]
        )
        common = len(words) == 1 and re.search(rf"\b{re.escape(words[0].lower())}\b", text)
        timed = len(words) == 1 and re.search(r"\d \Z", text[:start])
        if common or (timed and words[0] not in _MONTHS):
            continue
        if words and not (opens and len(words) == 1 and words[0] not in known.split()):
            spans.append((start, end))
    return spans


def _sort(text: str, start: int, end: int) -> str:
    """Return the sort of thing that a name means, as far as its neighbours tell."""
    name, before = text[start:end], text[:start].rstrip()
    after = re.match(r"\s+(\w+)", text[end:])
    if name in _MONTHS or name in _DAYS:
        return "month" if name in _MONTHS else "day"
    if re.fullmatch(r"[A-Z]{2,5}", name):
        return "letters"
    if re.fullmatch(r"\w+(?:ean|ian|ish|ese|oman|ican|rench|utch|reek|erman|wiss)", name):
        return "people's"
    if re.search(rf"\b(?:{'|'.join(_TITLES)})\Z", before):
        return "person"
    if after and after[1] in (*_SPEECH, *_HUMAN[:-1]):
        return "person"
    if re.search(r"\b[Tt]he\Z", before):
        return "the" if after is None or after[1] in _FUNCTION else "the thing of"
    if _PLACE.search(before) and (after is None or after[1] in (*_FUNCTION, "he", "she", "they")):
        return "place"
    last = re.search(r"([\w'\u2019]+)\Z", before)
    if last is None or last[1] in ("and", "or", "that", "but", "when", "if", "because"):
        return ""
    return last[1] if last[1] in _FUNCTION else f"after a word, {'many' if ' ' in name else name}"


_SURE = {"person", "place", "month", "day", "letters", "people's"}


def _sorts(text: str) -> dict[str, str]:
    """Return the sort of every name, the most telling of its mentions."""
    sorts: dict[str, str] = {}
    for start, end in _names(text):
        name = text[start:end]
        sort = _sort(text, start, end)
        if sorts.get(name) not in _SURE and (name not in sorts or sort in _SURE):
            sorts[name] = sort
    for name, sort in list(sorts.items()):
        if sort not in _SURE:
            alias = [other for other in sorts if _alias(name, other)]
            sorts[name] = next((sorts[other] for other in alias if sorts[other] in _SURE), sort)
    return sorts


def _alias(one: str, other: str) -> bool:
    return bool({*re.findall(r"\w+", one)} & {*re.findall(r"\w+", other)})


def _listed(one: str, other: str, passage: str) -> bool:
    """Return whether two names are listed or nested: what is said of one may hold of both."""
    link = r"[^.;:\n]{0,60}?(?:,| and| or| in| of| near| at) (?:the )?"
    pair = rf"{re.escape(one)}{link}{re.escape(other)}"
    turned = rf"{re.escape(other)}{link}{re.escape(one)}"
    return bool(re.search(f"{pair}|{turned}", passage))


def _name(claim: str, passage: str) -> Iterator[tuple[str, str]]:
    sorts = _sorts(f"{passage}\n{claim}")
    for start, end in _names(claim, " ".join(sorts)):
        name, sort = claim[start:end], sorts.get(claim[start:end], "")
        calendar = {"month": _MONTHS, "day": _DAYS}.get(sort)
        for other in calendar or sorts:
            if _alias(claim, other) or (calendar and other in passage):
                continue
            if calendar and (name not in passage or " than " in claim):
                continue
            alike = calendar or (sorts[other] == sort and len(other.split()) == len(name.split()))
            if not alike or _WIDE.search(f"{name} {other}") or _listed(name, other, passage):
                continue
            if _said_of(claim, name, other, passage):
                continue
            speaks = re.match(rf"\s+(?:{'|'.join(_SPEECH)})\b", claim[end:]) or re.search(
                r"\b(?:according to|in the (?:view|opinion) of) \Z", claim[:start], re.IGNORECASE
            )
            yield _put(claim, start, end, other), "attribution" if speaks else "name"


def _swapped(claim: str, one: tuple[int, int], other: tuple[int, int]) -> str:
    first, second = claim[slice(*one)], claim[slice(*other)]
    return claim[: one[0]] + second + claim[one[1] : other[0]] + first + claim[other[1] :]


def _role(claim: str, passage: str) -> Iterator[tuple[str, str]]:
    sorts = _sorts(f"{passage}\n{claim}")
    for one, other in combinations(_names(claim, " ".join(sorts)), 2):
        first, second = claim[slice(*one)], claim[slice(*other)]
        between = claim[one[1] : other[0]]
        route = claim[: one[0]].endswith("from ") and between == " to "
        alike = sorts.get(first) == sorts.get(second) and sorts.get(first) in ("person", "place")
        near = sorts.get(first) == "place" and len(_WORD.findall(between)) < 4
        same = _alias(first, second) or _SYMMETRIC.search(between)
        if not same and (route or (alike and not near)):
            yield _swapped(claim, one, other), "role"
    for left, right in combinations(_ROLE.finditer(claim), 2):
        between = claim[left.end() : right.start()]
        joined = _SYMMETRIC.search(between) or _SUBORDINATE.search(between)
        if left[1] != right[1] and left[2] == right[2] and not joined:
            yield _swapped(claim, left.span(1), right.span(1)), "role"
    yield from _of_other_subject(claim, passage)


_SUBJECT = re.compile(
    r"The (?:(?!of\b|in\b|and\b|or\b|first\b|last\b|other\b|same\b|following\b|\w+ly\b|also\b)[a-z]+ ){1,2}"
    r"(?=(?:is|was|are|were|has|had|can|could|will|would|may|must|did|does|became|\w+ed|"
    r"\w+[^s\W]s) (?!and\b|,))"
)


def _of_other_subject(claim: str, passage: str) -> Iterator[tuple[str, str]]:
    """Yield the claim of what another sentence of the passage begins with, of the same number."""
    own = _SUBJECT.match(claim)
    if own is None:
        return
    for other in _SUBJECT.findall(passage):
        alike = own[0].endswith("s ") == other.endswith("s ")
        fresh = other.strip()[4:] not in claim
        if alike and fresh and not _said_of(claim, own[0], other.strip(), passage):
            yield other + claim[own.end() :], "role"


# Directions and orders.

_PAIRS = (
    "larger smaller|bigger smaller|higher lower|longer shorter|taller shorter|faster slower|"
    "quicker slower|older younger|earlier later|warmer colder|hotter cooler|heavier lighter|"
    "cheaper dearer|better worse|wider narrower|stronger weaker|thicker thinner|richer poorer|"
    "deeper shallower|largest smallest|biggest smallest|highest lowest|longest shortest|"
    "fastest slowest|oldest youngest|cheapest dearest|best worst|strongest weakest|"
    "heaviest lightest|deepest shallowest|earliest latest|increase decrease|increases decreases|"
    "increased decreased|increasing decreasing|rose fell|rising falling|grew shrank|"
    "north south|northern southern|east west|eastern western|northward southward|above below|"
    "inside outside|upper lower|minimum maximum|"
    "upstream downstream|uphill downhill|indoors outdoors|"
    "shorten lengthen|shortened lengthened|raised lowered|widened narrowed|"
    "upwards downwards|clockwise anticlockwise"
)
_OPPOSITES: dict[str, str] = {}
for _pair in _PAIRS.split("|"):
    _left, _right = _pair.split()
    _OPPOSITES.setdefault(_left, _right)
    _OPPOSITES.setdefault(_right, _left)
_FIXED = re.compile(
    r"\b(?:(?:\d+|one|two|three|four|five|six|some|any|many|several) more|a later|an earlier|"
    r"grew up|only (?:before|after)|before tax|no (?:longer|more|later|earlier|fewer|less)|any (?:longer|more)|once more|the more|"
    r"more or less|more and more|sooner or later|all the (?:better|more)|at best|at (?:the )?latest|"
    r"at (?:the )?earliest|as long as|ever before|never before|(?:day|week|month|year|night) (?:before|after)|"
    r"(?:year|day|week) after (?:year|day|week)|after all|look(?:s|ed|ing)? after|named after|"
    r"before long|had better|best before|above all|much more|even more|fell (?:asleep|in love|ill)|"
    r"(?:rose|fell) (?:to|from|out|off|into)\b(?! \d)|top of|"
    r"the world['\u2019]s best|later (?:became|wrote|said|on)|the latest|not later|increasing(?:ly)?)\b",
    re.IGNORECASE,
)

_MEASURES = "|".join(["per cent", "percent", *(unit for family in _UNITS for unit in family)])
_COUNTED = re.compile(
    rf" (?!than)\w+s\b| than (?:\d[\d,]*|{'|'.join(_COUNTS)}) (?!{_MEASURES})[a-z]+s\b"
)


def _fixed(claim: str, at: re.Match[str]) -> bool:
    return any(phrase.start() <= at.start() < phrase.end() for phrase in _FIXED.finditer(claim))


def _direction(claim: str, _: str) -> Iterator[tuple[str, str]]:
    for at in _WORD.finditer(claim):
        if not _fixed(claim, at) and _plain(claim, at):
            for other in _opposite(claim, at):
                yield _put(claim, at.start(), at.end(), other), "direction"
    for bound, other in (("at least", "at most"), ("at most", "at least")):
        for at in re.finditer(rf"\b{bound}\b(?= \w+ )", claim, re.IGNORECASE):
            yield _put(claim, at.start(), at.end(), other), "direction"


def _opposite(claim: str, at: re.Match[str]) -> Iterator[str]:
    word, before, after = at[0].lower(), claim[: at.start()], claim[at.end() :]
    if word in _OPPOSITES:
        upper = word == "lower" and before.lower().endswith("the ") and " than " not in claim
        other = "upper" if upper else _OPPOSITES[word]
        if not re.search(rf"\b(?:{other}|newe[rs]t?)\b", claim):
            yield other
    elif word in ("fewer", "less") and re.match(r" \w", after):
        if not re.search(r"\b(?:the|nothing) \Z", before):
            yield "more"
    elif word == "more" and re.match(r" \w", after):
        yield "fewer" if _COUNTED.match(after) else "less"


_CHANGED = re.compile(
    r"\b(?:rose|rises?|fell|falls?|grew|grows?|shrank|went|goes|climbed|dropped|sank|"
    r"increased|decreased)\b"
)
_SPAN = (
    rf"(?:(?:about|only|a few|several|an?|\d+|{'|'.join(_COUNTS)}|\w+teen) )+"
    r"(?:quarter|hour|minute|day|week|month|year)"
)


def _order(claim: str, _: str) -> Iterator[tuple[str, str]]:
    for at in re.finditer(rf"(?<![\w-])(?:before|after|Before|After)\b(?= \w)(?! {_SPAN})", claim):
        if not _fixed(claim, at):
            other = "after" if at[0].lower() == "before" else "before"
            yield _put(claim, at.start(), at.end(), other), "order"
    route = re.search(r"\bfrom (\d[\d,.]*\d|\d) to (\d[\d,.]*\d|\d)(?= [a-z])", claim)
    if route and route[1] != route[2] and _CHANGED.search(claim):
        yield _swapped(claim, route.span(1), route.span(2)), "order"


# Quantifiers, modality, plans.

_QUANTIFIERS: tuple[tuple[str, tuple[str, ...]], ...] = (
    (r"\b[Mm]ost of(?= (?:the|its|his|her|their|these|those)\b)", ("all of", "hardly any of")),
    (r"\A[Mm]ost(?= (?!of)[a-z]+s\b)", ("all", "few")),
    (r"\b[Ss]ome of(?= (?:the|its|his|her|their|these|those)\b)", ("all of", "none of")),
    (r"\A[Ss]ome(?= [a-z]+s\b)", ("all", "no")),
    (r"\A[Mm]any(?= (?!of|a\b)[a-z]+s\b)", ("all", "few")),
    (r"\b[Mm]any of(?= (?:the|its|his|her|their|these|those)\b)", ("all of", "few of")),
    (r"\A[Ff]ew(?= [a-z]+s\b)", ("most", "all")),
    (r"\b[Ff]ew of(?= (?:the|its|his|her|their|these|those)\b)", ("most of", "all of")),
    (r"\b[Nn]one of(?= (?:the|its|his|her|their|these|those)\b)(?!.*\b(?:is|was|has)\b)", ("all of", "most of")),
    (r"\b[Aa]ll of(?= (?:the|its|his|her|their|these|those)\b)", ("only some of", "none of")),
    (r"(?<!\bat )(?<!\bin )\b[Aa]ll(?= (?:the|its|his|her|their) [a-z]+s\b)", ("only some of", "none of")),
    (r"\A[Aa]ll(?= (?!of|the|over|in|day|year|his|its|her|their|this|that|these|those)[a-z]+s\b)", ("only some", "no")),
    (r"\A(?:[Ee]very (?!other\b|one\b)|[Ee]ach )(?=[a-z]+[^s\W] [a-z]+(?<!of)\b)", ("not every ",)),
    (r"\A[Nn]o(?= [a-z]+[^s\W]s (?:are|were|have|may|can|could|will|must|need)\b)", ("all", "most")),
    (r"\A(?:[Nn]obody|[Nn]o one)\b(?! else)", ("everybody",)),
    (r"\A[Nn]othing\b(?! else| but)", ("everything",)),
    (r"\A[Ee]very(?:body|one)\b(?! else)", ("nobody",)),
    (r"\A[Ee]verything\b(?! else)", ("nothing",)),
    (r"\balways\b", ("never", "rarely")),
    (r"(?:(?<=, )|(?<=\bis )|(?<=\bare )|(?<=\bmust )|(?<=\bshould ))never\b", ("always", "often")),
    (r"(?<!not )\b(?:often|usually|frequently)(?= [a-z])", ("never", "rarely")),
    (r"\bsometimes(?= [a-z])", ("always", "never")),
    (r"\b(?:rarely|seldom)\b", ("often", "always")),
    (r"\A[Oo]nly(?= (?:the|those|[a-z]+s)\b)(?! [a-z]+ (?:after|when|if|in|on))", ("not only",)),
    (r"(?<=[a-z] )only(?= (?:by|on|in|with|from|at|for|during) [^\d])", ("not only",)),
)  # fmt: skip
_INVERTS = re.compile(
    r"\b(?:can|may|must|could|should|is|are|was|were|has|have|do|does|did) only\b"
)


def _quantifier(claim: str, _: str) -> Iterator[tuple[str, str]]:
    for pattern, others in _QUANTIFIERS:
        for at in re.finditer(pattern, claim):
            beyond = _NEGATIVE.search(claim[: at.start()] + claim[at.end() :])
            if not beyond and not _INVERTS.search(claim):
                for other in others:
                    yield _put(claim, at.start(), at.end(), other), "quantifier"


_EPISTEMIC = re.compile(
    r" (?:be (?:lost|damaged|caused|due|true|found|seen|affected|called|an?|the)|rise|fall|cause|occur|"
    r"happen|become|suffer|appear|help|vary|differ|lead|result|carry|contain|reach|last|need|want|live|grow|weigh|take|die|exist|form)\b"
)


def _modality(claim: str, _: str) -> Iterator[tuple[str, str]]:
    for at in re.finditer(r"\b(may|can|must|should|shall|has to|have to)(?= [a-z])", claim):
        kept = re.match(
            r" (?:also|still|always|often|well|have|even|both|just)\b", claim[at.end() :]
        )
        if kept or re.search(r"\b[Oo]nly\b", claim):
            continue
        if re.search(r"\b(?:will|would|may|might|did|do|does|the) \Z", claim[: at.start()]):
            continue
        if at[1] in ("may", "can") and _EPISTEMIC.match(claim[at.end() :]):
            continue
        other = {
            "may": "must", "can": "must", "has to": "does not have to", "have to": "do not have to",
        }.get(at[1], "need not")  # fmt: skip
        if not (at[1] == "can" and _SUBORDINATE.search(claim[: at.start()])):
            yield _put(claim, at.start(), at.end(), other), "modality"


_PLANS = "plan intend hope want expect aim"
_STATES = {"known", "found", "used", "born", "become", "gone", "come", "followed", "left", "liked"}
_PAST = re.compile(r"\b(?:1\d|20)\d\d\b|\b(?:ago|yesterday|last|century|had|earlier|once|former)\b")


def _plan_for_fact(claim: str, _: str) -> Iterator[tuple[str, str]]:
    future = re.search(r"\b(?:next|tomorrow|soon|later|will|from)\b", claim)
    for base in _PLANS.split():
        for at in re.finditer(rf"\b({base}|{_s(base)}) to ([a-z]+)\b", claim):
            if at[2] in _FORMS and not (future and future[0] in ("next", "tomorrow")):
                has = "have" if at[1] == base else "has"
                made = _put(claim, at.start(), at.end(), f"{has} {_FORMS[at[2]][1]}")
                yield made, "plan_for_fact"
    for at in re.finditer(r"\b(is|are) to be ([a-z]+)\b", claim):
        if at[2] in _PARTICIPLES and not future:
            has = "has" if at[1] == "is" else "have"
            yield _put(claim, at.start(), at.end(), f"{has} been {at[2]}"), "plan_for_fact"
    for at in re.finditer(r"\b(was|were|has been|have been) ([a-z]+)\b", claim):
        done = at[2] in _PARTICIPLES and at[2] not in _STATES and not _PAST.search(claim)
        if done and not _SUBORDINATE.search(claim) and not re.search(r"\band\b", claim):
            will = "is" if at[1] in ("was", "has been") else "are"
            yield _put(claim, at.start(), at.end(), f"{will} to be {at[2]}"), "plan_for_fact"


# Negation.

_HEAD = r"\A(?P<head>[^;:?]*?\w) (?P<aux>is|are|was|were|has|have|had|can|could|may|should|will|would)\b"
_UNNEGATED = re.compile(
    r"\b(?:all|every|each|everyone|everybody|everything|some|many|most|several|often|sometimes|"
    r"usually|always|only|both|either|any|because|also|mainly|mostly|almost|nearly)\b",
    re.IGNORECASE,
)
_BEFORE_VERB = {
    "the", "a", "an", "of", "in", "on", "at", "by", "with", "its", "their", "his", "her", "this",
    "these", "those", "from", "for", "to", "and", "or", "newly", "well", "once", "as",
    "first", "last", "later", "then", "also", "who", "which", "that",
}  # fmt: skip
_AFTER_VERB = re.compile(
    r" (?:the|an?|to|in|on|at|from|with|his|her|its|their|for|out|up|off|into|through|\d\S*|him|"
    r"them|it|over|during|about|how|down|away|back|[A-Z]\w+|two|three|four|five|six)\b"
)
_ANTONYMS = {
    "allowed": "forbidden", "permitted": "forbidden", "forbidden": "allowed",
    "prohibited": "permitted", "possible": "impossible", "impossible": "possible",
    "likely": "unlikely", "unlikely": "likely", "able to": "unable to", "unable to": "able to",
    "accepted": "rejected", "rejected": "accepted", "approved": "rejected", "failed to": "managed to",
    "managed to": "failed to", "without": "with", "no longer": "still", "still": "no longer",
    "safe": "unsafe", "necessary": "unnecessary", "agreed to": "refused to",
    "refused to": "agreed to",
}  # fmt: skip
_KEPT = re.compile(
    r" (?:only|all|every|even|just|always|necessarily|because|so|more|less|as|both|to|be\b.*\buntil)\b"
)
_POLAR = re.compile(r"\b(?:until|any\w*|yet|ever|either|nor|but|at all|much|unless|hardly)\b")


def _negation(claim: str, _: str) -> Iterator[tuple[str, str]]:
    for word, other in _ANTONYMS.items():
        for at in re.finditer(rf"\b{word}\b(?= |\.)", claim):
            rest = claim[: at.start()] + claim[at.end() :]
            if not _NEGATIVE.search(rest) and not _UNNEGATED.search(rest) and _stands(claim, at):
                yield _put(claim, at.start(), at.end(), other), "negation"
    yield from ((made, "negation") for made in (*_without_not(claim), *_with_not(claim)))


def _stands(claim: str, at: re.Match[str]) -> bool:
    """Return whether an antonym stands where its opposite can stand as well."""
    if at[0] == "still":
        return bool(re.search(r"\b(?:is|are|was|were|can|may) \Z", claim[: at.start()]))
    if at[0] in ("safe", "necessary", "likely", "possible", "accepted"):
        return bool(re.search(r"\b(?:is|are|was|were|been) \Z", claim[: at.start()]))
    return at[0] != "without" or not re.match(r" \w+ing\b", claim[at.end() :])


_AUXILIARY = r"(is|are|was|were|has|have|had|can|could|should|will|would|may|must|shall|need)"
_SINGULAR = r"(?!one\b|other\b|more\b)[a-z]+(?:[^s\W]|ss|us)"


def _without_not(claim: str) -> Iterator[str]:
    """Yield the claim without its one negation."""
    if len(_NEGATIVE.findall(claim)) != 1 or _POLAR.search(claim.replace("not yet", "")):
        return
    if none := re.match(rf"No ({_SINGULAR}) (?:is|was|has|may|can|could|will|must)\b", claim):
        yield _article(none[1]).capitalize() + claim[2:]
    for at in re.finditer(r"(?<=[a-z] )never (?=[a-z])", claim):
        yield claim[: at.start()] + claim[at.end() :]
    for at in re.finditer(rf"\b(?:{_AUXILIARY}(?: not|n['\u2019]t)\b( yet)?|cannot\b)", claim):
        if not _KEPT.match(claim[at.end() :]):
            plain = {"must": "may", "shall": "may", "need": "must"}.get(at[1], at[1] or "can")
            yield _put(claim, at.start(), at.end(), f"{plain} already" if at[2] else plain)
    for at in re.finditer(r"\b(do|does|did) not (?!have to)([a-z]+)\b(?<!ly)", claim):
        if not _KEPT.match(f" {at[2]}") and (at[1] != "did" or at[2] in _FORMS):
            forms = {"do": at[2], "does": _s(at[2]), "did": _FORMS.get(at[2], ("",))[0]}
            yield _put(claim, at.start(), at.end(), forms[at[1]])


def _with_not(claim: str) -> Iterator[str]:
    """Yield the claim with its main verb negated."""
    if _NEGATIVE.search(claim) or _UNNEGATED.search(claim):
        return
    if there := re.match(r"There (?:is|are|was|were|will be) (an? |\d|[a-z]+s\b)", claim):
        if there[1] in ("a ", "an "):
            yield _put(claim, there.start(1), there.end(1), "no ")
        return
    found = re.match(_HEAD, claim)
    if found and found["head"] in ("So", "Nor", "Then", "Here", "And"):
        return
    if found and not _SUBORDINATE.search(found["head"]):
        yield from _denied(claim, found)
    elif not found:
        yield from _did_not(claim)


def _denied(claim: str, found: re.Match[str]) -> Iterator[str]:
    auxiliary, start, end = found["aux"], found.start("aux"), found.end("aux")
    following = re.match(r" (\w+)", claim[end:])
    if following is None:
        return
    verbs = re.findall(r"[a-z]+", found["head"])
    if any(verb in _BASE_OF_PAST or verb in _BASE_OF_THIRD for verb in verbs):
        return
    if following[1] == "already":
        yield _put(claim, start, end + len(following[0]), f"{auxiliary} not yet")
    elif following[1] in (
        "still",
        "now",
        "to",
        "nevertheless",
        "however",
        "otherwise",
        "just",
        "even",
        "probably",
        "therefore",
        "thus",
    ):
        return
    elif auxiliary in ("has", "have", "had"):
        if following[1] in _PARTICIPLES or following[1].endswith("ed"):
            yield _put(claim, start, end, f"{auxiliary} not")
        else:
            do = {"has": "does", "have": "do", "had": "did"}[auxiliary]
            yield _put(claim, start, end, f"{do} not have")
    else:
        yield _put(claim, start, end, "cannot" if auxiliary == "can" else f"{auxiliary} not")


_AUXILIARIES = re.compile(
    r"\b(?:is|are|was|were|has|have|had|can|could|may|might|must|shall|should|will|would|do|does|"
    r"did)\b"
)


def _did_not(claim: str) -> Iterator[str]:
    words = list(_WORD.finditer(claim))
    verbs = [
        (place, word)
        for place, word in enumerate(words)
        if word[0] in _BASE_OF_PAST or word[0] in _BASE_OF_THIRD
    ]
    if len(verbs) != 1 or _AUXILIARIES.search(claim):
        return
    place, verb = verbs[0]
    after_subject = place > 0 and words[place - 1][0].lower() not in _BEFORE_VERB
    opens = _SUBORDINATE.search(claim[: verb.start()])
    if not after_subject or opens or verb[0] in _AMBIGUOUS or claim[verb.start() - 1] != " ":
        return
    if words[place - 1][0].endswith("ly") or claim[verb.start() - 2] == ",":
        return
    if _AFTER_VERB.match(claim[verb.end() :]):
        past = verb[0] in _BASE_OF_PAST
        base = _BASE_OF_PAST[verb[0]] if past else _BASE_OF_THIRD[verb[0]]
        yield _put(claim, verb.start(), verb.end(), f"{'did' if past else 'does'} not {base}")


_MAKERS: tuple[Maker, ...] = (
    _row, _figures, _counts, _fractions, _unit, _name, _role, _order, _direction, _quantifier, _modality,
    _plan_for_fact, _negation,
)  # fmt: skip
_OF_NEGATIVE_CLAIMS: tuple[Maker, ...] = (_quantifier, _negation)
