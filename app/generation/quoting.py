"""Answer without a model: quote and cite the sentences that answer best.

A linear model over `features.FEATURES` ranks the sentences, a logistic one over
`sufficiency.SUFFICIENCY` says how probably the quote answers the question: the confidence of
the answer. A quote that a table's row leads has weights of its own there (decision 0253). All
weights lie in `extractive.json` with the commands that made them. An answer leads with the best
sentence; others follow in reading order, as many as the kind of question has room for.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Literal

import numpy as np

from app.core.cancel import CancelToken
from app.core.languages import DEFAULT
from app.core.ports import PassageEncoder
from app.core.sentences import CELLS, sentence_spans
from app.core.text import function_words, identifiers, tokenise, word_count
from app.core.types import Citation, Evidence, Prompt, Sentence, Token
from app.generation.candidates import Candidate, candidates
from app.generation.prompts import REFUSAL
from app.generation.quote_features import (
    FEATURES,
    SUFFICIENCY,
    Floats,
    Vectors,
    candidate_weights,
    feature_rows,
    lead_of,
    sentence_vectors,
    speaks_of_it,
    sufficiency_row,
)
from app.generation.reading import antonyms, content_tokens, negations, term_weights

# Decide how much an answer may quote, by the kind of question.

_SEVERAL = (
    "actions|acts|advantages|disadvantages|aspects|benefits|causes|challenges|changes"
    "|characteristics|components|concerns"
    "|conditions|consequences|contributions|criteria|criticisms|details|differences|drawbacks"
    "|duties|effects|elements|events"
    "|examples|factors|features|findings|functions|goals|guidelines|impacts|implications|influences"
    "|issues|limitations|measures"
    "|methods|objectives|outcomes|phases|plans|points|policies|practices|principles|problems"
    "|proposals|provisions|purposes"
    "|qualities|reasons|recommendations|requirements|responsibilities|results|risks|roles|rules"
    "|similarities|stages|steps"
    "|strategies|symptoms|tasks|techniques|themes|types|uses|ways"
)
_COUNTED = r"(?!.{0,30}\b(?:two|three|four|five|six|[2-9])\b)"
"""A question that says how many is answered where the text says so: in one sentence."""
_ASKS_FOR_SEVERAL = re.compile(
    rf"\b(?:what|which)\s+{_COUNTED}(?:[\w'\u2019-]+\s+){{0,3}}?(?:{_SEVERAL})\b"
    r"|\b(?:what|which) (?:are|were) (?:some|all|the (?:various|different|main|key|major))\b"
    rf"|\b(?:what|which) (?:are|were) {_COUNTED}(?:the )?(?:\w+ ){{0,2}}?[a-z]{{3,}}[^\W\dsui]s"
    r" (?:of|in|for|about|between|noted|raised|made|proposed|that|to|from|behind|under|with)\b"
    r"|\b(?:list|name|describe|outline|enumerate)\b\s+(?:the|all|some)\b"
    r"|,? and (?:what|how|why|when|who|which|where)\b(?= \w+ \w+)",
    re.IGNORECASE,
)
_ASKS_FOR_STEPS = re.compile(
    r"\bhow (?:to|(?:do|can|could|should|would|must) (?:i|you|we|one|people|users?))\b|\b(?:what"
    r"|which) steps\b",
    re.IGNORECASE,
)

_ASKS_TO_EXPLAIN = re.compile(
    r"\b(?:why|explain|discuss|to what extent|in (?:what|which) (?:ways?|sense)"
    r"|how (?:do|does|did|is|are|was|were|can|could|has|have|had|will|would|may|might|should))\b",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class AnswerRoom:
    """The most that is quoted, and whether all of it stands in reading order."""

    sentences: int = 3
    words: int = 120
    in_order: bool = False
    ends: bool = False
    """Whether nothing follows but what goes on, once the best sentence holds the question."""


PLAIN = AnswerRoom(ends=True)
EXPLANATION = AnswerRoom(5, 130, ends=True)
SEVERAL = AnswerRoom(5, 200)
STEPS = AnswerRoom(8, 240, in_order=True)
SUMMARY = AnswerRoom(10, 400, in_order=True)
"""Of a topic; a summary of a document goes by its parts."""


def room_for(question: str) -> AnswerRoom:
    """Return an answer's room: more for an explanation and for several things, steps in order."""
    if _ASKS_FOR_STEPS.search(question):
        return STEPS
    if _ASKS_FOR_SEVERAL.search(question):
        return SEVERAL
    return EXPLANATION if _ASKS_TO_EXPLAIN.search(question) else PLAIN


