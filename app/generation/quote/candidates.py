"""Sentences of the evidence as candidates for a quoted answer."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from app.core.sentences import AT_TIME, CELLS, is_row, sentence_spans, spelt_out, stop_may_be_final
from app.core.text import tokenise, word_count
from app.core.types import Evidence
from app.generation.flags.injection import Finding, findings_at, is_foreign, is_plain_request
from app.generation.language.claims import WeightedTokens, content_tokens, term_weights

_TITLE_SHARE = 0.8
"""Of the words of a line that no stop closes: so many from the document's title, and it is the
head of a page."""
MIN_WORDS, MAX_WORDS = 4, 90
"""Shorter is a heading or a stray line; longer takes the answer's whole room."""
_MIN_WORDS_ROW = 2
"""Words of a table's row: a label and a cell."""
_MIN_WORDS_OPEN = 8
"""Words of a line that no stop closes: shorter is a title."""
_NATIVE_MARK = re.compile(r"[ \t]*\[\s*\d{1,4}(?:\s*[,;\u2013-]\s*\d{1,4})*\s*\]")
_LIST_MARKER = re.compile(r"\A\s*[-*\u2022\u2013]\s+")
_ITEM = re.compile(r"\A\s*(?:[-*\u2022\u2013]|\(?\d{1,2}[.)])\s+")
_HYPHENATED = re.compile(r"(?<=[a-z])-\n[ \t]*(?=[a-z])")
_LINK = (
    r"(?:(?:and|but|however|thus|therefore|then|also|so|yet|nevertheless|moreover|furthermore"
    r"|instead|in addition|for example|in contrast),?\s+)?"
)
_POINTS_BACK = re.compile(
    rf"{_LINK}(?:he|she|it|they|his|her|its|their|this|these|those|that|such|both|here"
    r"|there(?! (?:is|are|was|were)))\b",
    re.IGNORECASE,
)
_DANGLES = re.compile(
    rf"{_LINK}(?:he|she|it|they|his|her|its|their|(?:this|these|those|that|such|both)\s+(?:is|are"
    r"|was|were|has|had|have|can|may|will|would|could|led|made|gave|means|meant|includes?|included"
    r"|became|did|does|allowed|allows))\b",
    re.IGNORECASE,
)
_ASKED_OF = 0.4
"""Share of a question's content words, by weight, from which a request speaks of what is asked."""
_LINE = re.compile(r"\S[^\n]*")
_FIELD = re.compile(r"[^\W\d_](?:[^:=|.!?\n]|\.(?=[:\w])){0,40}(?:: | ?= ?)\S[^\n]*")
"""A label with its value: a line of a card, form or list of settings."""
_MOST_WORDS_FIELD = 12
_SIGNS = {"\u2610": "open task, still to do:", "\u2611": "task done:", "\u2612": "task done:"}
"""What a box before an entry of a list says of it."""
_HEADINGS_READ = 2
"""Of the headings above a sentence, the nearest."""
_PARAGRAPHS_BELOW = 2
"""Blank lines behind a question up to which what stands there answers it."""
_SAYS = re.compile(
    r"\A[^\W\d_].*\b(?:is|are|was|were|been|has|have|had|can|may|must|should|will|would|do|does|did"
    r"|we|you|it)\b|\A(?:this|these|we|you|it)\b",
    re.IGNORECASE,
)
"""A sentence that speaks; an entry of a table of contents names."""
_PIECE = re.compile(r"\S.*?(?:[.!?;](?=\s)|\Z)", re.DOTALL)
_LEADERS_BEHIND = 8
"""Characters: those of an entry may stand behind what reads as its sentence."""
_LEADERS = re.compile(r"\.(?: ?\.){3}")
_CLOSERS = "\"'\u201d\u2019)]"
_FULL_STOPS = (".", "\u3002", "\uff01")
_CLOSED = re.compile(r"[.!?\u2026][\"'\u201d\u2019)\]]*\Z")
NUMBERED = re.compile(r"\(?(?:\d{1,3}|[a-z]|[ivx]{1,5})[.)]\s")
"""The number that an item has in its list."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """One sentence of a passage: where it lies in the chunk and how it reads."""

    item: Evidence
    ordinal: int
    """Place of the sentence in its passage, from 0."""
    start: int
    end: int
    text: str
    """The stored characters on one line, the source's own reference marks gone."""
    tokens: frozenset[str]
    """Stemmed tokens."""
    whole: bool
    """Begins and ends like a sentence, not in the middle of one."""
    points_back: bool
    """Opens with a word that refers to a sentence before it."""
    dangles: bool
    """Opens with a pronoun that means nothing without a sentence before it; "This method" still
    says what it means."""
    suspicious: bool
    """Reads like an instruction to a model; a step of a list or a request about what stands around
    it is one to the reader."""
    listed: bool
    """Names what can be read elsewhere: stands in a list of references or a table of contents."""
    entry: bool = False
    """Entry of a list; a short one means something only behind what announces it."""
    announces: bool = False
    """Ends with a colon: what it says follows."""
    row: bool = False
    """One row of a table whose cells carry the labels of their columns, or a label with its
    value."""
    above: str = ""
    """What it belongs to: headings, the question that it stands below, what announces it, the item
    that it is nested in. Matched with it, never quoted."""
    above_tokens: frozenset[str] = frozenset()

    @property
    def is_field(self) -> bool:
        """Whether it is a label with its value or a line of a log, short and no sentence."""
        is_short = word_count(self.text) <= _MOST_WORDS_FIELD and not _CLOSED.search(self.text)
        return is_short and not self.entry and _tells(self.text)

    @property
    def spelt(self) -> str:
        """Its text, the short forms of its labels spelt out."""
        return spelt_out(self.text) if self.row or self.is_field else self.text

    @property
    def cells(self) -> list[tuple[str, str]]:
        """The labels and values of a row or a field; empty labels where there are none."""
        parts = (part.rpartition(": ") for part in self.text.split(CELLS))
        return [(label.strip(), value.strip()) for label, _, value in parts]

    @property
    def read(self) -> frozenset[str]:
        """Its stemmed tokens with those of what it belongs to."""
        return self.tokens | self.above_tokens

    @property
    def key(self) -> tuple[int, int]:
        """Evidence number and ordinal."""
        return self.item.n, self.ordinal


