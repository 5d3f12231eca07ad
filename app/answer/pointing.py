"""Tell a question that stands alone from one that leans on the questions before it.

Only forms count, never topics: a pronoun whose noun is not in the question, an ellipsis ("and in
winter?"), an ordinal without its noun ("the second one"), a bare reply ("yes, please"). The words
of each form stand in `app/core/languages.yml`.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

from app.core.languages import DEFAULT, LANGUAGES, language_of
from app.core.text import tokenise
from app.generation.quote.quote_features import named_things

_CLAUSE = re.compile(r"[.,;:!?()\u00bf\u00a1\u061f\uff1f]+(?=\s|\Z)")
_ACRONYM = re.compile(r"\b[A-Z]{2,}\b")
_WORD = re.compile(r"[^\W_]+")
_MARKS = ("?", "\u061f", "\uff1f")
_FEW = 3
"""Words with content up to which a message without a verb is no question of its own;
docs/decisions/0062."""


@dataclass(frozen=True, slots=True)
class Forms:
    """The words of a language by which a question is shaped, in lower case with their accents."""

    pronouns: frozenset[str]
    possessives: frozenset[str]
    demonstratives: frozenset[str]
    clitics: frozenset[str]
    """Articles that are pronouns where they stand right behind the first asker: "quién lo hizo"."""
    askers: frozenset[str]
    requests: frozenset[str]
    """Verbs that open a request: explain, tell."""
    auxiliaries: frozenset[str]
    """Verbs that open a question."""
    joints: frozenset[str]
    """They begin another clause, in which a pronoun may stand for a noun of the one before; none of
    a relative clause, whose noun it already stands for ("the year in which it burned")."""
    infinitives: frozenset[str]
    """The mark of an infinitive, which is such a clause too."""
    articles: frozenset[str]
    ordinals: frozenset[str]
    """And other words that have a noun behind them or stand for one."""
    replies: frozenset[str]
    """How a message takes up the one before it: and, so, yes."""
    abouts: tuple[str, ...]
    """Openings of a question without a verb of its own: what about."""
    impersonal: re.Pattern[str]
    """Where a pronoun stands for nothing: there is, it takes to."""
    at_hand: frozenset[str]
    """Nouns that "this" may have without pointing back: this year, this paper."""
    empty: frozenset[str]
    """Words without content, all of these included."""


def _words(text: str) -> list[str]:
    return _WORD.findall(unicodedata.normalize("NFC", text).lower())


@cache
def _forms(code: str) -> Forms:
    language = LANGUAGES[code]
    listed = language.pointing
    kinds = {
        kind: frozenset(_words(listed.get(kind, "")))
        for kind in Forms.__dataclass_fields__
        if kind not in ("abouts", "impersonal", "empty")
    }
    shaping = frozenset().union(*(ones for kind, ones in kinds.items() if kind != "at_hand"))
    return Forms(
        **kinds,
        abouts=tuple(" ".join(_words(one)) for one in listed.get("abouts", "").split("|") if one),
        impersonal=re.compile("|".join(listed.get("impersonal", ())) or r"(?!)"),
        empty=shaping | frozenset(_words(f"{language.function_words} {language.connectives}")),
    )


@dataclass(frozen=True, slots=True)
class _Said:
    """A message as its words, and what they are."""

    words: tuple[str, ...]
    forms: Forms
    ends: frozenset[int]
    """Places behind the last word of a clause."""
    own: tuple[int, ...]
    """Places of words with content."""
    impersonal: frozenset[int]
    """Places of words that stand for nothing."""

    @classmethod
    def of(cls, message: str, forms: Forms) -> _Said:
        """Return the words behind "and", "so" or "yes" where those are a question of their own."""
        shown = message if message.isupper() else _ACRONYM.sub("acronym", message)
        clauses = [_words(one) for one in _CLAUSE.split(shown)]
        said = [word for clause in clauses for word in clause]
        first = next((at for at, word in enumerate(said) if word not in forms.replies), 0)
        if said and said[first] not in forms.askers | forms.auxiliaries:
            first = 0
        ends = {sum(map(len, clauses[: at + 1])) - first for at in range(len(clauses))}
        said = said[first:]
        line = " ".join(said)
        nothing = {
            at
            for match in forms.impersonal.finditer(line)
            for at in range(line.count(" ", 0, match.start()), line.count(" ", 0, match.end()) + 1)
        }
        own = (at for at, word in enumerate(said) if len(word) > 1 and word not in forms.empty)
        return cls(tuple(said), forms, frozenset(ends), tuple(own), frozenset(nothing))

    def word(self, at: int) -> str:
        """Return the word at a place; empty outside."""
        return self.words[at] if 0 <= at < len(self.words) else ""

    @property
    def nouns(self) -> list[int]:
        """Places of words with content that may be nouns.

        The first behind an asker is none ("who wrote", "what year"), nor what "it takes to build".
        """
        may_be = (at for at in self.own if at not in self.impersonal)
        return [at for at in may_be if self.word(at - 1) not in self.forms.askers]

    def bound(self, at: int) -> bool:
        """Return whether a word before a place, in another clause, may be what it stands for."""
        forms = self.forms
        return any(
            noun < joint < at
            for noun in self.nouns
            for joint in range(noun + 1, at)
            if self.words[joint] in forms.joints
            or (self.words[joint] in forms.infinitives and joint + 1 < at)
        ) or any(noun < end <= at for noun in self.nouns for end in self.ends)

    def points_back(self, at: int) -> bool:
        """Return whether a word stands for a noun that is not in the message."""
        forms, word, before, behind = (
            self.forms,
            self.words[at],
            self.word(at - 1),
            self.word(at + 1),
        )
        if at in self.impersonal or before in forms.articles:
            return False
        has_noun = at + 1 in self.own and at + 1 not in self.ends
        if word in forms.clitics:
            return at == 1 and before in forms.askers
        if word in forms.possessives and has_noun:
            return not any(noun < at for noun in self.nouns)
        if word in forms.demonstratives:
            relative = word in forms.joints and (at - 1 in self.own or before in forms.joints)
            if (
                relative and at + 1 not in self.ends
            ) or behind in forms.joints | forms.askers | forms.at_hand:
                return False
            return behind not in self.words[:at] if has_noun else not self.bound(at)
        if word in forms.ordinals and at + 1 not in self.ends:  # "one planet"
            return False
        return word in forms.pronouns and not self.bound(at)

    @property
    def has_bare_ordinal(self) -> bool:
        """Whether an ordinal has no noun behind it: "the second?", "which one is"."""
        forms = self.forms
        leads = forms.articles | forms.demonstratives | forms.askers | forms.ordinals
        return any(
            word in forms.ordinals
            and self.word(at - 1) in leads
            and (
                at + 1 in self.ends
                or self.word(at + 1) in forms.auxiliaries
                or (word in forms.pronouns and self.word(at - 1) not in forms.articles)
            )
            and not self.bound(at)
            for at, word in enumerate(self.words)
        )


def stands_alone(question: str, earlier: Sequence[str] = ()) -> bool:
    """Return whether a message is complete without the conversation: nothing in it points back.

    Args:
        question: The message.
        earlier: Messages before it. They tell the language of one too short for that, and whether
            a name in it is new.
    """
    code = language_of(question) or language_of(" ".join(earlier)) or DEFAULT
    said = _Said.of(question, _forms(code))
    return bool(said.own) and not (
        _is_elliptic(question, said, earlier)
        or said.has_bare_ordinal
        or any(map(said.points_back, range(len(said.words))))
    )


def _is_elliptic(question: str, said: _Said, earlier: Sequence[str]) -> bool:
    """Return whether the verb is missing: "Why?", "which country?", "and in winter?"."""
    forms, first = said.forms, said.words[0]
    if first in forms.replies or " ".join(said.words).startswith(forms.abouts or ("\n",)):
        return True
    if forms.askers.intersection(said.words):
        return len(said.own) == 1 and said.word(said.own[0] - 1) in forms.askers
    verbless = first not in forms.auxiliaries | forms.requests and len(said.own) <= _FEW
    if not verbless or _names_something_new(question, earlier):
        return False
    if 0 not in said.own:
        return True
    if question.rstrip().endswith(_MARKS):
        return True
    # one word is a search, and who searched by key words before does so again
    return len(said.words) > 1 and any(one.rstrip().endswith(_MARKS) for one in earlier[-1:])


def _names_something_new(question: str, earlier: Sequence[str]) -> bool:
    said = {token for text in earlier for token in tokenise(text)}
    return any(not said.issuperset(tokenise(name)) for name in named_things(question))


def pointing_words(question: str) -> frozenset[str]:
    """Return the forms that may stand for a noun, in the question's language."""
    forms = _forms(language_of(question) or DEFAULT)
    return forms.pronouns | forms.possessives | forms.demonstratives | forms.ordinals
