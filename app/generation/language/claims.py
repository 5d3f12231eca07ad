"""Read claims and passages: each derived value is computed once.

An answer has a dozen sentences and a dozen passages, and every sentence may be held against every
passage: what is derived from one text alone is found when it is first asked for and kept with the
text.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from difflib import SequenceMatcher
from functools import cache, lru_cache
from pathlib import Path

from app.core.languages import DEFAULT, language_of
from app.core.lazy import lazy
from app.core.sentences import sentence_spans
from app.core.text import CLAIMLESS_WORDS, tokenise
from app.core.types import Passage
from app.generation.language.clauses import COUNTED, TENS, Token, plain_number, read
from app.generation.language.rows import Row, rows_of

MAX_QUOTE_CHARS = 600
"""A quote is something to read next to the sentence, not a page."""
_WORD = re.compile(r"[^\W_]+")

_CLAIMLESS = CLAIMLESS_WORDS["en"]


def content_tokens(text: str) -> list[str]:
    """Return stemmed tokens without function words, in order."""
    return [token for token in tokenise(text) if token not in _CLAIMLESS]


@dataclass(frozen=True, slots=True)
class Specifics:
    """Facts that must not differ between a claim and its source.

    Figures, names, and whether it is denied.
    """

    figures: frozenset[str]
    names: frozenset[str]
    negations: int


_NUMBER = re.compile(r"\d[\d,]*(?:\.\d+)?")
_UNITS = {word: value for value, word in enumerate(COUNTED[:20])}
_ORDINALS = {
    word: value
    for value, word in enumerate(
        "third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth thirteenth"
        " fourteenth fifteenth sixteenth seventeenth eighteenth nineteenth twentieth".split(),
        3,
    )
}
_SINGLE = _UNITS | _ORDINALS
_TENS = {word: 10 * value for value, word in enumerate(TENS, 2)}
_DIGITS = "|".join(word for word, value in _UNITS.items() if 0 < value < 10)
_SPELT = re.compile(
    rf"\b(?:(?P<tens>{'|'.join(_TENS)})(?:[- ](?P<one>{_DIGITS}))?|(?P<unit>{'|'.join(_SINGLE)}))"
    r"\b",
    re.IGNORECASE,
)
_NEGATION = re.compile(
    r"\b(?:not|never|cannot|neither|nor|without|none|no)\b|n['\u2019]t\b", re.IGNORECASE
)
_YEAR = re.compile(r"\b(1\d|20)\d\d\b")
_CENTURY = re.compile(r"\b(\d{1,2})(?:st|nd|rd|th)[- ]centur", re.IGNORECASE)
_ROMAN = re.compile(
    r"\b(II|III|IV|VI{0,3}|IX|XI{0,3}|XIV|XVI{0,3})\b|"
    r"\b(?:[A-Z][A-Za-z]+|class|type|part|phase|stage|grade|level|volume) (I)\b"
)
"""Small Roman numerals; `I` only behind what is numbered, since it is a pronoun elsewhere."""
_LETTERS = {"I": 1, "V": 5, "X": 10}


def specifics(text: str) -> Specifics:
    """Return the figures, names and negations of a text.

    Figures are written in digits and come without thousands separators. Names are stemmed words
    that are capitalised not only because a sentence starts with them.
    """
    names: set[str] = set()
    for start, end in sentence_spans(text):
        for position, match in enumerate(_WORD.finditer(text, start, end)):
            word = match.group()
            if word[0].isupper() and (position > 0 or any(char.isupper() for char in word[1:])):
                names.update(tokenise(word))
    return Specifics(figures(text), frozenset(names - _CLAIMLESS), negations(text))


def figures(text: str) -> frozenset[str]:
    """Return the figures that a text writes in digits, without thousands separators."""
    return frozenset(plain_number(match) for match in _NUMBER.findall(text))


def negations(text: str) -> int:
    """Return how often a text denies."""
    return len(_NEGATION.findall(text))


def spelt_figures(text: str) -> frozenset[str]:
    """Return the figures of a text and those it spells out, up to ninety-nine."""
    return figures(text) | {str(_value(match)) for match in _SPELT.finditer(text)}


def implied_figures(text: str) -> set[str]:
    """Return figures that a text has in another form.

    The century of a year, `1700` (the 1700s) for the 18th century, and small Roman numerals.
    """
    found = {str(int(year) + 1) for year in _YEAR.findall(text)}
    spelt = _SPELT.sub(lambda match: f"{_value(match)}th", text)
    found |= {str(100 * (int(century) - 1)) for century in _CENTURY.findall(spelt)}
    for match in _ROMAN.finditer(text):
        values = [_LETTERS[letter] for letter in match[1] or match[2]]
        found.add(str(sum(-v if v < max(values[n:]) else v for n, v in enumerate(values))))
    return found


def _value(match: re.Match[str]) -> int:
    if match["unit"]:
        return _SINGLE[match["unit"].lower()]
    return _TENS[match["tens"].lower()] + (_UNITS[match["one"].lower()] if match["one"] else 0)


class Claim:
    """One sentence of an answer, without marks and markup."""

    def __init__(self, text: str) -> None:
        self.text = text

    @lazy
    def tokens(self) -> list[str]:
        """Stemmed tokens, in order."""
        return tokenise(self.text)

    @lazy
    def content(self) -> list[str]:
        """Stemmed tokens without function words, in order."""
        return [token for token in self.tokens if token not in _CLAIMLESS]

    @lazy
    def wanted(self) -> frozenset[str]:
        """Distinct tokens to look for: those with content, or all where none has."""
        return frozenset(self.content or self.tokens)

    @lazy
    def read(self) -> list[Token]:
        """What it says, as it is compared with a sentence or a row."""
        return read(self.text)

    @lazy
    def specifics(self) -> Specifics:
        """Figures, names and negations."""
        return specifics(self.text)

    @lazy
    def figures(self) -> frozenset[str]:
        """Figures, spelt ones too; `one` is a pronoun as often, `two` and `three` count a list."""
        return self.specifics.figures | (spelt_figures(self.text) - {"1", "2", "3"})


class ReadPassage:
    """A text that claims are looked for in, with the title and section that it stands under."""

    def __init__(self, passage: Passage) -> None:
        title = passage.document.titles
        self._place(passage.chunk.text, title, f"{title}\n{passage.chunk.section}\n")

    @classmethod
    def of_text(cls, text: str) -> ReadPassage:
        """Return a text of no library, without title and section, as a passage."""
        read = cls.__new__(cls)
        read._place(text, "", "")
        return read

    def _place(self, text: str, title: str, above: str) -> None:
        self.text = text
        self.title = title
        self.context = f"{above}{text}"
        """The text behind its title and section."""
        self._above = above

    @lazy
    def _sentences(self) -> list[tuple[int, int, frozenset[str]]]:
        return [
            (start, end, frozenset(tokenise(self.text[start:end])))
            for start, end in sentence_spans(self.text)
        ]

    @property
    def sentence_tokens(self) -> list[frozenset[str]]:
        """Distinct tokens of each sentence."""
        return [tokens for _, _, tokens in self._sentences]

    @lazy
    def read_sentences(self) -> list[list[Token]]:
        """What each sentence says, in the order of `sentence_tokens`; of table rows nothing."""
        return [
            read(self.text[start:end]) if "|" not in self.text[start:end] else []
            for start, end, _ in self._sentences
        ]

    def sentence_span(self, at: int) -> tuple[int, int]:
        """Return start and end of the sentence at a place of `read_sentences`."""
        return self._sentences[at][:2]

    @lazy
    def pieces(self) -> list[tuple[int, int, frozenset[str]]]:
        """Return start, end and distinct tokens of each sentence.

        One too long for a quote comes in several pieces.
        """
        pieces: list[tuple[int, int, frozenset[str]]] = []
        for start, end, tokens in self._sentences:
            if end - start <= MAX_QUOTE_CHARS:
                pieces.append((start, end, tokens))
            else:
                cuts = _bounded(self.text, start, end)
                pieces += [
                    (begin, stop, frozenset(tokenise(self.text[begin:stop])))
                    for begin, stop in cuts
                ]
        return pieces

    @lazy
    def read_above(self) -> list[Token]:
        """What title and section say."""
        return read(self._above.replace("\n", ". "))

    @lazy
    def rows(self) -> list[Row]:
        """The rows of its tables."""
        return rows_of(self.text, self._above)

    @lazy
    def english(self) -> bool:
        """Whether its words are English, or tell no language."""
        return language_of(self.text) in (DEFAULT, "")

    @lazy
    def known(self) -> frozenset[str]:
        """Distinct tokens of the context."""
        return frozenset(tokenise(self.context))

    @lazy
    def with_title(self) -> frozenset[str]:
        """Distinct tokens of title and text."""
        return frozenset(tokenise(f"{self.title}\n{self.text}"))

    @lazy
    def known_by_initial(self) -> Mapping[str, Sequence[str]]:
        """The tokens of `known` by their first character."""
        found: dict[str, list[str]] = {}
        for token in self.known:
            found.setdefault(token[0], []).append(token)
        return found

    @lazy
    def figures(self) -> frozenset[str]:
        """Figures of title and text, spelt ones and other forms too."""
        text = f"{self.title}\n{self.text}"
        return spelt_figures(text) | implied_figures(text)

    @lazy
    def initials(self) -> str:
        """First letters of the capitalised words of the context, Roman numerals whole."""
        found = re.findall(r"\b([A-Z])[a-z]+|\b([IVX]+)\b", self.context)
        return "".join(first or numeral for first, numeral in found).lower()


_KEPT = 64
"""Passages whose reading is kept: those of one question, and of the next one like it."""


@lru_cache(maxsize=_KEPT)
def read_passage(passage: Passage) -> ReadPassage:
    """Return a passage, read: quoting, names and the check look at the same ones."""
    return ReadPassage(passage)


def _bounded(text: str, start: int, end: int) -> list[tuple[int, int]]:
    """Return the span in pieces of at most MAX_QUOTE_CHARS, cut between words."""
    pieces: list[tuple[int, int]] = []
    while end - start > MAX_QUOTE_CHARS:
        cut = start + MAX_QUOTE_CHARS
        while cut > start and not text[cut - 1].isspace():
            cut -= 1
        cut = cut if cut > start else start + MAX_QUOTE_CHARS
        stop = cut
        while stop > start and text[stop - 1].isspace():
            stop -= 1
        if stop > start:
            pieces.append((start, stop))
        start = cut
    if start < end:
        pieces.append((start, end))
    return pieces


# Find the place of an answer's sentence in its passage, without a model.

_MAX_WINDOW = 3
_LENGTH_PENALTY = 0.03
"""What a further sentence in a window must add to the coverage to be worth quoting."""


@dataclass(frozen=True, slots=True)
class Alignment:
    """Characters `[start, end)` of the passage, and the claim's share they hold.

    `coverage` is the share of weighted words, in [0, 1].
    """

    start: int
    end: int
    coverage: float


def term_weights(sentences: Iterable[str]) -> dict[str, float]:
    """Return `log(1 + N / df)` per stemmed token over N sentences.

    `WeightedTokens` gives unknown tokens the heaviest weight.
    """
    return token_weights(frozenset(tokenise(sentence)) for sentence in sentences)


def token_weights(sentences: Iterable[AbstractSet[str]]) -> dict[str, float]:
    """Return `term_weights` of sentences given by their distinct tokens."""
    frequencies: Counter[str] = Counter()
    total = 0
    for tokens in sentences:
        frequencies.update(tokens)
        total += 1
    return {token: math.log(1 + total / df) for token, df in frequencies.items()}


class WeightedTokens:
    """Distinct tokens to look for in many places, with their weights."""

    def __init__(self, tokens: Iterable[str], weights: Mapping[str, float]) -> None:
        """Look the weights up; a token that has none gets the heaviest.

        Args:
            tokens: Stemmed tokens; each counts once.
            weights: From `term_weights`.
        """
        heaviest = max(weights.values(), default=1.0)
        self._weighted = [(token, weights.get(token, heaviest)) for token in set(tokens)]
        self._whole = sum(weight for _, weight in self._weighted)

    def share(self, found: AbstractSet[str]) -> float:
        """Return the weighted share of the tokens found, in [0, 1]; 0 without tokens."""
        part = sum(weight for token, weight in self._weighted if token in found)
        return part / self._whole if self._whole else 0.0


def align(claim: Claim, text: ReadPassage, weights: Mapping[str, float]) -> Alignment | None:
    """Return a text's best window for a claim; None without a shared content word.

    Args:
        claim: What is looked for.
        text: The text that offsets count in.
        weights: From `term_weights`.
    """
    pieces = text.pieces
    held = [tokens & claim.wanted for _, _, tokens in pieces]
    if not any(held):
        return None
    wanted = WeightedTokens(claim.wanted, weights)
    best: tuple[float, Alignment] | None = None
    for first in range(len(pieces)):
        found: frozenset[str] = frozenset()
        for last in range(first, min(first + _MAX_WINDOW, len(pieces))):
            start, end = pieces[first][0], pieces[last][1]
            if end - start > MAX_QUOTE_CHARS or not held[first]:
                break
            if held[last] <= found:
                # a longer window with nothing new is never the best, as one that begins with
                # nothing
                continue
            found |= held[last]
            share = wanted.share(found)
            value = share - _LENGTH_PENALTY * (last - first)
            if best is None or value > best[0] + 1e-9:
                best = (value, Alignment(start, end, share))
    return best[1] if best else None


# Know the opposites of a word: from a list of antonyms, and by a prefix.

_MAKES_OPPOSITE = ("un", "in", "im", "ir", "il", "dis", "non", "mis")
_SWAPPED = (
    ("under", "out"),
    ("under", "over"),
    ("pro", "anti"),
    ("pre", "post"),
    ("up", "down"),
    ("in", "de"),
)
_SHORTEST = 4
"""Letters that a word must have behind such a prefix; shorter ones are chance: in, inn."""


@cache
def antonyms() -> Mapping[str, AbstractSet[str]]:
    """Return the stems of each stem's opposites; made by scripts/write_antonyms.py."""
    found: dict[str, set[str]] = {}
    for line in Path(__file__).with_name("antonyms.txt").read_text(encoding="utf-8").splitlines():
        if not line.startswith("#"):
            first, second = line.split()
            found.setdefault(first, set()).add(second)
            found.setdefault(second, set()).add(first)
    return found