def candidates(evidence: Sequence[Evidence], question: str = "") -> list[Candidate]:
    """Return quotable sentences in rank and reading order, without questions and headings.

    "Use the new code 4711" reads like a request to a model; it is one to the reader where it
    speaks of what is asked.
    """
    found: list[Candidate] = []
    requests: list[int] = []
    for item in evidence:
        text, section = item.hit.passage.chunk.text, item.hit.passage.chunk.section
        title = frozenset(tokenise(item.hit.passage.document.title))
        spans = [piece for span in sentence_spans(text) for piece in _readable(text, *span)]
        sentences = [text[start:end] for start, end in spans]
        items = [bool(_ITEM.match(sentence)) or is_row(sentence) for sentence in sentences]
        belonging = _Belonging(item)
        for index, (start, end) in enumerate(spans):
            line = one_line(sentences[index])
            if not line:  # the source's own mark on a line of its own
                continue
            belongs = belonging.of(start, end, line)
            whole = _is_whole(line) and not (end == len(text) and _is_cut_off(line))
            entry, announces = bool(_ITEM.match(sentences[index])), line.endswith(":")
            row = is_row(line)
            if CELLS in line and not row and any(map(is_row, sentences[index + 1 : index + 2])):
                continue  # the head of a table, whose labels are in its rows
            fewest = 1 if entry or belongs.answers else _fewest_words(line, row, whole or announces)
            if not fewest <= word_count(line) <= MAX_WORDS or line.endswith("?"):
                continue
            if belongs.is_heading:
                continue
            tokens = _tokens(line, row)
            told = row or belongs.answers or _tells(line)
            if not (whole or entry or announces or told) and _is_label(line):
                continue
            if not (whole or entry or told) and len(tokens & title) >= _TITLE_SHARE * len(tokens):
                continue
            to_model = _to_a_model(sentences, index, is_step=items[index] and sum(items) > 1)
            if to_model and is_plain_request(line):
                requests.append(len(found))
            found.append(
                Candidate(
                    item,
                    index,
                    start,
                    end,
                    line,
                    tokens,
                    whole,
                    bool(_POINTS_BACK.match(line)),
                    bool(_DANGLES.match(line)) and not belongs.answers,
                    bool(to_model),
                    section == "references"
                    or (section == "contents" and not (whole and _reads_as_prose(line)))
                    or _LEADERS.search(text, start, end + _LEADERS_BEHIND) is not None,
                    entry,
                    announces,
                    row,
                    belongs.text,
                    frozenset(tokenise(belongs.text)),
                )
            )
    return _trusted(question, found, requests)


def _tokens(line: str, row: bool) -> frozenset[str]:
    """Return a line's stemmed tokens, those of spelt-out labels too."""
    labelled = row or _FIELD.fullmatch(line) is not None
    return frozenset(tokenise(line)).union(tokenise(spelt_out(line)) if labelled else ())


def _tells(line: str) -> bool:
    """Return whether a line is no title though no stop closes it: a field, or one of a log."""
    return _FIELD.fullmatch(line) is not None or AT_TIME.match(line) is not None


def _trusted(question: str, found: list[Candidate], requests: Sequence[int]) -> list[Candidate]:
    """Return the candidates; requests that speak of what is asked are above suspicion."""
    asked = WeightedTokens(content_tokens(question), term_weights(one.text for one in found))
    for at in requests:
        if asked.share(found[at].tokens) >= _ASKED_OF:
            found[at] = replace(found[at], suspicious=False)
    return found


