"""Read a sentence into what it says: words, figures, names and the words that bind them.

Sentences are compared word by word in order, so what means the same is written the same: may and is
allowed to, nine and 9, took and taken, and listed words of one meaning. A verb behind a form of
`be` is marked, since who did what hangs on it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from itertools import takewhile

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


# Decide whether a text says what a sentence says, in one place.

_MOST_LEFT_OUT = 4
"""Words with content that may be left out within a claim."""
_SUBJECT = 5
"""Most words of a thing that a pronoun stands for."""
_BACK = 12
"""Sentences that a pronoun's thing is looked for in; each must speak of it."""
_LONGEST = 150
"""Tokens of a sentence; what is longer is a table or a list that lost its lines."""
_ORDERED = {"before": "after", "after": "before"}
_FRONTED = ("if", "until", "unless", "because", "since")
_PRONOUNS = (
    ("she", "her"),
    ("he", "him", "his"),
    ("it", "its"),
    ("they", "them", "their"),
)
_OWNERS = frozenset(("its", "his", "her", "their"))
_MONTHS = frozenset(
    "januari februari march april may june juli august septemb octob novemb decemb monday tuesday"
    " wednesday thursday friday saturday sunday".split()
)
_STOP = Token(";", ".")
_BOUND = frozenset(("if", "unless", "except", "without", "until", "only", "than", "not"))
"""Operators behind a claim that bound what it says."""
_CONDITIONS = frozenset(("if", "unless", "except", "perhaps"))
_CONTRASTS = frozenset(("but", "while", "whereas", "yet", "although", "though"))
_PARTICLES = frozenset(("out", "up", "off", "down"))
_MODAL = frozenset(
    ("must", "may", "can", "should", "not", "forbidden", "impossible", "unwise", "needless", "no")
)
_DENIALS = frozenset(("not", "forbidden", "impossible", "unwise", "needless", "no"))
_OPPOSED = {
    frozenset(pair.split("/"))
    for pair in (
        "before/after,all/some,all/most,all/few,must/may,must/needless,forbidden/may,forbidden/must"
        ",can/impossible,should/unwise,at least/at most,all/no,over/under,most/few"
    ).split(",")
}
_ANTONYMS = {
    one: other
    for pair in (
        "more/less more/fewer most/least big/small larger/smaller largest/smallest bigger/smaller"
        " higher/lower highest/lowest longer/shorter longest/shortest older/younger oldest/youngest"
        " earlier/later earliest/latest best/worst better/worse faster/slower fastest/slowest"
        " heavier/lighter heaviest/lightest warmer/colder hotter/colder warmest/coldest"
        " hottest/coldest cheaper/dearer cheapest/dearest stronger/weaker strongest/weakest"
        " wider/narrower widest/narrowest deeper/shallower quieter/louder newer/older newest/oldest"
        " greater/smaller greatest/smallest raise/reduce rise/fall open/close above/below"
    ).split()
    for one, other in (pair.split("/"), pair.split("/")[::-1])
}


@dataclass(frozen=True, slots=True)
class Statement:
    """A claim as it is looked for: tokens with content, and what stands before each."""

    said: tuple[Token, ...]
    between: tuple[tuple[Token, ...], ...]
    """Tokens without content before each of `said`."""

    @staticmethod
    def of(tokens: Sequence[Token]) -> Statement:
        """Divide tokens."""
        said: list[Token] = []
        between: list[tuple[Token, ...]] = []
        waiting: list[Token] = []
        for token in tokens:
            if token.said:
                said.append(token)
                between.append(tuple(waiting))
                waiting = []
            else:
                waiting.append(token)
        return Statement(tuple(said), tuple(between))


def said_in(tokens: Sequence[Token]) -> frozenset[str]:
    """Return the keys of what has content, voice aside."""
    return frozenset(token.key.rstrip("~") for token in tokens if token.said)


def states(tokens: Sequence[Token], sentence: Sequence[Token], before: Sequence[Token]) -> bool:
    """Return whether a sentence says what a claim's tokens say.

    Args:
        tokens: Of the claim.
        sentence: Of the text.
        before: The sentences before, the nearest last: what a pronoun may stand for.
    """
    earlier = said_in(before)
    pronoun = any(token.kind == "i" or token.key in _OWNERS for token in sentence)
    plain = [_with_nouns(sentence), *_unfolded(sentence), *_relative(sentence)]
    sources = [turned for one in plain for turned in (one, *active(one), *_joined_verb(one))]
    here = frozenset().union(*map(said_in, sources))
    for claim in _wordings(tokens):
        missing = said_in(claim) - here
        if missing and not (pronoun and missing <= earlier):
            continue
        statement = Statement.of(claim)
        for source in sources:
            if (
                _spans(statement, source)
                or _gapped(statement, source)
                or _of_pronoun(claim, source, before)
                or _of_owner(claim, source, before)
                or _moved(claim, source)
            ):
                return True
    return False