# Choose the sentences of a quote and write them as an answer.

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
_ELSEWHERE = 4.0
"""Score (log-odds) that a sentence of another document may be worse and still be quoted: of 1,400
questions none loses its answer; at 2.0 four do."""
_ROWS_APART = 2.0
"""Score (log-odds) that another row of the table may be worse and still be quoted: from 2.6 on a
question for one cell gets its neighbours too (docs/decisions/0229)."""
_RUN_IN = re.compile(r"[A-Z][^.:;|]{2,50}: (?=\S)")
"""The head of an item in running text."""
_RUNS_ON = re.compile(rf"[a-z]: {_RUN_IN.pattern}")
_NUMBERED = re.compile(r"\(?(?:\d{1,3}|[a-z]|[ivx]{1,5})[.)]\s")
"""The number that an item has in its list."""
_FULL_STOPS = (".", "\u3002", "\uff01")
_CLOSED = re.compile(r"[.!?\u2026][\"'\u201d\u2019)\]]*\Z")
_SHORT_NAME = 4
"""Characters; "us" is not US."""
_HELD = 0.5
"""Share of the words asked for, by weight, that another sentence holds behind a complete one."""
_ASKS_HOW = re.compile(
    r"\bhow\b(?! (?:many|much|long|old|far|often|big|large|tall|high|deep|fast|wide)\b)"
    r"|\b(?:which|what) (?:are the )?(?:steps|stages)\b"
    r"|\bwhat (?:do|must|should) (?:i|we|you) do\b",
    re.IGNORECASE,
)
_MAIL_HEAD = re.compile(r"(?:From|To|Cc|Bcc|Reply-To): [^\n]*@")
_ASKS_OF_MAIL = re.compile(
    r"\b(?:e-?mails?|mails?|messages?|letters?|send|sends|sent|senders?|recipients?|wrote|written|writes?"
    r"|address(?:es|ed)?|repl(?:y|ies|ied)|contact|from whom|to whom)\b|@",
    re.IGNORECASE,
)
"""The head of a mail may answer."""
_PREFERENCE = 0.5
"""Score (log-odds) that a whole sentence which does not dangle may be worse and still open the
answer."""


