"""Read a sentence into what it says: words, figures, names and the words that bind them.

Sentences are compared word by word in order, so what means the same is written the same: may and is
allowed to, nine and 9, took and taken, and listed words of one meaning. A verb behind a form of
`be` is marked, since who did what hangs on it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal

from app.core.text import tokenise

_OPERATORS = (
    # what it becomes, and the words; longer ones first
    ("needless", r"(?:do|does|did) not (?:have|need) to|need not"),
    (
        "forbidden",
        r"(?:must|may|shall) (?:not|never)|(?:is|are|was|were|be) not (?:allowed|permitted)(?: to)?"
        r"|(?:is|are|was|were|be) (?:forbidden|prohibited|banned)(?: to)?"
        r"|(?:is|are|was|were) never (?:allowed|permitted)(?: to)?",
    ),
    ("impossible", r"(?:can|could) ?(?:not|never)|(?:is|are|was|were) not able to"),
    ("unwise", r"(?:should|ought) not(?: to)?|should never"),
    ("free of", r"(?:is|are|was|were) (?:free of charge|free)(?! to)|free of charge"),
    ("must", r"(?:have|has|had|need|needs|needed|is required|are required) to|must|shall"),
    ("may", r"(?:is|are|was|were|be) (?:allowed|permitted|free)(?: to)?|may|might"),
    ("can", r"(?:is|are|was|were) able to|can|could"),
    ("should", r"should|ought to"),
    ("at least", r"at least|(?:no|not) (?:less|fewer) than|a minimum of"),
    ("at most", r"at (?:the )?most|up to|(?:no|not) more than|a maximum of"),
    ("over", r"(?:more than|over|above)(?= (?:about )?(?:\d|[a-z]+ (?:hundred|thousand|million)))"),
    ("under", r"(?:less than|fewer than|under|below)(?= \d)"),
    ("about", r"about(?= \d)|approximately|roughly|around(?= \d)|circa"),
    ("nearly", r"nearly|almost"),
    ("not", r"not|never|neither|nor"),
    ("no", r"no|none|nobody|nothing"),
    ("without", r"without"),
    ("all", r"all of|all|every|each|always|entire|whole|everyone|everybody"),
    ("any", r"any"),
    ("both", r"both"),
    ("half", r"half"),
    ("some", r"some|certain"),
    ("most", r"most of|a majority of|mostly|mainly|primarily|largely|chiefly|predominantly"),
    ("many", r"many|numerous|several|various|a number of"),
    ("few", r"few|a few"),
    ("only", r"only|solely|exclusively|merely|just"),
    ("often", r"often|frequently"),
    ("usually", r"usually|normally|generally|typically|commonly"),
    ("sometimes", r"sometimes|occasionally"),
    ("rarely", r"rarely|seldom|hardly|scarcely|barely"),
    (
        "perhaps",
        r"perhaps|possibly|probably|likely|allegedly|reportedly|supposedly|believed|said to",
    ),
    ("before", r"before|prior to|earlier than"),
    ("after", r"after|following|afterwards"),
    ("until", r"until|till"),
    ("since", r"since"),
    ("if", r"if|when|whenever|provided that|as long as"),
    ("unless", r"unless"),
    ("except", r"except(?: for)?|apart from|other than"),
    ("because", r"because of|because|due to|owing to"),
    ("than", r"than"),
    ("then", r"and then|then"),
)
_OPERATOR = re.compile(
    "|".join(rf"(?P<o{at}>\b(?:{words})\b)" for at, (_, words) in enumerate(_OPERATORS)),
    re.IGNORECASE,
)
_UNITS = {"$": "dollar", "\u20ac": "euro", "\u00a3": "pound", "%": "percent"}
_TOKEN = re.compile(
    r"(?P<op>\u27e8\d+\u27e9)|(?P<num>\d+(?:,\d+)*(?:\.\d+)?(?!\w))"
    r"|(?P<word>(?:[^\W_]|['\u2019](?=[a-z]))+)"
    r"|(?P<unit>[$\u20ac\u00a3%])|(?P<punct>[,;:()|\u2013\u2014\u2026.!?]| - )"
)
_FREE = {
    **dict.fromkeys(
        "a an the this that's these those such its his her their our your my".split(), "a"
    ),
    **dict.fromkeys("also too there here you we i us together again now already".split(), "a"),
    **dict.fromkeys("however therefore moreover furthermore thus indeed currently".split(), "a"),
    **dict.fromkeys(
        "in on at of to for from with by as into onto within inside during through via per towards"
        " against between among under over upon across along near behind about like".split(),
        "p",
    ),
    **dict.fromkeys("is are was were be been being am".split(), "b"),
    **dict.fromkeys("has have had having do does did will would".split(), "h"),
    **dict.fromkeys("that which who whom whose where what how why whether".split(), "r"),
    **dict.fromkeys("and or but while whereas yet although though so &".split(), "c"),
    **dict.fromkeys("he she it they him them".split(), "i"),
}
_PREPOSITIONS = {
    **dict.fromkeys("in on at within inside during".split(), "in"),
    **dict.fromkeys("to into onto towards".split(), "to"),
    **dict.fromkeys("by through via".split(), "by"),
}
COUNTED = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen"
    " sixteen seventeen eighteen nineteen twenty"
).split()
TENS = "twenty thirty forty fifty sixty seventy eighty ninety".split()
_NUMBERS = {word: str(value) for value, word in enumerate(COUNTED)} | {
    word: str(10 * value) for value, word in enumerate(TENS, 2)
}
_ORDINALS = {
    word: f"{value}."
    for value, word in enumerate(
        "first second third fourth fifth sixth seventh eighth ninth tenth".split(), 1
    )
}
_IRREGULAR = """arise arose arisen|bear bore born borne|beat beaten|become became
begin began begun|bend bent|bind bound|bite bit bitten|blow blew blown|break broke broken
bring brought|build built|burn burnt|buy bought|catch caught|choose chose chosen|come came|cost
cut|deal dealt|dig dug|do did done|draw drew drawn|drink drank drunk|drive drove driven
eat ate eaten|fall fell fallen|feed fed|feel felt|fight fought|find found|fly flew flown
forbid forbade forbidden|forget forgot forgotten|freeze froze frozen|get got gotten
give gave given|go went gone|grow grew grown|hang hung|hear heard|hide hid hidden|hit|hold held
keep kept|know knew known|lay laid|lead led|leave left|lend lent|let|lie lay lain|lose lost
make made|mean meant|meet met|pay paid|put|read|ride rode ridden|ring rang rung|rise rose risen
run ran|say said|see saw seen|seek sought|sell sold|send sent|set|shake shook shaken|shine shone
shoot shot|show shown|shut|sing sang sung|sink sank sunk|sit sat|sleep slept|speak spoke spoken
spend spent|spread|stand stood|steal stole stolen|strike struck|swear swore sworn|swim swam swum
take took taken|teach taught|tear tore torn|tell told|think thought|throw threw thrown
understand understood|wake woke woken|wear wore worn|win won|write wrote written"""
_SAME = """propose suggest recommend advise|complete finalise finalize
start begin commence|end finish conclude|build construct erect|buy purchase acquire
help assist aid|show demonstrate reveal|use employ utilise utilize|need require|get obtain receive
big large|small little|quick fast rapid|quickly rapidly|choose select pick|keep retain
found establish|name call|lead head|run operate manage|close shut|repair mend fix|child kid
doctor physician|car automobile|famous well-known renowned|price cost|situate locate|allow permit
important significant|make create produce manufacture|take last|happen occur|leave depart
give award grant|think believe|whole entire|part portion|work function|error mistake|house home
film movie|speak talk|answer reply|author writer|teacher instructor|job occupation|firm company
road street|picture image|say state|publish issue appear|raise increase|reduce decrease lower
fall drop decline|rise grow|total sum|yearly annual|extra additional further|approximately roughly
fight battle|live reside|carry transport|contain include
own possess|check inspect|stop halt|replace substitute|join unite|test examine|measure gauge
ill sick"""
_PHRASES = tuple(
    (re.compile(rf"\b{phrase}\b", re.IGNORECASE), word)
    for phrase, word in (
        ("cannot", "can not"),
        ("per cent", "percent"),
        ("takes? place", "is held"),
        ("took place", "was held"),
        ("passed away", "died"),
        ("passes away", "dies"),
        ("set up", "founded"),
    )
)
_SHORT = {"K": "thousand", "M": "million", "B": "billion", "bn": "billion", "T": "trillion"}
_SCALES = {"thousand": 3, "million": 6, "billion": 9, "trillion": 12}
"""Powers of ten."""
_SHORT_NUMBER = re.compile(rf"(?<![\w.])(\d[\d,]*(?:\.\d+)?) ?({'|'.join(_SHORT)})\b")
"""110M parameters, 1.4T tokens."""
_REFERENCE = re.compile(r"\s?\[\d{1,4}(?:[,\s\u2013-]+\d{1,4})*\]")
_DOUBLED = re.compile(r"(?<=[a-z])['\u2019]s\b")


def _stem(word: str) -> str:
    found = tokenise(word)
    return found[0] if found else word.lower()


_LEMMAS = {
    word: forms.split()[0]
    for line in _IRREGULAR.split("\n")
    for forms in line.split("|")
    for word in forms.split()
}
_PARTICIPLES = frozenset(
    forms.split()[-1] for line in _IRREGULAR.split("\n") for forms in line.split("|")
) | {"run", "become", "come"}
_CLASSES = {
    _stem(word): group.split()[0]
    for line in _SAME.split("\n")
    for group in line.split("|")
    for word in group.split()
}


@dataclass(frozen=True, slots=True)
class Token:
    """A word as it is compared.

    kind: `w` a word with content, `n` a number, `o` an operator (not, may, all, before), `p` a
    preposition, `a` an article and the like, `b` a form of be, `h` another auxiliary, `r` a
    relative word, `c` a conjunction, `i` a pronoun, `,` a comma, `;` a stronger division, `(` and
    `)`.
    """

    kind: str
    key: str
    name: bool = False
    """Written with a capital, not only because a sentence starts with it."""
    past: bool = False
    """A past form: something was done."""

    @property
    def said(self) -> bool:
        """Return whether it has content: a claim's must stand in the source."""
        return self.kind in "wno"