def denies(tokens: Sequence[Token], sentence: Sequence[Token], before: Sequence[Token]) -> bool:
    """Return whether a sentence says something else of what a claim speaks of.

    One figure, one operator, one opposite or the order of two things differs, nothing else.
    """
    return any(states(other, sentence, before) for other in _differing(tokens, sentence))


def _differing(tokens: Sequence[Token], sentence: Sequence[Token]) -> Iterator[Sequence[Token]]:
    """Yield what the sentence would have to say for the claim to be wrong."""
    denials = _DENIALS & {token.key for token in sentence if token.said}
    modal = any(token.key in _MODAL for token in tokens)
    for at, token in enumerate(tokens):
        head, tail = list(tokens[:at]), list(tokens[at + 1 :])
        for other in _others(token, sentence):
            yield [*head, *other, *tail]
        if token.kind in "wbh" and not modal:
            for denial in denials:
                yield [*head, token, Token("o", denial), *tail]
        if token.kind == "o" and token.key in ("than", "then", *_ORDERED):
            yield _exchanged(tokens, at)
        if token.past and not token.name and not token.key.endswith("~"):
            end = at + 1
            while end < len(tokens) and tokens[end].kind in "awn":
                end += 1
            yield [*tokens[at + 1 : end], token, *tokens[:at], *tokens[end:]]
    for denial in denials:
        yield [Token("o", denial), *tokens]


def _others(token: Token, sentence: Sequence[Token]) -> Iterator[list[Token]]:
    """Yield what could stand in a word's place in a sentence that says otherwise."""
    keys = {one.key for one in sentence if one.said}
    for other in sentence:
        figures = token.kind == other.kind == "n" and other.key != token.key
        if (figures and not (token.key + " " + other.key + " ").count(". ")) or (
            token.kind == other.kind == "o" and frozenset((token.key, other.key)) in _OPPOSED
        ):
            yield [other]
    if token.kind == "o" and token.key in ("not", "no") and token.key not in keys:
        yield []
    elif token.key in _ANTONYMS and token.key not in keys:
        yield [replace(token, key=_ANTONYMS[token.key])]


def _exchanged(tokens: Sequence[Token], at: int) -> list[Token]:
    """Return a comparison or an order with its two sides exchanged."""
    if tokens[at].key == "than":
        verb = next((n for n, token in enumerate(tokens) if token.kind in "bh"), at)
        end = [token for token in tokens[at + 1 :] if token.kind != ";"]
        return [*end, *tokens[verb : at + 1], *tokens[:verb]]
    end = [token for token in tokens[at + 1 :] if token.kind != ";"]
    start = _measure_start(tokens, at)
    first = [token for token in tokens[:1] if token.key == "1."]
    head = [token for token in tokens[len(first) : start] if token.kind != ","]
    return [*first, *end, *tokens[start:at], tokens[at], *head]


def _wordings(tokens: Sequence[Token]) -> Iterator[Sequence[Token]]:
    """Yield a claim in other voices and orders, and `B after A` for `A before B`."""
    for one in (tokens, *_unfolded(tokens), *_reordered(tokens)):
        at = next((n for n, token in enumerate(one) if token.key in _ORDERED), None)
        if at is None:
            yield from _voices(one)
            continue
        start = _measure_start(one, at)
        measure, operator = one[start:at], one[at]
        end = [token for token in one[at + 1 :] if token.kind != ";"]
        for head in _voices(one[:start]):
            for tail in _voices(end):
                yield [*head, *measure, operator, *tail]
                yield [*tail, *measure, Token("o", _ORDERED[operator.key]), *head]


def _reordered(tokens: Sequence[Token]) -> Iterator[list[Token]]:
    """Yield a claim with one part in its other place.

    `In the war X did Y` is `X did Y in the war`, `N, a chemist, did` is `the chemist N did`, and
    `the 1951 flood` is `the flood of 1951`.
    """
    for at, token in enumerate(tokens):
        front, behind = tokens[:at], tokens[at + 1 :]
        if at and tokens[0].kind == "p" and token.kind in "a," and behind:
            core = [one for one in tokens[at:] if one.kind not in ",;"]
            yield [*core, *front]
        if token.kind == "," and at and front[-1].name and behind and behind[0].kind == "a":
            end = next((n for n, one in enumerate(behind) if one.kind in ",;"), len(behind))
            name = list(takewhile(lambda one: one.name, reversed(front)))[::-1]
            if all(one.kind in "aw" for one in behind[:end]):
                yield [*front[: -len(name)], *behind[:end], *name, *behind[end + 1 :]]
        if token.kind == "n" and len(token.key) == 4 and behind and behind[0].kind == "w":
            yield [*front, behind[0], Token("p", "of"), token, *behind[1:]]


