"""Choose which sentences an answer quotes, and how many it has room for.

An answer leads with the best sentence; others that come near it follow in reading order, as many
as the kind of question has room for.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from app.core.languages import LANGUAGES, words_like
from app.core.sentences import CELLS
from app.core.text import identifiers, tokenise, word_count
from app.generation.language.claims import content_tokens, term_weights
from app.generation.quote.candidates import NUMBERED, Candidate, quotable
from app.generation.quote.quote_features import Floats

# Decide how much an answer may quote, by the kind of question.

_SEVERAL = (
    "actions|acts|advantages|disadvantages|aspects|benefits|causes|challenges|changes"
    "|characteristics|components|concerns|conditions|consequences|contributions|criteria"
    "|criticisms|details|differences|drawbacks|duties|effects|elements|events|examples|factors"
    "|features|findings|functions|goals|guidelines|impacts|implications|influences|issues"
    "|limitations|measures|methods|objectives|outcomes|phases|plans|points|policies|practices"
    "|principles|problems|proposals|provisions|purposes|qualities|reasons|recommendations"
    "|requirements|responsibilities|results|risks|roles|rules|similarities|stages|steps"
    "|strategies|symptoms|tasks|techniques|themes|types|uses|ways"
)
_COUNTED = r"(?!.{0,30}\b(?:two|three|four|five|six|[2-9])\b)"
"""A question that says how many is answered where the text says so: in one sentence."""
_ASKS_FOR_SEVERAL = re.compile(
    rf"\b(?:what|which)\s+{_COUNTED}(?:[\w'\u2019-]+\s+){{0,3}}?(?:{_SEVERAL})\b"
    r"|\b(?:what|which) (?:are|were) (?:some|all|the (?:various|different|main|key|major))\b"
    rf"|\b(?:what|which) (?:are|were) {_COUNTED}(?:the )?(?:\w+ ){{0,2}}?[a-z]{{3,}}[^\W\dsui]s"
    r" (?:of|in|for|about|between|noted|raised|made|proposed|that|to|from|behind|under|with)\b"
    rf"|\A\W*(?:in|into|of|from|to|with|on|for|at|by) (?:what|which) {_COUNTED}(?:\w+ )?[a-z]{{3,}}"
    r"[^\W\dsui]s\b"
    r"|\b(?:list|name|describe|outline|enumerate)\b\s+(?:the|all|some)\b"
    r"|,? and (?:what|how|why|when|who|which|where)\b(?= \w+ \w+)",
    re.IGNORECASE,
)
_ASKS_FOR_STEPS = re.compile(
    r"\bhow (?:to|(?:do|can|could|should|would|must) (?:i|you|we|one|people|users?))\b|\b(?:what"
    r"|which) steps\b",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class QuoteBudget:
    """The most that is quoted, and whether all of it stands in reading order."""

    sentences: int = 5
    words: int = 130
    in_order: bool = False
    ends: bool = False
    """Whether one thing is asked for: what follows comes near the best sentence, and only goes on
    from it once it holds all of the question; more than three bring more of the question."""


PLAIN = QuoteBudget(ends=True)
SEVERAL = QuoteBudget(5, 200)
STEPS = QuoteBudget(8, 240, in_order=True)
SUMMARY = QuoteBudget(10, 400, in_order=True)
"""Of a topic; a summary of a document goes by its parts."""


def quote_budget(question: str) -> QuoteBudget:
    """Return an answer's room: more for several things and for steps, which stand in order."""
    if _ASKS_FOR_STEPS.search(question):
        return STEPS
    return SEVERAL if _ASKS_FOR_SEVERAL.search(question) else PLAIN


# Choose the sentences of a quote.