def choose(
    question: str, found: Sequence[Candidate], scores: Floats, room: AnswerRoom = PLAIN
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
    if found[lead].row:
        return _rows_of(question, found, order, scores, lead)
    order = [row for row in order if row == lead or not (found[row].row or _is_cut(found[row]))]
    opening = _opening(found, order, lead, room)
    others = _Others(question, found, found[lead], ends=room.ends)
    order = [
        row
        for row in order
        if others.belong(found[row])
        and (others.are_of(found[row]) or scores[row] >= scores[lead] - _ELSEWHERE)
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
    is_step = _NUMBERED.match(one.text) is not None and _ASKS_HOW.search(question) is not None
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
        if found[row].row and found[row].item.hit.passage.chunk.doc_id == doc_id
    }
    by_all = set.intersection(*holds.values())
    told, lists = holds[lead] - by_all, _AND.search(question) is not None
    words = set(content_tokens(question))
    whole = words if words <= best.read else frozenset[str]()
    rows = {best.text: best}  # two passages may share a row
    for row, held in holds.items():
        one = found[row]
        comes_near = scores[row] >= scores[lead] - _ROWS_APART and whole <= one.read
        is_near = one.item.n == best.item.n and comes_near
        if (told and told <= held) or (is_near and (lists or not held - by_all < told)):
            rows.setdefault(one.text, one)
    return tuple(sorted([*rows.values()][:_MOST_ENTRIES], key=lambda one: one.key))


def _opening(
    found: Sequence[Candidate], order: Sequence[int], lead: int, room: AnswerRoom
) -> list[Candidate]:
    """Return the opening: the best sentence, after the one it refers to if any."""
    best = found[lead]
    if best.dangles:
        before = (best.item.n, best.ordinal - 1)
        for row in order:
            candidate = found[row]
            if (
                candidate.key == before
                and word_count(candidate.text) + word_count(best.text) <= room.words
            ):
                return [candidate, best]
    return [best]


def _answers(candidate: Candidate) -> bool:
    """Return whether a candidate stands alone: no list entry too short for that."""
    return quotable(candidate) and (
        not candidate.entry
        or bool(candidate.above)
        or word_count(candidate.text) >= _MIN_WORDS_ENTRY
    )


def quoted_text(chosen: Sequence[Candidate]) -> str:
    """Return chosen candidates as an answer's text; entries and rows on own lines."""
    text, listed, several = "", False, len(chosen) > 1
    for one in chosen:
        item = one.entry or (one.row and several)
        gap = ("\n" if listed else "\n\n") if item else "\n\n" if listed else " "
        sign = "- " if item and not _NUMBERED.match(one.text) else ""
        text += f"{gap if text else ''}{sign}{rendered(one)}"
        listed = item
    return text


def quotable(candidate: Candidate) -> bool:
    """Return whether a candidate can be quoted.

    No instruction to a model, no entry of a list of references or a table of contents, and one
    sentence also when split again.
    """
    return not (candidate.suspicious or candidate.listed) and (
        len(sentence_spans(rendered(candidate))) == 1
    )


def rendered(candidate: Candidate) -> str:
    """Return a candidate as shown: its words and its mark.

    The mark stands before the full stop, or behind a closing quotation mark.
    """
    text, mark = candidate.text, f"[{candidate.item.n}]"
    if text.endswith(_FULL_STOPS) and not text.endswith(".."):
        return f"{text[:-1].rstrip()} {mark}{text[-1]}"
    return f"{text}{mark}" if _CLOSED.search(text) else f"{text} {mark}."


def _is_cut(candidate: Candidate) -> bool:
    """Return whether a sentence begins before its passage."""
    begins = candidate.start == 0 < candidate.item.hit.passage.chunk.start
    return begins and candidate.text[0].islower() and not candidate.entry


def _stands_alone(candidate: Candidate) -> bool:
    return candidate.row or (candidate.whole and not candidate.dangles)


def _alike(one: Candidate, other: Candidate) -> bool:
    return len(one.tokens & other.tokens) >= _NEAR_DUPLICATE * max(
        1, len(one.tokens | other.tokens)
    )


@dataclass(frozen=True, slots=True, eq=False)
class Weighing:
    """Weights of one way of reading: with vectors, or by words alone."""

    ranking: Floats
    """Of `FEATURES`."""
    sufficiency: Floats
    """Of `SUFFICIENCY` for a quote that a sentence leads; the last entry is the bias."""
    sufficiency_row: Floats
    """The same for one that a table's row leads."""

    @staticmethod
    def of(data: Mapping[str, Sequence[float]], way: str) -> Weighing:
        """Return the weights of a way, by the ends of their names in `extractive.json`."""
        names = ("ranking", "sufficiency", "sufficiency_row")
        return Weighing(*(np.asarray(data[f"{name}{way}"], dtype=np.float64) for name in names))

    def probability(
        self,
        question: str,
        found: Sequence[Candidate],
        rows: Floats,
        scores: Floats,
        chosen: Sequence[Candidate],
        vectors: Vectors | None,
    ) -> float:
        """Return how probably the chosen sentences answer; arguments of `sufficiency_row`."""
        lead = found[lead_of(found, scores, chosen)]
        weights = self.sufficiency_row if lead.row else self.sufficiency
        return probability(sufficiency_row(question, found, rows, scores, chosen, vectors), weights)


@dataclass(frozen=True, slots=True, eq=False)
class ExtractiveModel:
    """Weights with and without vectors, and from where on there is a quote."""

    with_vectors: Weighing
    words_only: Weighing
    answer_from: float
    """Least probability that the quote is right for anything to be quoted."""

    @staticmethod
    def load(path: Path | None = None) -> ExtractiveModel:
        """Read weights from a file, or the packaged ones.

        Raises:
            ValueError: The file was made for other features.
        """
        source = path or Path(__file__).with_name("extractive.json")
        data = json.loads(source.read_text(encoding="utf-8"))
        if (
            tuple(data["features"]) != FEATURES
            or tuple(data["sufficiency_features"]) != SUFFICIENCY
        ):
            raise ValueError(f"{source.name} was made for other features; run: {data['command']}")
        return ExtractiveModel(
            Weighing.of(data, ""), Weighing.of(data, "_words_only"), float(data["answer_from"])
        )


@dataclass(frozen=True, slots=True)
class Selection:
    """Sentences to quote, in order, and the probability that evidence is on topic."""

    chosen: tuple[Candidate, ...]
    sufficiency: float
    ranked: tuple[Candidate, ...] = ()
    """Every quotable sentence, best first; empty where nothing is quoted."""


def by_title(question: str, evidence: Sequence[Evidence]) -> str:
    """Return a question that calls a found document by another title with its own title.

    A title of common words, or a short one that is spelt differently, is not taken for a name.
    """
    common = function_words(DEFAULT)
    for document in dict.fromkeys(item.hit.passage.document for item in evidence):
        if document.title.casefold() in question.casefold():
            continue
        for other in reversed(document.other_titles.split("\n")):
            flags = re.NOFLAG if len(other) <= _SHORT_NAME else re.IGNORECASE
            name = re.compile(rf"(?<!\w){re.escape(other)}(?!\w)", flags)
            if other and name.search(question) and not common.issuperset(tokenise(other)):
                return name.sub(document.title.replace("\\", r"\\"), question, count=1)
    return question


class ExtractiveGenerator:
    """Answers with quoted sentences; needs no model, an encoder of sentences helps."""

    def __init__(
        self, encoder: PassageEncoder | None = None, model: ExtractiveModel | None = None
    ) -> None:
        self._encoder = encoder
        self._model = model or ExtractiveModel.load()

    @property
    def name(self) -> str:
        return "extractive"

    @property
    def context_tokens(self) -> int | None:
        """None: passages are read, not sent."""
        return None

    def stream(self, prompt: Prompt, cancel: CancelToken) -> Iterator[Token]:
        """Yield the answer sentence by sentence, or the refusal, then the finish token.

        Raises:
            Cancelled: The token was cancelled.
        """
        cancel.raise_if_cancelled()
        chosen = self.select(prompt.question, prompt.evidence).chosen
        for at in range(len(chosen)):
            cancel.raise_if_cancelled()
            yield Token(quoted_text(chosen[: at + 1])[len(quoted_text(chosen[:at])) :])
        if not chosen:
            yield Token(REFUSAL)
        cancel.raise_if_cancelled()
        yield Token("", finish="stop")

    def select(
        self, question: str, evidence: Sequence[Evidence], room: AnswerRoom | None = None
    ) -> Selection:
        """Return the sentences to quote; none if the evidence is off topic.

        Passages that failed the cutoff and were kept as a fallback for a model are not quoted.
        The room is that of the question unless it is given.
        """
        found = candidates([item for item in evidence if not item.hit.fallback], question)
        if not found:
            return Selection((), 0.0)
        question = by_title(question, evidence)
        model = self._model
        weights = candidate_weights(found)
        vectors = sentence_vectors(question, found, weights, self._encoder)
        rows = feature_rows(question, found, weights, vectors)
        weighing = model.with_vectors if vectors else model.words_only
        scores: Floats = rows @ weighing.ranking
        chosen = choose(question, found, scores, room or room_for(question))
        if not chosen:
            return Selection((), 0.0)
        sufficiency = weighing.probability(question, found, rows, scores, chosen, vectors)
        if sufficiency < model.answer_from:
            return Selection((), sufficiency)
        lead = found[lead_of(found, scores, chosen)]
        passages = [item.hit.passage for item in evidence if not item.hit.fallback]
        if self._encoder and not speaks_of_it(question, lead, passages, self._encoder):
            return Selection((), min(sufficiency, model.answer_from / 2))
        order = np.argsort(-scores, kind="stable")
        ranked = tuple(found[row] for row in order if quotable(found[row]))
        return Selection(chosen, sufficiency, ranked)


def probability(row: Floats, weights: Floats) -> float:
    """Return the logistic function of `row @ weights[:-1] + weights[-1]`."""
    return 1.0 / (1.0 + math.exp(-float(row @ weights[:-1] + weights[-1])))


# Say yes or no in front of a quote where a quoted sentence settles the question.

Word = Literal["Yes", "No"]

_OPENS = re.compile(
    r"\A\W*(?:is it (?:true|correct|right|a fact) that|(?:is|are|was|were|do|does|did|has|have|had"
    r"|can|could|will|would|must|may)(?:n['\u2019]t)?)\s+(?P<claim>[^?]+)\??\s*\Z",
    re.IGNORECASE,
)
_CHOICE = re.compile(
    r"\b(?:or|who|what|when|where|which|why|how|you|me|i|we|us|my|your|our)\b", re.IGNORECASE
)
"""Not to be answered by yes or no alone, or about the people who talk."""
_BOUNDS = re.compile(
    r"\b(?:may|might|could|would|should|can|perhaps|possibly|probably|likely|unlikely|if|unless"
    r"|until|except|although|though|but|however|claim(?:s|ed)?|believed?|thought|said|alleged\w*"
    r"|report(?:s|ed|edly)|suggest(?:s|ed)?|plan(?:s|ned)?"
    r"|proposed?|intend(?:s|ed)?|expected|hoped?"
    r"|almost|nearly|only|some|few|most|many|rarely|seldom|partly|often|sometimes|usually|all|every"
    r"|always|ever|any|no longer|unknown|unclear|whether|former|formerly|once|instead|rather"
    r"|reject(?:s|ed)?|den(?:y|ies|ied)|fail(?:s|ed)?|refus(?:e|es|ed)|hardly|barely|scarcely"
    r"|used to)\b",
    re.IGNORECASE,
)
"""Words that bound or report what a sentence says: both sides have them, or nothing is settled."""
_DENIAL = re.compile(r"\b(?:not|never|cannot|without|none|no)\b|n['\u2019]t\b", re.IGNORECASE)
_FEWEST = 2
"""Content words that a question must have to be settled."""


def asks_yes_or_no(question: str) -> bool:
    """Return whether a question can be answered by yes or no."""
    return _OPENS.match(question) is not None


def settled_by(question: str, sentences: Sequence[Candidate]) -> Word | None:
    """Return what quoted sentences say to a question of yes or no.

    None: it is none, nothing settles it, or the sentences disagree.
    """
    opened = _OPENS.match(question)
    if opened is None or _CHOICE.search(opened["claim"]):
        return None
    found = {_said(opened["claim"], one) for one in sentences} - {None}
    return found.pop() if len(found) == 1 else None


def _said(claim: str, sentence: Candidate) -> Word | None:
    asked = content_tokens(claim)
    if len(asked) < _FEWEST or negations(claim) or _bounds(claim) != _bounds(sentence.text):
        return None
    title = tokenise(sentence.item.hit.passage.document.title) if sentence.dangles else []
    said = [*title, *tokenise(sentence.text)]
    missing = _missing([[one] for one in asked], said)
    denied = negations(sentence.text)
    if not missing and denied == 0:
        return "Yes"
    if not missing and denied == 1:
        return "No" if _denies(sentence.text, asked) else None
    if len(missing) == 1 and denied == 0:
        turned = [[one, *antonyms().get(one, ())] if one in missing else [one] for one in asked]
        return None if _missing(turned, said) else "No"
    return None


def _denies(sentence: str, asked: Sequence[str]) -> bool:
    """Return whether the first word with content behind the denial is an asked one."""
    denial = _DENIAL.search(sentence)
    behind = content_tokens(sentence[denial.end() :]) if denial else []
    return bool(behind) and behind[0] in asked


def _missing(asked: Sequence[Sequence[str]], said: Sequence[str]) -> list[str]:
    """Return the asked tokens that are not among those said, in the same order.

    Of each place any of its tokens will do; the first stands for it.
    """
    at, missing = 0, []
    for tokens in asked:
        found = [place for place in range(at, len(said)) if said[place] in tokens]
        if found:
            at = found[0] + 1
        else:
            missing.append(tokens[0])
    return missing


def _bounds(text: str) -> frozenset[str]:
    return frozenset(match.group().lower() for match in _BOUNDS.finditer(text))


# Build an answer out of quotes and plain words, each quote with its exact citation.

EXACT = 1.0
"""Support of a sentence that stands in its document word for word."""


@dataclass(frozen=True, slots=True)
class QuotedText:
    """A text, its quoted sentences at their offsets, and the passages known to it."""

    text: str
    sentences: tuple[Sentence, ...]
    evidence: tuple[Evidence, ...]
    """What was sent before, numbers kept, then what else is quoted, in the order of the text."""


class Quoting:
    """Collects plain words and quotes; only quotes are sentences of the answer."""

    def __init__(self, sent: Sequence[Evidence] = ()) -> None:
        self._text = ""
        self._sentences: list[Sentence] = []
        self._evidence = {item.hit.passage.chunk.key: item for item in sent}
        self._free = max((item.n for item in sent), default=0) + 1

    def say(self, words: str) -> None:
        """Add words that claim nothing: a label, the frame of a table."""
        self._text += words

    def start_block(self, words: str = "") -> None:
        """Begin a block of its own, with a heading or nothing."""
        gap = "\n\n" if self._text and not self._text.endswith("\n\n") else ""
        self._text += gap + words

    def quote(self, candidate: Candidate, *, in_table: bool = False) -> None:
        """Add a sentence of a document with its mark.

        Args:
            candidate: The sentence; its passage keeps its number, or gets the next one.
            in_table: Escape what would end a cell.
        """
        item = self._numbered(candidate.item)
        shown = rendered(replace(candidate, item=item))
        if in_table:
            shown = shown.replace("|", r"\|")
        start = len(self._text)
        self._text += shown
        citation = _citation(replace(candidate, item=item))
        self._sentences.append(Sentence(shown, start, len(self._text), "supported", (citation,)))

    def _numbered(self, item: Evidence) -> Evidence:
        known = self._evidence.get(item.hit.passage.chunk.key)
        if known is None:
            known = self._evidence[item.hit.passage.chunk.key] = replace(item, n=self._free)
            self._free += 1
        elif known.hit.fallback:  # what is quoted is no fallback any more
            known = self._evidence[item.hit.passage.chunk.key] = replace(item, n=known.n)
        return known

    def done(self) -> QuotedText:
        """Return what was collected."""
        evidence = tuple(self._evidence.values())
        return QuotedText(self._text, tuple(self._sentences), evidence)


def behind(
    words: str, text: str, sentences: Sequence[Sentence]
) -> tuple[str, tuple[Sentence, ...]]:
    """Return a text behind words that claim nothing, its sentences moved along."""
    by = len(words)
    moved = tuple(
        replace(one, answer_start=one.answer_start + by, answer_end=one.answer_end + by)
        for one in sentences
    )
    return words + text, moved


def _citation(candidate: Candidate) -> Citation:
    """Return the citation of a sentence: its very characters in the document."""
    chunk = candidate.item.hit.passage.chunk
    start = chunk.start + candidate.start
    quote = chunk.text[candidate.start : candidate.end]
    return Citation(candidate.item.n, start, start + len(quote), quote, EXACT, "engine")