def _voices(tokens: Sequence[Token]) -> Iterator[Sequence[Token]]:
    yield tokens
    yield from active(tokens)
    yield from _subjectless(tokens)
    yield from _imperative(tokens)


def _measure_start(tokens: Sequence[Token], at: int) -> int:
    """Return where `two years` begins before an operator; the operator's place without it."""
    counted = at > 1 and tokens[at - 2].kind == "n" and tokens[at - 1].kind == "w"
    return at - 2 if counted else at


def _unfolded(tokens: Sequence[Token]) -> Iterator[list[Token]]:
    """Yield a sentence in plain order.

    `Before A, B` is `B before A`; `first A, then B` is `A before B`.
    """
    opened = tokens[:1] and tokens[0].kind == "o" and tokens[0].key in (*_ORDERED, *_FRONTED)
    comma = next((n for n, token in enumerate(tokens) if token.kind == ","), None)
    if opened and comma is not None:
        ends = (n for n in range(comma + 1, len(tokens)) if tokens[n].kind == ";")
        stop = next(ends, len(tokens))
        yield [*tokens[comma + 1 : stop], *tokens[:comma], *tokens[stop:]]
    then = next((n for n, token in enumerate(tokens) if token.key == "then"), None)
    if then:
        head = [token for token in tokens[:then] if token.key != "1." and token.kind not in ",c"]
        yield [*head, Token("o", "before"), *tokens[then + 1 :]]


def _relative(tokens: Sequence[Token]) -> Iterator[list[Token]]:
    """Yield of `..., X, who does` the part `X does`; a claim may be no more than it."""
    for at, token in enumerate(tokens):
        if token.key not in ("who", "which"):
            continue
        end = at - 1 if at and tokens[at - 1].kind == "," else at
        start = end
        while start and tokens[start - 1].kind in "wn" and tokens[start - 1].name:
            start -= 1
        if start == end:
            while start and tokens[start - 1].kind in "wn":
                start -= 1
            if not start or tokens[start - 1].kind != "a":
                continue
        if start < end:
            yield [*tokens[start:end], *tokens[at + 1 :]]


def active(tokens: Sequence[Token]) -> Iterator[list[Token]]:
    """Yield the sentence with a passive verb turned: `X was done by Y in Z` is `Y done X in Z`."""
    for at, token in enumerate(tokens):
        if token.kind != "w" or not token.key.endswith("~"):
            continue
        start = _clause_start(tokens, at)
        by = next((n for n in range(at + 1, len(tokens)) if tokens[n].key == "by"), None)
        if by is None or any(one.kind in ",;r" for one in tokens[at:by]):
            continue
        end = by + 1
        while end < len(tokens) and (tokens[end].kind in "awn" or tokens[end].key == "of"):
            end += 1
        be = next((n for n in range(at, start, -1) if tokens[n].kind == "b"), at)
        thing = be
        while thing > start and tokens[thing - 1].kind in "oh":
            thing -= 1
        verb = _behind_particles(tokens, at + 1)
        yield [
            *tokens[:start],
            *tokens[by + 1 : end],
            *tokens[thing:be],
            *tokens[be + 1 : at],
            replace(token, key=token.key[:-1]),
            *tokens[at + 1 : verb],
            *tokens[start:thing],
            *tokens[verb:by],
            *tokens[end:],
        ]


def _with_nouns(tokens: Sequence[Token]) -> Sequence[Token]:
    """Return a sentence with the noun before the last division in place of `ones`."""
    found = list(tokens)
    for at, token in enumerate(tokens):
        if token.key == "one" and at and tokens[at - 1].kind == "w":
            ends = [
                n for n in range(1, at) if tokens[n].kind in ",;c" and tokens[n - 1].kind == "w"
            ]
            if ends:
                found[at] = replace(tokens[ends[-1] - 1], name=False)
    return found


def _joined_verb(tokens: Sequence[Token]) -> Iterator[list[Token]]:
    """Yield `pull the tube out` as `pull out the tube`."""
    for at, token in enumerate(tokens):
        if token.key not in _PARTICLES or at < 2 or tokens[at - 1].kind != "w":
            continue
        start = at
        while start and tokens[start - 1].kind in "wn":
            start -= 1
        if start and tokens[start - 1].kind == "a" and start > 1:
            verb = start - 1
            yield [*tokens[:verb], token, *tokens[verb:at], *tokens[at + 1 :]]


def _behind_particles(tokens: Sequence[Token], at: int) -> int:
    while at < len(tokens) and tokens[at].key in _PARTICLES:
        at += 1
    return at


def _subjectless(tokens: Sequence[Token]) -> Iterator[list[Token]]:
    """Yield a passive claim that names no doer as what is done: `done X`."""
    for at, token in enumerate(tokens):
        if token.kind == "w" and token.key.endswith("~"):
            if any(one.key == "by" for one in tokens):
                return
            be = next((n for n in range(at, -1, -1) if tokens[n].kind == "b"), at)
            verb = _behind_particles(tokens, at + 1)
            yield [
                *tokens[be + 1 : at],
                replace(token, key=token.key[:-1]),
                *tokens[at + 1 : verb],
                *tokens[:be],
                *tokens[verb:],
            ]