_MOST_ENTRIES = 12
"""Of one list."""
_MOST_BETWEEN = 3
"""Sentences from one item to the next, some of which cannot be quoted."""
_MIN_WORDS_ENTRY = 4
"""Words from which an entry of a list may be quoted without its list."""
_NEAR_DUPLICATE = 0.7
"""Jaccard similarity of words from which two sentences say the same."""
_CONTINUATION = 0.5
"""Score (log-odds) that the sentence after the best one may be worse and still be quoted: two in
a row read as a text."""
_NEAR = 5.0
"""Score (log-odds) that a sentence may be worse than the best one and still be quoted, of any
document where one thing is asked for, of another document else (docs/decisions/0050)."""
_FREELY = 3
"""Sentences of an answer to one thing; further ones are nearer and have another word of it."""
_NEARER = 2.25
_ROWS_APART = 2.0
"""Score (log-odds) that another row of the table may be worse and still be quoted: from 2.6 on a
question for one cell gets its neighbours too (docs/decisions/0050)."""
_RUN_IN = re.compile(r"[A-Z][^.:;|]{2,50}: (?=\S)")
"""The head of an item in running text."""
_RUNS_ON = re.compile(rf"[a-z]: {_RUN_IN.pattern}")
_HELD = 0.5
"""Share of the words asked for, by weight, that another sentence holds behind a complete one."""
_ASKS_HOW = re.compile(
    r"\bhow\b(?! (?:many|much|long|old|far|often|big|large|tall|high|deep|fast|wide)\b)"
    r"|\b(?:which|what) (?:are the )?(?:steps|stages)\b"
    r"|\bwhat (?:do|must|should) (?:i|we|you) do\b",
    re.IGNORECASE,
)
_MAIL_HEAD = re.compile(r"(?:From|To|Cc|Bcc|Reply-To): [^\n]*@")
"""The head of a mail answers only who wrote to whom."""
_ASKS_OF_MAIL = re.compile(
    r"\b(?:e-?mails?|mails?|messages?|letters?|send|sends|sent|senders?|recipients?|wrote"
    r"|written|writes?|address(?:es|ed)?|repl(?:y|ies|ied)|contact|from whom|to whom)\b|@",
    re.IGNORECASE,
)
_ASKS_WHO = re.compile(r"\bwho(?:m|se)?\b", re.IGNORECASE)
_WRITER = re.compile(r"From: [^\n]*@|[^\n]*\b(?:wrote|schrieb|escribi\u00f3|a \u00e9crit) ?:\Z")
"""Stands above what someone wrote, in a mail and above the mails that it answers."""
_PRONOUNS = {word for one in LANGUAGES.values() for word in one.first_person.split()}
_MEANS_WRITER = re.compile(
    rf"\b(?:{'|'.join(sorted({*(_PRONOUNS - {'i'}), *map(str.capitalize, _PRONOUNS)}))})\b"
)
_PREFERENCE = 0.5
"""Score (log-odds) that a whole sentence which does not dangle may be worse and still open the
answer."""