def prefixed(stem: str) -> Iterator[str]:
    """Yield the opposites that a prefix makes of a stem, or that it is made of."""
    for prefix in _MAKES_OPPOSITE:
        if stem.startswith(prefix) and len(stem) - len(prefix) >= _SHORTEST:
            yield stem[len(prefix) :]
        if len(stem) >= _SHORTEST:
            yield prefix + stem
    for pair in _SWAPPED:
        for own, other in (pair, pair[::-1]):
            if stem.startswith(own) and len(stem) - len(own) >= _SHORTEST:
                yield other + stem[len(own) :]


def opposites(stem: str) -> set[str]:
    """Return the stems of a word's opposites, listed or made by a prefix."""
    return {*antonyms().get(stem, ()), *prefixed(stem)}


# Decide whether a passage has a word in any spelling.

_ALIKE = 0.78
"""Edit similarity from which two words are one, misspelt or inflected: Dusquesne, Duquesne."""
_SHARED_STEM = 4
"""Letters that Britain and British, Poland and Polish share less one; enough when both are
names."""


def unknown_words(claim: Claim, passage: ReadPassage) -> frozenset[str]:
    """Return a claim's content words that the passage lacks in every spelling."""
    return frozenset(
        token for token in set(claim.content) - passage.known if not _misspelt(token, passage)
    )


def _misspelt(token: str, passage: ReadPassage) -> bool:
    """Return whether the passage has a similar token with the same first letter."""
    return any(
        abs(len(token) - len(other)) <= 2
        # The ratio is at most this: no more characters can match than stand in the other. Most
        # pairs are done here.
        and 2 * min(sum(map(other.__contains__, token)), sum(map(token.__contains__, other)))
        >= _ALIKE * (len(token) + len(other))
        and SequenceMatcher(None, token, other).ratio() >= _ALIKE
        for other in passage.known_by_initial.get(token[0], ())
    )


def is_named(name: str, passage: ReadPassage) -> bool:
    """Return whether the passage has the name in another form.

    Misspelt, as an adjective of its country, or spelt out (EU).
    """
    if _misspelt(name, passage):
        return True
    if len(name) > _SHARED_STEM and any(
        other.startswith(name[:_SHARED_STEM]) for other in passage.known_by_initial.get(name[0], ())
    ):
        return True
    return is_spelt_out(name, passage)


def is_spelt_out(name: str, passage: ReadPassage) -> bool:
    """Return whether the passage has the words that a name is the initials of."""
    return 2 <= len(name) <= 5 and name in passage.initials