def _clause_start(tokens: Sequence[Token], at: int) -> int:
    return next((n + 1 for n in range(at - 1, -1, -1) if tokens[n].kind in ",;rc"), 0)


def _imperative(tokens: Sequence[Token]) -> Iterator[list[Token]]:
    """Yield `you must do` as `do`, and `you must never do` as `never do`."""
    if len(tokens) > 2 and tokens[0].key == "you":
        if tokens[1].key == "must":
            yield list(tokens[2:])
        elif tokens[1].key == "forbidden":
            yield [Token("o", "not"), *tokens[2:]]


def _spans(
    statement: Statement, source: Sequence[Token], *, whole: bool = True
) -> set[tuple[int, int]]:
    """Return where a statement stands: places of its first and its last word."""
    said = statement.said
    if not said:
        return set()
    places = [[n for n, one in enumerate(source) if _same(token, one)] for token in said]
    if not all(places):
        return set()
    found: set[tuple[int, int]] = set()
    for first in places[0]:
        if whole and not _may_begin(source, first, statement.between[0]):
            continue
        reached = {first}
        for at in range(1, len(said)):
            reached = {
                later
                for later in places[at]
                if any(
                    one < later and _may_skip(source, one, later, statement, at) for one in reached
                )
            }
        found |= {(first, last) for last in reached if not whole or _may_end(source, last)}
    return found


def _same(token: Token, other: Token) -> bool:
    return other.said and token.key == other.key


def _prepositions(tokens: Sequence[Token]) -> set[str]:
    return {token.key for token in tokens if token.kind == "p"}


def _may_skip(source: Sequence[Token], one: int, later: int, statement: Statement, at: int) -> bool:
    """Return whether what stands between two words of a claim can be left out."""
    gap, between = source[one + 1 : later], statement.between[at]
    pronouns = any(token.kind == "i" for token in between)
    content = [token for token in gap if token.said or (token.kind == "i" and not pronouns)]
    kinds = {token.kind for token in gap}
    number = "n" in (source[one].kind, source[later].kind)
    if ";" in kinds:
        return False
    wanted = _prepositions(between)
    linked = any(token.kind == "b" for token in between)
    if (wanted and not wanted & _prepositions(gap)) or (linked and not _links(gap, number)):
        return False
    if not content:
        return _may_link(gap, between, number=number)
    if not between and source[one].kind == "n":
        return False
    if source[later].key in _ORDERED:
        return not kinds & set("rcobhi")
    if _dated(content, source[later]) or _inserted(gap):
        return True
    if kinds & {"i", "r", "("} or any(token.kind == "o" for token in gap[:2]):
        return False
    if _conjoined(gap):
        return True
    if kinds & {"n", "o", "b", "h"} or (number and not between):
        return False
    return len(content) <= _MOST_LEFT_OUT and _is_phrase(gap, bool(wanted))


def _may_link(gap: Sequence[Token], between: Sequence[Token], *, number: bool) -> bool:
    """Return whether two words with nothing said between them belong together."""
    if _prepositions(between):  # not: it lived in Warsaw, but in 1945
        return not any(token.key in _CONTRASTS and token not in between for token in gap)
    return not _prepositions(gap) or number or any(token.kind == "b" for token in gap)


def _dated(content: Sequence[Token], later: Token) -> bool:
    """Return whether what is left out is the day or month of a date: on 3 March 2016, in 2016."""
    year = later.kind == "n" and len(later.key) == 4
    return (year or later.key in _MONTHS) and all(
        token.key in _MONTHS or (token.kind == "n" and len(token.key) <= 2) for token in content
    )


def _is_phrase(gap: Sequence[Token], wanted: bool) -> bool:
    """Return whether a gap is a phrase of its own: `and B`, or `of the house` without a verb."""
    if gap[0].kind in "c,":
        return not wanted
    if gap[0].kind not in "ap" or any(token.kind in "c," or token.past for token in gap):
        return False
    return bool(_prepositions(_trailing(gap))) == wanted


def _links(gap: Sequence[Token], number: bool) -> bool:
    """Return whether one thing is said to be another: by a form of be, a comma or a colon."""
    return any(token.kind in "b,(" or (number and token.kind == "p") for token in gap)


def _inserted(gap: Sequence[Token]) -> bool:
    """Return whether a gap is one insertion in brackets or between commas."""
    kinds = "".join(token.kind for token in gap)
    if kinds.startswith("(") and kinds.find(")") > 0:
        rest = gap[kinds.find(")") + 1 :]
        return not any(token.said or token.kind in ",(" for token in rest)
    if kinds.startswith(",") and kinds.find(",", 1) > 0:
        rest = gap[kinds.rfind(",") + 1 :]
        return kinds.count(",") == 2 and not any(token.said or token.kind == "c" for token in rest)
    return False