def read(text: str) -> list[Token]:
    """Return the tokens of one sentence, a verb behind a form of `be` with `~`."""
    plain = _REFERENCE.sub("", text.replace("n't", " not").replace("n\u2019t", " not"))
    plain = _DOUBLED.sub("", plain)
    for phrase, word in _PHRASES:
        plain = phrase.sub(word, plain)
    plain = re.sub(r"([$\u20ac\u00a3])\s?(\d[\d,.]*\d|\d)", r"\2 \1", plain)
    plain = re.sub(r"(?<=\d)\s?[-\u2013](?=\d)", " to ", plain)
    plain = _SHORT_NUMBER.sub(lambda found: f"{found[1]} {_SHORT[found[2]]}", plain)
    plain = re.sub(r"(?<=\w)-(?=\w)", " ", plain)
    marked = _OPERATOR.sub(lambda found: f" \u27e8{(found.lastgroup or 'o0')[1:]}\u27e9 ", plain)
    tokens: list[Token] = []
    for found in _TOKEN.finditer(marked):
        token = _token(found, first=not any(one.said for one in tokens))
        if token.key in _SCALES and tokens and tokens[-1].kind == "n":
            whole = Decimal(tokens[-1].key.rstrip(".")).scaleb(_SCALES[token.key])
            tokens[-1] = Token("n", plain_number(f"{whole:f}"))
            continue
        if token.kind == "w" and _passive(found.group(), tokens):
            token = Token("w", f"{token.key}~", token.name, past=True)
        tokens.append(token)
    return tokens