def choose(
    question: str, found: Sequence[Candidate], scores: Floats, room: QuoteBudget = PLAIN
) -> tuple[Candidate, ...]:
    """Return distinct sentences to quote: the best, then in reading order.

    Sentences that read like instructions are never chosen. One that is cut off or begins with a
    pronoun that means nothing alone opens the answer only when nothing comes near it, and then
    behind the sentence before it, where that can be quoted. One that announces a list gives way to
    the list; where none is found it is not quoted if anything else can be. Rows of a table are
    quoted among themselves.
    """
    order = [int(row) for row in np.argsort(-scores, kind="stable") if _answers(found[int(row)])]
    order = _of_the_year(question, found, _of_the_record(question, found, order))
    order = _of_the_named(question, found, order)
    order = [row for row in order if not _only_announces(found, row)] or order
    if not _ASKS_OF_MAIL.search(question):
        order = [row for row in order if not _MAIL_HEAD.match(found[row].text)] or order
    if not order:
        return ()
    lead = next(
        (
            row
            for row in order
            if _stands_alone(found[row]) and scores[row] >= scores[order[0]] - _PREFERENCE
        ),
        order[0],
    )
    if items := _items_of(found, lead) or _list_of(question, found, lead):
        return items
    if found[lead].row or found[lead].is_field:
        return _rows_of(question, found, order, scores, lead)
    order = [row for row in order if row == lead or not (found[row].row or _is_cut(found[row]))]
    opening = _opening(question, found, order, lead, room)
    others = _Others(question, found, found[lead], ends=room.ends)
    near, nearer = scores[lead] - _NEAR, scores[lead] - _NEARER
    order = [
        row
        for row in order
        if others.belong(found[row])
        and (scores[row] >= near or (not room.ends and others.are_of(found[row])))
    ]
    chosen = list(opening)
    left = room.words - sum(word_count(candidate.text) for candidate in chosen)
    after = (chosen[-1].item.n, chosen[-1].ordinal + 1)
    for row in sorted(
        order, key=lambda row: scores[row] + _CONTINUATION * (found[row].key == after), reverse=True
    ):
        candidate = found[row]
        together = dict.fromkeys((candidate, *_items_of(found, row)))
        length = sum(word_count(one.text) for one in together)
        if length > left or any(_alike(candidate, other) for other in chosen):
            continue
        is_more = room.ends and len(chosen) >= _FREELY
        if is_more and not (scores[row] >= nearer and others.add(candidate, chosen)):
            continue
        chosen += [one for one in together if one not in chosen]
        left -= length
        if len(chosen) >= room.sentences:
            break
    if room.in_order:
        return tuple(sorted(chosen, key=lambda candidate: candidate.key))
    return (*opening, *sorted(chosen[len(opening) :], key=lambda candidate: candidate.key))


def _of_the_record(question: str, found: Sequence[Candidate], order: Sequence[int]) -> list[int]:
    """Return the order without what is about other records than the one that a question names.

    Rows that do not have its code are, and sentences that have another one.
    """
    named = set(identifiers(question))
    holds, is_other = set(), set()
    for row in order if named else ():
        codes = set(identifiers(f"{found[row].above} {found[row].text}"))
        if named & codes:
            holds.add(row)
        elif codes or found[row].row:
            is_other.add(row)
    return [row for row in order if row not in is_other] if holds else list(order)


_OTHERS = words_like(one.beside for one in LANGUAGES.values())
"""Things are asked for next to the named one."""


def _of_the_named(question: str, found: Sequence[Candidate], order: Sequence[int]) -> list[int]:
    """Return the order without rows that have something else where others have what is named.

    Where a cell under a label is a name of the question, Place 63, a row with another value under
    this label is about another thing.
    """
    if _OTHERS.search(question):
        return list(order)
    asked = f" {' '.join(tokenise(question))} "
    named: dict[str, set[str]] = {}
    rows = [row for row in order if found[row].row]
    for row in rows:
        for label, value in found[row].cells[:1]:
            is_name = _NAMING.search(f" {value}") and any(map(str.isalpha, value))
            if is_name and f" {' '.join(tokenise(value))} " in asked:
                named.setdefault(label, set()).add(value)
    return [
        row
        for row in order
        if not found[row].row
        or all(value in named.get(label, {value}) for label, value in found[row].cells[:1])
    ]


def lacks_its_cell(question: str, lead: Candidate, others: Sequence[Candidate]) -> bool:
    """Return whether a row has no value where a column is asked for.

    The question has all words of the label, and other rows of its document have a value under it.
    """
    if not lead.row:
        return False
    asked, own = set(tokenise(question)), {label for label, _ in lead.cells}
    told = set().union(*(tokenise(label) for label in own)) if own else set[str]()
    doc_id = lead.item.hit.passage.chunk.doc_id
    first = lead.cells[0][0]
    for other in others:
        if (
            other.row
            and other.item.hit.passage.chunk.doc_id == doc_id
            and other.cells[0][0] == first
        ):
            for label, _ in other.cells[1:]:
                words = set(tokenise(_ASIDE.sub("", label)))
                if label and label not in own and words and words <= asked and not words <= told:
                    return True
    return False