def _trailing(gap: Sequence[Token]) -> Sequence[Token]:
    """Return the tokens without content at the end of a gap."""
    at = len(gap)
    while at and not gap[at - 1].said:
        at -= 1
    return gap[at:]


def _conjoined(gap: Sequence[Token]) -> bool:
    """Return whether a gap ends in a conjunction, or in the comma of a list."""
    trailing = _trailing(gap)
    return any(
        token.kind == "c" or (token.kind == "," and len(trailing) <= 2) for token in trailing
    )


def _may_begin(source: Sequence[Token], first: int, lead: Sequence[Token]) -> bool:
    """Return whether what stands before a claim can be left out."""
    start = _clause_start(source, first)
    stretch, rest = source[start:first], source[:start]
    if any(token.kind == "o" and token.key in _CONDITIONS for token in rest):
        return False
    if rest and rest[-1].kind == "r":
        return False
    if any(token.kind in "obhir" for token in stretch) or any(token.past for token in stretch):
        return False
    free = _trailing(stretch)
    if _prepositions(free) - _prepositions(lead):
        return False
    content = [token for token in stretch if token.said]
    adverbial = bool(stretch) and (stretch[0].kind == "p" or stretch[0].key == "1.")
    return len(content) <= 3 and (adverbial or not any(token.kind == "n" for token in content))


def _may_end(source: Sequence[Token], last: int) -> bool:
    """Return whether what stands behind a claim can be left out."""
    rest = source[last + 1 :]
    if not rest:
        return True
    if rest[0].kind in "wnbh" or (rest[0].kind == "o" and rest[0].key in _MODAL | {"than"}):
        return False
    for token in rest:
        if token.kind == ";":
            return True
        if token.kind == "o" and token.key in _BOUND - {"not"}:
            return False
    return True


def _gapped(statement: Statement, source: Sequence[Token]) -> bool:
    """Return whether a clause without its verb says it: `A opens at six, B at nine`.

    The words that the second clause lacks stand in the first one, between its own parts.
    """
    said, between = statement.said, statement.between
    if len(said) < 3:
        return False
    for cut in (n for n, token in enumerate(source) if token.kind in ",;c"):
        first, second = source[:cut], source[cut + 1 :]
        opening = [token for token in second if token.kind in "wn"][:1]
        if not opening or opening[0].key != said[0].key or not first:
            continue
        begin = _clause_start(first, len(first))
        first = first[begin:] if any(token.said for token in first[begin:]) else first
        for left in range(1, len(said)):
            for right in range(left + 1, len(said)):
                lent = said[left:right]
                own = Statement(
                    (*said[:left], *said[right:]),
                    (*between[:left], _plain(between[right]), *between[right + 1 :]),
                )
                if (
                    _follow(lent, first)
                    and not any(_same(token, one) for token in lent for one in second)
                    and not any(token.past and not token.name for token in second)
                    and any(span[0] <= 3 for span in _spans(own, second))
                    and _parallel(lent, said[right], first)
                ):
                    return True
    return False


def _plain(tokens: Sequence[Token]) -> tuple[Token, ...]:
    return tuple(token for token in tokens if token.kind != "b")


def _follow(lent: Sequence[Token], first: Sequence[Token]) -> bool:
    """Return whether words stand in a clause without content between them, not at its start."""
    words = [token.key for token in first if token.said]
    keys = [token.key for token in lent]
    return any(words[at : at + len(keys)] == keys for at in range(1, len(words)))


def _parallel(lent: Sequence[Token], value: Token, first: Sequence[Token]) -> bool:
    """Return whether what follows the lent words in the first clause is of the value's kind."""
    words = [token for token in first if token.said]
    at = next(n for n, token in enumerate(words) if token.key == lent[-1].key)
    if at + 1 >= len(words):
        return False
    return words[at + 1].kind == value.kind


def _of_pronoun(tokens: Sequence[Token], source: Sequence[Token], before: Sequence[Token]) -> bool:
    """Return whether a pronoun stands for the thing that a claim begins with."""
    pronouns = [n for n, token in enumerate(source) if token.kind == "i"]
    content = [n for n, token in enumerate(tokens) if token.said]
    for size in range(1, min(_SUBJECT, len(content))):
        thing = [tokens[n] for n in content[:size]]
        claim = tokens[content[size - 1] + 1 :]
        for place in pronouns:
            earlier = [*before, *source[:place]]
            if not _named_before(thing, earlier, source[place]):
                continue
            mark = Token("w", "\u2020")
            marked = [*source[:place], mark, *source[place + 1 :]]
            statement = Statement.of([mark, *claim])
            if _spans(statement, marked) or _moved([mark, *claim], marked):
                return True
    return False