def _token(found: re.Match[str], *, first: bool) -> Token:
    written = found.group()
    if found["op"]:
        return Token("o", _OPERATORS[int(written[1:-1])][0])
    if found["num"]:
        return Token("n", plain_number(written))
    if found["unit"]:
        return Token("w", _UNITS[written])
    if found["punct"]:
        return Token(written if written in ",()" else ";", written)
    low = written.lower()
    if low in _NUMBERS:
        return Token("w" if low == "one" else "n", _NUMBERS[low])
    if low in _ORDINALS:
        return Token("n", _ORDINALS[low])
    if low in _FREE and (first or written.islower()) and (low != "per" or written == "per"):
        return Token(_FREE[low], _PREPOSITIONS.get(low, low))
    past = low.endswith("ed") or (low in _LEMMAS and low != _LEMMAS[low])
    stem = _stem(_LEMMAS.get(low, low))
    return Token("w", _CLASSES.get(stem, stem), written[0].isupper() and not first, past=past)


def plain_number(text: str) -> str:
    """Return a number without separators of thousands and without noughts that say nothing."""
    plain = text.replace(",", "")
    return plain.rstrip("0").rstrip(".") if "." in plain else plain.lstrip("0") or "0"


def _passive(word: str, before: list[Token]) -> bool:
    """Return whether a word is a participle behind a form of be, a denial or adverb between."""
    low = word.lower()
    if not (low.endswith("ed") or low in _PARTICIPLES):
        return False
    for token in before[:-4:-1]:
        if token.kind == "b" or (token.kind == "c" and token.key in ("and", "or")):
            return token.kind == "b" or any(one.key.endswith("~") for one in before)
        if token.kind not in "ow" or (token.kind == "w" and not token.key.endswith("li")):
            return False
    return False


def said_in(tokens: Sequence[Token]) -> frozenset[str]:
    """Return the keys of what has content, voice aside."""
    return frozenset(token.key.rstrip("~") for token in tokens if token.said)