_ASIDE = re.compile(r"\s*\([^()]*\)")
"""Of a label: its unit."""
_YEARS = re.compile(
    r"(?<![\d.,])(1[5-9]\d\d|20\d\d)(?:(?:\s?[-\u2013/]\s?"
    r"| (?:to|until|through|(?<=between \d{4} )and) )((?:1[5-9]|20)?\d\d))?(?!\d|[.,]\d)"
)
_OTHER_YEARS = re.compile(
    r"\b(?:after|before|since|until|following) (?:\w+ )?\d{4}\b", re.IGNORECASE
)
"""Years are asked for that are not named."""
_NAMING = re.compile(r"(?<=\s)[^\W\d_a-z][\w'\u2019-]*|\S*\d\S*")
"""A name's word, not the first of a question, or a number."""
_AND = re.compile(r"\b(?:and|or|both|compared|versus|vs)\b", re.IGNORECASE)
_LONGEST_DATE = 40
"""Characters of a cell that says when."""


def years_in(text: str) -> set[str]:
    """Return the years that a text names, those within `2005-07` and `2005 to 2007` too."""
    years: set[str] = set()
    for first, last in _YEARS.findall(text):
        end = int(first[: 4 - len(last)] + last)
        end += 100 if len(last) == 2 and end < int(first) else 0  # 1999-00
        low, high = sorted((int(first), end))
        years.update(map(str, range(low, high + 1)))
    return years


def _years_of(row: Candidate) -> set[str]:
    """Return the years of a row's own cells, not of the heads of its columns."""
    values = (cell.rpartition(": ")[2] for cell in row.text.split(CELLS))
    return years_in(CELLS.join(value for value in values if len(value) <= _LONGEST_DATE))


def _asked_years(question: str) -> set[str]:
    return set() if _OTHER_YEARS.search(question) else years_in(question)


def _of_the_year(question: str, found: Sequence[Candidate], order: Sequence[int]) -> list[int]:
    """Return the order without rows of other years, where rows are of one that is asked for."""
    asked = _asked_years(question)
    dated = {row: _years_of(found[row]) for row in order if asked and found[row].row}
    if not any(asked & years for years in dated.values()):
        return list(order)
    return [row for row in order if row not in dated or not dated[row] or asked & dated[row]]


def _only_announces(found: Sequence[Candidate], row: int) -> bool:
    """Return whether a sentence ends with a colon, and nothing that it announces was found."""
    one = found[row]
    return one.announces and not one.row and not _items_of(found, row)


def _items_of(found: Sequence[Candidate], lead: int) -> tuple[Candidate, ...]:
    """Return the list that a sentence announces, within the room; else none.

    What stands between two items goes on from the first. A list in running text has its first item
    in the sentence itself, "in two ways: Scope: it reads more", and the last ends its paragraph.
    """
    opening = found[lead]
    runs_on = _RUNS_ON.search(opening.text) is not None
    if not (opening.announces or runs_on):
        return ()
    items: list[Candidate] = []
    last, left = 0, SEVERAL.words
    for candidate in found[lead + 1 :]:
        gap = candidate.ordinal - (items[-1].ordinal if items else opening.ordinal)
        left -= word_count(candidate.text)
        is_near = candidate.item.n == opening.item.n and gap <= (_MOST_BETWEEN if items else 1)
        is_item = _RUN_IN.match(candidate.text) is not None if runs_on else candidate.entry
        if not (is_near and quotable(candidate) and (is_item or items or runs_on)):
            break
        if left < 0 or len(items) == _MOST_ENTRIES:
            break
        items.append(candidate)
        goes_on = runs_on and last == len(items) - 1 and not _new_line(items[-1])
        last = len(items) if is_item or (last and goes_on) else last
    return (opening, *items[:last]) if runs_on and last else tuple(items[:last])