def _of_owner(tokens: Sequence[Token], source: Sequence[Token], before: Sequence[Token]) -> bool:
    """Return whether `its point` stands for the point of the thing that a claim names."""
    for place in (n for n, token in enumerate(source) if token.key in _OWNERS):
        owned = [token.key for token in source[place + 1 : place + 4] if token.said]
        earlier = [*before, *source[:place]]
        for at in (n for n, token in enumerate(tokens) if token.key == "of"):
            if at == 0 or tokens[at - 1].key not in owned:
                continue
            for end in range(at + 2, min(at + 2 + _SUBJECT, len(tokens) + 1)):
                thing = [token for token in tokens[at + 1 : end] if token.said]
                rest = Statement.of([*tokens[:at], *tokens[end:]])
                if thing and _named_before(thing, earlier, source[place]) and _spans(rest, source):
                    return True
    return False


def _named_before(thing: Sequence[Token], before: Sequence[Token], pronoun: Token) -> bool:
    """Return whether a thing opens a sentence before, or is the last person named before.

    Sentences that speak of it by a pronoun themselves are gone over.
    """
    keys = [token.key for token in thing]
    forms = next(forms for forms in _PRONOUNS if pronoun.key in forms)
    clauses: list[list[Token]] = [[]]
    for token in before:
        if token.kind == ";":
            clauses.append([])
        else:
            clauses[-1].append(token)
    clauses = [clause for clause in clauses if any(token.said for token in clause)]
    for at, clause in enumerate(reversed(clauses)):
        words = [token for token in clause if token.said]
        surname = [token.key for token in takewhile(lambda token: token.name, words[1:])][-1:]
        if keys in ([token.key for token in words[: len(keys)]], surname):
            return True
        named = [token.key for token in words if _named(token)]
        if at == 0 and pronoun.key in ("he", "she") and named and named[-len(keys) :] == keys:
            return True
        if not any(token.key in forms for token in clause) and (at or any(map(_named, words))):
            return False
    return False


def _named(token: Token) -> bool:
    return token.name and token.key not in _MONTHS


def _moved(tokens: Sequence[Token], source: Sequence[Token]) -> bool:
    """Return whether it says the claim with a phrase at its other end: in 2016, at the mill."""
    cuts = [n for n, token in enumerate(tokens) if token.kind == "p" and n]
    for cut in cuts:
        phrase = [token for token in tokens[cut:] if token.kind != ";"]
        if _apart(tokens[:cut], phrase, source):
            return True
    if tokens and tokens[0].kind == "p":
        for end in range(2, min(len(tokens), 8)):
            if _apart([token for token in tokens[end:] if token.kind != ","], tokens[:end], source):
                return True
    return False


def _apart(core: Sequence[Token], phrase: Sequence[Token], source: Sequence[Token]) -> bool:
    """Return whether a claim's core and a phrase of it stand in one clause of the source."""
    statement, block = Statement.of(core), Statement.of(phrase)
    if not statement.said or not block.said or any(token.kind == "r" for token in phrase):
        return False
    spans = _spans(statement, source)
    if not spans:
        return False
    wanted = _prepositions(block.between[0])
    for begin, end in _spans(block, source, whole=False):
        lead = source[max(0, begin - 3) : begin]
        if not wanted & _prepositions(_trailing(lead)):
            continue
        goes_on = end + 1 < len(source) and source[end + 1].kind in "wn"
        for first, last in spans:
            if goes_on and first != end + 1:
                continue
            inner = source[end + 1 : first] if end < first else source[last + 1 : begin]
            if first < begin < last:
                inner = source[end + 1 : last]
            kinds = [token.kind for token in inner if token.kind in ",;cr"]
            content = sum(token.said for token in inner)
            if kinds in ([], [","] if end < first else []) and content <= _MOST_LEFT_OUT:
                return True
    return False


def verdict_on(
    tokens: Sequence[Token], sentences: Sequence[Sequence[Token]], titles: Sequence[Token]
) -> tuple[bool | None, int]:
    """Return True, False or None for what a text's sentences say of a claim, and which one.

    Args:
        tokens: Of the claim, one sentence.
        sentences: The text's, read.
        titles: Of the document and section, what `it` may stand for at the beginning.
    """
    wanted = said_in(tokens)
    near: list[tuple[int, Sequence[Token]]] = []
    for at, sentence in enumerate(sentences):
        if len(sentence) > _LONGEST:
            continue
        found = said_in(sentence)
        pronoun = any(token.kind == "i" or token.key in _OWNERS for token in sentence)
        if len(wanted & found) >= (0.3 if pronoun else 0.6) * len(wanted):
            before = [*titles, _STOP]
            for one in sentences[max(0, at - _BACK) : at]:
                before += [*one, _STOP]
            near.append((at, before))
    for judged, answer in ((states, True), (denies, False)):
        for at, earlier in near:
            if judged(tokens, sentences[at], earlier):
                return answer, at
    return None, -1


