"""Decide whether a text says what a sentence says, in one place."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import takewhile

from app.generation.language.clauses import Token, said_in

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
_PRONOUNS = (("she", "her"), ("he", "him", "his"), ("it", "its"), ("they", "them", "their"))
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