def _new_line(candidate: Candidate) -> bool:
    """Return whether a line begins with a sentence."""
    return candidate.item.hit.passage.chunk.text[: candidate.start].endswith("\n")


def _list_of(question: str, found: Sequence[Candidate], lead: int) -> tuple[Candidate, ...]:
    """Return the whole list that an item is of, where that is asked for.

    It is where the question names what only this list stands below rather than the item, and where
    it asks how something is done and the items are numbered.
    """
    one = found[lead]
    if not one.entry:
        return ()
    asked = set(content_tokens(question))
    elsewhere = {
        token for other in found if other.entry and other.above != one.above
        for token in other.above_tokens
    }  # fmt: skip
    named = asked & one.above_tokens - elsewhere
    of_list = bool(named) and not asked & one.tokens - one.above_tokens
    is_step = NUMBERED.match(one.text) is not None and _ASKS_HOW.search(question) is not None
    if not (is_step or of_list):
        return ()
    items = [
        other
        for other in found
        if other.entry and other.item.n == one.item.n and other.above == one.above
    ]
    at = items.index(one)
    first = last = at
    while first and items[first - 1].ordinal == items[first].ordinal - 1:
        first -= 1
    while last + 1 < len(items) and items[last + 1].ordinal == items[last].ordinal + 1:
        last += 1
    whole = [item for item in items[first : last + 1] if quotable(item)]
    return tuple(whole[:_MOST_ENTRIES]) if len(whole) > 1 else ()


class _Others:
    """Tells which sentences may stand in an answer behind the best one.

    A sentence about another thing of the same kind may not: "The tern nests on tower two" where the
    gull is asked for. Where one thing is asked for and the best sentence holds all of the question,
    the others must hold most of it or go on from it.
    """

    def __init__(
        self, question: str, found: Sequence[Candidate], lead: Candidate, *, ends: bool
    ) -> None:
        self._lead = lead
        asked = dict.fromkeys(content_tokens(question))
        weights = term_weights(one.text for one in found)
        self._weights = {token: weights.get(token, 0.0) for token in asked}
        self._held = [token for token in asked if token in lead.tokens]
        self._is_complete = ends and bool(asked) and len(self._held) == len(asked)
        self._places = _places(lead, self._held)

    def are_of(self, other: Candidate) -> bool:
        """Return whether a sentence is of the best one's document."""
        return other.item.hit.passage.chunk.doc_id == self._lead.item.hit.passage.chunk.doc_id

    def add(self, other: Candidate, chosen: Sequence[Candidate]) -> bool:
        """Return whether a sentence has a word of the question that none of the chosen has."""
        missing = self._weights.keys() - {token for one in chosen for token in one.read}
        return not missing.isdisjoint(other.tokens)

    def belong(self, other: Candidate) -> bool:
        if other is self._lead:
            return True
        missing = [token for token in self._held if token not in other.read]
        if any(self._has_another(token, other) for token in missing):
            return False
        goes_on = other.key == (self._lead.item.n, self._lead.ordinal + 1) and other.points_back
        if not self._is_complete or goes_on:
            return True
        weight = sum(self._weights[token] for token in self._held if token in other.read)
        return weight >= _HELD * sum(self._weights[token] for token in self._held)

    def _has_another(self, token: str, other: Candidate) -> bool:
        """Return whether a sentence has something else where the best one has a word.

        A subject before the same word, or a number behind the same word.
        """
        words = content_tokens(other.text)
        for before, after in self._places.get(token, ()):
            if after and words[1:2] == [after] and words[0] not in self._lead.tokens:
                return True
            numbers = [one for front, one in pairwise(words) if front == before and _has_digit(one)]
            if before and _has_digit(token) and any(one != token for one in numbers):
                return True
        return False


def _has_digit(token: str) -> bool:
    return any(map(str.isdigit, token))