# Read the rows of tables in a text, and say what a row or two rows hold of a claim.

_RULE = re.compile(r"\s*\|?\s*:?-{2,}:?\s*(?:\|\s*:?-{2,}:?\s*)*\|?\s*")
_LABELLED = re.compile(r"([^:|]{1,80}):\s+(.*)")
_NAMED_VALUE = re.compile(
    r"[ \t]*(?:[-*][ \t]+)?[^:|.!?\t]{2,60}:[ \t]+[^:;|\t\n]{0,9}\d[^:;|\t\n]{0,30}"
)
"""A line of a list of values: `Microchip: 18`; only with another above or below it."""
_FEWEST_CELLS = 2
_CAPTION = 300
"""Characters of the text before a table that may name what it is about."""
_LIGHT = frozenset(
    "take price get hold list show amount total reach stand lie come measur count number record"
    " report valu equal hav cell row column figur".split()
)
"""Words that say no more than that a cell has a value; also `measured~` and the like."""
_MORE = frozenset(
    "more higher larger greater longer older bigger heavier taller wider deeper warmer hotter later"
    " dearer faster newer newest most highest largest greatest longest oldest biggest heaviest"
    " tallest widest deepest warmest hottest latest dearest".split()
)
_LESS = frozenset(
    "less fewer lower smaller shorter younger lighter narrower colder cooler earlier cheaper slower"
    " least fewest lowest smallest shortest youngest lightest narrowest coldest earliest"
    " cheapest".split()
)
_OF_AGE = frozenset(("older", "oldest", "younger", "youngest"))
"""The older of two has the smaller year."""
_OF_TIME = frozenset(("newer", "newest", "earlier", "earliest", "later", "latest"))
_YEARS = (1000, 2100)
_UTMOST = re.compile(r"(?:most|least|fewest|\w+est)\Z")


@dataclass(frozen=True, slots=True)
class Cell:
    """A value under its label, by the keys of their words; `value` is None where no number is."""

    label: frozenset[str]
    words: frozenset[str]
    number: float | None


@dataclass(frozen=True, slots=True)
class Row:
    """A row of a table at `[start, end)` of its text."""

    start: int
    end: int
    cells: tuple[Cell, ...]
    table: int
    about: frozenset[str]
    """Words of the caption and of the first line of the text."""

    @property
    def key(self) -> Cell | None:
        """The cell that names the row: its first with words."""
        return next((cell for cell in self.cells if cell.words), None)


def rows_of(text: str, title: str = "") -> list[Row]:
    """Return the rows of Markdown tables, of tables between tabs and of labelled lines."""
    rows: list[Row] = []
    head: list[str] | None = None
    table, at, last_end, above = 0, 0, -1, text[: text.find("\n") + 1]
    about: frozenset[str] = frozenset()
    lines = text.split("\n")
    named_lines = [bool(_NAMED_VALUE.fullmatch(line)) for line in lines]
    for number, line in enumerate(lines):
        start, end = at, at + len(line)
        at = end + 1
        if _RULE.fullmatch(line) and "-" in line:
            continue
        if named_lines[number] and any(named_lines[max(0, number - 1) : number + 2 : 2]):
            about = said_in(read(f"{title} . {above}"))
            name, value = line.split(":", 1)
            rows.append(Row(start, end, (_cell("", name), _cell("", value)), -1, about))
            head = None
            continue
        cells = _cells(line)
        if len(cells) < _FEWEST_CELLS:
            head = None
            continue
        if head is None or (last_end >= 0 and start > last_end + 200):
            table += 1
            before = text[max(0, start - _CAPTION) : start]
            about = said_in(read(f"{title} . {above} . {before}"))
        labelled = [_LABELLED.fullmatch(cell) for cell in cells]
        if all(labelled):
            named = [(found[1], found[2]) for found in labelled if found]
            head = head or [""]
        elif head is None or len(head) != len(cells):
            following = lines[number + 1] if number + 1 < len(lines) else ""
            head = cells if _RULE.fullmatch(following) or "\t" in line else [""]
            continue
        else:
            named = list(zip(head, cells, strict=True))
        rows.append(Row(start, end, tuple(_cell(*pair) for pair in named), table, about))
        last_end = end
    return rows


def _cells(line: str) -> list[str]:
    mark = "|" if "|" in line else "\t"
    cells = [cell.strip() for cell in line.strip().strip("|").split(mark)]
    return cells if mark in line else []


def _cell(label: str, value: str) -> Cell:
    tokens = read(value)
    numbers = [token.key for token in tokens if token.kind == "n" and not token.key.endswith(".")]
    negative = value.strip().startswith(("-", "\u2212", "("))
    number = float(numbers[0]) * (-1 if negative else 1) if len(numbers) == 1 else None
    return Cell(said_in(read(label)), said_in(tokens), number)