class Belongs(NamedTuple):
    """What a sentence belongs to."""

    text: str
    answers: bool
    """It is the first behind a question."""
    is_heading: bool


class _Belonging:
    """Goes through the sentences of a passage and says what each belongs to."""

    def __init__(self, item: Evidence) -> None:
        chunk = item.hit.passage.chunk
        self._text = chunk.text
        above = [one for one in item.headings if one.start < chunk.start]
        self._path = [(one.level, one.title) for one in above]
        self._heads = [
            (one.start - chunk.start, one.end - chunk.start, one)
            for one in item.headings
            if one.start >= chunk.start
        ]
        self._question, self._asked_at, self._answered = "", 0, True
        self._announced = ""
        self._parents: list[tuple[int, str]] = []

    def of(self, start: int, end: int, line: str) -> Belongs:
        """Return what the sentence `[start, end)`, on one line, belongs to."""
        head = next((one for at, last, one in self._heads if at <= start and end <= last), None)
        if head is not None:
            self._path = [one for one in self._path if one[0] < head.level]
            self._path.append((head.level, head.title))
            self._announced, self._parents = "", []
        if head is not None or line.endswith("?"):
            asks = line.endswith("?")
            self._question, self._asked_at, self._answered = line if asks else "", end, not asks
            return Belongs("", answers=False, is_heading=head is not None)
        if self._question and self._text.count("\n\n", self._asked_at, start) > _PARAGRAPHS_BELOW:
            self._question = ""
        if self._answered and AT_TIME.match(line):  # of a talk only the next words answer
            self._question = ""
        answers, self._answered = bool(self._question and not self._answered), True
        parts = [title for _, title in self._path[-_HEADINGS_READ:]]
        parts += [self._question, *self._around_entry(start, end, line)]
        parts += [_SIGNS.get(line[:1], "")]
        return Belongs(" ".join(filter(None, parts)), answers, is_heading=False)

    def _around_entry(self, start: int, end: int, line: str) -> list[str]:
        """Return what announces an entry and the entries that it is nested in."""
        begin = self._text.rfind("\n", 0, start) + 1
        indent = start - begin if not self._text[begin:start].strip() else 0
        if not _ITEM.match(self._text[start:end]):
            announced = "" if self._parents else self._announced
            self._announced, self._parents = line if line.endswith(":") else "", []
            return [announced]
        self._parents = [one for one in self._parents if one[0] < indent]
        above = [text for _, text in self._parents]
        self._parents.append((indent, line))
        return [self._announced, *above]


def _to_a_model(sentences: Sequence[str], index: int, *, is_step: bool) -> set[Finding]:
    """Return why a sentence reads like an instruction to a model, not to a reader."""
    found = set(findings_at(sentences, index))
    if found == {"request"} and len(sentences) > 1:
        is_foreign_here = not is_step and is_foreign(sentences[index], sentences, index)
        return found if is_foreign_here else set()
    return found


def _reads_as_prose(line: str) -> bool:
    """Return whether a whole sentence behind a table of contents is none of its entries."""
    return line[-2:-1] != " " and word_count(line) >= _MIN_WORDS_OPEN and bool(_SAYS.search(line))


def _fewest_words(line: str, row: bool, closed: bool) -> int:
    if _tells(line):  # RETRY_MAX=5 has no blank
        return 1
    if row or CELLS in line:
        return _MIN_WORDS_ROW
    return MIN_WORDS if closed else _MIN_WORDS_OPEN


def _readable(text: str, start: int, end: int) -> list[tuple[int, int]]:
    """Return quotable spans: what is too long in pieces.

    Rows without labels say more together, as far as they fit. Other text is cut at every stop:
    without capitals it shows no sentences otherwise.
    """
    if word_count(text[start:end]) <= MAX_WORDS:
        return [(start, end)]
    lines = list(_LINE.finditer(text, start, end))
    if len(lines) > 1 and all(CELLS in line.group() for line in lines):
        return [line.span() for line in lines]
    return [match.span() for match in _PIECE.finditer(text, start, end)]


def one_line(text: str) -> str:
    """Return stored characters as one readable line.

    Line breaks and hyphenation are undone; list markers and the source's own `[12]` are removed.
    """
    return " ".join(_LIST_MARKER.sub("", _NATIVE_MARK.sub("", _HYPHENATED.sub("", text))).split())


def _is_cut_off(line: str) -> bool:
    """Return whether a chunk ends inside a sentence: at an initial or abbreviation."""
    return line.endswith(".") and not stop_may_be_final(line)


def _is_label(line: str) -> bool:
    """Return whether a line is a table's head or an axis: no word of it is in lower case."""
    return CELLS not in line and not any(word[0].islower() for word in line.split())


def _is_whole(line: str) -> bool:
    ending = line.rstrip(_CLOSERS)[-1:]
    return not line[0].islower() and ending in {".", "!", "\u3002", "\uff01"}


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