def _places(lead: Candidate, held: Sequence[str]) -> dict[str, list[tuple[str, str]]]:
    """Return what stands before and behind words of a sentence, content words alone."""
    words = content_tokens(lead.text)
    places: dict[str, list[tuple[str, str]]] = {}
    for at, word in enumerate(words):
        if word in held:
            before = words[at - 1] if at and words[at - 1] in held else ""
            after = words[at + 1] if at + 1 < len(words) and not at else ""
            places.setdefault(word, []).append((before, after))
    return places


def _rows_of(
    question: str, found: Sequence[Candidate], order: Sequence[int], scores: Floats, lead: int
) -> tuple[Candidate, ...]:
    """Return the row that answers best with those of its document that answer as well.

    They do where they hold all names and numbers that it holds of the question; in its passage,
    also where they come near it and do not hold less of them, unless several things are asked for.
    What all rows hold, or stands above them, tells none of them. Where the best row holds all of
    the question, one that lacks a word of it is about something else.
    """
    best, years = found[lead], _asked_years(question)
    asked = set(tokenise(" ".join(_NAMING.findall(question))))
    asked -= years | best.above_tokens | set(tokenise(best.item.hit.passage.document.title))
    doc_id = best.item.hit.passage.chunk.doc_id
    holds = {
        row: asked & found[row].tokens | ({"year"} if years & _years_of(found[row]) else set())
        for row in order
        if (found[row].row or found[row].is_field)
        and found[row].item.hit.passage.chunk.doc_id == doc_id
    }
    by_all = set.intersection(*holds.values())
    told, lists = holds[lead] - by_all, _AND.search(question) is not None
    words = set(content_tokens(question))
    whole = words if words <= best.read else frozenset[str]()
    rows = {best.text: best}  # two passages may share a row
    for row, held in holds.items():
        one = found[row]
        held_itself = whole & best.tokens if one.is_field else frozenset[str]()
        comes_near = scores[row] >= scores[lead] - _ROWS_APART and whole <= one.read
        comes_near = comes_near and held_itself <= one.tokens
        is_near = one.item.n == best.item.n and comes_near
        if (told and told <= held) or (is_near and (lists or not held - by_all < told)):
            rows.setdefault(one.text, one)
    return tuple(sorted([*rows.values()][:_MOST_ENTRIES], key=lambda one: one.key))


def _opening(
    question: str, found: Sequence[Candidate], order: Sequence[int], lead: int, room: QuoteBudget
) -> list[Candidate]:
    """Return the opening: the best sentence, after the one it refers to and who wrote it if any."""
    best = found[lead]
    before = [found[row] for row in order if found[row].key == (best.item.n, best.ordinal - 1)]
    length = sum(word_count(one.text) for one in (*before, best))
    opening = [*before, best] if best.dangles and length <= room.words else [best]
    asks_of_writer = _ASKS_WHO.search(question) and _ASKS_OF_MAIL.search(question)
    if not (asks_of_writer or _MEANS_WRITER.search(" ".join(one.text for one in opening))):
        return opening
    above = [one for one in found[:lead] if one.item.n == best.item.n and _WRITER.match(one.text)]
    return [*above[-1:], *opening] if above and above[-1] not in opening else opening


def _answers(candidate: Candidate) -> bool:
    """Return whether a candidate stands alone: no list entry too short for that."""
    return quotable(candidate) and (
        not candidate.entry
        or bool(candidate.above)
        or word_count(candidate.text) >= _MIN_WORDS_ENTRY
    )


def _is_cut(candidate: Candidate) -> bool:
    """Return whether a sentence begins before its passage."""
    begins = candidate.start == 0 < candidate.item.hit.passage.chunk.start
    return begins and candidate.text[0].islower() and not candidate.entry


def _stands_alone(candidate: Candidate) -> bool:
    return candidate.row or (candidate.whole and not candidate.dangles)


def _alike(one: Candidate, other: Candidate) -> bool:
    both = len(one.tokens | other.tokens)
    return len(one.tokens & other.tokens) >= _NEAR_DUPLICATE * max(1, both)