def rows_say(tokens: Sequence[Token], rows: Sequence[Row]) -> tuple[bool | None, Row | None]:
    """Return whether a table holds a claim, says otherwise, or neither, and the row."""
    said = [token for token in tokens if token.said]
    words = said_in(said)
    against: Row | None = None
    computed = list(_computed(tokens, words, rows))
    if computed:
        return computed[0]
    if any(token.kind == "o" for token in said) or words & (_MORE | _LESS):
        return None, None
    for row in rows:
        found = [cell for cell in row.cells if cell.words and _stands(cell, said)]
        if len({cell.words for cell in row.cells}) < _FEWEST_CELLS:
            continue  # a line across the table
        if _holds(words, row, found):
            return True, row
        if against is None and _contradicts(said, words, row, rows):
            against = row
    return (None, None) if against is None else (False, against)


def _stands(cell: Cell, said: Sequence[Token]) -> bool:
    """Return whether a claim has the words of a cell together."""
    keys = [token.key.rstrip("~") for token in said]
    size = len(cell.words)
    return any(cell.words == frozenset(keys[at : at + size]) for at in range(len(keys)))


def _holds(words: frozenset[str], row: Row, found: Sequence[Cell]) -> bool:
    """Return whether a row has all words of a claim, each value with its label."""
    first = row.key
    if first is None or first not in found:
        return False
    values = [cell for cell in found if cell is not first and (cell.label & words or row.table < 0)]
    told = frozenset().union(*(cell.label | cell.words for cell in (first, *values)))
    others = [cell for cell in row.cells if cell not in values and cell is not first]
    if not values or any(
        cell.label - told - row.about and cell.label - told <= words for cell in others
    ):
        return False
    figures = frozenset(word for word in words if word[0].isdigit())
    explained = told | _LIGHT | (row.about - figures if not figures <= told else row.about)
    return words <= explained | (row.about & figures)


def _contradicts(
    said: Sequence[Token], words: frozenset[str], row: Row, rows: Sequence[Row]
) -> bool:
    """Return whether a claim names the row and one label, and gives it another value."""
    first = row.key
    if first is None or not first.words <= words:
        return False
    left = words - first.words - first.label - _LIGHT
    if row.table < 0:  # a named value: another figure and nothing else
        left -= row.about | row.cells[1].words
        return bool(left) and all(token.kind == "n" for token in said if token.key in left)
    named = [cell for cell in row.cells if cell is not first and cell.label and cell.label <= words]
    if len(named) != 1 or named[0].words <= words:
        return False
    left -= named[0].label
    if named[0].number is not None:
        return any(token.kind == "n" and token.key in left for token in said)
    column = row.cells.index(named[0])
    return any(
        len(other.cells) > column
        and other.table == row.table
        and other.cells[column].words
        and other.cells[column].words <= left
        for other in rows
    )


def _computed(
    tokens: Sequence[Token], words: frozenset[str], rows: Sequence[Row]
) -> Iterator[tuple[bool | None, Row | None]]:
    """Yield the verdict on a comparison of two rows, or on the utmost of a column."""
    sign = bool(words & _MORE) - bool(words & _LESS)
    if not sign:
        return
    than = next((n for n, token in enumerate(tokens) if token.key == "than"), None)
    sides = (tokens, ()) if than is None else (tokens[:than], tokens[than + 1 :])
    utmost = any(_UTMOST.match(word) for word in words & (_MORE | _LESS))
    if utmost == (than is not None):
        return
    one, two = (said_in(side) for side in sides)
    for row in rows:
        key = row.key
        if key is None or not key.words <= one:
            continue
        others = [
            other
            for other in rows
            if other is not row
            and other.table == row.table
            and len(other.cells) == len(row.cells)
            and (utmost or any(cell.words and cell.words <= two for cell in other.cells[:1]))
        ]
        counted = [
            n for n, cell in enumerate(row.cells) if cell is not key and cell.number is not None
        ]
        years = [n for n in counted if _YEARS[0] <= (row.cells[n].number or 0) <= _YEARS[1]]
        columns = [n for n in counted if row.cells[n].label & words]
        if words & (_OF_AGE | _OF_TIME) and not columns:
            columns = years
        if len(columns) != 1 or not others:
            continue
        column = row.cells[columns[0]]
        named = frozenset().union(*(other.cells[0].words for other in others if not utmost))
        told = key.words | key.label | column.label | named | row.about | _LIGHT | _MORE | _LESS
        if not words <= told | {"than", "all", str(len(others) + 1)}:
            continue
        way = -sign if words & _OF_AGE and columns[0] in years else sign
        values = [other.cells[columns[0]].number for other in others]
        if column.number is None or any(value is None for value in values):
            continue
        yield (
            all(way * (column.number - value) > 0 for value in values if value is not None),
            row,
        )
